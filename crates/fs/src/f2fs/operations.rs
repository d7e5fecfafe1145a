//! Operations and the checkpoint lock.
//!
//! An operation that changes something holds a share of the lock, an [`Op`], from its first change to its last
//! (`f2fs_lock_op`); a checkpoint holds it exclusively (`cp_rwsem`). So a checkpoint has an operation whole or not at all.
//! The lock is not re-entrant: what takes an `&Op` never begins another. It stands where ext4 has a transaction: after
//! `invalidate_lock`, before `extent_lock` ([`crate::vfs`]).

use super::mount_info::MountInfo;
use crate::contract::Result;
use nandscape_rt::Nanos;
use nandscape_rt::sync::{ReadGuard, RwLock, WriteGuard};
use std::cell::Cell;
use std::rc::Rc;

/// A share of the checkpoint lock, or all of it.
pub(crate) struct Op(#[allow(dead_code, reason = "held for what its drop does")] Held);

enum Held {
    Share(#[allow(dead_code, reason = "held")] ReadGuard<()>),
    Alone(#[allow(dead_code, reason = "held")] WriteGuard<()>),
}

/// Operations of a mounted volume.
pub(crate) struct Operations {
    mount: Rc<MountInfo>,
    checkpoint_lock: RwLock<()>,
    /// When one began last.
    last: Cell<Nanos>,
}

impl Operations {
    pub(crate) fn new(mount: Rc<MountInfo>) -> Self {
        let rt = &mount.env.rt;
        let checkpoint_lock = RwLock::new(rt, "checkpoint lock", ());
        let last = Cell::new(rt.now());
        Self { mount, checkpoint_lock, last }
    }

    /// Time since the last operation began.
    pub(crate) fn idle_time(&self) -> Nanos {
        self.mount.env.rt.now().saturating_sub(self.last.get())
    }

    /// Begins an operation (`f2fs_lock_op`). The caller has none.
    ///
    /// # Errors
    /// [`FsError::ReadOnly`](crate::contract::FsError::ReadOnly) once the volume was stopped by an error.
    pub(crate) async fn begin(&self) -> Result<Op> {
        self.last.set(self.mount.env.rt.now());
        let share = self.checkpoint_lock.read().await;
        self.mount.check_running()?;
        Ok(Op(Held::Share(share)))
    }

    /// Keeps operations out, as a checkpoint does (`f2fs_lock_all`).
    pub(crate) async fn freeze(&self) -> Op {
        Op(Held::Alone(self.checkpoint_lock.write().await))
    }
}
