//! The metadata of a mounted volume that belongs to no file: the superblock, metadata blocks in memory and
//! their journal, the block groups, and what is written once a transaction.

pub(crate) mod alloc;
pub(crate) mod deferred_metadata;
pub(crate) mod group;

use super::format::Superblock;
use super::journal::{Buffers, Journal, Tid};
use alloc::Allocator;
use deferred_metadata::DeferredMetadata;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// What all operations on a volume share of its metadata.
pub(crate) struct Meta {
    pub(crate) sb: RefCell<Superblock>,
    pub(crate) buffers: Buffers,
    pub(crate) journal: Journal,
    pub(crate) alloc: Allocator,
    pub(crate) deferred: DeferredMetadata,
    /// The newest transaction that anything was part of.
    pub(crate) last_tid: Cell<Option<Tid>>,
    /// Whether an error left an operation half done, so that the volume has to be checked.
    pub(crate) partial_update: Rc<Cell<bool>>,
}
