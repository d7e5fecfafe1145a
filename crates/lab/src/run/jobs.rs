//! A job file of fio's as what runs on a stack: to its end, or in rounds until it is steady.

use super::course::Totals;
use super::device::LabDevice;
use super::drive::drive;
use super::engine::{JobsUnderWay, first_ramp, writes_at_random};
use super::error::RunError;
use super::files::{Contents, Layout};
use super::load::{Load, Measured};
use super::observer::Observer;
use super::rounds::UntilSteady;
use super::settled::Ground;
use super::steps::run_load;
use super::{Manner, Outcome, steady};
use crate::stack::Stack;
use nandscape_ftl::SectorCounts;
use nandscape_rt::Nanos;
use nandscape_workload::fio::JobFile;

/// Runs `job` on `stack` in this manner.
///
/// # Errors
/// A stack or job that does not fit, a state that cannot be used, or a run that could not go on. Failures of
/// single I/Os are part of the outcome.
pub fn run(
    stack: &Stack,
    job: &JobFile,
    seed: u64,
    manner: Manner<'_>,
    observer: &mut dyn Observer,
) -> Result<Outcome, RunError> {
    let layout = stack.fs.as_ref().map(|_| Layout::new(job, seed)).transpose()?;
    let contents = layout.map(Contents::Jobs);
    let jobs = Jobs { file: job, until_steady: manner.until_steady };
    run_load(stack, jobs, contents, seed, manner, observer)
}

/// A job file, and whether it is to go on until it is steady.
struct Jobs<'a> {
    file: &'a JobFile,
    until_steady: Option<UntilSteady>,
}

impl Load for Jobs<'_> {
    fn measure<D: LabDevice>(
        self,
        device: &mut D,
        ground: &Ground,
        seed: u64,
        observer: &mut dyn Observer,
    ) -> Result<Measured, RunError> {
        match self.until_steady {
            None => measure_whole(self.file, device, ground, seed, observer),
            Some(until) => steady::measure(self.file, until, (device, ground), seed, observer),
        }
    }
}

fn measure_whole<D: LabDevice>(
    file: &JobFile,
    device: &mut D,
    ground: &Ground,
    seed: u64,
    observer: &mut dyn Observer,
) -> Result<Measured, RunError> {
    let mut jobs = JobsUnderWay::new(file, device, seed, observer)?;
    let ramp = first_ramp(file);
    let mut first = Totals::default();
    if ramp > Nanos::ZERO {
        jobs.until = ramp;
        // Who ends a run in its ramp gets the figures of one pause more.
        drive(&mut jobs, device, observer)?;
        first = jobs.totals(SectorCounts::default());
        device.reset_counts();
        jobs.until = Nanos::MAX;
    }
    let free = device.free_sectors();
    let end = drive(&mut jobs, device, observer)?;
    let measured = Measured::new(jobs.engine.finish(), first, device.counts(), end);
    let measured = measured.judged(ground, (free, device.free_sectors()));
    Ok(Measured { random_writes: writes_at_random(file), ..measured })
}
