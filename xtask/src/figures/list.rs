//! The list of figures, `xtask/figures.toml`, and the files that commands made.

use crate::files::text;
use serde::Deserialize;
use std::fmt;
use std::path::Path;

/// The file.
const FILE: &str = "xtask/figures.toml";
/// Where the files stand.
pub(crate) const FOLDER: &str = "docs/results/figures";

/// Figures of one command.
#[derive(Deserialize, Clone, Debug)]
#[serde(deny_unknown_fields)]
pub(crate) struct Figures {
    pub(crate) name: String,
    /// The command, of bash, at the root of the repository; `nandscape` is the release build, and `$out` an empty folder.
    pub(crate) run: String,
    /// Whether the gate runs it, too: it takes seconds.
    #[serde(default)]
    pub(crate) gate: bool,
    /// Whether they are times of the machine that made them: no other run prints the same, so none is compared.
    #[serde(default)]
    pub(crate) timed: bool,
}

impl Figures {
    /// The file with them.
    pub(crate) fn path(&self) -> String {
        format!("{FOLDER}/{}.txt", self.name)
    }
}

/// All figures.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct List {
    figures: Vec<Figures>,
}

/// # Errors
/// The list cannot be read, or has a name twice.
pub(super) fn read(root: &Path) -> Result<List, String> {
    let list: List =
        toml::from_str(&text(&root.join(FILE))?).map_err(|e| format!("{FILE}: {e}"))?;
    let names: Vec<&str> = list.figures.iter().map(|one| one.name.as_str()).collect();
    match (1..names.len()).find(|at| names[..*at].contains(&names[*at])) {
        Some(twice) => Err(format!("{FILE}: {:?} occurs twice", names[twice])),
        None => Ok(list),
    }
}

impl List {
    /// The figures of these names; all without names.
    ///
    /// # Errors
    /// There are none of a name.
    pub(super) fn named(self, names: &[String]) -> Result<Vec<Figures>, String> {
        if let Some(name) =
            names.iter().find(|name| self.figures.iter().all(|one| one.name != **name))
        {
            let known: Vec<&str> = self.figures.iter().map(|one| one.name.as_str()).collect();
            return Err(format!("no figures {name:?}: expected one of {}", known.join(", ")));
        }
        let is_wanted = |one: &Figures| names.is_empty() || names.contains(&one.name);
        Ok(self.figures.into_iter().filter(is_wanted).collect())
    }
}

/// What a command printed, with the commit at which it did.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Made {
    pub(crate) commit: String,
    pub(crate) command: String,
    pub(crate) body: String,
}

impl Made {
    /// A file as [`Display`](fmt::Display) writes it.
    ///
    /// # Errors
    /// It does not begin so.
    pub(crate) fn parse(file: &str) -> Result<Self, String> {
        let wrong = || "does not begin with \"commit: \" and \"command: \"".to_owned();
        let rest = file.strip_prefix("commit: ").ok_or_else(wrong)?;
        let (commit, rest) = rest.split_once("\ncommand: ").ok_or_else(wrong)?;
        let (command, body) = rest.split_once("\n\n").ok_or_else(wrong)?;
        Ok(Self { commit: commit.into(), command: command.into(), body: body.into() })
    }
}

impl fmt::Display for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { commit, command, body } = self;
        write!(f, "commit: {commit}\ncommand: {command}\n\n{body}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_says_what_made_it() {
        let made = Made { commit: "1".into(), command: "a\nb".into(), body: "x,1\n\ny,2\n".into() };
        assert_eq!(Made::parse(&made.to_string()), Ok(made));
        assert!(Made::parse("x,1\n").is_err());
    }

    /// Names are known, and each file that is there is made by a command of the list.
    #[test]
    fn the_list_is_sound() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let all = read(&root).unwrap().named(&[]).unwrap();
        for file in crate::files::listed(&root.join(FOLDER)).unwrap() {
            let made = Made::parse(&text(&file).unwrap()).unwrap();
            let owner = all.iter().find(|one| root.join(one.path()) == file);
            assert_eq!(owner.map(|one| &one.run), Some(&made.command), "{}", file.display());
        }
        assert!(read(&root).unwrap().named(&["no such figures".into()]).is_err());
    }
}
