//! A snapshot of the map and of the open records, as bytes: a sector that says what follows, then the lines with their
//! bitmaps, then the records. There are two slots, which take turns; one counts when its head is there and the checksum
//! of what follows is right, and the later one of two.
//!
//! | Head | Bytes |
//! |---|---|
//! | magic, CRC-32C of the rest of the head | 4, 4 |
//! | number of the snapshot, sector of the ring that follows it | 8, 8 |
//! | mount, lines, records of data, records of nodes | 4, 4, 4, 4 |
//! | bytes after the head, their CRC-32C | 8, 4 |
//!
//! A line: logical line, line, generation, sectors written (4 bytes each), bitmap (8 bytes per 64 sectors). A record: old
//! and new address (4 bytes each).

use nandscape_block::{Lba, SECTOR_BYTES, SectorBytes};

const MAGIC: u32 = 0x534e_4443;
const HEAD_BYTES: usize = 52;

/// A line of a snapshot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct SavedLine {
    pub(super) logical: u32,
    pub(super) line: u32,
    pub(super) generation: u32,
    pub(super) written: u32,
    pub(super) bitmap: Vec<u64>,
}

/// What a snapshot says.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Snapshot {
    pub(super) number: u64,
    /// The first sector of the ring that it does not contain.
    pub(super) start: u64,
    pub(super) mount: u32,
    pub(super) lines: Vec<SavedLine>,
    /// Old and new addresses of the open records of data, and of nodes, in order.
    pub(super) records: [Vec<(Lba, Lba)>; 2],
}

/// A head that was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Head {
    pub(super) number: u64,
    start: u64,
    mount: u32,
    lines: u32,
    records: [u32; 2],
    pub(super) bytes: u64,
    crc: u32,
}

impl Snapshot {
    /// The head, and what follows it.
    pub(super) fn encode(&self) -> (Box<SectorBytes>, Vec<u8>) {
        let mut body = Vec::new();
        let mut put = |word: u32| body.extend_from_slice(&word.to_le_bytes());
        for line in &self.lines {
            [line.logical, line.line, line.generation, line.written].into_iter().for_each(&mut put);
            let words = line.bitmap.iter().flat_map(|word| [*word as u32, (*word >> 32) as u32]);
            words.for_each(&mut put);
        }
        let records = self.records.iter().flatten();
        records.flat_map(|(old, new)| [old.0 as u32, new.0 as u32]).for_each(put);
        let mut head = Box::new([0; SECTOR_BYTES as usize]);
        let mut at = 8;
        let mut put = |bytes: &[u8]| {
            head[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        put(&self.number.to_le_bytes());
        put(&self.start.to_le_bytes());
        put(&self.mount.to_le_bytes());
        put(&(self.lines.len() as u32).to_le_bytes());
        self.records.iter().for_each(|records| put(&(records.len() as u32).to_le_bytes()));
        put(&(body.len() as u64).to_le_bytes());
        put(&crc32c::crc32c(&body).to_le_bytes());
        let crc = crc32c::crc32c(&head[8..HEAD_BYTES]);
        head[..4].copy_from_slice(&MAGIC.to_le_bytes());
        head[4..8].copy_from_slice(&crc.to_le_bytes());
        (head, body)
    }

    /// What a head and the bytes after it say, for bitmaps of so many words; `None` if they do not belong together.
    pub(super) fn decode(head: &Head, body: &[u8], bitmap_words: usize) -> Option<Self> {
        let body = body.get(..usize::try_from(head.bytes).ok()?)?;
        if crc32c::crc32c(body) != head.crc {
            return None;
        }
        let mut words = body.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word));
        let mut lines = Vec::new();
        for _ in 0..head.lines {
            let mut next = || words.next();
            let (logical, line, generation, written) = (next()?, next()?, next()?, next()?);
            let word = |_| Some(u64::from(words.next()?) | u64::from(words.next()?) << 32);
            let bitmap = (0..bitmap_words).map(word).collect::<Option<_>>()?;
            lines.push(SavedLine { logical, line, generation, written, bitmap });
        }
        let mut pair = || Some((Lba(words.next()?.into()), Lba(words.next()?.into())));
        let mut records = [Vec::new(), Vec::new()];
        for (list, count) in records.iter_mut().zip(head.records) {
            *list = (0..count).map(|_| pair()).collect::<Option<_>>()?;
        }
        Some(Self { number: head.number, start: head.start, mount: head.mount, lines, records })
    }
}

impl Head {
    /// `None` of anything else.
    pub(super) fn decode(bytes: &SectorBytes) -> Option<Self> {
        let mut at = 0;
        let mut word = || {
            let word = bytes[at..].first_chunk().map_or(0, |word| u32::from_le_bytes(*word));
            at += 4;
            word
        };
        let (magic, crc) = (word(), word());
        if magic != MAGIC || crc != crc32c::crc32c(&bytes[8..HEAD_BYTES]) {
            return None;
        }
        let mut long = || u64::from(word()) | u64::from(word()) << 32;
        let (number, start) = (long(), long());
        let (mount, lines, records) = (word(), word(), [word(), word()]);
        let bytes = u64::from(word()) | u64::from(word()) << 32;
        // Numbers that no device reaches.
        if number.max(start) >= 1 << 56 || mount == u32::MAX {
            return None;
        }
        Some(Self { number, start, mount, lines, records, bytes, crc: word() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A snapshot reads as it was written, and one that does not belong to its head is none.
    #[test]
    fn snapshots_read_as_written() {
        let line = |n: u32| SavedLine {
            logical: n,
            line: 2 * n,
            generation: 3 * n,
            written: 90,
            bitmap: vec![u64::from(n) << 40 | 5, 7],
        };
        let records = [vec![(Lba(1), Lba(2)), (Lba(3), Lba(0xffff_fff0))], vec![(Lba(8), Lba(9))]];
        let (number, start) = (1 << 40, 77);
        let snapshot = Snapshot { number, start, mount: 4, lines: vec![line(1), line(9)], records };
        let (head, mut body) = snapshot.encode();
        let head = Head::decode(&head).unwrap();
        assert_eq!((head.number, head.bytes), (number, body.len() as u64));
        assert_eq!(Snapshot::decode(&head, &body, 2), Some(snapshot));
        body[20] ^= 1;
        assert_eq!(Snapshot::decode(&head, &body, 2), None);
        assert_eq!(Snapshot::decode(&head, &body[1..], 2), None);
        assert_eq!(Head::decode(&[0; SECTOR_BYTES as usize]), None);
    }
}
