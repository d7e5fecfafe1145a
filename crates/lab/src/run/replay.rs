//! A trace as what runs on a stack.

use super::course::Totals;
use super::device::{self, LabDevice};
use super::drive::{RunningLoad, drive};
use super::error::RunError;
use super::files::Above;
use super::load::{Load, Measurement, NOT_JUDGED, options};
use super::observer::Observer;
use super::sample::{Sample, Sampler};
use super::settled::Ground;
use super::steps::run_load;
use super::{Outcome, RunOptions, prepare};
use crate::stack::Stack;
use nandscape_block::BlockDevice;
use nandscape_ftl::Ftl;
use nandscape_rt::Nanos;
use nandscape_workload::engine::RunState;
use nandscape_workload::fio::Direction;
use nandscape_workload::trace::{self, Footprint, How, Replay, ReplayError, TraceReader};

/// Events between two pauses.
const PAUSE_EVENTS: u64 = 1 << 16;

/// A trace and how it is to be replayed.
pub struct Trace {
    /// Where its requests come from.
    pub reader: TraceReader,
    /// Its length in bytes, as far as it is known; for the progress only.
    pub bytes: u64,
    /// How it is replayed.
    pub how: How,
    /// What is written to the device before that, untimed; empty: nothing.
    pub prefill: Footprint,
}

/// Replays `trace` on `stack` in this manner.
///
/// # Errors
/// A stack that does not fit, a trace that is malformed or does not fit, a state that cannot be used, or a run
/// that could not go on. Failures of single I/Os are part of the outcome.
pub fn replay(
    stack: &Stack,
    trace: Trace,
    seed: u64,
    manner: RunOptions<'_>,
    observer: &mut dyn Observer,
) -> Result<Outcome, RunError> {
    if stack.fs.is_some() {
        let why = "a trace is replayed on a block device, not on files: leave out [fs]";
        return Err(stack.error("fs", why).into());
    }
    run_load(stack, trace, Above::Nothing, seed, manner, observer)
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
    how: &How,
) -> Result<Footprint, RunError> {
    let ftl = device::format(stack, device::without_faults(prepare::fresh(stack, seed)?), seed)?;
    Ok(trace::check(reader, ftl.caps(), how)?)
}

impl Load for Trace {
    fn prefill(&self) -> &Footprint {
        &self.prefill
    }

    fn measure<D: LabDevice>(
        self,
        device: &mut D,
        _: &Ground,
        seed: u64,
        observer: &mut dyn Observer,
    ) -> Result<Measurement, RunError> {
        let mut replay = Replay::new(self.reader, device.caps(), self.how, &options(seed))?;
        replay.record(observer.recorder());
        device.begin_timeline(observer, std::iter::once((0, "trace")));
        let mut trace = TraceUnderWay { replay, bytes: self.bytes, sampler: Sampler::default() };
        let end = drive(&mut trace, device, observer)?;
        let (results, counts) = trace.replay.finish();
        let random_writes = results.jobs.iter().any(|job| job.direction(Direction::Write).ios > 0);
        let measured = Measurement::new(results, Totals::default(), device.counts(), end);
        let steady = Err(format!("{NOT_JUDGED}: a trace is as long as it is"));
        Ok(Measurement { trace: Some(counts), random_writes, steady, ..measured })
    }
}

/// A replay that has begun.
struct TraceUnderWay {
    replay: Replay<Sample>,
    /// Of the whole trace, as far as it is known.
    bytes: u64,
    sampler: Sampler,
}

impl<D: LabDevice> RunningLoad<D> for TraceUnderWay {
    fn go_on(&mut self, device: &mut D) -> Result<RunState, RunError> {
        Ok(self.replay.run_for(device, &mut self.sampler, PAUSE_EVENTS)?)
    }

    fn now(&self, device: &D) -> Nanos {
        device.look(Ftl::now)
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
