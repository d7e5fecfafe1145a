//! Superblocks of append-only regions.

use super::*;
use crate::caps::Superblocks;

/// Two superblocks of 8 sectors may be partly written; data move to 32..48.
fn device_with_superblocks() -> FakeDevice {
    let regions = [(0..32, RegionKind::Append), (32..48, RegionKind::DeviceOwned { of: 0 })];
    let superblocks = Some(Superblocks { sectors: 8, open_max: 2 });
    device(DeviceCaps { superblocks, discard_sectors: 1, ..with(&regions) })
}

#[track_caller]
fn assert_refused_at(device: &mut FakeDevice, lba: u64, sectors: u32, what: &'static str) {
    let refused = Err(BlockError::Region { lba: Lba(lba), what });
    assert_eq!(act(device, write(lba, sectors)), refused);
}

/// A superblock is written from its first sector on, in order, and not beyond its end.
#[test]
fn superblocks_are_written_in_order() {
    let mut device = device_with_superblocks();
    assert_refused_at(&mut device, 1, 1, "a write to a superblock that takes no more writes");
    act(&mut device, write(0, 3)).unwrap();
    assert_refused_at(&mut device, 4, 1, "a write out of order in its superblock");
    assert_refused_at(&mut device, 3, 6, "a write across superblocks");
    act(&mut device, write(3, 5)).unwrap();
    act(&mut device, write(8, 8)).unwrap();
}

/// A superblock begins anew when all in it was discarded and no migration names it, not before.
#[test]
fn superblocks_begin_anew_when_empty() {
    let mut device = device_with_superblocks();
    act(&mut device, write(0, 8)).unwrap();
    act(&mut device, Bio::flush()).unwrap();
    device.migrate(&[(Lba(7), Lba(32))]).unwrap();
    act(&mut device, Bio::discard(Lba(0), 3)).unwrap();
    let again = "a superblock that is written again and is not empty";
    assert_refused_at(&mut device, 0, 1, again);
    act(&mut device, Bio::discard(Lba(3), 4)).unwrap();
    assert_refused_at(&mut device, 0, 1, again);
    let fetched = act(&mut device, Bio::new(Op::FetchUpcall, Lba(0), 9));
    assert!(matches!(fetched, Ok(Reply::Upcall(1, _))));
    assert_refused_at(&mut device, 0, 1, again);
    act(&mut device, Bio::new(Op::CompleteUpcall(1), Lba(0), 0)).unwrap();
    act(&mut device, write(0, 1)).unwrap();
}

/// One superblock too many closes the one that was written least recently.
#[test]
fn few_superblocks_are_open() {
    let mut device = device_with_superblocks();
    for lba in [0, 8, 1, 16] {
        act(&mut device, write(lba, 1)).unwrap();
    }
    assert_refused_at(&mut device, 9, 1, "a write to a superblock that takes no more writes");
    act(&mut device, write(2, 1)).unwrap();
    act(&mut device, write(17, 1)).unwrap();
}

/// After a cut a superblock holds what was covered and a first part of the rest, and takes no more writes; what was
/// discarded may be there again.
#[test]
fn cuts_close_superblocks() {
    let (mut ends, mut undone) =
        (std::collections::BTreeSet::new(), std::collections::BTreeSet::new());
    let mut rng = Stream::new(1, "power");
    for _ in 0..200 {
        let mut device = device_with_superblocks();
        act(&mut device, write(0, 2)).unwrap();
        act(&mut device, Bio::flush()).unwrap();
        act(&mut device, Bio::discard(Lba(0), 1)).unwrap();
        for lba in 2..6 {
            act(&mut device, write(lba, 1)).unwrap();
        }
        device.cut_power(&mut rng);
        let is_there = |lba| device.durable(Lba(lba)) != SectorData::Tag(Tag::ZERO);
        let end = (2..8).find(|lba| !is_there(*lba)).unwrap_or(8);
        assert!((end..8).all(|lba| !is_there(lba)) && is_there(1), "no gaps");
        ends.insert(end);
        undone.insert(is_there(0));
        assert_refused_at(&mut device, end, 1, "a write to a superblock that takes no more writes");
    }
    assert_eq!((ends.into_iter().collect::<Vec<_>>(), undone.len()), (vec![2, 3, 4, 5, 6], 2));
}
