//! Inodes in memory, by number, each once. Idle ones leave it when there are too many.

use nandscape_rt::invariant;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// A cache of inodes.
pub(crate) struct InodeCache<F> {
    files: RefCell<BTreeMap<u64, Rc<F>>>,
    limit: usize,
    /// Inodes at which idle ones are looked for next.
    full: Cell<usize>,
}

impl<F> InodeCache<F> {
    /// A cache that keeps up to `limit` inodes, and more only while they are in use.
    pub(crate) fn new(limit: usize) -> Self {
        Self { files: RefCell::default(), limit, full: Cell::new(0) }
    }

    pub(crate) fn get(&self, number: impl Into<u64>) -> Option<Rc<F>> {
        self.files.borrow().get(&number.into()).map(Rc::clone)
    }

    /// Keeps an inode. Makes room first by removing inodes that only the cache holds and that are idle.
    pub(crate) fn insert(
        &self,
        number: impl Into<u64>,
        file: Rc<F>,
        is_idle: impl Fn(&F) -> bool,
    ) -> Rc<F> {
        let mut files = self.files.borrow_mut();
        if files.len() >= self.limit.max(self.full.get()) {
            files.retain(|_, file| Rc::strong_count(file) > 1 || !is_idle(file));
            // If many are in use, the next search waits until there are twice as many.
            self.full.set(files.len() * 2);
        }
        let other = files.insert(number.into(), Rc::clone(&file));
        invariant!(other.is_none(), "an inode is once in memory");
        file
    }

    pub(crate) fn remove(&self, number: impl Into<u64>) {
        self.files.borrow_mut().remove(&number.into());
    }

    /// Looks for idle inodes again at the next insertion, if there are too many.
    pub(crate) fn retry_eviction(&self) {
        self.full.set(0);
    }

    pub(crate) fn len(&self) -> usize {
        self.files.borrow().len()
    }

    /// All inodes in order of their numbers.
    pub(crate) fn all(&self) -> Vec<Rc<F>> {
        self.files.borrow().values().map(Rc::clone).collect()
    }
}
