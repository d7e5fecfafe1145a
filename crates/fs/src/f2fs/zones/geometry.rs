//! The zones of a device as a volume has them: a part that is writable at random for the metadata, then zones, each of
//! which is a section.

use crate::f2fs::format::BLOCKS_PER_SEGMENT;
use crate::f2fs::segment::LOGS;
use nandscape_block::{DeviceCaps, RegionKind};

/// Zones that can be the sections of a volume. Sizes in blocks of 4 KiB.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ZoneGeometry {
    /// Where the first zone begins: what lies before it is writable at random.
    pub first: u32,
    /// Address distance of two zones.
    pub blocks: u32,
    /// What can be written of each.
    pub capacity: u32,
    /// Zones that may be active at once; 0: any number.
    pub max_active: u32,
}

impl ZoneGeometry {
    /// The zones of a device; `None` without any.
    ///
    /// # Errors
    /// Why they cannot be sections.
    pub fn of(caps: &DeviceCaps) -> Result<Option<Self>, String> {
        if !caps.has_zones() {
            return Ok(None);
        }
        let granules = caps.zone_limits().map(|limits| limits.write_sectors);
        if let Some(sectors) = granules.max().filter(|sectors| *sectors > 1) {
            return Err(format!(
                "F2FS writes single blocks of 4 KiB, and these zones are written in units of {} KiB",
                u64::from(sectors) * 4
            ));
        }
        let mut regions = caps.regions();
        let (front, zones) = (regions.next(), regions.next());
        let front =
            front.filter(|front| front.kind == RegionKind::Random && front.range.start == 0);
        let front = front.ok_or(
            "F2FS needs a region that is writable at random before the zones, for its metadata",
        )?;
        let Some((RegionKind::Zones(limits), range)) = zones.map(|zones| (zones.kind, zones.range))
        else {
            return Err("zones do not follow the region that is writable at random".to_owned());
        };
        if regions.next().is_some() || range.start != front.range.end {
            return Err(
                "F2FS takes one region that is writable at random and one of zones".to_owned()
            );
        }
        let segment = u64::from(BLOCKS_PER_SEGMENT);
        if !limits.zone_sectors.is_multiple_of(segment) {
            let size = limits.zone_sectors * 4;
            return Err(format!("zones of {size} KiB are no whole number of segments of 2 MiB"));
        }
        if !range.start.is_multiple_of(limits.zone_sectors) {
            return Err("the first zone begins at no multiple of the zone size".to_owned());
        }
        let fits = |blocks: u64| u32::try_from(blocks).map_err(|_| "F2FS has 16 TiB at most");
        Ok(Some(Self {
            first: fits(range.start)?,
            blocks: fits(limits.zone_sectors)?,
            capacity: fits(limits.capacity)?,
            max_active: limits.max_active,
        }))
    }

    /// Whether so many zones may be active as are written at once: those of the logs, and one of a GC journal.
    ///
    /// # Errors
    /// Why not.
    pub(crate) fn check_active(&self, journals: bool) -> Result<(), String> {
        let most = self.max_active as usize;
        if most == 0 || most >= LOGS + usize::from(journals) {
            return Ok(());
        }
        let journal = if journals { " and a GC journal" } else { "" };
        Err(format!("{LOGS} logs{journal} on a device of {most} active zones"))
    }

    /// Segments of a zone.
    #[must_use]
    pub const fn segments(&self) -> u32 {
        self.blocks / BLOCKS_PER_SEGMENT
    }
}
