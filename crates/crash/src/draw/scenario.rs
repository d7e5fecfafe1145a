//! What a seed chooses about the device: geometry, bad and slow parts, timing, the FTL's choices,
//! and fault rates. Together with its [`Plan`] that is all there is to a run, and it prints as keys
//! and values.
//!
//! Devices are small, so that garbage is collected and lines are reused many times a round, and a
//! recovery takes little time.

use crate::draw::append::RegionsWanted;
use crate::draw::coupled;
use crate::draw::draws::{Draws, KindDraw};
use crate::draw::family::ScenarioFamily;
use crate::draw::faults::{self, FaultRates};
use crate::draw::kind::{DEFAULT, describe, draw_of};
use crate::draw::pblk::composition::Pins;
use crate::draw::plan::Plan;
use crate::draw::sample::{log_uniform, pick};
use crate::draw::{edge_cases, geometry};
use crate::settings::Settings;
use crate::shrink::reduction::Reduction;
use nandscape_ftl::{FtlConfig, FtlKind, FtlRun, OmittedRule};
use nandscape_media::{ChunkId, Delays, DeviceTiming, Geometry, LinkTiming, NandTiming, UnitId};
use nandscape_rt::Stream;
use std::fmt;

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

/// What is given from outside; the seed chooses the rest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// The stack; `None` lets the seed choose.
    pub stack: Option<StackChoice>,
    /// The kind of FTL that seeds draw without a stack.
    pub ftl: FtlKind,
    /// Fault rates; `None` lets the seed choose.
    pub faults: Option<FaultRates>,
    /// The rate of writes that leave a sector uncorrectable, in place of the one in `faults` or of the seed's.
    pub unreadable: Option<u32>,
    /// How much longer media commands take than the timing says; `None` lets the seed choose.
    pub delays: Option<Delays>,
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
    /// Sectors that media have at least: smaller shapes get longer chunks.
    pub media_sectors_min: u64,
    /// What a file system wants of a device that is not written at random as a whole.
    pub wanted: Option<RegionsWanted>,
    /// Devices at the edges of what may be.
    pub edge_cases: bool,
    /// Most power cuts come while the device writes for itself.
    pub background_cuts: bool,
    /// What is left of each seed's run; `None`: all of it.
    pub only: Option<Reduction>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            stack: None,
            ftl: DEFAULT,
            faults: None,
            unreadable: None,
            delays: None,
            omit: None,
            pins: Pins::default(),
            family: None,
            rounds: None,
            intensity_percent: 100,
            violations_max: 10,
            sectors_min: 16,
            sectors_max: 8_192,
            media_sectors_min: 0,
            wanted: None,
            edge_cases: false,
            background_cuts: false,
            only: None,
        }
    }
}

impl Options {
    /// The kind of FTL that seeds draw.
    #[must_use]
    pub fn kind(&self) -> FtlKind {
        self.stack.as_ref().map_or(self.ftl, |stack| stack.config.kind())
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
    pub config: FtlConfig,
    /// What the run decides beside them.
    pub run: FtlRun,
    /// Fault rates.
    pub faults: FaultRates,
    /// How much longer media commands take than the timing says.
    pub delays: Delays,
    /// Erases that a chunk survives; `None`: any number.
    pub endurance_erases: Option<u32>,
    /// Load, cuts and checks.
    pub plan: Plan,
}

impl Scenario {
    /// The scenario of a seed, after the FTL refused the draws in `refused`.
    #[must_use]
    pub fn draw(seed: u64, refused: Vec<String>, options: &Options) -> Self {
        let number = refused.len();
        let plan = Plan::draw(seed, options.family, options.rounds, options.intensity_percent);
        let draws = &mut Draws {
            seed,
            refused: number as u32,
            family: plan.family,
            rng: &mut Stream::new(seed, &format!("scenario-{number}")),
            streams: &mut Stream::new(seed, &format!("streams-{number}")),
        };
        let given = options.stack.as_ref();
        let kind = draw_of(
            options.kind(),
            given.map(|stack| &stack.config),
            &options.pins,
            options.wanted,
            draws,
        );
        let edges = &mut Stream::new(seed, &format!("scenario-odd-{number}"));
        let geometry = draw_shape(options, &*kind, draws, edges);
        let (name, timing) =
            given.map_or_else(|| draw_timing(draws.rng), |stack| stack.timing.clone());
        // A device takes commands of any size: what is larger than its buffer must enter it piece by piece.
        let link = LinkTiming { mdts_bytes: 0, ..timing.link };
        let timing = (name, DeviceTiming { link, ..timing });
        let config = kind.config(&geometry, draws);
        let faults = options.faults.unwrap_or_else(|| FaultRates {
            unreadable_one_in: faults::draw_unreadable(seed),
            ..faults::draw(plan.family, draws.rng)
        });
        let unreadable_one_in = options.unreadable.unwrap_or(faults.unreadable_one_in);
        let keeps_all = options.kind() != coupled::KIND;
        let unreadable_one_in = if keeps_all { unreadable_one_in } else { 0 };
        let drawn = Self {
            seed,
            refused,
            bad_chunks: geometry::bad_chunks(&geometry, draws.rng),
            slow_units: geometry::slow_units(&geometry, draws.rng),
            geometry,
            timing,
            config,
            run: FtlRun { seed, keep_content: true, omit: options.omit },
            faults: FaultRates { unreadable_one_in, ..faults },
            delays: options.delays.unwrap_or_else(|| faults::draw_delays(seed)),
            endurance_erases: None,
            plan,
        };
        let mut drawn =
            if options.edge_cases { drawn.with_edge_cases(&*kind, edges) } else { drawn };
        if options.background_cuts {
            drawn.plan = drawn.plan.with_background_cuts(seed);
        }
        drawn.plan.faulty = drawn.faults.any() || drawn.endurance_erases.is_some();
        drawn.plan.unreadable = drawn.faults.unreadable_one_in > 0;
        drawn
    }

    fn with_edge_cases(self, kind: &dyn KindDraw, rng: &mut Stream) -> Self {
        Self {
            config: kind.with_edge_cases(self.config, rng),
            bad_chunks: edge_cases::bad_chunks(self.bad_chunks, &self.geometry, rng),
            faults: edge_cases::faults(self.faults, rng),
            endurance_erases: edge_cases::endurance(rng),
            plan: Plan { load: edge_cases::load(self.plan.load, rng), ..self.plan },
            ..self
        }
    }
}

/// The shape of the device: a stack's on a small scale, or any.
fn draw_shape(
    options: &Options,
    kind: &dyn KindDraw,
    draws: &mut Draws<'_>,
    edges: &mut Stream,
) -> Geometry {
    let most = options.sectors_max;
    let shape = match &options.stack {
        Some(stack) => geometry::scaled(&stack.geometry, most, draws.refused, draws.rng),
        None => geometry::draw(draws.family, most, draws.rng),
    };
    let shape = if options.edge_cases { edge_cases::geometry(shape, most, edges) } else { shape };
    let shape = geometry::at_least(kind.fit(shape, most, draws), options.media_sectors_min);
    geometry::limited(shape, options.stack.is_none(), draws.streams)
}

impl Scenario {
    /// Everything that it holds, as keys and values.
    #[must_use]
    pub fn settings(&self) -> Settings {
        self.device_settings().and(self.plan.settings())
    }

    /// What it holds of the device.
    pub(crate) fn device_settings(&self) -> Settings {
        let media = shape(&self.geometry)
            .with("timing", self.timing.0.as_str())
            .with_some("endurance_erases", self.endurance_erases);
        let bad = self.bad_chunks.iter().map(|bad| vec![bad.unit.0, bad.chunk]);
        let slow = self.slow_units.iter().map(|(unit, percent)| vec![unit.0, *percent]);
        let media = media
            .with_some("bad_chunks", some(bad.collect::<Vec<_>>()))
            .with_some("slow_units", some(slow.collect::<Vec<_>>()));
        let faults = Settings::default()
            .with("program_one_in", self.faults.program_one_in)
            .with("erase_one_in", self.faults.erase_one_in)
            .with("unreadable_one_in", self.faults.unreadable_one_in);
        let delays = self.delays.any().then(|| {
            let Delays { usual_max_ns, stall_one_in, stall_max_ns } = self.delays;
            Settings::default()
                .with("usual_max_ns", usual_max_ns)
                .with("stall_one_in", stall_one_in)
                .with("stall_max_ns", stall_max_ns)
        });
        Settings::default()
            .with("seed", self.seed)
            .with("media", media)
            .with("ftl", describe(&self.config))
            .with_some("omit", self.run.omit.map(OmittedRule::name))
            .with("faults", faults)
            .with_some("delays", delays)
            .with("rejected_configs", self.refused.len() as u64)
            .with_some("last_rejection", self.refused.last().map(String::as_str))
    }
}

/// The shape of media, by the keys of stack files.
fn shape(geometry: &Geometry) -> Settings {
    Settings::default()
        .with("groups", geometry.groups)
        .with("units", geometry.units)
        .with("chunks", geometry.chunks)
        .with("sectors", geometry.sectors)
        .with("ws_min", geometry.ws_min)
        .with("ws_opt", geometry.ws_opt)
        .with("mw_cunits", geometry.mw_cunits)
        .with("maxoc", geometry.maxoc)
        .with("maxocpu", geometry.maxocpu)
}

/// A list, if it has values.
fn some<T>(list: Vec<T>) -> Option<Vec<T>> {
    Some(list).filter(|list| !list.is_empty())
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.settings())
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
