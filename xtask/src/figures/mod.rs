//! `cargo xtask figures`: the numbers of pages, made by commands.
//!
//! `xtask/figures.toml` names commands. What one prints is a file of `docs/results/figures`, below the commit at which it
//! was made and the command itself; it changes only with what is printed. Times of a machine are made so, too, and
//! nothing compares them. A section of a page says which files its numbers
//! are from (`tidy`'s rule `figures`), and the night runs all commands again (`--check`): a file that differs fails it,
//! but where the changelog has got an entry for that file since.

mod list;

pub(crate) use list::{FOLDER, Figures, Made};

use crate::files::text;
use crate::repository::Repository;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Which files are made, and whether they are written.
#[derive(PartialEq, Eq, Default, Debug)]
pub(crate) struct Options {
    /// Their names; none: all.
    names: Vec<String>,
    /// Compares what the commands print with the files, and writes none.
    check: bool,
    /// Leaves those out that the gate does not run.
    gate: bool,
}

impl Options {
    /// The options of these words; `None`: they are none.
    pub(crate) fn of(words: &[&str]) -> Option<Self> {
        let (options, names): (Vec<&str>, Vec<&str>) =
            words.iter().partition(|word| word.starts_with('-'));
        let known = |option: &&str| ["--check", "--gate"].contains(option);
        options.iter().all(known).then(|| Self {
            names: names.into_iter().map(str::to_owned).collect(),
            check: options.contains(&"--check"),
            gate: options.contains(&"--gate"),
        })
    }
}

/// Runs the commands; returns whether nothing differs that no entry of the changelog explains.
///
/// # Errors
/// The list cannot be read, has no such name, or a command fails.
pub(crate) fn run(repository: &Repository, options: &Options) -> Result<bool, String> {
    let root = repository.root();
    let wanted = list::read(root)?.named(&options.names)?;
    let is_run = |one: &Figures| (!options.gate || one.gate) && !(options.check && one.timed);
    let wanted = wanted.into_iter().filter(is_run);
    let commit = repository.commit()?;
    let binary = repository.release_binary()?;
    let mut unexplained = Vec::new();
    for figures in wanted {
        println!("{}: {}", figures.name, figures.run);
        let printed = output(repository, &binary, &figures)?;
        let file = root.join(figures.path());
        let last = text(&file).ok().map(|text| Made::parse(&text)).transpose();
        let last = last.map_err(|why| format!("{}: {why}", figures.path()))?;
        if last.as_ref().is_some_and(|last| last.body == printed && last.command == figures.run) {
            continue;
        }
        if !options.check {
            let made = Made { commit: commit.clone(), command: figures.run, body: printed };
            write(&file, &made.to_string())?;
            continue;
        }
        let explained = last.as_ref().is_some_and(|last| is_explained(repository, last, &figures));
        println!("{}", difference(last.as_ref().map_or("", |last| &last.body), &printed));
        match explained {
            true => println!("{}: moved, as the changelog says", figures.name),
            false => unexplained.push(figures.name),
        }
    }
    if !unexplained.is_empty() {
        let names = unexplained.join(" ");
        println!(
            "figures that moved without an entry in CHANGELOG.md: {names}. Say there why \
             (\"Figures `NAME`: ...\"), then run `cargo xtask figures {names}` and mend the pages"
        );
    }
    Ok(unexplained.is_empty())
}

/// What the command of these figures prints. Its variable `out` is an empty folder for rows: none of another program is
/// taken for one of this.
fn output(repository: &Repository, binary: &Path, figures: &Figures) -> Result<String, String> {
    let root = repository.root();
    let out = repository.target().join("figures").join(&figures.name);
    let failed = |e: std::io::Error| format!("{}: {e}", out.display());
    if out.exists() {
        std::fs::remove_dir_all(&out).map_err(failed)?;
    }
    std::fs::create_dir_all(&out).map_err(failed)?;
    let folder = binary.parent().unwrap_or(root).to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([folder].into_iter().chain(std::env::split_paths(&path)));
    let mut command = Command::new("bash");
    command.args(["-euo", "pipefail", "-c", &figures.run]).current_dir(root);
    command.env("PATH", path.map_err(|e| e.to_string())?).env("out", &out);
    let output = command.output().map_err(|e| format!("bash: {e}"))?;
    let errors = || String::from_utf8_lossy(&output.stderr).into_owned();
    match output.status.success() {
        true => String::from_utf8(output.stdout).map_err(|e| format!("{}: {e}", figures.name)),
        false => Err(format!("{}: {}: {}", figures.name, output.status, errors())),
    }
}

fn write(file: &PathBuf, content: &str) -> Result<(), String> {
    let failed = |e: std::io::Error| format!("{}: {e}", file.display());
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    std::fs::write(file, content).map_err(failed)
}

/// Whether the changelog has got a line since these figures were made that names them.
fn is_explained(repository: &Repository, last: &Made, figures: &Figures) -> bool {
    let diff = repository.git(&["diff", &last.commit, "--", "CHANGELOG.md"]);
    diff.is_ok_and(|diff| explains(&diff, &figures.name))
}

/// Whether a difference of the changelog adds an entry for these figures.
fn explains(diff: &str, name: &str) -> bool {
    let name = format!("`{name}`");
    diff.lines().any(|line| {
        line.strip_prefix('+').is_some_and(|line| line.contains("Figures") && line.contains(&name))
    })
}

/// The lines that differ, those of the file first.
fn difference(before: &str, after: &str) -> String {
    let (before, after): (Vec<&str>, Vec<&str>) =
        (before.lines().collect(), after.lines().collect());
    let gone = before.iter().filter(|line| !after.contains(line)).map(|line| format!("- {line}"));
    let new = after.iter().filter(|line| !before.contains(line)).map(|line| format!("+ {line}"));
    gone.chain(new).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_options() {
        let options = Options::of(&["--check", "a", "--gate"]).unwrap();
        let expected = Options { names: vec!["a".into()], check: true, gate: true };
        assert_eq!(options, expected);
        assert_eq!(Options::of(&["--all"]), None);
    }

    #[test]
    fn a_difference_has_its_lines() {
        assert_eq!(difference("x,1\ny,2\n", "x,1\ny,3\n"), "- y,2\n+ y,3");
    }

    /// Only a line that was added, and that names the figures, explains.
    #[test]
    fn an_entry_of_the_changelog_explains() {
        assert!(explains("+- Figures `a`, `b`: erases take time.", "b"));
        assert!(!explains("-- Figures `b`: erases take time.", "b"));
        assert!(!explains("+- Figures `bc`: erases take time.", "b"));
        assert!(!explains("+- `b` is a new option.", "b"));
    }
}
