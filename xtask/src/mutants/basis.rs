//! What records stand on, as git names it: a check counts for what caught a mutant while neither the mutant's file nor the
//! check's own sources have changed.

use super::checks::Check;
use super::table::Mutant;
use crate::repository::git;
use std::path::Path;

/// The repository as it is now, changes that are not committed included, as a tree of git.
pub(super) struct Basis<'a> {
    root: &'a Path,
    tree: String,
}

impl<'a> Basis<'a> {
    /// `folder` takes an index of its own.
    ///
    /// # Errors
    /// Git fails.
    pub(super) fn open(root: &'a Path, folder: &Path) -> Result<Self, String> {
        std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let index = folder.join("index");
        let git = |args: &[&str]| git(root, Some(&index), args);
        git(&["read-tree", "HEAD"])?;
        git(&["add", "--all", "crates"])?;
        let tree = git(&["write-tree"])?;
        Ok(Self { root, tree })
    }

    /// All sources: what a survivor stands on.
    ///
    /// # Errors
    /// Git fails.
    pub(super) fn of_sources(&self) -> Result<String, String> {
        self.name("crates")
    }

    /// What a mutant stands on that this check caught.
    ///
    /// # Errors
    /// The mutant's file, or the check's, is not there.
    pub(super) fn of(&self, mutant: &Mutant, check: &Check) -> Result<String, String> {
        let of_check = match check {
            Check::Campaign(_) => "crates/crash/src".to_owned(),
            Check::Test { program, .. } => match program.split_once(' ') {
                Some((owner, "lib")) => format!("crates/{owner}/src"),
                Some((owner, _)) => format!("crates/{owner}/tests"),
                None => return Err(format!("{program:?} names no crate")),
            },
        };
        Ok(format!("{} {}", self.name(&mutant.file)?, self.name(&of_check)?))
    }

    /// The first digits of the object of a path.
    fn name(&self, path: &str) -> Result<String, String> {
        let object = git(self.root, None, &["rev-parse", &format!("{}:{path}", self.tree)])?;
        Ok(object.chars().take(12).collect())
    }
}
