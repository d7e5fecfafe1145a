//! The zones of a region, with the states, resources and transitions of the NVMe Zoned Namespace command
//! set (revision 1.1, section 3.2.2 "Zone State Machine").

use crate::address::Lba;
use crate::caps::DeviceCaps;
use crate::error::BlockError;
use crate::region::RegionKind;
use crate::zone::{ZoneAction, ZoneId, ZoneInfo, ZoneLimits, ZoneState};

type Rule = Result<(), &'static str>;

/// All zones of a region. Identities are those of the device.
pub(super) struct Zones {
    limits: ZoneLimits,
    first: u32,
    zones: Vec<ZoneInfo>,
}

impl Zones {
    /// The zones of a device's zoned regions, empty. The regions must have been checked.
    pub(super) fn of(caps: &DeviceCaps) -> Vec<Self> {
        let mut first = 0;
        let mut tables = Vec::new();
        for region in &caps.regions {
            if let RegionKind::Zones(limits) = region.kind {
                let zones: Vec<_> = (0..region.zones())
                    .map(|index| Lba(region.range.start + index * limits.zone_sectors))
                    .map(|start| empty(start, limits.capacity))
                    .collect();
                let next = first + zones.len() as u32;
                tables.push(Self { limits, first, zones });
                first = next;
            }
        }
        tables
    }

    /// Whether this zone is one of them.
    pub(super) fn has(&self, zone: ZoneId) -> bool {
        self.index(zone).is_some()
    }

    fn index(&self, zone: ZoneId) -> Option<usize> {
        let index = zone.0.checked_sub(self.first)? as usize;
        (index < self.zones.len()).then_some(index)
    }

    /// The zone that holds `lba`, if it is one of them.
    pub(super) fn at(&self, lba: Lba) -> Option<ZoneId> {
        let distance = lba.0.checked_sub(self.zones.first()?.start.0)?;
        let index = u32::try_from(distance.checked_div(self.limits.zone_sectors)?).ok()?;
        let zone = ZoneId(self.first.checked_add(index)?);
        self.has(zone).then_some(zone)
    }

    /// The zones in order of address.
    pub(super) fn infos(&self) -> &[ZoneInfo] {
        &self.zones
    }

    /// Address distance between zones.
    pub(super) fn distance(&self) -> u64 {
        self.limits.zone_sectors
    }

    /// Power was cut: no zone stays open, and zone `index` was written up to `write_pointer`.
    pub(super) fn power_cut(&mut self, index: usize, write_pointer: Lba) {
        let info = &mut self.zones[index];
        let end = info.start.plus(info.capacity);
        let was_finished = info.state == ZoneState::Full && info.write_pointer != end;
        info.write_pointer = write_pointer;
        info.state = match info.state {
            failed @ (ZoneState::ReadOnly | ZoneState::Offline) => failed,
            _ if was_finished || write_pointer == end => ZoneState::Full,
            _ if write_pointer == info.start => ZoneState::Empty,
            _ => ZoneState::Closed,
        };
    }

    pub(super) fn info(&self, zone: ZoneId) -> Result<ZoneInfo, BlockError> {
        let info = self.index(zone).map(|index| self.zones[index]);
        info.ok_or(BlockError::Zone { zone: zone.0, what: "no such zone" })
    }

    /// Sets a state that no command leads to: the media failed.
    pub(super) fn fail(&mut self, zone: ZoneId, state: ZoneState) -> Result<(), BlockError> {
        self.info(zone)?;
        self.entry(zone).state = state;
        Ok(())
    }

    /// The entry of a zone that is one of them.
    fn entry(&mut self, zone: ZoneId) -> &mut ZoneInfo {
        &mut self.zones[(zone.0 - self.first) as usize]
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
        let info = self.entry(zone);
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
                self.entry(zone).write_pointer = info.start;
                self.enter(zone, ZoneState::Empty)
            }
        };
        rule.map_err(|what| BlockError::Zone { zone: zone.0, what })
    }

    fn enter(&mut self, zone: ZoneId, state: ZoneState) -> Rule {
        self.entry(zone).state = state;
        Ok(())
    }

    /// Opens a zone, if the limits allow; where too many are open, an implicitly opened one is
    /// closed for it. An explicitly opened zone stays so when it is written.
    fn take_resources(&mut self, zone: ZoneId, state: ZoneState) -> Rule {
        let before = self.entry(zone).state;
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

fn empty(start: Lba, capacity: u64) -> ZoneInfo {
    ZoneInfo { start, capacity, write_pointer: start, state: ZoneState::Empty }
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
