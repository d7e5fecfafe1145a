//! Jobs that end with others, or begin after them: `exitall`, `exitall_on_error`, `exit_what`, `wait_for`.

use super::Engine;
use crate::fio::{ExitRule, ExitWhat};
use nandscape_rt::Nanos;

impl<S> Engine<S> {
    /// A job has ended: those end that end with it, and those begin that waited for it.
    pub(super) fn follow_end(&mut self, index: usize) {
        let job = &self.jobs[index];
        let ExitRule { when_done, when_failed, what } = job.spec.exit;
        if when_done || (when_failed && job.has_failed()) {
            self.end_with(index, what);
        }
        let name = self.jobs[index].spec.name.clone();
        for at in 0..self.stage.len() {
            let other = self.stage[at];
            let waited = self.jobs[other].spec.wait_for.as_ref() == Some(&name);
            if waited && !self.jobs[other].has_begun() && !self.waits(other) {
                self.set_timer(other, self.now.saturating_add(self.jobs[other].start_delay));
            }
        }
    }

    /// Whether a job waits for one that has not ended.
    pub(super) fn waits(&self, index: usize) -> bool {
        let spec = &self.jobs[index].spec;
        let Some(name) = &spec.wait_for else { return false };
        let mut above = self.jobs[..index].iter().filter(|job| job.spec.place != spec.place);
        above.any(|job| job.spec.name == *name && !job.has_ended())
    }

    /// Ends the jobs that end with this one.
    fn end_with(&mut self, index: usize, what: ExitWhat) {
        let group = self.jobs[index].result.group;
        for other in self.stage.clone() {
            if what != ExitWhat::Group || self.jobs[other].result.group == group {
                self.terminate(other);
            }
        }
        if what == ExitWhat::All {
            self.stages.clear();
        }
    }

    /// Ends a job of this stage: it issues nothing more, and verifies nothing.
    pub(super) fn terminate(&mut self, index: usize) {
        let job = &mut self.jobs[index];
        if job.has_ended() {
            return;
        }
        if job.has_begun() {
            job.terminate();
            self.set_timer(index, self.now);
        } else {
            job.skip(self.now);
            self.unfinished -= 1;
            self.set_timer(index, Nanos::MAX);
        }
    }
}
