//! Loads: what runs on a rig in the measured phase, and what is measured of it.
//!
//! A load runs for a while, its observer is informed, and it runs again. Pausing changes no result: whatever happens
//! at an instant happens then.

mod jobs;
mod replay;
mod steady;
mod wml;

pub(super) use jobs::{Jobs, buffered, run_as};
pub use replay::{Trace, check_trace};
pub(super) use steady::SteadyJobs;
pub use steady::{Round, RoundsRun, UntilSteady, WINDOW_ROUNDS};
pub(super) use wml::{Flowops, setup};

use super::counts::{Counts, Sample};
use super::criterion::{self, Ground, Stretch};
use super::device::HintedDevice;
use super::error::RunError;
use super::observer::{Observer, Phase};
use super::rig::{MountedRig, Rig};
use super::series::Totals;
use crate::timeline::Timeline;
use nandscape_rt::Nanos;
use nandscape_rt::counts::Counts as _;
use nandscape_workload::Direction;
use nandscape_workload::engine::{Options, Probe, Results, RunState};
use nandscape_workload::replay::TraceCounts;
use nandscape_workload::trace::Footprint;
use nandscape_workload::wml::engine::Report;
use wml::HangDetector;

/// Distance of the first points of a series.
const INTERVAL: Nanos = Nanos::from_ms(1);
/// Points of a series at most.
const POINTS_MAX: usize = 256;

/// What is reported of a steady state that was not looked for.
pub(super) const NOT_JUDGED: &str = "steady state was not judged";

/// What runs on a rig in the measured phase.
pub(super) trait Load {
    /// What is written to the device before the measured phase, untimed and in order.
    fn prefill(&self) -> &Footprint {
        const NOTHING: &Footprint = &Footprint::NOTHING;
        NOTHING
    }

    /// Runs it to its end on a device of which `ground` holds.
    fn measure(
        self,
        rig: &mut Rig,
        ground: &Ground,
        seed: u64,
        observer: &mut dyn Observer,
    ) -> Result<Measurement, RunError>;
}

/// A load that has begun.
trait RunningLoad {
    /// Runs for a while, or to the end.
    fn step(&mut self, rig: &mut Rig) -> Result<RunState, RunError>;

    /// Until when everything has happened.
    fn now(&self, rig: &Rig) -> Nanos;

    /// The fraction that is done, about.
    fn fraction(&self) -> f64;

    /// Writes what the load itself did since the last pause; `None`: no timeline is being written.
    fn write_timeline(&mut self, _: Option<&mut Timeline>) {}
}

/// How a load ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RunEnd {
    /// Where it was to end.
    Finished,
    /// Before that, because the observer interrupted it.
    Interrupted,
}

/// Drives `load` to its end, or until the observer interrupts it.
fn drive(
    load: &mut impl RunningLoad,
    rig: &mut Rig,
    observer: &mut dyn Observer,
) -> Result<RunEnd, RunError> {
    loop {
        let state = load.step(rig)?;
        load.write_timeline(observer.timeline().filter(|_| rig.is_logged()));
        rig.sample_timeline(observer, load.now(rig));
        observer.progress(Phase::Measure, load.fraction());
        match state {
            RunState::Finished => return Ok(RunEnd::Finished),
            RunState::Paused if observer.is_interrupted() => return Ok(RunEnd::Interrupted),
            RunState::Paused => {}
        }
    }
}

/// Samples for the series.
#[derive(Default)]
struct Sampler {
    /// What was counted before the counters were last reset.
    before: Sample,
}

impl Probe<HintedDevice> for Sampler {
    type Sample = Sample;

    fn sample(&mut self, device: &HintedDevice, _: Nanos) -> Sample {
        self.before.plus(&Sample::of(&device.ftl, None))
    }
}

impl Probe<MountedRig> for Sampler {
    type Sample = Sample;

    fn sample(&mut self, rig: &MountedRig, _: Nanos) -> Sample {
        self.before.plus(&rig.sample())
    }
}

/// What the measured phase brought.
pub(super) struct Measurement {
    pub(super) results: Results<Sample>,
    /// Totals over time, behind every job's ramp.
    pub(super) totals: Vec<Totals>,
    pub(super) length: Nanos,
    pub(super) counts: Counts,
    /// Whether the course was steady, or what was not.
    pub(super) steady: Result<(), String>,
    /// How many rounds that took, if it was asked for.
    pub(super) rounds: Option<RoundsRun>,
    /// How a trace was treated, if one was replayed.
    pub(super) trace: Option<TraceCounts>,
    /// What flowops did, if a workload of them ran.
    pub(super) flowops: Option<Report>,
    /// Its threads, if they may hang.
    pub(super) hang: Option<HangDetector>,
    /// Whether the load writes at random.
    pub(super) random_writes: bool,
    /// Bytes of each write, if all are as large, and independent and anywhere on the device with the same probability.
    pub(super) uniform_bytes: Option<u64>,
    pub(super) end: RunEnd,
    /// What a reader should know about it.
    pub(super) warnings: Vec<String>,
}

/// Bytes that an application transferred.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(in crate::run) struct AppBytes {
    pub(in crate::run) read: u64,
    pub(in crate::run) written: u64,
}

impl AppBytes {
    /// Of jobs, of a trace, or of flowops.
    pub(in crate::run) fn of<S>(results: &Results<S>, flowops: Option<&Report>) -> Self {
        match flowops.map(Report::sums) {
            Some(sums) => Self { read: sums.read_bytes, written: sums.written_bytes },
            None => {
                let sum = |direction: Direction| {
                    results.jobs.iter().map(|job| job.direction(direction).bytes).sum()
                };
                Self { read: sum(Direction::Read), written: sum(Direction::Write) }
            }
        }
    }
}

impl Measurement {
    /// What the application transferred.
    pub(super) fn bytes(&self) -> AppBytes {
        AppBytes::of(&self.results, self.flowops.as_ref())
    }

    /// From what was measured behind `first`, where counters began.
    fn new(results: Results<Sample>, first: Totals, counts: Counts, end: RunEnd) -> Self {
        let length = results.ended.saturating_sub(first.at);
        let points = results.series.points.iter().filter(|point| point.at > first.at);
        let points: Vec<Totals> = points.map(Totals::from).collect();
        let totals = [vec![first], points].concat();
        Self {
            steady: Err(NOT_JUDGED.to_owned()),
            totals,
            length,
            results,
            counts,
            rounds: None,
            trace: None,
            flowops: None,
            hang: None,
            random_writes: false,
            uniform_bytes: None,
            end,
            warnings: Vec::new(),
        }
    }

    /// The same, judged as a whole: `free` are the free sectors when it began and when it ended.
    fn judged(self, ground: &Ground, free: (u64, u64)) -> Self {
        let (sectors, requests) = (self.counts.ftl.sectors, self.counts.queue.requests);
        let steady = match self.end {
            RunEnd::Interrupted => Err("not at steady state: the run was interrupted".to_owned()),
            RunEnd::Finished => ground
                .check(&Stretch { written_before: 0, sectors, free, requests })
                .and_then(|()| criterion::steady(&self.totals)),
        };
        Self { steady, ..self }
    }
}

/// What the engines need to know of a run with this seed.
fn options(seed: u64) -> Options {
    Options { seed, interval: INTERVAL, points_max: POINTS_MAX, ..Options::default() }
}
