//! The list of parts, `xtask/night.toml`.

use crate::files::text;
use crate::repository::Repository;
use serde::Deserialize;
use std::path::Path;

/// The file.
const FILE: &str = "xtask/night.toml";
/// What stands for the night in a command: fresh seeds derive from it.
const NIGHT: &str = "{night}";

/// A part of the night.
#[derive(Deserialize, Clone, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Part {
    pub(super) name: String,
    /// What it runs, for readers.
    pub(super) what: String,
    /// Paths that it covers: a change of something else cannot change how it ends.
    pub(super) covers: Vec<String>,
    /// The command, of bash.
    pub(super) night: String,
    /// Its shorter form, which the gate runs; without one, the gate looks at these paths otherwise.
    pub(super) gate: Option<String>,
    /// The commit at which it last passed.
    pub(super) passed: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    part: Vec<Part>,
}

/// All parts.
///
/// # Errors
/// The list cannot be read.
pub(super) fn read(root: &Path) -> Result<Vec<Part>, String> {
    let list: List =
        toml::from_str(&text(&root.join(FILE))?).map_err(|e| format!("{FILE}: {e}"))?;
    Ok(list.part)
}

/// The parts of these names; all without names.
///
/// # Errors
/// There is none of a name.
pub(super) fn named(parts: Vec<Part>, names: &[String]) -> Result<Vec<Part>, String> {
    if let Some(name) = names.iter().find(|name| parts.iter().all(|part| part.name != **name)) {
        let known: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
        return Err(format!("no part {name:?}: expected one of {}", known.join(", ")));
    }
    let is_wanted = |part: &Part| names.is_empty() || names.contains(&part.name);
    Ok(parts.into_iter().filter(is_wanted).collect())
}

impl Part {
    /// What runs in this night.
    pub(super) fn command(&self, night: &str) -> String {
        self.night.replace(NIGHT, night)
    }

    /// Whether the gate has to run it: it has a form for it, and what it covers differs from the commit at which it passed,
    /// or that commit is not there to compare with.
    pub(super) fn is_due(&self, repository: &Repository) -> bool {
        self.gate.is_some()
            && self.passed.as_deref().is_none_or(|commit| self.differs(repository, commit))
    }

    fn differs(&self, repository: &Repository, commit: &str) -> bool {
        let mut args = vec!["diff", "--quiet", commit, "--"];
        args.extend(self.covers.iter().map(String::as_str));
        repository.git(&args).is_err()
    }

    /// That it ran at a commit is true only if what it covers is as committed.
    ///
    /// # Errors
    /// It is not.
    pub(super) fn check_committed(&self, repository: &Repository) -> Result<(), String> {
        match self.differs(repository, "HEAD") {
            false => Ok(()),
            true => Err(format!(
                "{}: commit first what changed in {}",
                self.name,
                self.covers.join(", ")
            )),
        }
    }
}

/// Notes in the list that a part passed.
///
/// # Errors
/// The list cannot be read or written.
pub(super) fn note_passed(root: &Path, part: &Part, commit: &str) -> Result<(), String> {
    let file = root.join(FILE);
    let list = with_passed(&text(&file)?, &part.name, commit);
    std::fs::write(&file, list).map_err(|e| format!("{FILE}: {e}"))
}

/// The list with this commit in the table of the part of this name.
fn with_passed(list: &str, name: &str, commit: &str) -> String {
    let (head, passed) = (format!("name = {name:?}"), format!("passed = {commit:?}"));
    let mut lines: Vec<&str> = list.lines().collect();
    let Some(at) = lines.iter().position(|line| *line == head) else { return list.to_owned() };
    let end =
        lines[at..].iter().position(|line| line.is_empty()).map_or(lines.len(), |end| at + end);
    match lines[at..end].iter().position(|line| line.starts_with("passed =")) {
        Some(old) => lines[at + old] = &passed,
        None => lines.insert(end, &passed),
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
    }

    /// What a part covers is there, and its name is its own: a folder that moved would never be due again.
    #[test]
    fn paths_exist() {
        let parts = read(&root()).unwrap();
        for part in &parts {
            assert_eq!(parts.iter().filter(|other| other.name == part.name).count(), 1);
            assert!(!part.covers.is_empty(), "{}", part.name);
            part.covers.iter().for_each(|path| assert!(root().join(path).exists(), "{path}"));
        }
    }

    #[test]
    fn unknown_names_are_refused() {
        let parts = read(&root()).unwrap();
        assert!(named(parts.clone(), &["papers".into()]).is_ok_and(|found| found.len() == 1));
        assert!(named(parts, &["paper".into()]).unwrap_err().contains("papers"));
    }

    #[test]
    fn a_commit_is_noted_in_its_part() {
        let list =
            "[[part]]\nname = \"a\"\npassed = \"1\"\n\n[[part]]\nname = \"b\"\nnight = \"x\"\n";
        let noted = with_passed(&with_passed(list, "b", "2"), "a", "3");
        let expected = "[[part]]\nname = \"a\"\npassed = \"3\"\n\n[[part]]\nname = \"b\"\nnight = \"x\"\npassed = \"2\"\n";
        assert_eq!(noted, expected);
    }

    /// Due is what changed since it passed, and what passed at a commit that is not there; what the gate has no form for
    /// never is.
    #[test]
    fn changed_paths_are_due() {
        let repository = Repository::of_this_run();
        let part = |passed: Option<&str>, gate: Option<&str>| Part {
            name: "a".into(),
            what: String::new(),
            covers: vec!["LICENSE-MIT".into()],
            night: "echo {night}".into(),
            gate: gate.map(str::to_owned),
            passed: passed.map(str::to_owned),
        };
        assert!(!part(Some("HEAD"), Some("true")).is_due(&repository));
        assert!(part(None, Some("true")).is_due(&repository));
        assert!(part(Some("0123456789abcdef"), Some("true")).is_due(&repository));
        assert!(!part(None, None).is_due(&repository));
        assert_eq!(part(None, None).command("7"), "echo 7");
    }
}
