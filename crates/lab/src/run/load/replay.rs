//! A trace: its replay on a rig.

use super::{Load, Measurement, NOT_JUDGED, RunningLoad, Sampler, drive, options};
use crate::run::counts::Sample;
use crate::run::criterion::Ground;
use crate::run::error::RunError;
use crate::run::observer::Observer;
use crate::run::rig::Rig;
use crate::run::series::Totals;
use crate::run::{device, prepare};
use crate::stack::Stack;
use nandscape_block::BlockDevice;
use nandscape_ftl::Ftl;
use nandscape_rt::Nanos;
use nandscape_workload::Direction;
use nandscape_workload::engine::RunState;
use nandscape_workload::replay::{self, Replay, ReplayError, ReplayOptions};
use nandscape_workload::trace::{Footprint, TraceReader};

/// Events between two pauses, and while a timeline is written, which has levels at each.
const PAUSE_EVENTS: u64 = 1 << 16;
const LOGGED_EVENTS: u64 = 1 << 6;

/// A trace and how it is to be replayed.
pub struct Trace {
    /// Where its requests come from.
    pub reader: TraceReader,
    /// Its length in bytes, as far as it is known; for the progress only.
    pub bytes: u64,
    /// How it is replayed.
    pub how: ReplayOptions,
    /// What is written to the device before that, untimed; empty: nothing.
    pub prefill: Footprint,
}

/// Whether all that is to be issued of a trace fits the device of `stack`, before anything is written to
/// one; and the sectors that it reads or writes there.
///
/// # Errors
/// A stack that cannot be built, or the first request that does not fit.
pub fn check_trace(
    stack: &Stack,
    seed: u64,
    reader: &mut TraceReader,
    how: &ReplayOptions,
) -> Result<Footprint, RunError> {
    let ftl = device::format(stack, device::without_faults(prepare::fresh(stack, seed)?), seed)?;
    Ok(replay::check(reader, ftl.caps(), how)?)
}

impl Load for Trace {
    fn prefill(&self) -> &Footprint {
        &self.prefill
    }

    fn measure(
        self,
        rig: &mut Rig,
        _: &Ground,
        seed: u64,
        observer: &mut dyn Observer,
    ) -> Result<Measurement, RunError> {
        let mut replay = Replay::new(self.reader, rig.caps(), self.how, &options(seed))?;
        replay.record(observer.recorder());
        rig.begin_timeline(observer, std::iter::once((0, "trace")));
        let mut trace = RunningReplay { replay, bytes: self.bytes, sampler: Sampler::default() };
        let end = drive(&mut trace, rig, observer)?;
        let (results, counts) = trace.replay.finish();
        let random_writes = results.jobs.iter().any(|job| job.direction(Direction::Write).ios > 0);
        let measured = Measurement::new(results, Totals::default(), rig.counts(), end);
        let steady = Err(format!("{NOT_JUDGED}: a trace is as long as it is"));
        Ok(Measurement { trace: Some(counts), random_writes, steady, ..measured })
    }
}

/// A replay that has begun.
struct RunningReplay {
    replay: Replay<Sample>,
    /// Of the whole trace, as far as it is known.
    bytes: u64,
    sampler: Sampler,
}

impl RunningLoad for RunningReplay {
    fn step(&mut self, rig: &mut Rig) -> Result<RunState, RunError> {
        let events = if rig.is_logged() { LOGGED_EVENTS } else { PAUSE_EVENTS };
        let (replay, sampler) = (&mut self.replay, &mut self.sampler);
        Ok(match rig {
            Rig::Device(device) => replay.run_for(device, sampler, events)?,
            Rig::Mounted(mounted) => replay.run_for(&mut **mounted, sampler, events)?,
        })
    }

    fn now(&self, rig: &Rig) -> Nanos {
        rig.look(Ftl::now)
    }

    fn fraction(&self) -> f64 {
        self.replay.read().bytes as f64 / self.bytes.max(1) as f64
    }
}

impl From<ReplayError> for RunError {
    fn from(error: ReplayError) -> Self {
        match error {
            ReplayError::Trace(error) => Self::Trace(error),
            other => Self::Failed(other.to_string()),
        }
    }
}
