//! Files that several write to while a run goes on: the first error of a disk is kept, and told at the
//! end.

use crate::output::Failure;
use anyhow::{Context, Error};
use std::cell::RefCell;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The first thing that went wrong with a file, shared by all that write.
#[derive(Clone, Default, Debug)]
pub(crate) struct FirstError(Rc<RefCell<Option<Error>>>);

impl FirstError {
    /// Keeps the error of `result`, unless there is one already.
    pub(crate) fn note(&self, result: std::io::Result<()>, path: &Path) {
        let Err(error) = result else { return };
        let context = || format!("cannot write {}", path.display());
        self.0.borrow_mut().get_or_insert_with(|| Error::from(error).context(context()));
    }

    /// What was kept.
    pub(crate) fn take(&self) -> Option<Error> {
        self.0.borrow_mut().take()
    }
}

/// A file being written, under its name.
#[derive(Debug)]
pub(crate) struct NamedFile {
    pub(crate) path: PathBuf,
    pub(crate) file: BufWriter<File>,
}

impl NamedFile {
    /// A new one, or an old one emptied.
    pub(crate) fn create(path: PathBuf) -> Result<Self, Failure> {
        let file = File::create(&path).with_context(|| format!("cannot write {}", path.display()));
        Ok(Self { file: BufWriter::new(file.map_err(Failure::Input)?), path })
    }
}
