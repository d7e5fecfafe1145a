//! Which zones there are, and which of them a job uses: checked against the device before the run.

use crate::direction::Direction;
use crate::engine::error::EngineError;
use crate::fio::{JobFile, JobSpec};
use nandscape_block::zone::ZoneLimits;
use nandscape_block::{DeviceCaps, RegionKind, SECTOR_BYTES};
use std::ops::Range;

/// Zones that a device without zones can be divided into.
const ZONES_MAX: u64 = 1 << 24;

/// The zones of a device, all of one size; sizes in sectors.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::engine) struct Layout {
    /// Of the device.
    pub(super) sectors: u64,
    pub(in crate::engine) zone_sectors: u64,
    pub(super) capacity: u64,
    /// End of what is written at random, where the device has zones behind it.
    random: Option<u64>,
    /// Zones that may be open at once; 0: any number.
    pub(super) max_open: u32,
    /// Whether zones that are closed take part of the device's limits.
    pub(super) limits_active: bool,
    /// What writes are multiples of.
    granularity: u64,
}

/// The part of a device that a clone uses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::engine) struct Span {
    pub(super) zones: Range<u32>,
    /// First sector.
    pub(super) base: u64,
    /// Sectors.
    pub(super) sectors: u64,
}

impl Layout {
    /// The zones that the jobs of `file` with `zonemode=zbd` share, if any job has it.
    pub(in crate::engine) fn of(
        file: &JobFile,
        caps: &DeviceCaps,
    ) -> Result<Option<Self>, EngineError> {
        let mut jobs = file.jobs.iter().filter(|spec| spec.zoning.is_zbd());
        let Some(first) = jobs.next() else { return Ok(None) };
        let layout =
            Self::first(first, caps).map_err(|problem| EngineError::of_job(first, problem))?;
        for spec in [first].into_iter().chain(jobs) {
            layout.check(spec).map_err(|problem| EngineError::of_job(spec, problem))?;
        }
        Ok(Some(layout))
    }

    /// The zones that the first job with `zonemode=zbd` finds.
    fn first(spec: &JobSpec, caps: &DeviceCaps) -> Result<Self, String> {
        let zones = caps.regions().filter_map(|region| match region.kind {
            RegionKind::Zones(limits) => Some((region.range, limits)),
            _ => None,
        });
        let zones: Vec<_> = zones.collect();
        let (random, limits) =
            match &zones[..] {
                [] => (None, emulated(spec, caps)?),
                [(range, limits)] if is_plain(caps, range, limits) => (Some(range.start), *limits),
                _ => return Err(
                    "zonemode=zbd needs one region of zones, and none but a random one in front"
                        .into(),
                ),
            };
        Ok(Self {
            sectors: caps.sectors,
            zone_sectors: limits.zone_sectors,
            capacity: limits.capacity,
            random,
            max_open: max_open(spec, &limits)?,
            limits_active: limits.max_active > 0,
            granularity: u64::from(limits.write_sectors.max(1)),
        })
    }

    pub(super) const fn zones(&self) -> u32 {
        self.sectors.div_ceil(self.zone_sectors) as u32
    }

    /// Number of the first zone that is one of the device's.
    pub(super) fn first_managed(&self) -> Option<u32> {
        self.random.map(|end| (end / self.zone_sectors) as u32)
    }

    /// Whether a job fits these zones.
    fn check(&self, spec: &JobSpec) -> Result<(), String> {
        let zoning = &spec.zoning;
        let zone = self.zone_sectors * SECTOR_BYTES;
        if zoning.size > 0 && zoning.size != zone {
            return Err(format!("zonesize {} is not that of the zones, {zone}", zoning.size));
        }
        let capacity = self.capacity * SECTOR_BYTES;
        if zoning.capacity > 0 && zoning.capacity != capacity {
            return Err(format!(
                "zonecapacity {} is not that of the zones, {capacity}",
                zoning.capacity
            ));
        }
        if zoning.max_open > 0 && zoning.max_open != self.max_open {
            return Err(format!(
                "max_open_zones {} differs from that of the job before, or of the device, {}",
                zoning.max_open, self.max_open
            ));
        }
        if zoning.job_max_open > 0 && self.max_open == 0 {
            return Err("job_max_open_zones needs max_open_zones, as in fio".into());
        }
        if self.random.is_some() && !spec.files.direct && spec.pattern.mix.has(Direction::Write) {
            return Err("writes to zones need direct=1, as in fio".into());
        }
        self.check_blocks(spec)
    }

    fn check_blocks(&self, spec: &JobSpec) -> Result<(), String> {
        let zone = self.zone_sectors * SECTOR_BYTES;
        let used = |direction| spec.pattern.mix.has(direction);
        if used(Direction::Trim) && spec.sizes(Direction::Trim).min() != zone {
            return Err(format!("bs of trims is not the size of a zone, {zone}"));
        }
        if used(Direction::Write) {
            let sizes = spec.sizes(Direction::Write);
            let granularity = self.granularity * SECTOR_BYTES;
            if sizes.max() > zone || sizes.min() > self.capacity * SECTOR_BYTES {
                return Err(format!("bs of writes is larger than a zone of {zone}"));
            }
            if !sizes.min().is_multiple_of(granularity) {
                return Err(format!(
                    "bs of writes is not a multiple of {granularity}, which the device takes at once"
                ));
            }
        }
        if spec.verify && !zone.is_multiple_of(spec.sizes(Direction::Write).min()) {
            return Err(format!(
                "with verify, bs of writes must divide the size of a zone, {zone}"
            ));
        }
        Ok(())
    }

    /// The zones of sectors `base` and on. As in fio, a job that writes or trims begins with a whole zone and ends
    /// with one, unless it has no zones with write pointers.
    pub(in crate::engine) fn span(
        &self,
        spec: &JobSpec,
        base: u64,
        sectors: u64,
    ) -> Result<Span, String> {
        let (mut begin, mut end) = (base, base + sectors);
        let changes =
            spec.pattern.mix.has(Direction::Write) || spec.pattern.mix.has(Direction::Trim);
        if changes && self.random.is_none_or(|random| end > random) {
            begin = begin.next_multiple_of(self.zone_sectors);
            end -= end % self.zone_sectors;
            if begin >= end {
                let zone = self.zone_sectors * SECTOR_BYTES;
                return Err(format!("its range holds no whole zone of {zone} bytes"));
            }
        }
        let zones = (begin / self.zone_sectors) as u32..end.div_ceil(self.zone_sectors) as u32;
        Ok(Span { zones, base: begin, sectors: end - begin })
    }
}

impl Span {
    /// First sector.
    pub(in crate::engine) const fn base(&self) -> u64 {
        self.base
    }

    /// Sectors.
    pub(in crate::engine) const fn sectors(&self) -> u64 {
        self.sectors
    }
}

/// Whether zones lie at multiples of their size up to the device's end, behind nothing but a random region.
fn is_plain(caps: &DeviceCaps, zones: &Range<u64>, limits: &ZoneLimits) -> bool {
    let random = caps.random_range();
    let front = random == (0..zones.start) || zones.start == 0;
    front && zones.end == caps.sectors && zones.start.is_multiple_of(limits.zone_sectors)
}

/// The zones that a job asks for on a device without zones.
fn emulated(spec: &JobSpec, caps: &DeviceCaps) -> Result<ZoneLimits, String> {
    let zoning = &spec.zoning;
    let device = caps.random_range();
    if device != (0..caps.sectors) {
        return Err(
            "zonemode=zbd needs a device with zones, or one that is writable at random".into()
        );
    }
    if zoning.size == 0 {
        return Err("zonemode=zbd needs a zonesize on a device without zones, as in fio".into());
    }
    let zone_sectors = zoning.size / SECTOR_BYTES;
    if zone_sectors > caps.sectors {
        return Err(format!("a zone of {} bytes is larger than the device", zoning.size));
    }
    if caps.sectors.div_ceil(zone_sectors) > ZONES_MAX {
        return Err(format!(
            "zonesize {} makes more than {ZONES_MAX} zones of the device",
            zoning.size
        ));
    }
    let capacity = if zoning.capacity > 0 { zoning.capacity / SECTOR_BYTES } else { zone_sectors };
    Ok(ZoneLimits { zone_sectors, capacity, ..ZoneLimits::default() })
}

/// How many zones may be open at once: what the job asks for, and what the device allows.
fn max_open(spec: &JobSpec, limits: &ZoneLimits) -> Result<u32, String> {
    let zoning = &spec.zoning;
    let allowed = [limits.max_open, limits.max_active].into_iter().filter(|limit| *limit > 0).min();
    let Some(allowed) = allowed.filter(|_| !zoning.ignores_limits) else {
        return Ok(zoning.max_open);
    };
    if zoning.max_open > allowed {
        return Err(format!(
            "max_open_zones {} is more than the {allowed} that the device can have open; ignore_zone_limits=1 asks \
             for it nevertheless",
            zoning.max_open
        ));
    }
    Ok(if zoning.max_open > 0 { zoning.max_open } else { allowed })
}
