//! F2FS as small as campaigns need it: hardly more segments than the logs and the reserve take, so that segments
//! are cleaned, freed and used again in a few hundred operations.

use super::zones::ZonedVolume;
use super::{Mounted, is_given};
use crate::settings::Settings;
use nandscape_fs::f2fs::format::{Features, GC_JOURNAL_BLOCKS, SUPPORTED};
use nandscape_fs::f2fs::mkfs::MkfsOptions;
use nandscape_fs::f2fs::{
    AllocMode, Config, DiscardPolicy, FsyncMode, GcCheckpoint, MountOptions, OmittedRule, Reclaim,
    SmallVolume,
};
use nandscape_rt::Stream;

/// Sectors of a volume: 30 segments, of which the main area has 22. Six are open, [`RESERVED`] are kept for
/// cleaning, and files have what 7 hold: full, all of it fits into what is left, and cleaning ends.
pub(super) const VOLUME_SECTORS: u64 = 15_360;
/// Percentage of the segments that are not reserved which users do not see.
const OVERPROVISION: f64 = 57.0;
/// The same of a volume with two segments less, for as much of files: full, it is cleaned before every call, and a
/// segment is used again as soon as it is free.
const TIGHT_SECTORS: u64 = 14_336;
const TIGHT_OVERPROVISION: f64 = 50.0;
/// Segments that cleaning may count on: each log's next one. mkfs.f2fs would keep 12 of so few, and a volume in use
/// would be cleaned before every call.
const RESERVED: u32 = 6;
/// Sectors of the smallest and the largest media below it.
pub(super) const MEDIA_SECTORS_MIN: u64 = 20_480;
pub(super) const DEVICE_SECTORS: u32 = 65_536;
/// The modes that a seed draws.
const DRAWN: &[&str] = &["fsync_mode", "active_logs", "data_order", "small_volume"];
/// The same with a GC journal, which is at risk where a segment is used again at once.
const DRAWN_WITH_JOURNAL: &[&str] =
    &["fsync_mode", "active_logs", "data_order", "small_volume", "alloc_mode"];
/// Logs of which a seed draws; six, the default, as often as the others.
const LOGS: [u8; 4] = [2, 4, 6, 6];

/// The modes that a seed draws unless they are given.
pub(super) const fn drawn(given: &Config) -> &'static [&'static str] {
    match given.mount.reclaim {
        Reclaim::Checkpoint => DRAWN,
        Reclaim::GcJournal => DRAWN_WITH_JOURNAL,
    }
}

/// Sectors that a volume has beside those: the area of a GC journal.
pub(super) const fn area_sectors(given: &Config) -> u64 {
    match given.mount.reclaim {
        Reclaim::Checkpoint => 0,
        Reclaim::GcJournal => GC_JOURNAL_BLOCKS as u64,
    }
}

/// How a seed makes and mounts its volume.
pub(super) fn config(given: &Config, mounted: &Mounted<'_>) -> Config {
    let Mounted { seed, mount, zones, is_appended, .. } = *mounted;
    let rng = &mut Stream::new(seed, "f2fs-modes");
    // Each is drawn, given or not: what is given changes no other.
    let logs = LOGS[rng.below(LOGS.len() as u64) as usize];
    let [
        strict,
        ordered,
        inline_data,
        inline_dentry,
        inline_xattr,
        background,
        aggressive,
        features,
        tight,
        small_rules,
    ] = std::array::from_fn(|_| rng.chance(0.5));
    let drawn = MountOptions {
        active_logs: logs,
        fsync_mode: if strict { FsyncMode::Strict } else { FsyncMode::Posix },
        ordered_data: ordered,
        inline_data,
        inline_dentry,
        inline_xattr,
        background_gc: background,
        discard_policy: match aggressive {
            true => DiscardPolicy::Aggressive,
            false => DiscardPolicy::Kernel,
        },
        allocation: given.mount.allocation,
        alloc_mode: draw_alloc_mode(seed, given),
        reclaim: given.mount.reclaim,
        gc_checkpoint: given.mount.gc_checkpoint,
        gc_journal: given.mount.gc_journal,
        small_volume: if small_rules { SmallVolume::Kernel } else { SmallVolume::Off },
        // Generations must not come again: they tell files apart.
        seed: seed.wrapping_mul(1_000).wrapping_add(mount),
        omit: given.mount.omit,
        victim: given.mount.victim,
        cpu: given.mount.cpu,
        ..MountOptions::default()
    };
    let mount = with_given(drawn, given, mounted);
    let features = if features { SUPPORTED } else { Features::default() };
    let (sectors, overprovision) = match tight {
        true => (TIGHT_SECTORS, TIGHT_OVERPROVISION),
        false => (VOLUME_SECTORS, OVERPROVISION),
    };
    let area = area_sectors(given);
    let volume =
        ZonedVolume { sectors: sectors + area, reserved_segments: RESERVED, overprovision };
    let ZonedVolume { sectors, reserved_segments, overprovision } = zones.unwrap_or(volume);
    let format = MkfsOptions {
        sectors: (!is_appended).then_some(sectors),
        gc_journal: area > 0,
        reserved_segments: (!is_appended).then_some(reserved_segments),
        overprovision: (!is_appended).then_some(overprovision),
        features,
        fresh: true,
        ..MkfsOptions::new(seed)
    };
    Config { format: Some(format), mount }
}

/// The same volume with no mode drawn.
pub(super) fn undrawn(given: &Config, mounted: &Mounted<'_>) -> Config {
    let Config { format, mount } = config(given, mounted);
    Config { format, mount: MountOptions { seed: mount.seed, ..given.mount.clone() } }
}

/// Modes that are given in place of those that were drawn.
fn with_given(mut mount: MountOptions, given: &Config, mounted: &Mounted<'_>) -> MountOptions {
    if is_given(mounted, "active_logs") {
        mount.active_logs = given.mount.active_logs;
    }
    if is_given(mounted, "fsync_mode") {
        mount.fsync_mode = given.mount.fsync_mode;
    }
    if is_given(mounted, "data_order") {
        mount.ordered_data = given.mount.ordered_data;
    }
    if is_given(mounted, "small_volume") {
        mount.small_volume = given.mount.small_volume;
    }
    if is_given(mounted, "alloc_mode") {
        mount.alloc_mode = given.mount.alloc_mode;
    }
    mount
}

/// Where free segments are looked for, mostly from the start: with a GC journal.
fn draw_alloc_mode(seed: u64, given: &Config) -> AllocMode {
    let is_default = given.mount.reclaim == Reclaim::Checkpoint
        || Stream::new(seed, "f2fs-alloc-mode").chance(0.25);
    if is_default { AllocMode::Default } else { AllocMode::Reuse }
}

/// What is no choice, as keys and values.
pub(super) fn describe(drawn: &Config) -> Settings {
    let MountOptions { inline_data, inline_dentry, inline_xattr, background_gc, .. } = &drawn.mount;
    let reuses = drawn.mount.reclaim == Reclaim::Checkpoint
        && drawn.mount.gc_checkpoint == GcCheckpoint::Reuse;
    Settings::default()
        .with_some("gc_checkpoint", reuses.then_some("reuse"))
        .with("inline_data", *inline_data)
        .with("inline_dentry", *inline_dentry)
        .with("inline_xattr", *inline_xattr)
        .with("background_gc", *background_gc)
        .with("discard", drawn.mount.discard_policy.name())
        .with_some("features", drawn.format.as_ref().map(|format| format.features.names()))
        .with("cpu_charged", !drawn.mount.cpu.is_free())
        .with_some("omit", drawn.mount.omit.map(OmittedRule::name))
}

#[cfg(test)]
mod tests {
    use super::super::FsDraw;
    use super::*;
    use nandscape_fs::FsConfig;
    use nandscape_fs::f2fs::mkfs::plan;
    use std::collections::BTreeSet;

    /// Six logs and the reserve leave files some segments, and all that is drawn comes up; what is given is not
    /// drawn, and changes nothing else.
    #[test]
    fn volumes_are_small_and_modes_are_drawn() {
        let given = Config::default();
        let of = |seed, keys: &[&'static str]| {
            let mut given = given.clone();
            given.mount.active_logs = 4;
            config(
                &given,
                &Mounted {
                    seed,
                    mount: 1,
                    given: keys,
                    zones: None,
                    is_appended: false,
                    filled: None,
                    full: false,
                },
            )
        };
        let (mut all, mut sizes) = (BTreeSet::new(), BTreeSet::new());
        for seed in 0..200 {
            let drawn = of(seed, &[]);
            let planned = plan(drawn.format.as_ref().unwrap(), VOLUME_SECTORS).unwrap();
            assert_eq!(planned.user_blocks(), 3_584);
            sizes.insert(planned.layout.main_segments());
            all.insert(FsConfig::F2fs(drawn.clone()).describe().to_string());
            let mut fixed = of(seed, &["active_logs"]);
            assert_eq!(fixed.mount.active_logs, 4);
            fixed.mount.active_logs = drawn.mount.active_logs;
            assert_eq!(fixed, drawn);
        }
        let lines: BTreeSet<&str> = all.iter().flat_map(|settings| settings.lines()).collect();
        for line in [
            "active_logs = \"2\"",
            "active_logs = \"4\"",
            "active_logs = \"6\"",
            "fsync_mode = \"posix\"",
            "fsync_mode = \"strict\"",
            "data_order = \"kernel\"",
            "data_order = \"ordered\"",
            "inline_data = true",
            "inline_data = false",
            "features = []",
        ] {
            assert!(lines.contains(line), "{line}");
        }
        assert_eq!(sizes, BTreeSet::from([20, 22]));
        assert!(all.len() > 100, "{}", all.len());
    }
}
