//! Migrations and upcalls of a device with regions of its own.

use super::*;
use crate::caps::UpcallSignal;

/// A host region and the region that the device moves its data to, which a gap separates.
fn caps() -> DeviceCaps {
    let regions = [(0..16, RegionKind::Append), (32..48, RegionKind::DeviceOwned { of: 0 })];
    DeviceCaps { raises_attention: true, discard_sectors: 1, ..with(&regions) }
}

/// A device with durable data at 0..8.
fn filled() -> FakeDevice {
    let mut device = device(caps());
    act(&mut device, write(0, 8)).unwrap();
    act(&mut device, Bio::flush()).unwrap();
    device
}

fn fetch(device: &mut FakeDevice, most: u32) -> Result<Reply, BlockError> {
    act(device, Bio::new(Op::FetchUpcall, Lba(0), most))
}

fn complete(device: &mut FakeDevice, id: u64) -> Result<Reply, BlockError> {
    act(device, Bio::new(Op::CompleteUpcall(id), Lba(0), 0))
}

fn pairs(moves: &[(u64, u64)]) -> Vec<(Lba, Lba)> {
    moves.iter().map(|&(old, new)| (Lba(old), Lba(new))).collect()
}

fn upcall(id: u64, moves: &[(u64, u64)]) -> Result<Reply, BlockError> {
    Ok(Reply::Upcall(id, pairs(moves)))
}

/// What the host reads of some sectors.
fn contents<const N: usize>(device: &mut FakeDevice, lbas: [u64; N]) -> [u64; N] {
    lbas.map(|lba| match act(device, Bio::read(Lba(lba), 1)) {
        Ok(Reply::Data(payload)) => match payload.sector(0) {
            SectorData::Tag(tag) => tag.bits(),
            other => panic!("{other:?} is no tag"),
        },
        other => panic!("a read brought {other:?}"),
    })
}

#[track_caller]
fn assert_region(
    result: Result<impl std::fmt::Debug + PartialEq, BlockError>,
    lba: u64,
    what: &'static str,
) {
    assert_eq!(result.err(), Some(BlockError::Region { lba: Lba(lba), what }));
}

/// A migration is flagged until it is fetched, and readable at both addresses until it is completed.
#[test]
fn migrations_are_fetched_and_completed() {
    let mut device = filled();
    assert_eq!((device.attention(), fetch(&mut device, 9)), (Attention::NONE, Ok(Reply::None)));
    device.migrate(&pairs(&[(3, 33)])).unwrap();
    assert_eq!(device.attention(), Attention::UPCALL);
    assert_eq!(fetch(&mut device, 9), upcall(1, &[(3, 33)]));
    assert_eq!(device.attention(), Attention::NONE);
    assert_eq!(contents(&mut device, [3, 33]), [103, 103]);
    assert_eq!(complete(&mut device, 1), Ok(Reply::None));
    assert_eq!(contents(&mut device, [3, 33]), [0, 103]);
    let reads = act(&mut device, Bio::read(Lba(2), 3));
    let tags = Payload::Tags([102, 0, 104].map(Tag::new).into());
    assert_eq!(reads, Ok(Reply::Data(tags)));
}

/// A batch is completed by its identity, in any order, once, and not before it was fetched.
#[test]
fn completions_are_by_identity() {
    let mut device = filled();
    let refused = Err(BlockError::Malformed("no fetched upcall has this id"));
    device.migrate(&pairs(&[(1, 41), (2, 42)])).unwrap();
    assert_eq!(complete(&mut device, 1), refused);
    assert_eq!(fetch(&mut device, 1), upcall(1, &[(1, 41)]), "no more records than wanted");
    assert_eq!(device.attention(), Attention::UPCALL);
    assert_eq!(fetch(&mut device, 1), upcall(2, &[(2, 42)]));
    assert_eq!(complete(&mut device, 2), Ok(Reply::None));
    assert_eq!(contents(&mut device, [1, 41, 2, 42]), [101, 101, 0, 102]);
    assert_eq!(complete(&mut device, 2), refused);
    assert_eq!(complete(&mut device, 7), refused);
    assert_eq!(complete(&mut device, 1), Ok(Reply::None));
    assert_eq!(contents(&mut device, [1, 41]), [0, 101]);
    assert_eq!(fetch(&mut device, 0), Err(BlockError::Malformed("a fetch of no records")));
}

/// Data moved twice read the same at all three addresses, whichever record is completed first.
#[test]
fn moved_data_are_moved_on() {
    for (first, second, between) in [(1, 2, [0, 101, 101]), (2, 1, [101, 0, 101])] {
        let mut device = filled();
        device.migrate(&pairs(&[(1, 33)])).unwrap();
        assert_eq!(fetch(&mut device, 9), upcall(1, &[(1, 33)]));
        device.migrate(&pairs(&[(33, 40)])).unwrap();
        assert_eq!(fetch(&mut device, 9), upcall(2, &[(33, 40)]));
        assert_eq!(contents(&mut device, [1, 33, 40]), [101, 101, 101]);
        complete(&mut device, first).unwrap();
        assert_eq!(contents(&mut device, [1, 33, 40]), between);
        complete(&mut device, second).unwrap();
        assert_eq!(contents(&mut device, [1, 33, 40]), [0, 0, 101]);
    }
}

/// Before the host has heard of a move, a discard at the new address is of what was there before; at the old address it
/// reaches the data. After a power cut it may have heard of all that there is.
#[test]
fn discards_of_what_is_not_known_reach_nothing() {
    let mut device = filled();
    device.migrate(&pairs(&[(3, 33), (4, 34)])).unwrap();
    act(&mut device, Bio::discard(Lba(32), 8)).unwrap();
    assert_eq!(contents(&mut device, [3, 33, 4, 34]), [103, 103, 104, 104]);
    act(&mut device, Bio::discard(Lba(3), 1)).unwrap();
    assert_eq!(contents(&mut device, [3, 33]), [0, 0]);
    assert_eq!(fetch(&mut device, 9), upcall(1, &[(3, 33), (4, 34)]));
    device.cut_power(&mut Stream::new(1, "power"));
    act(&mut device, Bio::discard(Lba(34), 1)).unwrap();
    assert_eq!(contents(&mut device, [4, 34]), [0, 0]);
}

/// Who waits for an interrupt hears of migrations that there are, and of those that come.
#[test]
fn interrupts_end_with_a_migration() {
    let caps =
        DeviceCaps { upcall_signal: UpcallSignal::Interrupt, raises_attention: false, ..caps() };
    let mut device = device(caps);
    act(&mut device, write(0, 8)).unwrap();
    act(&mut device, Bio::flush()).unwrap();
    let wait = || Bio::new(Op::AwaitUpcall, Lba(0), 0);
    assert_eq!(device.submit(Nanos(5), wait(), Token(7)), Submit::Pending);
    assert_eq!(device.next_event(), None);
    device.migrate(&pairs(&[(3, 33)])).unwrap();
    assert_eq!(device.next_event(), Some(Nanos(5)));
    let mut done = Vec::new();
    device.advance(Nanos(6), &mut done);
    assert_eq!(done, [Completion { token: Token(7), done: Done::ok(Nanos(6)) }]);
    assert_eq!(act(&mut device, wait()), Ok(Reply::None), "one waits to be fetched");
}

/// A discard at the old address reaches the moved data, and so does one at the new address.
#[test]
fn discards_reach_moved_data() {
    for at in [3, 33] {
        let mut device = filled();
        device.migrate(&pairs(&[(3, 33)])).unwrap();
        assert_eq!(fetch(&mut device, 9), upcall(1, &[(3, 33)]));
        act(&mut device, Bio::discard(Lba(at), 1)).unwrap();
        assert_eq!(contents(&mut device, [3, 33]), [0, 0]);
        act(&mut device, Bio::flush()).unwrap();
        assert_eq!(device.durable(Lba(33)), SectorData::Tag(Tag::ZERO));
    }
}

/// An address that an uncompleted migration names is not written, by host or device.
#[test]
fn named_addresses_are_not_reused() {
    let mut device = filled();
    device.migrate(&pairs(&[(3, 33)])).unwrap();
    act(&mut device, Bio::discard(Lba(3), 1)).unwrap();
    act(&mut device, Bio::flush()).unwrap();
    let moved = "a write to an address whose migration is not completed";
    assert_region(act(&mut device, write(3, 1)), 3, moved);
    let used = "a migration to an address in use";
    assert_region(device.migrate(&pairs(&[(4, 33)])), 33, used);
    assert_eq!(fetch(&mut device, 9), upcall(1, &[(3, 33)]));
    assert_region(act(&mut device, write(3, 1)), 3, moved);
    complete(&mut device, 1).unwrap();
    assert_eq!(act(&mut device, write(3, 1)), Ok(Reply::None));
    assert_eq!(device.migrate(&pairs(&[(4, 33)])), Ok(()));
}

/// The device moves what its regions allow, and only what is durable; the host does not write there.
#[test]
fn impossible_migrations_are_refused() {
    let mut device = filled();
    act(&mut device, write(9, 1)).unwrap();
    let foreign = "a migration to a region that the device does not own";
    assert_region(device.migrate(&pairs(&[(1, 15)])), 15, foreign);
    let source = "a migration of a sector that the device may not move";
    assert_region(device.migrate(&pairs(&[(20, 33)])), 20, source);
    let empty = "a migration of a sector without durable data";
    assert_region(device.migrate(&pairs(&[(9, 33)])), 9, empty);
    assert_region(device.migrate(&pairs(&[(15, 33)])), 15, empty);
    assert_eq!(device.attention(), Attention::NONE);
    assert_refused(caps(), write(33, 1), "writes to a device-owned region");
}

/// With a collector the device moves data as the host writes, its own too, and never loses any.
#[test]
fn collectors_move_data() {
    let mut device = device(caps()).with_collector(2, 1);
    act(&mut device, write(0, 2)).unwrap();
    assert_eq!(device.attention(), Attention::NONE, "nothing was durable");
    act(&mut device, Bio::flush()).unwrap();
    act(&mut device, write(2, 1)).unwrap();
    assert_eq!(device.attention(), Attention::NONE, "not due");
    for lba in 3..8 {
        act(&mut device, write(lba, 1)).unwrap();
    }
    assert_eq!(fetch(&mut device, 9), upcall(1, &[(0, 32), (1, 33), (32, 34)]));
    assert_eq!(contents(&mut device, [0, 1, 2, 32, 33, 34]), [100, 101, 102, 100, 101, 100]);
    complete(&mut device, 1).unwrap();
    assert_eq!(contents(&mut device, [0, 1, 2, 32, 33, 34]), [0, 0, 102, 0, 101, 100]);
}

/// A full region of the device's own ends migrations, until the host completes or discards some.
#[test]
fn collectors_need_free_addresses() {
    let regions = [(0..16, RegionKind::Append), (32..34, RegionKind::DeviceOwned { of: 0 })];
    let caps = DeviceCaps { regions: with(&regions).regions, ..caps() };
    let mut device = device(caps).with_collector(1, 8);
    act(&mut device, write(0, 8)).unwrap();
    act(&mut device, Bio::flush()).unwrap();
    act(&mut device, write(8, 1)).unwrap();
    assert_eq!(fetch(&mut device, 9), upcall(1, &[(0, 32), (1, 33)]));
    complete(&mut device, 1).unwrap();
    act(&mut device, write(9, 1)).unwrap();
    assert_eq!(fetch(&mut device, 9), Ok(Reply::None));
    act(&mut device, Bio::discard(Lba(33), 1)).unwrap();
    act(&mut device, Bio::flush()).unwrap();
    act(&mut device, write(10, 1)).unwrap();
    assert_eq!(fetch(&mut device, 9), upcall(2, &[(2, 33)]));
}
