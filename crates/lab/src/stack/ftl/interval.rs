//! The keys of `[ftl]` where its kind is an SSD with append-only regions and interval maps: `interval`.

use super::device;
use crate::stack::place::StackError;
use crate::stack::reader::{Section, Size};
use crate::stack::resolved::{join, titled};
use nandscape_block::SECTOR_BYTES;
use nandscape_ftl::device::Config as PagesConfig;
use nandscape_ftl::interval::Config;

/// Keys of `[ftl]`, in the order in which they are read.
pub(super) const KEYS: [&str; 9] = [
    "op_percent",
    "instances",
    "map_unit",
    "gc_lines",
    "buffer",
    "gc",
    "map_access_ns",
    "random",
    "map",
];

/// Reads the rest of the FTL's section. What does not fit the media is refused with them.
pub(super) fn read(mut ftl: Section<'_>) -> Result<(Config, String), StackError> {
    let plain = Config::default();
    let (pages, pages_text) = device::read_keys(&mut ftl, plain.pages.clone())?;
    let pages = PagesConfig { map_access_ns: device::read_map_access(&mut ftl)?, ..pages };
    let mut random = ftl.section("random", "ftl.random")?;
    let Size(random_bytes) = random.or("size", Size(plain.random_bytes))?;
    let (map, map_text) = read_map(ftl.section("map", "ftl.map")?, plain)?;
    let config = Config { random_bytes, pages, ..map };
    let text = join([titled("ftl", ftl)?, pages_text, titled("ftl.random", random)?, map_text]);
    Ok((config, text))
}

fn read_map(mut map: Section<'_>, plain: Config) -> Result<(Config, String), StackError> {
    let partition_bits = read_sectors(&mut map, "partition", plain.partition_bits)?;
    let leaf_bits = read_sectors(&mut map, "node", plain.leaf_bits)?;
    let compact_bytes_per_s = map.or("compact_bytes_per_s", plain.compact_bytes_per_s)?;
    let config = Config { partition_bits, leaf_bits, compact_bytes_per_s, ..plain };
    Ok((config, titled("ftl.map", map)?))
}

/// log2 of the sectors of a size that is a power of two of them.
fn read_sectors(
    map: &mut Section<'_>,
    key: &'static str,
    plain_bits: u32,
) -> Result<u32, StackError> {
    let Size(bytes) = map.or(key, Size(SECTOR_BYTES << plain_bits))?;
    let fits = bytes.is_power_of_two() && bytes >= SECTOR_BYTES;
    map.check(key, fits, "must be a power of two, of a sector of 4 KiB at least")?;
    Ok((bytes / SECTOR_BYTES).ilog2())
}
