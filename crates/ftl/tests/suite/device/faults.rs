//! Media that fail: nothing is lost but what could not be read, and that is an error and never old data.

use crate::device::driver::{Driver, GEOMETRY, config, large_units};
use crate::device::load::Load;
use nandscape_block::{Bio, BlockError, Flags, Lba, Payload, Reply, Tag};
use nandscape_ftl::device::config::Config;
use nandscape_ftl::{Ftl, FtlRun};
use nandscape_media::{ChunkId, ChunkState, Faults, Kind, Layer, OpenChannel, Ppa, UnitId};

fn driver(faults: Faults, config: Config) -> Driver {
    Driver::on(GEOMETRY, "qemu-ocssd", faults, config, FtlRun::default())
}

/// Programs that fail are written elsewhere, before and after power cuts.
#[test]
fn failed_programs_lose_nothing() {
    for config in [config(), large_units(16 << 10)] {
        let faults = Faults { program_rate: 0.0005, ..Faults::default() };
        let config = Config { op_hundredths: 40 * 100, ..config };
        let load = Load::new(driver(faults, config), 5).run(8_000);
        assert!(load.driver.ftl.report().media_errors.program_failures > 0);
        let mut load = load.run_with_cuts(10).expect("promises are kept").run(4_000);
        load.check();
    }
}

/// A chunk that cannot be erased takes from overprovisioning, never from what the host was given.
#[test]
fn failed_erases_lose_nothing() {
    let faults = Faults { erase_rate: 0.002, ..Faults::default() };
    let config = Config { op_hundredths: 40 * 100, ..config() };
    let mut load = Load::new(driver(faults, config), 6).run(20_000);
    let sectors = load.driver.sectors();
    assert!(load.driver.ftl.report().media_errors.erase_failures > 0);
    load.check();
    load.driver.flush();
    let driver = load.driver.power_cut();
    assert_eq!(driver.sectors(), sectors);
}

/// The place of a logical sector on media.
fn place(driver: &Driver, lba: u64) -> Ppa {
    let media = driver.ftl.media();
    let holds = |at: &Ppa| {
        let oob = media.oob(*at);
        oob.kind == Kind::Data && u64::from(oob.key) == lba
    };
    let chunks = (0..GEOMETRY.chunks).flat_map(|chunk| {
        (0..GEOMETRY.total_units()).map(move |unit| ChunkId { unit: UnitId(unit), chunk })
    });
    let written = chunks
        .filter(|&id| media.chunk(id).state != ChunkState::Offline)
        .flat_map(|id| (0..media.chunk(id).wp).map(move |sector| GEOMETRY.ppa(id, sector)));
    written.rev().find(holds).expect("is on media")
}

/// A sector that cannot be corrected reads as an error until it is written again, also when its erase unit is
/// collected around it; its neighbours are there.
#[test]
fn an_uncorrectable_sector_is_an_error_of_its_own() {
    let mut driver = driver(Faults::default(), Config { op_hundredths: 30 * 100, ..config() });
    let sectors = driver.sectors();
    for lba in 0..sectors {
        driver.write(lba, 1 + lba, Flags::NONE);
    }
    driver.flush();
    let at = place(&driver, 16);
    driver.ftl.media_mut().mark_unreadable(at);
    let lost = Err(BlockError::Io { lba: Lba(16), what: "uncorrectable sector" });
    assert_eq!(driver.run(Bio::read(Lba(12), 8)).result, lost);
    let mut rng = nandscape_rt::Stream::new(3, "overwrite");
    for tag in 0..4 * sectors {
        let lba = rng.within(17..sectors);
        driver.write(lba, 1 << 40 | tag, Flags::NONE);
    }
    driver.check();
    assert_eq!(driver.read(16), lost);
    for lba in 0..16 {
        assert_eq!(driver.read(lba), crate::device::driver::holds(1 + lba), "lba {lba}");
    }
    driver.write(16, 99, Flags::NONE);
    assert_eq!(driver.read(16), crate::device::driver::holds(99));
}

/// A write of a part of a mapping unit fails if the rest of it is lost, and writing all of it helps.
#[test]
fn a_lost_sector_fails_writes_beside_it_in_its_mapping_unit() {
    let mut driver = driver(Faults::default(), large_units(16 << 10));
    driver.write_sectors(0, 4, 1, Flags::FUA);
    let at = place(&driver, 2);
    driver.ftl.media_mut().inner_mut().mark_unreadable(at);
    let bio = |lba, sectors| Bio::write(Lba(lba), sectors, Payload::Run(Tag::new(50)));
    assert!(matches!(driver.run(bio(0, 1)).result, Err(BlockError::Io { lba: Lba(2), .. })));
    assert_eq!(driver.run(bio(2, 1)).result, Ok(Reply::None), "what is lost is overwritten");
    assert_eq!(driver.read(3), crate::device::driver::holds(4));
    assert_eq!(driver.run(bio(0, 4)).result, Ok(Reply::None));
    assert_eq!(driver.read(2), crate::device::driver::holds(52));
}
