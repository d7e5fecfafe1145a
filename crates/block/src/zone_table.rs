//! The zones of a device, with the states, resources and transitions of the NVMe Zoned Namespace command
//! set (revision 1.1, section 2.1.1.2.1 "Zone State Machine").
//!
//! - Limits on open and active zones are those of each zoned region, as of a namespace.
//! - A write to a zone that is not open opens it implicitly. Where too many are open, the one with the lowest
//!   number of those that were opened implicitly is closed for it.
//! - A command that is refused changes nothing.
//!
//! No operation looks at more than one zone, but for the report.

use crate::address::Lba;
use crate::caps::DeviceCaps;
use crate::error::BlockError;
use crate::region::RegionKind;
use crate::zone::{ZoneAction, ZoneId, ZoneInfo, ZoneLimits, ZoneState, ZoneStatus};
use nandscape_rt::invariant;
use std::collections::BTreeSet;

#[cfg(test)]
mod tests;

/// All zones of a device.
#[derive(Clone, Default, Debug)]
pub struct ZoneTable {
    regions: Vec<Zones>,
}

impl ZoneTable {
    /// The zones of these regions, which must have been checked; empty.
    #[must_use]
    pub fn of(caps: &DeviceCaps) -> Self {
        let (mut first, mut regions) = (0, Vec::new());
        for region in &caps.regions {
            if let RegionKind::Zones(limits) = region.kind {
                let zones = Zones::new(first, limits, region.range.start, region.zones());
                first += zones.zones.len() as u32;
                regions.push(zones);
            }
        }
        Self { regions }
    }

    /// Whether the device has no zones.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.regions.is_empty()
    }

    /// The zone that an address lies in; none outside of zones.
    #[inline]
    #[must_use]
    pub fn at(&self, lba: Lba) -> Option<ZoneId> {
        self.regions.iter().find_map(|zones| zones.at(lba))
    }

    /// What is known of a zone.
    ///
    /// # Errors
    /// [`ZoneStatus::NoSuchZone`].
    #[inline]
    pub fn info(&self, zone: ZoneId) -> Result<ZoneInfo, BlockError> {
        let zones = self.regions.iter().find(|zones| zones.has(zone));
        zones.map(|zones| *zones.entry(zone)).ok_or(refused(zone, ZoneStatus::NoSuchZone))
    }

    /// All zones, in order of their numbers.
    pub fn infos(&self) -> impl Iterator<Item = &ZoneInfo> + '_ {
        self.regions.iter().flat_map(|zones| &zones.zones)
    }

    /// Zones from the one on that an address lies in, or that follows it; at most `count`.
    #[must_use]
    pub fn report(&self, lba: Lba, count: u32) -> Vec<ZoneInfo> {
        let from = |zones: &Zones| {
            let distance = zones.limits.zone_sectors;
            zones.zones.partition_point(|info| info.start.0 + distance <= lba.0)
        };
        let all = self.regions.iter().flat_map(|zones| &zones.zones[from(zones)..]);
        all.take(count as usize).copied().collect()
    }

    /// Takes `sectors` at the write pointer, which `lba`, if given, must be. Where they went.
    ///
    /// # Errors
    /// The rule that the write breaks.
    #[inline]
    pub fn write(
        &mut self,
        zone: ZoneId,
        lba: Option<Lba>,
        sectors: u32,
    ) -> Result<Lba, BlockError> {
        self.with(zone, |zones| zones.write(zone, lba, sectors))
    }

    /// Serves a zone management command.
    ///
    /// # Errors
    /// The rule that the command breaks.
    pub fn act(&mut self, zone: ZoneId, action: ZoneAction) -> Result<(), BlockError> {
        self.with(zone, |zones| zones.act(zone, action))
    }

    /// Whether these sectors may be read.
    ///
    /// # Errors
    /// The first zone that is offline.
    pub fn check_read(&self, lba: Lba, sectors: u32) -> Result<(), BlockError> {
        let end = lba.plus(sectors.into());
        for zones in &self.regions {
            zones.check_read(lba, end)?;
        }
        Ok(())
    }

    /// Sets a state that no command leads to: the media failed.
    ///
    /// # Errors
    /// [`ZoneStatus::NoSuchZone`].
    pub fn fail(&mut self, zone: ZoneId, state: ZoneState) -> Result<(), BlockError> {
        self.with(zone, |zones| {
            zones.enter(zone, state);
            Ok(())
        })
    }

    /// Power was cut: the zone is not open any more, and was written up to `write_pointer`.
    ///
    /// # Errors
    /// [`ZoneStatus::NoSuchZone`].
    pub fn power_cut(&mut self, zone: ZoneId, write_pointer: Lba) -> Result<(), BlockError> {
        self.with(zone, |zones| {
            zones.power_cut(zone, write_pointer);
            Ok(())
        })
    }

    /// Bytes of RAM.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let zones = self.regions.iter().map(|zones| zones.zones.capacity() * size_of::<ZoneInfo>());
        zones.sum::<usize>() as u64
    }

    #[inline]
    fn with<R>(
        &mut self,
        zone: ZoneId,
        serve: impl FnOnce(&mut Zones) -> Result<R, ZoneStatus>,
    ) -> Result<R, BlockError> {
        let zones = self.regions.iter_mut().find(|zones| zones.has(zone));
        let served = zones.ok_or(ZoneStatus::NoSuchZone).and_then(serve);
        served.map_err(|status| refused(zone, status))
    }
}

const fn refused(zone: ZoneId, status: ZoneStatus) -> BlockError {
    BlockError::Zone { zone: zone.0, status }
}

/// The zones of a region.
#[derive(Clone, Debug)]
struct Zones {
    limits: ZoneLimits,
    /// The number of its first zone.
    first: u32,
    zones: Vec<ZoneInfo>,
    open: u32,
    active: u32,
    /// Those that were opened implicitly.
    implicit: BTreeSet<ZoneId>,
}

impl Zones {
    fn new(first: u32, limits: ZoneLimits, start: u64, zones: u64) -> Self {
        let start = |index| Lba(start + index * limits.zone_sectors);
        let empty = |start| ZoneInfo {
            start,
            capacity: limits.capacity,
            write_pointer: start,
            state: ZoneState::Empty,
        };
        let zones = (0..zones).map(start).map(empty).collect();
        Self { limits, first, zones, open: 0, active: 0, implicit: BTreeSet::new() }
    }

    #[inline]
    fn has(&self, zone: ZoneId) -> bool {
        zone.0.checked_sub(self.first).is_some_and(|index| (index as usize) < self.zones.len())
    }

    fn at(&self, lba: Lba) -> Option<ZoneId> {
        let distance = lba.0.checked_sub(self.zones.first()?.start.0)?;
        let index = u32::try_from(distance.checked_div(self.limits.zone_sectors)?).ok()?;
        let zone = ZoneId(self.first.checked_add(index)?);
        self.has(zone).then_some(zone)
    }

    /// A zone that is one of them.
    #[inline]
    fn entry(&self, zone: ZoneId) -> &ZoneInfo {
        &self.zones[(zone.0 - self.first) as usize]
    }

    #[inline]
    fn entry_mut(&mut self, zone: ZoneId) -> &mut ZoneInfo {
        &mut self.zones[(zone.0 - self.first) as usize]
    }

    #[inline]
    fn write(&mut self, zone: ZoneId, lba: Option<Lba>, sectors: u32) -> Result<Lba, ZoneStatus> {
        let info = *self.entry(zone);
        let end = info.write_pointer.plus(u64::from(sectors));
        match info.state {
            ZoneState::Full => return Err(ZoneStatus::Full),
            ZoneState::ReadOnly => return Err(ZoneStatus::ReadOnly),
            ZoneState::Offline => return Err(ZoneStatus::Offline),
            _ => {}
        }
        if lba.unwrap_or(info.write_pointer).plus(sectors.into()) > info.end() {
            return Err(ZoneStatus::BoundaryError);
        }
        if lba.is_some_and(|lba| lba != info.write_pointer) {
            return Err(ZoneStatus::NotAtWritePointer);
        }
        if !sectors.is_multiple_of(self.limits.write_sectors.max(1)) {
            return Err(ZoneStatus::Granularity);
        }
        if !info.state.is_open() {
            self.open(zone, ZoneState::ImplicitlyOpened)?;
        }
        invariant!(
            lba.unwrap_or(info.write_pointer) == info.write_pointer && end <= info.end(),
            "a zone is written at its write pointer, up to its capacity"
        );
        self.entry_mut(zone).write_pointer = end;
        if end == info.end() {
            self.enter(zone, ZoneState::Full);
        }
        Ok(info.write_pointer)
    }

    fn act(&mut self, zone: ZoneId, action: ZoneAction) -> Result<(), ZoneStatus> {
        let info = *self.entry(zone);
        match (action, info.state) {
            (_, ZoneState::ReadOnly | ZoneState::Offline)
            | (ZoneAction::Open, ZoneState::Full)
            | (ZoneAction::Close, ZoneState::Empty | ZoneState::Full) => {
                return Err(ZoneStatus::InvalidTransition);
            }
            (ZoneAction::Open, _) => self.open(zone, ZoneState::ExplicitlyOpened)?,
            (ZoneAction::Close, _) => self.enter(zone, ZoneState::Closed),
            (ZoneAction::Finish, _) => self.enter(zone, ZoneState::Full),
            (ZoneAction::Reset, _) => {
                self.entry_mut(zone).write_pointer = info.start;
                self.enter(zone, ZoneState::Empty);
            }
        }
        Ok(())
    }

    /// Opens a zone that is neither full nor failed, if the limits allow.
    fn open(&mut self, zone: ZoneId, state: ZoneState) -> Result<(), ZoneStatus> {
        let before = self.entry(zone).state;
        if !before.is_active() && at_limit(self.active, self.limits.max_active) {
            return Err(ZoneStatus::TooManyActive);
        }
        if !before.is_open() && at_limit(self.open, self.limits.max_open) {
            let yielding = self.implicit.first().copied().ok_or(ZoneStatus::TooManyOpen)?;
            self.enter(yielding, ZoneState::Closed);
        }
        self.enter(zone, state);
        let ZoneLimits { max_active, max_open, .. } = self.limits;
        invariant!(
            // A power cut may leave more zones active: those that were finished may not be known as such.
            (before.is_active() || !exceeds(self.active, max_active))
                && !exceeds(self.open, max_open),
            "no more zones are active or open than may be: {} and {}",
            self.active,
            self.open
        );
        Ok(())
    }

    /// Changes the state of a zone, and what is counted by states.
    fn enter(&mut self, zone: ZoneId, state: ZoneState) {
        let before = std::mem::replace(&mut self.entry_mut(zone).state, state);
        self.open = self.open + u32::from(state.is_open()) - u32::from(before.is_open());
        self.active = self.active + u32::from(state.is_active()) - u32::from(before.is_active());
        if before == ZoneState::ImplicitlyOpened {
            self.implicit.remove(&zone);
        }
        if state == ZoneState::ImplicitlyOpened {
            self.implicit.insert(zone);
        }
    }

    fn check_read(&self, lba: Lba, end: Lba) -> Result<(), BlockError> {
        let (Some(first), Some(last)) = (self.zones.first(), self.zones.last()) else {
            return Ok(());
        };
        let until = last.start.plus(self.limits.zone_sectors);
        let mut at = lba.max(first.start);
        while at < end.min(until) {
            let Some(zone) = self.at(at) else { return Ok(()) };
            if self.entry(zone).state == ZoneState::Offline {
                return Err(refused(zone, ZoneStatus::Offline));
            }
            at = self.entry(zone).start.plus(self.limits.zone_sectors);
        }
        Ok(())
    }

    fn power_cut(&mut self, zone: ZoneId, write_pointer: Lba) {
        let info = *self.entry(zone);
        let was_finished = info.state == ZoneState::Full && info.write_pointer != info.end();
        self.entry_mut(zone).write_pointer = write_pointer;
        let state = match info.state {
            failed if failed.is_failed() => failed,
            _ if was_finished || write_pointer == info.end() => ZoneState::Full,
            _ if write_pointer == info.start => ZoneState::Empty,
            _ => ZoneState::Closed,
        };
        self.enter(zone, state);
    }
}

/// Whether a limit is exceeded; one of 0 is none.
const fn exceeds(count: u32, limit: u32) -> bool {
    limit > 0 && count > limit
}

/// Whether a limit is reached; one of 0 is none.
const fn at_limit(count: u32, limit: u32) -> bool {
    limit > 0 && count >= limit
}
