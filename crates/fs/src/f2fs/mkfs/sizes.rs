//! The sizes of a volume: its areas, the segments that users do not see, where the logs begin. Decided as
//! mkfs.f2fs 1.15 does (`f2fs_prepare_super_block` in mkfs/f2fs_format.c, `get_best_overprovision` in
//! include/f2fs_fs.h), in floating-point numbers where it does, and in the same order.
//!
//! mkfs.f2fs counts segments that no zone is left for: those between the last whole zone and the end of
//! the volume. They enter the overprovision, the blocks for users and the free segments of the first
//! checkpoint, although the main area ends before them. We count them, too; fsck.f2fs finds the number of
//! free segments wrong until a mount has written a checkpoint. With a GC journal, of which mkfs.f2fs knows
//! nothing, they are not counted.

use super::plan::{Plan, identity, too_small};
use super::{MkfsError, MkfsOptions, ZoneGeometry};
use crate::f2fs::format::*;

/// Bytes of the checkpoint block between its fields and its checksum: room for version bitmaps.
const BITMAPS_BYTES: u32 = (CHECKPOINT_CRC_AT - CHECKPOINT_BITMAPS_AT) as u32;
/// Bytes of that room that the NAT's bitmap has at least.
const NAT_BITMAP_BYTES_MIN: u32 = 64;
/// Bytes of a version bitmap for each segment of one copy.
const BITMAP_BYTES_PER_SEGMENT: u32 = BLOCKS_PER_SEGMENT / 8;
/// Segments of a GC journal.
const GC_JOURNAL_SEGMENTS: u32 = GC_JOURNAL_BLOCKS / BLOCKS_PER_SEGMENT;
/// Logs.
const LOGS: u32 = SegmentType::ALL.len() as u32;
/// Volumes of fewer main segments are searched in steps of 5 percent.
const COARSE_BELOW: u32 = 256;
/// Decides everything for a volume that is cleaned, of so many sectors of 4,096 bytes.
pub(super) fn plan(options: &MkfsOptions, sectors: u64) -> Result<Plan, MkfsError> {
    if options.rho.is_some() {
        return Err(MkfsError::Rho(
            "rho is of a device that moves blocks to regions of its own".to_owned(),
        ));
    }
    options.features.check(Place::Superblock(0))?;
    let mut superblock = identity(options)?;
    let counted_segments = areas(&mut superblock, options, sectors)?;
    let layout = Layout::of(&superblock)?;
    superblock.check_gc_journal(0)?;
    let (counted_segments, usable_blocks) = match &options.zones {
        Some(zones) => usable(zones, &layout)?,
        None => (counted_segments, u64::from(counted_segments) * u64::from(BLOCKS_PER_SEGMENT)),
    };
    let (overprovision, reserved) = reserve(&layout, counted_segments, options)?;
    if layout.main_segments() - LOGS < reserved {
        return Err(too_small());
    }
    let hidden = (f64::from(counted_segments - reserved) * overprovision / 100.0) as u32;
    let overprovision_segments = hidden + reserved;
    let logs = logs(&superblock, options.heap);
    let plan = Plan {
        superblock,
        layout,
        overprovision,
        reserved_segments: reserved,
        overprovision_segments,
        counted_segments,
        usable_blocks,
        users: None,
        logs,
    };
    if plan.user_blocks() == 0 { Err(too_small()) } else { Ok(plan) }
}

/// Segments of all areas but the main one.
struct Meta {
    sit: u32,
    nat: u32,
    ssa: u32,
    payload: u32,
}

/// Segments of the main area in which something is written, and blocks of them: a section before the first zone is used
/// as far as zones are, which mkfs.f2fs does not count so.
///
/// # Errors
/// The metadata does not fit before the first zone.
fn usable(zones: &ZoneGeometry, layout: &Layout) -> Result<(u32, u64), MkfsError> {
    let main = layout.main_start().0;
    if main > zones.first {
        return Err(MkfsError::Options(format!(
            "the metadata takes {} MiB, and the device has {} MiB that are writable at random",
            main / 256,
            zones.first / 256
        )));
    }
    let segments = layout.sections() * zones.capacity.div_ceil(BLOCKS_PER_SEGMENT);
    Ok((segments, u64::from(layout.sections()) * u64::from(zones.capacity)))
}

/// Segments and sections of a zone as options have them: on a device with zones, a zone is a section.
fn shape(options: &MkfsOptions) -> Result<[u32; 2], MkfsError> {
    let asked = [options.segments_per_section, options.sections_per_zone];
    match &options.zones {
        None => Ok(asked),
        Some(zones) if asked == [1, 1] || asked == [zones.segments(), 1] => {
            Ok([zones.segments(), 1])
        }
        Some(zones) => Err(MkfsError::Options(format!(
            "a section is a zone of the device, of {} segments",
            zones.segments()
        ))),
    }
}

/// Segments of a zone.
pub(super) fn zone_segments(options: &MkfsOptions) -> Result<u32, MkfsError> {
    let [per_section, sections] = shape(options)?;
    let zone = per_section.checked_mul(sections);
    let zone = zone.filter(|zone| (1..=SEGMENTS_MAX).contains(zone));
    zone.ok_or(MkfsError::Options("a zone of no size, or of too many segments".to_owned()))
}

/// Decides where the areas lie. Gives the segments that count as those of the main area.
fn areas(sb: &mut Superblock, options: &MkfsOptions, sectors: u64) -> Result<u32, MkfsError> {
    let [per_section, sections] = shape(options)?;
    let zone = zone_segments(options)?;
    let per_segment = u64::from(BLOCKS_PER_SEGMENT);
    if sectors > u64::from(SEGMENTS_MAX) * per_segment {
        return Err(MkfsError::Options("F2FS has 16 TiB at most".to_owned()));
    }
    let segment0 = u64::from(zone) * per_segment;
    let total = sectors.checked_sub(segment0).ok_or_else(too_small)? / per_segment;
    let total = u32::try_from(total).map_err(|_| too_small())?;
    let journal = match &options.zones {
        _ if !options.gc_journal => 0,
        Some(zones) => GC_JOURNAL_ZONES * zones.segments(),
        None => GC_JOURNAL_SEGMENTS,
    };
    let total = total.checked_sub(journal).ok_or_else(too_small)?;
    let segments = total - total % zone;
    let counted = if options.gc_journal { segments } else { total };
    if total < SEGMENTS_MIN {
        return Err(too_small());
    }
    let meta = Meta::of(segments, zone).ok_or_else(too_small)?;
    let meta_segments = 2 + meta.sit + meta.nat + meta.ssa;
    let zones = (segments / zone).checked_sub(meta_segments / zone).ok_or_else(too_small)?;
    if zones <= LOGS {
        return Err(too_small());
    }
    let main = zones * zone;
    sb.block_count = sectors;
    [sb.segs_per_sec, sb.secs_per_zone] = [per_section, sections];
    [sb.segment_count, sb.cp_payload] = [segments, meta.payload];
    [sb.segment_count_ckpt, sb.segment_count_sit] = [2, meta.sit];
    [sb.segment_count_nat, sb.segment_count_ssa] = [meta.nat, meta.ssa];
    [sb.section_count, sb.segment_count_main] = [zones * sections, main];
    let starts = [0, 0, 2, 2 + meta.sit, 2 + meta.sit + meta.nat, meta_segments];
    // The volume has at most 2^32 blocks, and the areas end on it.
    let starts = starts.map(|at| BlockAddr((zone + at) * BLOCKS_PER_SEGMENT));
    [sb.segment0_blkaddr, sb.cp_blkaddr, sb.sit_blkaddr, sb.nat_blkaddr, ..] = starts;
    [.., sb.ssa_blkaddr, sb.main_blkaddr] = starts;
    if options.gc_journal {
        let start = BlockAddr((zone + segments) * BLOCKS_PER_SEGMENT);
        sb.gc_journal = GcJournalRecord::new(start, journal * BLOCKS_PER_SEGMENT);
    }
    Ok(counted - meta_segments)
}

impl Meta {
    /// Of a volume of so many segments and zones of so many; `None` if they have no room.
    fn of(segments: u32, zone: u32) -> Option<Self> {
        let per_segment = |blocks: u32| blocks.div_ceil(BLOCKS_PER_SEGMENT);
        let sit = 2 * per_segment(segments.div_ceil(SIT_ENTRIES_PER_BLOCK as u32));
        let nodes = u64::from(segments.checked_sub(2 + sit)?) * u64::from(BLOCKS_PER_SEGMENT);
        // At most one number for each block, and as many NAT blocks as its bitmap has room for.
        let nat = per_segment(nodes.div_ceil(NAT_ENTRIES_PER_BLOCK as u64) as u32);
        let sit_bitmap = sit / 2 * BITMAP_BYTES_PER_SEGMENT;
        let (payload, room) = match sit_bitmap > BITMAPS_BYTES - NAT_BITMAP_BYTES_MIN {
            true => (sit_bitmap.div_ceil(BLOCK_BYTES as u32), BITMAPS_BYTES),
            false => (0, BITMAPS_BYTES - sit_bitmap),
        };
        let nat = 2 * nat.min(room / BITMAP_BYTES_PER_SEGMENT);
        let rest = segments.checked_sub(2 + sit + nat)?;
        let ssa = per_segment(rest + 1);
        // The main area begins with a zone.
        let ssa = ssa + (2 + sit + nat + ssa).next_multiple_of(zone) - (2 + sit + nat + ssa);
        Some(Self { sit, nat, ssa, payload })
    }
}

/// The overprovision in percent, and the segments that are reserved for cleaning.
fn reserve(layout: &Layout, counted: u32, options: &MkfsOptions) -> Result<(f64, u32), MkfsError> {
    let asked = options.overprovision;
    if asked.is_some_and(|percent| !(percent > 0.0 && percent < 100.0)) {
        return Err(MkfsError::Options("an overprovision is above 0 % and below 100 %".to_owned()));
    }
    let percent = asked.or_else(|| best_overprovision(layout, counted)).ok_or_else(too_small)?;
    let reserved = reserved_segments(percent, counted.div_ceil(layout.sections())) as u32;
    let reserved = options.reserved_segments.unwrap_or(reserved);
    let areas = (layout.main_start().0 - layout.pack(0).0) / BLOCKS_PER_SEGMENT;
    if reserved == 0 || areas.saturating_add(reserved) < SEGMENTS_MIN {
        return Err(MkfsError::Options("too few segments are reserved for cleaning".to_owned()));
    }
    Ok((percent, reserved))
}

/// Segments to be reserved at an overprovision in percent, with so many segments for each section.
fn reserved_segments(percent: f64, per_section: u32) -> f64 {
    (2.0 * (100.0 / percent + 1.0) + f64::from(LOGS)) * f64::from(per_section)
}

/// The overprovision that leaves users most; `None` if none leaves them anything.
fn best_overprovision(layout: &Layout, counted: u32) -> Option<f64> {
    let (all, per_section) = (f64::from(counted), counted.div_ceil(layout.sections()));
    let coarse = layout.main_segments() < COARSE_BELOW;
    let (first, last, step) = if coarse { (10.0, 95.0, 5.0) } else { (0.01, 10.0, 0.01) };
    let (mut best, mut most) = (None, 0.0);
    let mut percent = first;
    while percent <= last {
        let reserved = reserved_segments(percent, per_section);
        let hidden = (all - reserved) * percent / 100.0;
        let space = all - reserved - hidden;
        if most < space {
            (best, most) = (Some(percent), space);
        }
        percent += step;
    }
    best
}

/// Where the logs begin, by the number of their types: each with a zone.
fn logs(sb: &Superblock, heap: bool) -> [SegNo; 6] {
    let zone = sb.segs_per_sec * sb.secs_per_zone;
    let zones = sb.segment_count_main / zone;
    let zones_of = |hot_data, warm_data, cold_data, hot_node, warm_node, cold_node| {
        [hot_data, warm_data, cold_data, hot_node, warm_node, cold_node].map(|at: u32| at * zone)
    };
    if heap {
        let last = zones - 1;
        let mut logs = zones_of(last - 3, 1, 0, last, last - 1, last - 2);
        let into = (sb.secs_per_zone - 1) * sb.segs_per_sec;
        for log in [0, 3, 4, 5] {
            logs[log] += into;
        }
        return logs.map(SegNo);
    }
    let cold = (zones / 4 - 1).max(4);
    let warm = (zones / 2 - 1).max(cold + 1);
    zones_of(3, warm, cold, 0, 1, 2).map(SegNo)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The layouts that mkfs.f2fs 1.15 was seen to choose: bytes and segments of a section; first blocks
    /// of the areas and segments of each; overprovision in hundredths of a percent, segments that users
    /// do not see, reserved ones; blocks for users.
    #[test]
    fn layouts_are_those_of_mkfs_f2fs() {
        type Row = (u64, u32, [u32; 6], [u32; 5], [u32; 3], u64);
        const GIB: u64 = 1 << 30;
        let rows: [Row; 4] = [
            (
                GIB,
                1,
                [512, 512, 1_536, 2_560, 4_608, 5_120],
                [2, 2, 4, 1, 502],
                [636, 68, 39],
                222_208,
            ),
            (
                16 * GIB,
                1,
                [512, 512, 1_536, 2_560, 20_992, 29_184],
                [2, 2, 36, 16, 8_135],
                [157, 260, 135],
                4_032_000,
            ),
            (
                256 * GIB,
                1,
                [512, 512, 1_536, 6_656, 62_976, 194_048],
                [2, 10, 110, 256, 130_693],
                [39, 1_027, 520],
                66_388_992,
            ),
            (
                256 * GIB,
                16,
                [8_192, 8_192, 9_216, 14_336, 70_656, 204_800],
                [2, 10, 110, 262, 130_672],
                [157, 4_183, 2_166],
                64_762_368,
            ),
        ];
        for (bytes, segments_per_section, starts, segments, hidden, user_blocks) in rows {
            let options = MkfsOptions { segments_per_section, ..MkfsOptions::new(1) };
            let plan = plan(&options, bytes / BLOCK_BYTES as u64).expect("a plan");
            let sb = &plan.superblock;
            let areas = [sb.segment0_blkaddr, sb.cp_blkaddr, sb.sit_blkaddr, sb.nat_blkaddr];
            let areas = areas.into_iter().chain([sb.ssa_blkaddr, sb.main_blkaddr]);
            assert_eq!(areas.map(|addr| addr.0).collect::<Vec<_>>(), starts);
            let [ckpt, sit, nat] =
                [sb.segment_count_ckpt, sb.segment_count_sit, sb.segment_count_nat];
            assert_eq!([ckpt, sit, nat, sb.segment_count_ssa, sb.segment_count_main], segments);
            let percent = (plan.overprovision * 100.0).round() as u32;
            assert_eq!([percent, plan.overprovision_segments, plan.reserved_segments], hidden);
            assert_eq!(plan.user_blocks(), user_blocks);
        }
    }
}
