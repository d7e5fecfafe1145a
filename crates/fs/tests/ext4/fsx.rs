//! fsx on ext4, in each data mode.

#[path = "../fsx/mod.rs"]
mod storm;

use crate::common::asked;
use nandscape_block::DeviceCaps;
use nandscape_fs::FsConfig;
use nandscape_fs::cache::CacheConfig;
use nandscape_fs::ext4::mkfs::MkfsOptions;
use nandscape_fs::ext4::{Config, DataMode, MountOptions};
use storm::{Scene, storm};

/// A storm of a few thousand operations, or as many as `NANDSCAPE_FS_FSX` says.
fn storm_with(data: DataMode) {
    let format = Some(MkfsOptions { fresh: true, ..MkfsOptions::new(1) });
    let cache = CacheConfig { pages: 128, ..CacheConfig::default() };
    let mount = MountOptions { data, cache, ..MountOptions::default() };
    let config = FsConfig::Ext4(Config { format, mount });
    let caps = DeviceCaps::conventional(4_096);
    storm(Scene { config, caps, left_free: None }, asked("NANDSCAPE_FS_FSX", 4_000));
}

#[test]
fn an_ordered_file_is_a_vector_of_bytes() {
    storm_with(DataMode::Ordered);
}

#[test]
fn a_journalled_file_is_a_vector_of_bytes() {
    storm_with(DataMode::Journal);
}

#[test]
fn a_written_back_file_is_a_vector_of_bytes() {
    storm_with(DataMode::Writeback);
}
