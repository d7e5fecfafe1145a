//! A mapping table that is cached: what was asked of it, read for it and written of it fits together.

use super::{Facts, Finding, holds};
use nandscape_lab::SECTOR_BYTES;

/// Blocks that may be under way at an end of the measured phase.
const BLOCKS_UNDER_WAY: u64 = 64;
/// Sectors of requests that may be under way then.
const SECTORS_UNDER_WAY: u64 = 1024;
const ROUNDING: f64 = 1e-9;

/// Sectors of a mapping block, as the resolved stack says.
fn block_sectors(facts: &Facts<'_>) -> Option<u64> {
    facts.at("/map/host_lookups")?;
    Some((facts.stack.as_ref()?.ftl.map_block_bytes()? / SECTOR_BYTES).max(1))
}

/// A look-up is a sector that the host asked for, and either hits, joins a load or misses.
pub(super) fn look_ups(facts: &Facts<'_>) -> Finding {
    let of = |kind: &str| facts.count(&format!("/map/host_lookups/{kind}"));
    let (hits, all) = (of("hits")?, of("hits")? + of("joined")? + of("misses")?);
    let asked = facts.count("/writes/sectors")?
        + facts.count("/reads/sectors")?
        + facts.count("/discards/sectors")?;
    if all.abs_diff(asked) > SECTORS_UNDER_WAY {
        return Some(Err(format!("{all} look-ups for {asked} sectors")));
    }
    let ratio = facts.number("/map/hit_ratio")?;
    let counted = if all == 0 { 1.0 } else { hits as f64 / all as f64 };
    holds((ratio - counted).abs() <= ROUNDING, || {
        format!("a hit ratio of {ratio}, but {hits} hits of {all}")
    })
}

/// What is read is whole blocks on misses and before merges, and what collection copies.
pub(super) fn reads(facts: &Facts<'_>) -> Finding {
    let block = block_sectors(facts)?;
    let of = |key: &str| facts.count(&format!("/map/{key}"));
    let blocks = of("loads")? + of("merge_reads")?;
    let (read, expected) = (of("read_sectors")?, blocks * block + of("copied_sectors")?);
    holds(read.abs_diff(expected) <= BLOCKS_UNDER_WAY * block, || {
        format!("{read} mapping sectors read, loads and copies make {expected}")
    })
}

/// What is written is whole blocks, what collection copies, and padding.
pub(super) fn writes(facts: &Facts<'_>) -> Finding {
    let block = block_sectors(facts)?;
    let of = |key: &str| facts.count(&format!("/map/{key}"));
    let expected = of("writebacks")? * block + of("copied_sectors")? + of("pad_sectors")?;
    let written = facts.count("/sectors/map")?;
    holds(written.abs_diff(expected) <= BLOCKS_UNDER_WAY * block, || {
        format!("{written} mapping sectors written, write-backs and copies make {expected}")
    })
}
