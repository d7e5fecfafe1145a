//! What free lines hold, for a caller that cannot choose among them.

/// Free lines, for a caller that cannot choose among them. Lines with bad chunks hold less than others,
/// so the estimate assumes the shortest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FreeSpace<'a> {
    pub(super) lines: u32,
    /// Data sectors of a line without bad chunks.
    pub(super) line: u32,
    /// Sectors of a chunk.
    pub(super) chunk: u32,
    /// How many lines lack chunks, by the number of those that they have.
    pub(super) short: &'a [u32],
}

impl FreeSpace<'_> {
    /// Lines that lack chunks, the shortest first: how many, and what each holds.
    fn short(&self) -> impl Iterator<Item = (u32, u64)> {
        let capacity = |lost: u32| u64::from(self.line.saturating_sub(lost * self.chunk));
        let lost = (1..=self.short.len() as u32).rev();
        self.short.iter().zip(lost).map(move |(&lines, lost)| (lines, capacity(lost)))
    }

    /// Lines that hold `sectors`, whichever they are; more than there are, if those do not suffice.
    pub(crate) fn lines_for(&self, sectors: u64) -> u32 {
        let (mut left, mut lines) = (sectors, 0);
        for (count, capacity) in self.short() {
            if left == 0 {
                break;
            }
            let holds = u64::from(count) * capacity;
            let all = holds <= left;
            lines += if all { u64::from(count) } else { left.div_ceil(capacity) };
            left = left.saturating_sub(holds);
        }
        (lines + left.div_ceil(u64::from(self.line))) as u32
    }

    /// Sectors that so many lines hold, whichever they are.
    pub(crate) fn sectors_of(&self, lines: u32) -> u64 {
        let (mut left, mut sectors) = (lines, 0);
        for (count, capacity) in self.short() {
            let taken = count.min(left);
            left -= taken;
            sectors += u64::from(taken) * capacity;
        }
        sectors + u64::from(left) * u64::from(self.line)
    }

    /// Free lines.
    pub(crate) const fn lines(&self) -> u32 {
        self.lines
    }
}
