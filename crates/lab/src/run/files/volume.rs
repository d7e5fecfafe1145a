//! The volume under a run's files: made, or found on the device and checked; and mounted.

use crate::run::error::RunError;
use crate::stack::{FsStack, Stack};
use crate::state::StateError;
use nandscape_block::{AsyncDevice, BlockError};
use nandscape_fs::contract::FsError;
use nandscape_fs::ext4::format::{STATE_ERRORS, Superblock};
use nandscape_fs::ext4::mkfs::{MkfsError, mkfs};
use nandscape_fs::ext4::raw::{Raw, RawError};
use nandscape_fs::ext4::{Ext4, MountOptions};
use nandscape_rt::Handle;

/// Why there is no volume with what a run needs.
pub(super) enum VolumeError {
    /// There is no file system.
    Mkfs(MkfsError),
    /// There is one, and something failed on it.
    Fs(FsError),
    /// There is one, and something does not fit it.
    Unfit(String),
    /// Its log is too short for records.
    Records(&'static str),
}

impl From<MkfsError> for VolumeError {
    fn from(error: MkfsError) -> Self {
        Self::Mkfs(error)
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
    pub(super) fn on(self, stack: &Stack, file: Option<&str>) -> RunError {
        let file = file.filter(|_| stack.fs.as_ref().is_some_and(|fs| fs.mkfs.is_none()));
        match (self, file) {
            (Self::Fs(FsError::Incompatible(why)), Some(file)) => StateError::new(file, why).into(),
            (Self::Fs(why @ FsError::Corrupt { .. }), Some(file)) => {
                StateError::new(file, why).into()
            }
            (
                Self::Mkfs(MkfsError::Device(BlockError::MemoryCap))
                | Self::Fs(FsError::Io(BlockError::MemoryCap)),
                _,
            ) => RunError::memory_cap(stack),
            (Self::Mkfs(MkfsError::Device(error)), _) => RunError::Failed(error.to_string()),
            (Self::Mkfs(error), _) => stack.error("fs", &error.to_string()).into(),
            (Self::Unfit(what), _) => RunError::Job(what),
            (Self::Records(why), _) => stack.error("fs.records", why).into(),
            (Self::Fs(FsError::Incompatible(what)), None) => {
                stack.error("fs.features", &what).into()
            }
            (Self::Fs(error), _) => RunError::Failed(format!("laying out files: {error}")),
        }
    }
}

/// Makes the volume, or sees whether the one that is there will do. How it is mounted: on one that was
/// there, time goes on from where it stopped.
pub(super) async fn make_or_check(
    device: &AsyncDevice,
    options: &FsStack,
) -> Result<MountOptions, VolumeError> {
    let mut mount = options.mount.clone();
    if let Some(new) = &options.mkfs {
        mkfs(device, new).await?;
        return Ok(mount);
    }
    let Superblock { mtime, wtime, .. } = sound(device).await?;
    mount.epoch_s = mount.epoch_s.max(mtime.max(wtime).into());
    Ok(mount)
}

/// The superblock of a volume that is not marked as one with errors.
pub(super) async fn sound(device: &AsyncDevice) -> Result<Superblock, VolumeError> {
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

/// Mounts it.
pub(super) async fn mount(
    rt: &Handle,
    device: &AsyncDevice,
    options: &MountOptions,
) -> Result<Ext4, VolumeError> {
    match Ext4::mount(rt, device.clone(), options.clone()).await {
        Err(FsError::Invalid(why)) => Err(VolumeError::Records(why)),
        mounted => Ok(mounted?.0),
    }
}
