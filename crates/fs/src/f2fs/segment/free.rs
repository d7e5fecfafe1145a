//! Free segments and free sections (`struct free_segmap_info`). A section is free if all of its segments are.

/// Which segments are free.
pub(super) struct FreeSegments {
    /// A bit per segment, set if it is in use.
    used: Vec<u64>,
    /// Segments in use per section.
    used_in: Vec<u32>,
    segments: u32,
    per_section: u32,
    free_segments: u32,
    free_sections: u32,
}

impl FreeSegments {
    /// All segments of a main area, free.
    pub(super) fn new(segments: u32, per_section: u32) -> Self {
        let sections = segments / per_section;
        Self {
            used: vec![0; segments.div_ceil(u64::BITS) as usize],
            used_in: vec![0; sections as usize],
            segments,
            per_section,
            free_segments: segments,
            free_sections: sections,
        }
    }

    pub(super) const fn free_segments(&self) -> u32 {
        self.free_segments
    }

    pub(super) const fn free_sections(&self) -> u32 {
        self.free_sections
    }

    pub(super) fn is_free(&self, segment: u32) -> bool {
        segment < self.segments && self.used[(segment / 64) as usize] >> (segment % 64) & 1 == 0
    }

    pub(super) fn is_free_section(&self, section: u32) -> bool {
        self.used_in.get(section as usize).is_some_and(|used| *used == 0)
    }

    /// Leaves out a segment in which nothing can be written: it is neither free nor in use.
    pub(super) fn exclude(&mut self, segment: u32) {
        if self.is_free(segment) {
            self.used[(segment / 64) as usize] |= 1 << (segment % 64);
            self.free_segments -= 1;
        }
    }

    /// Takes a segment, if it is free.
    pub(super) fn take(&mut self, segment: u32) {
        if !self.is_free(segment) {
            return;
        }
        self.used[(segment / 64) as usize] |= 1 << (segment % 64);
        self.free_segments -= 1;
        let used_in = &mut self.used_in[(segment / self.per_section) as usize];
        self.free_sections -= u32::from(*used_in == 0);
        *used_in += 1;
    }

    /// Gives a segment back, if it is in use.
    pub(super) fn release(&mut self, segment: u32) {
        if segment >= self.segments || self.is_free(segment) {
            return;
        }
        self.used[(segment / 64) as usize] &= !(1 << (segment % 64));
        self.free_segments += 1;
        let used_in = &mut self.used_in[(segment / self.per_section) as usize];
        *used_in -= 1;
        self.free_sections += u32::from(*used_in == 0);
    }

    /// The first free segment after `segment` in its section.
    pub(super) fn next_in_section(&self, segment: u32) -> Option<u32> {
        let end = (segment / self.per_section + 1) * self.per_section;
        (segment + 1..end).find(|next| self.is_free(*next))
    }

    /// The first segment of the first free section from section `hint` on, or before it.
    pub(super) fn next_section(&self, hint: u32) -> Option<u32> {
        let sections = self.used_in.len() as u32;
        let is_free = |section: &u32| self.used_in[*section as usize] == 0;
        let section =
            (hint..sections).find(is_free).or_else(|| (0..hint.min(sections)).find(is_free));
        section.map(|section| section * self.per_section)
    }
}
