//! Every refusal and every served path of the fake device.

use super::*;
use crate::bio::{Flags, FlushScope, Owner, Placement};
use crate::tag::Tag;
use crate::zone::{ZoneInfo, ZoneLimits};

const ZONE: ZoneLimits =
    ZoneLimits { zone_sectors: 8, capacity: 6, max_open: 2, max_active: 3, append: true };

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

fn zoned() -> FakeDevice {
    FakeDevice::new(DeviceCaps { zones: Some(ZONE), ..plain() })
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
    let refused = act(&mut FakeDevice::new(caps), bio);
    assert_eq!(refused, Err(BlockError::Unsupported(lacks)));
}

#[track_caller]
fn assert_rule(result: Result<Reply, BlockError>, zone: u32, what: &'static str) {
    assert_eq!(result, Err(BlockError::Zone { zone, what }));
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
    let caps = DeviceCaps { zones: Some(no_append), ..plain() };
    assert_refused(caps, append(0, 1), "zone append");
    let caps = DeviceCaps { random_regions: vec![0..8, 40..48], ..plain() };
    assert_refused(caps, write(7, 2), "writes outside the random regions");
    let outside = FakeDevice::new(plain()).migrate(&[(Lba(0), Lba(1))]);
    let lacks = "migration outside the device's own regions";
    assert_eq!(outside, Err(BlockError::Unsupported(lacks)));
    let failed = FakeDevice::new(plain()).fail_zone(ZoneId(0), ZoneState::Offline);
    assert_eq!(failed, Err(BlockError::Unsupported("zones")));
}

/// Bios that contradict themselves or the device's limits are told so.
#[test]
fn malformed_bios_are_refused() {
    let caps = DeviceCaps { discard_sectors: 4, placement_handles: 2, ..plain() };
    let mut device = FakeDevice::new(DeviceCaps { zones: Some(ZONE), ..caps });
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
    let mut device = FakeDevice::new(DeviceCaps { discard_sectors: 1, ..plain() });
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
        assert_rule(act(&mut device, append(zone, 1)), zone, "no such zone");
        assert_rule(manage(&mut device, zone, ZoneAction::Reset), zone, "no such zone");
    }
}

/// What the capabilities offer is served.
#[test]
fn what_is_offered_is_served() {
    let caps = DeviceCaps {
        fua: Fua::Honoured,
        discard_sectors: 4,
        placement_handles: 2,
        random_regions: vec![0..32, 40..48],
        ..plain()
    };
    let mut device = FakeDevice::new(caps);
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
    let mut device = FakeDevice::new(DeviceCaps { sectors: 62, discard_sectors: 4, ..plain() });
    assert_eq!(act(&mut device, Bio::discard(Lba(60), 2)), Ok(Reply::None));
}

/// A hint on a device without placement handles means nothing.
#[test]
fn hints_are_ignored_without_handles() {
    let mut device = FakeDevice::new(plain());
    let hinted = Bio { placement: Placement(9), ..write(0, 1) };
    assert_eq!(act(&mut device, hinted), Ok(Reply::None));
}

/// A flush scope that the device does not know is widened, never refused.
#[test]
fn narrow_flushes_are_widened() {
    let owner = Some(Owner { file: 1, generation: 0, thread: 0, core: 0 });
    for (scoped_flush, other) in [(false, Tag::new(101)), (true, Tag::ZERO)] {
        let mut device = FakeDevice::new(DeviceCaps { scoped_flush, ..plain() });
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
    assert_rule(act(&mut device, write(8, 1)), 1, "a write away from the write pointer");
    assert_rule(act(&mut device, write(11, 1)), 1, "a write away from the write pointer");
    assert_rule(act(&mut device, write(10, 5)), 1, "a write past the zone's capacity");
    assert_eq!(act(&mut device, append(1, 3)), Ok(Reply::Appended(Lba(10))));
    let info = report(&mut device, 1);
    assert_eq!((info.write_pointer, info.state), (Lba(13), ZoneState::ImplicitlyOpened));
    assert_eq!(act(&mut device, append(1, 1)), Ok(Reply::Appended(Lba(13))));
    assert_eq!(report(&mut device, 1).state, ZoneState::Full);
    assert_rule(act(&mut device, append(1, 1)), 1, "the zone is full");
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
/// of active zones gives way to nobody.
#[test]
fn limits_hold() {
    let mut device = zoned();
    for zone in 0..3 {
        act(&mut device, append(zone, 1)).unwrap();
    }
    assert_eq!(report(&mut device, 0).state, ZoneState::Closed);
    assert_rule(act(&mut device, append(3, 1)), 3, "too many active zones");
    manage(&mut device, 1, ZoneAction::Open).unwrap();
    manage(&mut device, 2, ZoneAction::Open).unwrap();
    assert_rule(act(&mut device, append(0, 1)), 0, "too many open zones");
    manage(&mut device, 1, ZoneAction::Finish).unwrap();
    assert_eq!(act(&mut device, append(0, 1)), Ok(Reply::Appended(Lba(1))));
    assert_eq!(act(&mut device, append(3, 1)), Ok(Reply::Appended(Lba(24))));
}

/// No limit means no limit.
#[test]
fn zero_limits_nothing() {
    let limits = ZoneLimits { max_open: 0, max_active: 0, ..ZONE };
    let mut device = FakeDevice::new(DeviceCaps { zones: Some(limits), ..plain() });
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
    assert_rule(act(&mut device, append(0, 1)), 0, "the zone is read-only");
    assert_rule(manage(&mut device, 0, ZoneAction::Reset), 0, "the zone is read-only");
    assert!(act(&mut device, Bio::read(Lba(0), 1)).is_ok());
    device.fail_zone(ZoneId(0), ZoneState::Offline).unwrap();
    assert_rule(act(&mut device, append(0, 1)), 0, "the zone is offline");
    assert_rule(manage(&mut device, 0, ZoneAction::Open), 0, "the zone is offline");
    assert_rule(act(&mut device, Bio::read(Lba(7), 2)), 0, "the zone is offline");
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

/// A random region on a zoned device is free of the zones' rules.
#[test]
fn random_regions_need_no_order() {
    let caps = DeviceCaps { zones: Some(ZONE), random_regions: vec![0..16, 56..64], ..plain() };
    let mut device = FakeDevice::new(caps);
    for lba in [9, 3, 3] {
        assert_eq!(act(&mut device, write(lba, 2)), Ok(Reply::None));
    }
    assert_rule(act(&mut device, write(17, 1)), 2, "a write away from the write pointer");
}

/// A migration is announced on any completion until it is fetched, and readable at both addresses
/// until it is completed.
#[test]
fn migrations_are_told_and_completed() {
    let caps = DeviceCaps { device_owned: vec![0..8, 32..40], ..plain() };
    let mut device = FakeDevice::new(caps);
    let announced = |device: &mut FakeDevice| match device.submit(
        Nanos::ZERO,
        Bio::read(Lba(0), 1),
        Token(0),
    ) {
        Submit::Done(done) => done.upcall_pending,
        Submit::Pending => false,
    };
    let fetch = Bio::new(Op::FetchUpcall, Lba(0), 0);
    let complete = |id| Bio::new(Op::CompleteUpcall(id), Lba(0), 0);
    act(&mut device, write(3, 1)).unwrap();
    assert!(!announced(&mut device));
    assert_eq!(act(&mut device, fetch.clone()), Ok(Reply::None));
    let moves = vec![(Lba(3), Lba(33))];
    device.migrate(&moves).unwrap();
    assert!(announced(&mut device));
    assert!(matches!(act(&mut device, complete(1)), Err(BlockError::Malformed(_))));
    assert_eq!(act(&mut device, fetch), Ok(Reply::Upcall(1, moves)));
    assert!(!announced(&mut device));
    let data = SectorData::Tag(Tag::new(103));
    assert_eq!((device.current(Lba(3)), device.current(Lba(33))), (data.clone(), data.clone()));
    assert_eq!(act(&mut device, complete(1)), Ok(Reply::None));
    let zero = SectorData::Tag(Tag::ZERO);
    assert_eq!((device.current(Lba(3)), device.current(Lba(33))), (zero, data));
    assert!(matches!(act(&mut device, complete(1)), Err(BlockError::Malformed(_))));
}
