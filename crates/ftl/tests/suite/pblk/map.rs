//! The cached mapping table: whatever the cache, blocks and policy, every sector reads as written, with
//! and without timing, through collection, discards and power cuts.

use crate::common::{Driver, GEOMETRY, config, holds};
use nandscape_block::{Bio, Flags, Lba, Payload, Tag};
use nandscape_ftl::pblk::config::{
    CacheSize, Config, HotnessConfig, MapConfig, MapKind, MapPolicy, WriteMiss,
};
use nandscape_ftl::{Ftl, FtlError, FtlRun, Pblk};
use nandscape_media::{Geometry, Kind, Media, MediaConfig, OpenChannel, Ppa};
use nandscape_rt::Stream;

/// Timing in which commands overlap.
const TIMED: &str = "nvmevirt-970pro";

const POLICIES: [MapPolicy; 4] = [
    MapPolicy::Lru,
    MapPolicy::Hotness(HotnessConfig::history()),
    MapPolicy::Hotness(HotnessConfig::journal()),
    MapPolicy::Dftl { protected_percent: 80 },
];

fn cached(map: MapConfig) -> Config {
    Config { op_percent: Some(40), map: MapKind::Cached(map), ..config() }
}

/// With room for what copying through few slots pads.
fn roomy(map: MapConfig) -> Config {
    Config { op_percent: Some(60), ..cached(map) }
}

fn small(policy: MapPolicy, blocks: u64) -> MapConfig {
    let cache = CacheSize::Bytes(blocks * 4_096);
    MapConfig { block_bytes: 4_096, cache, policy, loads_max: 8, ..MapConfig::default() }
}

/// Random overwrites, flushes, discards and reads; checks every read.
fn load(driver: &mut Driver, expected: &mut [u64], operations: u64, seed: u64) {
    let mut rng = Stream::new(seed, "load");
    let end = expected.len() as u64;
    for tag in (seed << 32..).take(operations as usize) {
        let lba = rng.below(end);
        match rng.below(100) {
            0..80 => {
                driver.write(lba, tag, Flags::NONE);
                expected[lba as usize] = tag;
            }
            80..84 => {
                let sectors = (1 + rng.below(600)).min(end - lba);
                driver.run(Bio::discard(Lba(lba), sectors as u32));
                expected[lba as usize..(lba + sectors) as usize].fill(0);
            }
            84..86 => drop(driver.flush()),
            _ => assert_eq!(driver.read(lba), holds(expected[lba as usize]), "lba {lba}"),
        }
    }
}

/// Every sector reads as written under load, after a power cut that follows a flush, and under load again. `look`
/// sees the device before the cut.
fn keeps_every_sector(timing: &str, config: &Config, look: impl FnOnce(&Driver)) {
    let mut driver = Driver::new(timing, config.clone());
    let mut expected = vec![0; driver.sectors() as usize];
    for seed in 1..4 {
        load(&mut driver, &mut expected, 6_000, seed);
        driver.ftl.check_invariants().expect("invariants");
    }
    driver.check(&expected);
    look(&driver);
    driver.flush();
    let mut driver = driver.power_cut(config.clone());
    driver.check(&expected);
    load(&mut driver, &mut expected, 2_000, 9);
    driver.check(&expected);
    driver.ftl.check_invariants().expect("invariants");
}

#[test]
fn every_policy_keeps_every_sector() {
    for timing in ["none", TIMED] {
        for policy in POLICIES {
            for block_bytes in [4_096, 16_384, 65_536] {
                let map = MapConfig { block_bytes, ..small(policy, 4) };
                let cache = CacheSize::Bytes(map.cache.bytes(0).max(u64::from(block_bytes)));
                let config = roomy(MapConfig { cache, ..map });
                keeps_every_sector(timing, &config, |driver| {
                    let what = format!("{timing} {policy:?} {block_bytes}");
                    let stats = driver.report();
                    assert_eq!(stats.media_errors.mismatches, 0, "{what}");
                });
            }
        }
    }
}

/// Blind updates: the buffer holds from a few entries to more than the table has, and every sector reads
/// as written, through merges, collection, discards and a power cut.
#[test]
fn blind_updates_keep_every_sector() {
    for timing in ["none", TIMED] {
        for (policy, percent, blocks) in [
            (MapPolicy::Lru, 1, 4),
            (MapPolicy::Lru, 50, 2),
            (MapPolicy::Hotness(HotnessConfig::history()), 50, 12),
            (MapPolicy::Lru, 95, 60),
        ] {
            let map = small(policy, blocks);
            let config = roomy(MapConfig { write_miss: WriteMiss::Blind { percent }, ..map });
            keeps_every_sector(timing, &config, |driver| {
                let map = driver.detail().map.expect("a cached map");
                assert!(map.blind_updates > 500, "{percent} %: {map:?}");
                assert!(map.merged_entries > 100 || percent == 95, "{percent} %: {map:?}");
            });
        }
    }
}

/// Uniform overwrites through a cache of four blocks: a block comes once for the updates that
/// were gathered for it, and not once per write, in the same memory.
#[test]
fn a_merge_serves_many_updates() {
    let run = |write_miss| {
        let map = small(MapPolicy::Lru, 4);
        let mut driver = Driver::new(TIMED, roomy(MapConfig { write_miss, ..map }));
        let mut expected = vec![0; driver.sectors() as usize];
        driver.overwrite(&mut expected, 0, 20_000, 3);
        let map = driver.detail().map.expect("a cached map");
        let memory = driver.ftl.memory().map;
        let cache: u64 = memory
            .iter()
            .filter(|(name, _)| matches!(*name, "cache" | "blind"))
            .map(|(_, bytes)| bytes)
            .sum();
        (map, cache)
    };
    let (load, memory) = run(WriteMiss::Load);
    let (blind, blind_memory) = run(WriteMiss::Blind { percent: 50 });
    assert!(blind_memory <= memory, "{blind_memory} of {memory} bytes");
    assert!(blind.loads * 5 < load.loads, "{blind:?} {load:?}");
    assert!(blind.blind_updates >= blind.merged_entries, "{blind:?}");
}

/// With writes in flight the blocks that they evict share write units: less than one sector of padding per
/// eight write-backs, where a unit for each would take seven.
#[test]
fn blocks_written_back_under_load_share_units() {
    for policy in [MapPolicy::Lru, MapPolicy::Hotness(HotnessConfig::history())] {
        let geometry = Geometry { chunks: 160, sectors: 512, ..GEOMETRY };
        let mut driver = Driver::on(geometry, TIMED, roomy(small(policy, 32)));
        let (end, mut rng) = (driver.sectors(), Stream::new(1, "load"));
        let mut pending = 0;
        for token in 0..20_000 {
            let lba = Lba(rng.below(end));
            let bio = Bio::write(lba, 1, Payload::Run(Tag::new(token)));
            pending += usize::from(driver.submit(bio, token).is_none());
            while pending >= 16 {
                pending -= driver.step().len();
            }
        }
        let map = driver.detail().map.expect("a cached map");
        assert!(map.write_backs > 5_000, "{map:?}");
        assert!(map.pad_sectors * 8 < map.write_backs, "{policy:?}: {map:?}");
    }
}

/// One slot is enough: a request that waits for a block is served before the next one comes, and what pins
/// the slot is driven out of the ring.
#[test]
fn the_smallest_cache_makes_progress() {
    for policy in [MapPolicy::Lru, MapPolicy::Dftl { protected_percent: 50 }] {
        for loads_max in [1, 8] {
            let config = roomy(MapConfig { loads_max, ..small(policy, 1) });
            let mut driver = Driver::new(TIMED, config);
            let mut expected = vec![0; driver.sectors() as usize];
            load(&mut driver, &mut expected, 3_000, 5);
            let end = expected.len() as u32;
            driver.run(Bio::discard(Lba(0), end));
            expected.fill(0);
            driver.check(&expected);
            driver.ftl.check_invariants().expect("invariants");
        }
    }
}

/// A cache through which a full device could not be collected, since each copy would pad a unit, is
/// refused before anything is written, and a block more or more space is what the refusal advises.
#[test]
fn a_cache_that_pads_more_than_collection_gains_is_refused() {
    let format = |config: Config| {
        let media = Media::new(MediaConfig::new(GEOMETRY)).expect("a device");
        Pblk::format(media.into(), config, FtlRun::default()).map(|_| ())
    };
    let one = small(MapPolicy::Lru, 1);
    let refused = format(cached(one));
    assert!(matches!(refused, Err(FtlError::Config { key: "ftl.map.cache", .. })), "{refused:?}");
    assert_eq!(format(roomy(one)), Ok(()));
    assert_eq!(format(cached(small(MapPolicy::Lru, 8))), Ok(()));
}

/// Dead versions fill the lines of mapping blocks; collecting those keeps every block that lives.
#[test]
fn mapping_lines_are_collected() {
    let policy = MapPolicy::Lru;
    let mut driver = Driver::new("none", cached(small(policy, 4)));
    let mut expected = vec![0; driver.sectors() as usize];
    driver.write_run(0, expected.len() as u64, 1);
    expected.iter_mut().zip(1..).for_each(|(tag, written)| *tag = written);
    // The other half's blocks stay where they are, in lines that fill with garbage.
    let half = expected.len() / 2;
    load(&mut driver, &mut expected[..half], 60_000, 3);
    driver.check(&expected);
    driver.ftl.check_invariants().expect("invariants");
    let map = driver.detail().map.expect("cached");
    assert!(map.victims > 0 && map.copied_sectors > 0, "{map:?}");
    let sectors = driver.report().sectors;
    assert!(sectors.map > u64::from(driver.ftl.capacity().line_sectors) * 8, "{sectors:?}");
}

/// Mapping blocks of which media have lost a sector are written again by a mount, from what it finds of the data.
#[test]
fn mapping_blocks_that_are_not_whole_are_written_again() {
    let cache = CacheSize::Bytes(16_384);
    let map = MapConfig { block_bytes: 16_384, cache, ..small(MapPolicy::Lru, 4) };
    let mut driver = Driver::new("none", roomy(map));
    let mut expected = vec![0; driver.sectors() as usize];
    load(&mut driver, &mut expected, 6_000, 5);
    driver.flush();
    let media = driver.ftl.media();
    let written = |id| (0..media.chunk(id).wp).map(move |sector| GEOMETRY.ppa(id, sector));
    let is_last = |at: &Ppa| media.oob(*at).kind == Kind::Map && media.oob(*at).key % 4 == 3;
    let lost: Vec<Ppa> = GEOMETRY.all_chunks().flat_map(written).filter(is_last).collect();
    assert!(!lost.is_empty());
    lost.into_iter().for_each(|at| driver.ftl.media_mut().mark_unreadable(at));
    let mut driver = driver.power_cut(roomy(map));
    driver.check(&expected);
    assert_eq!(driver.report().media_errors.uncorrectable, 0);
    driver.ftl.check_invariants().expect("invariants");
}

/// Every sector written to media has a cause, mapping blocks and their padding included.
#[test]
fn every_sector_is_counted() {
    let mut driver = Driver::new(TIMED, cached(small(MapPolicy::Lru, 4)));
    let mut expected = vec![0; driver.sectors() as usize];
    load(&mut driver, &mut expected, 10_000, 4);
    let counts = driver.report().sectors;
    let sum = counts.user + counts.gc + counts.pad + counts.line_meta + counts.trim + counts.map;
    assert_eq!(sum, driver.ftl.media().counters().sectors_written(), "{counts:?}");
    assert_eq!(counts.map, driver.ftl.media().counters().writes(Kind::Map).sectors);
}

/// A cache as large as the table reads no block twice, and what it takes is reported to the byte.
#[test]
fn a_full_cache_never_misses_again() {
    let map = MapConfig { cache: CacheSize::Percent(100), ..small(MapPolicy::Lru, 1) };
    let mut driver = Driver::new("none", cached(map));
    let mut expected = vec![0; driver.sectors() as usize];
    load(&mut driver, &mut expected, 20_000, 6);
    let counts = driver.detail().map.expect("cached");
    assert_eq!((counts.loads, counts.write_backs), (0, 0));
    let memory = driver.ftl.memory();
    let blocks = (driver.sectors() * 4).div_ceil(4_096);
    let part = |name| memory.map.iter().find(|(part, _)| *part == name).map(|(_, bytes)| *bytes);
    assert_eq!(part("cache"), Some(blocks * 4_096));
    assert_eq!(part("paper_directory"), Some(blocks * 40));
    let real = ["cache", "directory", "slot", "staging"].map(|name| part(name).unwrap());
    assert_eq!(memory.part("map"), real.iter().sum());
    assert_eq!(memory.total(), memory.parts.iter().map(|(_, bytes)| bytes).sum());
}
