//! Which chunks make a line. Over the whole device a line is chunk *i* of every parallel unit; with
//! narrower lines the units are divided into stripes of equal width, and a line is chunk *i* of one
//! stripe. Stripes are channels (QBLK), or neighbouring units, which lie on different channels.
//!
//! Line numbers run through the stripes of a chunk index: `line = chunk * stripes + stripe`. Stripes
//! are a power of two, so no address needs a division.

use super::ids::LineId;
use crate::config::LineSet;
use crate::error::FtlError;
use nandscape_media::{AddressFormat, ChunkId, Geometry, Ppa, UnitId};
use smallvec::SmallVec;

/// Stripes in some order; a device of up to 8 channels allocates none.
pub(crate) type StripeOrder = SmallVec<[u32; 8]>;

/// How lines lie on the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Layout {
    /// Parallel units of a line.
    pub(crate) width: u32,
    /// log2 of the stripes.
    stripe_bits: u32,
    /// Where a unit's number holds its index within the stripe.
    index_shift: u32,
    /// Where a unit's number holds its stripe.
    stripe_shift: u32,
    /// How addresses are packed.
    pub(crate) format: AddressFormat,
}

impl Layout {
    /// The layout of `set` on a device of this shape.
    ///
    /// # Errors
    /// Units that do not divide into stripes.
    pub(crate) fn new(geometry: &Geometry, set: LineSet) -> Result<Self, FtlError> {
        let units = geometry.total_units();
        let width = match set {
            LineSet::Device => units,
            LineSet::Channel => geometry.units,
            LineSet::Units(width) => width,
        };
        let stripes = units.checked_div(width).unwrap_or(0);
        if stripes * width != units || !stripes.is_power_of_two() {
            let why = format!(
                "{units} parallel units do not divide into a power of two of groups of {width}"
            );
            return Err(FtlError::Config { key: "ftl.line_set", why });
        }
        let neighbours = matches!(set, LineSet::Units(_)) && stripes > 1;
        if neighbours && !width.is_power_of_two() {
            let why = format!("lines of {width} parallel units: must be a power of two");
            return Err(FtlError::Config { key: "ftl.line_set", why });
        }
        let stripe_bits = stripes.ilog2();
        Ok(Self {
            width,
            stripe_bits,
            index_shift: if neighbours { 0 } else { stripe_bits },
            stripe_shift: if neighbours { width.ilog2() } else { 0 },
            format: geometry.format(),
        })
    }

    /// Stripes of the device.
    #[inline]
    pub(crate) const fn stripes(&self) -> u32 {
        1 << self.stripe_bits
    }

    /// The stripe of a line.
    #[inline]
    pub(crate) const fn stripe_of(&self, line: LineId) -> u32 {
        line & (self.stripes() - 1)
    }

    /// The line of this chunk index and stripe.
    #[inline]
    pub(crate) const fn line(&self, chunk: u32, stripe: u32) -> LineId {
        chunk << self.stripe_bits | stripe
    }

    /// The parallel unit of the chunk with this index in a line.
    #[inline]
    pub(crate) const fn unit(&self, line: LineId, index: u32) -> u32 {
        index << self.index_shift | self.stripe_of(line) << self.stripe_shift
    }

    /// The chunk with this index in a line.
    #[inline]
    pub(crate) const fn chunk(&self, line: LineId, index: u32) -> ChunkId {
        ChunkId { unit: UnitId(self.unit(line, index)), chunk: line >> self.stripe_bits }
    }

    /// The line of an address.
    #[inline]
    pub(crate) const fn line_of(&self, ppa: Ppa) -> LineId {
        if self.stripe_bits == 0 {
            return self.format.line_of(ppa);
        }
        let ChunkId { unit, chunk } = self.format.chunk_of(ppa);
        self.line(chunk, unit.0 >> self.stripe_shift & (self.stripes() - 1))
    }
}

/// Lines of garbage collection, beyond one, that a power cut may use up at once: where open chunks are
/// limited recovery leaves none open.
pub(crate) fn padded_out(geometry: &Geometry, shared_frontiers: u32) -> u32 {
    if geometry.limits_open_chunks() { shared_frontiers.saturating_sub(1) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const GEOMETRY: Geometry = Geometry {
        groups: 4,
        units: 3,
        chunks: 5,
        sectors: 24,
        ws_min: 4,
        ws_opt: 8,
        mw_cunits: 0,
        maxoc: 0,
        maxocpu: 0,
    };

    /// Every chunk belongs to exactly one line, and its sectors' addresses lead back to that line.
    fn is_a_partition(geometry: &Geometry, set: LineSet) {
        let layout = Layout::new(geometry, set).expect("divides");
        let lines = geometry.chunks * layout.stripes();
        let mut seen = BTreeSet::new();
        for (line, index) in (0..lines).flat_map(|line| (0..layout.width).map(move |i| (line, i))) {
            let chunk = layout.chunk(line, index);
            assert!(chunk.chunk < geometry.chunks && chunk.unit.0 < geometry.total_units());
            assert!(seen.insert(chunk), "{chunk:?} twice");
            assert_eq!(layout.line_of(geometry.ppa(chunk, geometry.sectors - 1)), line);
        }
        assert_eq!(seen.len() as u32, geometry.chunks * geometry.total_units());
    }

    #[test]
    fn lines_divide_the_device() {
        is_a_partition(&GEOMETRY, LineSet::Device);
        is_a_partition(&GEOMETRY, LineSet::Channel);
        let even = Geometry { units: 4, ..GEOMETRY };
        for width in [1, 2, 4, 8, 16] {
            is_a_partition(&even, LineSet::Units(width));
        }
    }

    /// A channel's line stays on its channel; neighbouring units lie on different ones.
    #[test]
    fn stripes_are_channels_or_cross_them() {
        let channel = Layout::new(&GEOMETRY, LineSet::Channel).expect("divides");
        for line in 0..4 {
            let groups: BTreeSet<u32> =
                (0..3).map(|i| GEOMETRY.group_of(channel.chunk(line, i).unit)).collect();
            assert_eq!(groups, BTreeSet::from([line]));
        }
        let even = Geometry { units: 4, ..GEOMETRY };
        let narrow = Layout::new(&even, LineSet::Units(4)).expect("divides");
        let groups: BTreeSet<u32> =
            (0..4).map(|i| even.group_of(narrow.chunk(2, i).unit)).collect();
        assert_eq!(groups.len(), 4);
    }

    #[test]
    fn what_does_not_divide_is_refused() {
        let refused = |geometry: &Geometry, set| {
            matches!(Layout::new(geometry, set), Err(FtlError::Config { key: "ftl.line_set", .. }))
        };
        let even = Geometry { units: 4, ..GEOMETRY };
        for width in [0, 3, 5, 32, u32::MAX] {
            assert!(refused(&even, LineSet::Units(width)), "{width}");
        }
        assert!(refused(&GEOMETRY, LineSet::Units(3)), "neighbours of 3 share no bits");
        assert!(refused(&Geometry { groups: 3, ..GEOMETRY }, LineSet::Channel));
    }
}
