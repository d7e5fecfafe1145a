//! A job file of fio's as what runs on a stack: to its end, or in rounds until it is steady.

use super::course::Totals;
use super::device::LabDevice;
use super::drive::drive;
use super::engine::{JobsUnderWay, first_ramp, writes_at_random};
use super::error::RunError;
use super::files::{Above, Contents, Layout, buffered, run_as};
use super::load::{Load, Measurement};
use super::observer::Observer;
use super::rounds::UntilSteady;
use super::sample::Sample;
use super::settled::Ground;
use super::steps::run_load;
use super::{Outcome, RunOptions, steady};
use crate::stack::Stack;
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
    manner: RunOptions<'_>,
    observer: &mut dyn Observer,
) -> Result<Outcome, RunError> {
    let above = match (&stack.fs, buffered(stack, job)?) {
        (Some(_), _) => Above::FileSystem(Contents::Jobs(Layout::new(job, seed)?)),
        (None, Some(direct)) => Above::PageCache(direct),
        (None, None) => Above::Nothing,
    };
    let (file, warnings) = run_as(stack, job);
    let jobs = Jobs { file: &file, until_steady: manner.until_steady, warnings };
    run_load(stack, jobs, above, seed, manner, observer)
}

/// A job file, and whether it is to go on until it is steady.
struct Jobs<'a> {
    file: &'a JobFile,
    until_steady: Option<UntilSteady>,
    /// What is different from what the file asks for.
    warnings: Vec<String>,
}

impl Load for Jobs<'_> {
    fn measure<D: LabDevice>(
        self,
        device: &mut D,
        ground: &Ground,
        seed: u64,
        observer: &mut dyn Observer,
    ) -> Result<Measurement, RunError> {
        let mut measured = match self.until_steady {
            None => measure_whole(self.file, device, ground, seed, observer)?,
            Some(until) => steady::measure(self.file, until, (device, ground), seed, observer)?,
        };
        measured.warnings.extend(self.warnings);
        Ok(measured)
    }
}

fn measure_whole<D: LabDevice>(
    file: &JobFile,
    device: &mut D,
    ground: &Ground,
    seed: u64,
    observer: &mut dyn Observer,
) -> Result<Measurement, RunError> {
    let mut jobs = JobsUnderWay::new(file, device, seed, observer)?;
    let ramp = first_ramp(file);
    let mut first = Totals::default();
    if ramp > Nanos::ZERO {
        jobs.until = ramp;
        // Who ends a run in its ramp gets the figures of one pause more.
        drive(&mut jobs, device, observer)?;
        first = jobs.totals(Sample::default());
        device.reset_counts();
        jobs.until = Nanos::MAX;
    }
    let free = device.free_sectors();
    let end = drive(&mut jobs, device, observer)?;
    let measured = Measurement::new(jobs.engine.finish(), first, device.counts(), end);
    let measured = measured.judged(ground, (free, device.free_sectors()));
    Ok(Measurement { random_writes: writes_at_random(file), ..measured })
}
