//! Inodes without a name that are still open: a mount finishes their removal (`ino_management` of `ORPHAN_INO`).

use crate::contract::{FsError, Result};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

/// Inode numbers of orphans.
pub(crate) struct Orphans {
    numbers: RefCell<BTreeSet<u32>>,
    /// As many as a checkpoint pack has room for.
    most: u32,
    changed: Cell<bool>,
}

impl Orphans {
    pub(crate) fn new(most: u32) -> Self {
        Self { numbers: RefCell::default(), most, changed: Cell::new(false) }
    }

    /// Adds an inode whose last name goes (`f2fs_acquire_orphan_inode`, `f2fs_add_orphan_inode`).
    ///
    /// # Errors
    /// [`FsError::NoSpace`] if the checkpoint pack has no room for another one.
    pub(crate) fn add(&self, number: u32) -> Result<()> {
        let mut numbers = self.numbers.borrow_mut();
        if numbers.len() as u32 >= self.most && !numbers.contains(&number) {
            return Err(FsError::NoSpace);
        }
        numbers.insert(number);
        self.changed.set(true);
        Ok(())
    }

    /// Removes an inode that is gone, or has a name again.
    pub(crate) fn remove(&self, number: u32) {
        if self.numbers.borrow_mut().remove(&number) {
            self.changed.set(true);
        }
    }

    /// All of them, in order.
    pub(crate) fn all(&self) -> Vec<u32> {
        self.numbers.borrow().iter().copied().collect()
    }

    /// Whether they differ from the last checkpoint's.
    pub(crate) const fn changed(&self) -> bool {
        self.changed.get()
    }

    pub(crate) fn note_written(&self) {
        self.changed.set(false);
    }
}
