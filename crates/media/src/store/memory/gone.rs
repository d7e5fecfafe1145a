//! Contents that go: with their chunk, or before it is erased, as nothing will ask for them again.
//!
//! `dropped` is the number of places in the column that say so.

use super::{ABSENT, DROPPED, ENTRY_BYTES, HANDLE, MemoryStore, is_handle};
use crate::geometry::Ppa;

impl MemoryStore {
    pub(super) fn erase_metadata(&mut self, from: Ppa, sectors: u32) {
        let end = from.plus(sectors).0;
        while let Some((&at, _)) = self.metadata.range(from.0..end).next() {
            if let Some(bytes) = self.metadata.remove(&at) {
                self.metadata_bytes -= bytes.len() as u64 + ENTRY_BYTES;
            }
        }
    }

    pub(super) fn erase_contents(&mut self, from: Ppa, sectors: u32) {
        let first = from.0 as usize;
        for content in &mut self.contents[first..first + sectors as usize] {
            match *content {
                DROPPED => self.dropped -= 1,
                content if is_handle(content) => self.slab.remove(content as u32),
                _ => continue,
            }
            *content = ABSENT;
        }
    }

    /// Whether dropping the content of a sector would free memory.
    pub(super) fn would_free(&self, at: Ppa) -> bool {
        match self.contents.get(at.0 as usize) {
            None => self.metadata.contains_key(&at.0),
            Some(&content) if content & HANDLE == 0 => self.drops_tags,
            Some(&content) => is_handle(content),
        }
    }

    /// Drops the content of a sector; whether there was any.
    pub(super) fn drop_one(&mut self, at: Ppa) -> bool {
        let is_there = self.would_free(at);
        if is_there && self.keeps_contents() {
            self.erase_contents(at, 1);
            self.contents[at.0 as usize] = DROPPED;
            self.dropped += 1;
        } else if is_there {
            self.erase_metadata(at, 1);
        }
        is_there
    }
}
