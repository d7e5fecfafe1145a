//! What a power cut leaves of zones and migrations.

use super::*;
use std::collections::BTreeSet;

/// Batches that were not completed come again, in order and with other identities, and their data
/// read the same at both addresses meanwhile; what was completed stays so.
#[test]
fn migrations_are_offered_again() {
    let regions = [(0..16, RegionKind::Append), (32..48, RegionKind::DeviceOwned { of: 0 })];
    let mut device = device(DeviceCaps { raises_attention: true, ..with(&regions) });
    act(&mut device, write(0, 8)).unwrap();
    act(&mut device, Bio::flush()).unwrap();
    let moves: Vec<_> = (0..5).map(|lba| (Lba(lba), Lba(lba + 32))).collect();
    device.migrate(&moves).unwrap();
    let fetch = |most| Bio::new(Op::FetchUpcall, Lba(0), most);
    let complete = |id| Bio::new(Op::CompleteUpcall(id), Lba(0), 0);
    for id in 1..=4 {
        assert_eq!(act(&mut device, fetch(1)), Ok(Reply::Upcall(id, vec![moves[id as usize - 1]])));
    }
    act(&mut device, complete(2)).unwrap();
    device.cut_power(&mut Stream::new(1, "power"));
    assert_eq!(device.attention(), Attention::UPCALL);
    let refused = Err(BlockError::Malformed("no fetched upcall has this id"));
    assert_eq!(act(&mut device, complete(1)), refused, "its identity went with the power");
    let left = [moves[0], moves[2], moves[3], moves[4]];
    assert_eq!(act(&mut device, fetch(9)), Ok(Reply::Upcall(5, left.to_vec())));
    for (old, new) in left {
        assert_eq!(device.current(old), SectorData::Tag(Tag::new(100 + old.0)));
        assert_eq!(device.durable(new), device.current(old));
    }
    assert_eq!(device.current(Lba(1)), SectorData::Tag(Tag::ZERO));
    act(&mut device, complete(5)).unwrap();
    device.cut_power(&mut Stream::new(2, "power"));
    assert_eq!(act(&mut device, fetch(9)), Ok(Reply::None));
    assert_eq!(device.durable(Lba(36)), SectorData::Tag(Tag::new(104)));
}

/// A discard of moved data that no flush covered may be undone, at both addresses alike.
#[test]
fn uncovered_discards_of_moved_data_may_be_undone() {
    let regions = [(0..16, RegionKind::Append), (32..48, RegionKind::DeviceOwned { of: 0 })];
    let mut seen = BTreeSet::new();
    let mut rng = Stream::new(1, "power");
    for _ in 0..50 {
        let mut device = device(DeviceCaps { discard_sectors: 1, ..with(&regions) });
        act(&mut device, write(0, 1)).unwrap();
        act(&mut device, Bio::flush()).unwrap();
        device.migrate(&[(Lba(0), Lba(32))]).unwrap();
        act(&mut device, Bio::discard(Lba(0), 1)).unwrap();
        device.cut_power(&mut rng);
        assert_eq!(device.current(Lba(0)), device.current(Lba(32)));
        seen.insert(device.current(Lba(0)) == SectorData::Tag(Tag::ZERO));
    }
    assert_eq!(seen.len(), 2, "both outcomes happen");
}

/// A zone keeps what was covered and a prefix of the rest; none stays open.
#[test]
fn zones_keep_a_prefix() {
    let mut ends = BTreeSet::new();
    let mut rng = Stream::new(1, "power");
    for _ in 0..200 {
        let mut device = zoned();
        act(&mut device, write(0, 2)).unwrap();
        act(&mut device, Bio::flush()).unwrap();
        for lba in 2..6 {
            act(&mut device, write(lba, 1)).unwrap();
        }
        manage(&mut device, 1, ZoneAction::Open).unwrap();
        manage(&mut device, 2, ZoneAction::Finish).unwrap();
        device.cut_power(&mut rng);
        let zone = report(&mut device, 0);
        let end = zone.write_pointer.0;
        ends.insert(end);
        for lba in 0..8 {
            let kept = SectorData::Tag(if lba < end { Tag::new(100 + lba) } else { Tag::ZERO });
            assert_eq!((device.current(Lba(lba)), device.durable(Lba(lba))), (kept.clone(), kept));
        }
        let expected = if end == 6 { ZoneState::Full } else { ZoneState::Closed };
        assert_eq!(zone.state, expected);
        assert_eq!(report(&mut device, 1).state, ZoneState::Empty);
        assert_eq!(report(&mut device, 2).state, ZoneState::Full);
    }
    assert_eq!(ends.into_iter().collect::<Vec<_>>(), [2, 3, 4, 5, 6]);
}

/// A sector that FUA made durable is in the prefix, and with it all before it.
#[test]
fn fua_covers_a_zones_prefix() {
    let regions = with(&[(0..64, RegionKind::Zones(ZONE))]).regions;
    let mut rng = Stream::new(1, "power");
    for _ in 0..50 {
        let mut device =
            device(DeviceCaps { fua: Fua::Honoured, regions: regions.clone(), ..plain() });
        act(&mut device, write(0, 1)).unwrap();
        act(&mut device, write(1, 1).with(Flags::FUA)).unwrap();
        act(&mut device, write(2, 1)).unwrap();
        device.cut_power(&mut rng);
        assert!((2..=3).contains(&report(&mut device, 0).write_pointer.0));
        assert_eq!(device.durable(Lba(0)), SectorData::Tag(Tag::new(100)));
    }
}
