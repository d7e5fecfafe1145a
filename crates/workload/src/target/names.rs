//! Files and directories by name, as a load finds or makes them before it runs.

use nandscape_fs::contract::{Attr, Caller, FileSystem, FsError, Ino, Kind, Result};

/// Modes of what loads make, as Filebench has them.
pub(crate) const FILE_MODE: u16 = 0o644;
pub(crate) const FOLDER_MODE: u16 = 0o755;

/// The directory of this name, made if it is not there.
///
/// # Errors
/// Something else has the name, or what the file system says.
pub async fn make_directory(fs: &dyn FileSystem, parent: Ino, name: &str) -> Result<Ino> {
    match find(fs, parent, name.as_bytes()).await? {
        None => Ok(fs.mkdir(Caller::default(), parent, name.as_bytes(), FOLDER_MODE).await?.ino),
        Some(found) if found.kind == Kind::Directory => Ok(found.ino),
        Some(_) => Err(FsError::NotDirectory),
    }
}

/// The regular file of this name, if it is there.
///
/// # Errors
/// Something else has the name, or what the file system says.
pub async fn find_file(fs: &dyn FileSystem, parent: Ino, name: &[u8]) -> Result<Option<Attr>> {
    let found = find(fs, parent, name).await?;
    match found.map(|found| found.kind) {
        None | Some(Kind::File) => Ok(found),
        Some(Kind::Directory) => Err(FsError::IsDirectory),
        Some(_) => Err(FsError::Exists),
    }
}

/// What has this name, if it is there.
///
/// # Errors
/// What the file system says.
pub(crate) async fn find(fs: &dyn FileSystem, parent: Ino, name: &[u8]) -> Result<Option<Attr>> {
    match fs.lookup(Caller::default(), parent, name).await {
        Err(FsError::NoEntry) => Ok(None),
        found => found.map(Some),
    }
}
