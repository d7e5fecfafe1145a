//! Making filesets before a run.

use super::super::model::{Fileset, Workload};
use super::super::tree::{Leaf, Tree, leaf_name};
use super::content::Contents;
use crate::target::{FILE_MODE, find, find_file, make_directory};
use nandscape_fs::contract::{
    Caller, DirEntry, FileSystem, FsError, Ino, Io, Kind, Result, SetAttr,
};

/// Bytes that are written at once.
pub(super) const BLOCK_BYTES: u64 = 1 << 20;
/// Bytes after which everything is written out.
const SYNC_BYTES: u64 = 64 << 20;
/// Names of a directory that are listed at once.
const LIST_ENTRIES: usize = 1024;

/// A fileset on a file system.
#[derive(Clone, Debug)]
pub struct CreatedFileset {
    /// What it is made of.
    pub tree: Tree,
    /// Numbers of its directories, in the tree's order.
    pub directories: Vec<Ino>,
}

/// Makes all filesets: directories, and the files that are there at the beginning. What else lies in the
/// directory of a fileset is removed first, unless it is to be used again (`reuse`).
///
/// # Errors
/// The fileset that could not be made, and what the file system says.
pub async fn lay_out(
    fs: &dyn FileSystem,
    workload: &Workload,
    trees: &[Tree],
) -> Result<Vec<CreatedFileset>, (usize, FsError)> {
    let stale = workload.filesets.iter().enumerate().filter(|(_, fileset)| !fileset.reuse);
    for (index, fileset) in stale {
        clear(fs, fileset).await.map_err(|error| (index, error))?;
    }
    let contents = Contents::default();
    let mut created = Vec::with_capacity(trees.len());
    for (index, (fileset, tree)) in workload.filesets.iter().zip(trees).enumerate() {
        let made = create_fileset(fs, &contents, fileset, tree).await;
        created.push(made.map_err(|error| (index, error))?);
    }
    Ok(created)
}

/// Removes the directory of a fileset, if it is there.
async fn clear(fs: &dyn FileSystem, fileset: &Fileset) -> Result<()> {
    let mut parent = fs.root();
    for step in &fileset.path {
        match find(fs, parent, step.as_bytes()).await? {
            None => return Ok(()),
            Some(found) => parent = found.ino,
        }
    }
    remove(fs, parent, fileset.name.as_bytes()).await
}

async fn create_fileset(
    fs: &dyn FileSystem,
    contents: &Contents,
    fileset: &Fileset,
    tree: &Tree,
) -> Result<CreatedFileset> {
    let mut root = fs.root();
    for step in fileset.path.iter().chain([&fileset.name]) {
        root = make_directory(fs, root, step).await?;
    }
    let mut directories = vec![root];
    for directory in tree.directories.iter().skip(1) {
        let parent = directories[directory.parent as usize];
        directories.push(make_directory(fs, parent, &leaf_name(directory.serial)).await?);
    }
    let later = tree.files.iter().chain(&tree.leafdirs).filter(|leaf| !leaf.exists);
    for leaf in later.filter(|_| fileset.reuse) {
        remove(fs, directories[leaf.parent as usize], leaf_name(leaf.serial).as_bytes()).await?;
    }
    for leaf in tree.leafdirs.iter().filter(|leaf| leaf.exists) {
        make_directory(fs, directories[leaf.parent as usize], &leaf_name(leaf.serial)).await?;
    }
    let mut unsynced = 0;
    for index in &tree.order {
        let leaf = tree.files[*index as usize];
        let parent = directories[leaf.parent as usize];
        let Some(ino) = file(fs, parent, leaf).await? else { continue };
        for offset in (0..leaf.bytes).step_by(BLOCK_BYTES as usize) {
            let len = BLOCK_BYTES.min(leaf.bytes - offset);
            contents.write(fs, Caller::default(), ino, (offset, len), Io::Buffered).await?;
            unsynced += len;
            if unsynced >= SYNC_BYTES {
                fs.syncfs(Caller::default()).await?;
                unsynced = 0;
            }
        }
    }
    Ok(CreatedFileset { tree: tree.clone(), directories })
}

/// A file that is to be written; none if one is there, which is cut where it is too long.
async fn file(fs: &dyn FileSystem, parent: Ino, leaf: Leaf) -> Result<Option<Ino>> {
    let (caller, name) = (Caller::default(), leaf_name(leaf.serial));
    let Some(found) = find_file(fs, parent, name.as_bytes()).await? else {
        return Ok(Some(fs.create(caller, parent, name.as_bytes(), FILE_MODE).await?.ino));
    };
    if found.size > leaf.bytes {
        let cut = SetAttr { size: Some(leaf.bytes), ..SetAttr::default() };
        fs.setattr(caller, found.ino, cut).await?;
    }
    Ok((found.size < leaf.bytes).then_some(found.ino))
}

/// Removes what has this name, a directory with all that is in it.
async fn remove(fs: &dyn FileSystem, parent: Ino, name: &[u8]) -> Result<()> {
    let caller = Caller::default();
    let Some(found) = find(fs, parent, name).await? else { return Ok(()) };
    if found.kind != Kind::Directory {
        return fs.unlink(caller, parent, name).await;
    }
    let mut path = vec![(parent, name.to_vec(), found.ino)];
    while let Some((parent, name, directory)) = path.last().cloned() {
        let mut entries = fs.readdir(caller, directory, 0, LIST_ENTRIES).await?;
        entries.retain(|entry| entry.name != b"." && entry.name != b"..");
        if entries.is_empty() {
            fs.rmdir(caller, parent, &name).await?;
            path.pop();
        }
        for DirEntry { ino, kind, name, .. } in entries {
            if kind == Kind::Directory {
                path.push((directory, name, ino));
                break;
            }
            fs.unlink(caller, directory, &name).await?;
        }
    }
    Ok(())
}

/// Reads the files of those sets that are to be in the page cache.
///
/// # Errors
/// What the file system says.
pub async fn preload(
    fs: &dyn FileSystem,
    workload: &Workload,
    created: &[CreatedFileset],
) -> Result<()> {
    let caller = Caller::default();
    let sets = workload.filesets.iter().zip(created);
    for (_, set) in sets.filter(|(fileset, _)| fileset.cached) {
        for Leaf { parent, serial, bytes, .. } in set.tree.files.iter().filter(|file| file.exists) {
            let directory = set.directories[*parent as usize];
            let ino = fs.lookup(caller, directory, leaf_name(*serial).as_bytes()).await?.ino;
            for offset in (0..*bytes).step_by(BLOCK_BYTES as usize) {
                fs.read(caller, ino, offset, BLOCK_BYTES, Io::Buffered).await?;
            }
        }
    }
    Ok(())
}
