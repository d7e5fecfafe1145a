//! A full device under random writes keeps its units busy, whatever its shape, and more of what it has never makes it slower.

use crate::device::driver::{Driver, keep_busy};
use nandscape_block::{Bio, Lba, Payload};
use nandscape_ftl::device::config::{BufferConfig, Config, Schedule};
use nandscape_ftl::{Ftl, FtlRun};
use nandscape_media::{Faults, Geometry, Layer};
use nandscape_rt::Stream;
use proptest::prelude::*;
use std::cell::RefCell;

/// 8 units; chunks of 16 one-shot pages.
const GEOMETRY: Geometry = Geometry {
    groups: 4,
    units: 2,
    chunks: 120,
    sectors: 128,
    ws_min: 8,
    ws_opt: 8,
    mw_cunits: 0,
    maxoc: 0,
    maxocpu: 0,
};

fn config() -> Config {
    let buffer = BufferConfig { size_bytes: 1 << 20, ..Config::default().buffer };
    Config { op_hundredths: 12 * 100, buffer, instances: 2, ..Config::default() }
}

/// What a device does under random writes when it is full.
#[derive(Debug)]
struct Pace {
    /// Sectors of the host a second.
    rate: f64,
    waf: f64,
    /// Shares of time in which units were busy, on average and of the least busy one.
    busy: f64,
    least: f64,
    /// Channels in use, on average.
    channels: f64,
    /// Victims a second.
    victims: f64,
}

/// Fills a device, overwrites it once at random, and looks at it during another half, with so many writes of a sector in it.
fn pace(geometry: Geometry, config: Config, depth: u64) -> Pace {
    let run = FtlRun { keep_content: false, ..FtlRun::default() };
    let mut driver = Driver::on(geometry, "nvmevirt-970pro", Faults::default(), config, run);
    let sectors = driver.sectors();
    keep_busy(&mut driver, depth, sectors.div_ceil(32), |number| {
        let lba = number * 32;
        Bio::write(Lba(lba), 32.min((sectors - lba) as u32), Payload::None)
    });
    let rng = RefCell::new(Stream::new(1, "busy"));
    let write = |_| Bio::write(Lba(rng.borrow_mut().below(sectors)), 1, Payload::None);
    keep_busy(&mut driver, depth, sectors, write);
    driver.ftl.reset_counts();
    driver.ftl.media_mut().inner_mut().reset_utilisation();
    let took = keep_busy(&mut driver, depth, sectors / 2, write).0 as f64;
    driver.check();
    let report = driver.ftl.report();
    let (counts, used) = (report.sectors, driver.ftl.media().inner().utilisation());
    let shares: Vec<f64> = used.units.iter().map(|busy| busy.0 as f64 / took).collect();
    Pace {
        channels: used.channels.iter().map(|busy| busy.0 as f64 / took).sum(),
        victims: report.gc.victims as f64 / took * 1e9,
        rate: (sectors / 2) as f64 / took * 1e9,
        waf: 1.0 + counts.gc as f64 / counts.user as f64,
        busy: shares.iter().sum::<f64>() / shares.len() as f64,
        least: shares.into_iter().fold(1.0, f64::min),
    }
}

/// Units are busy while writes wait. With NVMeVirt's schedule they are not: the instances wait for each other's buffer.
#[test]
fn units_are_busy_while_writes_wait() {
    for (instances, depth) in [(1, 64), (2, 64), (4, 512)] {
        let found = pace(GEOMETRY, Config { instances, ..config() }, depth);
        assert!(found.busy > 0.9 && found.least > 0.85, "{instances} instances: {found:?}");
    }
    let found = pace(GEOMETRY, Config { schedule: Schedule::Nvmevirt, ..config() }, 64);
    assert!(found.busy < 0.8, "NVMeVirt's schedule: {found:?}");
}

/// FEMU's schedule collects before it has to, and so copies more.
#[test]
fn femu_collects_early() {
    let [plain, femu] = [Schedule::Nvmevirt, Schedule::Femu]
        .map(|schedule| pace(GEOMETRY, Config { schedule, ..config() }, 64));
    assert!(femu.waf > plain.waf, "{plain:?}, {femu:?}");
}

/// Units are busy for as long as throughput, write amplification and the times of the NAND ask for, within 3 %. A unit that
/// has a channel alone waits for no other.
#[test]
fn busy_time_is_what_throughput_asks_for() {
    let alone = Geometry { groups: 8, units: 1, ..GEOMETRY };
    let found = pace(alone, config(), 64);
    let (page, pages) = (8.0, f64::from(alone.sectors / 8) * 4.0);
    // Of a program its channel time is beside that; a page of a victim is sensed in 36.013 us on average.
    let programs_s = found.rate * found.waf / page * 185e-6;
    let reads_s = found.victims * pages * 36.013e-6;
    let asked = programs_s + reads_s + found.channels;
    assert!((asked / (8.0 * found.busy) - 1.0).abs() < 0.03, "{asked} of 8 units, {found:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4, ..ProptestConfig::default() })]

    /// More requests or a larger buffer never cost more than 2 % of throughput. More instances, or collection that begins
    /// earlier, cost free space, and thereby write amplification, but units stay as busy.
    #[test]
    fn more_is_never_worse(
        rows in 16_u32..24,
        units in 2_u32..4,
        op_percent in 12_u32..20,
        depth in 48_u64..128,
        gc_lines in 2_u32..4,
    ) {
        let shape = Geometry { units, sectors: 8 * rows, ..GEOMETRY };
        let plain = Config { op_hundredths: op_percent * 100, gc_lines, ..config() };
        let base = pace(shape, plain.clone(), depth);
        let deeper = pace(shape, plain.clone(), 4 * depth);
        prop_assert!(deeper.rate > 0.98 * base.rate, "depth: {base:?}, {deeper:?}");
        let buffer = BufferConfig { size_bytes: 4 << 20, ..plain.buffer };
        let larger = pace(shape, Config { buffer, ..plain.clone() }, depth);
        prop_assert!(larger.rate > 0.98 * base.rate, "buffer: {base:?}, {larger:?}");
        let others = [Config { instances: 4, ..plain.clone() }, Config { gc_lines: gc_lines + 1, ..plain }];
        for other in others {
            let what = format!("{} instances, {} lines", other.instances, other.gc_lines);
            let more = pace(shape, other, depth);
            prop_assert!(more.busy > base.busy - 0.02, "{what}: {base:?}, {more:?}");
            let work = more.rate * more.waf / (base.rate * base.waf);
            prop_assert!(work > 0.97, "{what}: {base:?}, {more:?}");
        }
    }
}
