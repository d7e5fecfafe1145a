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

    pub(super) const fn blocks(&self) -> u64 {
        self.blocks
    }

    pub(super) fn clear(&mut self) {
        self.words.fill(0);
    }

    pub(super) fn has(&self, block: u64) -> bool {
        self.words[(block / 64) as usize] >> (block % 64) & 1 == 1
    }

    /// The next block behind one that is covered, from the first one again where there is none to the end, that is not; as
    /// fio looks for it (lib/axmap.c).
    pub(super) fn next_free(&self, behind: u64) -> Option<u64> {
        let free = |word: u64, of: u64| {
            let bit = u64::from(of.trailing_ones());
            Some(word * 64 + bit).filter(|block| bit < 64 && *block < self.blocks)
        };
        let (first, begin) = ((behind + 1) / 64, (behind + 1) % 64);
        let words = self.words.len() as u64;
        let rest = self
            .words
            .get(first as usize)
            .filter(|_| behind < self.blocks)
            .map(|word| word | ((1 << begin) - 1));
        rest.and_then(|rest| free(first, rest))
            .or_else(|| (first + 1..words).find_map(|word| free(word, self.words[word as usize])))
            .or_else(|| (0..words).find_map(|word| free(word, self.words[word as usize])))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Each search ends at the first free block behind, and goes round.
    #[test]
    fn free_blocks_are_found() {
        let blocks = 150;
        let mut covered = Covered::new(blocks);
        for first in [0, 3, 63, 64, 100, 130, 149] {
            covered.cover(first, 3);
        }
        for from in (0..blocks).filter(|block| covered.has(*block)).collect::<Vec<_>>() {
            let mut round = (from + 1..blocks).chain(0..blocks);
            assert_eq!(covered.next_free(from), round.find(|block| !covered.has(*block)), "{from}");
        }
        for first in 0..blocks {
            covered.cover(first, 1);
        }
        assert_eq!(covered.next_free(149), None);
    }
}
