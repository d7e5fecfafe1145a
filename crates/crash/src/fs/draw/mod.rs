//! Kinds of file system, as far as a campaign has to know them: how small their volumes are, how the
//! choices of a seed reach their mounts, and what other tools can do with them. A new kind has a file here and an
//! arm in each `match`.

pub(super) mod appended;
mod ext4;
mod f2fs;
pub(super) mod knobs;
pub(super) mod zones;

use crate::settings::Settings;
use nandscape_fs::{FsConfig, FsKind};
use nandscape_ftl::FtlKind;
use zones::ZonedVolume;

/// One mount of a seed's volume.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mounted<'a> {
    pub(super) seed: u64,
    /// Its number.
    pub(super) mount: u64,
    /// Modes that are given, and not drawn.
    pub(super) given: &'a [&'static str],
    /// What the zones of its device make of it, if that has some.
    pub(super) zones: Option<ZonedVolume>,
    /// Whether its device has append-only regions, which the volume takes as they are.
    pub(super) is_appended: bool,
    /// Sectors of a volume that fills its device.
    pub(super) filled: Option<u64>,
    /// Whether each part of the stack is driven to its end.
    pub(super) full: bool,
}

/// Whether a mode is given.
fn is_given(mounted: &Mounted<'_>, key: &str) -> bool {
    mounted.given.contains(&key)
}

/// What a campaign draws of a file system.
pub(super) trait FsDraw {
    /// The modes that are given, with the sizes of a campaign.
    fn in_small(self) -> Self;

    /// How the volume is made and mounted.
    fn for_mount(&self, mounted: &Mounted<'_>) -> Self;

    /// The same volume, mounted with the modes that are given and the defaults of the others.
    fn undrawn(&self, mounted: &Mounted<'_>) -> Self;

    /// Whether tools of others can recover such a volume, or only check what our recovery left.
    fn oracle_recovers(&self) -> bool;

    /// Whether a bit that is wrong in a volume, anywhere but in the content of files, is noticed: metadata has
    /// checksums.
    fn notices_flips(&self) -> bool;

    /// The modes on one line.
    fn describe(&self) -> Settings;
}

impl FsDraw for FsConfig {
    fn in_small(self) -> Self {
        match self {
            Self::Ext4(config) => Self::Ext4(ext4::in_small(config)),
            Self::F2fs(config) => Self::F2fs(config),
        }
    }

    fn for_mount(&self, mounted: &Mounted<'_>) -> Self {
        match self {
            Self::Ext4(config) => Self::Ext4(ext4::config(config, mounted)),
            Self::F2fs(config) => Self::F2fs(f2fs::config(config, mounted)),
        }
    }

    fn undrawn(&self, mounted: &Mounted<'_>) -> Self {
        match self {
            Self::Ext4(config) => Self::Ext4(ext4::config(config, mounted)),
            Self::F2fs(config) => Self::F2fs(f2fs::undrawn(config, mounted)),
        }
    }

    fn oracle_recovers(&self) -> bool {
        match self {
            Self::Ext4(config) => ext4::oracle_recovers(config),
            // fsck.f2fs checks and does not roll forward.
            Self::F2fs(_) => false,
        }
    }

    fn notices_flips(&self) -> bool {
        match self {
            Self::Ext4(_) => true,
            Self::F2fs(_) => false,
        }
    }

    fn describe(&self) -> Settings {
        let kind = Settings::default().with("kind", self.kind().name());
        let choices = self.choices().into_iter();
        let modes = choices.fold(kind, |modes, (key, value)| modes.with(key, value));
        modes.and(match self {
            Self::Ext4(config) => ext4::describe(config),
            Self::F2fs(config) => f2fs::describe(config),
        })
    }
}

/// Sectors of a volume.
pub(super) const fn volume_sectors(fs: &FsConfig) -> u64 {
    match fs {
        FsConfig::Ext4(_) => ext4::VOLUME_SECTORS,
        FsConfig::F2fs(config) => f2fs::VOLUME_SECTORS + f2fs::area_sectors(config),
    }
}

/// Sectors of the largest media below a kind's volume.
pub(super) const fn device_sectors(kind: FsKind) -> u32 {
    match kind {
        FsKind::Ext4 => ext4::DEVICE_SECTORS,
        FsKind::F2fs => f2fs::DEVICE_SECTORS,
    }
}

/// The same below a volume that fills its device.
pub(super) const fn full_device_sectors(kind: FsKind) -> u32 {
    match kind {
        FsKind::Ext4 => ext4::FULL_DEVICE_SECTORS,
        FsKind::F2fs => f2fs::DEVICE_SECTORS,
    }
}

/// Whether a kind's volume may have any size. That of F2FS consists of segments, of which files of a campaign have few.
pub(super) const fn may_fill(kind: FsKind) -> bool {
    matches!(kind, FsKind::Ext4)
}

/// Sectors of the smallest media below a kind's volume; 0: whatever has room for it.
pub(super) const fn media_sectors_min(kind: FsKind) -> u64 {
    match kind {
        FsKind::Ext4 => 0,
        FsKind::F2fs => f2fs::MEDIA_SECTORS_MIN,
    }
}

/// The modes that seeds draw unless they are given.
pub(super) const fn drawn_modes(fs: &FsConfig) -> &'static [&'static str] {
    match fs {
        FsConfig::Ext4(_) => &[],
        FsConfig::F2fs(config) => f2fs::drawn(config),
    }
}

/// The kind of FTL below a file system whose stack is not given.
pub(super) const fn ftl_kind(kind: FsKind) -> FtlKind {
    match kind {
        FsKind::Ext4 => FtlKind::Pblk,
        FsKind::F2fs => FtlKind::PageMap,
    }
}
