//! Making filesets before a run.

use super::super::model::{Fileset, Workload};
use super::super::tree::{Leaf, Tree, leaf_name};
use super::content::Contents;
use nandscape_fs::contract::{Caller, FileSystem, FsError, Ino, Io, Result};

/// Bytes that are written at once.
pub(super) const BLOCK_BYTES: u64 = 1 << 20;
/// Bytes after which everything is written out.
const SYNC_BYTES: u64 = 64 << 20;
/// Modes, as Filebench has them.
pub(super) const FILE_MODE: u16 = 0o644;
pub(super) const FOLDER_MODE: u16 = 0o755;

/// A fileset on a file system.
#[derive(Clone, Debug)]
pub struct Planted {
    /// What it is made of.
    pub tree: Tree,
    /// Numbers of its directories, in the tree's order.
    pub directories: Vec<Ino>,
}

/// Makes all filesets: directories, and the files that are there at the beginning.
///
/// # Errors
/// The fileset that could not be made, and what the file system says.
pub async fn lay_out(
    fs: &dyn FileSystem,
    workload: &Workload,
    trees: &[Tree],
) -> Result<Vec<Planted>, (usize, FsError)> {
    let contents = Contents::default();
    let mut planted = Vec::with_capacity(trees.len());
    for (index, (fileset, tree)) in workload.filesets.iter().zip(trees).enumerate() {
        let made = plant(fs, &contents, fileset, tree).await;
        planted.push(made.map_err(|error| (index, error))?);
    }
    Ok(planted)
}

async fn plant(
    fs: &dyn FileSystem,
    contents: &Contents,
    fileset: &Fileset,
    tree: &Tree,
) -> Result<Planted> {
    let caller = Caller::default();
    let mut root = fs.root();
    for step in fileset.path.iter().chain([&fileset.name]) {
        root = folder(fs, root, step).await?;
    }
    let mut directories = vec![root];
    for directory in tree.directories.iter().skip(1) {
        let parent = directories[directory.parent as usize];
        directories.push(folder(fs, parent, &leaf_name(directory.serial)).await?);
    }
    for leaf in tree.leafdirs.iter().filter(|leaf| leaf.exists) {
        folder(fs, directories[leaf.parent as usize], &leaf_name(leaf.serial)).await?;
    }
    let mut unsynced = 0;
    for index in &tree.order {
        let leaf = tree.files[*index as usize];
        let parent = directories[leaf.parent as usize];
        let ino =
            fs.create(caller, parent, leaf_name(leaf.serial).as_bytes(), FILE_MODE).await?.ino;
        for offset in (0..leaf.bytes).step_by(BLOCK_BYTES as usize) {
            let len = BLOCK_BYTES.min(leaf.bytes - offset);
            contents.write(fs, caller, ino, (offset, len), Io::Buffered).await?;
            unsynced += len;
            if unsynced >= SYNC_BYTES {
                fs.syncfs(caller).await?;
                unsynced = 0;
            }
        }
    }
    Ok(Planted { tree: tree.clone(), directories })
}

/// The directory of this name, made if it is not there.
async fn folder(fs: &dyn FileSystem, parent: Ino, name: &str) -> Result<Ino> {
    let caller = Caller::default();
    match fs.mkdir(caller, parent, name.as_bytes(), FOLDER_MODE).await {
        Err(FsError::Exists) => Ok(fs.lookup(caller, parent, name.as_bytes()).await?.ino),
        made => Ok(made?.ino),
    }
}

/// Reads the files of those sets that are to be in the page cache.
///
/// # Errors
/// What the file system says.
pub async fn warm(fs: &dyn FileSystem, workload: &Workload, planted: &[Planted]) -> Result<()> {
    let caller = Caller::default();
    let sets = workload.filesets.iter().zip(planted);
    for (_, set) in sets.filter(|(fileset, _)| fileset.cached) {
        for Leaf { parent, serial, bytes, .. } in set.tree.files.iter().filter(|file| file.exists) {
            let folder = set.directories[*parent as usize];
            let ino = fs.lookup(caller, folder, leaf_name(*serial).as_bytes()).await?.ino;
            for offset in (0..*bytes).step_by(BLOCK_BYTES as usize) {
                fs.read(caller, ino, offset, BLOCK_BYTES, Io::Buffered).await?;
            }
        }
    }
    Ok(())
}
