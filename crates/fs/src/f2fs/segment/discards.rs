//! Free segments that wait for their discard.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

/// Segments that wait for their discard.
#[derive(Default)]
pub(crate) struct Discards {
    pub(crate) waiting: RefCell<BTreeSet<u32>>,
    pub(crate) running: Cell<bool>,
    /// Requests sent since mount.
    pub(crate) sent: Cell<u64>,
}
