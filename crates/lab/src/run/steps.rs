//! The steps of a run, whatever its load: the device is made ready, the load is measured on it, what was
//! counted is put together, and the device is left.

use super::Manner;
use super::device::{self, Flash, Hinted, LabDevice};
use super::error::RunError;
use super::files::{Contents, Files};
use super::load::{Load, Measured};
use super::observer::{Observer, go_on};
use super::outcome::{DeviceSize, EraseCounts, Outcome, WallTime, line_valid};
use super::prepare::{self, Before, Prepared, prepare};
use super::{course, leave, remarks};
use crate::stack::Stack;
use nandscape_block::BlockError;
use nandscape_ftl::Pblk;
use nandscape_media::{ChunkState, Layer};
use nandscape_workload::engine::{FailureKind, Results};

pub(super) fn run_load(
    stack: &Stack,
    load: impl Load,
    contents: Option<Contents>,
    seed: u64,
    manner: Manner<'_>,
    observer: &mut dyn Observer,
) -> Result<Outcome, RunError> {
    let began_s = observer.wall_s();
    let Prepared { media, by: before, file, warnings } =
        prepare(stack, seed, manner.states, manner.program, observer)?;
    let Manner { program, .. } = manner;
    let course = Course { stack, load, contents, seed, program, before, file, warnings, began_s };
    let fault_seed = if before.is_some() { prepare::fault_seed(seed) } else { seed };
    course.run_on(device::flash(stack, media, fault_seed), observer)
}

/// A run whose media are ready.
struct Course<'a, L> {
    stack: &'a Stack,
    load: L,
    /// What the file system holds, if there is one.
    contents: Option<Contents>,
    seed: u64,
    program: &'a str,
    /// How the media were preconditioned; `None`: they are fresh.
    before: Option<Before>,
    /// The file that they come from.
    file: Option<String>,
    warnings: Vec<String>,
    began_s: f64,
}

impl<L: Load> Course<'_, L> {
    fn run_on(mut self, media: Flash, observer: &mut dyn Observer) -> Result<Outcome, RunError> {
        let (stack, seed) = (self.stack, self.seed);
        let fresh = self.before.is_none();
        let ftl = match self.before {
            None => device::format(stack, media, seed)?,
            Some(_) => prepare::mount(stack, media, seed, self.file.as_deref())?,
        };
        let device = Hinted::new(ftl, &stack.hints);
        match (&stack.fs, self.contents.take()) {
            (Some(fs), Some(contents)) => {
                let file = self.file.as_deref();
                let files = Files::lay_out(stack, fs, contents, (device, fresh), file, seed)?;
                self.measure_on(files, observer)
            }
            _ => self.measure_on(device, observer),
        }
    }

    fn measure_on<D: LabDevice>(
        self,
        mut device: D,
        observer: &mut dyn Observer,
    ) -> Result<Outcome, RunError> {
        let Self { stack, load, seed, program, before, warnings, began_s, .. } = self;
        let name = observer.left().map(|_| leave::name(stack, seed, before, &load));
        device.with(|ftl, _| {
            ftl.media_mut().inner_mut().set_timing(stack.media.timing.timing);
            ftl.charge_cpu(stack.ftl.cpu);
        });
        device.reset_counts();
        go_on(observer)?;
        let ready_s = observer.wall_s();
        let measured = load.measure(&mut device, seed, observer);
        device.end_timeline(observer);
        let mut measured = measured?;
        if hit_memory_cap(&measured.results) {
            return Err(RunError::memory_cap(stack));
        }
        measured.warnings.extend(warnings);
        let wall =
            WallTime { precondition_s: ready_s - began_s, measured_s: observer.wall_s() - ready_s };
        let silent = measured.silent.take();
        let mut outcome = device.look(|ftl| conclude(stack, seed, ftl, before, measured, wall));
        if let Some(why) = silent.and_then(|silent| silent.hung(&mut device)) {
            outcome.flowops.iter_mut().for_each(|report| report.fail(&why));
        }
        let closed =
            device.close().map_err(|error| format!("the file system was not unmounted: {error}"));
        outcome.warnings.extend(closed.as_ref().err().cloned());
        // What is left in the midst of a run follows from nothing that has a name.
        let name = name.filter(|_| !outcome.interrupted);
        if let (Some(name), Some(left)) = (name, observer.left()) {
            let closed = closed.map_err(RunError::Failed);
            let state = || leave::state(stack, seed, program, &name, device);
            *left = Some(closed.and_then(|()| state()));
        }
        Ok(outcome)
    }
}

/// Whether a job ended because the media may take no more RAM.
fn hit_memory_cap<S>(results: &Results<S>) -> bool {
    let mut failures = results.jobs.iter().flat_map(|job| &job.failures);
    failures.any(|failure| matches!(failure.what, FailureKind::Io(_, BlockError::MemoryCap)))
}

/// Puts everything together.
fn conclude(
    stack: &Stack,
    seed: u64,
    ftl: &Pblk<Flash>,
    before: Option<Before>,
    measured: Measured,
    wall: WallTime,
) -> Outcome {
    let size = DeviceSize::of(ftl.capacity());
    let warnings = remarks::remarks(stack, &size, before, &measured);
    let media = ftl.media().inner();
    let in_service = media.report().filter(|(_, info)| info.state != ChunkState::Offline);
    Outcome {
        stack: stack.clone(),
        seed,
        size,
        preconditioned: before.map(|before| before.done).unwrap_or_default(),
        state: before.map(|before| before.state),
        virtual_time: measured.length,
        wall,
        workload: measured.results,
        trace: measured.trace,
        flowops: measured.flowops,
        ftl: measured.counts.ftl,
        fs: measured.counts.fs,
        memory: ftl.memory(),
        media_bytes: media.memory_bytes(),
        wear: media.wear(),
        erase_counts: EraseCounts::of(&media.wear(), in_service.map(|(_, info)| info.erases)),
        utilisation: measured.counts.utilisation,
        line_valid: line_valid(&ftl.lines()),
        series: course::points(&measured.totals),
        steady: measured.steady.is_ok(),
        rounds: measured.rounds,
        interrupted: measured.interrupted,
        warnings,
    }
}
