//! Geometry and physical addresses: group (channel), parallel unit, chunk, sector.
//!
//! A [`Ppa`] packs chunk | unit | sector from the high bits down, each field as narrow as the
//! geometry allows (as pblk packs its table entries). The order makes the chunk index, which is
//! pblk's line number, the top field, so that per-sector columns indexed by `Ppa` lie line by line;
//! fields that are not powers of two leave holes that no column ever touches.

use thiserror::Error;

/// A parallel unit of the whole device: `unit_in_group * groups + group`, so that consecutive
/// units lie on different channels, the order in which pblk stripes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct UnitId(pub u32);

/// A chunk of the whole device.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct ChunkId {
    /// The parallel unit it lies on.
    pub unit: UnitId,
    /// Its index on that unit.
    pub chunk: u32,
}

/// Physical sector address, packed; see [`Geometry::ppa`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Ppa(pub u64);

impl Ppa {
    /// The sector `n` further on in the same chunk.
    #[inline]
    #[must_use]
    pub const fn plus(self, n: u32) -> Self {
        Self(self.0 + n as u64)
    }
}

/// How sector addresses are packed on a device (`struct nvm_addrf`): worked out once, for hot paths.
/// From the top: chunk index, parallel unit, sector within the chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AddressFormat {
    sector_bits: u32,
    /// Bits below the chunk field.
    line_bits: u32,
}

impl AddressFormat {
    /// Packs an address.
    #[inline]
    #[must_use]
    pub const fn ppa(&self, chunk: ChunkId, sector: u32) -> Ppa {
        Ppa((chunk.chunk as u64) << self.line_bits
            | (chunk.unit.0 as u64) << self.sector_bits
            | sector as u64)
    }

    /// The chunk index of an address: pblk's line.
    #[inline]
    #[must_use]
    pub const fn line_of(&self, ppa: Ppa) -> u32 {
        (ppa.0 >> self.line_bits) as u32
    }

    /// The chunk of an address.
    #[inline]
    #[must_use]
    pub const fn chunk_of(&self, ppa: Ppa) -> ChunkId {
        let units = 1 << (self.line_bits - self.sector_bits);
        let unit = (ppa.0 >> self.sector_bits) as u32 & (units - 1);
        ChunkId { unit: UnitId(unit), chunk: self.line_of(ppa) }
    }

    /// The sector within its chunk.
    #[inline]
    #[must_use]
    pub const fn sector_of(&self, ppa: Ppa) -> u32 {
        ppa.0 as u32 & ((1 << self.sector_bits) - 1)
    }
}

/// Shape and write rules of an open-channel SSD. Sizes in sectors of 4 KiB.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    /// Groups (channels).
    pub groups: u32,
    /// Parallel units a group.
    pub units: u32,
    /// Chunks a unit.
    pub chunks: u32,
    /// Sectors a chunk (clba).
    pub sectors: u32,
    /// Smallest write.
    pub ws_min: u32,
    /// Best write: one one-shot page over all planes.
    pub ws_opt: u32,
    /// Sectors behind the write pointer of an open chunk that cannot be read yet.
    pub mw_cunits: u32,
    /// Open chunks on the whole device; 0 means no limit.
    pub maxoc: u32,
    /// Open chunks a unit; 0 means no limit.
    pub maxocpu: u32,
}

/// A geometry that no device could have.
#[derive(Clone, PartialEq, Eq, Error, Debug)]
#[error("geometry: {key} = {value}: {rule}")]
pub struct GeometryError {
    /// The key at fault, as in a stack file's `[media]`.
    pub key: &'static str,
    /// Its value.
    pub value: u64,
    /// What it must be.
    pub rule: &'static str,
}

const fn bits(values: u32) -> u32 {
    u32::BITS - (values - 1).leading_zeros()
}

impl Geometry {
    /// Checks that the shape makes sense, and that packed addresses fit 32 bits: keys must be able to name the sectors.
    ///
    /// # Errors
    /// Names the key at fault and its rule.
    pub fn check(&self) -> Result<(), GeometryError> {
        let rules = [
            ("groups", self.groups, (1..=256).contains(&self.groups), "must be 1 to 256"),
            ("units", self.units, (1..=256).contains(&self.units), "must be 1 to 256"),
            ("chunks", self.chunks, (1..=65_536).contains(&self.chunks), "must be 1 to 65,536"),
            ("ws_min", self.ws_min, (1..=64).contains(&self.ws_min), "must be 1 to 64"),
            (
                "ws_opt",
                self.ws_opt,
                (1..=64).contains(&self.ws_opt) && self.ws_opt.is_multiple_of(self.ws_min.max(1)),
                "must be 1 to 64 and a multiple of ws_min",
            ),
            (
                "sectors",
                self.sectors,
                (1..=1 << 24).contains(&self.sectors)
                    && self.sectors.is_multiple_of(self.ws_opt.max(1)),
                "must be 1 to 16,777,216 and a multiple of ws_opt",
            ),
            (
                "mw_cunits",
                self.mw_cunits,
                self.mw_cunits < self.sectors,
                "must be less than the sectors of a chunk",
            ),
        ];
        match rules.iter().find(|(_, _, holds, _)| !holds) {
            None if self.ppa_end() > 1 << 32 => Err(GeometryError {
                key: "chunks",
                value: u64::from(self.chunks),
                rule: "must keep the device within 16 TiB (4,294,967,296 sectors)",
            }),
            None => Ok(()),
            Some(&(key, value, _, rule)) => {
                Err(GeometryError { key, value: u64::from(value), rule })
            }
        }
    }

    /// Parallel units of the whole device.
    #[inline]
    #[must_use]
    pub const fn total_units(&self) -> u32 {
        self.groups * self.units
    }

    /// Sectors of the whole device.
    #[must_use]
    pub const fn total_sectors(&self) -> u64 {
        self.total_units() as u64 * self.chunks as u64 * self.sectors as u64
    }

    /// Whether only so many chunks may be open at once.
    #[inline]
    #[must_use]
    pub const fn limits_open_chunks(&self) -> bool {
        self.maxoc > 0 || self.maxocpu > 0
    }

    /// The group (channel) of a unit.
    #[inline]
    #[must_use]
    pub const fn group_of(&self, unit: UnitId) -> u32 {
        unit.0 % self.groups
    }

    /// Bits of the sector field of a [`Ppa`].
    #[inline]
    #[must_use]
    pub const fn sector_bits(&self) -> u32 {
        bits(self.sectors)
    }

    /// Bits below the chunk field of a [`Ppa`].
    #[inline]
    #[must_use]
    pub const fn line_bits(&self) -> u32 {
        self.sector_bits() + bits(self.total_units())
    }

    /// One more than the largest packed address: the length of a per-sector column.
    #[must_use]
    pub const fn ppa_end(&self) -> u64 {
        (self.chunks as u64) << self.line_bits()
    }

    /// How addresses are packed.
    #[inline]
    #[must_use]
    pub const fn format(&self) -> AddressFormat {
        AddressFormat { sector_bits: self.sector_bits(), line_bits: self.line_bits() }
    }

    /// Packs an address.
    #[inline]
    #[must_use]
    pub const fn ppa(&self, chunk: ChunkId, sector: u32) -> Ppa {
        self.format().ppa(chunk, sector)
    }

    /// The chunk index of an address: pblk's line.
    #[inline]
    #[must_use]
    pub const fn line_of(&self, ppa: Ppa) -> u32 {
        self.format().line_of(ppa)
    }

    /// The chunk of an address.
    #[inline]
    #[must_use]
    pub const fn chunk_of(&self, ppa: Ppa) -> ChunkId {
        self.format().chunk_of(ppa)
    }

    /// The sector within its chunk.
    #[inline]
    #[must_use]
    pub const fn sector_of(&self, ppa: Ppa) -> u32 {
        self.format().sector_of(ppa)
    }

    /// Every chunk, line by line.
    pub fn all_chunks(&self) -> impl Iterator<Item = ChunkId> + use<> {
        let units = self.total_units();
        (0..self.chunks)
            .flat_map(move |chunk| (0..units).map(move |u| ChunkId { unit: UnitId(u), chunk }))
    }

    /// Position of a chunk in a dense table with one row a chunk.
    #[inline]
    #[must_use]
    pub const fn chunk_index(&self, chunk: ChunkId) -> usize {
        chunk.chunk as usize * self.total_units() as usize + chunk.unit.0 as usize
    }
}
