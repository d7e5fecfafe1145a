//! What of a log can be damaged, and how.

use crate::common::image::Image;
use nandscape_block::SectorBytes;
use nandscape_fs::ext4::format::*;
use nandscape_fs::ext4::journal::disk::{
    Checksums, Codec, Header, Kind, MAGIC, Superblock as LogSuperblock, Tags,
};
use nandscape_rt::Stream;

/// Where the words of the journal's superblock lie that say something.
const WORDS: [usize; 14] =
    [0x4, 0xc, 0x10, 0x14, 0x18, 0x1c, 0x20, 0x24, 0x28, 0x2c, 0x30, 0x40, 0x50, 0x54];
const SUM_AT: usize = 0xfc;

/// What a block of the log is in the walk of a recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    Descriptor,
    Copy,
    Revoke,
    Commit,
    /// Behind what counts.
    Rest,
}

/// The log of an image.
pub(super) struct Log {
    /// Where its blocks lie on the volume.
    places: Vec<u64>,
    codec: Codec,
    first: usize,
    end: usize,
    /// From the tail to the head, and some blocks more.
    parts: Vec<(usize, Part)>,
}

impl Log {
    pub(super) fn of(image: &Image) -> Self {
        let places = image.data_blocks(JOURNAL_INODE);
        let raw = Box::new(bytes(image, places[0]));
        let sb = LogSuperblock::parse(raw, places.len() as u64).expect("a journal");
        let (first, end) = (sb.first() as usize, sb.blocks() as usize);
        let mut log = Self { places, codec: sb.codec(), first, end, parts: Vec::new() };
        log.walk(image, sb.start().block as usize, sb.start().tid.0);
        log
    }

    fn after(&self, block: usize) -> usize {
        if block + 1 == self.end { self.first } else { block + 1 }
    }

    fn walk(&mut self, image: &Image, start: usize, mut tid: u32) {
        let mut at = start;
        while at != 0 && self.parts.len() < self.end {
            let block = bytes(image, self.places[at]);
            let header = Header::parse(&block).filter(|header| header.tid.0 == tid);
            let (part, copies) = match header.map(|header| header.kind) {
                Some(Kind::Descriptor) => {
                    (Part::Descriptor, Tags::parse(&self.codec, &block).count())
                }
                Some(Kind::Revoke) => (Part::Revoke, 0),
                Some(Kind::Commit) => (Part::Commit, 0),
                _ => break,
            };
            tid += u32::from(part == Part::Commit);
            self.parts.push((at, part));
            at = self.after(at);
            for _ in 0..copies {
                self.parts.push((at, Part::Copy));
                at = self.after(at);
            }
        }
        for _ in 0..if at == 0 { 0 } else { 3 } {
            self.parts.push((at, Part::Rest));
            at = self.after(at);
        }
    }

    /// Damages the image's log, or what the superblock says of it; tells how. `None`: there is nothing so to damage.
    pub(super) fn damage(&self, image: &mut Image, rng: &mut Stream) -> Option<String> {
        match rng.below(12) {
            0 => self.superblock(image, rng),
            1 => Some(volume(image, rng)),
            2 => self.overwrite(image, rng),
            3 => self.cut(image, rng),
            _ => self.word(image, rng),
        }
    }

    /// A part of the log: of each kind as often.
    fn some_part(&self, rng: &mut Stream) -> Option<(usize, Part)> {
        let kinds = [Part::Descriptor, Part::Copy, Part::Revoke, Part::Commit, Part::Rest];
        let kind = kinds[rng.below(5) as usize];
        let parts: Vec<_> = self.parts.iter().filter(|(_, part)| *part == kind).collect();
        let late = rng.below(2) == 0;
        let from = if late { parts.len().saturating_sub(2) } else { 0 };
        let count = parts.len() - from;
        (count > 0).then(|| *parts[from + rng.below(count as u64) as usize])
    }

    /// A word of a block, and maybe the checksum that it should have.
    fn word(&self, image: &mut Image, rng: &mut Stream) -> Option<String> {
        let (index, part) = self.some_part(rng)?;
        let place = self.places[index];
        let block = image.block(place);
        let used: Vec<usize> = (0..1024).filter(|at| block[at * 4..at * 4 + 4] != [0; 4]).collect();
        let reported = self.codec.checksums != Checksums::None && rng.below(2) == 0;
        let at = match rng.below(4) {
            0 if reported => rng.below(1024) as usize,
            1 if reported && !used.is_empty() => used[rng.below(used.len() as u64) as usize],
            // What no checksum tells of must not lead to another file system.
            _ if part == Part::Copy && !reported => return None,
            _ if part == Part::Commit => rng.below(16) as usize,
            _ => rng.below(3) as usize,
        };
        let before = word(image, place, at * 4);
        let after = changed(before, rng);
        put(image, place, at * 4, after);
        let mended = !reported && self.mend(image, place, part);
        let how = if mended { ", mended" } else { "" };
        let at = at * 4;
        Some(format!("log block {index}, {part:?}, byte {at:#x}: {before:#x} is {after:#x}{how}"))
    }

    fn mend(&self, image: &mut Image, place: u64, part: Part) -> bool {
        let at = match part {
            Part::Descriptor | Part::Revoke => BLOCK_BYTES - 4,
            Part::Commit => 0x10,
            Part::Copy | Part::Rest => return false,
        };
        if self.codec.checksums == Checksums::None {
            return false;
        }
        put(image, place, at, 0);
        let sum = crc32c(self.codec.seed(), image.block(place));
        put(image, place, at, sum);
        true
    }

    /// A block that another one, or nothing, has replaced.
    fn overwrite(&self, image: &mut Image, rng: &mut Stream) -> Option<String> {
        let (index, part) = self.some_part(rng)?;
        if part == Part::Copy && self.codec.checksums == Checksums::None {
            return None;
        }
        let other = self.some_part(rng).filter(|_| rng.below(3) > 0);
        let content = other.map_or([0; BLOCK_BYTES], |(other, _)| bytes(image, self.places[other]));
        let at = self.places[index] as usize * BLOCK_BYTES;
        // A part of a block, as where power goes in its midst.
        let half = [512, 1024, BLOCK_BYTES, BLOCK_BYTES][rng.below(4) as usize];
        let from = if rng.below(2) == 0 { 0 } else { BLOCK_BYTES - half };
        image.bytes[at + from..at + from + half].copy_from_slice(&content[from..from + half]);
        Some(format!("log block {index}, {part:?}, bytes {from} and {half} more are of {other:?}"))
    }

    /// The end of the log is missing.
    fn cut(&self, image: &mut Image, rng: &mut Stream) -> Option<String> {
        if self.parts.is_empty() {
            return None;
        }
        let from = rng.below(self.parts.len() as u64) as usize;
        for (index, _) in &self.parts[from..] {
            let at = self.places[*index] as usize * BLOCK_BYTES;
            image.bytes[at..at + BLOCK_BYTES].fill(0);
        }
        Some(format!("log from block {:?} on is zeroes", self.parts[from]))
    }

    fn superblock(&self, image: &mut Image, rng: &mut Stream) -> Option<String> {
        let place = self.places[0];
        let at = WORDS[rng.below(WORDS.len() as u64) as usize];
        let before = word(image, place, at);
        let after = changed(before, rng);
        // The kernel takes no short journal, and none of the old kind where it wants features; we take both.
        let short = (at == 0x10 && after < 1024) || (at == 0x14 && after > 1);
        if short || (at == 0x4 && after == 3) {
            return None;
        }
        put(image, place, at, after);
        if self.codec.checksums == Checksums::None || rng.below(4) == 0 {
            return Some(format!("journal superblock, byte {at:#x}: {before:#x} is {after:#x}"));
        }
        put(image, place, SUM_AT, 0);
        let sum = crc32c(!0, &image.block(place)[..1024]);
        put(image, place, SUM_AT, sum);
        Some(format!("journal superblock, byte {at:#x}: {before:#x} is {after:#x}, mended"))
    }
}

/// What the volume's superblock says of the log, or of errors.
fn volume(image: &mut Image, rng: &mut Stream) -> String {
    let mut sb = image.sb.clone();
    let what = match rng.below(3) {
        0 => {
            sb.set_feature(Feature::NEEDS_RECOVERY, false);
            "needs no recovery"
        }
        1 => {
            sb.state |= STATE_ERRORS;
            "has errors"
        }
        _ => {
            sb.error_count = 3;
            "counts errors"
        }
    };
    sb.encode(&mut image.bytes[SUPERBLOCK_AT..SUPERBLOCK_AT + SUPERBLOCK_BYTES]);
    format!("superblock: {what}")
}

fn changed(old: u32, rng: &mut Stream) -> u32 {
    match rng.below(9) {
        0 => 0,
        1 => u32::MAX,
        2 => rng.below(1 << 32) as u32,
        3 => rng.below(1500) as u32,
        4 => old.wrapping_add(1),
        5 => old.wrapping_sub(1),
        6 => MAGIC,
        _ => old ^ 1 << rng.below(32),
    }
}

fn bytes(image: &Image, block: u64) -> SectorBytes {
    image.block(block).try_into().expect("a block")
}

fn word(image: &Image, block: u64, at: usize) -> u32 {
    u32::from_be_bytes(image.block(block)[at..at + 4].try_into().expect("a word"))
}

fn put(image: &mut Image, block: u64, at: usize, value: u32) {
    let at = block as usize * BLOCK_BYTES + at;
    image.bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
}
