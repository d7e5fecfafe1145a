//! What a file is at its fsync, and how that lies in the area: one block, and the blocks of the extent
//! tree behind it. Integers are big-endian, as in the rest of the journal.

use crate::ext4::format::crc32c;
use crate::ext4::journal::disk::{BLOCK_BYTES, be32, put32};
use crate::ext4::journal::tid::Tid;
use nandscape_block::SectorBytes;
use std::sync::Arc;

/// "iJrn".
const MAGIC: u32 = 0x694a_726e;
/// Where the variable part begins: the inode, names, and the addresses of tree blocks.
const BODY_AT: usize = 0x30;

/// Where each field of the head lies.
mod at {
    pub(super) const MAGIC: usize = 0x00;
    pub(super) const CHECKSUM: usize = 0x04;
    pub(super) const EPOCH: usize = 0x08;
    pub(super) const TID: usize = 0x0c;
    pub(super) const SEQUENCE: usize = 0x10;
    pub(super) const INODE: usize = 0x18;
    pub(super) const GENERATION: usize = 0x1c;
    pub(super) const BLOCKS: usize = 0x20;
    pub(super) const IMAGE_BYTES: usize = 0x24;
    pub(super) const NAMES: usize = 0x26;
    pub(super) const NODES: usize = 0x28;
}

/// The fields of a record's head: name, place, bytes.
#[cfg(test)]
pub(in crate::ext4::journal) const FIELDS: [(&str, usize, usize); 11] = [
    ("magic", at::MAGIC, 4),
    ("checksum", at::CHECKSUM, 4),
    ("epoch", at::EPOCH, 4),
    ("tid", at::TID, 4),
    ("sequence", at::SEQUENCE, 8),
    ("inode", at::INODE, 4),
    ("generation", at::GENERATION, 4),
    ("blocks", at::BLOCKS, 4),
    ("image_bytes", at::IMAGE_BYTES, 2),
    ("names", at::NAMES, 2),
    ("nodes", at::NODES, 4),
];

/// A name that a new file got.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewName {
    /// The directory's inode.
    pub parent: u32,
    /// The kind of file, as a directory's records have it.
    pub kind: u8,
    /// The name, at most 255 bytes.
    pub name: Vec<u8>,
}

/// What a file is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileRecord {
    /// The inode's number.
    pub inode: u32,
    /// Its generation.
    pub generation: u32,
    /// The inode as it lies in the inode table, at most 1,024 bytes.
    pub image: Vec<u8>,
    /// The names that the file got since the last commit.
    pub names: Vec<NewName>,
    /// The blocks of its extent tree: address and content.
    pub nodes: Vec<(u64, Arc<SectorBytes>)>,
}

/// Which record it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stamp {
    /// Which use of the area it belongs to.
    pub(super) epoch: u32,
    /// The transaction whose commit ends it.
    pub(super) tid: Tid,
    /// Its place among all records of its epoch.
    pub(super) sequence: u64,
}

impl FileRecord {
    /// Blocks that the record takes.
    #[must_use]
    pub fn blocks(&self) -> u32 {
        1 + self.nodes.len() as u32
    }

    /// The record's blocks; none if the first cannot hold what it must.
    pub(super) fn encode(&self, stamp: Stamp, seed: u32) -> Option<Vec<Box<SectorBytes>>> {
        let mut head = Box::new([0; BLOCK_BYTES]);
        put32(&mut head[..], at::MAGIC, MAGIC);
        put32(&mut head[..], at::EPOCH, stamp.epoch);
        put32(&mut head[..], at::TID, stamp.tid.0);
        head[at::SEQUENCE..at::SEQUENCE + 8].copy_from_slice(&stamp.sequence.to_be_bytes());
        put32(&mut head[..], at::INODE, self.inode);
        put32(&mut head[..], at::GENERATION, self.generation);
        put32(&mut head[..], at::BLOCKS, self.blocks());
        let (image, names) = (u16::try_from(self.image.len()), u16::try_from(self.names.len()));
        head[at::IMAGE_BYTES..at::NAMES].copy_from_slice(&image.ok()?.to_be_bytes());
        head[at::NAMES..at::NODES].copy_from_slice(&names.ok()?.to_be_bytes());
        put32(&mut head[..], at::NODES, self.nodes.len() as u32);
        let mut writer = Writer { bytes: &mut head[..], at: BODY_AT };
        writer.put(&self.image)?;
        for NewName { parent, kind, name } in &self.names {
            writer.put(&parent.to_be_bytes())?;
            writer.put(&[*kind, u8::try_from(name.len()).ok()?])?;
            writer.put(name)?;
        }
        for (block, _) in &self.nodes {
            writer.put(&block.to_be_bytes())?;
        }
        let mut blocks = vec![head];
        blocks.extend(self.nodes.iter().map(|(_, node)| Box::new(**node)));
        let checksum = checksum(seed, blocks.iter().map(|block| &**block));
        put32(&mut blocks[0][..], at::CHECKSUM, checksum);
        Some(blocks)
    }

    /// The record that begins with the first of these blocks, if one does and all of it is there.
    pub(super) fn parse(blocks: &[Arc<SectorBytes>], seed: u32) -> Option<(Stamp, Self)> {
        let head = blocks.first()?;
        let word = |at| be32(&head[..], at);
        let (count, nodes) = (word(at::BLOCKS) as usize, word(at::NODES) as usize);
        let own = blocks.get(..count)?;
        let sound = word(at::MAGIC) == MAGIC && nodes.checked_add(1) == Some(count);
        if !sound || word(at::CHECKSUM) != checksum(seed, own.iter().map(|block| &**block)) {
            return None;
        }
        let (image_bytes, names) = (word(at::IMAGE_BYTES) >> 16, word(at::IMAGE_BYTES) & 0xffff);
        let mut body = Reader(&head[BODY_AT..]);
        let image = body.take(image_bytes as usize)?.to_vec();
        let names = (0..names).map(|_| body.name()).collect::<Option<Vec<_>>>()?;
        let nodes = own[1..]
            .iter()
            .map(|node| Some((body.u64()?, Arc::clone(node))))
            .collect::<Option<Vec<_>>>()?;
        let stamp = Stamp {
            epoch: word(at::EPOCH),
            tid: Tid(word(at::TID)),
            sequence: u64::from(word(at::SEQUENCE)) << 32 | u64::from(word(at::SEQUENCE + 4)),
        };
        let (inode, generation) = (word(at::INODE), word(at::GENERATION));
        Some((stamp, Self { inode, generation, image, names, nodes }))
    }
}

/// The checksum of a record, its own field taken for zero. Of a block of an extent tree, the last bytes come first:
/// they are the CRC-32C of what is before them, and one that goes over both in their order is the same for every
/// content, so that a block of an older record would pass for that of this one.
fn checksum<'a>(seed: u32, blocks: impl Iterator<Item = &'a SectorBytes>) -> u32 {
    blocks.enumerate().fold(seed, |sum, (index, block)| match index {
        0 => {
            let sum = crc32c(sum, &block[..at::CHECKSUM]);
            crc32c(crc32c(sum, &[0; 4]), &block[at::CHECKSUM + 4..])
        }
        _ => crc32c(crc32c(sum, &block[BLOCK_BYTES - 4..]), &block[..BLOCK_BYTES - 4]),
    })
}

/// Puts bytes one behind the other, as long as there is room.
struct Writer<'a> {
    bytes: &'a mut [u8],
    at: usize,
}

impl Writer<'_> {
    fn put(&mut self, bytes: &[u8]) -> Option<()> {
        let end = self.at.checked_add(bytes.len())?;
        self.bytes.get_mut(self.at..end)?.copy_from_slice(bytes);
        self.at = end;
        Some(())
    }
}

/// Takes bytes one behind the other, as long as there are any.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    fn name(&mut self) -> Option<NewName> {
        let parent = self.array().map(u32::from_be_bytes)?;
        let [kind, bytes] = self.array()?;
        Some(NewName { parent, kind, name: self.take(bytes.into())?.to_vec() })
    }
}
