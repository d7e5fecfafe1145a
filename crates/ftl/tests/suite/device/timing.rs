//! Ceilings of NVMeVirt's 970 Pro (`ssd_config.h`; the sums are those of its request paths).

use crate::device::driver::{Driver, keep_busy};
use nandscape_block::{Bio, Flags, Lba, Payload};
use nandscape_ftl::device::config::Config;
use nandscape_ftl::{Ftl, FtlRun};
use nandscape_media::{Faults, Geometry};
use nandscape_rt::Nanos;
use std::collections::BTreeSet;

/// 8 channels of 2 units, blocks of 64 one-shot pages of 32 KiB.
const SAMSUNG_970_PRO: Geometry = Geometry {
    groups: 8,
    units: 2,
    chunks: 100,
    sectors: 512,
    ws_min: 8,
    ws_opt: 8,
    mw_cunits: 0,
    maxoc: 0,
    maxocpu: 0,
};

fn driver() -> Driver {
    let run = FtlRun { keep_content: false, ..FtlRun::default() };
    let timing = "nvmevirt-970pro";
    Driver::on(SAMSUNG_970_PRO, timing, Faults::default(), Config::default(), run)
}

fn write(lba: u64, sectors: u32) -> Bio {
    Bio::write(Lba(lba), sectors, Payload::None)
}

/// Firmware 21.5 us, sense 29.76 us or 41.76 us, channel 5.12 us, PCIe 1.22 us.
#[test]
fn a_small_read_takes_as_long_as_its_page_is_fast() {
    let mut driver = driver();
    for lba in (0..2_048).step_by(32) {
        driver.run(write(lba, 32));
    }
    driver.flush();
    let mut seen = BTreeSet::new();
    for lba in 0..2_048 {
        let begun = driver.now;
        let done = driver.run(Bio::read(Lba(lba), 1));
        assert!(done.result.is_ok());
        seen.insert((done.at - begun).0);
    }
    assert_eq!(seen, BTreeSet::from([57_600, 69_600]));
}

/// 4 us, 0.46 us a sector, PCIe 1.22 us a sector; then a read of it from the buffer: firmware and PCIe.
#[test]
fn a_buffered_write_takes_no_nand() {
    let mut driver = driver();
    let begun = driver.now;
    let done = driver.run(write(5, 1));
    assert_eq!(done.at - begun, Nanos(5_680));
    let begun = driver.now;
    let done = driver.run(Bio::read(Lba(5), 1));
    assert_eq!(done.at - begun, Nanos(21_500 + 1_220));
    let begun = driver.now;
    let done = driver.run(write(100, 1).with(Flags::FUA));
    assert_eq!(done.at - begun, Nanos(5_680 + 8 * 5_120 + 185_000));
}

/// 16 units that take 40.96 us over the channel and 185 us of tPROG for 32 KiB: 2.32 GB/s.
#[test]
fn sustained_writes_are_bound_by_programs() {
    let mut driver = driver();
    keep_busy(&mut driver, 32, 200, |number| write(number * 32, 32));
    let took = keep_busy(&mut driver, 32, 1_600, |number| write((200 + number) * 32, 32));
    let bytes_per_s = 1_600.0 * 131_072.0 / (took.0 as f64 / 1e9);
    let ceiling = 16.0 * 32_768.0 / 225.96e-6;
    assert!((bytes_per_s / ceiling - 1.0).abs() < 0.01, "{bytes_per_s:.4e} of {ceiling:.4e}");
}

/// Every user sector crosses the link once; copies never do.
#[test]
fn copies_do_not_cross_the_link() {
    let mut driver = Driver::new("nvmevirt-970pro", crate::device::driver::config());
    let sectors = driver.sectors();
    let mut rng = nandscape_rt::Stream::new(9, "writes");
    driver.ftl.reset_counts();
    for tag in 0..4 * sectors {
        driver.write(rng.below(sectors), tag, Flags::NONE);
    }
    let (report, link) = (driver.ftl.report(), driver.ftl.link().counts());
    assert!(report.sectors.gc > sectors / 2);
    assert_eq!(link.to_device_bytes, 4_096 * report.host.written);
    assert_eq!(link.to_device_busy, Nanos(1_220 * report.host.written));
    assert_eq!(link.to_host_bytes, 0);
}
