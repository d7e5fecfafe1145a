//! The slab of tasks and the queue of those that are ready.
//!
//! A task stands in the ready queue at most once; a wake of a queued task changes nothing, a wake
//! of the task being polled queues it behind everything that is ready. Ids carry a generation, so a
//! wake that comes after its task ended has no effect.

use crate::deadlock::Waiting;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::Waker;

/// A future of an erased type: what awaits it is compiled without the code behind it.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// Names a task, for ever: a slot that is used again gets another generation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TaskId {
    slot: u32,
    generation: u32,
}

impl TaskId {
    /// No task at all.
    pub(crate) const NONE: Self = Self { slot: u32::MAX, generation: 0 };

    pub(crate) const fn new(slot: u32, generation: u32) -> Self {
        Self { slot, generation }
    }
}

/// What a task waits for, kept for the report of a deadlock.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wait {
    /// A primitive: its kind, and the name it was given.
    On(&'static str, &'static str),
    /// One of several things of a kind, by number.
    Numbered(&'static str, u16),
    /// The end of another task.
    Task(TaskId),
}

/// The part of a task that leaves the slab while it is polled.
pub(crate) struct Body {
    pub(crate) future: BoxFuture<'static, ()>,
    pub(crate) waker: Waker,
}

struct Slot {
    generation: u32,
    queued: bool,
    aborted: bool,
    /// Whether a run waits for this task to end.
    awaited: bool,
    body: Option<Body>,
    name: Cow<'static, str>,
    waits: Vec<Wait>,
}

/// All tasks.
#[derive(Default)]
pub(crate) struct Tasks {
    slots: Vec<Slot>,
    free: Vec<u32>,
    ready: VecDeque<TaskId>,
    awaited: usize,
}

impl Tasks {
    /// Reserves an id for a task; [`Tasks::start`] gives it its body.
    pub(crate) fn reserve(&mut self, name: Cow<'static, str>, awaited: bool) -> TaskId {
        self.awaited += usize::from(awaited);
        if let Some(slot) = self.free.pop() {
            let reused = &mut self.slots[slot as usize];
            (reused.name, reused.awaited) = (name, awaited);
            return TaskId::new(slot, reused.generation);
        }
        self.slots.push(Slot {
            generation: 0,
            queued: false,
            aborted: false,
            awaited,
            body: None,
            name,
            waits: Vec::new(),
        });
        TaskId::new(self.slots.len() as u32 - 1, 0)
    }

    /// Gives a reserved task its body and queues it.
    pub(crate) fn start(&mut self, id: TaskId, body: Body) {
        if let Some(slot) = self.slot(id) {
            slot.body = Some(body);
        }
        self.wake(id);
    }

    /// Queues a task, unless it is queued or over.
    #[inline]
    pub(crate) fn wake(&mut self, id: TaskId) {
        if let Some(slot) = self.slot(id)
            && !slot.queued
        {
            slot.queued = true;
            self.ready.push_back(id);
        }
    }

    /// The task to poll next, with its body.
    #[inline]
    pub(crate) fn next_ready(&mut self) -> Option<(TaskId, Body)> {
        while let Some(id) = self.ready.pop_front() {
            if let Some(slot) = self.slot(id) {
                slot.queued = false;
                slot.waits.clear();
                if let Some(body) = slot.body.take() {
                    return Some((id, body));
                }
            }
        }
        None
    }

    /// How many entries the ready queue has.
    #[inline]
    pub(crate) fn ready_len(&self) -> usize {
        self.ready.len()
    }

    /// Takes back the body of a task that is not over; returns it if the task was aborted meanwhile.
    #[inline]
    pub(crate) fn put_back(&mut self, id: TaskId, body: Body) -> Option<Body> {
        match self.slot(id) {
            Some(slot) if !slot.aborted => {
                slot.body = Some(body);
                None
            }
            _ => {
                self.remove(id);
                Some(body)
            }
        }
    }

    /// Frees the slot of a task that is over.
    pub(crate) fn remove(&mut self, id: TaskId) {
        let Some(slot) = self.slot(id) else { return };
        slot.generation = slot.generation.wrapping_add(1);
        (slot.queued, slot.aborted) = (false, false);
        slot.waits.clear();
        let awaited = std::mem::take(&mut slot.awaited);
        self.awaited -= usize::from(awaited);
        self.free.push(id.slot);
    }

    /// Ends a task: its body, to be dropped by the caller; a task being polled ends after its poll.
    pub(crate) fn abort(&mut self, id: TaskId) -> Option<Body> {
        let slot = self.slot(id)?;
        let body = slot.body.take();
        slot.aborted = true;
        if body.is_some() {
            self.remove(id);
        }
        body
    }

    /// Takes out any one task, for the end of the executor.
    pub(crate) fn take_any(&mut self) -> Option<Body> {
        let slot = self.slots.iter().position(|slot| slot.body.is_some())?;
        self.abort(TaskId::new(slot as u32, self.slots[slot].generation))
    }

    /// Notes what a task waits for.
    pub(crate) fn note(&mut self, id: TaskId, wait: Wait) {
        if let Some(slot) = self.slot(id) {
            slot.waits.push(wait);
        }
    }

    /// How many tasks are not over, of those that a run waits for.
    pub(crate) fn awaited(&self) -> usize {
        self.awaited
    }

    /// Every task that is not over, or of these those that a run waits for, and what it waits for, in
    /// words.
    pub(crate) fn waiting(&self, awaited_only: bool) -> Vec<Waiting> {
        let unfinished = self.slots.iter().filter(|slot| slot.body.is_some());
        unfinished
            .filter(|slot| slot.awaited || !awaited_only)
            .map(|slot| Waiting {
                task: slot.name.to_string(),
                on: slot.waits.iter().map(|wait| self.describe(wait)).collect(),
            })
            .collect()
    }

    fn describe(&self, wait: &Wait) -> String {
        match *wait {
            Wait::On(kind, name) => format!("{kind} `{name}`"),
            Wait::Numbered(kind, number) => format!("{kind} {number}"),
            Wait::Task(id) => match self.slots.get(id.slot as usize) {
                Some(slot) => format!("task `{}`", slot.name),
                None => "a task".to_owned(),
            },
        }
    }

    #[inline]
    fn slot(&mut self, id: TaskId) -> Option<&mut Slot> {
        self.slots.get_mut(id.slot as usize).filter(|slot| slot.generation == id.generation)
    }
}
