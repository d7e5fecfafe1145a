//! Write amplification against theory: uniform random 4 KiB writes, no timing; each instance is a log of its own
//! (the laws: crates/theory).

use crate::device::driver::Driver;
use nandscape_block::{Bio, BlockDevice, Lba, Payload, Token};
use nandscape_ftl::device::config::{Config, Victim};
use nandscape_ftl::{Ftl, FtlReport, FtlRun};
use nandscape_media::{Faults, Geometry};
use nandscape_rt::Stream;
use nandscape_theory::{assert_near, fifo_amplification, greedy_amplification};

/// 4 instances of 640 erase units of 64 sectors.
const GEOMETRY: Geometry = Geometry {
    groups: 4,
    units: 2,
    chunks: 640,
    sectors: 32,
    ws_min: 1,
    ws_opt: 1,
    mw_cunits: 0,
    maxoc: 0,
    maxocpu: 0,
};

/// Fills the device, overwrites it twice at random, and counts during two more times.
fn measure(victim: Victim, op_percent: u32) -> (FtlReport, u64) {
    let config = Config { victim, op_hundredths: op_percent * 100, ..Config::default() };
    let run = FtlRun { keep_content: false, ..FtlRun::default() };
    let mut driver = Driver::on(GEOMETRY, "none", Faults::default(), config, run);
    let sectors = driver.sectors();
    let mut write = |lba| {
        let bio = Bio::write(Lba(lba), 1, Payload::None);
        driver.ftl.submit(driver.now, bio, Token(0));
    };
    (0..sectors).for_each(&mut write);
    let mut rng = Stream::new(1, "theory");
    (0..2 * sectors).for_each(|_| write(rng.below(sectors)));
    driver.ftl.reset_counts();
    let mut write = |lba| {
        let bio = Bio::write(Lba(lba), 1, Payload::None);
        driver.ftl.submit(driver.now, bio, Token(0));
    };
    (0..2 * sectors).for_each(|_| write(rng.below(sectors)));
    driver.check();
    (driver.ftl.report(), sectors)
}

fn assert_is_as_theory_says(victim: Victim, op_percent: u32, law: impl Fn(f64) -> f64) {
    let (report, sectors) = measure(victim, op_percent);
    assert_eq!(report.host.written, 2 * sectors);
    let measured = 1.0 + report.sectors.gc as f64 / report.sectors.user as f64;
    let expected = law(report.in_use_sectors_mean / sectors as f64);
    assert_near(&format!("{victim:?}, {op_percent} %"), measured, expected);
}

#[test]
fn fifo_is_as_theory_says() {
    for op_percent in [7, 11, 20] {
        assert_is_as_theory_says(Victim::Fifo, op_percent, fifo_amplification);
    }
}

#[test]
fn greedy_is_as_theory_says() {
    let law = |alpha: f64| greedy_amplification(64, 1.0 / alpha);
    for op_percent in [7, 11, 20] {
        assert_is_as_theory_says(Victim::Greedy, op_percent, law);
    }
}
