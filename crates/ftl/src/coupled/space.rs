//! The address space (D2FS artifact): eight partitions, told apart by the high bits of an address. Data are written by
//! the host to partition 1, nodes to 4; what the device moves of them goes to 3 and 7. Partition 0 is mapped by pages.
//!
//! A region is divided into superblocks. Their sectors go to the FTL instances in turn; those of one superblock that go
//! to one instance are a *logical line*: as many as a line of the media holds, in order.

use super::config::{Config, Sizes};
use nandscape_block::{Lba, Region, RegionKind};

/// Number of a logical line, over all regions.
pub(super) type LogicalLine = u32;

/// Regions that are written in superblocks.
pub(super) const REGIONS: usize = 4;
/// Their partitions: those of the host, each followed by that to which the device moves its data.
const PARTITIONS: [u64; REGIONS] = [1, 3, 4, 7];

/// What a region holds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Class {
    Data,
    Node,
}

impl Class {
    pub(super) const ALL: [Self; 2] = [Self::Data, Self::Node];

    pub(super) const fn index(self) -> usize {
        self as usize
    }
}

/// A sector of a superblock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct InSuperblock {
    /// Number of the superblock, over all regions.
    pub(super) superblock: u32,
    /// Its sector.
    pub(super) sector: u32,
}

/// The arithmetic of addresses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Space {
    bits: u32,
    /// Superblocks of a region.
    pub(super) superblocks: u32,
    pub(super) instances: u32,
    /// Sectors of a superblock.
    pub(super) superblock_sectors: u32,
}

impl Space {
    pub(super) const fn new(config: &Config, sizes: &Sizes) -> Self {
        Self {
            bits: config.partition_bits,
            superblocks: sizes.superblocks,
            instances: sizes.instances,
            superblock_sectors: sizes.superblock_sectors(),
        }
    }

    /// The regions, in order of address.
    pub(super) fn regions(&self, random_sectors: u64) -> Box<[Region]> {
        let sectors = u64::from(self.superblocks) * u64::from(self.superblock_sectors);
        let of = |index: usize, kind| {
            let start = PARTITIONS[index] << self.bits;
            Region::new(start..start + sectors, kind)
        };
        Box::new([
            Region::new(0..random_sectors, RegionKind::Random),
            of(0, RegionKind::Append),
            of(1, RegionKind::DeviceOwned { of: 1 }),
            of(2, RegionKind::Append),
            of(3, RegionKind::DeviceOwned { of: 3 }),
        ])
    }

    /// All logical lines.
    pub(super) const fn logical_lines(&self) -> u32 {
        REGIONS as u32 * self.superblocks * self.instances
    }

    /// The superblock that an address lies in.
    #[inline]
    pub(super) fn superblock(&self, lba: Lba) -> Option<InSuperblock> {
        let partition = lba.0 >> self.bits;
        let region = PARTITIONS.iter().position(|of| *of == partition)?;
        let offset = lba.0 & ((1 << self.bits) - 1);
        let (number, sector) = (
            (offset / u64::from(self.superblock_sectors)) as u32,
            (offset % u64::from(self.superblock_sectors)) as u32,
        );
        let superblock = region as u32 * self.superblocks + number;
        (number < self.superblocks).then_some(InSuperblock { superblock, sector })
    }

    /// The logical line of an address, and the sector of that.
    #[inline]
    pub(super) fn line(&self, lba: Lba) -> Option<(LogicalLine, u32)> {
        let InSuperblock { superblock, sector } = self.superblock(lba)?;
        let instance = sector % self.instances;
        Some((superblock * self.instances + instance, sector / self.instances))
    }

    /// The logical line of a superblock in an instance.
    #[inline]
    pub(super) const fn line_of(&self, superblock: u32, instance: u32) -> LogicalLine {
        superblock * self.instances + instance
    }

    /// The instance of a logical line.
    #[inline]
    pub(super) const fn instance(&self, line: LogicalLine) -> u32 {
        line % self.instances
    }

    /// The first address of a superblock.
    #[inline]
    pub(super) const fn start(&self, superblock: u32) -> Lba {
        let (region, number) = (superblock / self.superblocks, superblock % self.superblocks);
        Lba((PARTITIONS[region as usize] << self.bits)
            + number as u64 * self.superblock_sectors as u64)
    }

    /// The address of a sector of a logical line.
    #[inline]
    pub(super) const fn address(&self, line: LogicalLine, sector: u32) -> Lba {
        let start = self.start(line / self.instances);
        start.plus((sector * self.instances + line % self.instances) as u64)
    }

    /// The region of a logical line.
    #[inline]
    const fn region(&self, line: LogicalLine) -> u32 {
        line / self.instances / self.superblocks
    }

    /// What a logical line holds.
    #[inline]
    pub(super) const fn class(&self, line: LogicalLine) -> Class {
        if self.region(line) < 2 { Class::Data } else { Class::Node }
    }

    /// What is at an address of a record; data at one that lies in no region.
    pub(super) fn class_at(&self, lba: Lba) -> Class {
        self.line(lba).map_or(Class::Data, |(line, _)| self.class(line))
    }

    /// Whether the device alone writes a logical line.
    #[inline]
    pub(super) const fn is_owned(&self, line: LogicalLine) -> bool {
        self.region(line) % 2 == 1
    }

    /// The superblocks to which the device moves data of a class.
    pub(super) const fn owned(&self, class: Class) -> std::ops::Range<u32> {
        let first = (2 * class as u32 + 1) * self.superblocks;
        first..first + self.superblocks
    }
}

#[cfg(test)]
impl Space {
    /// Of tests: 20 logical lines of 12 sectors in each region.
    pub(super) const SMALL: Self =
        Self { bits: 10, superblocks: 5, instances: 4, superblock_sectors: 48 };
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPACE: Space = Space::SMALL;

    /// Every address of a region has one place, which leads back to it, and neighbours go to other instances.
    #[test]
    fn addresses_have_places() {
        let mut lines = vec![0; SPACE.logical_lines() as usize];
        for region in SPACE.regions(7).iter().skip(1) {
            for lba in region.range.clone().map(Lba) {
                let (line, sector) = SPACE.line(lba).unwrap();
                assert_eq!(SPACE.address(line, sector), lba);
                assert!(sector < 12);
                lines[line as usize] += 1;
                let within = SPACE.superblock(lba).unwrap();
                assert_eq!(SPACE.start(within.superblock).plus(within.sector.into()), lba);
                assert_eq!(SPACE.instance(line), within.sector % 4);
            }
            assert_eq!(SPACE.line(Lba(region.range.end)), None);
        }
        assert!(lines.iter().all(|sectors| *sectors == 12));
    }

    /// What is moved of a class goes to the region after its own.
    #[test]
    fn classes_have_regions() {
        let superblock = |lba| SPACE.superblock(Lba(lba)).unwrap().superblock;
        for (partition, class, owned) in [
            (1, Class::Data, false),
            (3, Class::Data, true),
            (4, Class::Node, false),
            (7, Class::Node, true),
        ] {
            let first = superblock(partition << 10);
            let line = SPACE.line_of(first, 3);
            assert_eq!((SPACE.class(line), SPACE.is_owned(line)), (class, owned));
            assert_eq!(SPACE.class_at(Lba(partition << 10)), class);
            assert_eq!(SPACE.owned(class).contains(&first), owned);
        }
        assert_eq!(SPACE.line(Lba(5)), None);
        assert_eq!(SPACE.line(Lba(2 << 10)), None);
    }
}
