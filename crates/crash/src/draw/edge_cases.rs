//! Devices at the edges of what a geometry may be: write units that are no power of two, a tail of
//! unreadable sectors that divides by nothing, one chunk to spare, requests longer than any buffer, cells that
//! soon wear out, and faults that come in runs. Edge cases of configurations are in the folders of the kinds.
//!
//! What a seed draws here replaces a part of its scenario; everything else stays as it was drawn.

use crate::draw::faults::FaultRates;
use crate::draw::load::Load;
use crate::draw::sample::{between, log_uniform, pick};
use nandscape_media::{ChunkId, Geometry, UnitId};
use nandscape_rt::Stream;

/// Any write rules, few or many parallel units and chunks, within so many sectors.
pub(crate) fn geometry(drawn: Geometry, sectors_max: u32, rng: &mut Stream) -> Geometry {
    let ws_min = between(rng, 1, 8);
    let most = if rng.chance(0.1) { 64 } else { 24 };
    let ws_opt = ws_min * between(rng, 1, (most / ws_min).max(1));
    let mw_cunits = if rng.chance(0.3) { 0 } else { between(rng, 0, 4 * ws_opt) };
    let shape = Geometry { ws_min, ws_opt, mw_cunits, ..drawn };
    let shape = match pick(rng, &[2, 1, 1]) {
        0 => shape,
        1 => Geometry { groups: 1, units: 1, ..shape },
        _ => Geometry { groups: between(rng, 1, 5), units: between(rng, 1, 5), ..shape },
    };
    let least = mw_cunits / ws_opt + 1;
    let a_row = shape.total_units() * ws_opt;
    let most_chunks = (sectors_max / (a_row * least)).clamp(8, 400);
    let chunks = 7 + log_uniform(rng, u64::from(most_chunks - 6)) as u32;
    let room = (sectors_max / (a_row * chunks)).max(least);
    let write_units = if rng.chance(0.3) { least } else { between(rng, least, room) };
    let shape = Geometry { chunks, sectors: write_units.max(2) * ws_opt, ..shape };
    if rng.chance(0.6) { shape } else { limited(shape, rng) }
}

/// As few open chunks as a few frontiers need.
fn limited(shape: Geometry, rng: &mut Stream) -> Geometry {
    let a_unit = 4 * between(rng, 1, 6);
    match pick(rng, &[1, 1, 1]) {
        0 => Geometry { maxoc: 0, maxocpu: a_unit, ..shape },
        1 => Geometry { maxoc: a_unit * shape.total_units(), maxocpu: 0, ..shape },
        _ => Geometry { maxoc: a_unit * shape.total_units(), maxocpu: a_unit, ..shape },
    }
}

/// Up to a fifth of all chunks.
pub(crate) fn bad_chunks(
    drawn: Vec<ChunkId>,
    geometry: &Geometry,
    rng: &mut Stream,
) -> Vec<ChunkId> {
    if !rng.chance(0.3) {
        return drawn;
    }
    let bad = between(rng, 1, geometry.total_units() * geometry.chunks / 5);
    let chunk = |rng: &mut Stream| ChunkId {
        unit: UnitId(rng.below(u64::from(geometry.total_units())) as u32),
        chunk: rng.below(u64::from(geometry.chunks)) as u32,
    };
    (0..bad).map(|_| chunk(rng)).collect()
}

/// Up to every third program and erase.
pub(crate) fn faults(drawn: FaultRates, rng: &mut Stream) -> FaultRates {
    if !rng.chance(0.4) {
        return drawn;
    }
    let mut one_in = || [0, 100, 20, 6, 3][pick(rng, &[2, 2, 2, 2, 1])];
    FaultRates { program_one_in: one_in(), erase_one_in: one_in(), ..drawn }
}

/// Erases that a chunk survives.
pub(crate) fn endurance(rng: &mut Stream) -> Option<u32> {
    rng.chance(0.2).then(|| log_uniform(rng, 64) as u32)
}

/// Requests that no ring can hold at once.
pub(crate) fn load(drawn: Load, rng: &mut Stream) -> Load {
    if !rng.chance(0.3) {
        return drawn;
    }
    let ops = drawn.ops.min(200);
    Load { sectors_max: log_uniform(rng, 2_048) as u32, ops, ..drawn }
}
