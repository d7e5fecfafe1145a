//! What a seed chooses about an SSD with interval maps: partitions that its logs go round in, a metadata region, and small
//! map nodes that are compacted often; and what it has of a conventional SSD.

use crate::draw::append::AppendWanted;
use crate::draw::device;
use crate::draw::draws::{Draws, KindDraw};
use crate::draw::sample::{between, log_uniform};
use crate::settings::Settings;
use nandscape_block::SECTOR_BYTES;
use nandscape_ftl::device::config::BufferConfig;
use nandscape_ftl::interval::Config;
use nandscape_ftl::{FtlConfig, FtlKind};
use nandscape_media::Geometry;
use nandscape_rt::Stream;

/// The kind.
pub(crate) const KIND: FtlKind = FtlKind::Interval;
/// Fewest chunks per unit.
const CHUNKS_MIN: u32 = 16;
/// The most that are tried where a file system needs space.
const CHUNKS_MAX: u32 = 600;
/// The least and the most overprovisioning, in hundredths of a percent.
const OP_MIN: u32 = 100;
const MOST_OP: u32 = 9_000;
/// The least partition, in bits of its sectors.
const PARTITION_BITS_MIN: u32 = 8;

/// Keys of a stack that a seed scales down or draws, beside those of a conventional SSD: all.
pub(crate) const SIZED: &[&str] =
    &["random.size", "map.partition", "map.node", "map.compact_bytes_per_s"];

/// The choices, if they are those of an SSD with interval maps.
pub(crate) const fn of(config: &FtlConfig) -> Option<&Config> {
    if let FtlConfig::Interval(config) = config { Some(config) } else { None }
}

/// The draw of an SSD with interval maps.
pub(crate) struct ConfigDraw {
    given: Config,
    pages: device::ConfigDraw,
    wanted: Option<AppendWanted>,
}

impl ConfigDraw {
    /// That of a stack's choices, else of the kind's defaults; with the regions that a file system wants.
    pub(crate) fn begin(given: Option<&FtlConfig>, wanted: Option<AppendWanted>) -> Self {
        let given = given.and_then(of).cloned();
        let is_given = given.is_some();
        let given = given.unwrap_or_default();
        Self { pages: device::ConfigDraw::of(is_given, given.pages.clone()), given, wanted }
    }

    /// The shape with chunks for what a file system wants, whatever else is drawn.
    fn fit_wanted(&self, shape: Geometry, wanted: AppendWanted, rng: &mut Stream) -> Geometry {
        let shape = wanted.with_rows(shape, wanted.draw_superblock(rng));
        let with = |chunks| Geometry { chunks, ..shape };
        let fits = |chunks: &u32| {
            let geometry = with(*chunks);
            let largest = with_space(self.largest(&geometry, wanted), &geometry);
            holds(&largest, &geometry, wanted)
        };
        let more = between(rng, 0, 4);
        with((CHUNKS_MIN..CHUNKS_MAX).step_by(2).find(fits).unwrap_or(CHUNKS_MAX) + more)
    }

    /// Choices that need the most space.
    fn largest(&self, geometry: &Geometry, wanted: AppendWanted) -> Config {
        let instances = self.given.pages.instances.min(geometry.groups);
        let page = u64::from(geometry.ws_opt) * SECTOR_BYTES;
        let size_bytes = 8 * page * u64::from(instances);
        let buffer = BufferConfig { size_bytes, ..self.given.pages.buffer };
        let pages = nandscape_ftl::device::Config {
            instances,
            buffer,
            op_hundredths: OP_MIN,
            map_unit_bytes: SECTOR_BYTES as u32,
            ..self.given.pages.clone()
        };
        Config { random_bytes: wanted.random_most() * SECTOR_BYTES, pages, ..self.given.clone() }
    }

    /// The choices that a file system needs, and as much overprovisioning as that leaves.
    fn for_wanted(&self, drawn: Config, geometry: &Geometry, draws: &mut Draws<'_>) -> Config {
        let Some(wanted) = self.wanted else { return with_space(drawn, geometry) };
        let partition_bits = wanted.draw_partition_bits(self.given.partition_bits, draws.streams);
        let random_bytes = wanted.draw_random_bytes(draws.streams);
        let drawn = Config { partition_bits, random_bytes, ..drawn };
        let of = |op_hundredths| with_op(&drawn, op_hundredths);
        let least = with_space(of(OP_MIN), geometry);
        let first = least.pages.op_hundredths;
        let last = (first + 500).min(MOST_OP);
        let most = (first..last).step_by(25).take_while(|op| holds(&of(*op), geometry, wanted));
        of(between(draws.streams, first, most.last().unwrap_or(first)))
    }
}

/// Whether a device of this shape holds what is wanted.
fn holds(config: &Config, geometry: &Geometry, wanted: AppendWanted) -> bool {
    let sizes = config.sizes(geometry);
    sizes.is_ok_and(|(sizes, random)| sizes.logical_sectors >= random + wanted.live)
}

/// The choices with another overprovisioning.
fn with_op(config: &Config, op_hundredths: u32) -> Config {
    let pages = nandscape_ftl::device::Config { op_hundredths, ..config.pages.clone() };
    Config { pages, ..config.clone() }
}

impl KindDraw for ConfigDraw {
    fn fit(&self, shape: Geometry, sectors_max: u32, draws: &mut Draws<'_>) -> Geometry {
        if let Some(wanted) = self.wanted {
            return self.fit_wanted(shape, wanted, draws.rng);
        }
        let shape = self.pages.fit(shape, sectors_max, draws);
        Geometry { chunks: shape.chunks.max(CHUNKS_MIN), ..shape }
    }

    fn config(&self, geometry: &Geometry, draws: &mut Draws<'_>) -> FtlConfig {
        let pages = match self.pages.config(geometry, draws) {
            FtlConfig::Device(pages) => pages,
            _ => self.given.pages.clone(),
        };
        let rng = &mut *draws.streams;
        let physical = geometry.total_sectors();
        // Logs of less than they hold go round often; of much more, rarely.
        let a_log = (physical / 6).max(1).ilog2();
        let partition_bits = between(rng, a_log.saturating_sub(1), a_log + 3);
        let partition_bits =
            partition_bits.clamp(PARTITION_BITS_MIN, self.given.partition_bits.max(8));
        let random = if rng.chance(0.5) { 0 } else { 1 + rng.below(physical / 8) };
        let gc_lines = if rng.chance(0.5) { pages.gc_lines } else { between(rng, 0, 4) };
        let map_unit_bytes = SECTOR_BYTES as u32;
        let drawn = Config {
            partition_bits,
            random_bytes: random.min(1 << (partition_bits - 1)) * SECTOR_BYTES,
            leaf_bits: between(rng, 6, 8),
            middle_bits: between(rng, 1, 4),
            hole_sectors: between(rng, 1, 64),
            compact_period_ns: 1_000 * log_uniform(rng, 1 << 14),
            compact_bytes_per_s: if rng.chance(0.3) { 0 } else { 1 << between(rng, 22, 32) },
            pages: nandscape_ftl::device::Config { map_unit_bytes, gc_lines, ..pages },
        };
        FtlConfig::Interval(self.for_wanted(drawn, geometry, draws))
    }

    fn with_edge_cases(&self, config: FtlConfig, rng: &mut Stream) -> FtlConfig {
        let FtlConfig::Interval(drawn) = config else { return config };
        let pages = self.pages.with_edge_cases(FtlConfig::Device(drawn.pages.clone()), rng);
        match pages {
            FtlConfig::Device(pages) => FtlConfig::Interval(Config { pages, ..drawn }),
            _ => FtlConfig::Interval(drawn),
        }
    }
}

/// As much overprovisioning as was drawn, or more where a device of this shape has to keep more free.
fn with_space(config: Config, geometry: &Geometry) -> Config {
    let of = |op_hundredths| with_op(&config, op_hundredths);
    let fits = |op: &u32| of(*op).sizes(geometry).is_ok();
    of((config.pages.op_hundredths..MOST_OP).step_by(25).find(fits).unwrap_or(MOST_OP))
}

/// The choices on one line, with a space before each.
pub(crate) fn describe(config: &Config) -> Settings {
    let Config { partition_bits, random_bytes, leaf_bits, middle_bits, hole_sectors, .. } = config;
    let own = Settings::default()
        .with("partition_bits", *partition_bits)
        .with("random_bytes", *random_bytes)
        .with("leaf_bits", *leaf_bits)
        .with("middle_bits", *middle_bits)
        .with("hole_sectors", *hole_sectors)
        .with("compact_period_ns", config.compact_period_ns)
        .with("compact_bytes_per_s", config.compact_bytes_per_s);
    own.and(device::describe(&config.pages))
}
