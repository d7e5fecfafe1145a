//! Which chunks make a line. Over the whole device a line is chunk *i* of every parallel unit; with
//! narrower lines the units are divided into stripes of equal width, and a line is chunk *i* of one
//! stripe. Stripes are sets of neighbouring channels, or of neighbouring units, which lie on different
//! channels.
//!
//! Line numbers run through the stripes of a chunk index: `line = chunk * stripes + stripe`. Stripes
//! are a power of two, so no address needs a division. A unit's number holds, from the top, the high bits
//! of its index within the stripe, the stripe, and the low bits of its index.

use super::ids::LineId;
use nandscape_media::{AddressFormat, ChunkId, Geometry, Ppa, UnitId};
use smallvec::SmallVec;

/// Stripes in some order; a device of up to 8 channels allocates none.
pub(crate) type StripeOrder = SmallVec<[u32; 8]>;

/// Over which parallel units a line lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum UnitSet {
    /// All units of the device.
    All,
    /// All units of this many neighbouring channels.
    Channels(u32),
    /// This many neighbouring units.
    Units(u32),
}

/// Each `step`-th stripe, from `first` on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StripeSet {
    first: u32,
    step: u32,
}

impl StripeSet {
    /// All stripes.
    pub(crate) const ALL: Self = Self { first: 0, step: 1 };

    /// The stripe alone.
    pub(crate) const fn only(stripe: u32) -> Self {
        Self { first: stripe, step: u32::MAX }
    }

    /// One of `parts` sets that divide the stripes. Neighbours, which may lie on different channels, are in
    /// different ones.
    pub(crate) const fn part(index: u32, parts: u32) -> Self {
        Self { first: index, step: parts }
    }

    /// Its stripes, of a device with so many.
    pub(crate) fn of(self, stripes: u32) -> impl Iterator<Item = u32> {
        (self.first..stripes).step_by(self.step as usize)
    }

    /// Whether a stripe is in it.
    pub(crate) const fn has(self, stripe: u32) -> bool {
        stripe >= self.first && (stripe - self.first).is_multiple_of(self.step)
    }
}

/// How lines lie on the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Layout {
    /// Parallel units of a line.
    pub(crate) width: u32,
    /// log2 of the stripes.
    stripe_bits: u32,
    /// The bits of a line's number that hold its stripe.
    stripe_mask: u32,
    /// How many low bits of a unit's index lie below the stripe in its number.
    low_bits: u32,
    /// Those bits.
    low_mask: u32,
    /// How addresses are packed.
    pub(crate) format: AddressFormat,
}

impl Layout {
    /// The layout of lines over such sets of units on a device of this shape.
    ///
    /// # Errors
    /// Why the units do not divide into stripes.
    pub(crate) fn of(geometry: &Geometry, set: UnitSet) -> Result<Self, String> {
        let units = geometry.total_units();
        let (width, low) = match set {
            UnitSet::All => (units, 1),
            UnitSet::Channels(channels) => (geometry.units.saturating_mul(channels), channels),
            UnitSet::Units(width) => (width, width),
        };
        let stripes = units.checked_div(width).unwrap_or(0);
        if stripes.checked_mul(width) != Some(units) || !stripes.is_power_of_two() {
            return Err(format!(
                "{units} parallel units do not divide into a power of two of groups of {width}"
            ));
        }
        let low = if stripes == 1 { 1 } else { low };
        if !low.is_power_of_two() {
            return Err(match set {
                UnitSet::Channels(_) => format!("lines of {low} channels: must be a power of two"),
                _ => format!("lines of {low} parallel units: must be a power of two"),
            });
        }
        let (stripe_bits, low_bits) = (stripes.ilog2(), low.ilog2());
        let (stripe_mask, low_mask) = (stripes - 1, low - 1);
        let format = geometry.format();
        Ok(Self { width, stripe_bits, stripe_mask, low_bits, low_mask, format })
    }

    /// Stripes of the device.
    #[inline]
    pub(crate) const fn stripes(&self) -> u32 {
        self.stripe_mask + 1
    }

    /// The stripe of a line.
    #[inline]
    pub(crate) const fn stripe_of(&self, line: LineId) -> u32 {
        line & self.stripe_mask
    }

    /// The line of this chunk index and stripe.
    #[inline]
    pub(crate) const fn line(&self, chunk: u32, stripe: u32) -> LineId {
        chunk << self.stripe_bits | stripe
    }

    /// The parallel unit of the chunk with this index in a line.
    #[inline]
    pub(crate) const fn unit(&self, line: LineId, index: u32) -> u32 {
        let low = index & self.low_mask;
        (index - low) << self.stripe_bits | self.stripe_of(line) << self.low_bits | low
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
        self.line(chunk, unit.0 >> self.low_bits & self.stripe_mask)
    }
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
    fn is_a_partition(geometry: &Geometry, set: UnitSet) {
        let layout = Layout::of(geometry, set).expect("divides");
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
        is_a_partition(&GEOMETRY, UnitSet::All);
        is_a_partition(&GEOMETRY, UnitSet::Channels(1));
        let even = Geometry { units: 4, ..GEOMETRY };
        for width in [1, 2, 4, 8, 16] {
            is_a_partition(&even, UnitSet::Units(width));
        }
        for channels in [1, 2, 4] {
            is_a_partition(&even, UnitSet::Channels(channels));
            is_a_partition(&GEOMETRY, UnitSet::Channels(channels));
        }
        is_a_partition(&Geometry { groups: 3, ..GEOMETRY }, UnitSet::Channels(3));
    }

    /// A channel's line stays on its channel; neighbouring units lie on different ones, within the
    /// channels of their line.
    #[test]
    fn stripes_are_channels_or_cross_them() {
        let channel = Layout::of(&GEOMETRY, UnitSet::Channels(1)).expect("divides");
        for line in 0..4 {
            let groups: BTreeSet<u32> =
                (0..3).map(|i| GEOMETRY.group_of(channel.chunk(line, i).unit)).collect();
            assert_eq!(groups, BTreeSet::from([line]));
        }
        let pair = Layout::of(&GEOMETRY, UnitSet::Channels(2)).expect("divides");
        for line in 0..2 {
            let groups = (0..6).map(|i| GEOMETRY.group_of(pair.chunk(line, i).unit));
            assert!(groups.eq([0, 1, 0, 1, 0, 1].map(|channel| 2 * line + channel)));
        }
        let even = Geometry { units: 4, ..GEOMETRY };
        let narrow = Layout::of(&even, UnitSet::Units(4)).expect("divides");
        let groups: BTreeSet<u32> =
            (0..4).map(|i| even.group_of(narrow.chunk(2, i).unit)).collect();
        assert_eq!(groups.len(), 4);
    }

    #[test]
    fn what_does_not_divide_is_refused() {
        let refused = |geometry: &Geometry, set| Layout::of(geometry, set).is_err();
        let even = Geometry { units: 4, ..GEOMETRY };
        for width in [0, 3, 5, 32, u32::MAX] {
            assert!(refused(&even, UnitSet::Units(width)), "{width}");
        }
        assert!(refused(&GEOMETRY, UnitSet::Units(3)), "neighbours of 3 share no bits");
        assert!(refused(&Geometry { groups: 3, ..GEOMETRY }, UnitSet::Channels(1)));
        for channels in [0, 3, 8, u32::MAX] {
            assert!(refused(&GEOMETRY, UnitSet::Channels(channels)), "{channels}");
        }
        assert!(refused(&Geometry { groups: 12, ..GEOMETRY }, UnitSet::Channels(3)));
    }
}
