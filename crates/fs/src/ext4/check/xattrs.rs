//! Extended attributes, in inodes and in blocks that inodes may share: entries and values that fit, that do
//! not lie over each other, and that have the hashes that they say.

use super::checker::Checker;
use crate::ext4::format::*;
use nandscape_block::BlockError;
use std::ops::Range;

/// Bytes of zeroes behind the last entry.
const END_BYTES: usize = 4;

impl Checker {
    /// Attributes in the inode and in a block; how many blocks.
    pub(super) async fn check_xattrs(
        &mut self,
        number: u32,
        inode: &Inode,
        bytes: &[u8],
    ) -> Result<u64, BlockError> {
        let place = Place::Inode(number);
        let inside = inode_xattrs(bytes, inode.extra_isize, place);
        if let Some(region) = self.report.sound(place, inside).flatten() {
            // Older kernels left the hashes of attributes in inodes out.
            let hashed = |entry: &XattrEntry<'_>| entry.hash == 0 || region.hash_holds(entry);
            self.check_region(place, &region, hashed);
        }
        let block = inode.file_acl;
        if block == 0 {
            return Ok(0);
        }
        if !self.sb.has(Feature::EXT_ATTR) {
            self.report.find(place, "has an attribute block, which the features do not allow");
        }
        if let Some((_, counted)) = self.shared.get_mut(&block) {
            *counted += 1;
            return Ok(1);
        }
        let place = Place::InodeBlock { inode: number, block };
        if self.claim(block, 1, place) {
            let bytes = self.read(block).await?;
            let sealed = check_xattr_block(&bytes, block, self.sb.csum_seed(), place);
            self.report.sound(place, sealed);
            if let Some((refcount, region)) =
                self.report.sound(place, xattr_block(&bytes[..], place))
            {
                self.check_region(place, &region, |entry| {
                    entry.index > 0 && region.hash_holds(entry)
                });
                self.shared.insert(block, (refcount, 1));
            }
        }
        Ok(1)
    }

    /// Holds the attributes of a region against each other. `sound`: whether one is so for itself.
    fn check_region(
        &mut self,
        place: Place,
        region: &XattrRegion<'_>,
        sound: impl Fn(&XattrEntry<'_>) -> bool,
    ) {
        let wrong = region.entries.iter().filter(|entry| !sound(entry)).count();
        if wrong > 0 {
            let what = format!("{wrong} attributes have no known prefix, or another's hash");
            self.report.find(place, what);
        }
        let end = region.end();
        let values = region.entries.iter().map(|entry| entry.value_at.clone());
        let mut taken: Vec<Range<usize>> = values.filter(|value| !value.is_empty()).collect();
        taken.push(0..end + END_BYTES);
        taken.sort_by_key(|range| range.start);
        let over = taken.windows(2).any(|pair| pair[0].end > pair[1].start);
        let beyond = region.entries.iter().any(|entry| entry.value_at.end > region.bytes.len());
        if over || beyond {
            self.report.find(place, "attributes overlap, or extend beyond the end");
        }
    }
}
