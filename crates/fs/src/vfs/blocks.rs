//! Metadata blocks in memory, by a key: the address of a block, or what a file system knows it by. Those
//! that no task holds leave by second chance when there are more than a limit; a block is read by one
//! task at a time, and is in memory once.
//!
//! What a block is in, and how it gets its content, is the file system's: [`CachedBlock`], and the fetch
//! that [`BlockCache::get`] is given.

use nandscape_rt::sync::Notify;
use nandscape_rt::{Handle, invariant};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::rc::Rc;

/// Blocks that eviction looks at before it gives up for this time.
const EVICT_SCAN: usize = 64;

/// What the cache has to know of a block.
pub(crate) trait CachedBlock {
    /// Whether its content is still being read.
    fn is_reading(&self) -> bool;

    /// The mark of second chance: the block was used since eviction last passed.
    fn referenced(&self) -> &Cell<bool>;

    /// Whether it may leave memory if no task holds it.
    fn is_idle(&self) -> bool;
}

/// A cache of blocks `B` by keys `K`.
pub(crate) struct BlockCache<K, B> {
    blocks: RefCell<BTreeMap<K, Rc<B>>>,
    limit: usize,
    /// The key after which eviction continues.
    cursor: Cell<K>,
    /// A read has ended.
    read: Notify,
}

impl<K: Ord + Copy + Default, B: CachedBlock> BlockCache<K, B> {
    /// A cache that keeps about `limit` blocks, more only while they are needed.
    pub(crate) fn new(rt: &Handle, limit: usize, name: &'static str) -> Self {
        let (blocks, cursor) = (RefCell::default(), Cell::default());
        Self { blocks, limit, cursor, read: Notify::new(rt, name) }
    }

    pub(crate) fn len(&self) -> usize {
        self.blocks.borrow().len()
    }

    /// A block, which `fetch` inserts and reads if it is not in memory.
    ///
    /// # Errors
    /// Those of `fetch`.
    pub(crate) async fn get<E>(
        &self,
        key: K,
        fetch: impl AsyncFnOnce(K) -> Result<Rc<B>, E>,
    ) -> Result<Rc<B>, E> {
        loop {
            match self.find(key) {
                Some(block) if block.is_reading() => self.read.notified().await,
                Some(block) => return Ok(block),
                None => return fetch(key).await,
            }
        }
    }

    /// A block in memory, whose content may still be being read.
    pub(crate) fn find(&self, key: K) -> Option<Rc<B>> {
        let block = self.blocks.borrow().get(&key).map(Rc::clone)?;
        block.referenced().set(true);
        Some(block)
    }

    /// Keeps a block, once there is room.
    pub(crate) fn insert(&self, key: K, block: B) -> Rc<B> {
        self.evict();
        let block = Rc::new(block);
        let other = self.blocks.borrow_mut().insert(key, Rc::clone(&block));
        invariant!(other.is_none(), "a block of metadata is once in memory");
        block
    }

    /// Forgets a block.
    pub(crate) fn remove(&self, key: K) {
        self.blocks.borrow_mut().remove(&key);
    }

    /// A read has ended, well or not: tasks that wait for it look again.
    pub(crate) fn note_read(&self) {
        self.read.notify_waiters();
    }

    /// Forgets all blocks that no task holds, whatever the limit.
    pub(crate) fn drop_idle(&self) {
        self.blocks.borrow_mut().retain(|_, block| !is_free(block));
    }

    /// Makes room by second chance.
    fn evict(&self) {
        let mut blocks = self.blocks.borrow_mut();
        for _ in 0..EVICT_SCAN {
            if blocks.len() < self.limit {
                return;
            }
            let rest = (Bound::Excluded(self.cursor.get()), Bound::Unbounded);
            let next = blocks.range(rest).next().or_else(|| blocks.iter().next());
            let Some((&key, block)) = next else { return };
            self.cursor.set(key);
            if !block.referenced().replace(false) && is_free(block) {
                blocks.remove(&key);
            }
        }
    }
}

/// Whether only the cache holds a block.
fn is_free<B: CachedBlock>(block: &Rc<B>) -> bool {
    Rc::strong_count(block) == 1 && block.is_idle()
}
