//! Jobs of a job file of fio's: their engine on a rig, to its end, and what is counted of both.

use super::{INTERVAL, Load, Measurement, POINTS_MAX, RunningLoad, Sampler, drive, options};
use crate::run::counts::Sample;
use crate::run::criterion::Ground;
use crate::run::error::RunError;
use crate::run::observer::Observer;
use crate::run::rig::Rig;
use crate::run::series::Totals;
use crate::stack::Stack;
use nandscape_block::{DeviceCaps, SECTOR_BYTES};
use nandscape_ftl::HostIo;
use nandscape_rt::Nanos;
use nandscape_rt::words::{self, grouped};
use nandscape_workload::Direction;
use nandscape_workload::engine::{Engine, EngineError, Options, RunState};
use nandscape_workload::fio::{
    Amount, BlockSizes, Distribution, JobFile, JobSpec, Mix, Replaying, Sequence,
};
use std::borrow::Cow;
use std::ops::Range;

/// A job file that runs to its end.
pub(in crate::run) struct Jobs<'a> {
    pub(in crate::run) file: &'a JobFile,
    /// What is different from what the file asks for.
    pub(in crate::run) warnings: Vec<String>,
}

impl Load for Jobs<'_> {
    fn measure(
        self,
        rig: &mut Rig,
        ground: &Ground,
        seed: u64,
        observer: &mut dyn Observer,
    ) -> Result<Measurement, RunError> {
        let Self { file, mut warnings } = self;
        let mut jobs = RunningJobs::new(file, rig, seed, observer)?;
        let ramp = first_ramp(file);
        let mut first = Totals::default();
        if ramp > Nanos::ZERO {
            jobs.until = ramp;
            // A run that is interrupted in its ramp has the figures of one pause more.
            drive(&mut jobs, rig, observer)?;
            first = jobs.totals(Sample::default());
            rig.reset_counts();
            jobs.until = Nanos::MAX;
        }
        let free = rig.free_sectors();
        let end = drive(&mut jobs, rig, observer)?;
        warnings.append(&mut jobs.warnings);
        let measured = Measurement::new(jobs.engine.finish(), first, rig.counts(), end);
        let measured = measured.judged(ground, (free, rig.free_sectors()));
        let (random_writes, uniform_bytes) = (writes_at_random(file), uniform_bytes(file));
        Ok(Measurement { random_writes, uniform_bytes, warnings, ..measured })
    }
}

/// Jobs that run `until` then, or to their end.
pub(super) struct RunningJobs {
    pub(super) engine: Engine<Sample>,
    pub(super) sampler: Sampler,
    pub(super) until: Nanos,
    /// What is different from what the file asks for.
    pub(super) warnings: Vec<String>,
    estimate: Estimate,
}

impl RunningJobs {
    /// Jobs that are ready to begin, and watched.
    pub(super) fn new(
        file: &JobFile,
        rig: &mut Rig,
        seed: u64,
        observer: &mut dyn Observer,
    ) -> Result<Self, RunError> {
        let files = rig.file_ranges();
        let (file, mut warnings) = fitted(file, rig, &files);
        let file = &file;
        warnings.extend(without_effect(file, rig.caps(), !files.is_empty()));
        let follows = files.is_empty() && file.jobs.iter().any(|spec| spec.zoning.is_zbd());
        let report = if follows { rig.zones()? } else { None };
        let zones = report.map(|report| report.zones).unwrap_or_default();
        let options = Options { files, zones, ..options(seed) };
        let on_files = !options.files.is_empty();
        let mut engine = Engine::new(file, rig.caps(), &options)
            .map_err(|error| RunError::Job(error.to_string()))?;
        if !on_files {
            warnings.extend(corner(&engine, rig.caps()));
        }
        engine.record(observer.recorder());
        rig.begin_timeline(observer, engine.slots());
        let estimate = Estimate::new(file, &engine);
        Ok(Self { engine, sampler: Sampler::default(), until: Nanos::MAX, warnings, estimate })
    }

    /// What the jobs have counted until now, beside what was sampled.
    pub(super) fn totals(&self, sample: Sample) -> Totals {
        let totals = Direction::ALL.map(|direction| self.engine.totals(direction));
        Totals {
            at: self.engine.now(),
            ios: totals.iter().map(|(ios, _)| ios).sum(),
            bytes: totals.map(|(_, bytes)| bytes),
            latency: self.engine.latency_totals(),
            in_flight: None,
            sample,
        }
    }

    /// What all jobs have transferred until now.
    pub(super) fn bytes(&self) -> u64 {
        Direction::ALL.into_iter().map(|direction| self.engine.totals(direction).1).sum()
    }

    /// Runs until `stop` or to the end.
    pub(super) fn run_to(&mut self, rig: &mut Rig, stop: Nanos) -> Result<RunState, RunError> {
        let (engine, sampler) = (&mut self.engine, &mut self.sampler);
        let run = match rig {
            Rig::Device(device) => engine.run_until(device, sampler, Some(stop)),
            Rig::Mounted(mounted) => engine.run_until(&mut **mounted, sampler, Some(stop)),
        };
        run.map_err(|error| match error {
            EngineError::TimeStandsStill { .. } => {
                RunError::Job(format!("{error}{}", why_no_time(&rig.counts().ftl.host)))
            }
            EngineError::Stuck { .. } => {
                let waiting =
                    rig.waiting().map_or_else(String::new, |waiting| format!("; {waiting}"));
                RunError::Failed(format!("{error}{waiting}"))
            }
            other => RunError::Failed(other.to_string()),
        })
    }
}

impl RunningLoad for RunningJobs {
    fn step(&mut self, rig: &mut Rig) -> Result<RunState, RunError> {
        let share = if rig.is_logged() { 0 } else { self.engine.now().0 / POINTS_MAX as u64 };
        let interval = INTERVAL.max(Nanos(share));
        let stop = self.engine.now().saturating_add(interval).min(self.until);
        let state = self.run_to(rig, stop)?;
        Ok(if stop == self.until { RunState::Finished } else { state })
    }

    fn now(&self, _: &Rig) -> Nanos {
        self.engine.now()
    }

    fn fraction(&self) -> f64 {
        self.estimate.fraction(self.bytes(), self.engine.now())
    }
}

/// Why I/Os took no time, if they only read what was never written.
fn why_no_time(host: &HostIo) -> String {
    if host.unwritten == 0 || host.unwritten < host.read || host.written > 0 {
        return String::new();
    }
    let sectors = grouped(host.read);
    format!(
        "; all {sectors} sectors that they read hold nothing: precondition.recipe=fill writes them"
    )
}

/// Whether a job writes at random.
pub(super) fn writes_at_random(file: &JobFile) -> bool {
    file.jobs.iter().any(|spec| spec.pattern.random && spec.pattern.mix.has(Direction::Write))
}

/// Bytes of each write of the jobs, if all are as large and anywhere on the device with the same probability.
pub(super) fn uniform_bytes(file: &JobFile) -> Option<u64> {
    let mut writing = file.jobs.iter().filter(|spec| spec.pattern.mix.has(Direction::Write));
    let size = |spec: &JobSpec| match spec.sizes(Direction::Write) {
        BlockSizes::Fixed(bytes) if is_uniform(spec) => Some(bytes),
        _ => None,
    };
    let first = size(writing.next()?)?;
    writing.all(|spec| size(spec) == Some(first)).then_some(first)
}

/// Whether a job writes anywhere on the device with the same probability, whatever it wrote before, and trims nothing.
fn is_uniform(spec: &JobSpec) -> bool {
    let whole = spec.size.is_none_or(|size| size == Amount::Percent(10_000));
    // Passes that repeat one another overwrite in the order in which they wrote.
    let repeats = spec.repeats && spec.randseed.is_none() && !spec.completes_at_once();
    let repeated = spec.loops > 1 && repeats && !spec.time_based;
    spec.pattern.random
        && !spec.random_map
        && !spec.shift_register
        && !repeated
        && whole
        && spec.offset == Amount::Bytes(0)
        && spec.offset_increment == Amount::Bytes(0)
        && spec.distribution == Distribution::Uniform
        && spec.percentage_random == [100; 3]
        && spec.sequence == Sequence::PLAIN
        && !spec.pattern.mix.has(Direction::Trim)
        && spec.replay == Replaying::NONE
}

/// When every job of the first stage is behind its ramp at the latest, if any has one: counters begin there.
pub(super) fn first_ramp(job: &JobFile) -> Nanos {
    let stonewalls = job.jobs.iter().skip(1).take_while(|spec| !spec.stonewall);
    let first_stage = job.jobs.iter().take(1).chain(stonewalls);
    let ramps = first_stage.filter(|spec| spec.ramp_time > Nanos::ZERO);
    ramps.map(|spec| spec.start_delay.1.saturating_add(spec.ramp_time)).max().unwrap_or(Nanos::ZERO)
}

/// Keys of jobs that have no effect on this device, or on its files.
fn without_effect(
    file: &JobFile,
    caps: &DeviceCaps,
    on_files: bool,
) -> impl Iterator<Item = String> {
    let why = match (on_files, caps.placement_handles) {
        (true, _) => Some("files of jobs have no hints"),
        (false, 0) => Some("the device has no placement handles (streams)"),
        (false, _) => None,
    };
    let hinted = file.jobs.iter().filter(|spec| spec.write_hint > 0);
    why.into_iter().flat_map(move |why| {
        let says = move |JobSpec { place, name, .. }: &JobSpec| {
            format!("{place}: job {name}: write_hint has no effect: {why}")
        };
        hinted.clone().map(says)
    })
}

/// The jobs with the sizes that fit the device of `rig`, where they ask for that, and a warning if they differ.
/// Files have the sizes that they were created with.
fn fitted<'a>(
    file: &'a JobFile,
    rig: &Rig,
    files: &[Vec<Range<u64>>],
) -> (Cow<'a, JobFile>, Vec<String>) {
    let device_bytes = rig.caps().sectors.saturating_mul(SECTOR_BYTES);
    match file.fitted(device_bytes).filter(|_| files.is_empty()) {
        None => (Cow::Borrowed(file), Vec::new()),
        Some((fitted, factor)) => {
            let warning = format!(
                "sizes and offsets of all jobs scaled by {} to fit {}",
                three_digits(factor),
                words::bytes(device_bytes as f64)
            );
            (Cow::Owned(fitted), vec![warning])
        }
    }
}

/// Share of a device below which jobs that write at random measure a part of it.
const CORNER: f64 = 0.1;

/// On jobs that do I/O in a small part of the device, because it lets them or because they ask for it.
fn corner<S>(engine: &Engine<S>, caps: &DeviceCaps) -> Option<String> {
    let holds = caps.live_sectors().saturating_mul(SECTOR_BYTES);
    let covered = covered(engine.ranges().map(|(_, range)| range));
    let small = |part: u64| part as f64 <= CORNER * holds as f64;
    if covered == 0 || !small(covered) {
        return None;
    }
    let offered = caps.random_range();
    let offered = (offered.end - offered.start).saturating_mul(SECTOR_BYTES);
    let writes =
        |(spec, _): (&JobSpec, _)| spec.pattern.random && spec.pattern.mix.has(Direction::Write);
    let why = match caps.has_append_only() && small(offered) {
        true => {
            "no more of it can be written at random, the rest is for a file system that appends, so the result does not \
             compare with that of a job on a whole device"
        }
        false if engine.ranges().any(writes) => {
            "size=, offset= and the like leave no more, so write amplification and latency are those of few addresses that \
             are overwritten again and again"
        }
        false => return None,
    };
    let [covered, holds] = [covered, holds].map(|bytes| words::bytes(bytes as f64));
    Some(format!("the jobs cover {covered} of a device that holds {holds}: {why}"))
}

/// Bytes that are in at least one of the ranges.
fn covered(ranges: impl Iterator<Item = Range<u64>>) -> u64 {
    let mut ranges: Vec<_> = ranges.map(|range| (range.start, range.end)).collect();
    ranges.sort_unstable();
    let (mut until, mut sum) = (0, 0);
    for (start, end) in ranges {
        sum += end.saturating_sub(start.max(until));
        until = until.max(end);
    }
    sum
}

/// A fraction with three digits that count.
fn three_digits(fraction: f64) -> String {
    let (mut places, mut rest) = (3, fraction);
    while rest < 0.1 && places < 12 {
        (places, rest) = (places + 1, rest * 10.0);
    }
    format!("{fraction:.places$}")
}

/// Whether a job goes through the page cache of a block device. What replays a log does not: logs have what left
/// the page cache.
const fn is_buffered(spec: &JobSpec) -> bool {
    !spec.files.direct && spec.replay.files.is_empty()
}

/// Which instances of these jobs bypass the page cache of the block device of `stack`; `None`: all of them do, or it
/// has none.
///
/// # Errors
/// A key of a buffered job that is not supported, with its place.
pub(in crate::run) fn buffered(
    stack: &Stack,
    file: &JobFile,
) -> Result<Option<Vec<bool>>, RunError> {
    if stack.host.device_cache.is_none() || !file.jobs.iter().any(is_buffered) {
        return Ok(None);
    }
    let hinted = file.jobs.iter().find(|spec| is_buffered(spec) && spec.write_hint > 0);
    if let Some(JobSpec { place, name, .. }) = hinted {
        return Err(RunError::Job(format!(
            "{place}: job {name}: write_hint: a buffered block device has one write hint for all of it, which is \
             not supported; use direct=1"
        )));
    }
    let clones = |spec: &JobSpec| vec![!is_buffered(spec); spec.numjobs as usize];
    Ok(Some(file.jobs.iter().flat_map(clones).collect()))
}

/// The jobs as they run on the block device of `stack`, and what is different from what their file asks for: a
/// buffered job has one request in flight, because in Linux the submission of buffered I/O waits for its end.
pub(in crate::run) fn run_as<'a>(
    stack: &Stack,
    file: &'a JobFile,
) -> (Cow<'a, JobFile>, Vec<String>) {
    let mut changed = Cow::Borrowed(file);
    let mut warnings = Vec::new();
    if stack.fs.is_some() || stack.host.device_cache.is_none() {
        return (changed, warnings);
    }
    for (index, spec) in file.jobs.iter().enumerate().filter(|(_, spec)| is_buffered(spec)) {
        if spec.depth() > 1 {
            let JobSpec { name, iodepth, .. } = spec;
            warnings.push(format!(
                "job {name} is buffered: one request is in flight, not iodepth={iodepth}, as the submission of \
                 buffered I/O waits in Linux; direct=1 bypasses the page cache"
            ));
            changed.to_mut().jobs[index].iodepth = 1;
        }
    }
    (changed, warnings)
}

/// What all jobs together are expected to take: an estimate for progress bars, on which no result depends.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Estimate {
    /// Bytes to transfer, if no time ends the jobs before.
    bytes: f64,
    /// Virtual time, if nothing ends the jobs before; infinite without `runtime`.
    seconds: f64,
}

impl Estimate {
    /// For the jobs of `file`, which `engine` is ready to run.
    fn new<S>(file: &JobFile, engine: &Engine<S>) -> Self {
        let stages = file.jobs.chunk_by(|_, next| !next.stonewall);
        Self {
            bytes: engine.budgets().map(|(spec, all)| bytes(spec, all)).sum::<f64>().max(1.0),
            seconds: stages.map(|stage| stage.iter().map(seconds).fold(0.0, f64::max)).sum(),
        }
    }

    /// The fraction done after so many bytes and so much time; it never falls as they rise.
    fn fraction(&self, bytes: u64, at: Nanos) -> f64 {
        (bytes as f64 / self.bytes).max(at.as_secs_f64() / self.seconds).min(1.0)
    }
}

fn seconds(spec: &JobSpec) -> f64 {
    let runtime = spec.runtime.map_or(f64::INFINITY, Nanos::as_secs_f64);
    (spec.start_delay.1.saturating_add(spec.ramp_time)).as_secs_f64() + runtime
}

/// What a clone of a job transfers in all, if `all` is what its loops write or read once.
fn bytes(spec: &JobSpec, all: u64) -> f64 {
    if spec.replays() {
        return all as f64;
    }
    if spec.time_based {
        return f64::INFINITY;
    }
    let ios = spec.number_ios.map_or(f64::INFINITY, |ios| ios as f64 * spec.loops as f64);
    (all as f64).min(ios * block_bytes(spec)) * passes(spec)
}

/// How often each byte passes: trimmed and then written, or written and then read again.
fn passes(spec: &JobSpec) -> f64 {
    let trims = spec.pattern.mix == Mix::TrimWrite;
    let rereads = spec.verify && spec.do_verify && spec.pattern.mix.has(Direction::Write);
    1.0 + f64::from(u8::from(trims)) + f64::from(u8::from(rereads))
}

/// Mean size of an I/O.
fn block_bytes(spec: &JobSpec) -> f64 {
    let of = |direction: Direction| spec.sizes(direction).mean();
    let reads = spec.rwmixread as f64 / 100.0;
    match spec.pattern.mix {
        Mix::Only(only) => of(only),
        Mix::ReadWrite => reads * of(Direction::Read) + (1.0 - reads) * of(Direction::Write),
        Mix::TrimWrite => of(Direction::Trim),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::device::{HintedDevice, format, without_faults};
    use crate::run::hang::run_with_timeout;
    use crate::run::observer::NoObserver;
    use crate::run::prepare::fresh;
    use crate::run::volume::{BareDevice, FileSetup, Setup, build};
    use nandscape_workload::fio::{FileLayout, HostEnvironment, parse};

    /// A call that never returns ends the run with what its tasks wait for, although daemons have timers for
    /// ever; so does a file system that cannot be unmounted for it.
    #[test]
    fn a_call_that_hangs_is_reported() {
        let small = ["media.chunks=48", "media.sectors=128", "ftl.op_percent=35"];
        let stack = Stack::load("ext4-pblk", &small).unwrap();
        let jobs = parse("[w]\nrw=write\nsize=1m\n", "a.fio", &HostEnvironment).unwrap();
        let media = without_faults(fresh(&stack, 1).unwrap());
        let host = stack.host.build();
        let device = HintedDevice::new(format(&stack, media, 1).unwrap(), &stack.hints, &host);
        let files = FileSetup::Jobs(FileLayout::new(&jobs, 1).unwrap());
        let bare = BareDevice { device, fresh: true, file: None };
        let mut rig = build(&stack, Setup::Files(files), bare, 1).unwrap();
        let mut running = RunningJobs::new(&jobs, &mut rig, 1, &mut NoObserver).unwrap();
        running.until = Nanos::from_us(50);
        drive(&mut running, &mut rig, &mut NoObserver).unwrap();
        running.until = Nanos::MAX;
        let handle = rig.mounted().unwrap().executor.handle();
        let (spawner, host) = (handle.clone(), rig.host().clone());
        let for_ever = async move { host.work(&handle, host.core(0), Nanos::MAX).await };
        drop(spawner.spawn_daemon("other work", for_ever));
        let hang = drive(&mut running, &mut rig, &mut NoObserver).unwrap_err();
        let RunError::Failed(why) = hang else { panic!("{hang}") };
        assert!(
            why.contains("the device has nothing left to do, but 1 requests wait: write of"),
            "{why}"
        );
        assert!(why.ends_with("; task `call` waits for something unnamed"), "{why}");
        let never = std::future::pending::<()>();
        let why = run_with_timeout(&mut rig.mounted().unwrap().executor, never).unwrap_err();
        assert!(why.starts_with("the file system made no progress: task `"), "{why}");
        assert!(why.contains("task `call` waits"), "{why}");
    }
}
