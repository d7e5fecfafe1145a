//! What a seed chooses about a pblk: its composition, its sizes, and what its work costs.

use crate::draw::draws::{Draws, KindDraw};
use crate::draw::family::ScenarioFamily;
use crate::draw::geometry::in_stripes;
use crate::draw::pblk::composition::{self, Composition, Pins, Widths};
use crate::draw::pblk::maps::{self, MapChoice};
use crate::draw::pblk::widths;
use crate::draw::sample::{between, log_uniform, pick};
use crate::draw::words::victim_name;
use crate::settings::Settings;
use nandscape_ftl::pblk::config::{
    CacheSize, CapacityRules, Config, Discard, JournalLines, Limiter, LineSet, MapConfig, MapKind,
    Pacing, StreamUnits, Victim,
};
use nandscape_ftl::pblk::costs::CpuCosts;
use nandscape_ftl::{FtlConfig, FtlKind};
use nandscape_media::Geometry;
use nandscape_rt::{Nanos, Stream};
use std::ops::Range;

/// The kind.
pub(crate) const KIND: FtlKind = FtlKind::Pblk;

/// Keys of a stack that every seed has as they are given, and those that it scales down or draws.
pub(crate) const KEPT: &[&str] = &[
    "capacity_rules",
    "routing",
    "core_choice",
    "write_buffers",
    "fsync_rings",
    "fsync_threshold",
    "flush_scope",
    "line_set",
    "limiter",
    "gc.victim",
    "gc.stream",
    "gc.journal_lines",
    "gc.pacing",
    "map.kind",
    "map.policy",
    "map.loads",
    "map.write_miss",
    "cpu",
];
pub(crate) const SIZED: &[&str] =
    &["op_percent", "ring", "gc.period", "map.block", "map.cache", "map.blind_percent"];

/// The choices, if they are a pblk's.
pub(crate) const fn of(config: &FtlConfig) -> Option<&Config> {
    if let FtlConfig::Pblk(config) = config { Some(config) } else { None }
}

/// The draw of a pblk, after its composition was drawn.
pub(crate) struct ConfigDraw {
    given: Option<Config>,
    pins: Pins,
    composition: Composition,
}

impl ConfigDraw {
    /// Draws the composition: of the choices that are given, else of a stack's, else any.
    pub(crate) fn begin(given: Option<&FtlConfig>, pins: Pins, draws: &mut Draws<'_>) -> Self {
        let given = given.and_then(of).cloned();
        let composed = given.as_ref().map(Composition::of);
        let composition = draw_composition(&pins, composed, draws.refused, draws.streams);
        Self { given, pins, composition }
    }
}

impl KindDraw for ConfigDraw {
    fn fit(&self, shape: Geometry, sectors_max: u32, draws: &mut Draws<'_>) -> Geometry {
        match self.composition.line_set {
            LineSet::Device => shape,
            _ => in_stripes(shape, sectors_max, draws.streams),
        }
    }

    fn config(&self, geometry: &Geometry, draws: &mut Draws<'_>) -> FtlConfig {
        let (seed, refused) = (draws.seed, draws.refused);
        let config = match &self.given {
            Some(given) => adapted(given, geometry, draws.rng),
            None => {
                let config = draw_config(draws.family, geometry, refused, draws.rng);
                draw_buffers(config, geometry, draws.streams)
            }
        };
        let map = maps::draw(seed, self.given.as_ref().map(|_| config.map), self.pins.map);
        let composition = Composition { map: MapChoice::of(&map), ..self.composition };
        let composition = widths::choose(seed, composition, &self.pins, self.given.is_some());
        let (journal_lines, cpu) = match self.given {
            Some(_) => (config.journal_lines, config.cpu),
            None => (draw_journal_lines(seed), draw_cpu(seed)),
        };
        let gc_pacing = draw_pacing(seed, self.given.as_ref().map(Config::pacing));
        let config = Config { map, journal_lines, cpu, gc_pacing, ..config };
        let config = composition.apply_to(config);
        FtlConfig::Pblk(match composition.widths {
            Widths::Usual => config,
            Widths::Wide => widths::draw(seed, config, geometry),
        })
    }

    fn with_edge_cases(&self, config: FtlConfig, rng: &mut Stream) -> FtlConfig {
        let FtlConfig::Pblk(config) = config else { return config };
        let edgy = with_edge_cases(config.clone(), rng);
        if self.given.is_none() {
            return FtlConfig::Pblk(edgy);
        }
        let map = match (edgy.map, config.map) {
            (MapKind::Cached(edgy), MapKind::Cached(given)) => {
                MapKind::Cached(MapConfig { cache: edgy.cache, ..given })
            }
            (map, _) => map,
        };
        FtlConfig::Pblk(Config { limiter: config.limiter, map, ..edgy })
    }
}

/// The choices on one line, with a space before each.
pub(crate) fn describe(config: &Config) -> Settings {
    let limiter = match config.limiter {
        Limiter::Kernel => "kernel".to_owned(),
        Limiter::Reserve(lines) => format!("reserve-{lines}"),
    };
    let (pacing, period) = match config.pacing() {
        Pacing::Immediate => ("immediate", None),
        Pacing::Kernel(period) => ("kernel", Some(period)),
    };
    let rules = match config.capacity_rules {
        CapacityRules::V4_13 => "4.13",
        CapacityRules::V4_16 => "4.16",
        CapacityRules::V5_11 => "5.11",
    };
    let StreamUnits { normal, fsync, journal, gc } = config.stream_units;
    let journal_lines = match config.journal_lines {
        JournalLines::Collected => "collected",
        JournalLines::Exempt => "exempt",
    };
    Settings::default()
        .with("composition", Composition::of(config).to_string())
        .with("capacity_rules", rules)
        .with_some("op_percent", config.op_percent)
        .with_some("ring", config.ring_sectors)
        .with("limiter", limiter)
        .with("pacing", pacing)
        .with_some("gc_period_ns", period)
        .with("victim", victim_name(config.victim))
        .with("journal_lines", journal_lines)
        .with("write_buffers", config.write_buffers)
        .with_some("fsync_rings", config.fsync_rings)
        .with("fsync_threshold", config.fsync_threshold)
        .with_some("special_ring", config.special_ring_sectors)
        .with_some("normal_units", normal)
        .with_some("fsync_units", fsync)
        .with_some("journal_units", journal)
        .with_some("gc_units", gc)
        .with_some("map", maps::describe(&config.map))
        .with_some("cpu", (!config.cpu.is_free()).then(|| describe_cpu(&config.cpu)))
}

/// The costs by their names.
fn describe_cpu(costs: &CpuCosts) -> Settings {
    Settings::default()
        .with("submit_ns", costs.submit_ns)
        .with("ring_request_ns", costs.ring_request_ns)
        .with("ring_sector_ns", costs.ring_sector_ns)
        .with("map_sector_ns", costs.map_sector_ns)
        .with("copy_sector_ns", costs.copy_sector_ns)
        .with("writer_unit_ns", costs.writer_unit_ns)
        .with("writer_sector_ns", costs.writer_sector_ns)
        .with("gc_sector_ns", costs.gc_sector_ns)
        .with("map_command_ns", costs.map_command_ns)
        .with("map_block_sector_ns", costs.map_block_sector_ns)
}

/// The choices that are given, then those of a stack, then the seed's: often a plain pblk, and more
/// often after the FTL refused others.
fn draw_composition(
    pins: &Pins,
    given: Option<Composition>,
    refused: u32,
    rng: &mut Stream,
) -> Composition {
    let plain = rng.below(10) < u64::from(2 + refused.min(40) / 10);
    let drawn = Composition {
        routing: any(composition::routings(), rng),
        flush_scope: any(composition::safe_scopes(), rng),
        line_set: any(composition::line_sets(), rng),
        gc_stream: any(composition::gc_streams(), rng),
        map: MapChoice::Resident,
        widths: Widths::Usual,
    };
    let drawn = if plain { Composition::of(&Config::default()) } else { drawn };
    let base = given.unwrap_or(drawn);
    Composition {
        routing: pins.routing.unwrap_or(base.routing),
        flush_scope: pins.flush_scope.unwrap_or(base.flush_scope),
        line_set: pins.line_set.unwrap_or(base.line_set),
        gc_stream: pins.gc_stream.unwrap_or(base.gc_stream),
        map: base.map,
        widths: pins.widths.unwrap_or(base.widths),
    }
}

/// Numbers and sizes of buffers.
fn draw_buffers(config: Config, geometry: &Geometry, rng: &mut Stream) -> Config {
    Config {
        write_buffers: between(rng, 1, 4),
        fsync_rings: rng.chance(0.5).then(|| between(rng, 1, 4)),
        fsync_threshold: between(rng, 0, 2),
        special_ring_sectors: draw_ring(geometry, 0..3, rng),
        ..config
    }
}

fn draw_config(
    family: ScenarioFamily,
    geometry: &Geometry,
    refused: u32,
    rng: &mut Stream,
) -> Config {
    let rules = [CapacityRules::V4_13, CapacityRules::V4_16, CapacityRules::V5_11];
    // Full lines, few of them free, beside a large ring: what the erase rule is for.
    let tight = family == ScenarioFamily::Overwrite && rng.chance(0.8);
    let limiter = match tight || rng.chance(0.5) {
        true => Limiter::Reserve(between(rng, 1, if tight { 2 } else { 4 })),
        false => Limiter::Kernel,
    };
    let victims = [
        Victim::PblkLists,
        Victim::Greedy,
        Victim::CostBenefit,
        Victim::Fifo,
        Victim::Random,
        Victim::DChoices(between(rng, 1, 4)),
    ];
    Config {
        capacity_rules: rules[pick(rng, &[1, 3, 1])],
        op_percent: Some(if tight { (11 + 2 * refused).min(70) } else { between(rng, 11, 70) }),
        ring_sectors: draw_ring(geometry, if tight { 2..6 } else { 0..5 }, rng),
        limiter,
        discard: Discard::Durable,
        victim: victims[pick(rng, &[3, 3, 1, 2, 1, 1])],
        ..Config::default()
    }
}

/// In one of three cases the journal's own lines are no victims while there are others.
fn draw_journal_lines(seed: u64) -> JournalLines {
    let rng = &mut Stream::new(seed, "scenario-journal-lines");
    if rng.below(3) == 0 { JournalLines::Exempt } else { JournalLines::Collected }
}

/// Victims at once, or by the kernel's thread, with a period from less than a program takes to that of
/// the kernel. A stack's thread keeps its period in half of the cases.
fn draw_pacing(seed: u64, given: Option<Pacing>) -> Option<Pacing> {
    let rng = &mut Stream::new(seed, "scenario-gc-pacing");
    let drawn = Pacing::Kernel(Nanos(log_uniform(rng, Pacing::PERIOD.0)));
    let keeps = rng.chance(0.5);
    match given {
        Some(Pacing::Kernel(_)) if !keeps => Some(drawn),
        Some(given) => Some(given),
        None => Some(if rng.chance(0.4) { Pacing::Immediate } else { drawn }),
    }
}

/// In one of four cases a host whose CPU costs something: from next to nothing to more than the media.
fn draw_cpu(seed: u64) -> CpuCosts {
    let rng = &mut Stream::new(seed, "scenario-cpu");
    if !rng.chance(0.25) {
        return CpuCosts::default();
    }
    let mut cost = |most| log_uniform(rng, most);
    CpuCosts {
        submit_ns: cost(1 << 14),
        ring_request_ns: cost(1 << 12),
        ring_sector_ns: cost(1 << 12),
        map_sector_ns: cost(1 << 12),
        copy_sector_ns: cost(1 << 12),
        writer_unit_ns: cost(1 << 20),
        writer_sector_ns: cost(1 << 14),
        gc_sector_ns: cost(1 << 16),
        map_command_ns: cost(1 << 20),
        map_block_sector_ns: cost(1 << 14),
    }
}

/// The rules' size, or a power of two times the least that the geometry takes.
fn draw_ring(geometry: &Geometry, shifts: Range<u32>, rng: &mut Stream) -> Option<u32> {
    let units = geometry.total_units();
    let least =
        (geometry.mw_cunits.next_multiple_of(geometry.ws_opt) + 2 * geometry.ws_opt) * units;
    let shift = between(rng, shifts.start, shifts.end - 1);
    (shifts.start > 0 || rng.chance(0.6)).then(|| least.next_power_of_two() << shift)
}

/// The choices of a stack, with as much overprovisioning as a small device takes.
fn adapted(config: &Config, geometry: &Geometry, rng: &mut Stream) -> Config {
    Config {
        op_percent: Some(between(rng, config.op_percent.unwrap_or(11).min(70), 70)),
        ring_sectors: draw_ring(geometry, 0..5, rng),
        discard: Discard::Durable,
        ..config.clone()
    }
}

fn any<T>(choices: impl Iterator<Item = T>, rng: &mut Stream) -> T {
    let mut choices: Vec<T> = choices.collect();
    choices.swap_remove(rng.below(choices.len() as u64) as usize)
}

/// Hardly any spare space, buffer or cache.
fn with_edge_cases(drawn: Config, rng: &mut Stream) -> Config {
    let op_percent = if rng.chance(0.5) { Some(between(rng, 3, 80)) } else { drawn.op_percent };
    let limiter =
        if rng.chance(0.2) { Limiter::Reserve(between(rng, 1, 8)) } else { drawn.limiter };
    let map = match drawn.map {
        MapKind::Cached(map) if rng.chance(0.5) => MapKind::Cached(MapConfig {
            cache: CacheSize::Bytes(u64::from(map.block_bytes)),
            loads_max: log_uniform(rng, 64) as u32,
            evict_batch: log_uniform(rng, 128) as u32,
            ..map
        }),
        map => map,
    };
    Config { op_percent, limiter, map, ..drawn }
}
