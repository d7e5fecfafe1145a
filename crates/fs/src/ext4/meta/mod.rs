//! The metadata of a mounted volume that belongs to no file: the superblock, metadata blocks in memory and
//! their journal, the block groups, and what is written once a transaction.

pub(crate) mod alloc;
mod deferred_metadata;
pub(crate) mod group;
mod inode_table;

use super::error::corrupt;
use super::format::{self, Place, Superblock};
use super::journal::{Buffers, Journal, Tid};
use super::rules::OmittedRule;
use super::tx::{BufferRef, Tx};
use crate::contract::Result;
use alloc::Allocator;
use deferred_metadata::DeferredMetadata;
use nandscape_rt::invariant;
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
    /// The rule that the mount leaves out.
    omit: Option<OmittedRule>,
}

impl Meta {
    pub(crate) fn new(
        sb: Superblock,
        buffers: Buffers,
        journal: Journal,
        alloc: Allocator,
        omit: Option<OmittedRule>,
    ) -> Self {
        Self {
            sb: RefCell::new(sb),
            buffers,
            journal,
            alloc,
            deferred: DeferredMetadata::default(),
            last_tid: Cell::new(None),
            partial_update: Rc::default(),
            omit,
        }
    }

    /// Whether this rule is left out.
    pub(crate) fn omits(&self, rule: OmittedRule) -> bool {
        self.omit == Some(rule)
    }

    pub(crate) fn blocks_count(&self) -> u64 {
        self.sb.borrow().blocks_count
    }

    pub(crate) fn has(&self, feature: format::Feature) -> bool {
        self.sb.borrow().has(feature)
    }

    /// Whether blocks carry checksums.
    pub(crate) fn has_checksums(&self) -> bool {
        self.has(format::Feature::METADATA_CSUM)
    }

    /// Begins an operation that changes up to `credits` metadata blocks and revokes up to `revokes`.
    pub(crate) async fn begin(&self, credits: u32, revokes: u32) -> Result<Tx> {
        // The first large file costs the superblock, too.
        let spare = u32::from(!self.has(format::Feature::LARGE_FILE));
        let credits = credits + spare + self.journal.revoke_credits(revokes);
        let tx = Tx::new(self.journal.start(credits).await?, Rc::clone(&self.partial_update));
        self.last_tid.set(Some(tx.tid()));
        Ok(tx)
    }

    /// A metadata block.
    pub(crate) async fn read_block(&self, block: u64) -> Result<BufferRef> {
        if block >= self.blocks_count() {
            return Err(corrupt("block number", Place::Block(block)));
        }
        Ok(self.buffers.get(block).await?)
    }

    pub(crate) fn is_committed(&self, tid: Tid) -> bool {
        let is_committed = self.journal.committed().reached(tid);
        invariant!(
            !is_committed || !self.journal.is_in_progress(tid),
            "{tid} is committed, and neither running nor being committed"
        );
        is_committed
    }

    /// Says in the superblock that a feature is in use, as Linux does with the first inode that needs it.
    pub(crate) async fn need(&self, tx: &Tx, feature: format::Feature) -> Result<()> {
        if self.has(feature) {
            return Ok(());
        }
        let mut features = self.sb.borrow().features();
        features.set(feature, true);
        self.sb.borrow_mut().set_features(features);
        self.write_superblock(tx).await
    }
}
