//! Sizes that the papers state.

use super::*;

const TIB_SECTORS: u64 = 1 << 28;

fn memory(policy: MapPolicy) -> MapMemoryUse {
    let config = MapConfig { policy, ..MapConfig::default() };
    MapCache::new(&config, TIB_SECTORS, 4).expect("a sound configuration").memory()
}

/// Equation 1: 1 TiB in blocks of 64 KiB with entries of 4 bytes has 16,384 blocks, 640 KiB of
/// directory at 40 bytes a block. Ours takes 32 with hotness, 16 with LRU.
#[test]
fn the_directory_of_a_tebibyte() {
    let hotness = memory(MapPolicy::Hotness(HotnessConfig::journal()));
    assert_eq!(hotness.paper_directory_bytes, 640 << 10);
    assert_eq!(hotness.directory_bytes, 512 << 10);
    assert_eq!(hotness.cache_bytes, 128 << 20);
    assert_eq!(hotness.paper_bitmap_bytes, 256);
    assert_eq!(memory(MapPolicy::Lru).directory_bytes, 256 << 10);
}

/// DFTL's entry is an address and a mapping: the same memory holds half the mappings.
#[test]
fn an_entry_of_dftl_costs_twice_its_mapping() {
    let config =
        MapConfig { policy: MapPolicy::Dftl { protected_percent: 80 }, ..MapConfig::default() };
    let cache = MapCache::new(&config, TIB_SECTORS, 4).expect("a sound configuration");
    assert_eq!(cache.slots(), (128 << 20) / 8);
    assert_eq!(cache.memory().cache_bytes, 128 << 20);
    assert_eq!(cache.blocks(), 16_384);
}

/// A cache as large as the table holds all of it, and never evicts.
#[test]
fn a_full_cache_is_no_larger_than_the_table() {
    let mut cache = cache(&config(MapPolicy::Lru, 1 << 30), 10);
    assert_eq!(cache.slots(), 10);
    for block in (0..10).chain(0..10) {
        touch(&mut cache, first(block), WRITE, Nanos::ZERO);
    }
    let stats = *cache.stats();
    assert_eq!((stats.host.hits, stats.zero_fills, stats.write_backs), (10, 10, 0));
}
