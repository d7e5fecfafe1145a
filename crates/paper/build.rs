//! Puts the folder `papers/` into the program: a table of paths and texts, in the order of the paths.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = Path::new("../../papers");
    println!("cargo:rerun-if-changed={}", root.display());
    let mut files = Vec::new();
    if root.is_dir() {
        collect(root, &mut files)?;
    }
    files.sort();
    let mut table = String::from("&[\n");
    for file in &files {
        let name = Path::new("papers").join(file.strip_prefix(root).map_err(io::Error::other)?);
        let (name, path) = (name.display(), file.canonicalize()?);
        writeln!(table, "(\"{name}\", include_str!({path:?})),").map_err(io::Error::other)?;
    }
    table.push(']');
    let out = env::var("OUT_DIR").map_err(io::Error::other)?;
    fs::write(Path::new(&out).join("papers.rs"), table)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        match path.is_dir() {
            true => collect(&path, files)?,
            false => files.push(path),
        }
    }
    Ok(())
}
