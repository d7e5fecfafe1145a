//! A load: what runs on a device in the measured phase, and what that brought.

use super::counts::Counts;
use super::course::{self, Totals};
use super::device::LabDevice;
use super::drive::RunEnd;
use super::error::RunError;
use super::observer::Observer;
use super::rounds::RoundsRun;
use super::sample::Sample;
use super::settled::{Ground, Stretch};
use super::silence::HangDetector;
use nandscape_rt::Nanos;
use nandscape_workload::engine::{Options, Results};
use nandscape_workload::trace::{Footprint, TraceCounts};
use nandscape_workload::wml::engine::Report;

/// Distance of the first points of a series.
pub(super) const INTERVAL: Nanos = Nanos::from_ms(1);
/// Points of a series at most.
pub(super) const POINTS_MAX: usize = 256;

/// What is said of a steady state that was not looked for.
pub(super) const NOT_JUDGED: &str = "steady state was not judged";

/// What runs on a device in the measured phase.
pub(super) trait Load {
    /// What is written to the device before the measured phase, untimed and in order.
    fn prefill(&self) -> &Footprint {
        const NOTHING: &Footprint = &Footprint::NOTHING;
        NOTHING
    }

    /// Runs it to its end on a device of which `ground` holds.
    fn measure<D: LabDevice>(
        self,
        device: &mut D,
        ground: &Ground,
        seed: u64,
        observer: &mut dyn Observer,
    ) -> Result<Measurement, RunError>;
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
    pub(super) silent: Option<HangDetector>,
    /// Whether the load writes at random.
    pub(super) random_writes: bool,
    pub(super) end: RunEnd,
    /// What a reader should know about it.
    pub(super) warnings: Vec<String>,
}

impl Measurement {
    /// The same, judged as a whole: `free` are the free sectors when it began and when it ended.
    pub(super) fn judged(self, ground: &Ground, free: (u64, u64)) -> Self {
        let sectors = self.counts.ftl.sectors;
        let steady = match self.end {
            RunEnd::Interrupted => Err("not steady: the run was interrupted".to_owned()),
            RunEnd::Finished => ground
                .check(&Stretch { written_before: 0, sectors, free })
                .and_then(|()| course::steady(&self.totals)),
        };
        Self { steady, ..self }
    }

    /// From what was measured behind `first`, where counters began.
    pub(super) fn new(
        results: Results<Sample>,
        first: Totals,
        counts: Counts,
        end: RunEnd,
    ) -> Self {
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
            silent: None,
            random_writes: false,
            end,
            warnings: Vec::new(),
        }
    }
}

/// What the engines need to know of a run with this seed.
pub(super) fn options(seed: u64) -> Options {
    Options { seed, interval: INTERVAL, points_max: POINTS_MAX, ..Options::default() }
}
