//! What a coupled SSD promises its host (docs/semantics/device.md, "A coupled SSD"), each promise by itself.

use crate::coupled::driver::{
    DATA, Driver, MOVED_DATA, MOVED_NODES, NODES, SUPERBLOCK, eager, roomy,
};
use nandscape_block::{BlockDevice, BlockError, Flags, RegionKind, Reply};
use nandscape_ftl::coupled::Config;
use nandscape_ftl::{Ftl, OmittedRule};
use nandscape_media::{Action, Command, DeviceTiming, Faults, Layer, NandTiming, Resource, Span};

fn refusal(result: Result<Reply, BlockError>) -> (u64, &'static str) {
    let Err(BlockError::Region { lba, what }) = result else { panic!("{result:?}") };
    (lba.0, what)
}

const NOT_THE_END: &str = "a write that is not at the end of an open superblock";

/// The regions are those of D2FS: partitions 0, 1, 3, 4 and 7, of which the host writes 0, 1 and 4.
#[test]
fn the_address_space_has_eight_partitions() {
    let driver = Driver::new(roomy());
    let caps = driver.ftl.caps();
    assert_eq!(caps.check_regions(), Ok(()));
    assert_eq!(driver.sectors(), 8 * DATA);
    let owned = |of| RegionKind::DeviceOwned { of };
    let regions: Vec<_> = caps.regions().map(|region| (region.range.start, region.kind)).collect();
    let expected = [
        (0, RegionKind::Random),
        (DATA, RegionKind::Append),
        (MOVED_DATA, owned(1)),
        (NODES, RegionKind::Append),
        (MOVED_NODES, owned(3)),
    ];
    assert_eq!(regions, expected);
    let superblocks = caps.superblocks.expect("superblocks");
    assert_eq!((superblocks.sectors, superblocks.open_max), (SUPERBLOCK as u32, 1));
}

/// A write to another place of a superblock than its end fails as a whole, and changes nothing.
#[test]
fn superblocks_are_written_in_order() {
    let mut driver = Driver::new(eager());
    assert!(driver.put(DATA, 4).is_ok());
    for (lba, sectors) in [
        (DATA + 5, 1),
        (DATA + 3, 2),
        (DATA, 1),
        (DATA + SUPERBLOCK + 1, 1),
        (DATA + 2 * SUPERBLOCK - 1, 2),
        (NODES + 1, 1),
    ] {
        assert_eq!(refusal(driver.put(lba, sectors)), (lba, NOT_THE_END));
    }
    for lba in [MOVED_DATA, MOVED_NODES] {
        assert!(driver.put(lba, 1).is_err(), "{lba} is the device's");
    }
    assert_eq!(driver.live(), 4);
    for lba in DATA..DATA + 4 {
        assert_eq!(driver.tag(lba), lba);
    }
    assert_eq!((driver.tag(DATA + 4), driver.tag(NODES)), (0, 0));
    assert!(driver.put(DATA + 4, 60).is_ok(), "the rest of it");
    assert!(driver.put(DATA + SUPERBLOCK, 1).is_ok());
    driver.check();
}

/// As many superblocks of a region are open as may be; one more closes the one that was written least recently, and a
/// power cut all. What they hold stays.
#[test]
fn superblocks_are_closed_least_recently_written_first() {
    let mut driver = Driver::new(Config { open_max: 2, gc_lines: 3, ..eager() });
    let end = |number: u64, written: u64| DATA + number * SUPERBLOCK + written;
    let put = |driver: &mut Driver, lba| driver.put(lba, 2);
    for lba in [end(0, 0), end(1, 0), NODES, end(0, 2), end(2, 0)] {
        assert!(put(&mut driver, lba).is_ok());
    }
    assert_eq!(refusal(put(&mut driver, end(1, 2))), (end(1, 2), NOT_THE_END));
    for lba in [end(0, 4), end(2, 2), NODES + 2] {
        assert!(put(&mut driver, lba).is_ok());
    }
    driver.flush();
    let mut driver = driver.power_cut();
    for lba in [end(0, 6), end(2, 4), NODES + 4] {
        assert_eq!(refusal(put(&mut driver, lba)), (lba, NOT_THE_END));
    }
    for lba in [end(0, 5), end(1, 1), end(2, 3), NODES + 3] {
        assert_ne!(driver.tag(lba), 0);
    }
    let what = "a write to a superblock that still holds data";
    assert_eq!(refusal(put(&mut driver, end(1, 0))), (end(1, 0), what));
    driver.discard(end(1, 0), 2);
    assert!(put(&mut driver, end(1, 0)).is_ok());
    driver.check();
}

/// The two pages of the first superblock were moved.
fn moved(omit: Option<OmittedRule>) -> Driver {
    let mut driver = Driver::with(Faults::default(), eager(), omit);
    driver.write_sectors(DATA, 2, DATA, Flags::NONE);
    driver.press(DATA, 1, 12, 2);
    driver
}

/// A superblock whose addresses open records name is not written. If it were, a discard of what was written would reach
/// the moved page as well.
#[test]
fn named_superblocks_are_not_written() {
    let what = "a write to an address whose migration is not completed";
    for fetches_first in [false, true] {
        let mut driver = moved(None);
        let fetched = fetches_first.then(|| driver.fetch(u32::MAX).expect("records"));
        assert_eq!(refusal(driver.put(DATA, 1)), (DATA, what));
        assert_eq!((driver.tag(DATA), driver.tag(DATA + 1)), (DATA, DATA + 1));
        driver.check();
        let (id, moves) = fetched.unwrap_or_else(|| driver.fetch(u32::MAX).expect("records"));
        assert_eq!(driver.complete(id), Ok(Reply::None));
        assert!(driver.put(DATA, 1).is_ok());
        driver.discard(DATA, 1);
        for (old, new) in moves {
            assert_eq!((driver.tag(old), driver.tag(new)), (0, old));
        }
        driver.check();
    }
    let mut driver = moved(Some(OmittedRule::RecordReference));
    let (_, moves) = driver.fetch(u32::MAX).expect("records");
    let (_, new) = moves.iter().find(|(old, _)| *old == DATA).expect("was moved");
    assert!(driver.put(DATA, 1).is_ok());
    driver.discard(DATA, 1);
    assert_eq!(driver.tag(*new), 0, "it was the other page that was discarded");
}

/// A discard at an old address reaches the page, fetched or not.
#[test]
fn discards_at_old_addresses_reach_the_page() {
    let discarded = |omit, fetches_first: bool| {
        let mut driver = moved(omit);
        let live = driver.live();
        if fetches_first {
            driver.fetch_all();
        }
        driver.discard(DATA, 1);
        driver.check();
        (driver.tag(DATA), driver.tag(DATA + 1), live - driver.live())
    };
    for fetches_first in [false, true] {
        assert_eq!(discarded(None, fetches_first), (0, DATA + 1, 1));
        let without = discarded(Some(OmittedRule::RedirectedDiscard), fetches_first);
        assert_eq!(without, (DATA, DATA + 1, 0));
    }
}

/// A discard follows the records of each line that it touches, whatever became of the others.
#[test]
fn discards_of_many_lines_reach_the_page_that_was_moved() {
    let mut driver = Driver::new(eager());
    driver.write_sectors(DATA, 2, DATA, Flags::NONE);
    driver.discard(DATA + 1, 1);
    driver.press(DATA, 1, 12, 1);
    let live = driver.live();
    assert_eq!(driver.tag(DATA), DATA);
    driver.discard(DATA, 2);
    assert_eq!((driver.tag(DATA), live - driver.live()), (0, 1));
    driver.check();
}

/// A discard at an address to which the device has moved a page, and which no upcall has reported, changes nothing; once
/// it was fetched, or power was cut, it reaches the page.
#[test]
fn discards_at_unknown_addresses_change_nothing() {
    let discard_all = |driver: &mut Driver| driver.discard(MOVED_DATA, 8 * SUPERBLOCK);
    let mut driver = moved(None);
    let live = driver.live();
    discard_all(&mut driver);
    assert_eq!((driver.live(), driver.tag(DATA)), (live, DATA));
    driver.check();
    let moves = driver.fetch_all();
    discard_all(&mut driver);
    assert_eq!(driver.live(), live - moves.len() as u64);
    for (old, new) in moves {
        assert_eq!((driver.tag(old), driver.tag(new)), (0, 0));
    }
    driver.check();
    let mut driver = moved(None);
    driver.flush();
    let mut driver = driver.power_cut();
    discard_all(&mut driver);
    assert_eq!((driver.tag(DATA), driver.tag(DATA + 1)), (0, 0));
    driver.check();
}

/// A fetched upcall is completed by its identity, once, in any order; nothing else ends its records.
#[test]
fn upcalls_are_completed_by_identity() {
    let unknown = Err(BlockError::Malformed("no fetched upcall has this id"));
    for first in [0, 1] {
        let mut driver = moved(None);
        let batches = [(); 2].map(|()| driver.fetch(1).expect("a record"));
        let is_there = |driver: &mut Driver, batch: usize| {
            let (old, new) = batches[batch].1[0];
            assert_eq!(driver.tag(new), old);
            driver.tag(old) == old
        };
        let [(one, _), (other, _)] = batches;
        for id in [0, one.max(other) + 1] {
            assert_eq!(driver.complete(id), unknown);
        }
        for (turn, batch) in [first, 1 - first].into_iter().enumerate() {
            assert!(is_there(&mut driver, batch));
            assert_eq!(driver.complete(batches[batch].0), Ok(Reply::None));
            assert!(!is_there(&mut driver, batch));
            assert_eq!(is_there(&mut driver, 1 - batch), turn == 0);
            assert_eq!(driver.complete(batches[batch].0), unknown);
        }
        driver.check();
    }
}

/// A victim is moved a few rows at a time: a read that comes meanwhile ends before all of it is.
#[test]
fn reads_do_not_wait_for_a_whole_victim() {
    let mut driver = Driver::new(roomy());
    let valid = 40;
    let mut written = 0;
    while driver.put(DATA + written, 1) == Ok(Reply::None) && driver.own().moved == 0 {
        written += 1;
        if written % SUPERBLOCK == 0 {
            driver.discard(DATA + written - SUPERBLOCK, SUPERBLOCK - valid);
        }
    }
    let lba = DATA + written - 1;
    assert_eq!(driver.tag(lba), lba);
    let moved = driver.own().moved;
    assert!((1..valid).contains(&moved), "{moved} of two lines with {valid} pages");
    driver.check();
    while driver.ftl.next_event().is_some() {
        driver.step();
        driver.check();
    }
    assert!(driver.own().moved >= valid);
    for end in (DATA..=DATA + written).step_by(SUPERBLOCK as usize).skip(1) {
        assert!((end - valid..end).all(|lba| driver.tag(lba) == lba));
    }
}

/// The time of collections on media is that for which units read, program and erase for them, by the log of media, as
/// a mean over the two units of an instance; what a collection waits for is in the time until its victim is erased.
#[test]
fn collections_have_a_time_on_media() {
    let mut driver = Driver::new(eager());
    let media = driver.ftl.media_mut().inner_mut();
    let preset = DeviceTiming::preset("nvmevirt-970pro").expect("a preset").nand;
    let timing = NandTiming { erase_ns: 1_000_000, ..preset };
    media.set_timing(timing);
    media.start_log(usize::MAX);
    for superblock in (DATA..).step_by(SUPERBLOCK as usize) {
        driver.write_sectors(superblock, SUPERBLOCK as u32, superblock, Flags::NONE);
        driver.discard(superblock + 6, SUPERBLOCK - 6);
        if driver.own().moved >= 12 {
            break;
        }
    }
    while driver.ftl.next_event().is_some() {
        driver.step();
    }
    let log = driver.ftl.media_mut().inner_mut().end_log().expect("a log");
    let is_collection = |command: &Command| command.cause.gc > 0;
    let is_erase = |command: &Command| command.action == Action::Erase;
    let units = |is: &dyn Fn(&Command) -> bool| -> u64 {
        let of = |span: &&Span| {
            matches!(span.on, Resource::Unit(_)) && is(&log.commands[span.command as usize])
        };
        log.spans.iter().filter(of).map(|span| (span.end - span.start).0).sum()
    };
    let own = driver.own();
    assert_eq!(units(&is_erase), own.collected * 2 * timing.erase_ns, "victims alone were erased");
    assert!(own.collected > 1 && own.moved >= 12);
    assert_eq!(own.collect_media_ns, (units(&is_collection) + units(&is_erase)) / 2);
    assert!(own.collect_ns > own.collect_media_ns);
}

/// An upcall has records of one class, those of data first, although nodes were moved before.
#[test]
fn data_are_reported_before_nodes() {
    let mut driver = Driver::new(eager());
    for (lba, sectors) in [(NODES, 2), (NODES + SUPERBLOCK, 12), (DATA, 4)] {
        driver.write_sectors(lba, sectors, lba, Flags::NONE);
    }
    driver.press(DATA, 1, 12, 6);
    let batches: Vec<_> = std::iter::from_fn(|| driver.fetch(u32::MAX)).collect();
    let olds = |batch: usize| batches[batch].1.iter().map(|(old, _)| *old).collect::<Vec<_>>();
    assert_eq!(batches.len(), 2);
    assert_eq!(olds(1), [NODES, NODES + 1]);
    assert!(olds(0).starts_with(&[DATA]) && olds(0).iter().all(|old| *old < MOVED_DATA));
    assert!(batches[1].1.iter().all(|(_, new)| *new >= MOVED_NODES));
    assert!(batches[0].1.iter().all(|(_, new)| (MOVED_DATA..NODES).contains(new)));
}
