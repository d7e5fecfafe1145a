//! The shape of a drawn device: small, so that garbage is collected and erase units are reused many times a
//! round.

use crate::draw::family::ScenarioFamily;
use crate::draw::sample::between;
use nandscape_media::{ChunkId, Geometry, UnitId};
use nandscape_rt::Stream;

/// A small device of any shape.
pub(crate) fn draw(family: ScenarioFamily, sectors_max: u32, rng: &mut Stream) -> Geometry {
    let overwrite = family == ScenarioFamily::Overwrite;
    let (groups, units) = match overwrite {
        true => (between(rng, 1, 3), 2),
        false => (between(rng, 1, 4), between(rng, 1, 4)),
    };
    let ws_min = 1 << rng.below(3);
    let ws_opt = ws_min << rng.below(3);
    let chunks = between(rng, 8, 40);
    let small_lines = overwrite || family == ScenarioFamily::Failures || rng.chance(0.3);
    let shape = Geometry {
        groups,
        units,
        chunks,
        sectors: 0,
        ws_min,
        ws_opt,
        mw_cunits: ws_opt * rng.below(4) as u32,
        maxoc: 0,
        maxocpu: 0,
    };
    let room = sectors_max / (groups * units * chunks) / ws_opt;
    let most = if small_lines { room.min(8) } else { room.min(128) };
    with_sectors(shape, most.max(4), rng)
}

/// The shape with up to `units_max` write units a chunk.
fn with_sectors(shape: Geometry, units_max: u32, rng: &mut Stream) -> Geometry {
    let least = shape.mw_cunits / shape.ws_opt + 1;
    let write_units = between(rng, least.max(2), units_max.max(least).max(2));
    Geometry { sectors: write_units * shape.ws_opt, ..shape }
}

/// A small device of the same write rules; with more chunks after fewer were refused, for stacks whose
/// buffers take many lines.
pub(crate) fn scaled(
    geometry: &Geometry,
    sectors_max: u32,
    refused: u32,
    rng: &mut Stream,
) -> Geometry {
    let shape = Geometry {
        groups: geometry.groups.min(between(rng, 1, 4)),
        units: geometry.units.min(between(rng, 1, 4)),
        chunks: geometry.chunks.min(between(rng, 12, 40) + refused),
        ..*geometry
    };
    let room = sectors_max / (shape.total_units() * shape.chunks) / shape.ws_opt.max(1);
    with_sectors(shape, room.min(geometry.sectors / shape.ws_opt.max(1)), rng)
}

/// The shape, with parallel units that divide into stripes.
pub(crate) fn in_stripes(shape: Geometry, sectors_max: u32, rng: &mut Stream) -> Geometry {
    let power = |n: u32| 1 << n.ilog2();
    let divides = Geometry { groups: power(shape.groups), units: power(shape.units), ..shape };
    // The write units of a line, on fewer parallel units.
    let room = sectors_max / (divides.total_units() * divides.chunks) / divides.ws_opt;
    let longer = divides.sectors / divides.ws_opt * between(rng, 1, divides.total_units());
    let least = divides.mw_cunits / divides.ws_opt + 1;
    let write_units = longer.min(room).max(least).max(2);
    Geometry { sectors: write_units * divides.ws_opt, ..divides }
}

/// The shape, with chunks long enough for so many sectors in all.
pub(crate) fn at_least(shape: Geometry, sectors_min: u64) -> Geometry {
    let chunks = u64::from(shape.total_units()) * u64::from(shape.chunks);
    let least = sectors_min.div_ceil(chunks.max(1)).next_multiple_of(shape.ws_opt.max(1).into());
    Geometry { sectors: shape.sectors.max(least as u32), ..shape }
}

/// Some devices allow few open chunks.
pub(crate) fn limited(shape: Geometry, drawn: bool, rng: &mut Stream) -> Geometry {
    if !drawn || !rng.chance(0.15) {
        return shape;
    }
    let a_unit = 4 * between(rng, 1, 10) + between(rng, 0, 3);
    let maxoc = if rng.chance(0.5) { a_unit * shape.total_units() } else { 0 };
    let maxocpu = if maxoc == 0 || rng.chance(0.5) { a_unit } else { 0 };
    Geometry { maxoc, maxocpu, ..shape }
}

/// Chunks that are bad from the start.
pub(crate) fn bad_chunks(geometry: &Geometry, rng: &mut Stream) -> Vec<ChunkId> {
    let bad = if rng.chance(0.25) { between(rng, 1, 3) } else { 0 };
    let chunk = |rng: &mut Stream| ChunkId {
        unit: UnitId(rng.below(u64::from(geometry.total_units())) as u32),
        chunk: rng.below(u64::from(geometry.chunks)) as u32,
    };
    (0..bad).map(|_| chunk(rng)).collect()
}

/// Slow units, with their time in percent.
pub(crate) fn slow_units(geometry: &Geometry, rng: &mut Stream) -> Vec<(UnitId, u32)> {
    let slow = rng.chance(0.25).then(|| {
        let unit = UnitId(rng.below(u64::from(geometry.total_units())) as u32);
        (unit, between(rng, 150, 1_000))
    });
    slow.into_iter().collect()
}
