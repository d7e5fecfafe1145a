//! What every device checks before it looks at a bio: the range and its regions, the length of the
//! payload, and that the device has what the bio asks for at all. What only the device can know (the state of a
//! zone, of its media, of its cache) is left to it.

use crate::address::Lba;
use crate::bio::{Bio, Flags, Op};
use crate::caps::{DeviceCaps, Fua, UpcallSignal};
use crate::error::BlockError;
use crate::payload::Payload;
use crate::zone::{ZoneId, ZoneStatus};

impl Bio {
    /// Whether a device with these capabilities may serve this bio; a few compares for a read or a
    /// write. Reads, writes and appends are bound by `max_sectors` (0: no bound); discards, which
    /// move no data, only by the device's end.
    ///
    /// # Errors
    /// [`BlockError::Unsupported`] for what the device lacks, [`BlockError::OutOfRange`] and
    /// [`BlockError::Zone`] for places that do not exist, [`BlockError::Malformed`] for a bio that
    /// contradicts itself or the device's limits.
    #[inline(always)]
    pub fn check(&self, caps: &DeviceCaps) -> Result<(), BlockError> {
        if self.flags.has(Flags::FUA) && caps.fua == Fua::Refused {
            return Err(BlockError::Unsupported("FUA"));
        }
        match self.op {
            Op::Write => {
                self.check_range(caps)?;
                self.check_regions(caps)?;
                self.check_data(caps)
            }
            Op::Read => {
                self.check_range(caps)?;
                self.check_regions(caps)?;
                self.check_size(caps)?;
                self.check_bare()
            }
            _ => self.check_rare(caps),
        }
    }

    /// The operations off the hot path.
    fn check_rare(&self, caps: &DeviceCaps) -> Result<(), BlockError> {
        match self.op {
            Op::ZoneAppend(zone) => return self.check_append(caps, zone),
            Op::Discard => self.check_discard(caps)?,
            Op::Zone(zone, _) => check_zone(caps, zone)?,
            Op::ZoneReport => {
                if !caps.has_zones() {
                    return Err(BlockError::Unsupported("zones"));
                }
                // `sectors` counts zones here: more than there are is no error, none at all is.
                Self::read(self.lba, self.sectors.min(1)).check_range(caps)?;
            }
            Op::FetchUpcall | Op::AwaitUpcall | Op::CompleteUpcall(_) if !caps.has_upcalls() => {
                return Err(BlockError::Unsupported("upcalls"));
            }
            Op::AwaitUpcall if caps.upcall_signal != UpcallSignal::Interrupt => {
                return Err(BlockError::Unsupported("interrupts of upcalls"));
            }
            Op::FetchUpcall if self.sectors == 0 => {
                return Err(BlockError::Malformed("a fetch of no records"));
            }
            Op::Flush
            | Op::FetchUpcall
            | Op::AwaitUpcall
            | Op::CompleteUpcall(_)
            | Op::Read
            | Op::Write => {}
        }
        self.check_bare()
    }

    /// At least one sector, all of them on the device.
    #[inline]
    fn check_range(&self, caps: &DeviceCaps) -> Result<(), BlockError> {
        if self.sectors == 0 {
            return Err(BlockError::Malformed("no sectors"));
        }
        match self.lba.0.checked_add(u64::from(self.sectors)) {
            Some(end) if end <= caps.sectors => Ok(()),
            _ => Err(BlockError::OutOfRange {
                lba: self.lba,
                sectors: self.sectors,
                device_sectors: caps.sectors,
            }),
        }
    }

    /// All sectors in regions, those of a write in one that the host may write.
    #[inline]
    fn check_regions(&self, caps: &DeviceCaps) -> Result<(), BlockError> {
        if caps.regions.is_empty() { Ok(()) } else { self.check_named_regions(caps) }
    }

    fn check_named_regions(&self, caps: &DeviceCaps) -> Result<(), BlockError> {
        let end = self.lba.0 + u64::from(self.sectors);
        let mut at = self.lba.0;
        while at < end {
            let region = caps.region_of(Lba(at));
            let region = region.ok_or(BlockError::Unsupported("addresses outside the regions"))?;
            if self.op == Op::Write {
                if !region.kind.is_host_written() {
                    return Err(BlockError::Unsupported("writes to a device-owned region"));
                }
                if region.range.end < end {
                    return Err(BlockError::Unsupported("writes across regions"));
                }
            }
            at = region.range.end;
        }
        Ok(())
    }

    #[inline]
    fn check_size(&self, caps: &DeviceCaps) -> Result<(), BlockError> {
        if caps.max_sectors != 0 && self.sectors > caps.max_sectors {
            return Err(BlockError::Malformed("more sectors than the device takes at once"));
        }
        Ok(())
    }

    /// As much data as sectors, some where content is kept, under a handle that exists.
    #[inline]
    fn check_data(&self, caps: &DeviceCaps) -> Result<(), BlockError> {
        self.check_size(caps)?;
        if caps.placement_handles != 0 && self.placement.0 > caps.placement_handles {
            return Err(BlockError::Malformed("no such placement handle"));
        }
        let fits = match &self.payload {
            Payload::Run(_) => true,
            Payload::None if caps.keeps_content => {
                return Err(BlockError::Malformed("a write without data"));
            }
            payload => payload.sectors().is_none_or(|sectors| sectors == self.sectors as usize),
        };
        if fits { Ok(()) } else { Err(BlockError::Malformed("payload of another length")) }
    }

    /// No data on an operation that takes none.
    #[inline]
    fn check_bare(&self) -> Result<(), BlockError> {
        match self.payload {
            Payload::None => Ok(()),
            _ => Err(BlockError::Malformed("data on an operation that takes none")),
        }
    }

    fn check_append(&self, caps: &DeviceCaps, zone: ZoneId) -> Result<(), BlockError> {
        check_zone(caps, zone)?;
        if !caps.zone(zone).is_some_and(|(_, limits)| limits.append) {
            return Err(BlockError::Unsupported("zone append"));
        }
        if self.sectors == 0 {
            return Err(BlockError::Malformed("no sectors"));
        }
        self.check_data(caps)
    }

    /// A discard covers whole granules, but for the device's end.
    fn check_discard(&self, caps: &DeviceCaps) -> Result<(), BlockError> {
        let granule = u64::from(caps.discard_sectors);
        if granule == 0 {
            return Err(BlockError::Unsupported("discard"));
        }
        self.check_range(caps)?;
        self.check_regions(caps)?;
        let end = self.lba.0 + u64::from(self.sectors);
        let whole = end.is_multiple_of(granule) || end == caps.sectors;
        if self.lba.0.is_multiple_of(granule) && whole {
            Ok(())
        } else {
            Err(BlockError::Malformed("discard of a part of a granule"))
        }
    }
}

/// A zoned device that has this zone.
fn check_zone(caps: &DeviceCaps, zone: ZoneId) -> Result<(), BlockError> {
    match caps.zone(zone) {
        Some(_) => Ok(()),
        None if caps.has_zones() => {
            Err(BlockError::Zone { zone: zone.0, status: ZoneStatus::NoSuchZone })
        }
        None => Err(BlockError::Unsupported("zones")),
    }
}
