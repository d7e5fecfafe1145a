//! Kinds of file systems, as the crates above see them: one that is mounted is a [`MountedFs`], what was
//! chosen about one is an [`FsConfig`], and an [`FsKind`] recognises, checks and shows what lies on a
//! device. A new file system adds a variant to [`FsKind`], [`FsConfig`] and [`FsDetail`], and answers as a [`MountedFs`]; no
//! crate above changes.
//!
//! Everything that goes through here is cold: mounts, tools, and calls that are boxed already.

mod counts;
mod mounted;

pub use counts::{FsCounts, FsDetail};
use mounted::erased;
pub use mounted::{Mounted, MountedFs};

use crate::config::{ConfigError, FormatError, FormatRequest, Formatted, MountEnv, Promises};
use crate::contract::FsError;
use crate::dump::Dump;
use crate::image::{ImageError, LogSector, Probe};
use crate::knob::Knob;
use crate::report::CheckReport;
use crate::rules::Rule;
use crate::{ext4, f2fs};
use nandscape_block::{AsyncDevice, BlockError, DeviceCaps};
use nandscape_rt::BoxFuture;

/// A kind of file system with a format on a device.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FsKind {
    /// ext4 with JBD2 ([`crate::ext4`]).
    Ext4,
    /// F2FS with normal logging ([`crate::f2fs`]).
    F2fs,
}

/// How a file system is made and mounted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FsConfig {
    /// ext4.
    Ext4(ext4::Config),
    /// F2FS.
    F2fs(f2fs::Config),
}

impl FsConfig {
    /// The kind of the file system.
    #[must_use]
    pub const fn kind(&self) -> FsKind {
        match self {
            Self::Ext4(_) => FsKind::Ext4,
            Self::F2fs(_) => FsKind::F2fs,
        }
    }

    /// The same for one run: identity and seeds are drawn from the run's seed. `fresh`: nothing was ever
    /// written to the device.
    #[must_use]
    pub fn for_run(&self, seed: u64, fresh: bool) -> Self {
        match self {
            Self::Ext4(config) => Self::Ext4(config.for_run(seed, fresh)),
            Self::F2fs(config) => Self::F2fs(config.for_run(seed, fresh)),
        }
    }

    /// Whether a file system is made; otherwise the device already holds it.
    #[must_use]
    pub const fn makes(&self) -> bool {
        match self {
            Self::Ext4(config) => config.format.is_some(),
            Self::F2fs(config) => config.format.is_some(),
        }
    }

    /// The same, of a device that already holds it.
    #[must_use]
    pub fn without_format(self) -> Self {
        match self {
            Self::Ext4(config) => Self::Ext4(ext4::Config { format: None, ..config }),
            Self::F2fs(config) => Self::F2fs(f2fs::Config { format: None, ..config }),
        }
    }

    /// Whether a device with these capabilities can hold what is to be made on it.
    ///
    /// # Errors
    /// The choice that cannot be met.
    pub fn check(&self, caps: &DeviceCaps) -> Result<(), ConfigError> {
        match self {
            Self::Ext4(config) => config.check(caps),
            Self::F2fs(config) => config.check(caps),
        }
    }

    /// What holds after a power cut.
    #[must_use]
    pub const fn promises(&self) -> Promises {
        match self {
            Self::Ext4(config) => config.promises(),
            Self::F2fs(config) => config.promises(),
        }
    }

    /// The choices that reports name, most important first: (key, value), as in `[fs]` of a stack.
    #[must_use]
    pub fn choices(&self) -> Vec<(&'static str, &'static str)> {
        match self {
            Self::Ext4(config) => config.choices().to_vec(),
            Self::F2fs(config) => config.choices().to_vec(),
        }
    }

    /// The keys of choices that [`FsConfig::choose`] takes: those that reports name, and others.
    #[must_use]
    pub fn choice_keys(&self) -> Vec<&'static str> {
        let named = self.choices().into_iter().map(|(key, _)| key);
        let others: &[&'static str] = match self {
            Self::Ext4(_) => &[],
            Self::F2fs(_) => &f2fs::Config::UNNAMED_CHOICES,
        };
        named.chain(others.iter().copied()).collect()
    }

    /// Sets one of these choices by its names.
    ///
    /// # Errors
    /// The kind has no such key or value.
    pub fn choose(&mut self, key: &'static str, value: &str) -> Result<(), ConfigError> {
        match self {
            Self::Ext4(config) => config.choose(key, value),
            Self::F2fs(config) => config.choose(key, value),
        }
    }

    /// Leaves out one of [`FsKind::rules`], for campaigns that must notice.
    ///
    /// # Errors
    /// The kind has no such rule.
    pub fn omit(&mut self, rule: &str) -> Result<(), ConfigError> {
        match self {
            Self::Ext4(config) => config.omit(rule),
            Self::F2fs(config) => config.omit(rule),
        }
    }

    /// Lets the times of files go on from the last write of the volume, at `last_write_s` seconds after
    /// 1970.
    pub fn resume_after(&mut self, last_write_s: i64) {
        match self {
            Self::Ext4(config) => {
                config.mount.epoch_s = config.mount.epoch_s.max(last_write_s);
            }
            Self::F2fs(config) => {
                config.mount.epoch_s = config.mount.epoch_s.max(last_write_s);
            }
        }
    }

    /// Limits the page cache to so many pages of 4 KiB.
    pub fn limit_page_cache(&mut self, pages: u64) {
        match self {
            Self::Ext4(config) => config.mount.cache.pages = pages,
            Self::F2fs(config) => config.mount.cache.pages = pages,
        }
    }

    /// Limits each kind of metadata in memory to `bytes`, or to the least that a mount works with if that is
    /// more. Returns how many bytes each kind may take then, by name.
    pub fn limit_metadata(&mut self, bytes: u64) -> Vec<(&'static str, u64)> {
        match self {
            Self::Ext4(config) => config.mount.limit_metadata(bytes).to_vec(),
            Self::F2fs(config) => config.mount.limit_metadata(bytes).to_vec(),
        }
    }

    /// The choice of [`FsConfig::mount`] that an error of it is about, if it is about one.
    #[must_use]
    pub const fn mount_key(&self, error: &FsError) -> Option<&'static str> {
        match (self, error) {
            // Only rings of records are refused so: the log is too short for them.
            (Self::Ext4(_), FsError::Invalid(_)) => Some("ijournal_area"),
            _ => None,
        }
    }

    /// The timers and thresholds of such a mount, each of which [`FsConfig::set_knob`] sets.
    #[must_use]
    pub fn knobs(&self) -> Vec<Knob> {
        match self {
            Self::Ext4(config) => config.mount.knobs(),
            Self::F2fs(config) => config.mount.knobs(),
        }
    }

    /// Sets one of [`FsConfig::knobs`].
    ///
    /// # Errors
    /// There is none of that name.
    pub fn set_knob(&mut self, name: &str, value: u64) -> Result<(), ConfigError> {
        let is_set = match self {
            Self::Ext4(config) => config.mount.set_knob(name, value),
            Self::F2fs(config) => config.mount.set_knob(name, value),
        };
        let unknown =
            || format!("{} has no timer or threshold called {name:?}", self.kind().name());
        if is_set { Ok(()) } else { Err(ConfigError { key: "knob", why: unknown() }) }
    }

    /// Makes the file system.
    ///
    /// # Errors
    /// A choice that cannot be met, before anything is written; errors of the device.
    pub fn format<'a>(
        &'a self,
        device: &'a AsyncDevice,
    ) -> BoxFuture<'a, Result<Formatted, FormatError>> {
        match self {
            Self::Ext4(config) => Box::pin(config.format(device)),
            Self::F2fs(config) => Box::pin(config.format(device)),
        }
    }

    /// Mounts the file system, recovered.
    ///
    /// # Errors
    /// [`FsError::Incompatible`] by the feature's name, [`FsError::Corrupt`] with the place, errors of
    /// the device.
    pub fn mount(&self, env: MountEnv) -> BoxFuture<'_, Result<Mounted, FsError>> {
        match self {
            Self::Ext4(config) => Box::pin(async { config.mount(env).await.map(erased) }),
            Self::F2fs(config) => Box::pin(async { config.mount(env).await.map(erased) }),
        }
    }
}

impl FsKind {
    /// All kinds.
    pub const ALL: [Self; 2] = [Self::Ext4, Self::F2fs];

    /// Its name, as in `fs.kind` of a stack.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::F2fs => "f2fs",
        }
    }

    /// What it is, for a list of kinds.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4 with JBD2, 4 KiB blocks",
            Self::F2fs => "F2FS with normal logging, 4 KiB blocks",
        }
    }

    /// A file system with the defaults of its kind, on a device that already holds it.
    #[must_use]
    pub fn config(self) -> FsConfig {
        match self {
            Self::Ext4 => FsConfig::Ext4(ext4::Config::default()),
            Self::F2fs => FsConfig::F2fs(f2fs::Config::default()),
        }
    }

    /// A file system that is to be made as `request` says.
    ///
    /// # Errors
    /// The choice that the kind does not have.
    pub fn config_to_format(self, request: &FormatRequest<'_>) -> Result<FsConfig, ConfigError> {
        match self {
            Self::Ext4 => ext4::Config::to_format(request).map(FsConfig::Ext4),
            Self::F2fs => f2fs::Config::to_format(request).map(FsConfig::F2fs),
        }
    }

    /// Rules of recovery that a campaign can have left out ([`FsConfig::omit`]).
    #[must_use]
    pub const fn rules(self) -> &'static [Rule] {
        match self {
            Self::Ext4 => &ext4::RULES,
            Self::F2fs => &f2fs::RULES,
        }
    }

    /// The kind whose mark a device carries.
    ///
    /// # Errors
    /// Errors of the device.
    pub async fn recognise(device: &AsyncDevice) -> Result<Option<Self>, BlockError> {
        for kind in Self::ALL {
            let is_there = match kind {
                Self::Ext4 => ext4::raw::has_magic(device).await?,
                Self::F2fs => f2fs::raw::has_magic(device).await?,
            };
            if is_there {
                return Ok(Some(kind));
            }
        }
        Ok(None)
    }

    /// Looks for a file system of any kind.
    ///
    /// # Errors
    /// Those of [`FsKind::identify`] for the kind whose mark is there.
    pub async fn probe(device: &AsyncDevice) -> Result<Option<(Self, Probe)>, ImageError> {
        match Self::recognise(device).await? {
            Some(kind) => Ok(Some((kind, kind.identify(device).await?))),
            None => Ok(None),
        }
    }

    /// What a file system of this kind says about itself.
    ///
    /// # Errors
    /// [`ImageError::Format`] if there is none, or its superblock cannot be read; errors of the device.
    pub async fn identify(self, device: &AsyncDevice) -> Result<Probe, ImageError> {
        match self {
            Self::Ext4 => ext4::raw::identify(device).await,
            Self::F2fs => f2fs::raw::identify(device).await,
        }
    }

    /// Checks a file system that no other task changes.
    ///
    /// # Errors
    /// [`ImageError`] if there is nothing that can be checked; what is wrong with a file system that can
    /// be checked is in the report.
    pub fn check(self, device: &AsyncDevice) -> BoxFuture<'_, Result<CheckReport, ImageError>> {
        match self {
            Self::Ext4 => Box::pin(async move { Ok(ext4::check::check(device).await?) }),
            Self::F2fs => Box::pin(async move { Ok(f2fs::check::check(device).await?) }),
        }
    }

    /// The sectors of the log that recovery would use, of a file system that was not unmounted; none of a
    /// kind without a log.
    ///
    /// # Errors
    /// [`ImageError`] if the log cannot be read.
    pub fn live_log(
        self,
        device: &AsyncDevice,
    ) -> BoxFuture<'_, Result<Vec<LogSector>, ImageError>> {
        match self {
            Self::Ext4 => Box::pin(ext4::live_log(device)),
            // What roll-forward reads lies among other nodes, which have no checksum.
            Self::F2fs => Box::pin(std::future::ready(Ok(Vec::new()))),
        }
    }

    /// Shows a structure as text. The kind reads `what`: "super", "inode 12", and more.
    ///
    /// # Errors
    /// [`ImageError::Request`] if the kind has no such structure; otherwise that it cannot be read.
    pub fn dump<'a>(
        self,
        device: &'a AsyncDevice,
        what: &'a str,
    ) -> BoxFuture<'a, Result<Dump, ImageError>> {
        match self {
            Self::Ext4 => Box::pin(async move {
                let what = what.parse().map_err(ImageError::Request)?;
                Ok(ext4::dump::dump(device, what).await?)
            }),
            Self::F2fs => Box::pin(async move {
                let what = what.parse().map_err(ImageError::Request)?;
                Ok(f2fs::dump::dump(device, what).await?)
            }),
        }
    }
}
