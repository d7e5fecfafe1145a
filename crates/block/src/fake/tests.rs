//! Every refusal and every served path of the fake device.

mod coupled;
mod power;
mod superblocks;

use super::*;
use crate::bio::{Flags, FlushScope, Owner, Placement};
use crate::tag::Tag;
use crate::zone::{ZoneInfo, ZoneLimits, ZoneStatus};

const ZONE: ZoneLimits = ZoneLimits {
    zone_sectors: 8,
    capacity: 6,
    max_open: 2,
    max_active: 3,
    append: true,
    write_sectors: 1,
};

/// What the plainest device has.
fn plain() -> DeviceCaps {
    DeviceCaps {
        sectors: 64,
        max_sectors: 16,
        keeps_content: true,
        volatile_cache: true,
        ..DeviceCaps::default()
    }
}

/// A plain device with these regions.
fn with(regions: &[(Range<u64>, RegionKind)]) -> DeviceCaps {
    let regions = regions.iter().map(|(range, kind)| Region::new(range.clone(), *kind));
    DeviceCaps { regions: regions.collect(), ..plain() }
}

fn device(caps: DeviceCaps) -> FakeDevice {
    FakeDevice::new(caps).expect("the regions fit")
}

fn zoned() -> FakeDevice {
    device(with(&[(0..64, RegionKind::Zones(ZONE))]))
}

fn act(device: &mut FakeDevice, bio: Bio) -> Result<Reply, BlockError> {
    match device.submit(Nanos::ZERO, bio, Token(0)) {
        Submit::Done(done) => done.result,
        Submit::Pending => panic!("the fake device answers at once"),
    }
}

fn write(lba: u64, sectors: u32) -> Bio {
    Bio::write(Lba(lba), sectors, Payload::Run(Tag::new(lba.wrapping_add(100))))
}

fn append(zone: u32, sectors: u32) -> Bio {
    Bio { op: Op::ZoneAppend(ZoneId(zone)), ..write(0, sectors) }
}

fn manage(device: &mut FakeDevice, zone: u32, action: ZoneAction) -> Result<Reply, BlockError> {
    act(device, Bio::new(Op::Zone(ZoneId(zone), action), Lba(0), 0))
}

fn report(device: &mut FakeDevice, zone: u32) -> ZoneInfo {
    match act(device, Bio::new(Op::ZoneReport, Lba(u64::from(zone) * 8), 1)) {
        Ok(Reply::Zones(zones)) => zones[0],
        other => panic!("a report brought {other:?}"),
    }
}

#[track_caller]
fn assert_refused(caps: DeviceCaps, bio: Bio, lacks: &'static str) {
    let refused = act(&mut device(caps), bio);
    assert_eq!(refused, Err(BlockError::Unsupported(lacks)));
}

#[track_caller]
fn assert_rule(result: Result<Reply, BlockError>, zone: u32, status: ZoneStatus) {
    assert_eq!(result, Err(BlockError::Zone { zone, status }));
}

/// Whatever a plain device lacks it refuses by name.
#[test]
fn what_is_lacking_is_refused() {
    let manage = Op::Zone(ZoneId(0), ZoneAction::Open);
    assert_refused(plain(), write(0, 1).with(Flags::FUA), "FUA");
    assert_refused(plain(), Bio::discard(Lba(0), 1), "discard");
    assert_refused(plain(), append(0, 1), "zones");
    assert_refused(plain(), Bio::new(manage, Lba(0), 0), "zones");
    assert_refused(plain(), Bio::new(Op::ZoneReport, Lba(0), 1), "zones");
    assert_refused(plain(), Bio::new(Op::FetchUpcall, Lba(0), 0), "upcalls");
    assert_refused(plain(), Bio::new(Op::CompleteUpcall(1), Lba(0), 0), "upcalls");
    let no_append = ZoneLimits { append: false, ..ZONE };
    let caps = with(&[(0..64, RegionKind::Zones(no_append))]);
    assert_refused(caps, append(0, 1), "zone append");
    let failed = device(plain()).fail_zone(ZoneId(0), ZoneState::Offline);
    assert_eq!(failed, Err(BlockError::Unsupported("zones")));
}

/// Bios that contradict themselves or the device's limits are refused.
#[test]
fn malformed_bios_are_refused() {
    let caps = DeviceCaps { discard_sectors: 4, placement_handles: 2, ..plain() };
    let mut device =
        device(DeviceCaps { regions: with(&[(0..64, RegionKind::Zones(ZONE))]).regions, ..caps });
    let tags = |sectors: usize| Payload::Tags(vec![Tag::ZERO; sectors].into());
    let sectors = Payload::Sectors(vec![SectorData::Absent; 3].into());
    let malformed = [
        write(0, 0),
        write(0, 17),
        append(0, 0),
        append(0, 17),
        Bio::write(Lba(0), 1, Payload::None),
        Bio::write(Lba(0), 2, tags(1)),
        Bio::write(Lba(0), 2, sectors),
        Bio { placement: Placement(3), ..write(0, 1) },
        Bio::read(Lba(0), 0),
        Bio::read(Lba(0), 17),
        Bio { payload: tags(1), ..Bio::read(Lba(0), 1) },
        Bio { payload: tags(1), ..Bio::flush() },
        Bio::new(Op::ZoneReport, Lba(0), 0),
        Bio::discard(Lba(2), 4),
        Bio::discard(Lba(4), 2),
        Bio::discard(Lba(4), 0),
    ];
    for bio in malformed {
        let result = act(&mut device, bio.clone());
        assert!(matches!(result, Err(BlockError::Malformed(_))), "{bio:?} brought {result:?}");
    }
}

/// No range reaches past the end, however large its numbers.
#[test]
fn ranges_end_with_the_device() {
    let mut device = device(DeviceCaps { discard_sectors: 1, ..plain() });
    for bio in [
        Bio::read(Lba(63), 2),
        Bio::read(Lba(u64::MAX), 1),
        write(64, 1),
        write(u64::MAX - 1, 2),
        Bio::discard(Lba(0), u32::MAX),
        Bio::discard(Lba(u64::MAX), u32::MAX),
    ] {
        let result = act(&mut device, bio.clone());
        assert!(matches!(result, Err(BlockError::OutOfRange { .. })), "{bio:?}");
    }
    let mut device = zoned();
    let beyond = act(&mut device, Bio::new(Op::ZoneReport, Lba(64), 1));
    assert!(matches!(beyond, Err(BlockError::OutOfRange { .. })));
    for zone in [8, u32::MAX] {
        assert_rule(act(&mut device, append(zone, 1)), zone, ZoneStatus::NoSuchZone);
        assert_rule(manage(&mut device, zone, ZoneAction::Reset), zone, ZoneStatus::NoSuchZone);
    }
}

/// What the capabilities offer is served.
#[test]
fn what_is_offered_is_served() {
    let caps = DeviceCaps {
        fua: Fua::Honoured,
        discard_sectors: 4,
        placement_handles: 2,
        ..with(&[(0..32, RegionKind::Random), (40..48, RegionKind::Random)])
    };
    let mut device = device(caps);
    let hinted = Bio { placement: Placement(2), ..write(4, 2) };
    assert_eq!(act(&mut device, hinted.with(Flags::FUA)), Ok(Reply::None));
    assert_eq!(device.durable(Lba(5)), SectorData::Tag(Tag::new(105)));
    let read = act(&mut device, Bio::read(Lba(5), 1));
    assert_eq!(read, Ok(Reply::Data(Payload::Run(Tag::new(105)))));
    assert_eq!(act(&mut device, Bio::discard(Lba(4), 4)), Ok(Reply::None));
    assert_eq!(device.current(Lba(5)), SectorData::Tag(Tag::ZERO));
}

/// The device's end closes the last granule of a discard, however short it is.
#[test]
fn discards_reach_an_odd_end() {
    let mut device = device(DeviceCaps { sectors: 62, discard_sectors: 4, ..plain() });
    assert_eq!(act(&mut device, Bio::discard(Lba(60), 2)), Ok(Reply::None));
}

/// A hint on a device without placement handles means nothing.
#[test]
fn hints_are_ignored_without_handles() {
    let mut device = device(plain());
    let hinted = Bio { placement: Placement(9), ..write(0, 1) };
    assert_eq!(act(&mut device, hinted), Ok(Reply::None));
}

/// A flush scope that the device does not know is widened, never refused.
#[test]
fn narrow_flushes_are_widened() {
    let owner = Some(Owner { file: 1, generation: 0, thread: 0, core: 0 });
    for (scoped_flush, other) in [(false, Tag::new(101)), (true, Tag::ZERO)] {
        let mut device = device(DeviceCaps { scoped_flush, ..plain() });
        act(&mut device, Bio { owner, ..write(0, 1) }).unwrap();
        act(&mut device, write(1, 1)).unwrap();
        act(&mut device, Bio { owner, scope: FlushScope::Owner, ..Bio::flush() }).unwrap();
        assert_eq!(device.durable(Lba(0)), SectorData::Tag(Tag::new(100)));
        assert_eq!(device.durable(Lba(1)), SectorData::Tag(other));
    }
}

/// A zone is written at its write pointer only, up to its capacity, and read anywhere.
#[test]
fn zones_are_written_in_order() {
    let mut device = zoned();
    assert_eq!(act(&mut device, write(8, 2)), Ok(Reply::None));
    assert_rule(act(&mut device, write(8, 1)), 1, ZoneStatus::NotAtWritePointer);
    assert_rule(act(&mut device, write(11, 1)), 1, ZoneStatus::NotAtWritePointer);
    assert_rule(act(&mut device, write(10, 5)), 1, ZoneStatus::BoundaryError);
    assert_eq!(act(&mut device, append(1, 3)), Ok(Reply::Appended(Lba(10))));
    let info = report(&mut device, 1);
    assert_eq!((info.write_pointer, info.state), (Lba(13), ZoneState::ImplicitlyOpened));
    assert_eq!(act(&mut device, append(1, 1)), Ok(Reply::Appended(Lba(13))));
    assert_eq!(report(&mut device, 1).state, ZoneState::Full);
    assert_rule(act(&mut device, append(1, 1)), 1, ZoneStatus::Full);
    let read = act(&mut device, Bio::read(Lba(9), 2));
    let tags = Payload::Tags([Tag::new(109), Tag::new(100)].into());
    assert_eq!(read, Ok(Reply::Data(tags)), "the second of the write, the first of the append");
}

/// A reset forgets the data and starts over.
#[test]
fn resets_empty_zones() {
    let mut device = zoned();
    act(&mut device, write(0, 6)).unwrap();
    act(&mut device, write(8, 1)).unwrap();
    manage(&mut device, 0, ZoneAction::Reset).unwrap();
    assert_eq!(report(&mut device, 0).write_pointer, Lba(0));
    assert_eq!(device.current(Lba(3)), SectorData::Tag(Tag::ZERO));
    assert_eq!(device.current(Lba(8)), SectorData::Tag(Tag::new(108)));
    assert_eq!(act(&mut device, write(0, 1)), Ok(Reply::None));
}

/// Each action leads from each state where the standard says.
#[test]
fn actions_change_states() {
    use ZoneAction::{Close, Finish, Open, Reset};
    use ZoneState::{Closed, Empty, ExplicitlyOpened, Full, ImplicitlyOpened};
    let preparations: [(ZoneState, &[ZoneAction], bool); 5] = [
        (Empty, &[], false),
        (ImplicitlyOpened, &[], true),
        (ExplicitlyOpened, &[Open], true),
        (Closed, &[Open, Close], false),
        (Full, &[Finish], false),
    ];
    for (before, actions, written) in preparations {
        for (action, after) in [
            (Open, (before != Full).then_some(ExplicitlyOpened)),
            (Close, (before != Full && before != Empty).then_some(Closed)),
            (Finish, Some(Full)),
            (Reset, Some(Empty)),
        ] {
            let mut device = zoned();
            actions.iter().for_each(|&action| drop(manage(&mut device, 0, action)));
            if written {
                act(&mut device, write(0, 1)).unwrap();
            }
            assert_eq!(report(&mut device, 0).state, before);
            let result = manage(&mut device, 0, action);
            assert_eq!(result.is_ok(), after.is_some(), "{action:?} of {before:?}");
            assert_eq!(report(&mut device, 0).state, after.unwrap_or(before));
        }
    }
}

/// An implicitly opened zone is closed for another; explicitly opened ones are not, and the limit
/// of active zones closes no other zone.
#[test]
fn limits_hold() {
    let mut device = zoned();
    for zone in 0..3 {
        act(&mut device, append(zone, 1)).unwrap();
    }
    assert_eq!(report(&mut device, 0).state, ZoneState::Closed);
    assert_rule(act(&mut device, append(3, 1)), 3, ZoneStatus::TooManyActive);
    manage(&mut device, 1, ZoneAction::Open).unwrap();
    manage(&mut device, 2, ZoneAction::Open).unwrap();
    assert_rule(act(&mut device, append(0, 1)), 0, ZoneStatus::TooManyOpen);
    manage(&mut device, 1, ZoneAction::Finish).unwrap();
    assert_eq!(act(&mut device, append(0, 1)), Ok(Reply::Appended(Lba(1))));
    assert_eq!(act(&mut device, append(3, 1)), Ok(Reply::Appended(Lba(24))));
}

/// No limit means no limit.
#[test]
fn zero_limits_nothing() {
    let limits = ZoneLimits { max_open: 0, max_active: 0, ..ZONE };
    let mut device = device(with(&[(0..64, RegionKind::Zones(limits))]));
    for zone in 0..8 {
        assert!(act(&mut device, append(zone, 1)).is_ok());
    }
}

/// Failed zones refuse what they cannot do.
#[test]
fn failed_zones_refuse() {
    let mut device = zoned();
    act(&mut device, write(0, 1)).unwrap();
    device.fail_zone(ZoneId(0), ZoneState::ReadOnly).unwrap();
    assert_rule(act(&mut device, append(0, 1)), 0, ZoneStatus::ReadOnly);
    assert_rule(manage(&mut device, 0, ZoneAction::Reset), 0, ZoneStatus::InvalidTransition);
    assert!(act(&mut device, Bio::read(Lba(0), 1)).is_ok());
    device.fail_zone(ZoneId(0), ZoneState::Offline).unwrap();
    assert_rule(act(&mut device, append(0, 1)), 0, ZoneStatus::Offline);
    assert_rule(manage(&mut device, 0, ZoneAction::Open), 0, ZoneStatus::InvalidTransition);
    assert_rule(act(&mut device, Bio::read(Lba(7), 2)), 0, ZoneStatus::Offline);
    assert!(act(&mut device, Bio::read(Lba(8), 1)).is_ok());
}

/// A report begins with the zone that holds the address and ends with the device.
#[test]
fn reports_cover_what_was_asked() {
    let mut device = zoned();
    match act(&mut device, Bio::new(Op::ZoneReport, Lba(43), 9)) {
        Ok(Reply::Zones(zones)) => {
            let starts: Vec<_> = zones.iter().map(|zone| zone.start.0).collect();
            assert_eq!(starts, [40, 48, 56]);
            assert!(zones.iter().all(|zone| zone.capacity == 6));
        }
        other => panic!("a report brought {other:?}"),
    }
}

/// A random region on a zoned device is free of the zones' rules, and its sectors are in no zone.
#[test]
fn random_regions_need_no_order() {
    let zones = RegionKind::Zones(ZONE);
    let random = RegionKind::Random;
    let mut device = device(with(&[(0..16, random), (16..56, zones), (56..64, random)]));
    for lba in [9, 3, 3, 60] {
        assert_eq!(act(&mut device, write(lba, 2)), Ok(Reply::None));
    }
    assert_rule(act(&mut device, write(17, 1)), 0, ZoneStatus::NotAtWritePointer);
    assert_eq!(act(&mut device, append(4, 1)), Ok(Reply::Appended(Lba(48))));
    assert_rule(act(&mut device, append(5, 1)), 5, ZoneStatus::NoSuchZone);
}

/// Zones of a second region have rules and limits of that region, and identities after the first's.
#[test]
fn zoned_regions_are_apart() {
    let few = RegionKind::Zones(ZoneLimits { zone_sectors: 4, capacity: 4, max_active: 1, ..ZONE });
    let mut device = device(with(&[(0..16, RegionKind::Zones(ZONE)), (32..48, few)]));
    assert_eq!(act(&mut device, write(32, 1)), Ok(Reply::None));
    assert_rule(act(&mut device, append(3, 1)), 3, ZoneStatus::TooManyActive);
    assert_eq!(act(&mut device, append(0, 1)), Ok(Reply::Appended(Lba(0))));
    match act(&mut device, Bio::new(Op::ZoneReport, Lba(9), 3)) {
        Ok(Reply::Zones(zones)) => {
            let starts: Vec<_> = zones.iter().map(|zone| zone.start.0).collect();
            assert_eq!(starts, [8, 32, 36], "the gap holds no zone");
        }
        other => panic!("a report brought {other:?}"),
    }
}

/// Addresses in a gap do not exist, and a write stays within its region.
#[test]
fn regions_bound_bios() {
    let random = RegionKind::Random;
    let caps = || DeviceCaps {
        discard_sectors: 1,
        ..with(&[(0..8, random), (8..16, RegionKind::Append), (40..48, random)])
    };
    let gap = "addresses outside the regions";
    assert_refused(caps(), write(16, 1), gap);
    assert_refused(caps(), Bio::read(Lba(15), 2), gap);
    assert_refused(caps(), Bio::discard(Lba(38), 4), gap);
    assert_refused(caps(), write(7, 2), "writes across regions");
    assert!(act(&mut device(caps()), Bio::read(Lba(7), 2)).is_ok(), "neighbours are read at once");
}

/// A device is not made of regions that contradict each other.
#[test]
fn wrong_regions_make_no_device() {
    let made = FakeDevice::new(with(&[(0..65, RegionKind::Random)]));
    let beyond = RegionError::Beyond { index: 0, end: 65, sectors: 64 };
    assert_eq!(made.err(), Some(beyond));
}

/// An append-only sector is written again only after a discard.
#[test]
fn appends_overwrite_nothing() {
    let caps = DeviceCaps { discard_sectors: 1, ..with(&[(0..64, RegionKind::Append)]) };
    let mut device = device(caps);
    assert_eq!(act(&mut device, write(9, 2)), Ok(Reply::None));
    assert_eq!(act(&mut device, write(2, 2)), Ok(Reply::None), "in no order");
    let overwrite = act(&mut device, write(8, 2));
    let what = "an overwrite in an append-only region";
    assert_eq!(overwrite, Err(BlockError::Region { lba: Lba(9), what }));
    assert_eq!(device.current(Lba(8)), SectorData::Tag(Tag::ZERO), "nothing of it was written");
    act(&mut device, Bio::discard(Lba(9), 1)).unwrap();
    assert_eq!(act(&mut device, write(8, 2)), Ok(Reply::None));
}

/// More addresses than sectors that may hold data: overwrites need no room, discards make some.
#[test]
fn live_sectors_are_bounded() {
    let mut device = device(DeviceCaps { live_sectors_max: 4, discard_sectors: 1, ..plain() });
    act(&mut device, write(60, 3)).unwrap();
    act(&mut device, Bio::flush()).unwrap();
    act(&mut device, write(10, 1)).unwrap();
    let what = "more live sectors than the device holds";
    let full = Err(BlockError::Region { lba: Lba(9), what });
    assert_eq!(act(&mut device, write(9, 2)), full);
    assert_eq!(act(&mut device, write(61, 2)), Ok(Reply::None));
    act(&mut device, Bio::discard(Lba(60), 1)).unwrap();
    assert_eq!(act(&mut device, write(9, 2)), Ok(Reply::None));
    let full = Err(BlockError::Region { lba: Lba(63), what });
    assert_eq!(act(&mut device, write(63, 1)), full);
}
