//! Taking the area into use, and giving it back.

use crate::ext4::journal::disk::{FileArea, Superblock};
use crate::ext4::journal::error::JournalError;
use crate::ext4::journal::log::{Limits, MIN_BLOCKS, Ring};
use crate::ext4::journal::state::Shared;
use std::rc::Rc;

/// Share of the log that all records have by default.
const SHARE_BY_DEFAULT: u32 = 4;

impl Shared {
    /// Takes the end of an empty log as an area of file-level records, durably.
    pub(in crate::ext4::journal) async fn enable_files(
        self: &Rc<Self>,
        slots: u32,
        slot_blocks: u32,
    ) -> Result<FileArea, JournalError> {
        self.alive()?;
        let mut superblock = self.superblock.lock().await;
        if superblock.files().is_some() {
            return Err(JournalError::NeedsRecovery);
        }
        self.check_unused(&superblock)?;
        let slot_blocks = match slot_blocks {
            0 => superblock.blocks() / SHARE_BY_DEFAULT / slots.max(1),
            given => given,
        };
        let area = slots.checked_mul(slot_blocks).filter(|&area| area > 0);
        let room = superblock.blocks() - superblock.first();
        let left = area.and_then(|area| room.checked_sub(area)).filter(|&left| left >= MIN_BLOCKS);
        let left = left.ok_or(JournalError::NoRoom("no room for file records"))?;
        let first = superblock.first() + left;
        let epoch = superblock.start().tid.0;
        let layout = FileArea { first, slots, slot_blocks, epoch, applying: None };
        superblock.set_files(layout);
        self.resize(&superblock);
        self.write_superblock(&superblock, true).await?;
        Ok(layout)
    }

    /// Gives the area back to the log, which is empty.
    pub(in crate::ext4::journal) async fn disable_files(
        self: &Rc<Self>,
    ) -> Result<(), JournalError> {
        let mut superblock = self.superblock.lock().await;
        self.check_unused(&superblock)?;
        superblock.clear_files();
        self.resize(&superblock);
        self.write_superblock(&superblock, true).await
    }

    fn check_unused(&self, superblock: &Superblock) -> Result<(), JournalError> {
        let state = self.state.borrow();
        let idle = state.running.is_none() && state.committing.is_none();
        if idle && state.logged.is_empty() && superblock.start().block == 0 {
            return Ok(());
        }
        Err(JournalError::NoRoom("the log is in use"))
    }

    /// The empty log has another length now.
    fn resize(&self, superblock: &Superblock) {
        let mut state = self.state.borrow_mut();
        let next = state.next_tid;
        state.ring = Ring::new(superblock.first(), superblock.blocks(), next);
        self.limits.set(Limits::new(&state.ring, &self.codec, &self.config));
    }
}
