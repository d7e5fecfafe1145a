//! Laying out what a run needs on a mounted volume: files of jobs, or filesets of a workload.
//!
//! As in fio, files that are there and long enough are used as they are, and shorter ones are made anew.
//! Files that somebody reads are written whole; others are given blocks only, as fio does with
//! `fallocate=native`.

use super::Contents;
use super::layout::File;
use super::volume::VolumeError;
use nandscape_block::{Payload, SECTOR_BYTES, Tag};
use nandscape_fs::contract::{Allocate, Caller, Data, FileSystem, FsError, Ino, Io, StatFs};
use nandscape_rt::words::counted;
use nandscape_workload::wml::engine::{
    Planted, find_file, folder as make_folder, lay_out as plant,
};
use nandscape_workload::wml::{Fileset, Tree};

/// Sectors that are written at once.
const FILL_SECTORS: u64 = 1_024;
/// Mode of files.
const FILE_MODE: u16 = 0o644;
/// Who lays files out.
pub(super) const ROOT: Caller = Caller { thread: 0, core: 0, uid: 0, gid: 0 };

/// What was laid out.
pub(super) struct CreatedFiles {
    /// Numbers of jobs' files.
    pub(super) inodes: Vec<Ino>,
    /// Filesets of a workload.
    pub(super) planted: Vec<Planted>,
}

/// Lays out files, or filesets.
pub(super) async fn lay_out(
    fs: &dyn FileSystem,
    contents: &Contents,
) -> Result<CreatedFiles, VolumeError> {
    let room = fs.statfs(ROOT).await?;
    let (mut inodes, mut planted) = (Vec::new(), Vec::new());
    match contents {
        Contents::Jobs(layout) => {
            for (at, file) in layout.files.iter().enumerate() {
                let ino = lay_out_file(fs, file).await;
                inodes.push(ino.map_err(|error| unfit(error, contents, at, &room))?);
            }
        }
        Contents::Trees(workload, trees) => {
            let all = plant(fs, workload, trees).await;
            planted = all.map_err(|(at, error)| unfit(error, contents, at, &room))?;
        }
    }
    Ok(CreatedFiles { inodes, planted })
}

/// Makes one file, as long as it is to be, unless there is one; its number.
async fn lay_out_file(fs: &dyn FileSystem, file: &File) -> Result<Ino, FsError> {
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

/// The error of a file or fileset that could not be made on a file system that had this room.
fn unfit(error: FsError, contents: &Contents, at: usize, room: &StatFs) -> VolumeError {
    let (what, files, bytes) = match contents {
        Contents::Jobs(layout) => {
            let File { job, path, sectors, .. } = &layout.files[at];
            let (name, size) = (path.join("/"), mib(sectors * SECTOR_BYTES));
            let what = format!("{job}: its file {name} of {size}");
            (what, layout.files.len(), layout.sectors() * SECTOR_BYTES)
        }
        Contents::Trees(workload, trees) => {
            let Fileset { place, name, .. } = &workload.filesets[at];
            let what = format!("{place}: fileset {name} of {}", mib(prealloc(&trees[at]).1));
            let (files, bytes): (Vec<_>, Vec<_>) = trees.iter().map(prealloc).unzip();
            (what, files.iter().sum(), bytes.iter().sum())
        }
    };
    let in_the_way = match error {
        FsError::NoSpace => None,
        FsError::Exists => {
            Some("a link, a device or a pipe is where a file should be; links are not followed")
        }
        FsError::IsDirectory => Some("a directory is where a file should be"),
        FsError::NotDirectory => {
            Some("a file or a link is where a directory should be; links are not followed")
        }
        other => return other.into(),
    };
    if let Some(why) = in_the_way {
        let why = format!("{what} cannot be made beside what is on the volume: {why}");
        return VolumeError::DoesNotFit(why);
    }
    let blocks = |blocks: u64| mib(blocks * u64::from(room.block_bytes));
    let count = counted(files as u64, ["file", "files"]);
    VolumeError::DoesNotFit(format!(
        "{what} does not fit the file system; wanted in all: {} in {count}; free: {} for data and {} \
         kept for metadata, {} inodes",
        mib(bytes),
        blocks(room.free - room.kept),
        blocks(room.kept),
        room.files_free
    ))
}

/// Files of a fileset that are there when a run begins, and their bytes.
fn prealloc(tree: &Tree) -> (usize, u64) {
    let bytes = tree.order.iter().map(|file| tree.files[*file as usize].bytes);
    (tree.order.len(), bytes.sum())
}

fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}
