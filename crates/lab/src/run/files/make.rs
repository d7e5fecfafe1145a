//! Making a file system, or mounting the one that is on the device, and the jobs' files in it, before a
//! run. As in fio, files that are there and long enough are used as they are, and shorter ones are made
//! anew.
//!
//! When everything is there the file system is unmounted ([`make`]) and, on a device that was off meanwhile,
//! mounted again ([`open`]): a run begins with an empty journal and nothing cached, as with fio's
//! `invalidate=1`. Files that somebody reads are written
//! whole; others are given blocks only, as fio does with `fallocate=native`.

use super::Contents;
use super::layout::File;
use crate::run::error::RunError;
use crate::stack::{FsStack, Stack};
use crate::state::StateError;
use nandscape_block::{AsyncDevice, BlockError, Payload, SECTOR_BYTES, Tag};
use nandscape_fs::contract::{Allocate, Caller, Data, FileSystem, FsError, Ino, Io, StatFs};
use nandscape_fs::ext4::format::{STATE_ERRORS, Superblock};
use nandscape_fs::ext4::mkfs::{MkfsError, mkfs};
use nandscape_fs::ext4::raw::{Raw, RawError};
use nandscape_fs::ext4::{Ext4, MountOptions};
use nandscape_rt::Handle;
use nandscape_workload::wml::engine::{
    Planted, find_file, folder as make_folder, lay_out as plant, warm,
};
use nandscape_workload::wml::{Fileset, Tree};

/// Sectors that are written at once.
const FILL_SECTORS: u64 = 1_024;
/// Mode of files.
const FILE_MODE: u16 = 0o644;
/// Who lays files out.
const ROOT: Caller = Caller { thread: 0, core: 0, uid: 0, gid: 0 };

/// Why a run could not begin.
pub(super) enum MakeError {
    /// There is no file system.
    Mkfs(MkfsError),
    /// There is one, and something failed on it.
    Fs(FsError),
    /// There is one, and something does not fit it.
    Unfit(String),
    /// Its log is too short for records.
    Records(&'static str),
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
    /// The same, as the error of a run on this stack, with the device of `file` if that is so.
    pub(super) fn on(self, stack: &Stack, file: Option<&str>) -> RunError {
        let mounted = file.filter(|_| stack.fs.as_ref().is_some_and(|fs| fs.mkfs.is_none()));
        match (self, mounted) {
            (Self::Fs(FsError::Incompatible(why)), Some(file)) => StateError::new(file, why).into(),
            (Self::Fs(why @ FsError::Corrupt { .. }), Some(file)) => {
                StateError::new(file, why).into()
            }
            (error, _) => error.on_made(stack),
        }
    }

    fn on_made(self, stack: &Stack) -> RunError {
        match self {
            Self::Mkfs(MkfsError::Device(BlockError::MemoryCap))
            | Self::Fs(FsError::Io(BlockError::MemoryCap)) => RunError::memory_cap(stack),
            Self::Mkfs(MkfsError::Device(error)) => RunError::Failed(error.to_string()),
            Self::Mkfs(error) => stack.error("fs", &error.to_string()).into(),
            Self::Unfit(what) => RunError::Job(what),
            Self::Records(why) => stack.error("fs.records", why).into(),
            Self::Fs(FsError::Incompatible(what)) => stack.error("fs.features", &what).into(),
            Self::Fs(error) => RunError::Failed(format!("laying out files: {error}")),
        }
    }
}

/// What a file system holds.
pub(super) struct Made {
    /// Numbers of jobs' files.
    pub(super) inodes: Vec<Ino>,
    /// Filesets of a workload.
    pub(super) planted: Vec<Planted>,
    pub(super) contents: Contents,
    /// How it is mounted.
    mount: MountOptions,
}

/// Makes the file system, or sees whether the one that is there will do: then time goes on from where it
/// stopped on it.
async fn begin(device: &AsyncDevice, options: &mut FsStack) -> Result<(), MakeError> {
    if let Some(new) = &options.mkfs {
        mkfs(device, new).await?;
        return Ok(());
    }
    let Superblock { mtime, wtime, .. } = sound(device).await?;
    options.mount.epoch_s = options.mount.epoch_s.max(mtime.max(wtime).into());
    Ok(())
}

/// The superblock of a volume that is not marked as one with errors.
async fn sound(device: &AsyncDevice) -> Result<Superblock, MakeError> {
    let Raw { sb, .. } = Raw::open(device).await.map_err(|error| match error {
        RawError::Format(why) => FsError::Incompatible(why.to_string()),
        other => other.into(),
    })?;
    if sb.state & STATE_ERRORS != 0 {
        let marked = "the volume is marked as one with errors, which e2fsck looks for";
        return Err(FsError::Incompatible(marked.to_owned()).into());
    }
    Ok(sb)
}

async fn mount(
    rt: &Handle,
    device: &AsyncDevice,
    options: &MountOptions,
) -> Result<Ext4, MakeError> {
    match Ext4::mount(rt, device.clone(), options.clone()).await {
        Err(FsError::Invalid(why)) => Err(MakeError::Records(why)),
        mounted => Ok(mounted?.0),
    }
}

/// A file system with these contents, unmounted.
pub(super) fn make(
    rt: &Handle,
    device: &AsyncDevice,
    options: &FsStack,
    contents: Contents,
) -> impl Future<Output = Result<Made, MakeError>> + use<> {
    let (rt, device, mut options) = (rt.clone(), device.clone(), options.clone());
    async move {
        begin(&device, &mut options).await?;
        let fs = mount(&rt, &device, &options.mount).await?;
        if options.mkfs.is_none() {
            // What the journal said of errors is in the superblock now.
            sound(&device).await?;
        }
        let room = fs.statfs(ROOT).await?;
        let (inodes, planted) = fill(&fs, &contents)
            .await
            .map_err(|(at, error)| unmade(error, &contents, at, &room))?;
        fs.unmount().await?;
        Ok(Made { inodes, planted, contents, mount: options.mount })
    }
}

/// The file system mounted, with the files of jobs open and filesets in the page cache that are to be.
pub(super) fn open(
    rt: &Handle,
    device: &AsyncDevice,
    made: Made,
) -> impl Future<Output = Result<(Ext4, Made), MakeError>> + use<> {
    let (rt, device) = (rt.clone(), device.clone());
    async move {
        let fs = mount(&rt, &device, &made.mount).await?;
        for inode in &made.inodes {
            fs.open(ROOT, *inode).await?;
        }
        if let Contents::Trees(workload, _) = &made.contents {
            warm(&fs, workload, &made.planted).await?;
        }
        Ok((fs, made))
    }
}

/// Makes files, or filesets.
///
/// # Errors
/// Which of them could not be made, and why.
async fn fill(
    fs: &Ext4,
    contents: &Contents,
) -> Result<(Vec<Ino>, Vec<Planted>), (usize, FsError)> {
    match contents {
        Contents::Jobs(layout) => {
            let mut inodes = Vec::with_capacity(layout.files.len());
            for (at, file) in layout.files.iter().enumerate() {
                inodes.push(lay_out(fs, file).await.map_err(|error| (at, error))?);
            }
            Ok((inodes, Vec::new()))
        }
        Contents::Trees(workload, trees) => Ok((Vec::new(), plant(fs, workload, trees).await?)),
    }
}

/// The error of a file or fileset that could not be made on a file system that had this room.
fn unmade(error: FsError, contents: &Contents, at: usize, room: &StatFs) -> MakeError {
    let (what, files, bytes) = match contents {
        Contents::Jobs(layout) => {
            let File { job, path, sectors, .. } = &layout.files[at];
            let (name, size) = (path.join("/"), mib(sectors * SECTOR_BYTES));
            let what = format!("{job}: its file {name} of {size}");
            (what, layout.files.len(), layout.sectors() * SECTOR_BYTES)
        }
        Contents::Trees(workload, trees) => {
            let Fileset { place, name, .. } = &workload.filesets[at];
            let what = format!("{place}: fileset {name} of {}", mib(made(&trees[at]).1));
            let (files, bytes): (Vec<_>, Vec<_>) = trees.iter().map(made).unzip();
            (what, files.iter().sum(), bytes.iter().sum())
        }
    };
    match error {
        FsError::NoSpace => {}
        FsError::Exists | FsError::IsDirectory | FsError::NotDirectory => {
            let why = format!("{what} cannot be made beside what is on the volume: {error}");
            return MakeError::Unfit(why);
        }
        other => return other.into(),
    }
    let free = mib(room.free * u64::from(room.block_bytes));
    MakeError::Unfit(format!(
        "{what} does not fit the file system; wanted in all: {} in {files} files, free: {free}, {} inodes",
        mib(bytes),
        room.files_free
    ))
}

/// Files of a fileset that are made before a run, and their bytes.
fn made(tree: &Tree) -> (usize, u64) {
    let bytes = tree.order.iter().map(|file| tree.files[*file as usize].bytes);
    (tree.order.len(), bytes.sum())
}

fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

/// Makes one file, as long as it is to be, unless there is one.
async fn lay_out(fs: &Ext4, file: &File) -> Result<Ino, FsError> {
    let Some((name, folders)) = file.path.split_last() else { return Err(FsError::NoEntry) };
    let mut folder = fs.root();
    for step in folders {
        folder = make_folder(fs, folder, step).await?;
    }
    match find_file(fs, folder, name.as_bytes()).await? {
        Some(found) if found.size >= file.sectors * SECTOR_BYTES => return Ok(found.ino),
        Some(_) => fs.unlink(ROOT, folder, name.as_bytes()).await?,
        None => {}
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
