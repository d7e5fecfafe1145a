//! Where the mapping table is, as a choice of compositions, and what a seed draws beside it: block and
//! cache sizes so small that a campaign's device misses all the time.

use crate::draw::sample::{between, pick};
use crate::settings::Settings;
use nandscape_ftl::pblk::config::{
    CacheSize, HotnessConfig, MapConfig, MapKind, MapPolicy, WriteMiss,
};
use nandscape_rt::Stream;

/// Share of cache that DFTL protects where nothing else is said: its authors' simulator's.
const PROTECTED_PERCENT: u32 = 80;
/// Loads in flight where misses overlap and nothing else is said.
const LOADS: u32 = 8;

/// What leaves the cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Replacement {
    /// The block used least recently.
    Lru,
    /// The coldest block.
    Hotness,
    /// The coldest block, the journal's being hotter.
    HotnessJournal,
    /// Single entries.
    Dftl,
}

/// How misses come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Misses {
    /// Several loads are in flight.
    Overlapped,
    /// One after the other.
    Serial,
}

/// Where the mapping table is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MapChoice {
    /// In RAM.
    Resident,
    /// On media, a part of it in RAM.
    Cached(Replacement, Misses),
}

impl Replacement {
    fn of(policy: &MapPolicy) -> Self {
        match policy {
            MapPolicy::Lru => Self::Lru,
            MapPolicy::Hotness(points) if points.journal == 0 => Self::Hotness,
            MapPolicy::Hotness(_) => Self::HotnessJournal,
            MapPolicy::Dftl { .. } => Self::Dftl,
        }
    }

    fn policy(self) -> MapPolicy {
        match self {
            Self::Lru => MapPolicy::Lru,
            Self::Hotness => MapPolicy::Hotness(HotnessConfig::history()),
            Self::HotnessJournal => MapPolicy::Hotness(HotnessConfig::journal()),
            Self::Dftl => MapPolicy::Dftl { protected_percent: PROTECTED_PERCENT },
        }
    }
}

impl MapChoice {
    /// The choice that a configuration makes.
    #[must_use]
    pub fn of(map: &MapKind) -> Self {
        let MapKind::Cached(map) = map else { return Self::Resident };
        let misses = if map.loads_max == 1 { Misses::Serial } else { Misses::Overlapped };
        Self::Cached(Replacement::of(&map.policy), misses)
    }

    /// The map with this choice; what it leaves open stays as it is.
    #[must_use]
    pub fn apply_to(self, map: MapKind) -> MapKind {
        let Self::Cached(replacement, misses) = self else { return MapKind::Resident };
        let MapKind::Cached(base) = map else {
            return self.apply_to(MapKind::Cached(MapConfig::default()));
        };
        let kept = Replacement::of(&base.policy) == replacement;
        let loads_max = match misses {
            Misses::Serial => 1,
            Misses::Overlapped if base.loads_max > 1 => base.loads_max,
            Misses::Overlapped => LOADS,
        };
        let policy = if kept { base.policy } else { replacement.policy() };
        MapKind::Cached(MapConfig { policy, loads_max, ..base })
    }
}

/// A seed's map: in two of five cases it is cached. A stack that is `given` keeps its policy, on so
/// small a device with sizes of the seed's; a choice that is pinned comes before both.
pub(crate) fn draw(seed: u64, given: Option<MapKind>, pinned: Option<MapChoice>) -> MapKind {
    let rng = &mut Stream::new(seed, "scenario-map");
    let cached = rng.chance(0.4);
    let drawn = draw_cached(rng);
    let MapConfig { block_bytes, cache, .. } = drawn;
    let sized = |map| match map {
        MapKind::Cached(map) => MapKind::Cached(MapConfig { block_bytes, cache, ..map }),
        MapKind::Resident => MapKind::Resident,
    };
    let own = if cached { MapKind::Cached(drawn) } else { MapKind::Resident };
    let map = given.map_or(own, sized);
    let map = match (pinned, map) {
        (None, map) => map,
        (Some(choice), MapKind::Resident) => choice.apply_to(MapKind::Cached(drawn)),
        (Some(choice), map) => choice.apply_to(map),
    };
    with_write_miss(seed, map, given)
}

/// Where whole blocks are cached half of the seeds, or a stack that says so, have blind updates, for which
/// memory is added.
fn with_write_miss(seed: u64, map: MapKind, given: Option<MapKind>) -> MapKind {
    let rng = &mut Stream::new(seed, "scenario-write-miss");
    let (drawn, percent) = (rng.chance(0.5), between(rng, 1, 80));
    let MapKind::Cached(map) = map else { return map };
    let whole = !matches!(map.policy, MapPolicy::Dftl { .. });
    let blind = match given {
        Some(MapKind::Cached(given)) => given.write_miss != WriteMiss::Load,
        _ => drawn,
    };
    if !(whole && blind) {
        return MapKind::Cached(MapConfig { write_miss: WriteMiss::Load, ..map });
    }
    let cache = match map.cache {
        CacheSize::Bytes(bytes) => CacheSize::Bytes(bytes * 100 / u64::from(100 - percent) + 1),
        share @ CacheSize::Percent(_) => share,
    };
    MapKind::Cached(MapConfig { cache, write_miss: WriteMiss::Blind { percent }, ..map })
}

/// A cached map, often in hardly any RAM.
fn draw_cached(rng: &mut Stream) -> MapConfig {
    let block_bytes = [4_096, 16_384, 65_536][pick(rng, &[4, 2, 1])];
    let cache = match rng.chance(0.6) {
        true => CacheSize::Bytes(u64::from(block_bytes) * u64::from(between(rng, 1, 6))),
        false => CacheSize::Percent(between(rng, 20, 100)),
    };
    let policies = [
        MapPolicy::Lru,
        MapPolicy::Hotness(HotnessConfig::journal()),
        MapPolicy::Dftl { protected_percent: between(rng, 0, 90) },
    ];
    let policy = policies[pick(rng, &[2, 2, 3])];
    let (loads_max, evict_batch) = (between(rng, 1, 8), between(rng, 1, 3));
    let history = rng.chance(0.3) && matches!(policy, MapPolicy::Hotness(_));
    let policy = if history { MapPolicy::Hotness(HotnessConfig::history()) } else { policy };
    MapConfig { block_bytes, cache, policy, loads_max, evict_batch, write_miss: WriteMiss::Load }
}

/// A map on media, as keys and values; the composition names its policy.
pub(crate) fn describe(map: &MapKind) -> Option<Settings> {
    let MapKind::Cached(map) = map else { return None };
    let MapConfig { block_bytes, cache, policy, loads_max, evict_batch, write_miss } = map;
    let cache = match cache {
        CacheSize::Bytes(bytes) => ("cache_bytes", *bytes),
        CacheSize::Percent(percent) => ("cache_percent", u64::from(*percent)),
    };
    let map = Settings::default().with("block_bytes", *block_bytes).with(cache.0, cache.1);
    let map = match policy {
        MapPolicy::Lru => map,
        MapPolicy::Dftl { protected_percent } => map.with("protected_percent", *protected_percent),
        MapPolicy::Hotness(points) => map
            .with("read_points", points.read)
            .with("write_points", points.write)
            .with("internal_points", points.internal)
            .with("journal_points", points.journal)
            .with("load_bonus", points.load_bonus)
            .with("decay_per_scan", points.decay_per_scan)
            .with_some("idle_per_point_ns", points.idle_per_point),
    };
    let blind = match write_miss {
        WriteMiss::Load => None,
        WriteMiss::Blind { percent } => Some(*percent),
    };
    Some(
        map.with("loads_max", *loads_max)
            .with("evict_batch", *evict_batch)
            .with_some("blind_percent", blind),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Seeds draw every kind of map, and a choice that is pinned is what comes out.
    #[test]
    fn seeds_draw_every_map_and_obey_pins() {
        let mut seen = BTreeSet::new();
        for seed in 0..400 {
            let map = draw(seed, None, None);
            seen.insert(format!("{:?}", MapChoice::of(&map)));
            for pinned in crate::draw::pblk::composition::maps() {
                let map = draw(seed, None, Some(pinned));
                assert_eq!(MapChoice::of(&map), pinned, "{map:?}");
            }
        }
        assert_eq!(seen.len(), crate::draw::pblk::composition::maps().count(), "{seen:?}");
    }

    /// A stack keeps its replacement on a small device, points and all.
    #[test]
    fn a_given_map_keeps_its_policy() {
        let points = HotnessConfig { journal: 7, ..HotnessConfig::journal() };
        let given = MapConfig { policy: MapPolicy::Hotness(points), ..MapConfig::default() };
        for seed in 0..20 {
            let MapKind::Cached(map) = draw(seed, Some(MapKind::Cached(given)), None) else {
                panic!("cached maps stay cached");
            };
            assert_eq!((map.policy, map.loads_max), (given.policy, given.loads_max));
            assert!(map.block_bytes <= given.block_bytes && map.cache != given.cache);
        }
        assert_eq!(draw(3, Some(MapKind::Resident), None), MapKind::Resident);
    }
}
