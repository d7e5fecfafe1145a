//! The mapping cache against slow models that share no code with it, and the figures of the papers.

mod blocks;
mod entries;
mod figures;

use super::*;
use crate::pblk::config::HotnessConfig;

/// Entries of a block of 4 KiB with entries of 8 bytes.
pub(super) const PER_BLOCK: u64 = 512;

pub(super) const READ: Access = Access { write: false, by: By::Host };
pub(super) const WRITE: Access = Access { write: true, by: By::Host };
pub(super) const JOURNAL: Access = Access { write: true, by: By::Journal };
pub(super) const COLLECT: Access = Access { write: true, by: By::Ftl };

/// The first sector that a block maps.
pub(super) const fn first(block: u32) -> Lba {
    Lba(block as u64 * PER_BLOCK)
}

/// A small cache of small blocks.
pub(super) fn config(policy: MapPolicy, cache_bytes: u64) -> MapConfig {
    MapConfig {
        block_bytes: 4_096,
        cache: CacheSize::Bytes(cache_bytes),
        policy,
        loads_max: 4,
        evict_batch: 1,
        write_miss: WriteMiss::Load,
    }
}

pub(super) fn cache(config: &MapConfig, blocks: u32) -> MapCache {
    MapCache::new(config, u64::from(blocks) * PER_BLOCK, 8).expect("a sound configuration")
}

/// Has the sector's mapping in RAM, writing victims one by one; where nothing else is in flight.
pub(super) fn settle(cache: &mut MapCache, lba: Lba, now: Nanos) {
    loop {
        match cache.begin_load(lba, now) {
            Load::Ready => return,
            Load::Read(_) => return cache.loaded(cache.block_of(lba), now),
            Load::WriteBack | Load::Busy => write_one(cache),
            load => panic!("{load:?} with nothing in flight"),
        }
    }
}

fn write_one(cache: &mut MapCache) {
    let block = cache.next_write_back().expect("a victim");
    let begun = cache.write_back_begin(block).expect("dirty and not pinned");
    cache.written(block, Ppa(u64::from(block) * 16), begun.version);
}

/// Looks up a sector and has its mapping in RAM; whether it was.
pub(super) fn touch(cache: &mut MapCache, lba: Lba, access: Access, now: Nanos) -> bool {
    let hit = cache.access(lba, access, now) == Lookup::Hit;
    if !hit {
        settle(cache, lba, now);
    }
    if access.write {
        cache.dirty(lba);
    }
    hit
}

#[test]
fn senseless_configurations_are_refused_by_key() {
    let sound = config(MapPolicy::Lru, 1 << 20);
    let key = |config: MapConfig, sectors| match MapCache::new(&config, sectors, 4) {
        Err(FtlError::Config { key, .. }) => key,
        other => panic!("{other:?}"),
    };
    assert_eq!(key(MapConfig { block_bytes: 8_192, ..sound }, 1 << 20), "ftl.map.block");
    assert_eq!(
        key(MapConfig { cache: CacheSize::Bytes(4_095), ..sound }, 1 << 20),
        "ftl.map.cache"
    );
    assert_eq!(key(MapConfig { loads_max: 0, ..sound }, 1 << 20), "ftl.map.loads");
    assert_eq!(key(MapConfig { evict_batch: 0, ..sound }, 1 << 20), "ftl.map.evict_batch");
    assert_eq!(key(sound, 1 << 33), "ftl.map");
    let policy = MapPolicy::Dftl { protected_percent: 100 };
    assert_eq!(key(MapConfig { policy, ..sound }, 1 << 20), "ftl.map.protected_percent");
}

/// The newest version wins whatever the order in which recovery meets them, and the loser is named,
/// so that its sectors become garbage.
#[test]
fn recovery_adopts_the_newest_version() {
    let mut cache = cache(&config(MapPolicy::Lru, 8_192), 4);
    assert_eq!(cache.adopt(1, Ppa(10), 2), None);
    assert_eq!(cache.adopt(1, Ppa(20), 1), Some(Ppa(20)));
    assert_eq!(cache.adopt(1, Ppa(30), 3), Some(Ppa(10)));
    assert_eq!((cache.location(1), cache.version(1)), (Some(Ppa(30)), 3));
    assert_eq!(cache.location(0), None);
    assert_eq!(cache.begin_load(first(1), Nanos::ZERO), Load::Read(Ppa(30)));
}

/// Collection may copy a block that is written anew meanwhile: the copy is garbage then.
#[test]
fn a_copy_of_an_older_version_is_not_adopted() {
    let mut cache = cache(&config(MapPolicy::Lru, 8_192), 4);
    cache.adopt(1, Ppa(10), 1);
    assert!(cache.moved(1, Ppa(10), Ppa(40)));
    assert!(!cache.moved(1, Ppa(10), Ppa(50)));
    assert_eq!(cache.location(1), Some(Ppa(40)));
}
