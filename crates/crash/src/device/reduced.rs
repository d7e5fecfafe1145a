//! Runs of a seed of which a part is left, and the search for the least part that shows the seed's violation.
//!
//! What is left out is drawn all the same: a run without it begins each load where the load of the whole run began, so
//! the whole run is recorded first.

use crate::coverage::Coverage;
use crate::device::campaign::{Left, LoadStreams, Run};
use crate::device::drive::CheckFailure;
use crate::device::model::{Model, Object};
use crate::device::subject::DeviceUnderTest;
use crate::draw::plan::Plan;
use crate::event::{LogEvent, story};
use crate::outcome::{Counts, SeedOutcome, Violation};
use crate::settings::Settings;
use crate::shrink::minimised::{Minimised, OnRun};
use crate::shrink::reduction::{Cut, Reduction};
use crate::shrink::search::{self, Budget, Failing, shrink};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A seed whose device can be made as often as it is wanted.
pub(crate) struct Repeated<'a, S> {
    /// The seed.
    pub(crate) seed: u64,
    /// Its load, cuts and checks.
    pub(crate) plan: &'a Plan,
    /// What it chose.
    pub(crate) scenario: &'a Settings,
    /// Makes a device, whose media commands fail or not.
    pub(crate) make: &'a mut dyn FnMut(bool) -> Option<S>,
}

/// How a run ended.
struct Ended {
    violation: Option<Violation>,
    object: Option<Object>,
    counts: Counts,
    reached: Reduction,
    pins: BTreeMap<u32, Cut>,
    streams: LoadStreams,
    log: Vec<LogEvent>,
}

impl<S: DeviceUnderTest> Repeated<'_, S> {
    /// Runs what is left of the seed, with the story of a violation.
    pub(crate) fn run(&mut self, only: &Reduction) -> SeedOutcome {
        let streams = self.record().map(|whole| whole.streams).unwrap_or_default();
        let ended = self.once(Left::Reduced(only, &streams), Model::new(None));
        let (counts, violation) = match ended {
            None => (Counts::default(), None),
            Some(Ended { violation: None, counts, .. }) => (counts, None),
            Some(Ended { violation: Some(violation), object, counts, .. }) => {
                let event_log = self.story(only, &streams, object);
                (counts, Some(Box::new(Violation { event_log, ..violation })))
            }
        };
        let (seed, scenario) = (self.seed, self.scenario.clone());
        SeedOutcome { seed, scenario, counts, coverage: Coverage::default(), violation }
    }

    /// Shrinks the violation of the seed, if it has one. `on_run` hears of each run, and says whether to go on.
    pub(crate) fn shrink(&mut self, budget: Budget, on_run: &mut OnRun<'_>) -> Option<Minimised> {
        let whole = self.record()?;
        let wanted = whole.violation?.class();
        let streams = &whole.streams;
        let shrunk = shrink(&whole.reached, budget, &mut |candidate| {
            let left = Left::Reduced(candidate, streams);
            let ended = on_run().then(|| self.once(left, Model::new(None))).flatten();
            let Some(Ended { violation, object, reached, pins, counts, .. }) = ended else {
                return search::Ended { requests: 0, failing: None };
            };
            let violation = violation.filter(|violation| violation.class() == wanted);
            let found = violation.map(|violation| (violation, object));
            let failing = found.map(|found| Failing { reached, pins, found });
            search::Ended { requests: counts.requests, failing }
        })?;
        let (violation, object) = shrunk.found;
        let event_log = self.story(&shrunk.reduction, streams, object);
        Some(Minimised {
            reduction: shrunk.reduction,
            operations_before: shrunk.operations_before,
            runs: shrunk.runs,
            violation: Violation { event_log, ..violation },
        })
    }

    /// The whole run.
    fn record(&mut self) -> Option<Ended> {
        self.once(Left::Noted, Model::new(None))
    }

    /// All that happened in a run or, if that is much, what concerned the sector at fault.
    fn story(
        &mut self,
        only: &Reduction,
        streams: &LoadStreams,
        object: Option<Object>,
    ) -> Vec<LogEvent> {
        let left = Left::Reduced(only, streams);
        let mut log = |model| self.once(left, model).map(|ended| ended.log).unwrap_or_default();
        let all = log(Model::with_story(object));
        match object {
            Some(object) if story(&all).len() < all.len() => {
                story(&log(Model::new(Some(object)))).to_vec()
            }
            _ => story(&all).to_vec(),
        }
    }

    /// One run. A panic is a violation like any other.
    fn once(&mut self, left: Left<'_>, model: Model) -> Option<Ended> {
        let faults = !matches!(left, Left::Reduced(left, _) if !left.faults);
        let mut run = Run::new(self.seed, self.plan, (self.make)(faults)?, model, left);
        // Nothing of a panicked run is looked at again but what it noted.
        let result = catch_unwind(AssertUnwindSafe(|| run.rounds()));
        let failure =
            result.unwrap_or_else(|why| Err(CheckFailure::panicked("the FTL", &*why))).err();
        let object = failure.as_ref().and_then(CheckFailure::object);
        let violation = failure.map(|failure| run.violation(self.seed, failure, self.scenario));
        let log = run.model.event_log().to_vec();
        let Run { counts, reached, pins, streams, .. } = run;
        Some(Ended { violation, object, counts, reached, pins, streams, log })
    }
}
