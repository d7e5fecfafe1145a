//! What a seed chooses that does not depend on the device: the load, the cuts, and how the device
//! is looked at afterwards.
//!
//! Families lean the draw towards what goes wrong rarely: lines that die while their successors still sit
//! in RAM, maybe in the buffer of a stream that has fallen silent, commits over unfinished writes, trims
//! right before a cut, failing programs.

use crate::draw::family::ScenarioFamily;
use crate::draw::load::{Load, Mix};
use crate::draw::sample::{log_uniform, pick};
use crate::draw::streams::Streams;
use crate::settings::Settings;
use crate::shrink::reduction::{Cut, Round};
use nandscape_rt::{Nanos, Stream};

/// What a media command does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CommandKind {
    /// Programs sectors.
    Write,
    /// Reads sectors.
    Read,
    /// Erases a chunk.
    Reset,
}

/// What sets off a power cut; numbers count from the beginning of the round, from 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trigger {
    /// An instant.
    Instant(Nanos),
    /// The n-th request is submitted.
    Request(u64),
    /// The n-th flush, or write with FUA or PREFLUSH, is submitted.
    BarrierSubmitted(u64),
    /// The n-th flush, or write with FUA or PREFLUSH, is acknowledged.
    BarrierAcked(u64),
    /// The n-th write with FUA but without PREFLUSH is acknowledged: so a journal moves its tail. Only
    /// campaigns on file systems wait for it.
    TailMoved(u64),
    /// The n-th media command of a kind is submitted.
    Command(CommandKind, u64),
    /// The device has written for itself, for the n-th time: copies of garbage collection, mapping blocks, a log. Only
    /// campaigns on devices wait for it.
    BackgroundWrite(u64),
    /// Right behind the n-th media command.
    OffAfter(u64),
    /// The last request of the load is submitted. No seed draws this; reduced runs have it.
    LastRequest,
    /// Right behind the n-th media command from the submission of the last request on. Like the former.
    OffAfterLastRequest(u64),
}

impl Trigger {
    /// Whether power goes off between two media commands.
    pub(crate) const fn is_off(self) -> bool {
        matches!(self, Self::OffAfter(_) | Self::OffAfterLastRequest(_))
    }
}

/// One round's cut.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CutPlan {
    /// What sets it off.
    pub trigger: Trigger,
    /// From the trigger, or from the end of the load, to the cut.
    pub delay: Nanos,
    /// The recovery, and its repetitions, are cut after so many media commands each.
    pub recovery_cuts: Vec<u64>,
}

impl CutPlan {
    /// What is left of it in a reduced round; none without a power cut.
    pub(crate) fn reduced(&self, round: &Round) -> Option<Self> {
        let recovery_cuts = (1..).zip(&self.recovery_cuts);
        let recovery_cuts = recovery_cuts.filter(|(number, _)| round.recovery.has(*number));
        let (trigger, delay) = match round.cut {
            Cut::Drawn => (self.trigger, self.delay),
            Cut::None => return None,
            Cut::After(delay) => (Trigger::LastRequest, delay),
            Cut::AfterCommands(count) => (Trigger::OffAfterLastRequest(count), self.delay),
        };
        let recovery_cuts = recovery_cuts.map(|(_, after)| *after).collect();
        Some(Self { trigger, delay, recovery_cuts })
    }

    fn settings(&self) -> Settings {
        let cut = Settings::default();
        let cut = match self.trigger {
            Trigger::Instant(after) => cut.with("after_ns", after),
            Trigger::Request(n) => cut.with("at_request", n),
            Trigger::BarrierSubmitted(n) => cut.with("at_barrier", n),
            Trigger::BarrierAcked(n) => cut.with("at_completed_barrier", n),
            Trigger::TailMoved(n) => cut.with("at_completed_fua", n),
            Trigger::Command(CommandKind::Write, n) => cut.with("at_media_write", n),
            Trigger::Command(CommandKind::Read, n) => cut.with("at_media_read", n),
            Trigger::Command(CommandKind::Reset, n) => cut.with("at_media_reset", n),
            Trigger::BackgroundWrite(n) => cut.with("at_background_write", n),
            Trigger::OffAfter(n) => cut.with("after_media_commands", n),
            Trigger::LastRequest => cut.with("at_last_request", true),
            Trigger::OffAfterLastRequest(n) => cut.with("after_media_commands_of_last_request", n),
        };
        let again = Some(self.recovery_cuts.clone()).filter(|cuts| !cuts.is_empty());
        cut.with("delay_ns", self.delay).with_some("recovery_after_media_commands", again)
    }
}

/// Everything chosen that does not depend on the device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// What it leans towards.
    pub family: ScenarioFamily,
    /// The load of each round.
    pub load: Load,
    /// One cut a round.
    pub cuts: Vec<CutPlan>,
    /// Share of the device read after each recovery; what is not read is settled later.
    pub scan_percent: u32,
    /// Whether failed requests are no violation, because faults are injected.
    pub faulty: bool,
    /// Whether media lose sectors. Each is looked at alone then, so that none hides its neighbours.
    pub unreadable: bool,
}

impl Plan {
    /// The plan of a seed: of this `family`, with `rounds` cuts (both drawn when `None`), at `intensity_percent` of the usual
    /// number of requests.
    #[must_use]
    pub fn draw(
        seed: u64,
        family: Option<ScenarioFamily>,
        rounds: Option<u32>,
        intensity_percent: u32,
    ) -> Self {
        let rng = &mut Stream::new(seed, "plan");
        let drawn = ScenarioFamily::ALL[pick(rng, &[4, 3, 2, 3, 2, 3])];
        let family = family.unwrap_or(drawn);
        let mut load = draw_load(family, intensity_percent, rng);
        load.streams = Streams::draw(family, load.ops, &mut Stream::new(seed, "streams"));
        let rounds = rounds.unwrap_or_else(|| match family {
            ScenarioFamily::Overwrite => 4 + rng.below(7) as u32,
            _ => 2 + rng.below(4) as u32,
        });
        let cuts = (0..rounds).map(|_| draw_cut(family, load.ops, rng)).collect();
        let scan_percent = if rng.chance(0.75) { 100 } else { 1 + rng.below(60) as u32 };
        Self { family, load, cuts, scan_percent, faulty: false, unreadable: false }
    }

    /// The same with most cuts in what the device writes for itself, or shortly after that.
    pub(crate) fn with_background_cuts(self, seed: u64) -> Self {
        let rng = &mut Stream::new(seed, "background-cuts");
        let cut = |cut: CutPlan| {
            let trigger = Trigger::BackgroundWrite(log_uniform(rng, 256));
            let delay =
                if rng.chance(0.5) { Nanos::ZERO } else { Nanos(log_uniform(rng, 1 << 22)) };
            if rng.chance(0.8) { CutPlan { trigger, delay, ..cut } } else { cut }
        };
        Self { cuts: self.cuts.into_iter().map(cut).collect(), ..self }
    }
}

impl Plan {
    /// All of it but what follows from the faults, as keys and values.
    #[must_use]
    pub fn settings(&self) -> Settings {
        let cuts: Vec<Settings> = self.cuts.iter().map(CutPlan::settings).collect();
        Settings::default()
            .with("family", self.family.name())
            .with("load", self.load.settings())
            .with("scan_percent", self.scan_percent)
            .with("cuts", cuts)
    }
}

fn mix_of(family: ScenarioFamily, rng: &mut Stream) -> Mix {
    // Without barriers the ring holds its fill of successors.
    let quiet = rng.chance(0.6);
    let mut upto = |n: u64| rng.below(n + 1) as u32;
    match family {
        ScenarioFamily::Mixed => Mix {
            read: upto(30),
            write: 10 + upto(90),
            fua: upto(8),
            preflush: upto(8),
            preflush_fua: upto(8),
            flush: upto(8),
            discard: upto(15),
        },
        ScenarioFamily::Overwrite if quiet => Mix { write: 100, ..Mix::default() },
        ScenarioFamily::Overwrite | ScenarioFamily::Failures => Mix {
            read: upto(10),
            write: 100,
            fua: upto(2),
            flush: upto(2),
            discard: upto(3),
            ..Mix::default()
        },
        ScenarioFamily::Journal => {
            Mix { read: upto(5), write: 100, discard: upto(5), ..Mix::default() }
        }
        ScenarioFamily::Barriers => Mix {
            read: upto(5),
            write: 100,
            fua: upto(20),
            preflush: upto(20),
            preflush_fua: 5 + upto(30),
            flush: upto(10),
            ..Mix::default()
        },
        ScenarioFamily::Trims => Mix {
            read: upto(10),
            write: 60,
            fua: upto(3),
            preflush: upto(3),
            preflush_fua: upto(3),
            flush: 5 + upto(15),
            discard: 20 + upto(40),
        },
    }
}

fn draw_load(family: ScenarioFamily, intensity_percent: u32, rng: &mut Stream) -> Load {
    let small_span = matches!(family, ScenarioFamily::Overwrite | ScenarioFamily::Failures);
    let mix = mix_of(family, rng);
    let ops = 100 + log_uniform(rng, 1_500) as u32;
    Load {
        depth: log_uniform(rng, 16) as u32,
        ops: (u64::from(ops) * u64::from(intensity_percent) / 100).clamp(1, 1 << 20) as u32,
        mix,
        sectors_max: log_uniform(rng, 32) as u32,
        discard_sectors_max: log_uniform(rng, 512) as u32,
        span_percent: if small_span && rng.chance(0.3) {
            1 + rng.below(20) as u32
        } else {
            20 + rng.below(81) as u32
        },
        hot_span_percent: if rng.chance(0.6) { 1 + rng.below(30) as u32 } else { 0 },
        hot_percent: 50 + rng.below(50) as u32,
        think_ns: if rng.chance(0.4) { log_uniform(rng, 1 << 20) } else { 0 },
        burst_ops: if rng.chance(0.3) { 1 + rng.below(200) as u32 } else { 0 },
        idle_ns: log_uniform(rng, 1 << 26),
        commit_ops: if family == ScenarioFamily::Journal { log_uniform(rng, 64) as u32 } else { 0 },
        fill_percent: match (small_span, rng.chance(0.7)) {
            (true, true) => 100 + rng.below(150) as u32,
            (_, full) => {
                if full {
                    60 + rng.below(41) as u32
                } else {
                    0
                }
            }
        },
        streams: Streams::default(),
    }
}

/// One round's cut, in a load of about so many requests.
pub(crate) fn draw_cut(family: ScenarioFamily, ops: u32, rng: &mut Stream) -> CutPlan {
    let ops = u64::from(ops);
    let weights: [u64; 6] = match family {
        ScenarioFamily::Mixed => [2, 3, 1, 2, 3, 2],
        ScenarioFamily::Overwrite => [2, 3, 0, 1, 6, 3],
        ScenarioFamily::Journal | ScenarioFamily::Barriers => [1, 1, 3, 6, 2, 2],
        ScenarioFamily::Trims => [1, 1, 1, 6, 2, 1],
        ScenarioFamily::Failures => [2, 3, 1, 3, 4, 3],
    };
    let trigger = match pick(rng, &weights) {
        0 => Trigger::Instant(Nanos(log_uniform(rng, 1 << 30))),
        1 => Trigger::Request(1 + rng.below(ops)),
        2 => Trigger::BarrierSubmitted(log_uniform(rng, ops / 4)),
        3 => Trigger::BarrierAcked(log_uniform(rng, ops / 4)),
        4 => {
            let kinds = [CommandKind::Write, CommandKind::Read, CommandKind::Reset];
            let kind = kinds[pick(rng, &[2, 1, 3])];
            Trigger::Command(kind, log_uniform(rng, 128))
        }
        _ => Trigger::OffAfter(log_uniform(rng, 2 * ops)),
    };
    let delay = if rng.chance(0.4) { Nanos::ZERO } else { Nanos(log_uniform(rng, 1 << 22)) };
    CutPlan { trigger, delay, recovery_cuts: draw_recovery_cuts(rng) }
}

fn draw_recovery_cuts(rng: &mut Stream) -> Vec<u64> {
    let mut cuts = Vec::new();
    while cuts.len() < 4 && rng.chance(0.35) {
        cuts.push(log_uniform(rng, 2_048));
    }
    cuts
}
