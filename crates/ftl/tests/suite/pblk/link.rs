//! What crosses the link between host and device: of an FTL on the host, every sector that the media
//! program and every sector that is read of them, once, whatever the job; and what copies in the
//! host's memory take.

use crate::common::{Driver, config};
use nandscape_block::{Bio, Flags, Lba, Payload, Tag};
use nandscape_ftl::pblk::config::{
    BaseRouting, CacheSize, Config, CoreChoice, MapConfig, MapKind, MapPolicy, Routing,
};
use nandscape_ftl::pblk::costs::CpuCosts;
use nandscape_ftl::{Attach, Ftl};
use nandscape_media::{Layer, LinkUse};
use nandscape_rt::Nanos;
use proptest::prelude::*;

const TIMED: &str = "nvmevirt-970pro";

#[derive(Clone, Copy, Debug)]
enum Request {
    Write { at: u64, sectors: u64, fua: bool },
    Read { at: u64, sectors: u64 },
    Discard { at: u64, sectors: u64 },
    Flush,
}

fn request() -> impl Strategy<Value = Request> {
    let range = || (any::<u64>(), 1..64_u64);
    prop_oneof![
        8 => (range(), prop::bool::weighted(0.05))
            .prop_map(|((at, sectors), fua)| Request::Write { at, sectors, fua }),
        2 => range().prop_map(|(at, sectors)| Request::Read { at, sectors }),
        1 => range().prop_map(|(at, sectors)| Request::Discard { at, sectors }),
        1 => Just(Request::Flush),
    ]
}

/// One write buffer and the map in RAM, a buffer per core, the host's CPU charged, a cached map.
fn configs() -> [Config; 4] {
    let map = MapConfig {
        block_bytes: 4_096,
        cache: CacheSize::Bytes(4 * 4_096),
        policy: MapPolicy::Lru,
        loads_max: 8,
        ..MapConfig::default()
    };
    let per_core = Routing { base: BaseRouting::PerCore(CoreChoice::Core), ..Routing::default() };
    [
        config(),
        Config { routing: per_core, write_buffers: 2, ..config() },
        Config { cpu: CpuCosts::preset("null-block").expect("a preset"), ..config() },
        Config { op_percent: Some(60), map: MapKind::Cached(map), ..config() },
    ]
}

fn serve(driver: &mut Driver, request: Request) {
    let end = driver.sectors();
    let within = |at: u64, sectors: u64| (at % end, sectors.min(end - at % end));
    match request {
        Request::Write { at, sectors, fua } => {
            let (at, sectors) = within(at, sectors);
            driver.write_run(at, sectors, at + 1);
            if fua {
                driver.write(at, at + 1, Flags::FUA);
            }
        }
        Request::Read { at, sectors } => {
            let (at, sectors) = within(at, sectors);
            driver.run(Bio::read(Lba(at), sectors as u32));
        }
        Request::Discard { at, sectors } => {
            let (at, sectors) = within(at, sectors);
            driver.run(Bio::discard(Lba(at), sectors as u32));
        }
        Request::Flush => drop(driver.flush()),
    }
}

/// Bytes programmed and bytes read, as the media count them.
fn media_bytes(driver: &Driver) -> (u64, u64) {
    let tracer = driver.ftl.media();
    let programmed = tracer.inner().inner().utilisation().programmed_sectors;
    (programmed * 4_096, tracer.counters().reads.sectors * 4_096)
}

fn link_bytes(driver: &Driver) -> (u64, u64) {
    let LinkUse { to_device_bytes, to_host_bytes, .. } = driver.ftl.link().counts();
    (to_device_bytes, to_host_bytes)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(12) })]

    /// Users' data, copies of collection, metadata, mapping blocks and padding all cross the link, and
    /// so does what a mount pads and reads.
    #[test]
    fn every_sector_crosses_the_link_once(
        requests in prop::collection::vec(request(), 1..40),
        which in 0..4_usize,
        timed in any::<bool>(),
    ) {
        let config = configs()[which].clone();
        let mut driver = Driver::new(if timed { TIMED } else { "none" }, config.clone());
        driver.ftl.reset_counts();
        driver.ftl.media_mut().inner_mut().inner_mut().reset_utilisation();
        // So much that lines are collected.
        let mut expected = vec![0; driver.sectors() as usize];
        driver.write_run(0, driver.sectors(), 1);
        driver.overwrite(&mut expected, 0, driver.sectors(), 1);
        let unwritten = [Request::Discard { at: 0, sectors: 9 }, Request::Read { at: 0, sectors: 9 }];
        for request in unwritten.into_iter().chain(requests) {
            serve(&mut driver, request);
        }
        let (programmed, read) = media_bytes(&driver);
        // Zeroes of what was never written cross the link, and come from no medium.
        let zeroes = driver.report().host.unwritten * 4_096;
        prop_assert!(zeroes > 0, "all that was read was written");
        prop_assert_eq!(link_bytes(&driver), (programmed, read + zeroes));
        prop_assert!(driver.report().sectors.gc > 0, "nothing was collected");
        let before = media_bytes(&driver);
        let driver = driver.power_cut(config);
        let after = media_bytes(&driver);
        let mounting = (after.0 - before.0, after.1 - before.1);
        prop_assert_eq!(link_bytes(&driver), mounting);
    }
}

/// A write is acknowledged once its sectors were copied into the host's buffer; a read of them takes
/// a copy likewise. Neither crosses the link. Where the host's CPU is charged, the submitting core
/// copied what is written.
#[test]
fn a_buffer_on_the_host_costs_copies() {
    let copy = Nanos(Attach::COPY_NS_PER_SECTOR);
    let mut driver = Driver::new(TIMED, config());
    driver.ftl.reset_counts();
    let mut elapsed = |bio: Bio| {
        let began = driver.now;
        driver.run(bio).at - began
    };
    assert_eq!(elapsed(Bio::write(Lba(7), 1, Payload::Run(Tag::new(1)))), copy);
    assert_eq!(elapsed(Bio::write(Lba(8), 3, Payload::Run(Tag::new(2)))), Nanos(3 * copy.0));
    assert_eq!(elapsed(Bio::read(Lba(7), 2)), Nanos(2 * copy.0));
    assert_eq!(driver.ftl.link().counts(), LinkUse::default());

    let cpu = CpuCosts::preset("null-block").expect("a preset");
    let mut driver = Driver::new(TIMED, Config { cpu, ..config() });
    let began = driver.now;
    let done = driver.run(Bio::write(Lba(7), 1, Payload::Run(Tag::new(1))));
    let charged = cpu.submit_ns + cpu.ring_sector_ns + cpu.map_sector_ns + cpu.copy_sector_ns;
    assert_eq!(done.at - began, Nanos(charged + cpu.ring_request_ns));
}

/// A device without timing takes none, copies included.
#[test]
fn no_time_passes_without_timing() {
    let mut driver = Driver::new("none", config());
    driver.write_run(0, driver.sectors(), 1);
    driver.flush();
    driver.run(Bio::read(Lba(0), 64));
    assert_eq!(driver.now, Nanos::ZERO);
}
