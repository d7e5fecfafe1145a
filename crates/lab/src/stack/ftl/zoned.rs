//! The keys of `[ftl]` where its kind is a zoned SSD: `zoned`. Those of a conventional SSD are of the page-mapped
//! region before the zones.

use super::device;
use crate::stack::place::StackError;
use crate::stack::reader::{Section, Size};
use crate::stack::resolved::{join, titled};
use nandscape_ftl::zoned::{Config, ZoneConfig};

/// Keys of `[ftl]`, in the order in which they are read.
pub(super) const KEYS: [&str; 8] =
    ["op_percent", "instances", "map_unit", "gc_lines", "buffer", "gc", "random", "zone"];

/// Reads the rest of the FTL's section. What does not fit the media is refused with them.
pub(super) fn read(mut ftl: Section<'_>) -> Result<(Config, String), StackError> {
    let plain = Config::default();
    let (pages, pages_text) = device::read_keys(&mut ftl, plain.pages)?;
    let mut random = ftl.section("random", "ftl.random")?;
    let Size(random_bytes) = random.or("size", Size(plain.random_bytes))?;
    let (zone, zone_text) = read_zone(ftl.section("zone", "ftl.zone")?, plain.zone)?;
    let config = Config { zone, random_bytes, pages };
    let text = join([titled("ftl", ftl)?, pages_text, titled("ftl.random", random)?, zone_text]);
    Ok((config, text))
}

fn read_zone(mut zone: Section<'_>, plain: ZoneConfig) -> Result<(ZoneConfig, String), StackError> {
    let dies = zone.or("dies", plain.dies)?;
    let Size(size_bytes) = zone.or("size", Size(plain.size_bytes))?;
    let Size(capacity_bytes) = zone.or("capacity", Size(plain.capacity_bytes))?;
    let spare_chunks = zone.or("spare_chunks", plain.spare_chunks)?;
    let instances = zone.or("instances", plain.instances)?;
    let max_open = zone.or("max_open", plain.max_open)?;
    let max_active = zone.or("max_active", plain.max_active)?;
    let append = zone.or("append", plain.append)?;
    let Size(buffer_bytes) = zone.or("buffer", Size(plain.buffer_bytes))?;
    let config = ZoneConfig {
        dies,
        size_bytes,
        capacity_bytes,
        spare_chunks,
        instances,
        interleave: plain.interleave,
        max_open,
        max_active,
        append,
        buffer_bytes,
    };
    Ok((config, titled("ftl.zone", zone)?))
}
