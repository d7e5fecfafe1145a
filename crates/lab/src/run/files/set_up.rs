//! Setting up files before a run, without timing, so that no virtual time passes:
//!
//! 1. The volume is made or checked, mounted, what the run needs is laid out, and it is unmounted.
//! 2. The device is off and on again, as it is behind preconditioning.
//! 3. The volume is mounted; files of jobs are opened, and filesets read that are to be in the page cache.
//!
//! So a run begins with an empty journal and nothing else in RAM, neither in the page cache nor in a write
//! buffer, as with fio's `invalidate=1`.

use super::calls::Calls;
use super::device::Files;
use super::lay_out::{LaidOut, ROOT, lay_out};
use super::memory::share;
use super::tasks::{at_once, driven};
use super::volume::{VolumeError, make_or_check, mount, sound};
use super::{Contents, Layout};
use crate::run::device::{Hinted, LabDevice};
use crate::run::error::RunError;
use crate::run::prepare::off_and_on;
use crate::stack::{FsStack, Stack};
use nandscape_block::{AsyncDevice, BlockDevice};
use nandscape_fs::contract::FileSystem;
use nandscape_fs::ext4::{Ext4, MountOptions};
use nandscape_ftl::Pblk;
use nandscape_rt::Handle;
use nandscape_workload::wml::engine::warm;

/// A volume with what a run needs, unmounted.
struct Ready {
    contents: Contents,
    laid_out: LaidOut,
    mount: MountOptions,
}

/// Files of these contents on a device, which nothing was written to if it is `fresh`, and comes from
/// `file` if it comes from one.
pub(in crate::run) fn set_up(
    stack: &Stack,
    fs: &FsStack,
    contents: Contents,
    (device, fresh): (Hinted, bool),
    file: Option<&str>,
    seed: u64,
) -> Result<Files, RunError> {
    stack.check_fs(device.caps().sectors)?;
    let on = |error: VolumeError| error.on(stack, file);
    let host = device.host().clone();
    let mut options = fs.for_run(seed, fresh);
    let memory = share(stack, &host, &device.look(Pblk::memory), &mut options.mount)?;
    let write = |rt, device| write_volume(rt, device, options, contents);
    let (ready, device) = once(device, on, write)?;
    let device = Hinted::new(off_and_on(stack, device.ftl, seed)?, &stack.hints, &host);
    let (mut executor, device) = driven(device);
    let handle = executor.handle();
    let opened = at_once(&mut executor, open(handle.clone(), device.erased(), ready))?;
    let (mounted, Ready { contents, laid_out, .. }) = opened.map_err(on)?;
    let layout = match contents {
        Contents::Jobs(layout) => layout,
        Contents::Trees(..) => Layout::default(),
    };
    let LaidOut { inodes, planted } = laid_out;
    let calls = Calls::new(handle, mounted, layout, inodes, (host, memory, stack.host.cost));
    Ok(Files::new(executor, device, calls, planted))
}

/// What `work` brings on a device that it lets go again.
fn once<T, F>(
    device: Hinted,
    on: impl FnOnce(VolumeError) -> RunError,
    work: impl FnOnce(Handle, AsyncDevice) -> F,
) -> Result<(T, Hinted), RunError>
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
    options: FsStack,
    contents: Contents,
) -> Result<Ready, VolumeError> {
    let how = make_or_check(&device, &options).await?;
    let fs = mount(&rt, &device, &how).await?;
    if options.mkfs.is_none() {
        // What the journal said of errors is in the superblock now.
        sound(&device).await?;
    }
    let laid_out = lay_out(&fs, &contents).await?;
    fs.unmount().await?;
    Ok(Ready { contents, laid_out, mount: how })
}

/// The file system mounted, with the files of jobs open and filesets in the page cache that are to be.
async fn open(rt: Handle, device: AsyncDevice, ready: Ready) -> Result<(Ext4, Ready), VolumeError> {
    let fs = mount(&rt, &device, &ready.mount).await?;
    for inode in &ready.laid_out.inodes {
        fs.open(ROOT, *inode).await?;
    }
    if let Contents::Trees(workload, _) = &ready.contents {
        warm(&fs, workload, &ready.laid_out.planted).await?;
    }
    Ok((fs, ready))
}
