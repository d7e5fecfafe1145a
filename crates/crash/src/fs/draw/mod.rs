//! Kinds of file system, as far as a campaign has to know them: how small their volumes are, how the
//! choices of a seed reach their mounts, and what other tools can do with them. A new kind has a file here and an
//! arm in each `match`.

mod ext4;
pub(super) mod knobs;

use nandscape_fs::{FsConfig, FsKind};

/// One mount of a seed's volume.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mounted {
    pub(super) seed: u64,
    /// Its number.
    pub(super) mount: u64,
}

/// What a campaign draws of a file system.
pub(super) trait FsDraw {
    /// The modes that are given, with the sizes of a campaign.
    fn in_small(self) -> Self;

    /// How the volume is made and mounted.
    fn for_mount(&self, mounted: &Mounted) -> Self;

    /// Whether tools of others can recover such a volume, or only check what our recovery left.
    fn oracle_recovers(&self) -> bool;

    /// The modes on one line.
    fn describe(&self) -> String;
}

impl FsDraw for FsConfig {
    fn in_small(self) -> Self {
        match self {
            Self::Ext4(config) => Self::Ext4(ext4::in_small(config)),
        }
    }

    fn for_mount(&self, mounted: &Mounted) -> Self {
        match self {
            Self::Ext4(config) => Self::Ext4(ext4::config(config, mounted)),
        }
    }

    fn oracle_recovers(&self) -> bool {
        match self {
            Self::Ext4(config) => ext4::oracle_recovers(config),
        }
    }

    fn describe(&self) -> String {
        match self {
            Self::Ext4(config) => ext4::describe(config),
        }
    }
}

/// Sectors of a kind's volume, and of the largest media below it.
pub(super) const fn sizes(kind: FsKind) -> (u64, u32) {
    match kind {
        FsKind::Ext4 => (ext4::VOLUME_SECTORS, ext4::DEVICE_SECTORS),
    }
}
