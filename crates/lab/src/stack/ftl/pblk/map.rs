//! The `[ftl.map]` section of a stack file: where the mapping table is, and what of it is cached.

use crate::stack::place::StackError;
use crate::stack::reader::{Section, Size, Words};
use crate::stack::resolved::{join, titled};
use crate::stack::units::{parse_size, show_size};
use nandscape_ftl::pblk::config::{
    CacheSize, HotnessConfig, MapConfig, MapKind, MapPolicy, WriteMiss,
};
use nandscape_rt::Nanos;

/// Share of DFTL's cache for entries that were used again, when a stack does not say.
const PROTECTED_PERCENT: u32 = 80;

/// Keys that say how it is cached.
const CACHED_KEYS: [&str; 9] = [
    "block",
    "cache",
    "policy",
    "loads",
    "evict_batch",
    "write_miss",
    "blind_percent",
    "protected_percent",
    "hotness",
];

/// Share of the memory for blind updates, when a stack does not say.
const BLIND_PERCENT: u32 = 50;

const KIND: Words<bool> = Words { here: &[("resident", false), ("cached", true)] };
const IS_BLIND: Words<bool> = Words { here: &[("load", false), ("blind", true)] };
const POLICY: Words<MapPolicy> = Words {
    here: &[
        ("lru", MapPolicy::Lru),
        ("hotness", MapPolicy::Hotness(HotnessConfig::history())),
        ("hotness-journal", MapPolicy::Hotness(HotnessConfig::journal())),
        ("dftl", MapPolicy::Dftl { protected_percent: PROTECTED_PERCENT }),
    ],
};

/// Reads the section.
pub(super) fn read(mut map: Section<'_>) -> Result<(MapKind, String), StackError> {
    if !map.choice("kind", "resident", &KIND)? {
        map.refuse(&CACHED_KEYS, "goes with kind = \"cached\" only")?;
        return Ok((MapKind::Resident, titled("ftl.map", map)?));
    }
    let default = MapConfig::default();
    let block = map.or("block", Size(default.block_bytes.into()))?.0;
    let sound = matches!(block, 4_096 | 16_384 | 65_536);
    map.check("block", sound, "must be 4KiB, 16KiB or 64KiB")?;
    let cache = map.word("cache", "32%", parse_cache, show_cache)?;
    let policy = map.choice("policy", "hotness-journal", &POLICY)?;
    let loads_max = map.or("loads", default.loads_max)?;
    map.check("loads", loads_max > 0, "must be at least 1")?;
    let evict_batch = map.or("evict_batch", default.evict_batch)?;
    map.check("evict_batch", evict_batch > 0, "must be at least 1")?;
    let (policy, hotness_text) = read_policy(&mut map, policy)?;
    let write_miss = read_write_miss(&mut map)?;
    let block_bytes = block as u32;
    let config = MapConfig { block_bytes, cache, policy, loads_max, evict_batch, write_miss };
    Ok((MapKind::Cached(config), join([titled("ftl.map", map)?, hotness_text])))
}

/// What a write miss does.
fn read_write_miss(map: &mut Section<'_>) -> Result<WriteMiss, StackError> {
    if !map.choice("write_miss", "load", &IS_BLIND)? {
        map.refuse(&["blind_percent"], "goes with write_miss = \"blind\" only")?;
        return Ok(WriteMiss::Load);
    }
    let percent = map.or("blind_percent", BLIND_PERCENT)?;
    map.check("blind_percent", (1..=99).contains(&percent), "must be 1 to 99")?;
    Ok(WriteMiss::Blind { percent })
}

/// The numbers that go with a policy.
fn read_policy(
    map: &mut Section<'_>,
    policy: MapPolicy,
) -> Result<(MapPolicy, String), StackError> {
    if !matches!(policy, MapPolicy::Dftl { .. }) {
        map.refuse(&["protected_percent"], "goes with policy = \"dftl\" only")?;
    }
    if !matches!(policy, MapPolicy::Hotness(_)) {
        map.refuse(&["hotness"], "goes with policy = \"hotness\" and \"hotness-journal\" only")?;
    }
    match policy {
        MapPolicy::Lru => Ok((policy, String::new())),
        MapPolicy::Dftl { protected_percent } => {
            let protected_percent = map.or("protected_percent", protected_percent)?;
            map.check("protected_percent", protected_percent < 100, "must be less than 100")?;
            Ok((MapPolicy::Dftl { protected_percent }, String::new()))
        }
        MapPolicy::Hotness(points) => {
            let (points, text) = read_hotness(map.section("hotness", "ftl.map.hotness")?, points)?;
            Ok((MapPolicy::Hotness(points), text))
        }
    }
}

/// Points; `idle_ns` is the idling that costs one more of them, 0 for none.
fn read_hotness(
    mut hotness: Section<'_>,
    default: HotnessConfig,
) -> Result<(HotnessConfig, String), StackError> {
    let idle_ns = default.idle_per_point.map_or(0, |idle| idle.0);
    let mut points = HotnessConfig {
        read: hotness.or("read", default.read)?,
        write: hotness.or("write", default.write)?,
        internal: hotness.or("internal", default.internal)?,
        journal: hotness.or("journal", default.journal)?,
        load_bonus: hotness.or("load_bonus", default.load_bonus)?,
        decay_per_scan: hotness.or("decay_per_scan", default.decay_per_scan)?,
        idle_per_point: None,
    };
    let idle_ns: u64 = hotness.or("idle_ns", idle_ns)?;
    points.idle_per_point = Some(Nanos(idle_ns)).filter(|idle| *idle > Nanos::ZERO);
    Ok((points, titled("ftl.map.hotness", hotness)?))
}

fn parse_cache(text: &str) -> Result<CacheSize, String> {
    let percent = text.strip_suffix('%').map(|percent| percent.trim().parse());
    match percent {
        Some(Ok(percent @ 1..=100)) => Ok(CacheSize::Percent(percent)),
        None => parse_size(text).map(CacheSize::Bytes).ok_or(()),
        Some(_) => Err(()),
    }
    .map_err(|()| {
        format!("expected a size or a share of the table such as \"32%\", found \"{text}\"")
    })
}

fn show_cache(cache: &CacheSize, _: &str) -> String {
    match cache {
        CacheSize::Percent(percent) => format!("{percent}%"),
        CacheSize::Bytes(bytes) => show_size(*bytes),
    }
}
