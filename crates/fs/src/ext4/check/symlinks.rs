//! Symbolic links: a target in the inode, or alone in one block, as long as the inode says.

use super::checker::Checker;
use crate::ext4::format::*;
use nandscape_block::BlockError;

impl Checker {
    /// Checks the target of a symbolic link that is mapped to these extents, of so many blocks with their
    /// tree.
    pub(super) async fn check_target(
        &mut self,
        number: u32,
        inode: &Inode,
        extents: &[Extent],
        blocks: u64,
    ) -> Result<(), BlockError> {
        let place = Place::Inode(number);
        if let Some(target) = inode.fast_symlink() {
            self.check_length(place, &inode.map, target.len() as u64);
            return Ok(());
        }
        let &[Extent { logical: 0, blocks: 1, start, .. }] = extents else {
            self.report.find(place, "a symbolic link of other than one block");
            return Ok(());
        };
        if blocks != 1 || inode.size < INODE_MAP_BYTES as u64 {
            self.report.find(place, "a symbolic link whose target has a place in the inode");
        }
        if start < self.sb.blocks_count {
            let bytes = self.read(start).await?;
            self.check_length(place, &bytes[..], inode.size);
        }
        Ok(())
    }

    fn check_length(&mut self, place: Place, bytes: &[u8], said: u64) {
        let length = bytes.iter().position(|&byte| byte == 0);
        if said == 0 || length.is_none_or(|length| length as u64 != said) {
            let what = format!("says {said} bytes of target, has {length:?}");
            self.report.find(place, what);
        }
    }
}
