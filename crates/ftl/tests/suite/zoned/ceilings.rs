//! Ceilings of NVMeVirt's two zoned drives (`ssd_config.h`; the sums are those of its request paths).

use crate::zoned::driver::{Driver, keep_busy};
use nandscape_block::zone::ZoneId;
use nandscape_block::{Bio, BlockDevice, Lba, Payload};
use nandscape_ftl::FtlRun;
use nandscape_ftl::zoned::{Config, ZoneConfig};
use nandscape_media::{Faults, Geometry};
use nandscape_rt::Nanos;

/// A drive of these channels, units per channel and sectors per one-shot page.
fn drive(timing: &str, (groups, units, page): (u32, u32, u32), zone: ZoneConfig) -> Driver {
    let geometry = Geometry {
        groups,
        units,
        chunks: 32,
        sectors: 64 * page,
        ws_min: page,
        ws_opt: page,
        mw_cunits: 0,
        maxoc: 0,
        maxocpu: 0,
    };
    let config = Config { zone, ..Config::default() };
    let run = FtlRun { keep_content: false, ..FtlRun::default() };
    Driver::on(geometry, timing, Faults::default(), config, run)
}

/// 32 units with one-shot pages of 96 KiB, all of which a zone uses, and a buffer of 960 KiB per zone.
fn zn540() -> Driver {
    let zone = ZoneConfig { dies: 32, ..Config::default().zone };
    drive("nvmevirt-zn540", (8, 4, 24), zone)
}

/// 128 units with one-shot pages of 128 KiB, one per zone, without a buffer.
fn prototype() -> Driver {
    let zone = ZoneConfig {
        dies: 1,
        buffer_bytes: 0,
        max_open: 0,
        max_active: 0,
        ..Config::default().zone
    };
    drive("nvmevirt-zns-prototype", (8, 16, 32), zone)
}

/// Writes the first `zones` zones in turn, with `depth` commands of so many sectors in flight, `count` for each; bytes
/// per second after as many that fill the buffers.
fn write_rate(driver: &mut Driver, zones: u64, depth: u64, (sectors, count): (u32, u64)) -> f64 {
    let distance = driver.ftl.caps().zone(ZoneId(0)).expect("zones").1.zone_sectors;
    let write = |number: u64| {
        let at = number % zones * distance + number / zones * u64::from(sectors);
        Bio::write(Lba(at), sectors, Payload::None)
    };
    let (first, count) = (zones * count / 4, zones * count);
    keep_busy(driver, depth, first, write);
    let took = keep_busy(driver, depth, count, |number| write(first + number));
    count as f64 * f64::from(sectors) * 4_096.0 / took.as_secs_f64()
}

#[track_caller]
fn assert_near(got: f64, ceiling: f64, within: f64) {
    let reached = (1.0 - within)..1.001;
    assert!(reached.contains(&(got / ceiling)), "{got:.4e} of {ceiling:.4e}");
}

/// How long one bio takes on an idle drive.
fn latency(driver: &mut Driver, bio: Bio) -> Nanos {
    let begun = driver.now;
    let done = driver.run(bio);
    assert!(done.result.is_ok());
    done.at - begun
}
/// ZN540: firmware 5.6 us and 0.6 us a sector, PCIe 1.343 us a sector.
#[test]
fn a_buffered_write_takes_no_nand() {
    let mut driver = zn540();
    assert_eq!(latency(&mut driver, Bio::write(Lba(0), 1, Payload::None)), Nanos(7_543));
    let sectors = latency(&mut driver, Bio::write(Lba(1), 24, Payload::None));
    assert_eq!(sectors, Nanos(5_600 + 24 * 600 + 32_231));
}

/// ZN540: firmware 20 us, sense 50 us, channel 9.103 us, PCIe 1.343 us. Prototype: firmware 32.15 us, sense 25.485 us,
/// channel 5.12 us and 0.413 us, PCIe 1.28 us.
#[test]
fn small_reads_take_one_sense() {
    let mut driver = zn540();
    keep_busy(&mut driver, 4, 32, |number| Bio::write(Lba(number * 24), 24, Payload::None));
    driver.flush();
    let expected = Nanos(20_000 + 50_000 + 9_103 + 1_343);
    assert_eq!(latency(&mut driver, Bio::read(Lba(0), 1)), expected);
    let mut driver = prototype();
    driver.run(Bio::write(Lba(0), 32, Payload::None));
    let expected = Nanos(32_150 + 25_485 + 5_120 + 413 + 1_280);
    assert_eq!(latency(&mut driver, Bio::read(Lba(0), 1)), expected);
}

/// Ten pages of 96 KiB fill a zone's buffer, and each is released 561 us and 218.45 us of transfer after the firmware's
/// 20 us and PCIe's 32.23 us: 1.18 GB/s.
#[test]
fn the_buffer_bounds_the_writes_of_one_zone() {
    let page_s = 561e-6 + 98_304.0 / 450e6 + 5.6e-6 + 24.0 * 0.6e-6 + 98_304.0 / 3_050e6;
    let rate = write_rate(&mut zn540(), 1, 32, (24, 400));
    assert_near(rate, 10.0 * 98_304.0 / page_s, 0.01);
}

/// 32 units program 4.04 GB/s, eight channels carry 3.6 GB/s, the link 3.05 GB/s: the link bounds 14 zones.
#[test]
fn the_link_bounds_the_writes_of_many_zones() {
    assert_near(write_rate(&mut zn540(), 14, 224, (24, 1_200)), 3_050e6, 0.02);
    assert_near(write_rate(&mut prototype(), 128, 512, (32, 40)), 3_200e6, 0.02);
}

/// A unit of the prototype programs 128 KiB every 1,913.64 us, 163.84 us of transfer and 32 x 0.413 us: 62.7 MB/s a
/// zone, as long as each has a channel.
#[test]
fn a_unit_bounds_the_writes_of_its_zone() {
    let one = 131_072.0 / (1_913.64e-6 + 163.84e-6 + 32.0 * 0.413e-6);
    for zones in [1, 8] {
        let rate = write_rate(&mut prototype(), zones, 4 * zones, (32, 40));
        assert_near(rate, zones as f64 * one, 0.01);
    }
}

/// Without a buffer a write completes with its program: PCIe 40.96 us, and the unit.
#[test]
fn an_unbuffered_write_takes_its_program() {
    let took = latency(&mut prototype(), Bio::write(Lba(0), 32, Payload::None));
    assert_eq!(took, Nanos(40_960 + 163_840 + 32 * 413 + 1_913_640));
}
