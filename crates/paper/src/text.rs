//! A text of a paper's folder.

use crate::library::Files;
use nandscape_lab::stack::document::{Table, parse};
use nandscape_lab::stack::{Place, StackError};
use nandscape_lab::workload::fio::Environment;
use std::path::Path;
use std::sync::Arc;

/// A text with the name that messages call it by.
pub(crate) struct Text {
    pub(crate) file: Arc<str>,
    pub(crate) text: String,
}

impl Text {
    /// A file of the paper's folder.
    pub(crate) fn read(files: Files, folder: &Path, name: &str) -> Result<Self, StackError> {
        let path = folder.join(name);
        let file: Arc<str> = path.to_string_lossy().into();
        let text = files.read(&path).map_err(|why| {
            StackError::new(&Place::file(&file), "", format!("cannot be read: {why}"))
        })?;
        Ok(Self { file, text })
    }

    pub(crate) fn table(&self) -> Result<Table, StackError> {
        parse(&self.file, &self.text)
    }

    pub(crate) fn start(&self) -> Place {
        Place::of(&self.file, "", 0)
    }
}
