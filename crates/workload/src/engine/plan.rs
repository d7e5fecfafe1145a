//! A job's figures on a certain device: percentages resolved, limits checked.

use super::addresses::{Order, Places};
use super::error::EngineError;
use super::iolog::Playback;
use super::shadow;
use super::sizes::Sizes;
use super::zbd::{Layout, Span};
use crate::direction::Direction;
use crate::fio::{Amount, BlockSizes, Distribution, JobSpec, Mix, SyncWrites};
use nandscape_block::{DeviceCaps, Fua, SECTOR_BYTES};
use std::ops;

/// What a job draws from: a file, or the device.
#[derive(Clone, Debug)]
pub(super) struct Range {
    /// First unit.
    pub(super) base: u64,
    /// Units that are asked for; the last I/O of a sequence may end behind them.
    pub(super) size: u64,
    /// Units that are accessed; of zones with gaps, all up to the device's end.
    pub(super) units: u64,
    /// Places and sizes, by direction.
    pub(super) places: [Places; 3],
    /// Blocks of the random map.
    pub(super) blocks: u64,
    /// What is behind it to the end of the device or file.
    pub(super) behind: u64,
    pub(super) strides: Option<Strides>,
}

/// Zones with gaps between them, in units.
#[derive(Clone, Copy, Debug)]
pub(super) struct Strides {
    /// A zone and the gap behind it.
    pub(super) distance: u64,
    pub(super) zone: u64,
    /// What is transferred before the next zone begins.
    pub(super) transfer: u64,
}

/// When a job has done enough, as fio counts (backend.c, `do_io`, `io_bytes_exceeded` and `keep_running`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Budget {
    pub(super) loops: u64,
    /// What a loop transfers at most; its range may be through before.
    pub(super) loop_bytes: u64,
    /// What all loops transfer at most.
    pub(super) bytes: u64,
    /// I/Os of all loops at most.
    pub(super) ios: u64,
    /// More loops follow while so much is not transferred.
    pub(super) goal_bytes: u64,
}

impl Budget {
    /// No end but that of the range.
    const ENDLESS: Self =
        Self { loops: 1, loop_bytes: u64::MAX, bytes: u64::MAX, ios: u64::MAX, goal_bytes: 0 };

    /// That of a job that asks for `size` bytes a pass, of which a pass over its range transfers `pass`. Time alone
    /// ends one that is `time_based`. Several loops spend `io_size` and `number_ios` together: a loop goes on where
    /// the range is not through, and another one begins where a largest block is left of `io_size`.
    fn new(spec: &JobSpec, size: u64, pass: u64, range: u64) -> Self {
        if spec.time_based {
            // Sequences of two directions begin again each on its own, when it is through; zones go on to the device's end, and
            // so do sequences with holes.
            let two = spec.pattern.mix == Mix::ReadWrite && !spec.pattern.random;
            let goes_on = two || spec.zoning.is_strided() || spec.sequence.skip_bytes != 0;
            return Self { loop_bytes: if goes_on { u64::MAX } else { pass }, ..Self::ENDLESS };
        }
        let goal_bytes = spec.io_size.map_or(0, |amount| amount.of(range));
        // Independent writes have no range to be through with.
        let independent = matches!(order(spec), Order::Independent(_));
        let of_goal =
            if independent && spec.pattern.mix.has(Direction::Write) { goal_bytes } else { 0 };
        Self {
            loops: spec.loops,
            loop_bytes: match spec.completes_at_once() {
                _ if spec.zoning.is_zbd() && goal_bytes > 0 && spec.loops == 1 => goal_bytes,
                _ if spec.zoning.is_zbd() => pass,
                true => u64::MAX,
                false => size.max(of_goal),
            },
            bytes: match goal_bytes {
                0 => size.saturating_mul(spec.loops),
                goal => goal.saturating_mul(spec.loops),
            },
            ios: spec.number_ios.map_or(u64::MAX, |ios| ios.saturating_mul(spec.loops)),
            goal_bytes,
        }
    }

    /// Bytes of all loops, if I/Os do not run out.
    pub(super) fn total_bytes(&self) -> u64 {
        self.loop_bytes.saturating_mul(self.loops.max(1)).max(self.goal_bytes).min(self.bytes)
    }
}

/// What a job does on this device.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// Bytes of a unit, in which addresses and sizes are drawn: a sector, or a part of one.
    pub(super) unit_bytes: u64,
    /// Of each file; on a block device there is one.
    pub(super) ranges: Vec<Range>,
    pub(super) order: Order,
    pub(super) budget: Budget,
    /// The log that is issued instead of what `range` yields.
    pub(super) playback: Option<Playback>,
    /// The zones that it uses with `zonemode=zbd`.
    pub(super) span: Option<Span>,
    /// Largest I/O by direction, in sectors.
    pub(super) largest: [u32; 3],
    /// How `sync` is carried out.
    pub(super) durability: Durability,
    /// Largest bio; 0 is any.
    pub(super) bio_sectors: u32,
    /// Whether writes carry tags.
    pub(super) tagged: bool,
}

/// How a completed write is made durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Durability {
    /// Not at all, it was not asked for.
    None,
    /// By the flag.
    Fua,
    /// By a flush behind it, as kernels do for devices without the flag.
    Flush,
}

impl Plan {
    /// The plan of a clone of `spec` that has these files on a device with these capabilities, or all of
    /// it if there are none.
    pub(super) fn new(
        spec: &JobSpec,
        caps: &DeviceCaps,
        layout: Option<&Layout>,
        clone: u32,
        files: &[ops::Range<u64>],
    ) -> Result<Self, EngineError> {
        let fail = |problem| EngineError::of_job(spec, problem);
        supported(spec, caps).map_err(fail)?;
        let extents = extents(spec, caps, clone, files).map_err(fail)?;
        let layout = layout.filter(|_| spec.zoning.is_zbd());
        let span =
            layout.map(|layout| span(spec, layout, &extents, files)).transpose().map_err(fail)?;
        let ranges = match &span {
            Some(span) => Ok(vec![in_zones(spec, span)]),
            None => extents.iter().map(|extent| range(spec, extent)).collect::<Result<Vec<_>, _>>(),
        };
        let playback = playback(spec, caps, clone).map_err(fail)?;
        let unit_bytes = spec.unit_bytes();
        let largest = Direction::ALL.map(|direction| match &playback {
            Some(playback) => playback.largest(direction),
            None => sectors_reached(&spec.sizes(direction), unit_bytes),
        });
        Ok(Self {
            unit_bytes,
            ranges: ranges.map_err(fail)?,
            order: order(spec),
            budget: match &playback {
                // A log is replayed once, as fio does.
                Some(playback) => Budget {
                    loop_bytes: playback.bytes(),
                    ios: spec.number_ios.unwrap_or(u64::MAX),
                    ..Budget::ENDLESS
                },
                None => budget(spec, &extents, !files.is_empty()),
            },
            playback,
            span,
            largest,
            durability: match (spec.sync, caps.fua) {
                (SyncWrites::No, _) => Durability::None,
                (_, Fua::Honoured) => Durability::Fua,
                (_, Fua::Refused) => Durability::Flush,
            },
            bio_sectors: caps.max_sectors,
            tagged: caps.keeps_content && caps.sectors <= shadow::SECTORS_MAX,
        })
    }
}

/// The directions of the job's I/Os.
fn used(spec: &JobSpec) -> impl Iterator<Item = Direction> {
    Direction::ALL.into_iter().filter(|direction| spec.pattern.mix.has(*direction))
}

/// Sectors of the largest I/O, which may begin and end within one.
fn sectors_reached(sizes: &BlockSizes, unit_bytes: u64) -> u32 {
    let begins_within = SECTOR_BYTES - unit_bytes;
    (sizes.max() + begins_within).div_ceil(SECTOR_BYTES) as u32
}

fn places(spec: &JobSpec, direction: Direction, units: u64, behind: u64) -> Places {
    let unit_bytes = spec.unit_bytes();
    let ranked = spec.map_block(Direction::Read).min(spec.map_block(Direction::Write));
    Places {
        unit_bytes,
        units,
        sizes: Sizes::new(&spec.sizes(direction), unit_bytes),
        align: (spec.align(direction) / unit_bytes).max(1),
        block: (spec.map_block(direction) / unit_bytes).max(1),
        ranked: (ranked / unit_bytes).max(1),
        behind,
        zones: spec.zones[direction as usize].clone(),
    }
}

/// The zones of `zonemode=strided` within so many bytes: all that there are behind the offset, as fio
/// lets `size` say what is transferred, and not how far zones reach.
fn strides(spec: &JobSpec, bytes: u64) -> Result<Option<Strides>, String> {
    let zoning = &spec.zoning;
    if !zoning.is_strided() {
        return Ok(None);
    }
    let zone = zoning.range();
    let largest = spec.largest_block();
    if zone > bytes || largest > zone {
        return Err(format!(
            "a zone of {zone} bytes does not fit into its {bytes}, or holds no block of {largest}"
        ));
    }
    let unit_bytes = spec.unit_bytes();
    Ok(Some(Strides {
        distance: zone.saturating_add(zoning.skip) / unit_bytes,
        zone: zone / unit_bytes,
        transfer: zoning.size / unit_bytes,
    }))
}

/// The log that a clone replays, in its turn.
fn playback(spec: &JobSpec, caps: &DeviceCaps, clone: u32) -> Result<Option<Playback>, String> {
    let logs = &spec.replay.logs;
    let log = (clone as usize).checked_rem(logs.len()).map(|index| &logs[index]);
    log.map(|log| Playback::new(log, &spec.replay, caps)).transpose()
}

/// Refuses what the device lacks.
fn supported(spec: &JobSpec, caps: &DeviceCaps) -> Result<(), String> {
    // Trims of zones are resets, or refused as such.
    let resets = spec.zoning.is_zbd() || (caps.has_zones() && caps.random_range().is_empty());
    if spec.pattern.mix.has(Direction::Trim) && caps.discard_sectors == 0 && !resets {
        return Err("the device does not support trims".into());
    }
    if spec.verify && !caps.keeps_content {
        return Err(
            "verify needs a device that keeps content (payload = \"tags\" or \"bytes\")".into()
        );
    }
    if spec.verify && caps.sectors > shadow::SECTORS_MAX {
        return Err("verify works on devices up to 64 TiB".into());
    }
    if spec.verify && !spec.replay.logs.is_empty() && caps.random_range() != (0..caps.sectors) {
        return Err("verify of a replayed log needs a device that is writable at random".into());
    }
    let handles = caps.placement_handles;
    if handles > 0 && spec.write_hint > handles {
        return Err(format!(
            "write_hint names the placement {}, but the device has {handles}",
            spec.write_hint
        ));
    }
    Ok(())
}

/// Where a clone does its I/O: first byte and bytes, and those that the device or file has from
/// there on.
struct Extent {
    base_bytes: u64,
    bytes: u64,
    room: u64,
}

/// Where a job without files does its I/O: what the device lets it write at random, or all of it if it has zones.
fn space(caps: &DeviceCaps) -> Result<ops::Range<u64>, String> {
    if caps.has_zones() {
        return Ok(0..caps.sectors);
    }
    let range = caps.random_range();
    if range.is_empty() && caps.sectors > 0 {
        return Err("the device has no region that is writable at random".into());
    }
    Ok(range)
}

/// Refuses writes and trims that would reach into zones without following their write pointers.
fn check_zones(spec: &JobSpec, caps: &DeviceCaps, extent: &Extent) -> Result<(), String> {
    let changes = used(spec).any(|direction| direction != Direction::Read);
    let random = caps.random_range();
    let end = (extent.base_bytes + extent.bytes).div_ceil(SECTOR_BYTES);
    let within = random.start <= extent.base_bytes / SECTOR_BYTES && end <= random.end;
    if !changes || within || !caps.has_zones() || spec.zoning.is_zbd() {
        return Ok(());
    }
    let begins = if random.is_empty() { 0 } else { random.end * SECTOR_BYTES };
    Err(format!(
        "the device has zones from byte {begins} on, which are written at their write pointers: writes and trims \
         there need zonemode=zbd"
    ))
}

/// The zones that a job with `zonemode=zbd` uses.
fn span(
    spec: &JobSpec,
    layout: &Layout,
    extents: &[Extent],
    files: &[ops::Range<u64>],
) -> Result<Span, String> {
    match (extents, files) {
        ([extent], []) => {
            layout.span(spec, extent.base_bytes / SECTOR_BYTES, extent.bytes / SECTOR_BYTES)
        }
        _ => Err("zonemode=zbd is for the block device of a stack, not for files".into()),
    }
}

/// What a job draws from in its zones, which say what becomes of it.
fn in_zones(spec: &JobSpec, span: &Span) -> Range {
    let places = Direction::ALL.map(|direction| places(spec, direction, span.sectors(), 0));
    let blocks = places.iter().map(Places::count).max().unwrap_or(0);
    Range {
        base: span.base(),
        size: span.sectors(),
        units: span.sectors(),
        places,
        blocks,
        behind: 0,
        strides: None,
    }
}

/// The part of each of its files, or of the device, that a clone uses.
fn extents(
    spec: &JobSpec,
    caps: &DeviceCaps,
    clone: u32,
    files: &[ops::Range<u64>],
) -> Result<Vec<Extent>, String> {
    if files.is_empty() {
        let extent = extent(spec, &space(caps)?, clone, spec.size);
        let extent = extent.map_err(|problem| match caps.has_append_only() {
            true => format!("{problem} that are writable at random; a file system writes the append-only regions"),
            false => problem,
        })?;
        check_zones(spec, caps, &extent)?;
        return Ok(vec![extent]);
    }
    let of_file = |(number, file): (usize, &ops::Range<u64>)| {
        extent(spec, file, clone, spec.size_of_file(number as u64, files.len() as u64))
    };
    files.iter().enumerate().map(of_file).collect()
}

/// What a job draws from within an extent.
fn range(spec: &JobSpec, extent: &Extent) -> Result<Range, String> {
    let strides = strides(spec, extent.room)?;
    let unit_bytes = spec.unit_bytes();
    let within = strides.map_or(extent.bytes, |strides| strides.zone * unit_bytes);
    let places = Direction::ALL.map(|direction| {
        let bytes = with_last_block(spec, direction, within, extent.room);
        places(spec, direction, bytes / unit_bytes, extent.room.saturating_sub(bytes) / unit_bytes)
    });
    let reach = used(spec).map(|direction| places[direction as usize].units).max();
    let reach = reach.unwrap_or(within / unit_bytes);
    Ok(Range {
        base: extent.base_bytes / unit_bytes,
        size: extent.bytes / unit_bytes,
        units: if strides.is_some() { extent.room / unit_bytes } else { reach },
        places,
        blocks: within / spec.least_of_all(),
        behind: (extent.room - extent.bytes) / unit_bytes,
        strides: strides.map(|strides| Strides { zone: reach, ..strides }),
    })
}

/// Bytes of a sequence in so many: its last block, if all are of one size, begins within them and may
/// end behind, where there is room, as in fio.
fn with_last_block(spec: &JobSpec, direction: Direction, bytes: u64, room: u64) -> u64 {
    match spec.sizes(direction) {
        BlockSizes::Fixed(block) if !spec.pattern.random => {
            Some(bytes.next_multiple_of(block)).filter(|end| *end <= room).unwrap_or(bytes)
        }
        _ => bytes,
    }
}

/// What is transferred in all.
fn budget(spec: &JobSpec, extents: &[Extent], on_files: bool) -> Budget {
    let pass: u64 = extents.iter().map(|extent| pass(spec, extent)).sum();
    let bytes = extents.iter().map(|extent| extent.bytes).sum();
    let size = match spec.size.filter(|_| on_files && spec.files.bytes.is_some()) {
        Some(Amount::Bytes(size)) => size.min(bytes),
        _ => bytes,
    };
    Budget::new(spec, size, pass.min(size), bytes)
}

/// Bytes of a pass over an extent, which ends with the I/O that reaches them.
fn pass(spec: &JobSpec, extent: &Extent) -> u64 {
    let ends_behind = |d| with_last_block(spec, d, extent.bytes, extent.room) > extent.bytes;
    match order(spec) {
        Order::Independent(_) => extent.bytes,
        Order::Sequential if used(spec).any(ends_behind) => extent.bytes,
        _ => extent.bytes - extent.bytes % spec.least_block(),
    }
}

/// The part of a space from the clone's offset on, of this size.
fn extent(
    spec: &JobSpec,
    space: &ops::Range<u64>,
    clone: u32,
    size: Option<Amount>,
) -> Result<Extent, String> {
    let device = (space.end - space.start).saturating_mul(SECTOR_BYTES);
    let largest = spec.largest_block();
    let offset = start(spec, device, clone).ok_or("its offset overflows 64 bits")?;
    let rest = device.saturating_sub(offset);
    let bytes = match size {
        None => rest,
        Some(Amount::Bytes(bytes)) if bytes <= rest => bytes,
        Some(Amount::Bytes(bytes)) => {
            return Err(format!(
                "offset {offset} and size {bytes} reach beyond the device's {device} bytes (--fit scales all \
                 sizes down)"
            ));
        }
        Some(percent) => {
            let bytes = percent.of(device).min(rest);
            bytes - bytes % if bytes < device { spec.least_of_all() } else { 1 }
        }
    };
    if bytes < largest {
        return Err(format!("its {bytes} bytes hold no block of {largest}"));
    }
    Ok(Extent { base_bytes: space.start * SECTOR_BYTES + offset, bytes, room: rest })
}

/// Where a clone's range begins. Percentages are rounded up to `offset_align` or else the least
/// block of any direction, as in fio (filesetup.c, get_start_offset).
fn start(spec: &JobSpec, device: u64, clone: u32) -> Option<u64> {
    let increment = spec.offset_increment.of(device).checked_mul(clone.into())?;
    let offset = spec.offset.of(device).checked_add(increment)?;
    let percent = |amount| matches!(amount, Amount::Percent(percent) if percent > 0);
    if !percent(spec.offset) && !percent(spec.offset_increment) {
        return Some(offset);
    }
    offset.checked_next_multiple_of(spec.offset_align.unwrap_or(spec.least_of_all()))
}

fn order(spec: &JobSpec) -> Order {
    let aligned = used(spec).all(|d| spec.align(d) == spec.map_block(d));
    match (spec.pattern.random, spec.distribution) {
        (false, _) => Order::Sequential,
        (true, Distribution::Uniform) if spec.shift_register => Order::ShiftRegister,
        (true, Distribution::Uniform) if spec.random_map && aligned => Order::RandomMap,
        (true, distribution) => Order::Independent(distribution),
    }
}

/// Whether a job's writes are read again behind them.
pub(super) fn rereads(spec: &JobSpec) -> bool {
    let writes = !matches!(spec.pattern.mix, Mix::Only(Direction::Read | Direction::Trim));
    spec.verify && spec.do_verify && writes
}
