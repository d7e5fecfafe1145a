//! The extent cache: where runs of a file's pages lie, found lately (fs/f2fs/extent_cache.c). What changes an address
//! forgets what it covers, so an extent that is here is true.

use super::format::BlockAddr;
use crate::vfs::Pages;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Extents kept per file.
const EXTENTS_MAX: usize = 1024;

/// Extents of a file: by first page, (first block, pages).
#[derive(Default)]
pub(crate) struct ExtentCache(RefCell<BTreeMap<u64, (u32, u32)>>);

impl ExtentCache {
    /// Where a page lies, and how many from there on lie in one piece.
    pub(crate) fn find(&self, page: u64) -> Option<(BlockAddr, u64)> {
        let extents = self.0.borrow();
        let (&first, &(start, pages)) = extents.range(..=page).next_back()?;
        let into = page - first;
        let left = u64::from(pages).checked_sub(into).filter(|left| *left > 0)?;
        Some((BlockAddr(start + into as u32), left))
    }

    /// Keeps where pages lie; joins what continues the extent before.
    pub(crate) fn insert(&self, page: u64, start: BlockAddr, pages: u64) {
        self.forget(&(page..page + pages));
        let mut extents = self.0.borrow_mut();
        if let Some((&first, before)) = extents.range_mut(..page).next_back() {
            let continues = first + u64::from(before.1) == page && before.0 + before.1 == start.0;
            if continues {
                before.1 += pages as u32;
                return;
            }
        }
        if extents.len() >= EXTENTS_MAX {
            extents.clear();
        }
        extents.insert(page, (start.0, pages as u32));
    }

    /// Forgets what is known of a range.
    pub(crate) fn forget(&self, range: &Pages) {
        let mut extents = self.0.borrow_mut();
        let begins =
            extents.range(..range.start).next_back().map(|(first, found)| (*first, *found));
        if let Some((first, (start, pages))) = begins
            && first + u64::from(pages) > range.start
        {
            let kept = range.start - first;
            extents.insert(first, (start, kept as u32));
            let end = first + u64::from(pages);
            if end > range.end {
                let cut = range.end - first;
                extents.insert(range.end, (start + cut as u32, (end - range.end) as u32));
            }
        }
        let inside: Vec<_> =
            extents.range(range.clone()).map(|(first, found)| (*first, *found)).collect();
        for (first, (start, pages)) in inside {
            extents.remove(&first);
            let end = first + u64::from(pages);
            if end > range.end {
                let cut = range.end - first;
                extents.insert(range.end, (start + cut as u32, (end - range.end) as u32));
            }
        }
    }

    /// Bytes of memory that the extents take, at two thirds of a B-tree's nodes in use.
    pub(crate) fn memory_bytes(&self) -> u64 {
        (self.0.borrow().len() * size_of::<(u64, (u32, u32))>() * 3 / 2) as u64
    }

    /// The longest extent: (page, block, pages).
    pub(crate) fn largest(&self) -> Option<(u64, BlockAddr, u64)> {
        let extents = self.0.borrow();
        let longest = extents.iter().max_by_key(|(first, (_, pages))| (*pages, u64::MAX - **first));
        longest.map(|(first, (start, pages))| (*first, BlockAddr(*start), u64::from(*pages)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// What the cache knows of a page is what was last said of it.
        #[test]
        fn extents_are_true(steps in proptest::collection::vec((0..3_u8, 0..60_u64, 1..20_u64, 1..1000_u32), 1..80)) {
            let cache = ExtentCache::default();
            let mut model: BTreeMap<u64, u32> = BTreeMap::new();
            for (what, page, pages, block) in steps {
                if what == 0 {
                    cache.forget(&(page..page + pages));
                    (page..page + pages).for_each(|page| { model.remove(&page); });
                } else {
                    cache.insert(page, BlockAddr(block), pages);
                    (0..pages).for_each(|step| { model.insert(page + step, block + step as u32); });
                }
                for page in 0..90 {
                    let known = cache.find(page).map(|(at, _)| at.0);
                    prop_assert_eq!(known, model.get(&page).copied());
                    if let Some((at, left)) = cache.find(page) {
                        for step in 0..left {
                            prop_assert_eq!(model.get(&(page + step)).copied(), Some(at.0 + step as u32));
                        }
                    }
                }
            }
        }
    }
}
