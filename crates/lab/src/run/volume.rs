//! What is between a load and the FTL, set up before a run without timing, so that no virtual time passes:
//!
//! 1. The volume is made or checked and mounted, what the run needs is created, and it is unmounted.
//! 2. The power of the device is off and on again, as it is behind preconditioning.
//! 3. The volume is mounted; files of jobs are opened, and filesets read that are to be in the page cache.
//!
//! So a run begins with an empty journal and nothing else in RAM, neither in the page cache nor in a write
//! buffer, as with fio's `invalidate=1`.
//!
//! The host's memory (`host.memory`) is shared before that. With `host.memory_of = "page-cache"` it is the page
//! cache's alone. With `"all"` it is that of everything of the stack that is in host memory: an FTL on the host at
//! its size, the file system's metadata at its limit, and the page cache, which gets the rest.

use super::device::HintedDevice;
use super::error::RunError;
use super::hang::run_untimed;
use super::prepare::power_cycle;
use super::rig::{MountedRig, Rig};
use crate::stack::{FsStack, MEMORY_BYTES_MIN, MemoryOf, Stack};
use crate::state::StateError;
use nandscape_block::{AsyncDevice, BlockDevice, BlockError, SECTOR_BYTES};
use nandscape_fs::bdev::CachedDevice;
use nandscape_fs::cache::CacheConfig;
use nandscape_fs::contract::{Caller, FileSystem, FsError, Ino, OpenFlags, StatFs};
use nandscape_fs::{
    ConfigError, FormatError, FsConfig, FsKind, ImageError, MountEnv, MountedFs, Probe,
};
use nandscape_ftl::{Ftl, MemoryUse, Side};
use nandscape_rt::host::{Lease, OverBudget};
use nandscape_rt::words::counted;
use nandscape_rt::{Executor, Handle, Host};
use nandscape_workload::fio::{FileLayout, LaidOutFile};
use nandscape_workload::target::{FileTarget, create_files};
use nandscape_workload::wml::engine::{CreatedFileset, lay_out, preload};
use nandscape_workload::wml::{Fileset, Tree, Workload};
use std::rc::Rc;

/// Each kind of metadata may have this share of what the FTL leaves (chosen).
const METADATA_DIVISOR: u64 = 8;

/// What a load needs between it and the FTL.
pub(super) enum Setup {
    /// Nothing: it has the block device.
    Device,
    /// The page cache of the block device; these job instances bypass it.
    PageCache(Vec<bool>),
    /// A file system with these files.
    Files(FileSetup),
}

/// What a file system holds when a run begins.
pub(super) enum FileSetup {
    /// Files of jobs.
    Jobs(FileLayout),
    /// Filesets of a workload.
    Filesets(Rc<Workload>, Vec<Tree>),
}

/// What was created of that.
struct CreatedFiles {
    /// Numbers of jobs' files.
    inodes: Vec<Ino>,
    /// Filesets of a workload.
    filesets: Vec<CreatedFileset>,
}

/// A volume with what a run needs, unmounted.
struct Volume {
    setup: FileSetup,
    created: CreatedFiles,
    config: FsConfig,
}

/// A device to which nothing was written if it is `fresh`, and whose media come from `file` if they come from one.
pub(super) struct BareDevice<'a> {
    pub(super) device: HintedDevice,
    pub(super) fresh: bool,
    pub(super) file: Option<&'a str>,
}

/// The rig of a run with `setup` over this device.
pub(super) fn build(
    stack: &Stack,
    setup: Setup,
    bare: BareDevice<'_>,
    seed: u64,
) -> Result<Rig, RunError> {
    match (setup, &stack.fs, &stack.host.device_cache) {
        (Setup::Files(files), Some(fs), _) => mount_files(stack, fs, files, bare, seed),
        (Setup::PageCache(direct), _, Some(cache)) => {
            attach_page_cache(stack, cache, direct, bare.device)
        }
        _ => Ok(Rig::Device(bare.device)),
    }
}

/// Files over a device.
fn mount_files(
    stack: &Stack,
    fs: &FsStack,
    setup: FileSetup,
    BareDevice { device, fresh, file }: BareDevice<'_>,
    seed: u64,
) -> Result<Rig, RunError> {
    stack.check_fs(device.caps())?;
    let on = |error: VolumeError| error.on(stack, file);
    let host = device.host.clone();
    let mut config = fs.config.for_run(seed, fresh);
    let ftl = device.ftl.memory();
    let (pages, memory) = share_memory(stack, &host, &ftl, |bytes| config.limit_metadata(bytes))?;
    config.limit_page_cache(pages);
    let write = |rt, device| write_volume(rt, device, config, setup);
    let (volume, device) = with_device(device, on, write)?;
    let ftl = power_cycle(stack, device.ftl, seed)?;
    let (mut executor, device) = spawn_device(HintedDevice::new(ftl, &stack.hints, &host));
    let handle = executor.handle();
    let opened = run_untimed(&mut executor, open(handle.clone(), device.erased(), volume))?;
    let (mounted, Volume { setup, created, .. }) = opened.map_err(on)?;
    mounted.attach_host(&host);
    let layout = match setup {
        FileSetup::Jobs(layout) => layout,
        FileSetup::Filesets(..) => FileLayout::default(),
    };
    let CreatedFiles { inodes, filesets } = created;
    let cost = stack.host.cost;
    let target = FileTarget::on_files(&handle, (&host, cost), mounted, layout, inodes);
    let rig = MountedRig::new(executor, device, target, (host, memory, cost), filesets);
    Ok(Rig::Mounted(Box::new(rig)))
}

/// The page cache of a block device, empty, for jobs of which these instances are direct. The device is as it is.
fn attach_page_cache(
    stack: &Stack,
    cache: &CacheConfig,
    direct: Vec<bool>,
    device: HintedDevice,
) -> Result<Rig, RunError> {
    let host = device.host.clone();
    let (pages, memory) = share_memory(stack, &host, &device.ftl.memory(), |_| Vec::new())?;
    let (executor, device) = spawn_device(device);
    let handle = executor.handle();
    let config = CacheConfig { pages, ..cache.clone() };
    let cached = CachedDevice::new(&handle, device.erased(), config);
    let cost = stack.host.cost;
    let target = FileTarget::on_device(&handle, (&host, cost), cached, direct);
    let rig = MountedRig::new(executor, device, target, (host, memory, cost), Vec::new());
    Ok(Rig::Mounted(Box::new(rig)))
}

/// A device, and the executor on which a task drives it.
fn spawn_device(device: HintedDevice) -> (Executor, AsyncDevice<HintedDevice>) {
    let executor = Executor::on_virtual_clock();
    let device = AsyncDevice::new(&executor.handle(), device);
    (executor, device)
}

/// The output of `work` on a device that it releases.
fn with_device<T, F>(
    device: HintedDevice,
    on: impl FnOnce(VolumeError) -> RunError,
    work: impl FnOnce(Handle, AsyncDevice) -> F,
) -> Result<(T, HintedDevice), RunError>
where
    T: 'static,
    F: Future<Output = Result<T, VolumeError>> + 'static,
{
    let (mut executor, device) = spawn_device(device);
    let work = work(executor.handle(), device.erased());
    let output = run_untimed(&mut executor, work)?.map_err(on)?;
    drop(executor);
    let device = device.into_inner();
    let device =
        device.ok_or_else(|| RunError::Failed("defect: device still in use".to_owned()))?;
    Ok((output, device))
}

/// Reserves what shares the memory of `host`; `limit_metadata` limits each kind of a file system's metadata, and
/// returns what each may take. Returns the pages of the page cache, and leases to keep for as long as it is used.
///
/// # Errors
/// `host.memory` does not suffice.
fn share_memory(
    stack: &Stack,
    host: &Host,
    ftl: &MemoryUse,
    limit_metadata: impl FnOnce(u64) -> Vec<(&'static str, u64)>,
) -> Result<(u64, Vec<Lease>), RunError> {
    let refused = |why: String| stack.error("host.memory", &why);
    let leases = match stack.host.memory_of {
        MemoryOf::PageCache => Ok(Vec::new()),
        MemoryOf::All => share_all(host, ftl, limit_metadata),
    };
    let mut leases = leases.map_err(|why| refused(why.to_string()))?;
    let left = host.memory().left();
    if left < MEMORY_BYTES_MIN {
        let why = format!("{left} bytes are left for the page cache, which needs at least 1MiB");
        return Err(refused(why).into());
    }
    let pages = left / SECTOR_BYTES;
    let page_cache = host.memory().reserve("page_cache", pages * SECTOR_BYTES);
    leases.push(page_cache.map_err(|why| refused(why.to_string()))?);
    Ok((pages, leases))
}

fn share_all(
    host: &Host,
    ftl: &MemoryUse,
    limit_metadata: impl FnOnce(u64) -> Vec<(&'static str, u64)>,
) -> Result<Vec<Lease>, OverBudget> {
    let memory = host.memory();
    let reserve = |(name, bytes): (&'static str, u64)| memory.reserve(name, bytes);
    let of_ftl = ftl.parts.iter().copied().filter(|_| ftl.side == Side::Host);
    let mut leases = of_ftl.map(reserve).collect::<Result<Vec<_>, _>>()?;
    for part in limit_metadata(memory.left() / METADATA_DIVISOR) {
        leases.push(reserve(part)?);
    }
    Ok(leases)
}

/// Writes the volume with these files.
async fn write_volume(
    rt: Handle,
    device: AsyncDevice,
    config: FsConfig,
    setup: FileSetup,
) -> Result<Volume, VolumeError> {
    let config = make_or_check(&device, config).await?;
    let fs = mount(&rt, &device, &config).await?;
    if !config.makes() {
        // What the journal recorded of errors is in the superblock now.
        check_clean(&device, config.kind()).await?;
    }
    let created = create(&*fs, &setup).await?;
    fs.unmount().await?;
    Ok(Volume { setup, created, config })
}

/// Makes the volume, or sees whether the one that is there will do. How it is mounted: on one that was
/// there, time goes on from where it stopped.
async fn make_or_check(
    device: &AsyncDevice,
    mut config: FsConfig,
) -> Result<FsConfig, VolumeError> {
    if config.makes() {
        config.format(device).await?;
    } else {
        config.resume_after(check_clean(device, config.kind()).await?.last_write_s);
    }
    Ok(config)
}

/// Refuses a volume that is marked as damaged.
async fn check_clean(device: &AsyncDevice, kind: FsKind) -> Result<Probe, VolumeError> {
    let probe = kind.identify(device).await.map_err(|error| match error {
        ImageError::Device(error) => FsError::Io(error),
        other => FsError::Incompatible(other.to_string()),
    })?;
    if probe.has_errors {
        let marked = "the volume is marked as one with errors, which e2fsck looks for";
        return Err(FsError::Incompatible(marked.to_owned()).into());
    }
    Ok(probe)
}

/// Mounts it.
async fn mount(
    rt: &Handle,
    device: &AsyncDevice,
    config: &FsConfig,
) -> Result<Rc<dyn MountedFs>, VolumeError> {
    let env = MountEnv { rt: rt.clone(), device: device.clone() };
    match config.mount(env).await {
        Ok((fs, _)) => Ok(fs),
        Err(FsError::Invalid(why)) => {
            let error = FsError::Invalid(why);
            let key = config.mount_key(&error).unwrap_or_default();
            Err(VolumeError::Config(ConfigError { key, why: why.to_owned() }))
        }
        Err(error) => Err(error.into()),
    }
}

/// The file system mounted, with the files of jobs open and filesets in the page cache that are to be.
async fn open(
    rt: Handle,
    device: AsyncDevice,
    volume: Volume,
) -> Result<(Rc<dyn MountedFs>, Volume), VolumeError> {
    let fs = mount(&rt, &device, &volume.config).await?;
    for inode in &volume.created.inodes {
        fs.open(Caller::default(), *inode, OpenFlags::default()).await?;
    }
    if let FileSetup::Filesets(workload, _) = &volume.setup {
        preload(&*fs, workload, &volume.created.filesets).await?;
    }
    Ok((fs, volume))
}

/// Creates files, or filesets.
async fn create(fs: &dyn FileSystem, setup: &FileSetup) -> Result<CreatedFiles, VolumeError> {
    let space = fs.statfs(Caller::default()).await?;
    let refused = |(at, error): (usize, FsError)| does_not_fit(error, setup, at, &space);
    let (mut inodes, mut filesets) = (Vec::new(), Vec::new());
    match setup {
        FileSetup::Jobs(layout) => inodes = create_files(fs, layout).await.map_err(refused)?,
        FileSetup::Filesets(workload, trees) => {
            filesets = lay_out(fs, workload, trees).await.map_err(refused)?;
        }
    }
    Ok(CreatedFiles { inodes, filesets })
}

/// The error of a file or fileset that could not be created on a file system that had this space.
fn does_not_fit(error: FsError, setup: &FileSetup, at: usize, space: &StatFs) -> VolumeError {
    let (what, files, bytes) = match setup {
        FileSetup::Jobs(layout) => {
            let LaidOutFile { job, path, sectors, .. } = &layout.files[at];
            let (name, size) = (path.join("/"), mib(sectors * SECTOR_BYTES));
            let what = format!("{job}: its file {name} of {size}");
            (what, layout.files.len(), layout.sectors() * SECTOR_BYTES)
        }
        FileSetup::Filesets(workload, trees) => {
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
    let blocks = |blocks: u64| mib(blocks * u64::from(space.block_bytes));
    let count = counted(files as u64, ["file", "files"]);
    VolumeError::DoesNotFit(format!(
        "{what} does not fit the file system; wanted in all: {} in {count}; free: {} for data and {} \
         kept for metadata, {} inodes",
        mib(bytes),
        blocks(space.free - space.kept),
        blocks(space.kept),
        space.files_free
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

/// Why there is no volume with what a run needs.
enum VolumeError {
    /// There is no file system, and the device failed when one was made.
    Device(BlockError),
    /// There is one, and something failed on it.
    Fs(FsError),
    /// There is one, and something does not fit it.
    DoesNotFit(String),
    /// A choice about the file system cannot be met.
    Config(ConfigError),
}

impl From<FormatError> for VolumeError {
    fn from(error: FormatError) -> Self {
        match error {
            FormatError::Config(error) => Self::Config(error),
            FormatError::Device(error) => Self::Device(error),
            other => Self::DoesNotFit(other.to_string()),
        }
    }
}

impl From<FsError> for VolumeError {
    fn from(error: FsError) -> Self {
        Self::Fs(error)
    }
}

impl VolumeError {
    /// The same, as the error of a run on this stack. What is wrong with a volume that was there is wrong
    /// with the `file` that its device comes from.
    fn on(self, stack: &Stack, file: Option<&str>) -> RunError {
        let file = file.filter(|_| stack.fs.as_ref().is_some_and(|fs| !fs.config.makes()));
        match (self, file) {
            (Self::Fs(FsError::Incompatible(why)), Some(file)) => StateError::new(file, why).into(),
            (Self::Fs(why @ FsError::Corrupt { .. }), Some(file)) => {
                StateError::new(file, why).into()
            }
            (
                Self::Device(BlockError::MemoryCap) | Self::Fs(FsError::Io(BlockError::MemoryCap)),
                _,
            ) => RunError::memory_cap(stack),
            (Self::Device(error), _) => RunError::Failed(error.to_string()),
            (Self::DoesNotFit(what), _) => RunError::Job(what),
            (Self::Config(error), _) => stack.fs_error(&error).into(),
            (Self::Fs(FsError::Incompatible(what)), None) => {
                stack.error("fs.features", &what).into()
            }
            (Self::Fs(error), _) => RunError::Failed(format!("laying out files: {error}")),
        }
    }
}
