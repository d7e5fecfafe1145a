//! Files that are written to take the place of others.

use crate::common::Folder;

/// How many there are in a folder.
pub(crate) fn parts(folder: &Folder) -> usize {
    let names = std::fs::read_dir(&folder.0).unwrap().map(|file| file.unwrap().file_name());
    names.filter(|name| name.to_string_lossy().ends_with(".part")).count()
}
