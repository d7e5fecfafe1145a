//! fsx on F2FS: on a volume with room, and on nearly full ones, sections of which are cleaned all the time.

#[path = "../fsx/mod.rs"]
mod storm;

use crate::common::oracle::asked;
use crate::zoned::zoned;
use nandscape_block::DeviceCaps;
use nandscape_fs::cache::CacheConfig;
use nandscape_fs::f2fs::format::{GC_JOURNAL_BLOCKS, GcJournalFormat};
use nandscape_fs::f2fs::mkfs::MkfsOptions;
use nandscape_fs::f2fs::{
    Allocation, Config, FsyncMode, GcCheckpoint, MountOptions, Reclaim, SmallVolume,
};
use nandscape_fs::{FsConfig, FsCounts};
use nandscape_rt::Nanos;
use storm::{Scene, storm};

/// A storm of a few thousand operations, or as many as `NANDSCAPE_F2FS_FSX` says.
fn storm_with(mount: MountOptions, left_free: Option<u64>) -> FsCounts {
    // 96 MiB: on the least that mkfs.f2fs makes, 64 MiB, cleaning can seldom free what it is to keep free.
    storm_on(DeviceCaps::conventional(24_576), mount, left_free)
}

/// The same on a device, which is larger by the area of a GC journal.
fn storm_on(mut caps: DeviceCaps, mount: MountOptions, left_free: Option<u64>) -> FsCounts {
    let area = if mount.reclaim == Reclaim::GcJournal { GC_JOURNAL_BLOCKS } else { 0 };
    let made = MkfsOptions { fresh: true, gc_journal: area > 0, ..MkfsOptions::new(1) };
    let format = Some(made);
    let cache = CacheConfig { pages: 128, ..CacheConfig::default() };
    let config = FsConfig::F2fs(Config { format, mount: MountOptions { cache, ..mount } });
    if !caps.has_zones() {
        caps.sectors += u64::from(area);
    }
    // Small zones are cleaned all the time.
    let steps = if caps.has_zones() { 1_000 } else { 4_000 };
    storm(Scene { config, caps, left_free }, asked("NANDSCAPE_F2FS_FSX", steps))
}

/// Sections are cleaned in both ways.
fn assert_cleaned(counts: &FsCounts) {
    for name in ["foreground_sections", "background_sections", "data_blocks", "node_blocks"] {
        let count = counts.detail.count("gc", name);
        assert!(count.is_some_and(|count| count > 0), "{name}: {counts:?}");
    }
}

/// Cleaning in the background whenever nothing happens for a moment.
fn restless() -> MountOptions {
    MountOptions {
        checkpoint_interval: Nanos::from_secs(2),
        gc_min_sleep: Nanos::from_ms(20),
        gc_max_sleep: Nanos::from_ms(200),
        idle_interval: Nanos::from_ms(5),
        ..MountOptions::default()
    }
}

#[test]
fn a_file_is_a_vector_of_bytes() {
    storm_with(MountOptions::default(), None);
}

#[test]
fn a_file_whose_blocks_are_moved_is_a_vector_of_bytes() {
    assert_cleaned(&storm_with(restless(), Some(3_000)));
}

/// With the checkpoints of later kernels, which come before reuse.
#[test]
fn a_file_whose_blocks_are_moved_before_a_checkpoint_is_a_vector_of_bytes() {
    let of = |gc_checkpoint| {
        let counts = storm_with(MountOptions { gc_checkpoint, ..restless() }, Some(3_000));
        assert_cleaned(&counts);
        let count = |section, name| counts.detail.count(section, name).expect("a count");
        (count("gc", "checkpoints"), count("gc_calls", "count"))
    };
    let (checkpoints, calls) = of(GcCheckpoint::Call);
    assert!(checkpoints >= calls, "each call ends with one: {checkpoints} in {calls}");
    let (checkpoints, calls) = of(GcCheckpoint::Reuse);
    assert!(checkpoints < calls, "some leave it to the next: {checkpoints} in {calls}");
}

/// With adaptive logging on a volume that counts as large: in holes, in place, and cleaned.
#[test]
fn a_file_whose_blocks_fill_holes_is_a_vector_of_bytes() {
    let (allocation, small_volume) = (Allocation::Adaptive, SmallVolume::Off);
    let options = MountOptions { allocation, small_volume, ..restless() };
    let counts = storm_with(options, Some(3_000));
    for name in ["ssr_blocks", "in_place_blocks"] {
        let count = counts.detail.count("adaptive", name);
        assert!(count.is_some_and(|count| count > 0), "{name}: {counts:?}");
    }
    assert!(counts.detail.count("gc", "sections").is_some_and(|count| count > 0), "{counts:?}");
}

/// With adaptive logging by the kernel's rules for small volumes: in place.
#[test]
fn a_file_that_is_written_in_place_is_a_vector_of_bytes() {
    let options = MountOptions { allocation: Allocation::Adaptive, ..restless() };
    let counts = storm_with(options, Some(3_000));
    let count = counts.detail.count("adaptive", "in_place_blocks");
    assert!(count.is_some_and(|count| count > 0), "{counts:?}");
}

/// With a GC journal in each format, which makes cleaned sections free without a checkpoint.
#[test]
fn a_file_whose_moves_are_journalled_is_a_vector_of_bytes() {
    for (gc_journal, allocation) in [
        (GcJournalFormat::Safe, Allocation::Lfs),
        (GcJournalFormat::Paper, Allocation::Lfs),
        (GcJournalFormat::Safe, Allocation::Adaptive),
    ] {
        let (reclaim, small_volume) = (Reclaim::GcJournal, SmallVolume::Off);
        let options = MountOptions { allocation, small_volume, reclaim, gc_journal, ..restless() };
        let counts = storm_with(options, Some(3_000));
        for name in ["blocks", "segments"] {
            let count = counts.detail.count("gc_journal", name);
            assert!(count.is_some_and(|count| count > 0), "{name}: {counts:?}");
        }
    }
}

#[test]
fn a_file_without_inline_content_and_with_two_logs_is_a_vector_of_bytes() {
    let options = MountOptions {
        active_logs: 2,
        fsync_mode: FsyncMode::Strict,
        ordered_data: true,
        inline_data: false,
        inline_xattr: false,
        ..restless()
    };
    assert_cleaned(&storm_with(options, Some(3_000)));
}

/// On zones, each a section: of one segment or several, whole or with a capacity below their size, and with a GC journal
/// in zones.
#[test]
fn a_file_on_zones_is_a_vector_of_bytes() {
    for (segments, capacity, left_free, reclaim) in [
        (1, 512, 3_000, Reclaim::Checkpoint),
        (2, 800, 3_000, Reclaim::Checkpoint),
        (1, 400, 2_000, Reclaim::GcJournal),
    ] {
        let caps = zoned(segments, capacity, 96);
        let options = MountOptions { reclaim, background_gc: false, ..MountOptions::default() };
        let counts = storm_on(caps, options, Some(left_free));
        let count = |group, name| counts.detail.count(group, name).unwrap_or(0);
        assert!(count("zones", "resets") > 0, "{counts:?}");
        assert!(count("gc", "foreground_sections") > 0, "{counts:?}");
        if reclaim == Reclaim::GcJournal {
            assert!(count("gc_journal", "blocks") > 0, "{counts:?}");
        }
    }
}
