//! What README.md and the tutorial show is what the program does.
//!
//! A comment marks the fenced block in the line after it:
//! - `<!-- file NAME -->`: the block is the content of this file;
//! - `<!-- run -->`: the block is commands, which succeed;
//! - `<!-- output -->`: the block is the standard output of the commands before it;
//! - `<!-- output of COMMAND -->`: the block is the standard output of this command.
//!
//! The blocks of a document are used in order, in one folder. `NANDSCAPE_DOCUMENTS=write` replaces outputs that differ.
#![cfg(unix)]

use crate::common::document;

use document::{Block, Mark, blocks, lasting, replaced};
use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn the_readme_shows_what_is_printed() {
    check("README.md");
}

#[test]
fn the_tutorial_shows_what_is_printed() {
    check("docs/tutorial.md");
}

/// Runs what a document marks, and compares or replaces what it shows.
fn check(name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    let text = std::fs::read_to_string(&path).unwrap();
    let blocks = blocks(&text).unwrap_or_else(|error| panic!("{name}:{error}"));
    let printed = printed(name, &blocks);
    assert!(!printed.is_empty(), "{name} shows no output");
    if std::env::var("NANDSCAPE_DOCUMENTS").is_ok_and(|what| what == "write") {
        std::fs::write(&path, replaced(&text, &printed)).unwrap();
        return;
    }
    for (block, printed) in &printed {
        let place = format!("{name}:{}: NANDSCAPE_DOCUMENTS=write replaces it", block.line);
        assert_eq!(lasting(block.text), lasting(printed), "{place}");
    }
}

/// The blocks of outputs, with what was printed.
fn printed<'a>(name: &str, blocks: &'a [Block<'a>]) -> Vec<(&'a Block<'a>, String)> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name.replace('/', "-"));
    // Of a test that failed.
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let mut last = String::new();
    let mut all = Vec::new();
    for block in blocks {
        let run = |commands| shell(&folder, commands, &format!("{name}:{}", block.line));
        match block.mark {
            Mark::File(file) => std::fs::write(folder.join(file), block.text).unwrap(),
            Mark::Run => last = run(block.text),
            Mark::Output(Some(command)) => all.push((block, run(command))),
            Mark::Output(None) => all.push((block, last.clone())),
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
    all
}

/// What a shell prints for these commands, which succeed.
fn shell(folder: &Path, commands: &str, place: &str) -> String {
    let binary = Path::new(env!("CARGO_BIN_EXE_nandscape")).parent().unwrap();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::iter::once(binary.to_owned()).chain(std::env::split_paths(&path));
    let mut shell = Command::new("sh");
    shell.args(["-ec", commands]).current_dir(folder);
    shell
        .env("PATH", std::env::join_paths(path).unwrap())
        .env("XDG_CACHE_HOME", folder.join("cache"));
    let output = shell.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{place}: {commands}: {}: {errors}", output.status);
    String::from_utf8(output.stdout).unwrap()
}
