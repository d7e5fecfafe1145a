//! A trace as what runs on a stack.

use super::course::Totals;
use super::device::{self, LabDevice};
use super::prepare;
use super::{Load, Measured, Observer, Phase, RunError, Sampler, options};
use crate::stack::Stack;
use nandscape_block::BlockDevice;
use nandscape_ftl::Pblk;
use nandscape_workload::engine::RunState;
use nandscape_workload::fio::Direction;
use nandscape_workload::trace::{self, How, Replay, ReplayError, TraceCounts, TraceReader};

/// Events between two progress reports.
const REPORT_EVENTS: u64 = 1 << 16;

/// A trace and how it is to be replayed.
#[derive(Debug)]
pub struct Trace {
    /// Where its requests come from.
    pub reader: TraceReader,
    /// Its length in bytes, as far as it is known; for the progress only.
    pub bytes: u64,
    /// How it is replayed.
    pub how: How,
}

/// Whether a trace that is not to be folded fits the device of `stack`, before anything is written to
/// one.
///
/// # Errors
/// A stack that cannot be built, or the first request that does not fit.
pub fn check_trace(stack: &Stack, seed: u64, reader: &mut TraceReader) -> Result<(), RunError> {
    let ftl = device::format(stack, device::sound(prepare::fresh(stack, seed)?), seed)?;
    Ok(trace::check(reader, ftl.caps())?)
}

impl Load for Trace {
    fn measure<D: LabDevice>(
        self,
        device: &mut D,
        seed: u64,
        observer: &mut dyn Observer,
    ) -> Result<Measured, RunError> {
        let bytes = self.bytes.max(1) as f64;
        let mut sampler = Sampler::default();
        let mut replay = Replay::new(self.reader, device.caps(), self.how, &options(seed))?;
        replay.record(observer.recorder());
        device.begin_timeline(observer, std::iter::once((0, "trace")));
        let mut interrupted = false;
        while !interrupted
            && replay.run_for(device, &mut sampler, REPORT_EVENTS)? == RunState::Paused
        {
            let now = device.look(Pblk::now);
            device.attend_timeline(observer, now);
            observer.progress(Phase::Measure, replay.read().bytes as f64 / bytes);
            interrupted = observer.is_interrupted();
        }
        let (results, counts) = replay.finish();
        let random_writes = results.jobs.iter().any(|job| job.direction(Direction::Write).ios > 0);
        let measured = Measured::new(results, Totals::default(), device.counts());
        Ok(Measured { trace: Some(counts), random_writes, interrupted, ..measured })
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

/// What a reader should know about how the trace was treated.
pub(super) fn warnings(counts: &TraceCounts) -> Vec<String> {
    let spaces = counts.devices.saturating_sub(1);
    let told = [
        (counts.read.bad_lines, "malformed lines of the trace were skipped"),
        (counts.read.disordered, "requests of the trace were out of order; they ran in file order"),
        (counts.fit.folded, "requests lay beyond the device and were folded onto it"),
        (
            counts.late,
            "requests were issued late, because the device was full; their latency counts \
          from when they were due",
        ),
        (spaces, "further devices in the trace share the address space of the first"),
    ];
    let told = told.into_iter().filter(|(count, _)| *count > 0);
    told.map(|(count, what)| format!("{count} {what}")).collect()
}
