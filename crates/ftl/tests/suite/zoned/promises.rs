//! What a zoned SSD promises when it completes a command, each promise beside the variant that leaves it out.

use crate::zoned::driver::{Driver, GEOMETRY, config, holds};
use nandscape_block::zone::{ZoneAction, ZoneId, ZoneInfo, ZoneState, ZoneStatus};
use nandscape_block::{Bio, BlockDevice, BlockError, Flags, Lba, Op, Payload, Reply, Tag};
use nandscape_ftl::zoned::{Config, ZoneConfig};
use nandscape_ftl::{Ftl, FtlRun, OmittedRule};
use nandscape_media::{Faults, Geometry, Layer, OpenChannel, Ppa};

const ZONE: ZoneId = ZoneId(0);

fn driver(omit: Option<OmittedRule>) -> Driver {
    let run = FtlRun { omit, ..FtlRun::default() };
    Driver::with("nvmevirt-zn540", Faults::default(), config(), run)
}

/// Without the save, what a power-safe buffer acknowledged is lost; with it, every sector up to the last of the device
/// is there.
#[test]
fn a_power_safe_buffer_needs_no_flush() {
    let read = |omit| {
        let run = FtlRun { omit, ..FtlRun::default() };
        let config = crate::zoned::power_safe(config());
        let mut driver = Driver::with("nvmevirt-zn540", Faults::default(), config, run);
        let last = driver.sectors() - driver.ftl.caps().zone(ZONE).expect("a zone").1.zone_sectors;
        driver.write(last, 70, Flags::NONE);
        let now = driver.now;
        driver.cut(now).read(last)
    };
    assert_eq!(read(None), holds(70));
    assert_eq!(read(Some(OmittedRule::BufferSave)), Ok(Reply::Data(Payload::Run(Tag::ZERO))));
}

/// A flush of a page that is partly filled is the program of its record in the save log, most of which is padding.
#[test]
fn the_parts_of_flush_time_add_up() {
    let mut driver = driver(None);
    driver.write(0, 1, Flags::NONE);
    driver.settle();
    driver.flush();
    let flush = driver.ftl.report().flush;
    let page = u64::from(GEOMETRY.ws_opt);
    assert_eq!((flush.waited, flush.drained_sectors, flush.queue_ns, flush.gc_ns), (1, 1, 0, 0));
    assert!(flush.total_ns > 0);
    assert_eq!(flush.padding_ns, flush.total_ns * (page - 1) / page);
    assert_eq!(flush.padding_ns + flush.program_ns, flush.total_ns);
}

/// Serves a zone management command.
fn act(driver: &mut Driver, action: ZoneAction) {
    let bio = Bio { op: Op::Zone(ZONE, action), ..Bio::flush() };
    assert_eq!(driver.run(bio).result, Ok(Reply::None));
}

/// The zone after a power cut at once.
fn after_cut(driver: Driver) -> (ZoneInfo, Driver) {
    let now = driver.now;
    let mut driver = driver.cut(now);
    (report(&mut driver), driver)
}

/// The report of the zone.
fn report(driver: &mut Driver) -> ZoneInfo {
    report_of(driver, ZONE)
}

/// The report of a zone.
fn report_of(driver: &mut Driver, zone: ZoneId) -> ZoneInfo {
    let (_, of) = driver.ftl.caps().zone(ZONE).expect("a zone");
    let start = Lba(u64::from(zone.0) * of.zone_sectors);
    let report = Bio { op: Op::ZoneReport, lba: start, sectors: 1, ..Bio::flush() };
    match driver.run(report).result {
        Ok(Reply::Zones(zones)) => zones[0],
        other => panic!("no report: {other:?}"),
    }
}

/// Sectors that fill no one-shot page are durable after a flush, and after a write with FUA; without the save log they
/// are not.
#[test]
fn pages_that_are_partly_filled_are_durable() {
    for (flags, flushes) in [(Flags::NONE, true), (Flags::FUA, false)] {
        let written = |omit| {
            let mut driver = driver(omit);
            driver.write_sectors(0, 3, 70, flags);
            if flushes {
                driver.flush();
            }
            after_cut(driver)
        };
        let (zone, mut driver) = written(None);
        assert_eq!(zone.written(), 3);
        let read = driver.run(Bio::read(Lba(0), 3)).result;
        assert_eq!(read, Ok(Reply::Data(Payload::Run(Tag::new(70)))));
        assert_eq!(written(Some(OmittedRule::ZoneSave)).0.written(), 0);
    }
}

/// Without a buffer a write goes to a page of each stream. Where power fails between their programs the zone ends before
/// the write, where the next one begins; it is empty if that was its first.
#[test]
fn cuts_keep_whole_writes_of_an_unbuffered_zone() {
    for kept in [0_u32, 8] {
        // The program of the other stream fails, and its chunk is copied: power fails before it is there.
        let faults = Faults { programs: [u64::from(kept) / 4 + 1].into(), ..Faults::default() };
        let config = crate::zoned::unbuffered_striped();
        let mut driver = Driver::with("nvmevirt-zn540", faults, config, FtlRun::default());
        if kept > 0 {
            driver.write_sectors(0, kept, 70, Flags::NONE);
        }
        let torn = Bio::write(Lba(kept.into()), 8, Payload::Run(Tag::new(90)));
        let completes = driver.submit(torn, 0).expect("its end is known").at;
        assert!(driver.step().is_empty() && driver.now < completes);
        assert_eq!(places(&driver, kept.into()).len(), 1, "the page of the first stream is there");
        let (zone, mut driver) = after_cut(driver);
        assert_eq!(zone.written(), u64::from(kept));
        assert_eq!(zone.state == ZoneState::Empty, kept == 0);
        driver.write_sectors(kept.into(), 8, 80, Flags::NONE);
        let (zone, mut driver) = after_cut(driver);
        assert_eq!(zone.written(), u64::from(kept) + 8);
        assert_eq!(driver.read(kept.into()), holds(80));
        driver.ftl.check_invariants().expect("holds");
    }
}

/// A reset is durable with its completion, also where the save log has the first page; without its record the sectors
/// of that page come back.
#[test]
fn a_reset_hides_what_was_saved() {
    let written = |omit| {
        let mut driver = driver(omit);
        driver.write(0, 70, Flags::FUA);
        act(&mut driver, ZoneAction::Reset);
        after_cut(driver).0.written()
    };
    assert_eq!(written(None), 0);
    assert_eq!(written(Some(OmittedRule::ResetRecord)), 1);
}

/// A zone whose reset media refuse is read-only, and what it holds can be read.
#[test]
fn a_reset_that_is_refused_hides_nothing() {
    let mut driver = driver(None);
    driver.write(0, 70, Flags::FUA);
    driver.ftl.media_mut().faults_mut().program_rate = 1.0;
    let reset = Bio { op: Op::Zone(ZONE, ZoneAction::Reset), ..Bio::flush() };
    let refusal = BlockError::Zone { zone: ZONE.0, status: ZoneStatus::ReadOnly };
    assert_eq!(driver.run(reset).result, Err(refusal));
    assert_eq!(report(&mut driver).state, ZoneState::ReadOnly);
    assert_eq!(driver.read(0), holds(70));
    driver.ftl.check_invariants().expect("holds");
}

/// A reset stays durable when a mount is cut short, also where the save log holds what it hid beside something that
/// counts.
#[test]
fn mounts_that_are_cut_short_bring_no_zone_back() {
    const OTHER: u64 = 4;
    let staged = || {
        let mut driver = driver(None);
        let start = OTHER * driver.ftl.caps().zone(ZONE).expect("a zone").1.zone_sectors;
        // They fill the first chunk of a unit's log; the record of the reset is in the second.
        for (lba, tag) in [(0, 70), (start, 80), (1, 71), (2, 72), (start + 1, 81), (start + 2, 82)]
        {
            driver.write(lba, tag, Flags::FUA);
        }
        act(&mut driver, ZoneAction::Reset);
        (driver, start)
    };
    for commands in 0..60 {
        let (driver, start) = staged();
        let mut driver = driver.cut_in_mount(commands);
        assert_eq!(report(&mut driver).written(), 0, "after {commands} commands");
        for index in 0..3 {
            assert_eq!(driver.read(start + index), holds(80 + index), "after {commands} commands");
        }
    }
}

/// A zone that was finished is full after a flush and a power cut.
#[test]
fn a_finished_zone_stays_full() {
    let mut driver = driver(None);
    driver.write_sectors(0, 3, 70, Flags::NONE);
    act(&mut driver, ZoneAction::Finish);
    driver.flush();
    assert_eq!(after_cut(driver).0.state, ZoneState::Full);
}

/// A zone that was finished empty on a device with power-safe buffers, when power is cut before media know, stays full
/// when the mount after the cut is cut short.
#[test]
fn mounts_that_are_cut_short_keep_a_finish() {
    for commands in 0..60 {
        let mut driver = Driver::new("nvmevirt-zn540", crate::zoned::power_safe(config()));
        act(&mut driver, ZoneAction::Finish);
        let mut driver = driver.cut_in_mount(commands);
        assert_eq!(report(&mut driver).state, ZoneState::Full, "after {commands} commands");
    }
}

/// Where media take no mark of a finish, mounts find it by the record of the power cut, and mark it as soon as media
/// take that: when the reset of another zone has given back a chunk.
#[test]
fn a_finish_survives_media_that_take_no_mark() {
    const OTHER: u32 = 4;
    let mut driver = Driver::new("nvmevirt-zn540", crate::zoned::power_safe(config()));
    let start = u64::from(OTHER) * driver.ftl.caps().zone(ZONE).expect("a zone").1.zone_sectors;
    // Whole pages, so that a mount has nothing to program for this zone.
    driver.write_sectors(start, 8, 70, Flags::NONE);
    driver.settle();
    act(&mut driver, ZoneAction::Finish);
    driver.ftl.media_mut().faults_mut().program_rate = 1.0;
    let (mut zone, mut driver) = after_cut(driver);
    driver.ftl.media_mut().faults_mut().program_rate = 0.0;
    for _ in 0..2 {
        assert_eq!(zone.state, ZoneState::ReadOnly);
        driver.ftl.check_invariants().expect("holds");
        (zone, driver) = after_cut(driver);
    }
    let reset = Bio { op: Op::Zone(ZoneId(OTHER), ZoneAction::Reset), ..Bio::flush() };
    assert_eq!(driver.run(reset).result, Ok(Reply::None));
    for _ in 0..2 {
        (zone, driver) = after_cut(driver);
        assert_eq!(zone.state, ZoneState::Full);
    }
}

/// A record that is kept for one zone does not finish another one again that was reset after the mount.
#[test]
fn a_kept_record_finishes_no_zone_that_was_reset() {
    const OTHER: u32 = 4;
    let other = |action| Bio { op: Op::Zone(ZoneId(OTHER), action), ..Bio::flush() };
    let mut kept = 0;
    for refused in 0..60 {
        let mut driver = Driver::new("nvmevirt-zn540", crate::zoned::power_safe(config()));
        act(&mut driver, ZoneAction::Finish);
        assert_eq!(driver.run(other(ZoneAction::Finish)).result, Ok(Reply::None));
        // The first programs are those of the record; then come the marks of the zone, and those of the other one.
        driver.ftl.media_mut().faults_mut().programs = (1..1 + refused).collect();
        let (zone, mut driver) = after_cut(driver);
        let is_reset = driver.run(other(ZoneAction::Reset)).result.is_ok();
        kept += u32::from(zone.state == ZoneState::ReadOnly && !is_reset);
        let (_, mut driver) = after_cut(driver);
        let state = report_of(&mut driver, ZoneId(OTHER)).state;
        assert_eq!(state == ZoneState::Empty, is_reset, "{refused} programs refused: {state:?}");
    }
    assert!(kept > 0, "no record was kept");
}

/// A zone for which a unit has no chunk beyond those that its power-safe buffers need becomes read-only, however many
/// chunks the save log has there: one with each program of it that failed.
#[test]
fn a_zone_without_a_chunk_is_read_only() {
    let zones_of_first_unit = [ZoneId(4), ZoneId(8)];
    let mut read_only = 0;
    for refused in 0..18 {
        let mut driver = Driver::new("nvmevirt-zn540", crate::zoned::power_safe(config()));
        let zone_sectors = driver.ftl.caps().zone(ZONE).expect("a zone").1.zone_sectors;
        driver.write(0, 70, Flags::NONE);
        // Those of the mount begin with the record of that sector.
        driver.ftl.media_mut().faults_mut().programs = (0..refused).collect();
        let (_, mut driver) = after_cut(driver);
        for zone in zones_of_first_unit {
            let start = Lba(u64::from(zone.0) * zone_sectors);
            let page = Bio::write(start, 4, Payload::Run(Tag::new(80)));
            let result = driver.run(page).result;
            let refusal = BlockError::Zone { zone: zone.0, status: ZoneStatus::ReadOnly };
            let is_failed = report_of(&mut driver, zone).state == ZoneState::ReadOnly;
            let expected = if is_failed { Err(refusal) } else { Ok(Reply::None) };
            assert_eq!(result, expected, "{refused} programs refused");
            read_only += u32::from(is_failed);
        }
        driver.ftl.check_invariants().expect("holds");
        assert_eq!(driver.read(0), holds(70));
    }
    assert!(read_only > 0, "there was a chunk for every zone");
}

/// A zone that can be written becomes read-only where the last erased chunk of a unit holds what media took of another
/// zone at no other place: what its power-safe buffer acknowledged could not be saved. It takes writes again when the
/// reset of a full zone has given back a chunk.
#[test]
fn a_zone_whose_buffer_cannot_be_saved_is_read_only() {
    // One unit of eight chunks, which keeps one of them for what buffers hold when power fails.
    let geometry = Geometry { groups: 1, units: 1, chunks: 8, sectors: 192, ..GEOMETRY };
    let safe = crate::zoned::power_safe(config());
    let zone = ZoneConfig { dies: 1, spare_chunks: 4, ..safe.zone };
    let config = Config { zone, ..safe };
    let no_faults = Faults::default();
    let mut driver = Driver::on(geometry, "nvmevirt-zn540", no_faults, config, FtlRun::default());
    let (full, writable) = (ZoneId(1), ZoneId(2));
    let start_of = |zone: ZoneId| u64::from(zone.0) * 192;
    driver.write_sectors(start_of(full), 192, 200, Flags::NONE);
    driver.write_sectors(start_of(writable), 4, 80, Flags::NONE);
    driver.settle();
    // The first page of the zone finds no place on any chunk but the one that is kept.
    *driver.ftl.media_mut().faults_mut() =
        Faults { program_rate: 1.0, erase_rate: 1.0, ..Faults::default() };
    driver.write_sectors(0, 4, 70, Flags::NONE);
    driver.settle();
    *driver.ftl.media_mut().faults_mut() = Faults::default();
    let (zone, mut driver) = after_cut(driver);
    assert_eq!(zone.state, ZoneState::ReadOnly);

    let next = |tag| Bio::write(Lba(start_of(writable) + 4), 4, Payload::Run(Tag::new(tag)));
    let refusal = BlockError::Zone { zone: writable.0, status: ZoneStatus::ReadOnly };
    assert_eq!(driver.run(next(84)).result, Err(refusal));
    let reset = Bio { op: Op::Zone(full, ZoneAction::Reset), ..Bio::flush() };
    assert_eq!(driver.run(reset).result, Ok(Reply::None));
    let (_, mut driver) = after_cut(driver);
    assert_eq!(driver.run(next(85)).result, Ok(Reply::None));
    driver.settle();
    let (_, mut driver) = after_cut(driver);
    for (lba, tag) in [(0, 70), (3, 73), (start_of(writable), 80), (start_of(writable) + 4, 85)] {
        assert_eq!(driver.read(lba), holds(tag), "lba {lba}");
    }
}

/// After a power cut media may hold the last page of a zone, and take no more of one before it. The zone agrees with what
/// it holds, also where its last page is not full: as the capacity ends in it, or as the zone was finished.
#[test]
fn zones_that_end_within_a_page_agree_with_themselves() {
    for (sectors, is_finished, events) in [(45, false, 3), (37, true, 2)] {
        // The last page but one is late, as its first program fails and its chunk is copied: power fails before it is there.
        let late = u64::from(sectors) / 4 - 1;
        let faults = Faults { programs: [late].into(), ..Faults::default() };
        let config = crate::zoned::power_safe(crate::zoned::short());
        let mut driver = Driver::with("nvmevirt-zn540", faults, config, FtlRun::default());
        driver.write_sectors(0, sectors, 70, Flags::NONE);
        if is_finished {
            act(&mut driver, ZoneAction::Finish);
        }
        (0..events).for_each(|_| assert!(driver.step().is_empty()));
        driver.ftl.media_mut().faults_mut().program_rate = 1.0;
        let (zone, mut driver) = after_cut(driver);
        assert_eq!(zone.state, ZoneState::ReadOnly);
        driver.ftl.check_invariants().expect("holds");
        for lba in 0..u64::from(sectors) {
            assert_eq!(driver.read(lba), holds(70 + lba));
        }
    }
}

/// A sector that media lost is an error also when its chunk was copied, as a program of that failed.
#[test]
fn what_is_lost_stays_lost_in_copies() {
    // The first pages of both dies, and then one more of the first.
    let faults = Faults { programs: [2].into(), ..Faults::default() };
    let mut driver = Driver::with("nvmevirt-zn540", faults, config(), FtlRun::default());
    driver.write_sectors(0, 8, 70, Flags::NONE);
    driver.flush();
    let lost = places(&driver, 1)[0];
    driver.ftl.media_mut().inner_mut().mark_unreadable(lost);
    driver.write_sectors(8, 4, 78, Flags::NONE);
    driver.flush();
    assert_eq!(places(&driver, 1).len(), 2, "it was copied");
    let error = driver.read(1);
    assert!(matches!(error, Err(BlockError::Io { lba: Lba(1), .. })), "{error:?}");
    for lba in [0, 2, 3, 8] {
        assert_eq!(driver.read(lba), holds(70 + lba));
    }
}

/// The places of a sector on media.
fn places(driver: &Driver, lba: u64) -> Vec<Ppa> {
    let media = driver.ftl.media();
    let written = |id| (0..media.chunk(id).wp).map(move |sector| GEOMETRY.ppa(id, sector));
    let all = GEOMETRY.all_chunks().flat_map(written);
    all.filter(|at| u64::from(media.oob(*at).key) == lba).collect()
}
