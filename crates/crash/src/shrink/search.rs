//! The search for the least reduction that still fails: whole rounds first, then chunks of operations, ever smaller, then
//! single operations, until none can be left out alone; at last, earlier power cuts.
//!
//! The search is a function of the start and of what the runs return, so that it ends in the same way everywhere. Its
//! budget counts runs and requests, not time.

use super::numbers::Numbers;
use super::reduction::{Cut, Reduction, Round, Source};
use nandscape_rt::Nanos;
use std::collections::{BTreeMap, BTreeSet};

/// A delay after which a device has completed what it was sent.
const SETTLED: Nanos = Nanos::from_secs(1);
/// Delays of power cuts that are tried, shortest first.
const DELAYS: [Nanos; 5] =
    [Nanos(0), Nanos::from_us(10), Nanos::from_us(100), Nanos::from_ms(1), Nanos::from_ms(10)];

/// What a search may cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Budget {
    /// Runs.
    pub runs: u32,
    /// Requests to the device in all runs: an operation may cost a file system thousands, as cleaning does.
    pub requests: u64,
}

impl Budget {
    /// Of a search on a device: some seconds.
    pub const DEVICE: Self = Self { runs: 2_000, requests: 4_000_000 };
    /// Of a search on a file system: a minute at most.
    pub const FILES: Self = Self { runs: 1_000, requests: 4_000_000 };
}

/// How a run ended.
#[derive(Clone, Debug)]
pub struct Ended<T> {
    /// Requests to the device.
    pub requests: u64,
    /// None: it did not fail, or in another way, or the search is to end.
    pub failing: Option<Failing<T>>,
}

/// A run that failed as it is wanted.
#[derive(Clone, Debug)]
pub struct Failing<T> {
    /// What of the reduction was reached.
    pub reached: Reduction,
    /// The instants of the power cuts that came, by round, as delays from the last operation.
    pub pins: BTreeMap<u32, Cut>,
    /// What the run found.
    pub found: T,
}

/// The result of a search.
#[derive(Clone, Debug)]
pub struct Shrunk<T> {
    /// The least reduction that was found.
    pub reduction: Reduction,
    /// What its run found.
    pub found: T,
    /// Runs of the search.
    pub runs: u32,
    /// Operations that the run at the start had reached.
    pub operations_before: usize,
}

/// Runs a reduction.
pub type Runs<'a, T> = dyn FnMut(&Reduction) -> Ended<T> + 'a;

/// Shrinks `start` within a budget; none if it does not fail itself.
pub fn shrink<T>(start: &Reduction, budget: Budget, run: &mut Runs<'_, T>) -> Option<Shrunk<T>> {
    let Ended { requests, failing } = run(start);
    let first = failing?;
    let operations_before = first.reached.operations();
    let (reached, best) = (first.reached.clone(), start.clone());
    let tried = BTreeSet::from([best.clone()]);
    let mut search = Search { run, runs: 1, requests, budget, tried, best, failing: first };
    search.attempt(reached);
    search.pin_cuts();
    loop {
        let before = search.best.clone();
        search.simplify_cuts();
        search.drop_rounds();
        search.drop_extras();
        search.drop_operations();
        search.hasten_cuts();
        if search.best == before || search.is_over() {
            break;
        }
    }
    let Search { runs, best, failing, .. } = search;
    Some(Shrunk { reduction: best, found: failing.found, runs, operations_before })
}

/// A search in progress.
struct Search<'a, 'r, T> {
    run: &'a mut Runs<'r, T>,
    runs: u32,
    requests: u64,
    budget: Budget,
    tried: BTreeSet<Reduction>,
    /// The least reduction so far, and its run.
    best: Reduction,
    failing: Failing<T>,
}

impl<T> Search<'_, '_, T> {
    /// Whether the budget is used up.
    const fn is_over(&self) -> bool {
        self.runs >= self.budget.runs || self.requests >= self.budget.requests
    }

    /// Takes a candidate if it fails, and then the part of it that its run has reached. Whether it fails.
    fn attempt(&mut self, candidate: Reduction) -> bool {
        if self.is_over() || !self.tried.insert(candidate.clone()) {
            return false;
        }
        self.runs += 1;
        let Ended { requests, failing } = (self.run)(&candidate);
        self.requests += requests;
        let Some(failing) = failing else { return false };
        let reached = failing.reached.clone();
        (self.best, self.failing) = (candidate, failing);
        self.attempt(reached);
        true
    }

    /// Tries the best reduction after a change.
    fn attempt_with(&mut self, change: impl FnOnce(&mut Reduction)) -> bool {
        let mut candidate = self.best.clone();
        change(&mut candidate);
        self.attempt(candidate)
    }

    fn attempt_cut(&mut self, round: u32, cut: Cut) -> bool {
        self.attempt_with(|it| it.rounds.entry(round).or_default().cut = cut)
    }

    fn numbers(&self) -> Vec<u32> {
        self.best.rounds.keys().copied().collect()
    }

    /// Replaces the triggers of power cuts, which count what will be left out, by delays.
    fn pin_cuts(&mut self) {
        let pins = self.failing.pins.clone();
        let pinned = |it: &mut Reduction| {
            for (round, cut) in &pins {
                it.rounds.entry(*round).and_modify(|round| round.cut = *cut);
            }
        };
        if !self.attempt_with(pinned) {
            for (round, cut) in pins {
                self.attempt_cut(round, cut);
            }
        }
    }

    /// A power cut that comes when everything has settled does not bind the last operation; the last load may need none.
    fn simplify_cuts(&mut self) {
        let numbers = self.numbers();
        if let Some(last) = numbers.last() {
            self.attempt_cut(*last, Cut::None);
        }
        for round in numbers {
            if self.best.rounds.get(&round).is_some_and(|round| round.cut != Cut::None) {
                self.attempt_cut(round, Cut::After(SETTLED));
            }
        }
    }

    fn drop_rounds(&mut self) {
        let numbers = self.numbers();
        let Some(last) = numbers.last().filter(|_| numbers.len() > 1) else { return };
        self.attempt_with(|it| it.rounds.retain(|round, _| round == last));
        for round in numbers.iter().rev() {
            if self.best.rounds.len() > 1 {
                self.attempt_with(|it| drop(it.rounds.remove(round)));
            }
        }
    }

    /// Faults, the filling of the device, and power cuts of recoveries: all at once, then one after the other.
    fn drop_extras(&mut self) {
        self.attempt_with(|it| it.faults = false);
        self.attempt_with(|it| it.fill = Numbers::default());
        let extras: [fn(&mut Round) -> &mut Numbers; 2] =
            [|round| &mut round.recovery, |round| &mut round.mounts];
        for extra in extras {
            self.attempt_with(|it| {
                it.rounds.values_mut().for_each(|round| *extra(round) = Numbers::default());
            });
            for number in self.numbers() {
                let left = self.best.rounds.get_mut(&number).map(|round| extra(round).clone());
                for cut in left.iter().flat_map(Numbers::iter) {
                    self.attempt_with(|it| {
                        it.rounds.entry(number).and_modify(|round| extra(round).remove(cut));
                    });
                }
            }
        }
    }

    /// Delta debugging: what is left out is a chunk, and no chunk of one operation in the end.
    fn drop_operations(&mut self) {
        let mut size = operations(&self.best).len().div_ceil(2).max(1);
        loop {
            let (mut at, mut dropped) = (0, false);
            loop {
                let left = operations(&self.best);
                let Some(rest) = left.get(at..).filter(|rest| !rest.is_empty()) else { break };
                let chunk = &rest[..size.min(rest.len())];
                match self.attempt_with(|it| chunk.iter().for_each(|one| remove(it, one))) {
                    true => dropped = true,
                    false => at += size,
                }
            }
            match (size, dropped) {
                (1, false) => return,
                (1, true) => {}
                _ => size = size.div_ceil(2),
            }
            if self.is_over() {
                return;
            }
        }
    }

    /// Earlier power cuts, at round delays.
    fn hasten_cuts(&mut self) {
        for number in self.numbers() {
            match self.best.rounds.get(&number).map(|round| round.cut) {
                Some(Cut::After(now)) => {
                    let mut earlier = DELAYS.into_iter().filter(|delay| *delay < now);
                    earlier.find(|delay| self.attempt_cut(number, Cut::After(*delay)));
                }
                Some(Cut::AfterCommands(mut count)) => {
                    while count > 0 && self.attempt_cut(number, Cut::AfterCommands(count / 2)) {
                        count /= 2;
                    }
                }
                _ => {}
            }
        }
    }
}

/// An operation that is left: of a round, or of the filling.
type Operation = (Option<(u32, Source)>, u32);

/// All operations, in order.
fn operations(reduction: &Reduction) -> Vec<Operation> {
    let fill = reduction.fill.iter().map(|number| (None, number));
    let rounds = reduction.rounds.iter().flat_map(|(round, of)| {
        let of_source = |(source, numbers): (&Source, &Numbers)| {
            let place = Some((*round, *source));
            numbers.iter().map(|number| (place, number)).collect::<Vec<_>>()
        };
        of.operations.iter().flat_map(of_source).collect::<Vec<_>>()
    });
    fill.chain(rounds).collect()
}

fn remove(reduction: &mut Reduction, (place, number): &Operation) {
    let Some((round, source)) = place else { return reduction.fill.remove(*number) };
    let round = reduction.rounds.get_mut(round);
    let numbers = round.and_then(|round| round.operations.get_mut(source));
    numbers.into_iter().for_each(|numbers| numbers.remove(*number));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A run of three rounds and a filling, of 40 operations each, with faults and cuts.
    fn start() -> Reduction {
        let round = |_| Round {
            operations: BTreeMap::from([(Source::Host, Numbers::up_to(40))]),
            recovery: Numbers::up_to(2),
            ..Round::default()
        };
        let rounds = (0..3).map(|number| (number, round(number))).collect();
        Reduction { fill: Numbers::up_to(40), faults: true, rounds }
    }

    /// Fails while all of these operations are left.
    fn fails(needed: &[Operation]) -> impl Fn(&Reduction) -> Ended<()> {
        move |reduction| {
            let left = operations(reduction);
            let pins = reduction.rounds.keys().map(|round| (*round, Cut::After(Nanos(700))));
            let failing = Failing { reached: reduction.clone(), pins: pins.collect(), found: () };
            let fails = needed.iter().all(|one| left.contains(one));
            Ended { requests: left.len() as u64, failing: fails.then_some(failing) }
        }
    }

    fn budget(runs: u32) -> Budget {
        Budget { runs, requests: u64::MAX }
    }

    fn place(index: usize) -> Option<(u32, Source)> {
        [None, Some((0, Source::Host)), Some((1, Source::Host)), Some((2, Source::Host))][index]
    }

    proptest! {
        /// What is found still fails, and no operation, round or power cut of a recovery can be left out of it alone.
        #[test]
        fn the_least_fails_and_nothing_less(
            needed in proptest::collection::btree_set((0_usize..4, 1_u32..=40), 1..8)
        ) {
            let needed: Vec<Operation> =
                needed.into_iter().map(|(index, number)| (place(index), number)).collect();
            let fails = fails(&needed);
            let shrunk = shrink(&start(), budget(10_000), &mut |it| fails(it)).unwrap();
            prop_assert_eq!(shrunk.operations_before, 160);
            let mut left = operations(&shrunk.reduction);
            left.sort_unstable();
            let mut wanted = needed.clone();
            wanted.sort_unstable();
            prop_assert_eq!(left, wanted);
            prop_assert!(!shrunk.reduction.faults);
            prop_assert!(shrunk.reduction.rounds.values().all(|round| round.recovery.is_empty()));
            let last = *shrunk.reduction.rounds.keys().last().unwrap();
            prop_assert_eq!(shrunk.reduction.rounds[&last].cut, Cut::None);
        }

        /// The budget is kept, and what is found within it fails.
        #[test]
        fn the_budget_is_kept(runs_max in 1_u32..60, number in 1_u32..=40) {
            let needed = [(place(2), number), (place(0), 3)];
            let fails = fails(&needed);
            let mut runs = 0;
            let shrunk = shrink(&start(), budget(runs_max), &mut |it| {
                runs += 1;
                fails(it)
            })
            .unwrap();
            prop_assert!(runs <= runs_max && runs == shrunk.runs);
            prop_assert!(fails(&shrunk.reduction).failing.is_some());
        }
    }

    /// Runs that cost as much as the budget has are the last ones.
    #[test]
    fn requests_are_counted() {
        let needed = [(place(2), 7)];
        let fails = fails(&needed);
        let (mut runs, mut requests) = (0, 0);
        let budget = Budget { runs: u32::MAX, requests: 1_000 };
        let shrunk = shrink(&start(), budget, &mut |it| {
            assert!(requests < 1_000, "after {runs} runs");
            let ended = fails(it);
            (runs, requests) = (runs + 1, requests + ended.requests);
            ended
        });
        assert_eq!(shrunk.unwrap().runs, runs);
        assert!(requests >= 1_000, "the search ended before");
    }

    /// A start that does not fail is not shrunk.
    #[test]
    fn what_passes_is_not_shrunk() {
        let mut passes = |_: &Reduction| Ended::<()> { requests: 1, failing: None };
        assert!(shrink(&start(), budget(100), &mut passes).is_none());
    }

    /// What a run does not reach is left out.
    #[test]
    fn what_is_not_reached_is_left_out() {
        let mut run = |reduction: &Reduction| {
            let mut reached = reduction.clone();
            reached.rounds.retain(|round, _| *round < 1);
            let round = reduction.rounds.get(&0);
            let fails = round.is_some_and(|round| round.of(Source::Host).has(7));
            let failing = Failing { reached, pins: BTreeMap::new(), found: () };
            Ended { requests: 1, failing: fails.then_some(failing) }
        };
        let shrunk = shrink(&start(), budget(3), &mut run).unwrap();
        assert_eq!(shrunk.reduction.rounds.len(), 1);
    }
}
