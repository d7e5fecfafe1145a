//! A zoned SSD on virtual NAND: it follows the rules of zones, what it stores can be read, what it promised survives
//! power cuts, and its latencies are NVMeVirt's.

mod ceilings;
pub(crate) mod driver;
mod load;
mod model;
mod promises;

use driver::{Driver, config};
use load::{Command, Load, drawn};
use nandscape_block::BlockDevice;
use nandscape_block::zone::ZoneId;
use nandscape_ftl::device::config::BufferConfig;
use nandscape_ftl::zoned::{Config, ZoneConfig};
use nandscape_rt::Stream;

fn power_safe(config: Config) -> Config {
    let buffer = BufferConfig { power_safe: true, ..config.pages.buffer };
    let zone = ZoneConfig { spare_chunks: 14, ..config.zone };
    Config { pages: nandscape_ftl::device::Config { buffer, ..config.pages }, zone, ..config }
}

fn with_zone(change: impl FnOnce(&mut ZoneConfig)) -> Config {
    let mut config = config();
    change(&mut config.zone);
    config
}

/// With a page-mapped region of two zones in front.
pub(crate) fn with_random() -> Config {
    let mut config = with_zone(|zone| zone.spare_chunks = 8);
    config.pages.instances = 2;
    config.pages.op_hundredths = 6_000;
    config.pages.buffer.size_bytes = 16 << 12;
    config.random_bytes = (2 * 48) << 12;
    config
}

fn unbuffered() -> Config {
    with_zone(|zone| zone.buffer_bytes = 0)
}

fn striped() -> Config {
    with_zone(|zone| (zone.dies, zone.instances, zone.buffer_bytes) = (4, 2, 20 << 12))
}

/// A write goes to a page of each stream at least.
fn unbuffered_striped() -> Config {
    with_zone(|zone| (zone.dies, zone.instances, zone.buffer_bytes) = (4, 2, 0))
}

/// Zones whose last page is short, and with addresses that cannot be written.
fn short() -> Config {
    with_zone(|zone| (zone.size_bytes, zone.capacity_bytes) = (64 << 12, 45 << 12))
}

fn configs() -> Vec<Config> {
    let single = with_zone(|zone| zone.dies = 1);
    vec![
        config(),
        with_random(),
        unbuffered(),
        unbuffered_striped(),
        striped(),
        short(),
        single,
        power_safe(config()),
        power_safe(striped()),
        power_safe(unbuffered()),
    ]
}

/// Runs drawn commands with a power cut after each `period`, if any.
fn runs(driver: Driver, seed: u64, commands: u32, period: Option<u64>) -> Result<Load, String> {
    let mut load = Load::new(driver);
    let mut rng = Stream::new(seed, "commands");
    let caps = load.driver.ftl.caps().clone();
    let zones = (0..).map_while(|zone| caps.zone(ZoneId(zone))).count() as u32;
    for _ in 0..commands {
        let command = match period {
            Some(period) if rng.below(period) == 0 => Command::Cut { percent: rng.below(120) },
            _ => drawn(&mut rng, zones),
        };
        load = load.run(command)?;
    }
    load.drain()?;
    Ok(load)
}

/// Runs every configuration with every timing, on so many seeds.
fn all_run(seeds: u64, period: Option<u64>) {
    for (kind, config) in configs().into_iter().enumerate() {
        for timing in ["nvmevirt-zn540", "qemu-ocssd", "none"] {
            for seed in 0..seeds {
                let ran = runs(Driver::new(timing, config.clone()), seed, 300, period);
                if let Err(what) = ran {
                    panic!("configuration {kind}, {timing}, seed {seed}: {what}");
                }
            }
        }
    }
}

/// Every command has the status, the effect and the content that the rules give it.
#[test]
fn the_device_follows_the_rules() {
    all_run(20, None);
}

/// A power cut at any instant leaves prefixes of one generation, with everything that was promised.
#[test]
fn power_cuts_leave_prefixes() {
    all_run(40, Some(30));
}
