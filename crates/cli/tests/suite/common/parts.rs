//! Files that are written to take the place of others.

use crate::common::Folder;

/// How many bytes each in a folder has. Whether a file can be written is tried before, with an empty one.
pub(crate) fn parts(folder: &Folder) -> Vec<u64> {
    let files = std::fs::read_dir(&folder.0).unwrap().map(Result::unwrap);
    let parts = files.filter(|file| file.file_name().to_string_lossy().ends_with(".part"));
    // One that is gone by now is none.
    parts.filter_map(|part| Some(part.metadata().ok()?.len())).collect()
}
