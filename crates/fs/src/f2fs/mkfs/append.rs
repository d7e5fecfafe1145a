//! The sizes of a volume in an append-only address space. No mkfs.f2fs makes one; what it would decide for a main area of
//! as many segments is kept where nothing speaks against it.
//!
//! SIT and SSA have an entry per slot. Without cleaning, a section that has one valid block left takes a slot as a
//! whole one does: with uniform random overwrites of all blocks the last of 512 dies after ln(512) + 0.58 = 6.8 times as
//! many writes as there are blocks, so IPLFS gets 8 slots for each section that the media hold, as far as the metadata has
//! room. A device that moves blocks (D2FS) empties sections itself: there are twice as many slots as it has sections of
//! data, and at least one for each, because it empties none before all of them are written.

use super::plan::{Plan, identity, too_small};
use super::{MkfsError, MkfsOptions};
use crate::f2fs::append::AppendGeometry;
use crate::f2fs::format::*;
use std::ops::RangeInclusive;

/// Slots for each section that the media hold, where logs append for ever.
const INTERVAL_SLOTS: u64 = 8;
/// Slots for each section of data that the device may have, where it moves blocks.
const COUPLED_SLOTS: u64 = 2;
/// Logs.
const LOGS: u32 = SegmentType::ALL.len() as u32;
/// Percentage of the media that users do not see, so that what waits for its discard has room.
const HIDDEN_PERCENT: f64 = 2.0;
/// Segments of it at least: a run of file data for each of some writers, and the nodes of a checkpoint.
const HIDDEN_SEGMENTS: u64 = 8;
/// Bytes of the checkpoint block between its fields and its checksum: room for version bitmaps.
const BITMAPS_BYTES: u32 = (CHECKPOINT_CRC_AT - CHECKPOINT_BITMAPS_AT) as u32;

/// Segments of the areas of metadata.
struct Areas {
    journal: u32,
    sit: u32,
    nat: u32,
    ssa: u32,
    payload: u32,
}

impl Areas {
    /// For so many segments of slots, and nodes in so many blocks.
    fn of(segments: u32, capacity: u32, mode: AppendMode) -> Option<Self> {
        let whole = |blocks: u32| blocks.div_ceil(BLOCKS_PER_SEGMENT);
        let sit = whole(segments.div_ceil(SIT_ENTRIES_PER_BLOCK as u32));
        let bitmap = |segments: u32| segments * BLOCKS_PER_SEGMENT / 8;
        let (payload, room) = match bitmap(sit) > BITMAPS_BYTES - 64 {
            true => (bitmap(sit).div_ceil(BLOCK_BYTES as u32), BITMAPS_BYTES),
            false => (0, BITMAPS_BYTES - bitmap(sit)),
        };
        let nat = whole(capacity.div_ceil(NAT_ENTRIES_PER_BLOCK as u32)).min(room / bitmap(1));
        let journal = match mode {
            AppendMode::Interval => whole(segments.div_ceil(BITMAPS_PER_BLOCK as u32)),
            AppendMode::Coupled => 0,
        };
        let is_sound = nat > 0 && payload <= 20;
        is_sound.then(|| Self {
            journal,
            sit: 2 * sit,
            nat: 2 * nat,
            ssa: whole(segments),
            payload,
        })
    }

    /// All of them, with segment 0 after the superblocks.
    const fn segments(&self) -> u32 {
        1 + 2 + 2 * self.journal + self.sit + self.nat + self.ssa
    }
}

/// Segments of a section.
fn per_section(options: &MkfsOptions, geometry: &AppendGeometry) -> Result<u32, MkfsError> {
    let asked = options.segments_per_section;
    match geometry.superblock.map(|blocks| blocks / BLOCKS_PER_SEGMENT) {
        None if (1..=1 << 16).contains(&asked) => Ok(asked),
        Some(segments) if asked == 1 || asked == segments => Ok(segments),
        Some(segments) => {
            let why = format!("a section is a superblock of the device, of {segments} segments");
            Err(MkfsError::Options(why))
        }
        None => Err(MkfsError::Options("a section of no size, or of too many segments".to_owned())),
    }
}

/// Sections of each region that are used, and how many slots there are to be, at least and at best.
fn regions(
    options: &MkfsOptions,
    geometry: &AppendGeometry,
    section: u32,
) -> Result<([SpaceRegion; SPACE_REGIONS], RangeInclusive<u64>), MkfsError> {
    let media = u64::from(geometry.capacity.div_ceil(section));
    let mut regions = geometry.regions;
    let least = geometry.regions().iter().map(|region| region.blocks / section).min().unwrap_or(0);
    let used = match (options.rho, geometry.mode) {
        (None, _) => u64::from(least),
        (Some(_), AppendMode::Interval) => {
            let why = "rho is of a device that moves blocks to regions of its own".to_owned();
            return Err(MkfsError::Rho(why));
        }
        (Some(rho), AppendMode::Coupled) => (media as f64 * rho) as u64,
    };
    if used > u64::from(least) || options.rho.is_some_and(|rho| !(rho >= 1.0 && rho.is_finite())) {
        let most = f64::from(least) / media.max(1) as f64;
        let asked = options.rho.unwrap_or_default();
        let why = format!("{asked} is not between 1 and {most:.2}, which the device has");
        return Err(MkfsError::Rho(why));
    }
    let own_size = options.rho.is_none();
    for region in &mut regions {
        let sections = region.blocks / section;
        region.blocks = if own_size { sections } else { sections.min(used as u32) } * section;
    }
    let slots = match geometry.mode {
        AppendMode::Interval => media..=media * INTERVAL_SLOTS,
        AppendMode::Coupled => used..=used * COUPLED_SLOTS,
    };
    Ok((regions, slots))
}

/// Decides everything for a volume on such a device.
pub(super) fn plan(
    options: &MkfsOptions,
    geometry: &AppendGeometry,
    sectors: u64,
) -> Result<Plan, MkfsError> {
    options.features.check(Place::Superblock(0))?;
    if options.gc_journal {
        return Err(MkfsError::Options(
            "nothing is cleaned here, so there is no GC journal".to_owned(),
        ));
    }
    let per_section = per_section(options, geometry)?;
    let section = per_section * BLOCKS_PER_SEGMENT;
    let (regions, wanted) = regions(options, geometry, section)?;
    let all: u64 =
        regions[..geometry.mode.regions()].iter().map(|one| u64::from(one.blocks / section)).sum();
    let least = wanted.start() + 2 * u64::from(LOGS);
    let mut slots = (*wanted.end()).max(least).min(all);
    let areas = loop {
        let segments = u32::try_from(slots * u64::from(per_section)).ok();
        let segments = segments.filter(|segments| *segments < SEGMENTS_MAX - SEGMENTS_MAX / 8);
        let areas =
            segments.and_then(|segments| Areas::of(segments, geometry.capacity, geometry.mode));
        match areas {
            Some(areas) if areas.segments() <= geometry.metadata / BLOCKS_PER_SEGMENT => {
                break areas;
            }
            _ if slots <= least => return Err(no_room(geometry, areas.as_ref())),
            _ => slots = (slots - (slots / 8).max(1)).max(least),
        }
    };
    let journal_segments = areas.journal;
    let space = AddressSpace {
        mode: geometry.mode,
        capacity: geometry.capacity,
        journal_segments,
        regions,
    };
    let superblock = superblock(options, &space, &areas, (slots as u32, per_section), sectors)?;
    let layout = Layout::of(&superblock)?;
    let percent = options.overprovision.unwrap_or(HIDDEN_PERCENT);
    if !(percent > 0.0 && percent < 100.0) {
        return Err(MkfsError::Options("an overprovision is above 0 % and below 100 %".to_owned()));
    }
    let hidden = (f64::from(geometry.capacity) * percent / 100.0) as u64;
    let hidden = hidden.max(HIDDEN_SEGMENTS * u64::from(BLOCKS_PER_SEGMENT));
    let users = u64::from(geometry.capacity).checked_sub(hidden).filter(|users| *users > 0);
    let users = users.ok_or_else(too_small)?;
    let segments = layout.main_segments();
    let reserved = options.reserved_segments.unwrap_or(LOGS * per_section);
    Ok(Plan {
        superblock,
        layout,
        overprovision: percent,
        reserved_segments: reserved,
        overprovision_segments: reserved,
        counted_segments: segments,
        usable_blocks: u64::from(segments) * u64::from(BLOCKS_PER_SEGMENT),
        users: Some(users.min(u64::from(segments) * u64::from(BLOCKS_PER_SEGMENT) - 1)),
        logs: std::array::from_fn(|log| SegNo(log as u32 * per_section)),
    })
}

fn no_room(geometry: &AppendGeometry, areas: Option<&Areas>) -> MkfsError {
    let taken = areas.map_or(0, Areas::segments) * 2;
    MkfsError::Options(format!(
        "the metadata takes at least {taken} MiB, and the device has {} MiB that are writable at random",
        geometry.metadata / 256
    ))
}

/// The superblock, whose areas are followed by slots in place of segments.
fn superblock(
    options: &MkfsOptions,
    space: &AddressSpace,
    areas: &Areas,
    (slots, per_section): (u32, u32),
    sectors: u64,
) -> Result<Superblock, MkfsError> {
    let mut sb = identity(options)?;
    let main = slots * per_section;
    let meta = areas.segments() - 1;
    sb.log_blocksize = MARKED_LOG_BLOCKSIZE;
    sb.slots = SlotRecord::of(space);
    sb.block_count = sectors;
    [sb.segs_per_sec, sb.secs_per_zone] = [per_section, 1];
    [sb.segment_count, sb.cp_payload] = [meta + main, areas.payload];
    [sb.segment_count_ckpt, sb.segment_count_sit] = [2 + 2 * areas.journal, areas.sit];
    [sb.segment_count_nat, sb.segment_count_ssa] = [areas.nat, areas.ssa];
    [sb.section_count, sb.segment_count_main] = [slots, main];
    let ckpt = sb.segment_count_ckpt;
    let starts = [0, 0, ckpt, ckpt + areas.sit, ckpt + areas.sit + areas.nat, meta];
    let starts = starts.map(|at| BlockAddr((1 + at) * BLOCKS_PER_SEGMENT));
    [sb.segment0_blkaddr, sb.cp_blkaddr, sb.sit_blkaddr, sb.nat_blkaddr, ..] = starts;
    [.., sb.ssa_blkaddr, sb.main_blkaddr] = starts;
    Ok(sb)
}
