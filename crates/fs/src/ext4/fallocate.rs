//! Blocks ahead of data, and holes.

use super::file::Writer;
use super::inode::Inode;
use super::volume::{PAGE, Volume};
use crate::contract::{Allocate, FsError, Result};
use std::rc::Rc;

impl Volume {
    /// Gives blocks to a range of a file or takes them; the caller holds the inode's lock alone.
    pub(crate) async fn allocate(
        self: &Rc<Self>,
        writer: &Writer,
        inode: &Rc<Inode>,
        what: Allocate,
        offset: u64,
        len: u64,
    ) -> Result<()> {
        if len == 0 {
            return Err(FsError::Invalid("no bytes to allocate"));
        }
        let end = self.check_extent_of_file(inode, offset, len)?;
        if matches!(what, Allocate::Reserve { .. }) {
            inode.check_addable()?;
        } else {
            inode.check_changeable()?;
            self.punch(writer, inode, offset, end).await?;
        }
        let pages = offset / PAGE..end.div_ceil(PAGE);
        let (done, size) = match what {
            Allocate::PunchHole => (Ok(()), 0),
            Allocate::Reserve { keep_size } | Allocate::ZeroRange { keep_size } => {
                let reserved = self.reserve_range(writer.caller, inode, &pages).await;
                let grows = reserved.is_ok() && !keep_size;
                (reserved, if grows { end } else { 0 })
            }
        };
        let tx = self.begin(4, 0).await?;
        // Delayed pages would have brought the length to disk; they may be gone now.
        inode.set_size(inode.size.get().max(size));
        inode.raw.borrow_mut().size = inode.size.get();
        inode.touch(self.now(), true);
        self.write_inode(&tx, inode, true).await?;
        tx.stop();
        done
    }

    /// Makes a hole: zeroes in the pages at its ends, no blocks in between.
    async fn punch(
        self: &Rc<Self>,
        writer: &Writer,
        inode: &Rc<Inode>,
        offset: u64,
        end: u64,
    ) -> Result<()> {
        let _cut = inode.cut_lock.write().await;
        let (first, last) = (offset.div_ceil(PAGE), end / PAGE);
        let zero = async |from, to| {
            writer.dirtier.note(self.zero_in_page(inode, from, to - from).await?);
            Ok(())
        };
        if offset / PAGE == end / PAGE {
            return zero(offset, end).await;
        }
        zero(offset, first * PAGE).await?;
        zero(last * PAGE, end).await?;
        inode.pages.written(first..last).await;
        self.unpromise(inode.pages.discard(first..last));
        self.free_range(inode, first..last).await?;
        // Reading ahead may have brought a page back before its block was gone.
        inode.pages.discard(first..last);
        Ok(())
    }
}
