//! Write amplification against theory: uniform random 4 KiB writes, no timing; each instance is a log of its own.
//!
//! FIFO: a sector is still valid when its erase unit is collected if none of the user writes in between hit it,
//! which gives 1 - 1/A = exp(-alpha/A), with alpha = sectors in use / logical sectors (Desnoyers, "Analytic Models
//! of SSD Write Performance", 2014).
//!
//! Greedy: the mean-field limit of d-choices as d grows (Van Houdt, "A Mean Field Model for a Class of Garbage
//! Collection Algorithms in Flash-based Solid State Drives", 2013), for the size of an erase unit at hand.

use crate::driver::Driver;
use nandscape_block::{Bio, BlockDevice, Lba, Payload, Token};
use nandscape_ftl::device::config::{Config, Victim};
use nandscape_ftl::{Ftl, FtlReport, FtlRun};
use nandscape_media::{Faults, Geometry};
use nandscape_rt::Stream;

/// Largest relative distance from theory.
const TOLERANCE: f64 = 0.01;

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
    let config = Config { victim, op_percent, ..Config::default() };
    let run = FtlRun { keep_content: false, ..FtlRun::default() };
    let mut driver = Driver::with(GEOMETRY, "none", Faults::default(), config, run);
    let sectors = driver.sectors();
    let mut write = |lba| {
        let bio = Bio::write(Lba(lba), 1, Payload::None);
        driver.ssd.submit(driver.now, bio, Token(0));
    };
    (0..sectors).for_each(&mut write);
    let mut rng = Stream::new(1, "theory");
    (0..2 * sectors).for_each(|_| write(rng.below(sectors)));
    driver.ssd.reset_counts();
    let mut write = |lba| {
        let bio = Bio::write(Lba(lba), 1, Payload::None);
        driver.ssd.submit(driver.now, bio, Token(0));
    };
    (0..2 * sectors).for_each(|_| write(rng.below(sectors)));
    driver.check();
    (driver.ssd.report(), sectors)
}

/// The root of a decreasing function.
fn root(mut low: f64, mut high: f64, decreasing: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if decreasing(middle) > 0.0 { low = middle } else { high = middle }
    }
    low
}

/// A of 1 - 1/A = exp(-alpha/A).
fn fifo_amplification(alpha: f64) -> f64 {
    root(1.0 + 1e-9, 1e3, |a| libm::exp(-alpha / a) - (1.0 - 1.0 / a))
}

/// A of greedy with `b` data sectors an erase unit and a share `rho` of them valid: the level below which none is
/// collected is that at which the shares of all levels sum to 1.
fn greedy_amplification(b: u32, rho: f64) -> f64 {
    let data = f64::from(b);
    let shares = |x: f64| {
        let lowest = x as u32;
        let above: f64 = (lowest + 2..=b).map(|i| 1.0 / f64::from(i)).sum();
        let at = (1.0 - (x - f64::from(lowest))) / f64::from(lowest + 1);
        (above + at) * rho * data / (data - x)
    };
    let x = root(0.0, data - 1.0, |x| shares(x) - 1.0);
    data / (data - x)
}

fn assert_near(victim: Victim, op_percent: u32, law: impl Fn(f64) -> f64) {
    let (report, sectors) = measure(victim, op_percent);
    assert_eq!(report.host.written, 2 * sectors);
    let measured = 1.0 + report.sectors.gc as f64 / report.sectors.user as f64;
    let expected = law(report.in_use_sectors_mean / sectors as f64);
    let distance = measured / expected - 1.0;
    println!("{victim:?}, {op_percent} %: {measured:.4}, theory {expected:.4}, {distance:+.4}");
    assert!(distance.abs() <= TOLERANCE, "{victim:?}, {op_percent} %: {distance:+.4} from theory");
}

#[test]
fn fifo_is_as_theory_says() {
    for op_percent in [7, 11, 20] {
        assert_near(Victim::Fifo, op_percent, fifo_amplification);
    }
}

#[test]
fn greedy_is_as_theory_says() {
    let law = |alpha: f64| greedy_amplification(64, 1.0 / alpha);
    for op_percent in [7, 11, 20] {
        assert_near(Victim::Greedy, op_percent, law);
    }
}
