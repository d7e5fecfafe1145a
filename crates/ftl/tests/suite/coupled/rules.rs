//! Safety rules of moves and records that campaigns need long to find left out: each is staged by hand, and power is cut
//! between any two events that follow. With the rule every outcome is right, without it one is wrong.

use crate::coupled::driver::{DATA, Driver, NODES, SUPERBLOCK, eager, roomy};
use nandscape_block::{Bio, BlockDevice, Flags, Lba, Payload, Tag};
use nandscape_ftl::OmittedRule;
use nandscape_ftl::coupled::Config;
use nandscape_media::Faults;
use nandscape_rt::Nanos;

/// Events after which power is cut.
const EVENTS: u32 = 60;

fn driver(config: Config, omit: Option<OmittedRule>) -> Driver {
    Driver::with(Faults::default(), config, omit)
}

/// After how many of the events that follow a stage power can be cut so that the outcome is wrong.
fn wrong_cuts(stage: impl Fn() -> Driver, is_right: impl Fn(&mut Driver) -> bool) -> Vec<u32> {
    let is_wrong = |events: &u32| {
        let mut driver = stage();
        for _ in 0..*events {
            if driver.ftl.next_event().is_some() {
                driver.step();
            }
        }
        let next = driver.ftl.next_event().unwrap_or(driver.now);
        let between = Nanos(driver.now.0.midpoint(next.0));
        !is_right(&mut driver.cut(between))
    };
    (0..EVENTS).filter(is_wrong).collect()
}

/// With the rule no cut makes the outcome wrong or breaks an invariant, without it some make it wrong.
fn assert_needed(
    rule: OmittedRule,
    stage: impl Fn(Option<OmittedRule>) -> Driver,
    is_right: impl Fn(&mut Driver) -> bool,
) {
    let is_sound = |driver: &mut Driver| {
        driver.check();
        is_right(driver)
    };
    assert_eq!(wrong_cuts(|| stage(None), is_sound), [], "with {}", rule.name());
    let wrong = wrong_cuts(|| stage(Some(rule)), &is_right);
    assert!(!wrong.is_empty(), "without {}", rule.name());
}

/// Whether sectors read as they were written.
fn hold(driver: &mut Driver, from: u64, sectors: u64) -> bool {
    (from..from + sectors).all(|lba| driver.tag(lba) == lba)
}

/// Two superblocks, with so many sectors and with 12, were flushed, and are victims of a collection that has just begun.
fn collected(omit: Option<OmittedRule>, sectors: u32) -> Driver {
    let mut driver = driver(eager(), omit);
    for (lba, sectors) in [(DATA, sectors), (DATA + SUPERBLOCK, 12)] {
        driver.write_sectors(lba, sectors, lba, Flags::NONE);
    }
    driver.flush();
    driver.press(DATA, 2, 12, 1);
    driver
}

/// Copies that fill no page are in the buffer when their victim could be erased, and so is the last one where the others
/// fill a page.
#[test]
fn copies_are_durable_before_their_victim_is_erased() {
    for sectors in [2, 6] {
        assert_needed(
            OmittedRule::CopyCompletion,
            |omit| collected(omit, sectors),
            |driver| hold(driver, DATA, sectors.into()) && hold(driver, DATA + SUPERBLOCK, 12),
        );
    }
}

/// Copies that fill a page are on media at once, and their records are not.
#[test]
fn records_are_durable_before_their_victim_is_erased() {
    assert_needed(
        OmittedRule::RecordJournal,
        |omit| collected(omit, 8),
        |driver| hold(driver, DATA, 8) && hold(driver, DATA + SUPERBLOCK, 12),
    );
}

/// What a completed upcall held is not offered again.
#[test]
fn completions_are_durable() {
    let offered = |omit| {
        let mut driver = collected(omit, 2);
        driver.flush();
        let (id, moves) = driver.fetch(u32::MAX).expect("records");
        assert!(!moves.is_empty() && driver.complete(id).is_ok());
        driver.power_cut().fetch_all()
    };
    assert_eq!(offered(None), []);
    assert_ne!(offered(Some(OmittedRule::CompletionDurable)), []);
}

/// The page at [`DATA`] was moved twice; the host knows the address between, which is returned.
fn moved_twice(omit: Option<OmittedRule>) -> (Driver, u64) {
    let mut driver = collected(omit, 2);
    driver.flush();
    // A mount closes the line of copies, and what it finds counts as offered.
    let mut driver = driver.power_cut();
    let moves = driver.fetch_all();
    let (_, between) = moves.iter().find(|(old, _)| *old == DATA).expect("was moved");
    moves.iter().filter(|(old, _)| *old >= DATA + 2).for_each(|(old, _)| driver.discard(*old, 1));
    driver.press(DATA, 100, 12, 1);
    (driver, *between)
}

/// A page is found at each address that the host may have of it, and a discard at each reaches it.
#[test]
fn pages_are_found_however_often_they_were_moved() {
    let found = |omit| {
        let (mut driver, between) = moved_twice(omit);
        [DATA, between].map(|lba| driver.tag(lba))
    };
    assert_eq!(found(None), [DATA; 2]);
    assert_eq!(found(Some(OmittedRule::OfferedMerge))[1], 0);
    assert_eq!(found(Some(OmittedRule::RedirectChain))[0], 0);
    for discard_old in [true, false] {
        let (mut driver, between) = moved_twice(None);
        let live = driver.live();
        driver.discard(if discard_old { DATA } else { between }, 1);
        assert_eq!([DATA, between].map(|lba| driver.tag(lba)), [0; 2]);
        assert_eq!(driver.live(), live - 1);
        driver.check();
    }
}

/// A line that is used again before the journal says so belongs to what uses it by then.
#[test]
fn lines_are_known_by_their_generation() {
    let rounds = u64::from(roomy().sizes(&crate::coupled::driver::GEOMETRY).expect("fits").lines);
    let stage = |omit| {
        let mut driver = driver(roomy(), omit);
        driver.write_sectors(DATA, 8, DATA, Flags::NONE);
        driver.flush();
        for number in 1..=rounds {
            let lba = DATA + number * SUPERBLOCK;
            driver.write_sectors(lba, 8, lba, Flags::NONE);
            driver.discard(lba - SUPERBLOCK, SUPERBLOCK);
            driver.settle();
        }
        driver
    };
    let is_right =
        |driver: &mut Driver| (DATA..DATA + 8).all(|lba| [0, lba].contains(&driver.tag(lba)));
    assert_needed(OmittedRule::StaleGeneration, stage, is_right);
}

/// Pages that were moved twice are discarded, and that is durable before their last copies are: a mount that finds the
/// copies before these does not keep them.
#[test]
fn discarded_pages_leave_nothing_when_their_last_copies_are_lost() {
    let stage = || {
        let mut driver = moved_again(true, |_| {});
        driver.discard(DATA + 14 * SUPERBLOCK, SUPERBLOCK);
        driver.discard(DATA + 8 * SUPERBLOCK, SUPERBLOCK);
        let bio = Bio::write(Lba(NODES), 1, Payload::Run(Tag::new(1)));
        assert_eq!(driver.submit(bio.with(Flags::FUA), 9), None);
        driver
    };
    let is_right = |driver: &mut Driver| {
        driver.check();
        let moves = driver.fetch_all();
        driver.discard(DATA, 22 * SUPERBLOCK);
        driver.discard(NODES, 1);
        moves.iter().for_each(|(_, new)| driver.discard(*new, 1));
        driver.live() == 0
    };
    assert_eq!(wrong_cuts(stage, is_right), []);
}

/// Pages that were moved twice, whether or not their first moves were fetched before the second, of which a cut leaves the
/// last copies and not those between: each is in one place, so that when all records are completed nothing is at the old
/// addresses.
#[test]
fn pages_that_were_moved_again_are_found_once() {
    for fetches in [false, true] {
        let stage = || {
            let mut driver = moved_again(false, |driver| {
                if fetches {
                    driver.fetch_all();
                }
            });
            assert_eq!(driver.submit(Bio::flush(), 9), None);
            driver
        };
        let is_right = |driver: &mut Driver| {
            driver.check();
            let mut moves = Vec::new();
            while let Some((id, batch)) = driver.fetch(u32::MAX) {
                assert!(driver.complete(id).is_ok());
                moves.extend(batch);
            }
            moves.into_iter().all(|(old, _)| driver.tag(old) == 0)
        };
        assert_eq!(wrong_cuts(stage, is_right), [], "{fetches}");
    }
}

/// A line was filled by the copies of victims, and was the next victim.
fn moved_again(flushes: bool, between: impl Fn(&mut Driver)) -> Driver {
    let mut driver = driver(eager(), None);
    let sectors = |number| match number {
        0..7 => 8,
        14 => 10,
        _ => 12,
    };
    let mut moved = 0;
    for number in 0..22 {
        let lba = DATA + number * SUPERBLOCK;
        if flushes && number >= 20 {
            driver.flush();
        }
        driver.write_sectors(lba, sectors(number), lba, Flags::NONE);
        while moved < 7 && driver.own().moved > 8 * moved {
            driver.discard(DATA + moved * SUPERBLOCK, SUPERBLOCK);
            moved += 1;
        }
        between(&mut driver);
    }
    assert!(driver.own().moved > 66, "{:?}", driver.own());
    driver
}
