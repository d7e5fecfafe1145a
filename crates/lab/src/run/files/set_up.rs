//! Setting up files before a run, without timing, so that no virtual time passes:
//!
//! 1. The volume is made or checked, mounted, what the run needs is laid out, and it is unmounted.
//! 2. The device is off and on again, as it is behind preconditioning.
//! 3. The volume is mounted; files of jobs are opened, and filesets read that are to be in the page cache.
//!
//! So a run begins with an empty journal and nothing else in RAM, neither in the page cache nor in a write
//! buffer, as with fio's `invalidate=1`.

use super::calls::{Calls, FileCalls, Target};
use super::device::Files;
use super::device_calls::DeviceCalls;
use super::lay_out::{CreatedFiles, ROOT, lay_out};
use super::memory::share;
use super::tasks::{at_once, driven};
use super::volume::{VolumeError, check_clean, make_or_check, mount};
use super::{Contents, Layout};
use crate::run::device::{HintedDevice, LabDevice};
use crate::run::error::RunError;
use crate::run::prepare::power_cycle;
use crate::stack::{FsStack, Stack};
use nandscape_block::{AsyncDevice, BlockDevice};
use nandscape_fs::bdev::CachedDevice;
use nandscape_fs::cache::CacheConfig;
use nandscape_fs::contract::OpenFlags;
use nandscape_fs::{FsConfig, MountedFs};
use nandscape_ftl::Ftl;
use nandscape_rt::Handle;
use nandscape_workload::wml::engine::warm;
use std::rc::Rc;

/// A volume with what a run needs, unmounted.
struct Ready {
    contents: Contents,
    laid_out: CreatedFiles,
    config: FsConfig,
}

/// Files of these contents on a device, which nothing was written to if it is `fresh`, and comes from
/// `file` if it comes from one.
pub(in crate::run) fn set_up(
    stack: &Stack,
    fs: &FsStack,
    contents: Contents,
    (device, fresh): (HintedDevice, bool),
    file: Option<&str>,
    seed: u64,
) -> Result<Files, RunError> {
    stack.check_fs(device.caps())?;
    let on = |error: VolumeError| error.on(stack, file);
    let host = device.host().clone();
    let mut config = fs.config.for_run(seed, fresh);
    let ftl = device.look(Ftl::memory);
    let (pages, memory) = share(stack, &host, &ftl, |bytes| config.limit_metadata(bytes))?;
    config.limit_page_cache(pages);
    let write = |rt, device| write_volume(rt, device, config, contents);
    let (ready, device) = once(device, on, write)?;
    let device = HintedDevice::new(power_cycle(stack, device.ftl, seed)?, &stack.hints, &host);
    let (mut executor, device) = driven(device);
    let handle = executor.handle();
    let opened = at_once(&mut executor, open(handle.clone(), device.erased(), ready))?;
    let (mounted, Ready { contents, laid_out, .. }) = opened.map_err(on)?;
    mounted.attach_host(&host);
    let layout = match contents {
        Contents::Jobs(layout) => layout,
        Contents::Trees(..) => Layout::default(),
    };
    let CreatedFiles { inodes, planted } = laid_out;
    let target = Target::Files(FileCalls::new(mounted, layout, inodes));
    let calls = Calls::new(handle, target, (host, memory, stack.host.cost));
    Ok(Files::new(executor, device, calls, planted))
}

/// The page cache of a block device, empty, for jobs of which these clones are direct. The device is as it is.
pub(in crate::run) fn set_up_cache(
    stack: &Stack,
    cache: &CacheConfig,
    direct: Vec<bool>,
    device: HintedDevice,
) -> Result<Files, RunError> {
    let host = device.host().clone();
    let (pages, memory) = share(stack, &host, &device.look(Ftl::memory), |_| Vec::new())?;
    let (executor, device) = driven(device);
    let handle = executor.handle();
    let config = CacheConfig { pages, ..cache.clone() };
    let cached = CachedDevice::new(&handle, device.erased(), config);
    let target = Target::Device(DeviceCalls::new(cached, direct));
    let calls = Calls::new(handle, target, (host, memory, stack.host.cost));
    Ok(Files::new(executor, device, calls, Vec::new()))
}

/// What `work` brings on a device that it lets go again.
fn once<T, F>(
    device: HintedDevice,
    on: impl FnOnce(VolumeError) -> RunError,
    work: impl FnOnce(Handle, AsyncDevice) -> F,
) -> Result<(T, HintedDevice), RunError>
where
    T: 'static,
    F: Future<Output = Result<T, VolumeError>> + 'static,
{
    let (mut executor, device) = driven(device);
    let work = work(executor.handle(), device.erased());
    let output = at_once(&mut executor, work)?.map_err(on)?;
    drop(executor);
    let device = device.into_inner();
    let device = device.ok_or_else(|| RunError::Failed("somebody has the device".to_owned()))?;
    Ok((output, device))
}

/// Writes the volume with these contents.
async fn write_volume(
    rt: Handle,
    device: AsyncDevice,
    config: FsConfig,
    contents: Contents,
) -> Result<Ready, VolumeError> {
    let config = make_or_check(&device, config).await?;
    let fs = mount(&rt, &device, &config).await?;
    if !config.makes() {
        // What the journal said of errors is in the superblock now.
        check_clean(&device, config.kind()).await?;
    }
    let laid_out = lay_out(&*fs, &contents).await?;
    fs.unmount().await?;
    Ok(Ready { contents, laid_out, config })
}

/// The file system mounted, with the files of jobs open and filesets in the page cache that are to be.
async fn open(
    rt: Handle,
    device: AsyncDevice,
    ready: Ready,
) -> Result<(Rc<dyn MountedFs>, Ready), VolumeError> {
    let fs = mount(&rt, &device, &ready.config).await?;
    for inode in &ready.laid_out.inodes {
        fs.open(ROOT, *inode, OpenFlags::default()).await?;
    }
    if let Contents::Trees(workload, _) = &ready.contents {
        warm(&*fs, workload, &ready.laid_out.planted).await?;
    }
    Ok((fs, ready))
}
