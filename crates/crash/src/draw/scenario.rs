//! What a seed chooses about the device: geometry, bad and slow parts, timing, the FTL's choices,
//! and fault rates. Together with its [`Plan`] that is all there is to a run, and it prints on one
//! line.
//!
//! Devices are small, so that garbage is collected and lines are reused many times a round, and a
//! recovery takes little time.

use crate::draw::edge_cases;
use crate::draw::family::ScenarioFamily;
use crate::draw::faults::FaultRates;
use crate::draw::pblk::composition::{self, Composition, Pins};
use crate::draw::pblk::maps::{self, MapChoice};
use crate::draw::plan::Plan;
use crate::draw::sample::{between, log_uniform, pick};
use nandscape_ftl::pblk::config::{
    CapacityRules, Config, Discard, JournalLines, Limiter, LineSet, MapConfig, MapKind, Victim,
};
use nandscape_ftl::pblk::costs::CpuCosts;
use nandscape_ftl::{FtlConfig, FtlRun, OmittedRule};
use nandscape_media::{ChunkId, DeviceTiming, Geometry, LinkTiming, NandTiming, UnitId};
use nandscape_rt::Stream;
use std::fmt;
use std::ops::Range;

/// A stack given from outside. Its device is scaled down so that a campaign is quick.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StackChoice {
    /// Shape and write rules; groups, units, chunks and sectors are upper limits.
    pub geometry: Geometry,
    /// The FTL's choices; overprovisioning and ring grow where the small device needs it.
    pub config: FtlConfig,
    /// Timing, and its name in reports.
    pub timing: (String, DeviceTiming),
}

impl StackChoice {
    /// The choices of its pblk; of another kind only shape and timing are taken.
    const fn pblk(&self) -> Option<&Config> {
        match &self.config {
            FtlConfig::Pblk(config) => Some(config),
            FtlConfig::Device(_) => None,
        }
    }
}

/// What is given from outside; the seed chooses the rest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// The stack; `None` lets the seed choose.
    pub stack: Option<StackChoice>,
    /// Fault rates; `None` lets the seed choose.
    pub faults: Option<FaultRates>,
    /// The rate of writes that leave a sector uncorrectable, in place of the one in `faults` or of the seed's.
    pub unreadable: Option<u32>,
    /// A safety rule to leave out, to see that the campaign notices.
    pub omit: Option<OmittedRule>,
    /// Choices of routing, flush scope, lines, copies and map that are given.
    pub pins: Pins,
    /// What every seed leans towards; `None` lets the seed choose.
    pub family: Option<ScenarioFamily>,
    /// Rounds a seed, one cut each at least; `None` lets the seed choose.
    pub rounds: Option<u32>,
    /// Requests a round, in percent of the usual.
    pub intensity_percent: u32,
    /// A campaign ends early after so many violations.
    pub violations_max: usize,
    /// Logical sectors that a device has at least; smaller ones are drawn again.
    pub sectors_min: u64,
    /// Sectors of the largest device.
    pub sectors_max: u32,
    /// Devices at the edges of what may be.
    pub edge_cases: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            stack: None,
            faults: None,
            unreadable: None,
            omit: None,
            pins: Pins::default(),
            family: None,
            rounds: None,
            intensity_percent: 100,
            violations_max: 10,
            sectors_min: 16,
            sectors_max: 8_192,
            edge_cases: false,
        }
    }
}

/// Everything that a seed chose.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scenario {
    /// The seed.
    pub seed: u64,
    /// Draws before this one that the FTL refused, each with the key at fault.
    pub refused: Vec<String>,
    /// Shape and write rules.
    pub geometry: Geometry,
    /// Chunks that are bad from the start.
    pub bad_chunks: Vec<ChunkId>,
    /// Slow units, with their time in percent.
    pub slow_units: Vec<(UnitId, u32)>,
    /// Timing and its name.
    pub timing: (String, DeviceTiming),
    /// The FTL's choices.
    pub config: Config,
    /// What the run decides beside them.
    pub run: FtlRun,
    /// Fault rates.
    pub faults: FaultRates,
    /// Erases that a chunk survives; `None`: any number.
    pub endurance_erases: Option<u32>,
    /// Load, cuts and checks.
    pub plan: Plan,
}

impl Scenario {
    /// The scenario of a seed, after the FTL refused the draws in `refused`.
    #[must_use]
    pub fn draw(seed: u64, refused: Vec<String>, options: &Options) -> Self {
        let rng = &mut Stream::new(seed, &format!("scenario-{}", refused.len()));
        let plan = Plan::draw(seed, options.family, options.rounds, options.intensity_percent);
        let streams = &mut Stream::new(seed, &format!("streams-{}", refused.len()));
        let given = options.stack.as_ref().and_then(StackChoice::pblk);
        let composed = given.map(Composition::of);
        let composition = draw_composition(&options.pins, composed, refused.len() as u32, streams);
        let geometry = match &options.stack {
            Some(stack) => scaled(&stack.geometry, options.sectors_max, refused.len() as u32, rng),
            None => draw_geometry(plan.family, options.sectors_max, rng),
        };
        let oddity = &mut Stream::new(seed, &format!("scenario-odd-{}", refused.len()));
        let geometry = if options.edge_cases {
            edge_cases::geometry(geometry, options.sectors_max, oddity)
        } else {
            geometry
        };
        let geometry = in_stripes(geometry, composition.line_set, options.sectors_max, streams);
        let geometry = limited(geometry, options.stack.is_none(), streams);
        let timing = match &options.stack {
            Some(stack) => stack.timing.clone(),
            None => draw_timing(rng),
        };
        let config = match given {
            Some(given) => adapted(given, &geometry, rng),
            None => draw_config(plan.family, &geometry, refused.len() as u32, rng),
        };
        let config = match given {
            Some(_) => config,
            None => draw_buffers(config, &geometry, streams),
        };
        let map = maps::draw(seed, given.map(|_| config.map), options.pins.map);
        let composition = Composition { map: MapChoice::of(&map), ..composition };
        let (journal_lines, cpu) = match &options.stack {
            Some(_) => (config.journal_lines, config.cpu),
            None => (draw_journal_lines(seed), draw_cpu(seed)),
        };
        let config = composition.apply_to(Config { map, journal_lines, cpu, ..config });
        let faults = options.faults.unwrap_or_else(|| FaultRates {
            unreadable_one_in: draw_unreadable(seed),
            ..draw_faults(plan.family, rng)
        });
        let unreadable_one_in = options.unreadable.unwrap_or(faults.unreadable_one_in);
        let faults = FaultRates { unreadable_one_in, ..faults };
        let drawn = Self {
            seed,
            refused,
            bad_chunks: draw_bad_chunks(&geometry, rng),
            slow_units: draw_slow_units(&geometry, rng),
            geometry,
            timing,
            config,
            run: FtlRun { seed, keep_content: true, omit: options.omit },
            faults,
            endurance_erases: None,
            plan,
        };
        let mut drawn = if options.edge_cases { drawn.with_edge_cases(oddity) } else { drawn };
        drawn.plan.faulty = drawn.faults.any() || drawn.endurance_erases.is_some();
        drawn.plan.unreadable = drawn.faults.unreadable_one_in > 0;
        drawn
    }

    fn with_edge_cases(self, rng: &mut Stream) -> Self {
        Self {
            config: edge_cases::config(self.config, rng),
            bad_chunks: edge_cases::bad_chunks(self.bad_chunks, &self.geometry, rng),
            faults: edge_cases::faults(self.faults, rng),
            endurance_erases: edge_cases::endurance(rng),
            plan: Plan { load: edge_cases::load(self.plan.load, rng), ..self.plan },
            ..self
        }
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let g = &self.geometry;
        write!(
            f,
            "seed={} device={}x{}x{}x{} ws={}/{} mw={} maxoc={}/{} timing={}",
            self.seed,
            g.groups,
            g.units,
            g.chunks,
            g.sectors,
            g.ws_min,
            g.ws_opt,
            g.mw_cunits,
            g.maxoc,
            g.maxocpu,
            self.timing.0
        )?;
        for bad in &self.bad_chunks {
            write!(f, " bad=u{}c{}", bad.unit.0, bad.chunk)?;
        }
        for (unit, percent) in &self.slow_units {
            write!(f, " slow=u{}:{percent}%", unit.0)?;
        }
        let Config { capacity_rules, op_percent, ring_sectors, limiter, victim, .. } = &self.config;
        let broken = self.run.omit.map_or_else(|| "No".to_owned(), |rule| format!("{rule:?}"));
        if let MapKind::Cached(map) = &self.config.map {
            let MapConfig { block_bytes, cache, policy, loads_max, evict_batch } = map;
            write!(f, " map={block_bytes}:{cache:?}:{policy:?}:{loads_max}:{evict_batch}")?;
        }
        if !self.config.cpu.is_free() {
            write!(f, " cpu={:?}", self.config.cpu)?;
        }
        let Config { cores, fsync_rings, fsync_threshold, special_ring_sectors, .. } = &self.config;
        write!(
            f,
            " rules={capacity_rules:?} op={op_percent:?} ring={ring_sectors:?} \
             limiter={limiter:?} victim={victim:?} broken={broken} composition={} cores={cores} \
             fsync-rings={fsync_rings:?} threshold={fsync_threshold} \
             special-ring={special_ring_sectors:?} faults=1/{}:1/{} {}",
            Composition::of(&self.config),
            self.faults.program_one_in,
            self.faults.erase_one_in,
            self.plan
        )?;
        if self.faults.unreadable_one_in > 0 {
            write!(f, " unreadable=1/{}", self.faults.unreadable_one_in)?;
        }
        if let Some(erases) = self.endurance_erases {
            write!(f, " endurance={erases}")?;
        }
        match self.refused.last() {
            Some(key) => write!(f, " refused={}x,last:{key}", self.refused.len()),
            None => Ok(()),
        }
    }
}

fn draw_geometry(family: ScenarioFamily, sectors_max: u32, rng: &mut Stream) -> Geometry {
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
fn scaled(geometry: &Geometry, sectors_max: u32, refused: u32, rng: &mut Stream) -> Geometry {
    let shape = Geometry {
        groups: geometry.groups.min(between(rng, 1, 4)),
        units: geometry.units.min(between(rng, 1, 4)),
        chunks: geometry.chunks.min(between(rng, 12, 40) + refused),
        ..*geometry
    };
    let room = sectors_max / (shape.total_units() * shape.chunks) / shape.ws_opt.max(1);
    with_sectors(shape, room.min(geometry.sectors / shape.ws_opt.max(1)), rng)
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
    };
    let drawn = if plain { Composition::of(&Config::default()) } else { drawn };
    let base = given.unwrap_or(drawn);
    Composition {
        routing: pins.routing.unwrap_or(base.routing),
        flush_scope: pins.flush_scope.unwrap_or(base.flush_scope),
        line_set: pins.line_set.unwrap_or(base.line_set),
        gc_stream: pins.gc_stream.unwrap_or(base.gc_stream),
        map: base.map,
    }
}

fn any<T>(choices: impl Iterator<Item = T>, rng: &mut Stream) -> T {
    let mut choices: Vec<T> = choices.collect();
    choices.swap_remove(rng.below(choices.len() as u64) as usize)
}

/// The shape, with parallel units that divide into stripes.
fn in_stripes(shape: Geometry, set: LineSet, sectors_max: u32, rng: &mut Stream) -> Geometry {
    if set == LineSet::Device {
        return shape;
    }
    let power = |n: u32| 1 << n.ilog2();
    let divides = Geometry { groups: power(shape.groups), units: power(shape.units), ..shape };
    // The write units of a line, on fewer parallel units.
    let room = sectors_max / (divides.total_units() * divides.chunks) / divides.ws_opt;
    let longer = divides.sectors / divides.ws_opt * between(rng, 1, divides.total_units());
    let least = divides.mw_cunits / divides.ws_opt + 1;
    let write_units = longer.min(room).max(least).max(2);
    Geometry { sectors: write_units * divides.ws_opt, ..divides }
}

/// Some devices allow few open chunks.
fn limited(shape: Geometry, drawn: bool, rng: &mut Stream) -> Geometry {
    if !drawn || !rng.chance(0.15) {
        return shape;
    }
    let a_unit = 4 * between(rng, 1, 10) + between(rng, 0, 3);
    let maxoc = if rng.chance(0.5) { a_unit * shape.total_units() } else { 0 };
    let maxocpu = if maxoc == 0 || rng.chance(0.5) { a_unit } else { 0 };
    Geometry { maxoc, maxocpu, ..shape }
}

/// Numbers and sizes of buffers.
fn draw_buffers(config: Config, geometry: &Geometry, rng: &mut Stream) -> Config {
    Config {
        cores: between(rng, 1, 4),
        fsync_rings: rng.chance(0.5).then(|| between(rng, 1, 4)),
        fsync_threshold: between(rng, 0, 2),
        special_ring_sectors: draw_ring(geometry, 0..3, rng),
        ..config
    }
}

fn draw_timing(rng: &mut Stream) -> (String, DeviceTiming) {
    let name = ["none", "nvmevirt-970pro", "qemu-ocssd", "uneven"][pick(rng, &[2, 3, 3, 3])];
    match DeviceTiming::preset(name) {
        Some(timing) => (name.into(), timing),
        None => {
            let (program_ns, erase_ns) =
                (20_000 * log_uniform(rng, 256), log_uniform(rng, 1 << 23));
            let base = DeviceTiming::preset("qemu-ocssd").unwrap_or(DeviceTiming::none());
            let timing = DeviceTiming {
                nand: NandTiming { program_ns, erase_ns, ..base.nand },
                link: LinkTiming { buffer_base_ns: 1_000, ..base.link },
            };
            (format!("{name}(program={program_ns}ns,erase={erase_ns}ns)"), timing)
        }
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
    if rng.below(3) == 0 { JournalLines::LeftToDie } else { JournalLines::Collected }
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

fn draw_faults(family: ScenarioFamily, rng: &mut Stream) -> FaultRates {
    let rates = [0, 1_000, 200, 50];
    let weights: [u64; 4] = match family {
        ScenarioFamily::Failures => [0, 2, 3, 3],
        _ => [5, 4, 1, 0],
    };
    let mut one_in = || rates[pick(rng, &weights)];
    FaultRates { program_one_in: one_in(), erase_one_in: one_in(), unreadable_one_in: 0 }
}

/// In one of eight cases media lose sectors.
fn draw_unreadable(seed: u64) -> u32 {
    let rng = &mut Stream::new(seed, "scenario-unreadable");
    if rng.below(8) == 0 { [2_000, 500, 100][pick(rng, &[1, 1, 1])] } else { 0 }
}

fn draw_bad_chunks(geometry: &Geometry, rng: &mut Stream) -> Vec<ChunkId> {
    let bad = if rng.chance(0.25) { between(rng, 1, 3) } else { 0 };
    let chunk = |rng: &mut Stream| ChunkId {
        unit: UnitId(rng.below(u64::from(geometry.total_units())) as u32),
        chunk: rng.below(u64::from(geometry.chunks)) as u32,
    };
    (0..bad).map(|_| chunk(rng)).collect()
}

fn draw_slow_units(geometry: &Geometry, rng: &mut Stream) -> Vec<(UnitId, u32)> {
    let slow = rng.chance(0.25).then(|| {
        let unit = UnitId(rng.below(u64::from(geometry.total_units())) as u32);
        (unit, between(rng, 150, 1_000))
    });
    slow.into_iter().collect()
}
