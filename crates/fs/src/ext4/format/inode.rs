//! Inodes. Source: Documentation/filesystems/ext4/inodes.rst.
//!
//! An inode of 256 bytes is 128 old ones, `extra_isize` newer ones, and room for extended attributes.
//! Fields that `extra_isize` leaves out read as 0 and are not written, since attributes may lie there.

use super::checksum::CsumSeed;
use super::error::{FormatError, Place};
use super::superblock::Superblock;
use crate::wire::{put_u16, record, u16_at};

/// Bytes of an inode without extra fields.
pub const INODE_BYTES_OLD: usize = 128;
/// Bytes of the newest inode known: what `extra_isize` of a new one says, and 128.
pub const INODE_BYTES_KNOWN: usize = 160;
/// Bytes of the block map, extent root, or short symbolic link.
pub const INODE_MAP_BYTES: usize = 60;

/// Inode of the blocks that cannot be used.
pub const BAD_INODE: u32 = 1;
/// Inode of the root directory.
pub const ROOT_INODE: u32 = 2;
/// Inode of the boot loader.
pub const BOOT_INODE: u32 = 5;
/// Inode of the blocks reserved for more descriptors.
pub const RESIZE_INODE: u32 = 7;
/// Inode of the journal.
pub const JOURNAL_INODE: u32 = 8;

/// Flags of an inode.
pub mod flag {
    /// Appended to only.
    pub const APPEND: u32 = 0x20;
    /// Not changed at all.
    pub const IMMUTABLE: u32 = 0x10;
    /// Its number marks a file of AFS.
    pub const IMAGIC: u32 = 0x2000;
    /// A directory with an htree.
    pub const INDEX: u32 = 0x1000;
    /// `blocks` counts file-system blocks.
    pub const HUGE_FILE: u32 = 0x4_0000;
    /// Mapped by extents.
    pub const EXTENTS: u32 = 0x8_0000;
    /// Encrypted.
    pub const ENCRYPT: u32 = 0x800;
    /// Guarded by a Merkle tree.
    pub const VERITY: u32 = 0x10_0000;
    /// Its value is an extended attribute of another inode.
    pub const EA_INODE: u32 = 0x20_0000;
    /// Content lies in the inode.
    pub const INLINE_DATA: u32 = 0x1000_0000;
    /// Names are compared without case.
    pub const CASEFOLD: u32 = 0x4000_0000;
}

/// Types of file, as in `mode`.
pub mod mode {
    /// The bits of the type.
    pub const TYPE: u16 = 0xf000;
    /// Named pipe.
    pub const FIFO: u16 = 0x1000;
    /// Character device.
    pub const CHAR: u16 = 0x2000;
    /// Directory.
    pub const DIR: u16 = 0x4000;
    /// Block device.
    pub const BLOCK: u16 = 0x6000;
    /// Regular file.
    pub const REGULAR: u16 = 0x8000;
    /// Symbolic link.
    pub const SYMLINK: u16 = 0xa000;
    /// Socket.
    pub const SOCKET: u16 = 0xc000;
}

/// Where the two halves of the checksum stand.
const CHECKSUM_AT: usize = 0x7c;
const UPPER_CHECKSUM_AT: usize = 0x82;

record! {
    /// An inode. What it leaves out survives in the bytes that it is written over.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct Inode {
        /// Type and permissions.
        mode: u16 = 0x0,
        /// Owner.
        uid: u32 = 0x2 [2] + 0x78 [2],
        /// Bytes.
        size: u64 = 0x4 [4] + 0x6c [4],
        /// Last access, low 32 bits of the seconds.
        atime_lo: u32 = 0x8,
        /// Last change of the inode.
        ctime_lo: u32 = 0xc,
        /// Last change of the content.
        mtime_lo: u32 = 0x10,
        /// When it was deleted; of an orphan the next one in the list.
        dtime: u32 = 0x14,
        /// Group.
        gid: u32 = 0x18 [2] + 0x7a [2],
        /// Names.
        links_count: u16 = 0x1a,
        /// Sectors of 512 bytes, or blocks if the flag `HUGE_FILE` is on.
        blocks: u64 = 0x1c [4] + 0x74 [2],
        /// See [`flag`].
        flags: u32 = 0x20,
        /// Low half of the version.
        version_lo: u32 = 0x24,
        /// Extent root, block map, short symbolic link, or device number.
        map: [u8; 60] = 0x28,
        /// Distinguishes uses of one inode number.
        generation: u32 = 0x64,
        /// Block of extended attributes.
        file_acl: u64 = 0x68 [4] + 0x76 [2],
        /// Address of a fragment, which there never were: 0.
        faddr: u32 = 0x70,
        /// crc32c; the upper half only if `extra_isize` reaches it.
        checksum: u32 = 0x7c [2] + 0x82 [2],
        /// Bytes of the fields below.
        extra_isize: u16 = 0x80,
        /// Nanoseconds and two more bits of seconds.
        ctime_extra: u32 = 0x84,
        /// Of the last change of the content.
        mtime_extra: u32 = 0x88,
        /// Of the last access.
        atime_extra: u32 = 0x8c,
        /// When it was made.
        crtime_lo: u32 = 0x90,
        /// Its nanoseconds and two more bits of seconds.
        crtime_extra: u32 = 0x94,
        /// Upper half of the version.
        version_hi: u32 = 0x98,
        /// Project.
        projid: u32 = 0x9c,
    }
}

impl Default for Inode {
    fn default() -> Self {
        Self::read(&[])
    }
}

/// A point in time, in seconds since 1970 and nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Timestamp {
    /// Seconds; from 1901 to 2446 can be kept.
    pub seconds: i64,
    /// Nanoseconds, below 1,000,000,000.
    pub nanos: u32,
}

impl Timestamp {
    /// From the two words of an inode.
    #[must_use]
    pub const fn decode(low: u32, extra: u32) -> Self {
        let seconds = low as i32 as i64 + ((extra as i64 & 3) << 32);
        Self { seconds, nanos: extra >> 2 }
    }

    /// The two words of an inode.
    #[must_use]
    pub const fn encode(self) -> (u32, u32) {
        let low = self.seconds as u32;
        let epoch = (self.seconds.wrapping_sub(low as i32 as i64) >> 32) as u32 & 3;
        (low, self.nanos << 2 | epoch)
    }
}

impl Inode {
    /// Reads an inode from its bytes, as many as the superblock says.
    ///
    /// # Errors
    /// A checksum that does not hold, or extra fields that do not fit. An inode of zeroes, which was
    /// never used, is sound.
    pub fn parse(bytes: &[u8], inode: u32, sb: &Superblock) -> Result<Self, FormatError> {
        let read = Self::read_known(bytes, inode)?;
        if let Some(seed) = read.seed(inode, sb) {
            let computed = read.seal(&mut bytes.to_vec(), seed);
            let unused = bytes.iter().all(|&byte| byte == 0);
            let stored = if unused { computed } else { read.checksum };
            FormatError::checksum(Place::Inode(inode), stored, computed)?;
        }
        Ok(read)
    }

    /// Reads an inode without looking at its checksum.
    ///
    /// # Errors
    /// Extra fields that do not fit.
    pub fn read_known(bytes: &[u8], inode: u32) -> Result<Self, FormatError> {
        let extra = usize::from(u16_at(bytes, INODE_BYTES_OLD));
        let room = bytes.len().checked_sub(INODE_BYTES_OLD);
        let room = room.ok_or(FormatError::corrupt(Place::Inode(inode), 0, "is cut short"))?;
        if extra > room || extra % 4 != 0 {
            let what = "extra fields do not fit the inode";
            return Err(FormatError::corrupt(Place::Inode(inode), INODE_BYTES_OLD, what));
        }
        let mut read = Self::read(&bytes[..INODE_BYTES_OLD + extra]);
        read.extra_isize = extra as u16;
        Ok(read)
    }

    /// Writes the inode over its bytes, checksum included; `seed` is the inode's ([`Inode::seed`]).
    pub fn encode(&self, bytes: &mut [u8], seed: Option<CsumSeed>) {
        put_u16(bytes, INODE_BYTES_OLD, self.extra_isize);
        let known = bytes.len().min(INODE_BYTES_OLD + usize::from(self.extra_isize));
        self.write(&mut bytes[..known]);
        if let Some(seed) = seed {
            self.seal(bytes, seed);
        }
    }

    /// Writes the checksum that the bytes of this inode should have, and returns it.
    fn seal(&self, bytes: &mut [u8], seed: CsumSeed) -> u32 {
        self.put_checksum(bytes, 0);
        let whole = seed.inode(bytes);
        self.put_checksum(bytes, whole);
        if self.keeps_upper() { whole } else { whole & 0xffff }
    }

    fn put_checksum(&self, bytes: &mut [u8], checksum: u32) {
        put_u16(bytes, CHECKSUM_AT, checksum as u16);
        if self.keeps_upper() {
            put_u16(bytes, UPPER_CHECKSUM_AT, (checksum >> 16) as u16);
        }
    }

    /// Whether it reaches the upper half of its checksum; one that ends before keeps the lower only.
    const fn keeps_upper(&self) -> bool {
        self.extra_isize >= 4
    }

    /// Where checksums of what belongs to this inode begin; `None` without `metadata_csum`.
    #[must_use]
    pub fn seed(&self, inode: u32, sb: &Superblock) -> Option<CsumSeed> {
        Some(sb.csum_seed()?.of_inode(inode, self.generation))
    }

    /// The type of file, one of [`mode`]'s.
    #[must_use]
    pub const fn file_type(&self) -> u16 {
        self.mode & mode::TYPE
    }

    /// Whether it is a directory.
    #[must_use]
    pub const fn is_dir(&self) -> bool {
        self.file_type() == mode::DIR
    }

    /// Whether a flag is set.
    #[must_use]
    pub const fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    /// The target of a symbolic link that is kept in the inode.
    #[must_use]
    pub fn fast_symlink(&self) -> Option<&[u8]> {
        let fast = self.file_type() == mode::SYMLINK
            && self.size < INODE_MAP_BYTES as u64
            && !self.has(flag::EXTENTS | flag::INLINE_DATA);
        fast.then(|| &self.map[..self.size as usize])
    }

    /// Keeps the target of a symbolic link in the inode, if it is short enough.
    #[must_use]
    pub fn set_fast_symlink(&mut self, target: &[u8]) -> bool {
        let fits = target.len() < INODE_MAP_BYTES;
        if fits {
            self.map = [0; INODE_MAP_BYTES];
            self.map[..target.len()].copy_from_slice(target);
            self.size = target.len() as u64;
        }
        fits
    }

    /// Major and minor number of a device.
    #[must_use]
    pub fn device(&self) -> (u32, u32) {
        let word = |at| crate::wire::u32_at(&self.map, at);
        match word(0) {
            0 => (word(4) >> 8 & 0xfff, word(4) & 0xff | word(4) >> 12 & 0xfff00),
            old => (old >> 8 & 0xff, old & 0xff),
        }
    }

    /// Keeps the number of a device, in the old form if it fits that.
    pub fn set_device(&mut self, major: u32, minor: u32) {
        self.map = [0; INODE_MAP_BYTES];
        if major < 256 && minor < 256 {
            crate::wire::put_u32(&mut self.map, 0, major << 8 | minor);
        } else {
            let new = minor & 0xff | (major & 0xfff) << 8 | (minor & !0xff) << 12;
            crate::wire::put_u32(&mut self.map, 4, new);
        }
    }

    /// Blocks of 4 KiB that belong to it, attributes and map included, rounded down.
    #[must_use]
    pub const fn blocks_4k(&self) -> u64 {
        if self.has(flag::HUGE_FILE) { self.blocks } else { self.blocks / 8 }
    }

    /// Says how many blocks of 4 KiB belong to it; counts in blocks only where sectors do not fit.
    pub const fn set_blocks_4k(&mut self, blocks: u64) {
        if blocks < (1 << 48) / 8 {
            self.flags &= !flag::HUGE_FILE;
            self.blocks = blocks * 8;
        } else {
            self.flags |= flag::HUGE_FILE;
            self.blocks = blocks;
        }
    }
}

macro_rules! times {
    ($($get:ident $set:ident $low:ident $extra:ident $what:literal,)*) => {
        impl Inode {$(
            #[doc = $what]
            #[must_use]
            pub const fn $get(&self) -> Timestamp {
                Timestamp::decode(self.$low, self.$extra)
            }

            #[doc = concat!("Sets: ", $what)]
            pub const fn $set(&mut self, time: Timestamp) {
                (self.$low, self.$extra) = time.encode();
            }
        )*}
    };
}

times! {
    atime set_atime atime_lo atime_extra "Last access.",
    ctime set_ctime ctime_lo ctime_extra "Last change of the inode.",
    mtime set_mtime mtime_lo mtime_extra "Last change of the content.",
    crtime set_crtime crtime_lo crtime_extra "When it was made.",
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Every time from 1901 to 2446 is kept to the nanosecond.
        #[test]
        fn times_are_kept(seconds in -(1_i64 << 31)..(3_i64 << 32) + (1 << 31), nanos in 0..1_000_000_000_u32) {
            let time = Timestamp { seconds, nanos };
            let (low, extra) = time.encode();
            prop_assert_eq!(Timestamp::decode(low, extra), time);
        }

        /// Device numbers are kept, in whichever form.
        #[test]
        fn devices_are_kept(major in 1..4096_u32, minor in 0..1_u32 << 20) {
            let mut inode = Inode::default();
            inode.set_device(major, minor);
            prop_assert_eq!(inode.device(), (major, minor));
        }
    }
}
