//! Several write buffers and open lines: the tightest device of the papers runs when full.

use crate::common::{Driver, GEOMETRY};
use nandscape_block::{Bio, Flags, Lba, Payload, Reply, Tag};
use nandscape_ftl::pblk::config::{Config, Routing};
use nandscape_media::Geometry;
use nandscape_rt::Stream;

/// The open-channel SSD of the JS-Pblk paper (table 1), with chunks of a sixteenth: as many lines are
/// spoken for, and the buffers are larger beside them.
const JS_PBLK: Geometry = Geometry { groups: 2, units: 4, chunks: 60, sectors: 256, ..GEOMETRY };

/// mke2fs' journal on a device of that size: half a line.
const JOURNAL_SECTORS: u64 = 1_024;

/// A journal write for each of data, to random places of the rest.
fn overwrite(driver: &mut Driver, pairs: u64, rng: &mut Stream, journal_at: &mut u64) {
    for _ in 0..pairs {
        let data = Lba(rng.within(JOURNAL_SECTORS..driver.sectors()));
        let journal = Lba(*journal_at);
        *journal_at = (*journal_at + 1) % JOURNAL_SECTORS;
        for (lba, flags) in [(data, Flags::NONE), (journal, Flags::JOURNAL)] {
            let bio = Bio::write(lba, 1, Payload::Run(Tag::new(lba.0 + 1))).with(flags);
            assert_eq!(driver.run(bio).result, Ok(Reply::None), "{lba}");
        }
    }
}

/// With a line for the journal and 11 percent of overprovisioning all 60 lines are spoken for: 54 of
/// logical space, 2 kept free, 4 being written or collected. Full, and cut now and then, it goes on.
#[test]
fn js_pblks_device_runs_when_full() {
    let routing = Routing { journal: true, ..Routing::default() };
    let config = Config { op_percent: Some(11), routing, ..Config::default() };
    let mut driver = Driver::on(JS_PBLK, "none", config.clone());
    for lba in (0..driver.sectors()).step_by(64) {
        let bio = Bio::write(Lba(lba), 64, Payload::Run(Tag::new(lba + 1)));
        assert_eq!(driver.run(bio).result, Ok(Reply::None));
    }
    let (mut rng, mut journal_at) = (Stream::new(1, "load"), 0);
    for round in 0..3 {
        overwrite(&mut driver, 10_000, &mut rng, &mut journal_at);
        let stats = driver.report();
        assert!(round == 0 || stats.gc.victims > 0, "garbage was collected: {stats:?}");
        driver = driver.power_cut(config.clone());
    }
    driver.flush();
    for lba in (0..driver.sectors()).step_by(101) {
        let expected = Ok(Reply::Data(Payload::Run(Tag::new(lba + 1))));
        assert_eq!(driver.read(lba), expected, "{lba}");
    }
}
