//! Making a file system and the jobs' files in it, before a run.
//!
//! When everything is there the file system is unmounted and mounted again: a run begins with an empty
//! journal and nothing cached, as with fio's `invalidate=1`. Files that somebody reads are written
//! whole; others are given blocks only, as fio does with `fallocate=native`.

use super::Contents;
use super::layout::File;
use crate::run::RunError;
use crate::stack::{FsStack, Stack};
use nandscape_block::{AsyncDevice, BlockError, Payload, SECTOR_BYTES, Tag};
use nandscape_fs::contract::{Allocate, Caller, Data, FileSystem, FsError, Ino, Io, Result};
use nandscape_fs::ext4::Ext4;
use nandscape_fs::ext4::mkfs::{MkfsError, mkfs};
use nandscape_rt::Handle;
use nandscape_workload::wml::engine::{Planted, lay_out as plant, warm};

/// Sectors that are written at once.
const FILL_SECTORS: u64 = 1_024;
/// Modes of files and folders.
const FILE_MODE: u16 = 0o644;
const FOLDER_MODE: u16 = 0o755;
/// Who lays files out.
const ROOT: Caller = Caller { thread: 0, core: 0, uid: 0, gid: 0 };

/// Why a run could not begin.
pub(super) enum MakeError {
    /// There is no file system.
    Mkfs(MkfsError),
    /// There is one, and something failed on it.
    Fs(FsError),
}

impl From<MkfsError> for MakeError {
    fn from(error: MkfsError) -> Self {
        Self::Mkfs(error)
    }
}

impl From<FsError> for MakeError {
    fn from(error: FsError) -> Self {
        Self::Fs(error)
    }
}

impl MakeError {
    /// The same, as the error of a run on this stack.
    pub(super) fn on(self, stack: &Stack) -> RunError {
        match self {
            Self::Mkfs(MkfsError::Device(BlockError::MemoryCap))
            | Self::Fs(FsError::Io(BlockError::MemoryCap)) => RunError::memory_cap(stack),
            Self::Mkfs(MkfsError::Device(error)) => RunError::Failed(error.to_string()),
            Self::Mkfs(error) => stack.error("fs", &error.to_string()).into(),
            Self::Fs(FsError::NoSpace) => {
                RunError::Job("the files do not fit the file system".to_owned())
            }
            Self::Fs(FsError::Incompatible(what)) => stack.error("fs.features", &what).into(),
            Self::Fs(error) => RunError::Failed(format!("laying out files: {error}")),
        }
    }
}

/// A mounted file system with something in it.
pub(super) struct Made {
    pub(super) fs: Ext4,
    /// Numbers of jobs' files, which are open.
    pub(super) inodes: Vec<Ino>,
    /// Filesets of a workload.
    pub(super) planted: Vec<Planted>,
    pub(super) contents: Contents,
}

/// A file system with these contents.
pub(super) fn make(
    rt: &Handle,
    device: &AsyncDevice,
    options: &FsStack,
    contents: Contents,
) -> impl Future<Output = Result<Made, MakeError>> + use<> {
    let (rt, device, options) = (rt.clone(), device.clone(), options.clone());
    async move {
        mkfs(&device, &options.mkfs).await?;
        let (fs, _) = Ext4::mount(&rt, device.clone(), options.mount.clone()).await?;
        let mut inodes = Vec::new();
        let mut planted = Vec::new();
        match &contents {
            Contents::Jobs(layout) => {
                for file in &layout.files {
                    inodes.push(lay_out(&fs, file).await?);
                }
            }
            Contents::Trees(workload, trees) => planted = plant(&fs, workload, trees).await?,
        }
        fs.unmount().await?;
        let (fs, _) = Ext4::mount(&rt, device, options.mount).await?;
        for inode in &inodes {
            fs.open(ROOT, *inode).await?;
        }
        if let Contents::Trees(workload, _) = &contents {
            warm(&fs, workload, &planted).await?;
        }
        Ok(Made { fs, inodes, planted, contents })
    }
}

/// Makes one file, as long as it is to be.
async fn lay_out(fs: &Ext4, file: &File) -> Result<Ino> {
    let Some((name, folders)) = file.path.split_last() else { return Err(FsError::NoEntry) };
    let mut folder = fs.root();
    for step in folders {
        folder = match fs.mkdir(ROOT, folder, step.as_bytes(), FOLDER_MODE).await {
            Err(FsError::Exists) => fs.lookup(ROOT, folder, step.as_bytes()).await?.ino,
            made => made?.ino,
        };
    }
    let ino = fs.create(ROOT, folder, name.as_bytes(), FILE_MODE).await?.ino;
    if !file.filled {
        let blocks = Allocate::Reserve { keep_size: false };
        fs.fallocate(ROOT, ino, blocks, 0, file.sectors * SECTOR_BYTES).await?;
        return Ok(ino);
    }
    for first in (0..file.sectors).step_by(FILL_SECTORS as usize) {
        let sectors = FILL_SECTORS.min(file.sectors - first);
        // The engine's tags of version 0, which it never writes itself.
        let payload = Payload::Run(Tag::new(file.base + first));
        let data = Data::Sectors(payload, sectors as u32);
        fs.write_all(ROOT, ino, first * SECTOR_BYTES, data, Io::Direct).await?;
    }
    Ok(ino)
}
