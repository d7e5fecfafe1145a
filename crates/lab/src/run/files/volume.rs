//! The volume under a run's files: made, or found on the device and checked; and mounted.

use crate::run::error::RunError;
use crate::stack::Stack;
use crate::state::StateError;
use nandscape_block::{AsyncDevice, BlockError};
use nandscape_fs::contract::FsError;
use nandscape_fs::{
    ConfigError, FormatError, FsConfig, FsKind, ImageError, MountEnv, MountedFs, Probe,
};
use nandscape_rt::Handle;
use std::rc::Rc;

/// Why there is no volume with what a run needs.
pub(super) enum VolumeError {
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
    pub(super) fn on(self, stack: &Stack, file: Option<&str>) -> RunError {
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

/// Makes the volume, or sees whether the one that is there will do. How it is mounted: on one that was
/// there, time goes on from where it stopped.
pub(super) async fn make_or_check(
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
pub(super) async fn check_clean(device: &AsyncDevice, kind: FsKind) -> Result<Probe, VolumeError> {
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
pub(super) async fn mount(
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
