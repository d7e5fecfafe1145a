//! A table of zones with the states, resources and transitions of the NVMe Zoned Namespace command
//! set (revision 1.1, section 3.2.2 "Zone State Machine").

use crate::address::Lba;
use crate::error::BlockError;
use crate::zone::{ZoneAction, ZoneId, ZoneInfo, ZoneLimits, ZoneState};

type Rule = Result<(), &'static str>;

/// All zones of a device.
pub(super) struct Zones {
    limits: ZoneLimits,
    zones: Vec<ZoneInfo>,
}

impl Zones {
    /// Empty zones over a device of this many sectors.
    pub(super) fn new(limits: ZoneLimits, sectors: u64) -> Self {
        let capacity = limits.capacity.min(limits.zone_sectors);
        let zones = (0..sectors.checked_div(limits.zone_sectors).unwrap_or(0))
            .map(|index| Lba(index * limits.zone_sectors))
            .map(|start| ZoneInfo {
                start,
                capacity,
                write_pointer: start,
                state: ZoneState::Empty,
            })
            .collect();
        Self { limits, zones }
    }

    /// The zone that holds `lba`.
    pub(super) fn at(&self, lba: Lba) -> Result<ZoneId, BlockError> {
        let index = lba.0.checked_div(self.limits.zone_sectors).and_then(|z| u32::try_from(z).ok());
        let zone = ZoneId(index.unwrap_or(u32::MAX));
        self.info(zone).map(|_| zone)
    }

    pub(super) fn info(&self, zone: ZoneId) -> Result<ZoneInfo, BlockError> {
        let info = self.zones.get(zone.0 as usize).copied();
        info.ok_or(BlockError::Zone { zone: zone.0, what: "no such zone" })
    }

    /// Up to `count` zones from the one that holds `lba` on.
    pub(super) fn report(&self, lba: Lba, count: u32) -> Result<Vec<ZoneInfo>, BlockError> {
        let first = self.at(lba)?.0 as usize;
        Ok(self.zones[first..].iter().take(count as usize).copied().collect())
    }

    /// Sets a state that no command leads to: the media failed.
    pub(super) fn fail(&mut self, zone: ZoneId, state: ZoneState) -> Result<(), BlockError> {
        self.info(zone)?;
        self.zones[zone.0 as usize].state = state;
        Ok(())
    }

    /// Takes `sectors` at the write pointer, which `lba`, if given, must be. Where they went.
    pub(super) fn write(
        &mut self,
        zone: ZoneId,
        lba: Option<Lba>,
        sectors: u32,
    ) -> Result<Lba, BlockError> {
        let info = self.info(zone)?;
        let end = info.write_pointer.plus(u64::from(sectors));
        let rule = match info.state {
            ZoneState::Full => Err("the zone is full"),
            ZoneState::ReadOnly => Err("the zone is read-only"),
            ZoneState::Offline => Err("the zone is offline"),
            _ if lba.is_some_and(|lba| lba != info.write_pointer) => {
                Err("a write away from the write pointer")
            }
            _ if end > info.start.plus(info.capacity) => Err("a write past the zone's capacity"),
            _ => self.take_resources(zone, ZoneState::ImplicitlyOpened),
        };
        rule.map_err(|what| BlockError::Zone { zone: zone.0, what })?;
        let info = &mut self.zones[zone.0 as usize];
        let went = std::mem::replace(&mut info.write_pointer, end);
        if end == info.start.plus(info.capacity) {
            info.state = ZoneState::Full;
        }
        Ok(went)
    }

    /// Serves a zone management command.
    pub(super) fn act(&mut self, zone: ZoneId, action: ZoneAction) -> Result<(), BlockError> {
        let info = self.info(zone)?;
        let rule = match (action, info.state) {
            (_, ZoneState::ReadOnly) => Err("the zone is read-only"),
            (_, ZoneState::Offline) => Err("the zone is offline"),
            (ZoneAction::Open, ZoneState::Full) => Err("open of a full zone"),
            (ZoneAction::Open, _) => self.take_resources(zone, ZoneState::ExplicitlyOpened),
            (ZoneAction::Close, ZoneState::Empty) => Err("close of an empty zone"),
            (ZoneAction::Close, ZoneState::Full) => Err("close of a full zone"),
            (ZoneAction::Close, _) => self.enter(zone, ZoneState::Closed),
            (ZoneAction::Finish, _) => self.enter(zone, ZoneState::Full),
            (ZoneAction::Reset, _) => {
                self.zones[zone.0 as usize].write_pointer = info.start;
                self.enter(zone, ZoneState::Empty)
            }
        };
        rule.map_err(|what| BlockError::Zone { zone: zone.0, what })
    }

    fn enter(&mut self, zone: ZoneId, state: ZoneState) -> Rule {
        self.zones[zone.0 as usize].state = state;
        Ok(())
    }

    /// Opens a zone, if the limits allow; where too many are open, an implicitly opened one is
    /// closed for it. An explicitly opened zone stays so when it is written.
    fn take_resources(&mut self, zone: ZoneId, state: ZoneState) -> Rule {
        let before = self.zones[zone.0 as usize].state;
        if is_open(before) {
            let explicit = before == ZoneState::ExplicitlyOpened;
            return self.enter(zone, if explicit { before } else { state });
        }
        let active = before == ZoneState::Closed;
        if !active && at_limit(self.count(is_active), self.limits.max_active) {
            return Err("too many active zones");
        }
        if at_limit(self.count(is_open), self.limits.max_open) {
            let implicit = |info: &&mut ZoneInfo| info.state == ZoneState::ImplicitlyOpened;
            let yielding = self.zones.iter_mut().find(implicit).ok_or("too many open zones")?;
            yielding.state = ZoneState::Closed;
        }
        self.enter(zone, state)
    }

    fn count(&self, has: impl Fn(ZoneState) -> bool) -> usize {
        self.zones.iter().filter(|info| has(info.state)).count()
    }
}

fn is_open(state: ZoneState) -> bool {
    matches!(state, ZoneState::ImplicitlyOpened | ZoneState::ExplicitlyOpened)
}

fn is_active(state: ZoneState) -> bool {
    is_open(state) || state == ZoneState::Closed
}

/// A limit of 0 is none.
fn at_limit(count: usize, limit: u32) -> bool {
    limit > 0 && count >= limit as usize
}
