//! Sessions: jobs that run one after the other on the same device, each on what the one before left. Between two
//! of them the file system is unmounted, the device is powered down and mounted again, and no virtual time passes;
//! files stay. Every step has a separate result.

use super::job::{Job, JobLoad};
use crate::run::{FinalState, Observer, Outcome, Phase, RunError, RunOptions};
use crate::stack::Stack;
use crate::state::{State, StateSource};
use nandscape_workload::engine::Recorder;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_128;

impl Job {
    /// The session of these jobs, called `name`. A job that is in it more than once is `NAME #2` and so on from its
    /// second time.
    #[must_use]
    pub fn session(name: &str, jobs: &[Arc<Self>]) -> Self {
        let step = |(at, job): (usize, &Arc<Self>)| {
            let earlier = jobs[..at].iter().filter(|other| other.name == job.name).count();
            match earlier {
                0 => Arc::clone(job),
                n => Arc::new(Self {
                    name: format!("{} #{}", job.name, n + 1),
                    load: job.load.clone(),
                    hash: job.hash,
                }),
            }
        };
        let hashes: String = jobs.iter().map(|job| format!("{:032x}\n", job.hash)).collect();
        Self {
            name: name.to_owned(),
            load: JobLoad::Session(jobs.iter().enumerate().map(step).collect()),
            hash: xxh3_128(format!("session\n{hashes}").as_bytes()),
        }
    }

    /// The jobs of a session, in order; none for any other job.
    #[must_use]
    pub fn steps(&self) -> &[Arc<Self>] {
        match &self.load {
            JobLoad::Session(steps) => steps,
            JobLoad::Fio(_) | JobLoad::Filebench(_) => &[],
        }
    }

    /// Runs it: one outcome, or one for each step of a session.
    pub(super) fn run_all(
        &self,
        stack: &Stack,
        seed: u64,
        options: RunOptions<'_>,
        observer: &mut dyn Observer,
    ) -> Result<Vec<Outcome>, RunError> {
        match self.steps() {
            [] => Ok(vec![self.run(stack, seed, options, observer)?]),
            steps => run_steps(steps, stack, seed, options, observer),
        }
    }
}

fn run_steps(
    steps: &[Arc<Job>],
    stack: &Stack,
    seed: u64,
    options: RunOptions<'_>,
    observer: &mut dyn Observer,
) -> Result<Vec<Outcome>, RunError> {
    let later = stack.on_its_file_system();
    let mut outcomes = Vec::with_capacity(steps.len());
    let mut left: Option<Vec<u8>> = None;
    for (at, job) in steps.iter().enumerate() {
        let mut step = Step { inner: observer, at, of: steps.len(), left: None };
        let outcome = match &left {
            None => job.run(stack, seed, options, &mut step)?,
            Some(bytes) => {
                let options = RunOptions { states: StateSource::Bytes(bytes), ..options };
                job.run(&later, seed, options, &mut step)?
            }
        };
        let device = step.left;
        outcomes.push(outcome);
        if at + 1 < steps.len() {
            left = Some(bytes(device)?);
        }
    }
    Ok(outcomes)
}

/// The device that a step left, as the bytes of a state file.
fn bytes(left: FinalState) -> Result<Vec<u8>, RunError> {
    let nothing = || RunError::Failed("a step of the session left no device".to_owned());
    let state: State = left.ok_or_else(nothing)??;
    let mut bytes = Vec::new();
    state.write(&mut bytes).map_err(|error| RunError::Failed(error.to_string()))?;
    Ok(bytes)
}

/// One step of a session as its observer sees it: a part of the whole, whose device is wanted.
struct Step<'a> {
    inner: &'a mut dyn Observer,
    at: usize,
    of: usize,
    left: FinalState,
}

impl Observer for Step<'_> {
    fn wall_s(&self) -> f64 {
        self.inner.wall_s()
    }

    fn progress(&mut self, phase: Phase, fraction: f64) {
        match phase {
            Phase::Precondition if self.at > 0 => {}
            Phase::Precondition => self.inner.progress(phase, fraction),
            Phase::Measure => {
                self.inner.progress(phase, (self.at as f64 + fraction) / self.of as f64);
            }
        }
    }

    fn recorder(&mut self) -> Option<Box<dyn Recorder>> {
        self.inner.recorder()
    }

    fn is_interrupted(&self) -> bool {
        self.inner.is_interrupted()
    }

    fn final_state(&mut self) -> Option<&mut FinalState> {
        Some(&mut self.left)
    }
}
