//! How far a run is, for progress bars: an estimate from what the jobs ask for, and nothing that a
//! result depends on.

use nandscape_rt::Nanos;
use nandscape_workload::engine::Engine;
use nandscape_workload::fio::{Direction, JobFile, JobSpec, Mix};

/// What all jobs together are expected to take.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Estimate {
    /// Bytes to transfer, if no time ends the jobs before.
    bytes: f64,
    /// Virtual time, if nothing ends the jobs before; infinite without `runtime`.
    seconds: f64,
}

impl Estimate {
    /// For the jobs of `file`, which `engine` is ready to run.
    pub(super) fn new<S>(file: &JobFile, engine: &Engine<S>) -> Self {
        let stages = file.jobs.chunk_by(|_, next| !next.stonewall);
        Self {
            bytes: engine.budgets().map(|(spec, all)| bytes(spec, all)).sum::<f64>().max(1.0),
            seconds: stages.map(|stage| stage.iter().map(seconds).fold(0.0, f64::max)).sum(),
        }
    }

    /// The fraction done after so many bytes and so much time; it never falls as they rise.
    pub(super) fn fraction(&self, bytes: u64, at: Nanos) -> f64 {
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
