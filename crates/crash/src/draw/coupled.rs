//! What a seed chooses about a coupled SSD: its instances, superblocks, address space and buffers.

use crate::draw::append::AppendWanted;
use crate::draw::device;
use crate::draw::draws::{Draws, KindDraw};
use crate::draw::sample::{between, pick};
use crate::settings::Settings;
use nandscape_block::{SECTOR_BYTES, UpcallSignal};
use nandscape_ftl::coupled::Config;
use nandscape_ftl::device::config::BufferConfig;
use nandscape_ftl::{FtlConfig, FtlKind};
use nandscape_media::Geometry;
use nandscape_rt::{Nanos, Stream};

/// The kind.
pub(crate) const KIND: FtlKind = FtlKind::Coupled;
/// The most overprovisioning that is drawn, in hundredths of a percent.
const MOST_OP: u32 = 8_500;
/// The range of that of the page-mapped region.
const PAGE_OP: (u32, u32) = (3_000, 6_000);
/// The most chunks per unit.
const CHUNKS_MAX: u32 = 400;
/// The most spare chunks.
const SPARE_MAX: u32 = 24;
/// Superblocks of a region that the host writes at once, and free lines at which collection begins, at most.
const OPEN_MAX: u32 = 3;
const GC_LINES_MAX: u32 = 3;
/// The most sectors of the page-mapped region.
const RANDOM_MAX: u64 = 128;

/// Keys of a stack that every seed has as they are given, and those that it scales down or draws.
pub(crate) const KEPT: &[&str] = &["upcall", "buffer.power_safe", "buffer.early_completion"];
pub(crate) const SIZED: &[&str] = &[
    "op_percent",
    "instances",
    "gc_lines",
    "rho",
    "buffer.size",
    "random.size",
    "random.op_percent",
    "superblock.open_max",
    "superblock.buffer",
    "superblock.spare_chunks",
];

/// The choices, if they are a coupled SSD's.
pub(crate) const fn of(config: &FtlConfig) -> Option<&Config> {
    if let FtlConfig::Coupled(config) = config { Some(config) } else { None }
}

/// The draw of a coupled SSD.
pub(crate) struct ConfigDraw {
    given: Config,
    /// Whether choices are a stack's, which every seed keeps.
    is_given: bool,
    wanted: Option<AppendWanted>,
}

impl ConfigDraw {
    /// That of a stack's choices, else of the kind's defaults; with the regions that a file system wants.
    pub(crate) fn begin(given: Option<&FtlConfig>, wanted: Option<AppendWanted>) -> Self {
        let given = given.and_then(of).cloned();
        Self { is_given: given.is_some(), given: given.unwrap_or_default(), wanted }
    }

    /// The range of superblocks of a region that are open at once.
    fn open(&self) -> (u32, u32) {
        self.wanted.map_or((1, OPEN_MAX), |wanted| (wanted.logs, wanted.logs + 1))
    }

    /// How the host hears of upcalls.
    fn upcall(&self, rng: &mut Stream) -> UpcallSignal {
        let signals = [
            self.given.upcall,
            UpcallSignal::Piggyback,
            UpcallSignal::Interrupt,
            UpcallSignal::Poll(Nanos::from_us(100)),
        ];
        let drawn = signals[pick(rng, &[2, 1, 1, 1])];
        if self.is_given { self.given.upcall } else { drawn }
    }

    /// Choices that need the most space, with this overprovisioning of the page-mapped region.
    fn largest(&self, geometry: &Geometry, page_op: u32) -> Config {
        let page = u64::from(geometry.ws_opt) * SECTOR_BYTES;
        let instances = self.given.pages.instances.min(geometry.groups);
        let buffer =
            BufferConfig { size_bytes: 4 * page * u64::from(instances), ..self.given.pages.buffer };
        let pages = nandscape_ftl::device::Config {
            instances,
            op_hundredths: page_op,
            map_unit_bytes: SECTOR_BYTES as u32,
            buffer,
            ..self.given.pages.clone()
        };
        Config {
            pages,
            random_bytes: self.wanted.map_or(RANDOM_MAX, |wanted| wanted.random_most())
                * SECTOR_BYTES,
            op_hundredths: self.wanted.map_or(5_000, |_| MOST_OP),
            open_max: self.open().1,
            gc_lines: GC_LINES_MAX,
            buffer_bytes: 4 * page,
            spare_chunks: SPARE_MAX,
            ..self.given.clone()
        }
    }

    /// The shape with superblocks of whole segments, and with lines beside those that hold no data in the long run.
    fn fit_wanted(&self, shape: Geometry, wanted: AppendWanted, rng: &mut Stream) -> Geometry {
        let shape = wanted.with_rows(shape, wanted.draw_superblock(rng));
        let row = u64::from(shape.total_units()) * u64::from(shape.sectors);
        let lines = wanted.live.div_ceil(row) as u32 + between(rng, 1, 4);
        let with = |chunks| Geometry { chunks, ..shape };
        let fits = |chunks: &u32| {
            let geometry = with(*chunks);
            let holds = |page_op| {
                let largest = with_spare(self.largest(&geometry, page_op), &geometry, 0);
                let sizes = largest.sizes(&geometry);
                sizes.is_ok_and(|sizes| sizes.lines >= lines + largest.lines_apart())
            };
            holds(PAGE_OP.0) && holds(PAGE_OP.1)
        };
        with((24..CHUNKS_MAX).find(fits).unwrap_or(CHUNKS_MAX) + between(rng, 3, 6))
    }
}

impl KindDraw for ConfigDraw {
    /// Device FTLs are refused on NAND with rules for hosts. There are chunks for the journal, and for lines beside those
    /// that hold no data.
    fn fit(&self, shape: Geometry, _sectors_max: u32, draws: &mut Draws<'_>) -> Geometry {
        if let Some(wanted) = self.wanted {
            return self.fit_wanted(shape, wanted, draws.rng);
        }
        let groups = 1 << shape.groups.ilog2();
        let shape = Geometry { groups, mw_cunits: 0, maxoc: 0, maxocpu: 0, ..shape };
        let with = |chunks| Geometry { chunks, ..shape };
        let fits = |chunks: &u32| {
            let geometry = with(*chunks);
            self.largest(&geometry, 5_000).sizes(&geometry).is_ok()
        };
        let least = (24..CHUNKS_MAX).step_by(4).find(fits).unwrap_or(CHUNKS_MAX);
        with(least + between(draws.rng, 0, 8))
    }

    fn config(&self, geometry: &Geometry, draws: &mut Draws<'_>) -> FtlConfig {
        let most = self.given.pages.instances.min(geometry.groups);
        let drawn = between(draws.streams, 0, most.ilog2());
        let instances = 1 << if self.is_given { most.ilog2() } else { drawn };
        let page = u64::from(geometry.ws_opt) * SECTOR_BYTES;
        let drawn = device::ConfigDraw::of(self.is_given, self.given.pages.clone());
        let drawn = drawn.config(geometry, draws);
        let pages = device::of(&drawn).cloned().unwrap_or_default();
        let unit_bytes = SECTOR_BYTES as u32;
        let size_bytes = (2 << between(draws.streams, 0, 2)) * page * u64::from(instances);
        let early_completion = !self.is_given || self.given.pages.buffer.early_completion;
        let buffer = BufferConfig { size_bytes, early_completion, ..pages.buffer };
        let pages = nandscape_ftl::device::Config {
            instances,
            op_hundredths: between(draws.rng, PAGE_OP.0, PAGE_OP.1),
            map_unit_bytes: unit_bytes,
            buffer,
            ..pages
        };
        let drawn = Config {
            pages,
            random_bytes: match self.wanted {
                Some(wanted) => wanted.draw_random_bytes(draws.rng),
                None => (8 + draws.rng.below(RANDOM_MAX - 8)) * SECTOR_BYTES,
            },
            rho_percent: between(draws.rng, 130, 300),
            op_hundredths: MOST_OP,
            gc_lines: between(draws.rng, 1, GC_LINES_MAX),
            open_max: between(draws.rng, self.open().0, self.open().1),
            buffer_bytes: u64::from(between(draws.rng, 2, 5)) * page,
            spare_chunks: 2,
            upcall: self.upcall(draws.rng),
            partition_bits: [20, self.given.partition_bits][pick(draws.rng, &[1, 1])],
            ring_sectors: self.given.ring_sectors,
            ring_entries: self.given.ring_entries,
        };
        let drawn = with_spare(drawn, geometry, between(draws.rng, 1, 3));
        let least = least_op(&drawn, geometry);
        let most = self.wanted.and_then(|wanted| most_op(&drawn, geometry, wanted));
        let most = most.unwrap_or(least + 2_000).min(least + 2_000).max(least);
        let op_hundredths = between(draws.rng, least, most.min(MOST_OP));
        FtlConfig::Coupled(Config { op_hundredths, ..drawn })
    }

    fn with_edge_cases(&self, config: FtlConfig, rng: &mut Stream) -> FtlConfig {
        let FtlConfig::Coupled(drawn) = config else { return config };
        let power_safe = drawn.pages.buffer.power_safe || rng.chance(0.3) && !self.is_given;
        let buffer = BufferConfig { power_safe, ..drawn.pages.buffer };
        let pages = nandscape_ftl::device::Config { buffer, ..drawn.pages };
        let spare_chunks = drawn.spare_chunks + if power_safe { between(rng, 2, 8) } else { 0 };
        // A ring that is soon full: snapshots are taken, and wait for each other, in operation.
        let ring_sectors = [0, 3, 4, 6][pick(rng, &[1, 1, 1, 1])];
        let ring_entries = [0, 1, 3, 16][pick(rng, &[1, 1, 1, 1])];
        FtlConfig::Coupled(Config { pages, spare_chunks, ring_sectors, ring_entries, ..drawn })
    }
}

/// The least overprovisioning that leaves a device of this shape what it must keep free.
fn least_op(config: &Config, geometry: &Geometry) -> u32 {
    let fits =
        |&op_hundredths: &u32| Config { op_hundredths, ..config.clone() }.sizes(geometry).is_ok();
    (500..MOST_OP).step_by(50).find(fits).unwrap_or(MOST_OP)
}

/// The most overprovisioning with which the lines hold what is wanted.
fn most_op(config: &Config, geometry: &Geometry, wanted: AppendWanted) -> Option<u32> {
    let whole = Config { op_hundredths: MOST_OP, ..config.clone() }.sizes(geometry).ok()?;
    let lines = u64::from(whole.lines) * u64::from(whole.superblock_sectors());
    let apart = lines.checked_sub(wanted.live)? * 10_000 / lines.max(1);
    Some(apart as u32)
}

/// The fewest spare chunks with which a device of this shape keeps its promises, and some more.
fn with_spare(config: Config, geometry: &Geometry, more: u32) -> Config {
    let of = |spare_chunks| Config { spare_chunks, ..config.clone() };
    let fits = |spare: &u32| of(*spare).sizes(geometry).is_ok();
    of((2..SPARE_MAX).find(fits).unwrap_or(SPARE_MAX) + more)
}

/// The choices on one line, with a space before each.
pub(crate) fn describe(config: &Config) -> Settings {
    let Config { random_bytes, rho_percent, op_hundredths, gc_lines, open_max, .. } = config;
    let upcall = match config.upcall {
        UpcallSignal::Piggyback => "piggyback".to_owned(),
        UpcallSignal::Interrupt => "interrupt".to_owned(),
        UpcallSignal::Poll(period) => format!("poll-{period}"),
    };
    let own = Settings::default()
        .with("random_bytes", *random_bytes)
        .with("rho_percent", *rho_percent)
        .with("op_lines_hundredths", *op_hundredths)
        .with("append_gc_lines", *gc_lines)
        .with("open_max", *open_max)
        .with("line_buffer_bytes", config.buffer_bytes)
        .with("spare_chunks", config.spare_chunks)
        .with("upcall", upcall)
        .with("partition_bits", config.partition_bits)
        .with("ring_sectors", config.ring_sectors)
        .with("ring_entries", config.ring_entries);
    own.and(device::describe(&config.pages))
}
