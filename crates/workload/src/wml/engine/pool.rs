//! Which files of a fileset are there, which are taken, and who gets one next.
//!
//! After fileset.c: a flowop that is about to open, create, stat or delete a file picks one and has it
//! to himself until that is done. Picks go round, by number; one that is taken is passed over. Who
//! finds no idle one waits; who finds nothing of the kind he wants gets none.

use super::super::tree::Leaf;
use nandscape_rt::Handle;
use nandscape_rt::sync::Notify;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// What is wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FileState {
    /// Something that is there.
    Present,
    /// Something that is not.
    Absent,
}

/// How it is chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum By {
    /// The next, of those that this thread went through; 0: of those that all went through.
    Rotation(u32),
    /// This one, or the next behind it.
    Index(u32),
}

#[derive(Clone, Copy, Default)]
struct Entry {
    is_busy: bool,
    /// How many have it open.
    opens: u32,
}

#[derive(Default)]
struct State {
    entries: Vec<Entry>,
    present: BTreeSet<u32>,
    absent: BTreeSet<u32>,
    busy: usize,
    absent_next: u32,
    present_next: BTreeMap<u32, u32>,
}

impl State {
    fn tree(&self, want: FileState) -> &BTreeSet<u32> {
        match want {
            FileState::Present => &self.present,
            FileState::Absent => &self.absent,
        }
    }

    /// The first that is not busy, from `start` on and round.
    fn idle_from(&self, want: FileState, start: u32) -> Option<u32> {
        let tree = self.tree(want);
        let round = tree.range(start..).chain(tree.range(..start));
        round.copied().find(|index| !self.entries[*index as usize].is_busy)
    }

    /// The first from `start` on and round, busy or not.
    fn first_from(&self, want: FileState, start: u32) -> Option<u32> {
        let tree = self.tree(want);
        tree.range(start..).next().or_else(|| tree.first()).copied()
    }

    fn take(&mut self, want: FileState, by: By) -> Option<u32> {
        let start = match (by, want) {
            (By::Index(index), _) => index,
            (By::Rotation(_), FileState::Absent) => self.absent_next,
            (By::Rotation(thread), FileState::Present) => {
                self.present_next.get(&thread).copied().unwrap_or_default()
            }
        };
        let next = self.first_from(want, start)? + 1;
        match (by, want) {
            (By::Index(_), _) => {}
            (By::Rotation(_), FileState::Absent) => self.absent_next = next,
            (By::Rotation(thread), FileState::Present) => {
                self.present_next.insert(thread, next);
            }
        }
        let index = self.idle_from(want, start)?;
        self.entries[index as usize].is_busy = true;
        self.busy += 1;
        Some(index)
    }
}

/// Files, directories or empty directories of one fileset.
pub(super) struct Pool {
    state: RefCell<State>,
    /// Something is idle again.
    idle: Notify,
}

impl Pool {
    /// All idle, and there as their leaves say.
    pub(super) fn new(rt: &Handle, leaves: impl Iterator<Item = bool>) -> Self {
        let mut state = State::default();
        for (index, exists) in leaves.enumerate() {
            state.entries.push(Entry::default());
            let tree = if exists { &mut state.present } else { &mut state.absent };
            tree.insert(index as u32);
        }
        Self { state: RefCell::new(state), idle: Notify::new(rt, "an idle file") }
    }

    pub(super) fn of(rt: &Handle, leaves: &[Leaf]) -> Self {
        Self::new(rt, leaves.iter().map(|leaf| leaf.exists))
    }

    pub(super) fn len(&self) -> usize {
        self.state.borrow().entries.len()
    }

    /// Takes one; none if there is nothing of the kind.
    pub(super) async fn pick(&self, want: FileState, by: By) -> Option<u32> {
        while {
            let state = self.state.borrow();
            state.busy > 0 && state.busy == state.entries.len()
        } {
            self.idle.notified().await;
        }
        self.state.borrow_mut().take(want, by)
    }

    /// Takes this one, when no other thread has it any more.
    pub(super) async fn take(&self, index: u32) {
        while self.state.borrow().entries[index as usize].is_busy {
            self.idle.notified().await;
        }
        let mut state = self.state.borrow_mut();
        state.entries[index as usize].is_busy = true;
        state.busy += 1;
    }

    /// How many have it open.
    pub(super) fn opens(&self, index: u32) -> u32 {
        self.state.borrow().entries[index as usize].opens
    }

    /// Gives one back as it was.
    pub(super) fn give_back(&self, index: u32) {
        self.release(index, |opens| opens);
    }

    /// Gives one back that is open once more.
    pub(super) fn opened(&self, index: u32) {
        self.release(index, |opens| opens + 1);
    }

    /// Gives one back that is open once less; after it was deleted, it is not open anyway.
    pub(super) fn closed(&self, index: u32) {
        self.release(index, |opens| opens.saturating_sub(1));
    }

    fn release(&self, index: u32, opens: impl FnOnce(u32) -> u32) {
        let mut state = self.state.borrow_mut();
        state.busy -= 1;
        let entry = &mut state.entries[index as usize];
        *entry = Entry { is_busy: false, opens: opens(entry.opens) };
        drop(state);
        self.idle.notify_waiters();
    }

    /// Says that one is there.
    pub(super) fn appeared(&self, index: u32) {
        let mut state = self.state.borrow_mut();
        state.absent.remove(&index);
        state.present.insert(index);
    }

    /// Notes that one is gone, and has no owner.
    pub(super) fn vanished(&self, index: u32) {
        let mut state = self.state.borrow_mut();
        state.present.remove(&index);
        state.absent.insert(index);
        state.entries[index as usize].opens = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_rt::Executor;

    fn with_pool(exists: [bool; 4], test: impl AsyncFnOnce(&Pool) + 'static) {
        let mut executor = Executor::on_virtual_clock();
        let pool = Pool::new(&executor.handle(), exists.into_iter());
        executor.block_on(async move { test(&pool).await }).unwrap();
    }

    /// Picks go round, pass over what is taken, and end when nothing is left.
    #[test]
    fn picks_go_round() {
        with_pool([true, false, true, true], async |pool: &Pool| {
            let all = By::Rotation(0);
            assert_eq!(pool.pick(FileState::Present, all).await, Some(0));
            assert_eq!(pool.pick(FileState::Present, all).await, Some(2));
            pool.give_back(0);
            assert_eq!(pool.pick(FileState::Present, all).await, Some(3));
            assert_eq!(pool.pick(FileState::Present, all).await, Some(0));
            assert_eq!(
                pool.pick(FileState::Present, all).await,
                None,
                "all that are there are taken"
            );
            pool.give_back(2);
            assert_eq!(
                pool.pick(FileState::Present, By::Rotation(7)).await,
                Some(2),
                "its own round"
            );
            assert_eq!(pool.pick(FileState::Absent, By::Index(3)).await, Some(1));
        });
    }

    /// What appears and vanishes is picked as what it is now.
    #[test]
    fn files_come_and_go() {
        with_pool([false, true, true, true], async |pool: &Pool| {
            let all = By::Rotation(0);
            let made = pool.pick(FileState::Absent, all).await.unwrap();
            pool.appeared(made);
            pool.opened(made);
            assert_eq!((made, pool.opens(made)), (0, 1));
            assert_eq!(pool.pick(FileState::Absent, all).await, None);
            pool.take(made).await;
            pool.vanished(made);
            pool.give_back(made);
            assert_eq!((pool.opens(made), pool.pick(FileState::Absent, all).await), (0, Some(0)));
        });
    }

    /// A thread that finds every file taken waits until one is free.
    #[test]
    fn without_an_idle_file_a_thread_waits() {
        let mut executor = Executor::on_virtual_clock();
        let rt = executor.handle();
        let pool = std::rc::Rc::new(Pool::new(&rt, [true].into_iter()));
        let other = std::rc::Rc::clone(&pool);
        let result = executor.block_on(async move {
            assert_eq!(pool.pick(FileState::Present, By::Rotation(0)).await, Some(0));
            let waiting = rt
                .spawn("waits", async move { other.pick(FileState::Present, By::Index(0)).await });
            rt.sleep(nandscape_rt::Nanos(5)).await;
            assert!(!waiting.is_finished());
            pool.give_back(0);
            waiting.await
        });
        assert_eq!(result.unwrap().unwrap(), Some(0));
    }
}
