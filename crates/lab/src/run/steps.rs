//! The steps of a run, whatever its load: the device is made ready, the load is measured on it, what was
//! counted is put together, and the device is left.

use super::RunOptions;
use super::device::{self, HintedDevice, LabDevice, RunFtl};
use super::drive::RunEnd;
use super::error::RunError;
use super::files::{Above, set_up, set_up_cache};
use super::load::{Load, Measurement};
use super::observer::{Observer, Phase, go_on};
use super::outcome::{EraseCounts, Outcome, WallTime, line_valid};
use super::precondition::prefill;
use super::prepare::{self, InitialState, PreparedMedia, prepare};
use super::settled::Ground;
use super::zones::ZoneReport;
use super::{course, leave, remarks};
use crate::stack::Stack;
use crate::state::State;
use nandscape_block::BlockError;
use nandscape_ftl::Ftl;
use nandscape_media::{ChunkState, Layer, Media};
use nandscape_workload::engine::{FailureKind, Results};
use nandscape_workload::trace::Footprint;

/// Runs `load` on a device of `stack` with this above it.
pub(super) fn run_load(
    stack: &Stack,
    load: impl Load,
    above: Above,
    seed: u64,
    manner: RunOptions<'_>,
    observer: &mut dyn Observer,
) -> Result<Outcome, RunError> {
    let began_s = observer.wall_s();
    let RunOptions { states, program, .. } = manner;
    let PreparedMedia { media, by: before, file, warnings } =
        prepare(stack, seed, states, program, observer)?;
    let prefilled = load.prefill().sectors();
    let run = Run { stack, seed, program, before, prefilled, warnings, began_s };
    let mut device = run.power_on(media, file.as_deref())?;
    if prefilled > 0 {
        device = run.prefill(device, load.prefill(), observer)?;
    }
    match (above, &stack.fs, &stack.host.device_cache) {
        (Above::FileSystem(contents), Some(fs), _) => {
            let fresh = before.is_none();
            let file = file.as_deref();
            let files = set_up(stack, fs, contents, (device, fresh), file, seed)?;
            run.on(files, load, observer)
        }
        (Above::PageCache(direct), _, Some(cache)) => {
            run.on(set_up_cache(stack, cache, direct, device)?, load, observer)
        }
        _ => run.on(device, load, observer),
    }
}

/// A run whose media are ready.
struct Run<'a> {
    stack: &'a Stack,
    seed: u64,
    program: &'a str,
    /// How the media were preconditioned; `None`: they are fresh.
    before: Option<InitialState>,
    /// Sectors of a trace's footprint that were written after that.
    prefilled: u64,
    /// What a reader should know about how they came about.
    warnings: Vec<String>,
    began_s: f64,
}

impl Run<'_> {
    /// The device over its media, which come from `file` if they come from one.
    fn power_on(&self, media: Media, file: Option<&str>) -> Result<HintedDevice, RunError> {
        let Self { stack, seed, .. } = *self;
        let ftl = match self.before {
            None => device::format(stack, device::flash(stack, media, seed), seed)?,
            Some(_) => {
                let media = device::flash(stack, media, prepare::fault_seed(seed));
                prepare::mount(stack, media, seed, file)?
            }
        };
        // The one host of the run. It is charged from the measured phase on.
        Ok(HintedDevice::new(ftl, &stack.hints, &stack.host.build()))
    }

    /// The device with this footprint written, off and on again as it is after preconditioning.
    fn prefill(
        &self,
        mut device: HintedDevice,
        footprint: &Footprint,
        observer: &mut dyn Observer,
    ) -> Result<HintedDevice, RunError> {
        let Self { stack, seed, .. } = *self;
        let host = device.host().clone();
        let report = |fraction| {
            observer.progress(Phase::Precondition, fraction);
            go_on(observer)
        };
        prefill(&mut device.ftl, footprint, report)
            .map_err(|error| RunError::precondition(stack, error))?;
        Ok(HintedDevice::new(prepare::power_cycle(stack, device.ftl, seed)?, &stack.hints, &host))
    }

    /// Everything from the moment at which the device holds what it is to hold.
    fn on<D: LabDevice>(
        &self,
        mut device: D,
        load: impl Load,
        observer: &mut dyn Observer,
    ) -> Result<Outcome, RunError> {
        enable_timing(self.stack, &mut device);
        go_on(observer)?;
        let (mut measured, wall) = self.measure(&mut device, load, observer)?;
        let silent = measured.silent.take();
        let mut outcome = device.look(|ftl| self.build_outcome(ftl, measured, wall));
        outcome.host_memory = device.host().memory().parts();
        outcome.fs_memory = device.fs_memory();
        outcome.zones = ZoneReport::of(&mut device)?;
        if let Some(why) = silent.and_then(|silent| silent.hang_reason(&mut device)) {
            outcome.flowops.iter_mut().for_each(|report| report.fail(&why));
        }
        let closed = close(&mut device);
        outcome.warnings.extend(closed.as_ref().err().cloned());
        // In the midst of a run, nobody wants the device.
        if let Some(left) = observer.final_state().filter(|_| !outcome.interrupted) {
            *left = Some(self.leave(device, closed));
        }
        Ok(outcome)
    }

    /// What the load brings, and how long it took in real time.
    fn measure<D: LabDevice>(
        &self,
        device: &mut D,
        load: impl Load,
        observer: &mut dyn Observer,
    ) -> Result<(Measurement, WallTime), RunError> {
        let ready_s = observer.wall_s();
        let ground = device.look(|ftl| Ground::new(ftl, self.before));
        let measured = load.measure(device, &ground, self.seed, observer);
        device.end_timeline(observer);
        let mut measured = measured?;
        if hit_memory_cap(&measured.results) {
            return Err(RunError::memory_cap(self.stack));
        }
        measured.warnings.extend(self.warnings.iter().cloned());
        let measured_s = observer.wall_s() - ready_s;
        Ok((measured, WallTime { precondition_s: ready_s - self.began_s, measured_s }))
    }

    /// Puts together what was measured and what the device says of itself.
    fn build_outcome(&self, ftl: &RunFtl, measured: Measurement, wall: WallTime) -> Outcome {
        let Self { stack, seed, before, .. } = *self;
        let size = ftl.size();
        let warnings = remarks::remarks(stack, (&size, ftl.rest()), before, &measured);
        let media = ftl.media().inner();
        let in_service = media.report().filter(|(_, info)| info.state != ChunkState::Offline);
        Outcome {
            stack: stack.clone(),
            seed,
            size,
            preconditioned: before.map(|before| before.done).unwrap_or_default(),
            state: before.map(|before| before.state),
            prefilled: self.prefilled,
            virtual_time: measured.length,
            origin: before.and_then(|before| before.origin),
            wall,
            workload: measured.results,
            trace: measured.trace,
            flowops: measured.flowops,
            ftl: measured.counts.ftl,
            fs: measured.counts.fs,
            memory: ftl.memory(),
            host_memory: Vec::new(),
            fs_memory: Vec::new(),
            media_bytes: media.memory_bytes(),
            wear: media.wear(),
            erase_counts: EraseCounts::of(&media.wear(), in_service.map(|(_, info)| info.erases)),
            utilisation: measured.counts.utilisation,
            link: measured.counts.link,
            cores: measured.counts.cores,
            line_valid: line_valid(&ftl.erase_units()),
            zones: None,
            series: course::points(&measured.totals),
            not_steady: measured.steady.err(),
            rounds: measured.rounds,
            interrupted: measured.end == RunEnd::Interrupted,
            warnings,
        }
    }

    /// The device as a state, if its file system was unmounted.
    fn leave(&self, device: impl LabDevice, closed: Result<(), String>) -> Result<State, RunError> {
        closed.map_err(RunError::Failed)?;
        leave::state(self.stack, self.seed, self.program, device)
    }
}

/// From now on things take time, and counts begin anew.
fn enable_timing<D: LabDevice>(stack: &Stack, device: &mut D) {
    let host = device.host().clone();
    device.with(|ftl, _| {
        ftl.media_mut().inner_mut().set_timing(stack.timing().nand);
        ftl.attach(stack.attach(host));
    });
    device.reset_counts();
}

/// Unmounts the file system, if there is one.
fn close<D: LabDevice>(device: &mut D) -> Result<(), String> {
    device.close().map_err(|error| format!("the file system was not unmounted: {error}"))
}

/// Whether a job ended because the media may take no more RAM.
fn hit_memory_cap<S>(results: &Results<S>) -> bool {
    let mut failures = results.jobs.iter().flat_map(|job| &job.failures);
    failures.any(|failure| matches!(failure.what, FailureKind::Io(_, BlockError::MemoryCap)))
}
