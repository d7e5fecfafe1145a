//! Which blocks a pass has touched, where I/Os differ in size: fio's random map.

/// A bit a block.
#[derive(Clone, Debug)]
pub(super) struct Covered {
    words: Box<[u64]>,
    blocks: u64,
}

impl Covered {
    /// `blocks` untouched ones.
    pub(super) fn new(blocks: u64) -> Self {
        Self { words: vec![0; blocks.div_ceil(64) as usize].into(), blocks }
    }

    pub(super) fn clear(&mut self) {
        self.words.fill(0);
    }

    pub(super) fn has(&self, block: u64) -> bool {
        self.words[(block / 64) as usize] >> (block % 64) & 1 == 1
    }

    /// Covers up to `count` blocks from `first` on, as far as the next that is covered; how many.
    pub(super) fn cover(&mut self, first: u64, count: u64) -> u64 {
        let end = first.saturating_add(count).min(self.blocks);
        let end = (first..end).find(|block| self.has(*block)).unwrap_or(end);
        for block in first..end {
            self.words[(block / 64) as usize] |= 1 << (block % 64);
        }
        end - first
    }
}
