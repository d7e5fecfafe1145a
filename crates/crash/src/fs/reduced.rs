//! Runs of a seed of which a part is left.
//!
//! An operation of a writer draws what it is about, and what is there decides what it can be. So that an operation is the
//! same whatever is left out before it, each begins where its draws began in the whole run, which is recorded first.

use super::power_switch::{Device, PowerSwitch, cut_is_due};
use crate::device::drive::CheckFailure;
use crate::draw::plan::{CutPlan, Trigger};
use crate::shrink::reduction::{Cut, Reduction, Source};
use nandscape_rt::combine::{Either, select2};
use nandscape_rt::sync::Notify;
use nandscape_rt::{Handle, Nanos, Stream};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::pin::pin;
use std::rc::Rc;

/// A writer in a round.
pub(super) type InRound = (u32, u16);

/// Where the draws of each operation begin, by number.
pub(super) type Draws = BTreeMap<InRound, Vec<Stream>>;

/// What is left of a seed's run.
#[derive(Clone, Debug)]
pub(super) enum Left {
    /// All of it.
    All,
    /// All of it; what it reaches is noted.
    Noted,
    /// This, in which the draws of operations begin there; what it reaches is noted.
    Reduced(Rc<Reduction>, Rc<Draws>),
}

/// The last operation that began: when, and after how many media commands.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct LastOperation {
    pub(super) at: Nanos,
    pub(super) commands: u64,
}

/// An operation that begins now, or would.
pub(super) fn last_operation(handle: &Handle, device: &Device) -> LastOperation {
    let commands = device.with(|switch| switch.media_commands());
    LastOperation { at: handle.now(), commands }
}

/// What a run has reached.
#[derive(Default, Debug)]
pub(super) struct Notes {
    pub(super) reached: Reduction,
    /// The instants of its power cuts.
    pub(super) pins: BTreeMap<u32, Cut>,
    pub(super) draws: Draws,
    pub(super) last: LastOperation,
}

/// The operations of a round's writers.
#[derive(Clone)]
pub(super) struct Operations {
    left: Left,
    notes: Rc<RefCell<Notes>>,
    round: u32,
    /// Operations that are left and have not begun.
    waiting: Rc<Cell<usize>>,
    all_began: Notify,
}

impl Operations {
    pub(super) fn new(
        handle: &Handle,
        left: &Left,
        notes: &Rc<RefCell<Notes>>,
        round: u32,
    ) -> Self {
        let waiting = match left {
            Left::Reduced(left, _) => left.rounds.get(&round).map_or(0, |round| round.len()),
            Left::All | Left::Noted => 0,
        };
        Self {
            left: left.clone(),
            notes: Rc::clone(notes),
            round,
            waiting: Rc::new(Cell::new(waiting)),
            all_began: Notify::new(handle, "the last operation that is left"),
        }
    }

    /// Whether a writer's operation is to be done; its draws come from `rng`.
    pub(super) fn begins(
        &self,
        writer: u16,
        number: u32,
        rng: &mut Stream,
        now: impl FnOnce() -> LastOperation,
    ) -> bool {
        let key = (self.round, writer);
        match &self.left {
            Left::All => return true,
            Left::Noted => {
                self.notes.borrow_mut().draws.entry(key).or_default().push(rng.clone());
            }
            Left::Reduced(left, draws) => {
                let round = left.rounds.get(&self.round);
                let numbers = round.and_then(|round| round.operations.get(&Source::Writer(writer)));
                let begins = draws.get(&key).and_then(|draws| draws.get(number as usize));
                let Some(begins) = begins.filter(|_| numbers.is_some_and(|left| left.has(number)))
                else {
                    return false;
                };
                rng.clone_from(begins);
            }
        }
        let mut notes = self.notes.borrow_mut();
        notes.last = now();
        let round = notes.reached.rounds.entry(self.round).or_default();
        round.operations.entry(Source::Writer(writer)).or_default().insert(number);
        self.waiting.set(self.waiting.get().saturating_sub(1));
        if self.waiting.get() == 0 {
            self.all_began.notify_one();
        }
        true
    }

    /// The load begins, at this point.
    pub(super) fn load_begins(&self, at: LastOperation) {
        self.notes.borrow_mut().last = at;
    }

    /// The writers have ended, and nothing begins any more.
    pub(super) fn have_ended(&self) {
        self.waiting.set(0);
        self.all_began.notify_one();
    }

    /// Power is to be cut, at this point.
    pub(super) fn cut_comes(&self, at: LastOperation, off: bool) {
        let notes = &mut *self.notes.borrow_mut();
        let pin = match off {
            true => Cut::AfterCommands(at.commands - notes.last.commands),
            false => Cut::After(at.at - notes.last.at),
        };
        notes.pins.insert(self.round, pin);
    }

    /// Waits until each operation that is left has begun.
    pub(super) async fn have_begun(&self) {
        if self.waiting.get() > 0 {
            self.all_began.notified().await;
        }
    }
}

/// Runs a load until power is to be cut.
pub(super) async fn until_cut(
    load: impl Future<Output = Result<(), CheckFailure>>,
    handle: &Handle,
    device: &Device,
    cut: &CutPlan,
    operations: &Operations,
) -> Result<(), CheckFailure> {
    let cut_is_due = async {
        let plan = |trigger| CutPlan { trigger, delay: Nanos::ZERO, ..cut.clone() };
        let plan = match cut.trigger {
            Trigger::LastRequest => plan(Trigger::Instant(cut.delay)),
            Trigger::OffAfterLastRequest(n) => plan(Trigger::OffAfter(n)),
            _ => return cut_is_due(handle, device, cut).await,
        };
        operations.have_begun().await;
        cut_is_due(handle, device, &plan).await;
    };
    let mut cut_is_due = pin!(cut_is_due);
    match select2(load, cut_is_due.as_mut()).await {
        // What the load says when power is off is void.
        Either::First(Err(_)) if device.with(PowerSwitch::is_off) => Ok(()),
        Either::First(Ok(())) if cut.trigger == Trigger::LastRequest => {
            operations.have_ended();
            cut_is_due.await;
            Ok(())
        }
        Either::First(ended) => ended,
        Either::Second(()) => Ok(()),
    }
}
