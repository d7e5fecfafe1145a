//! Writes the seeds of every target into the folders `FOLDER/TARGET`, for fuzzers, which read files (`cargo xtask fuzz`):
//! `cargo run -p nandscape-inputs --example seeds -- FOLDER`. The folders hold nothing else afterwards.

use nandscape_inputs::{TARGETS, seeds};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: seeds FOLDER");
        return ExitCode::from(2);
    };
    match TARGETS.iter().try_for_each(|(target, _)| write(target, &folder.join(target))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("seeds: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write(target: &str, folder: &Path) -> Result<(), String> {
    let failed = |e: std::io::Error| format!("{}: {e}", folder.display());
    if folder.is_dir() {
        fs::remove_dir_all(folder).map_err(failed)?;
    }
    fs::create_dir_all(folder).map_err(failed)?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut seeds = seeds::of(&root, target)?.into_iter();
    seeds.try_for_each(|(name, seed)| fs::write(folder.join(name), seed)).map_err(failed)
}
