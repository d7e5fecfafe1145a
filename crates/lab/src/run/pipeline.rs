//! A run from its beginning to its end, whatever its load: the device is prepared and its rig built, the load is
//! measured on it, what was counted becomes the outcome, the rig is closed, and its device is left as a state.

use super::RunOptions;
use super::criterion::Ground;
use super::device::{self, HintedDevice, RunFtl};
use super::error::RunError;
use super::load::{Load, Measurement, RunEnd};
use super::observer::{Observer, Phase, check_interrupt};
use super::outcome::{EraseCounts, Outcome, WallTime, line_valid};
use super::precondition::prefill;
use super::prepare::{self, InitialState, PreparedMedia, prepare};
use super::rig::Rig;
use super::sense::Law;
use super::series;
use super::volume::{BareDevice, Setup, build};
use super::warnings::warnings;
use crate::stack::Stack;
use crate::state::{self, Header, Origin, Preconditioned, State};
use nandscape_block::{Bio, BlockError};
use nandscape_ftl::Ftl;
use nandscape_media::{ChunkState, Layer, Media};
use nandscape_workload::engine::{FailureKind, Results};
use nandscape_workload::trace::Footprint;
use std::io;
use xxhash_rust::xxh3::Xxh3;

/// Runs `load` on a device of `stack` with `setup` between them.
pub(super) fn run_load(
    stack: &Stack,
    load: impl Load,
    setup: Setup,
    seed: u64,
    options: RunOptions<'_>,
    observer: &mut dyn Observer,
) -> Result<Outcome, RunError> {
    let began_s = observer.wall_s();
    let RunOptions { states, program, .. } = options;
    let PreparedMedia { media, initial, file, warnings } =
        prepare(stack, seed, states, program, observer)?;
    let prefilled = load.prefill().sectors();
    let run = Run { stack, seed, program, initial, prefilled, warnings, began_s };

    let mut device = run.power_on(media, file.as_deref())?;
    if prefilled > 0 {
        device = run.prefill(device, load.prefill(), observer)?;
    }
    let bare = BareDevice { device, fresh: initial.is_none(), file: file.as_deref() };
    let mut rig = build(stack, setup, bare, seed)?;
    rig.begin_measuring(stack);
    check_interrupt(observer)?;

    let (mut measured, wall) = run.measure(&mut rig, load, observer)?;
    let hang = measured.hang.take();
    let mut outcome = rig.look(|ftl| run.outcome(ftl, measured, wall));
    outcome.host_memory = rig.host().memory().parts();
    outcome.fs_memory = rig.fs_memory();
    outcome.zones = rig.zones()?;
    if let Some(why) = hang.and_then(|hang| hang.reason(&mut rig)) {
        outcome.flowops.iter_mut().for_each(|report| report.fail(&why));
    }

    let closed = rig.close();
    outcome.warnings.extend(closed.as_ref().err().cloned());
    // The device of an interrupted run is no final state.
    if let Some(state) = observer.final_state().filter(|_| !outcome.interrupted) {
        let closed = closed.map_err(RunError::Failed);
        *state = Some(closed.and_then(|()| run.final_state(rig)));
    }
    Ok(outcome)
}

/// A run whose media are ready.
struct Run<'a> {
    stack: &'a Stack,
    seed: u64,
    program: &'a str,
    /// How the media were preconditioned; `None`: they are fresh.
    initial: Option<InitialState>,
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
        let ftl = match self.initial {
            None => device::format(stack, device::flash(stack, media, seed), seed)?,
            Some(_) => {
                let media = device::flash(stack, media, prepare::fault_seed(seed));
                prepare::mount(stack, media, seed, file)?
            }
        };
        // The one host of the run. It is charged from the measured phase on.
        Ok(HintedDevice::new(ftl, &stack.hints, &stack.host.build()))
    }

    /// The device with this footprint written, after a power cycle as it is after preconditioning.
    fn prefill(
        &self,
        mut device: HintedDevice,
        footprint: &Footprint,
        observer: &mut dyn Observer,
    ) -> Result<HintedDevice, RunError> {
        let Self { stack, seed, .. } = *self;
        let host = device.host.clone();
        let report = |fraction| {
            observer.progress(Phase::Precondition, fraction);
            check_interrupt(observer)
        };
        prefill(&mut device.ftl, footprint, report)
            .map_err(|error| RunError::precondition(stack, error))?;
        let ftl = prepare::power_cycle(stack, device.ftl, seed)?;
        Ok(HintedDevice::new(ftl, &stack.hints, &host))
    }

    /// What the load measures, and how long it took in real time.
    fn measure(
        &self,
        rig: &mut Rig,
        load: impl Load,
        observer: &mut dyn Observer,
    ) -> Result<(Measurement, WallTime), RunError> {
        let ready_s = observer.wall_s();
        let ground = rig.look(|ftl| Ground::new(ftl, self.initial.is_none()));
        let measured = load.measure(rig, &ground, self.seed, observer);
        rig.end_timeline(observer);
        let mut measured = measured?;
        if hit_memory_cap(&measured.results) {
            return Err(RunError::memory_cap(self.stack));
        }
        measured.warnings.extend(self.warnings.iter().cloned());
        let measured_s = observer.wall_s() - ready_s;
        Ok((measured, WallTime { precondition_s: ready_s - self.began_s, measured_s }))
    }

    /// What was measured, and what the device reports of itself.
    fn outcome(&self, ftl: &RunFtl, measured: Measurement, wall: WallTime) -> Outcome {
        let Self { stack, seed, initial, .. } = *self;
        let size = ftl.size();
        let warnings = warnings(stack, (&size, ftl.rest()), initial, &measured);
        let law = Law::of(stack, &size, &measured);
        let media = ftl.media().inner();
        let in_service = media.report().filter(|(_, info)| info.state != ChunkState::Offline);
        Outcome {
            stack: stack.clone(),
            seed,
            size,
            preconditioned: initial.map(|initial| initial.done).unwrap_or_default(),
            state: initial.map(|initial| initial.state),
            prefilled: self.prefilled,
            virtual_time: measured.length,
            origin: initial.and_then(|initial| initial.origin),
            wall,
            workload: measured.results,
            trace: measured.trace,
            flowops: measured.flowops,
            ftl: measured.counts.ftl,
            ftl_detail: measured.counts.ftl_detail,
            fs: measured.counts.fs,
            memory: ftl.memory(),
            host_memory: Vec::new(),
            fs_memory: Vec::new(),
            media_bytes: media.memory_bytes(),
            wear: media.wear(),
            erase_counts: EraseCounts::of(&media.wear(), in_service.map(|(_, info)| info.erases)),
            utilisation: measured.counts.utilisation,
            link: measured.counts.link,
            queue: measured.counts.queue,
            law,
            cores: measured.counts.cores,
            line_valid: line_valid(&ftl.erase_units()),
            zones: None,
            series: series::points(&measured.totals),
            not_steady: measured.steady.err(),
            rounds: measured.rounds,
            interrupted: measured.end == RunEnd::Interrupted,
            warnings,
        }
    }

    /// The device as the run leaves it, as a state: what the FTL still holds is flushed, and power goes, as after
    /// preconditioning. All figures were taken before that, so no result depends on whether the state is wanted. It
    /// is named by what it holds, so that no two devices share a name, whatever ran on them.
    fn final_state(&self, rig: Rig) -> Result<State, RunError> {
        let in_use = || RunError::Failed("defect: device still in use".to_owned());
        let mut ftl = rig.release().ok_or_else(in_use)?;
        ftl.keep_flushed(true);
        device::serve(&mut ftl, Bio::flush())?;
        let fill_sectors = ftl.mapped_sectors();
        let done = Preconditioned { fill_sectors, ..Preconditioned::default() };
        let media = device::power_off(ftl).into_inner();
        let named = digest(&media).map_err(|error| RunError::Failed(error.to_string()))?;
        let text = state::text(self.stack, self.seed) + &Origin::Run.line(named);
        Ok(State { header: Header::new(self.stack, self.seed, text, done, self.program), media })
    }
}

/// Of all that the media hold.
fn digest(media: &Media) -> io::Result<u128> {
    let mut hash = Xxh3::new();
    media.write_content(&mut hash)?;
    Ok(hash.digest128())
}

/// Whether a job ended because the media may take no more RAM.
fn hit_memory_cap<S>(results: &Results<S>) -> bool {
    let mut failures = results.jobs.iter().flat_map(|job| &job.failures);
    failures.any(|failure| matches!(failure.what, FailureKind::Io(_, BlockError::MemoryCap)))
}
