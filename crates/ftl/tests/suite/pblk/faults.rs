//! What goes wrong on media costs no acknowledged sector: failed programs and erases, sectors that
//! cannot be corrected, and a device on which nothing can be erased any more.

use crate::common::{Driver, GEOMETRY, config, holds};
use nandscape_block::{Bio, BlockError, Flags, Lba, Payload, Reply, SectorData, Tag};
use nandscape_ftl::pblk::config::{BaseRouting, Config, CoreChoice, Routing};
use nandscape_ftl::{Capacity, EraseUnit, EraseUnitState, Ftl};
use nandscape_media::{
    ChunkId, ChunkState, Fault, Faults, Geometry, Kind, Layer, OpenChannel, UnitId,
};

/// Timing in which commands overlap.
const TIMED: &str = "nvmevirt-970pro";

fn chunks() -> impl Iterator<Item = ChunkId> {
    (0..GEOMETRY.chunks).flat_map(|chunk| {
        (0..GEOMETRY.total_units()).map(move |unit| ChunkId { unit: UnitId(unit), chunk })
    })
}

fn offline_chunks(driver: &Driver) -> usize {
    let media = driver.ftl.media();
    chunks().filter(|&chunk| media.chunk(chunk).state == ChunkState::Offline).count()
}

/// The only line in this state that holds data.
fn line_in(driver: &Driver, state: EraseUnitState) -> u32 {
    let lines = driver.ftl.erase_units();
    let wanted = |line: &EraseUnit| line.state == state && line.written > 0;
    let found: Vec<u32> =
        (0..).zip(&lines).filter(|(_, line)| wanted(line)).map(|(id, _)| id).collect();
    let [line] = found[..] else { panic!("{found:?} are {state:?}") };
    line
}

fn state(driver: &Driver, line: u32) -> EraseUnitState {
    driver.ftl.erase_units()[line as usize].state
}

/// Makes the newest copy of a sector uncorrectable. The line that it lies in.
fn lose(driver: &mut Driver, lba: u64) -> u32 {
    let media = driver.ftl.media_mut();
    let sectors = chunks().flat_map(|id| (0..GEOMETRY.sectors).map(move |i| GEOMETRY.ppa(id, i)));
    let newest = sectors
        .filter(|&at| GEOMETRY.sector_of(at) < media.chunk(GEOMETRY.chunk_of(at)).wp)
        .filter(|&at| media.oob(at).kind == Kind::Data && u64::from(media.oob(at).key) == lba)
        .max_by_key(|&at| media.oob(at).seq)
        .expect("written");
    media.inner_mut().inner_mut().mark_unreadable(newest);
    GEOMETRY.line_of(newest)
}

/// What was written is what was counted by cause, and what went through the buffer is the same.
fn assert_explained(driver: &Driver) {
    let stats = driver.report();
    let counts = stats.sectors;
    let sum = counts.user + counts.gc + counts.pad + counts.line_meta + counts.trim;
    assert_eq!(sum, driver.ftl.media().counters().sectors_written(), "{counts:?}");
    let [buffer] = &driver.detail().buffers[..] else { panic!("one buffer") };
    let placed = (counts.user + counts.trim, counts.gc, counts.pad);
    assert_eq!((buffer.user, buffer.gc, buffer.pad), placed);
}

/// The data goes elsewhere before the host gets a completion, and every sector is still counted once.
#[test]
fn a_failed_program_loses_nothing() {
    let mut driver = Driver::new(TIMED, config());
    driver.write(0, 5, Flags::NONE);
    driver.ftl.media_mut().arm(Fault::Program);
    driver.flush();
    let stats = driver.report();
    assert_eq!(stats.media_errors.program_failures, 1);
    assert_eq!((stats.sectors.user, stats.sectors.pad), (1, 15));
    assert_explained(&driver);
    assert_eq!(driver.read(0), holds(5));
    let mut driver = driver.power_cut(config());
    assert_eq!(driver.read(0), holds(5));
}

/// Whichever unit of a line fails, the line loses what data could have taken of that chunk, and no more:
/// its end metadata's units never were data's.
#[test]
fn a_failed_program_costs_no_more_than_its_chunk() {
    for failing in 0..12 {
        let mut driver = Driver::new(TIMED, config());
        driver.write_run(0, 8 * failing, 1);
        driver.flush();
        driver.ftl.media_mut().arm(Fault::Program);
        driver.write(8 * failing, 1, Flags::FUA);
        driver.settle();
        assert_eq!(driver.report().media_errors.program_failures, 1);
        driver.ftl.check_invariants().expect("invariants");
    }
}

/// Media tell the device's size from the first moment on, although no chunk of the first line takes start
/// metadata: whatever a later mount would make of the chunks that are good then.
#[test]
fn a_line_that_takes_no_start_metadata_leaves_the_size_to_the_next() {
    let routing = Routing { base: BaseRouting::PerCore(CoreChoice::Core), ..Routing::default() };
    for config in [config(), Config { op_percent: Some(50), routing, ..config() }] {
        let programs = (0..u64::from(GEOMETRY.total_units())).collect();
        let faults = Faults { programs, ..Faults::default() };
        let driver = Driver::with_faults(GEOMETRY, TIMED, config.clone(), faults);
        let sectors = driver.sectors();
        let driver = driver.power_cut(Config { op_percent: Some(60), ..config });
        assert_eq!(driver.sectors(), sectors);
    }
}

/// A line with a write error is a victim while nothing else would be, and its failing chunk goes
/// offline when it is erased.
#[test]
fn a_line_with_a_failed_program_is_collected_first() {
    let mut driver = Driver::new(TIMED, config());
    driver.write(0, 1, Flags::FUA);
    let line = line_in(&driver, EraseUnitState::Open);
    driver.ftl.media_mut().arm(Fault::Program);
    driver.write(1, 2, Flags::FUA);
    let written = 3 * u64::from(driver.ftl.capacity().line_sectors);
    driver.write_run(2, written - 2, 3);
    assert_eq!(driver.report().gc.victims, 1, "only the line with the error");
    assert_ne!(state(&driver, line), EraseUnitState::Full);
    let sectors = driver.sectors();
    driver.write_run(written, sectors - written, written + 1);
    let mut expected: Vec<u64> = (1..=sectors).collect();
    driver.check(&expected);
    driver.overwrite(&mut expected, 0, 2 * sectors, 7);
    assert_eq!(offline_chunks(&driver), 1);
    driver.ftl.check_invariants().expect("invariants");
    driver.check(&expected);
    assert_explained(&driver);
}

/// Start and end metadata fail too: whatever program fails, data stay and are counted.
#[test]
fn any_program_may_fail() {
    let mut driver = Driver::new(TIMED, config());
    driver.ftl.media_mut().inner_mut().faults_mut().programs = (0..2_000).step_by(173).collect();
    let sectors = driver.sectors();
    driver.write_run(0, sectors, 1);
    let mut expected: Vec<u64> = (1..=sectors).collect();
    driver.overwrite(&mut expected, 0, sectors, 3);
    driver.flush();
    assert!(driver.report().media_errors.program_failures >= 10);
    assert_explained(&driver);
    driver.ftl.check_invariants().expect("invariants");
    driver.check(&expected);
    let mut driver = driver.power_cut(config());
    driver.check(&expected);
}

/// A grown bad chunk takes from overprovisioning, never from what the host was given.
#[test]
fn a_failed_erase_costs_a_chunk_and_no_capacity() {
    let mut driver = Driver::new(TIMED, config());
    let sectors = driver.sectors();
    driver.write_run(0, sectors, 1);
    let mut expected: Vec<u64> = (1..=sectors).collect();
    driver.ftl.media_mut().arm(Fault::Erase);
    driver.overwrite(&mut expected, 0, 2 * sectors, 3);
    assert_eq!(driver.report().media_errors.erase_failures, 1);
    assert_eq!(offline_chunks(&driver), 1);
    driver.ftl.check_invariants().expect("invariants");
    driver.check(&expected);
    driver.flush();
    let mut driver = driver.power_cut(config());
    assert_eq!(driver.sectors(), sectors);
    driver.check(&expected);
}

/// A device with no chunk to spare was taken when it was formatted, and is taken still when one is lost.
#[test]
fn a_tight_device_is_mounted_without_a_chunk_that_it_had() {
    let with = |chunks| Geometry { chunks, ..GEOMETRY };
    let all = |shape: &Geometry| u64::from(shape.chunks * shape.total_units());
    let fits = |shape: &Geometry| Capacity::of(shape, &config(), all(shape)).is_ok();
    let shape = (1..).map(with).find(fits).expect("some device fits");
    assert!(Capacity::of(&shape, &config(), all(&shape) - 1).is_err(), "as tight as can be");
    let mut driver = Driver::on(shape, TIMED, config());
    let sectors = driver.sectors();
    driver.write_run(0, sectors, 1);
    let mut expected: Vec<u64> = (1..=sectors).collect();
    driver.ftl.media_mut().arm(Fault::Erase);
    while driver.report().media_errors.erase_failures == 0 {
        driver.overwrite(&mut expected, 0, 64, 3);
    }
    driver.flush();
    let mut driver = driver.power_cut(config());
    assert_eq!(driver.sectors(), sectors);
    driver.check(&expected);
}

fn lost(lba: u64) -> Result<Reply, BlockError> {
    Err(BlockError::Io { lba: Lba(lba), what: "uncorrectable sector" })
}

/// A device with two copies of sector 20 on media, the newer one in a closed line.
fn overwritten(driver: &mut Driver) -> Vec<u64> {
    let filled = 2 * u64::from(driver.ftl.capacity().line_sectors);
    driver.write_run(0, filled, 1);
    driver.write(20, 777, Flags::NONE);
    driver.write_run(100, filled, 10_000);
    driver.flush();
    driver.settle();
    let mut expected: Vec<u64> = (1..=100).chain(10_000..10_000 + filled).collect();
    expected[20] = 777;
    expected
}

/// An uncorrectable sector is an error at its address, never an older copy, before and after a
/// remount, and its neighbours read on.
#[test]
fn an_uncorrectable_sector_is_an_error_and_never_old_data() {
    let mut driver = Driver::new(TIMED, config());
    let expected = overwritten(&mut driver);
    let line = lose(&mut driver, 20);
    assert_eq!(state(&driver, line), EraseUnitState::Full);
    for cut in [false, true] {
        if cut {
            driver = driver.power_cut(config());
        }
        assert_eq!(driver.read(20), lost(20), "after a cut: {cut}");
        assert_eq!(driver.run(Bio::read(Lba(16), 8)).result, lost(20));
        for lba in (0..expected.len() as u64).filter(|&lba| lba != 20) {
            assert_eq!(driver.read(lba), holds(expected[lba as usize]), "after a cut: {cut}");
        }
        assert!(driver.report().media_errors.uncorrectable >= 2);
    }
}

/// Addresses that cannot be read are not known: the newest copy that is left counts then, as where power was
/// cut before there were any.
#[test]
fn end_metadata_that_cannot_be_read_is_not_believed() {
    let mut driver = Driver::new(TIMED, config());
    let mut expected = overwritten(&mut driver);
    let line = lose(&mut driver, 20);
    let media = driver.ftl.media_mut();
    let sectors = chunks().filter(|id| id.chunk == line);
    let mut sectors =
        sectors.flat_map(|id| (0..GEOMETRY.sectors).map(move |i| GEOMETRY.ppa(id, i)));
    let emeta = sectors.find(|&at| media.oob(at).kind == Kind::Emeta).expect("a closed line");
    media.inner_mut().inner_mut().mark_unreadable(emeta);
    assert_eq!(driver.read(20), lost(20), "the host's table knows it");
    let mut driver = driver.power_cut(config());
    expected[20] = 21;
    driver.check(&expected);
}

/// Writing the sector again heals it, and garbage collection gets by it meanwhile.
#[test]
fn an_uncorrectable_sector_heals_when_overwritten() {
    let mut driver = Driver::new(TIMED, config());
    let sectors = driver.sectors();
    driver.write_run(0, sectors, 1);
    let mut expected: Vec<u64> = (1..=sectors).collect();
    driver.flush();
    driver.settle();
    let line = lose(&mut driver, 0);
    driver.overwrite(&mut expected, 1, 3 * sectors, 3);
    assert_eq!(driver.read(0), lost(0));
    assert_eq!(state(&driver, line), EraseUnitState::Corrupt);
    driver.write(0, 9, Flags::NONE);
    expected[0] = 9;
    driver.check(&expected);
    driver.overwrite(&mut expected, 0, sectors, 4);
    driver.ftl.check_invariants().expect("invariants");
    assert_ne!(state(&driver, line), EraseUnitState::Corrupt);
}

/// When no erase succeeds any more writes end with a reason, and everything acknowledged reads on.
#[test]
fn a_worn_out_device_is_read_only() {
    let mut driver = Driver::new(TIMED, config());
    let sectors = driver.sectors();
    driver.write_run(0, sectors, 1);
    driver.ftl.media_mut().inner_mut().faults_mut().erase_rate = 1.0;
    let end = (sectors + 1..sectors * 4).find_map(|tag| {
        let lba = Lba(tag % sectors);
        let bio = Bio::write(lba, 1, Payload::Run(Tag::new(tag)));
        driver.run(bio).result.err()
    });
    assert!(matches!(end, Some(BlockError::ReadOnly(_))), "{end:?}");
    assert!(matches!(driver.run(Bio::flush()).result, Err(BlockError::ReadOnly(_))));
    let acknowledged = |driver: &mut Driver, lba| {
        let Ok(Reply::Data(payload)) = driver.read(lba) else { return false };
        let SectorData::Tag(tag) = payload.sector(0) else { return false };
        tag.bits() == lba + 1 || (tag.bits() > sectors && tag.bits() % sectors == lba)
    };
    for lba in 0..sectors {
        assert!(acknowledged(&mut driver, lba), "lba {lba}: {:?}", driver.read(lba));
    }
}
/// pblk gives such a line a window of the ring until it is empty, however much is free.
#[test]
fn a_line_with_a_failed_program_is_emptied_while_much_is_free() {
    let mut driver = Driver::new(TIMED, config());
    driver.write(0, 1, Flags::FUA);
    let line = line_in(&driver, EraseUnitState::Open);
    driver.ftl.media_mut().arm(Fault::Program);
    driver.write(1, 2, Flags::FUA);
    let written = 3 * u64::from(driver.ftl.capacity().line_sectors);
    driver.write_run(2, written - 2, 3);
    driver.flush();
    driver.settle();
    assert_eq!(driver.ftl.erase_units()[line as usize].valid, 0);
}
