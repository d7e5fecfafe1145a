//! The keys of `[fs]` for F2FS. Names of features and choices of sizes are mkfs.f2fs's, those of the mount the
//! kernel's, those of times and dirty ratios Linux's.

use super::super::Host;
use super::super::cache::{self, Defaults};
use super::super::place::StackError;
use super::super::reader::{Section, Span, Words};
use super::{cpu, read_features};
use nandscape_fs::f2fs::format::GcJournalFormat;
use nandscape_fs::f2fs::mkfs::MkfsOptions;
use nandscape_fs::f2fs::{
    AllocMode, Allocation, Config, DiscardPolicy, FsyncMode, GcCheckpoint, GcWithout, MountOptions,
    Reclaim, SmallVolume, VictimPolicy, change_features,
};
use nandscape_rt::Nanos;

/// Keys that say how a file system is made.
const MKFS_KEYS: [&str; 8] = [
    "features",
    "label",
    "segments_per_section",
    "sections_per_zone",
    "overprovision",
    "rho",
    "gc_journal_area",
    "discard",
];

/// Keys whose values a device can be too small for, or that contradict each other.
pub(super) const CHECKED_KEYS: [&str; 6] = [
    "features",
    "label",
    "segments_per_section",
    "sections_per_zone",
    "overprovision",
    "gc_journal_area",
];

const ALLOCATION: Words<Allocation> =
    Words { here: &[("lfs", Allocation::Lfs), ("adaptive", Allocation::Adaptive)] };
const SMALL_VOLUME: Words<SmallVolume> =
    Words { here: &[("kernel", SmallVolume::Kernel), ("off", SmallVolume::Off)] };
const ALLOC_MODE: Words<AllocMode> =
    Words { here: &[("default", AllocMode::Default), ("reuse", AllocMode::Reuse)] };
const RECLAIM: Words<Reclaim> =
    Words { here: &[("checkpoint", Reclaim::Checkpoint), ("gc-journal", Reclaim::GcJournal)] };
const GC_CHECKPOINT: Words<GcCheckpoint> =
    Words { here: &[("call", GcCheckpoint::Call), ("reuse", GcCheckpoint::Reuse)] };
const GC_WITHOUT: Words<GcWithout> = Words {
    here: &[
        ("nothing", GcWithout::Nothing),
        ("checkpoint", GcWithout::Checkpoint),
        ("traversal", GcWithout::Traversal),
        ("metadata", GcWithout::Metadata),
        ("allocation", GcWithout::Allocation),
        ("all", GcWithout::All),
    ],
};
const GC_JOURNAL: Words<GcJournalFormat> =
    Words { here: &[("paper", GcJournalFormat::Paper), ("safe", GcJournalFormat::Safe)] };
const FSYNC_MODE: Words<FsyncMode> =
    Words { here: &[("posix", FsyncMode::Posix), ("strict", FsyncMode::Strict)] };
const DISCARD_POLICY: Words<DiscardPolicy> =
    Words { here: &[("kernel", DiscardPolicy::Kernel), ("aggressive", DiscardPolicy::Aggressive)] };
const VICTIM: Words<VictimPolicy> = Words {
    here: &[
        ("cost-benefit", VictimPolicy::CostBenefit),
        ("age-threshold", VictimPolicy::AgeThreshold),
    ],
};
/// Whether a checkpoint waits for file data.
const DATA_ORDER: Words<bool> = Words { here: &[("kernel", false), ("ordered", true)] };

/// Reads the keys.
pub(super) fn read(fs: &mut Section<'_>, host: &Host) -> Result<Config, StackError> {
    let mount = read_mount(fs, host)?;
    let format = read_mkfs(fs, mount.reclaim)?;
    Ok(Config { format, mount })
}

/// How it is mounted.
fn read_mount(fs: &mut Section<'_>, host: &Host) -> Result<MountOptions, StackError> {
    let defaults = MountOptions::default();
    let (allocation, small_volume) = read_allocation(fs)?;
    let alloc_mode = fs.choice("alloc_mode", "default", &ALLOC_MODE)?;
    let (reclaim, gc_journal, checkpoint_cost) = read_reclaim(fs)?;
    let gc_checkpoint = read_gc_checkpoint(fs, reclaim)?;
    let gc_without = fs.choice("gc_without", "nothing", &GC_WITHOUT)?;
    let active_logs: u32 = fs.or("active_logs", defaults.active_logs.into())?;
    fs.check("active_logs", matches!(active_logs, 2 | 4 | 6), "must be 2, 4 or 6")?;
    let fsync_mode = fs.choice("fsync_mode", "posix", &FSYNC_MODE)?;
    let discard_policy = fs.choice("discard_policy", "kernel", &DISCARD_POLICY)?;
    let ordered_data = fs.choice("data_order", "kernel", &DATA_ORDER)?;
    let inline_data = fs.or("inline_data", defaults.inline_data)?;
    let inline_dentry = fs.or("inline_dentry", defaults.inline_dentry)?;
    let inline_xattr = fs.or("inline_xattr", defaults.inline_xattr)?;
    let Span(checkpoint_interval) =
        fs.or("checkpoint_interval", Span(defaults.checkpoint_interval))?;
    fs.check("checkpoint_interval", checkpoint_interval > Nanos::ZERO, "must be greater than 0")?;
    let upcalls_waiting = fs.or("upcalls_waiting", defaults.upcalls_waiting)?;
    fs.check("upcalls_waiting", upcalls_waiting > 0, "must be at least 1")?;
    let background_gc = fs.or("background_gc", defaults.background_gc)?;
    let (victim, age_threshold) = read_victim(fs, &defaults)?;
    let cpu = cpu::read(fs)?;
    let cache = cache::read(fs, host.memory_or_default(), Defaults::Written)?;
    Ok(MountOptions {
        allocation,
        small_volume,
        alloc_mode,
        reclaim,
        gc_journal,
        gc_checkpoint,
        gc_without,
        checkpoint_cost,
        active_logs: active_logs as u8,
        fsync_mode,
        discard_policy,
        upcalls_waiting,
        ordered_data,
        inline_data,
        inline_dentry,
        inline_xattr,
        checkpoint_interval,
        background_gc,
        victim,
        age_threshold,
        cpu,
        cache,
        ..defaults
    })
}

/// How new blocks are placed, and what that does on a small volume.
fn read_allocation(fs: &mut Section<'_>) -> Result<(Allocation, SmallVolume), StackError> {
    let allocation = fs.choice("allocation", "lfs", &ALLOCATION)?;
    if allocation != Allocation::Adaptive {
        fs.refuse(&["small_volume"], "goes with allocation = \"adaptive\" only")?;
        return Ok((allocation, SmallVolume::default()));
    }
    Ok((allocation, fs.choice("small_volume", "kernel", &SMALL_VOLUME)?))
}

/// What makes cleaned segments free, how a GC journal is written, and what it counts a checkpoint for.
fn read_reclaim(fs: &mut Section<'_>) -> Result<(Reclaim, GcJournalFormat, u32), StackError> {
    let MountOptions { gc_journal, checkpoint_cost, .. } = MountOptions::default();
    let reclaim = fs.choice("reclaim", "checkpoint", &RECLAIM)?;
    if reclaim != Reclaim::GcJournal {
        let keys = ["gc_journal", "checkpoint_cost"];
        fs.refuse(&keys, "goes with reclaim = \"gc-journal\" only")?;
        return Ok((reclaim, gc_journal, checkpoint_cost));
    }
    let format = fs.choice("gc_journal", "safe", &GC_JOURNAL)?;
    Ok((reclaim, format, fs.or("checkpoint_cost", checkpoint_cost)?))
}

/// When cleaning writes its checkpoint.
fn read_gc_checkpoint(fs: &mut Section<'_>, reclaim: Reclaim) -> Result<GcCheckpoint, StackError> {
    if reclaim != Reclaim::Checkpoint {
        fs.refuse(&["gc_checkpoint"], "goes with reclaim = \"checkpoint\" only")?;
        return Ok(GcCheckpoint::default());
    }
    fs.choice("gc_checkpoint", "call", &GC_CHECKPOINT)
}

/// How cleaning in the background chooses, and the age from which it takes sections where that counts.
fn read_victim(
    fs: &mut Section<'_>,
    defaults: &MountOptions,
) -> Result<(VictimPolicy, Nanos), StackError> {
    let victim = fs.choice("victim", "cost-benefit", &VICTIM)?;
    if victim != VictimPolicy::AgeThreshold {
        fs.refuse(&["age_threshold"], "goes with victim = \"age-threshold\" only")?;
        return Ok((victim, defaults.age_threshold));
    }
    let Span(age) = fs.or("age_threshold", Span(defaults.age_threshold))?;
    let is_whole = age.0.is_multiple_of(1_000_000_000);
    fs.check("age_threshold", is_whole, "must be whole seconds, as the SIT has them")?;
    Ok((victim, age))
}

/// How it is made; nothing where the one on the device is mounted. A GC journal has an area.
fn read_mkfs(fs: &mut Section<'_>, reclaim: Reclaim) -> Result<Option<MkfsOptions>, StackError> {
    if !super::read_format(fs, &MKFS_KEYS)? {
        return Ok(None);
    }
    let defaults = MkfsOptions::new(0);
    let features =
        read_features(fs, defaults.features, |features, word| change_features(features, [word]))?;
    let label: Option<String> = fs.optional("label")?;
    let mut several = |key| -> Result<u32, StackError> {
        let number = fs.or(key, 1)?;
        fs.check(key, number > 0, "must be at least 1")?;
        Ok(number)
    };
    let segments_per_section = several("segments_per_section")?;
    let sections_per_zone = several("sections_per_zone")?;
    let overprovision: Option<f64> = fs.optional("overprovision")?;
    let is_share = overprovision.is_none_or(|percent| percent > 0.0 && percent < 100.0);
    fs.check("overprovision", is_share, "must be above 0 and below 100 percent")?;
    let rho: Option<f64> = fs.optional("rho")?;
    fs.check("rho", rho.is_none_or(|rho| (1.0..=100.0).contains(&rho)), "must be 1 to 100")?;
    let gc_journal = fs.or("gc_journal_area", reclaim == Reclaim::GcJournal)?;
    let has_area = gc_journal || reclaim != Reclaim::GcJournal;
    fs.check("gc_journal_area", has_area, "must be true with reclaim = \"gc-journal\"")?;
    let discard = fs.or("discard", true)?;
    Ok(Some(MkfsOptions {
        features,
        label: label.unwrap_or_default(),
        segments_per_section,
        sections_per_zone,
        overprovision,
        rho,
        gc_journal,
        discard,
        ..defaults
    }))
}
