//! The zone table against a model that states the rules one by one, and looks at all zones for each.

use super::*;
use crate::region::Region;
use proptest::collection::vec;
use proptest::prelude::*;

const ZONE: u64 = 8;
const CAPACITY: u64 = 6;
const ZONES: u32 = 5;

#[derive(Clone, Debug)]
enum Command {
    Write { zone: u32, ahead: i64, sectors: u32 },
    Append { zone: u32, sectors: u32 },
    Act { zone: u32, action: ZoneAction },
    Fail { zone: u32, state: ZoneState },
}

/// The rules, as sentences of the specification: each looks at all zones.
struct Model {
    limits: ZoneLimits,
    zones: Vec<(u64, ZoneState)>,
}

impl Model {
    fn count(&self, is: fn(ZoneState) -> bool) -> u32 {
        self.zones.iter().filter(|(_, state)| is(*state)).count() as u32
    }

    /// "Zone resources": what opening a zone needs.
    fn open(&mut self, zone: usize, state: ZoneState) -> Result<(), ZoneStatus> {
        use ZoneState::{Closed, Empty, ExplicitlyOpened, ImplicitlyOpened};
        let open = |state| matches!(state, ImplicitlyOpened | ExplicitlyOpened);
        let active = |state| matches!(state, ImplicitlyOpened | ExplicitlyOpened | Closed);
        let ZoneLimits { max_open, max_active, .. } = self.limits;
        let before = self.zones[zone].1;
        if before == Empty && max_active > 0 && self.count(active) >= max_active {
            return Err(ZoneStatus::TooManyActive);
        }
        if matches!(before, Empty | Closed) && max_open > 0 && self.count(open) >= max_open {
            let implicit = self.zones.iter().position(|(_, state)| *state == ImplicitlyOpened);
            self.zones[implicit.ok_or(ZoneStatus::TooManyOpen)?].1 = Closed;
        }
        self.zones[zone].1 = state;
        Ok(())
    }

    fn write(&mut self, zone: usize, at: u64, sectors: u64) -> Result<(), ZoneStatus> {
        use ZoneState::{ExplicitlyOpened, Full, ImplicitlyOpened, Offline, ReadOnly};
        let (written, state) = self.zones[zone];
        match state {
            Full => return Err(ZoneStatus::Full),
            ReadOnly => return Err(ZoneStatus::ReadOnly),
            Offline => return Err(ZoneStatus::Offline),
            _ if at + sectors > CAPACITY => return Err(ZoneStatus::BoundaryError),
            _ if at != written => return Err(ZoneStatus::NotAtWritePointer),
            _ if !sectors.is_multiple_of(self.limits.write_sectors.max(1).into()) => {
                return Err(ZoneStatus::Granularity);
            }
            ExplicitlyOpened | ImplicitlyOpened => {}
            _ => self.open(zone, ImplicitlyOpened)?,
        }
        self.zones[zone].0 += sectors;
        if self.zones[zone].0 == CAPACITY {
            self.zones[zone].1 = Full;
        }
        Ok(())
    }

    fn act(&mut self, zone: usize, action: ZoneAction) -> Result<(), ZoneStatus> {
        use ZoneAction::{Close, Finish, Open, Reset};
        use ZoneState::{
            Closed, Empty, ExplicitlyOpened, Full, ImplicitlyOpened, Offline, ReadOnly,
        };
        let state = self.zones[zone].1;
        let after = match (state, action) {
            (ReadOnly | Offline, _) => return Err(ZoneStatus::InvalidTransition),
            (Empty | ImplicitlyOpened | ExplicitlyOpened | Closed, Open) => {
                return self.open(zone, ExplicitlyOpened);
            }
            (ImplicitlyOpened | ExplicitlyOpened | Closed, Close) => Closed,
            (Full, Open) | (Empty | Full, Close) => return Err(ZoneStatus::InvalidTransition),
            (_, Finish) => Full,
            (_, Reset) => Empty,
        };
        let written = if after == Empty { 0 } else { self.zones[zone].0 };
        self.zones[zone] = (written, after);
        Ok(())
    }
}

fn command() -> impl Strategy<Value = Command> {
    let action = prop_oneof![
        Just(ZoneAction::Open),
        Just(ZoneAction::Close),
        Just(ZoneAction::Finish),
        Just(ZoneAction::Reset)
    ];
    let failed = prop_oneof![Just(ZoneState::ReadOnly), Just(ZoneState::Offline)];
    let ahead = prop_oneof![8 => Just(0_i64), 1 => -2..3_i64];
    prop_oneof![
        8 => (0..ZONES, ahead, 1..5_u32)
            .prop_map(|(zone, ahead, sectors)| Command::Write { zone, ahead, sectors }),
        4 => (0..ZONES, 1..5_u32).prop_map(|(zone, sectors)| Command::Append { zone, sectors }),
        8 => (0..ZONES, action).prop_map(|(zone, action)| Command::Act { zone, action }),
        1 => (0..ZONES, failed).prop_map(|(zone, state)| Command::Fail { zone, state }),
    ]
}

fn table(limits: ZoneLimits) -> ZoneTable {
    let zones = Region::new(16..16 + u64::from(ZONES) * ZONE, RegionKind::Zones(limits));
    let regions = Box::new([Region::new(0..16, RegionKind::Random), zones]);
    ZoneTable::of(&DeviceCaps { sectors: 64, regions, ..DeviceCaps::default() })
}

proptest! {
    /// Every command has the status and the effect that the rules give it.
    #[test]
    fn the_table_is_the_state_machine(
        commands in vec(command(), 1..120),
        max_open in 0..4_u32,
        more in 0..3_u32,
        write_sectors in prop_oneof![4 => Just(1_u32), 1 => Just(2)],
    ) {
        let max_active = if max_open == 0 { 0 } else { max_open + more };
        let limits = ZoneLimits {
            zone_sectors: ZONE, capacity: CAPACITY, max_open, max_active, append: true, write_sectors,
        };
        let mut table = table(limits);
        let mut model = Model { limits, zones: vec![(0, ZoneState::Empty); ZONES as usize] };
        for command in commands {
            let (zone, expected, got) = match command {
                Command::Write { zone, ahead, sectors } => {
                    let at = model.zones[zone as usize].0.saturating_add_signed(ahead);
                    let lba = Lba(16 + u64::from(zone) * ZONE + at);
                    let got = table.write(ZoneId(zone), Some(lba), sectors).map(drop);
                    (zone, model.write(zone as usize, at, sectors.into()), got)
                }
                Command::Append { zone, sectors } => {
                    let at = model.zones[zone as usize].0;
                    let got = table.write(ZoneId(zone), None, sectors).map(drop);
                    (zone, model.write(zone as usize, at, sectors.into()), got)
                }
                Command::Act { zone, action } => {
                    (zone, model.act(zone as usize, action), table.act(ZoneId(zone), action))
                }
                Command::Fail { zone, state } => {
                    model.zones[zone as usize].1 = state;
                    (zone, Ok(()), table.fail(ZoneId(zone), state))
                }
            };
            prop_assert_eq!(got, expected.map_err(|status| BlockError::Zone { zone, status }));
            let infos = table.infos().map(|info| (info.written(), info.state));
            prop_assert_eq!(infos.collect::<Vec<_>>(), model.zones.clone());
        }
    }
}

/// Zones have addresses, a report begins with the zone of its address, and offline zones are not read.
#[test]
fn zones_are_found_by_address() {
    let limits = ZoneLimits { zone_sectors: ZONE, capacity: CAPACITY, ..ZoneLimits::default() };
    let mut table = table(limits);
    let found = [0, 15, 16, 23, 24, 55, 56].map(|lba| table.at(Lba(lba)).map(|zone| zone.0));
    assert_eq!(found, [None, None, Some(0), Some(0), Some(1), Some(4), None]);
    let starts = |lba, count| {
        table.report(Lba(lba), count).iter().map(|info| info.start.0).collect::<Vec<_>>()
    };
    assert_eq!(starts(0, 2), [16, 24]);
    assert_eq!(starts(25, 10), [24, 32, 40, 48]);
    assert_eq!(starts(60, 10), []);
    let zone = ZoneId(2);
    table.fail(zone, ZoneState::Offline).expect("a zone");
    let offline = Err(BlockError::Zone { zone: 2, status: ZoneStatus::Offline });
    assert_eq!(table.check_read(Lba(30), 3), offline);
    assert_eq!(table.check_read(Lba(0), 64), offline);
    assert_eq!(table.check_read(Lba(40), 24), Ok(()));
    assert_eq!(table.check_read(Lba(16), 16), Ok(()));
    let nowhere = BlockError::Zone { zone: 9, status: ZoneStatus::NoSuchZone };
    assert_eq!(table.info(ZoneId(9)), Err(nowhere));
}

/// A power cut closes zones, keeps finished ones full, and gives back what open zones take.
#[test]
fn power_cuts_close_zones() {
    let limits = ZoneLimits {
        zone_sectors: ZONE,
        capacity: CAPACITY,
        max_open: 2,
        max_active: 3,
        ..ZoneLimits::default()
    };
    let mut table = table(limits);
    let start = |zone: u32| Lba(16 + u64::from(zone) * ZONE);
    table.write(ZoneId(0), None, 3).expect("room");
    table.act(ZoneId(1), ZoneAction::Open).expect("room");
    table.write(ZoneId(2), None, 2).expect("room");
    table.act(ZoneId(2), ZoneAction::Finish).expect("active");
    table.write(ZoneId(3), None, 6).expect("room");
    for (zone, kept) in [(0, 2), (1, 0), (2, 2), (3, 4)] {
        table.power_cut(ZoneId(zone), start(zone).plus(kept)).expect("a zone");
    }
    let states: Vec<_> = table.infos().map(|info| info.state).collect();
    use ZoneState::{Closed, Empty, Full};
    assert_eq!(states, [Closed, Empty, Full, Closed, Empty]);
    table.act(ZoneId(1), ZoneAction::Open).expect("the third active zone");
    let refused = table.act(ZoneId(4), ZoneAction::Open);
    assert_eq!(refused, Err(BlockError::Zone { zone: 4, status: ZoneStatus::TooManyActive }));
}

/// Names and codes are those of the specification; two statuses share one, as they do there.
#[test]
fn statuses_have_codes() {
    let codes: BTreeSet<_> = ZoneStatus::ALL.into_iter().map(ZoneStatus::code).collect();
    assert_eq!(codes.len(), ZoneStatus::ALL.len() - 1);
    let shown = ZoneStatus::NotAtWritePointer.to_string();
    assert_eq!(shown, "Zone Invalid Write (0x1bc): a write away from the write pointer");
}
