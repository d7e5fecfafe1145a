//! A stream of bytes in frames, each compressed (LZ4 block format) and with a checksum
//! (docs/formats/state.md).
//!
//! Whatever was damaged is noticed before a byte of its frame comes out, and no frame makes a reader
//! allocate more than [`FRAME_BYTES`] and its worst compressed size. The end is a frame of its own, so
//! that a stream that was cut off anywhere is noticed.

use super::SnapshotError;
use crate::geometry::ChunkId;
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};

/// Content of a frame at most.
pub(super) const FRAME_BYTES: usize = 1 << 20;
/// Length of the content, stored length, checksum.
const HEAD_BYTES: usize = 12;
const FOLLOWED: &str = "something follows the state";

/// Writes frames.
pub(super) struct FrameWriter<W> {
    out: W,
    frame: Vec<u8>,
    packed: Vec<u8>,
}

impl<W: Write> FrameWriter<W> {
    pub(super) fn new(out: W) -> Self {
        let packed = vec![0; lz4_flex::block::get_maximum_output_size(FRAME_BYTES)];
        Self { out, frame: Vec::with_capacity(FRAME_BYTES), packed }
    }

    fn end_frame(&mut self) -> io::Result<()> {
        let packed = lz4_flex::block::compress_into(&self.frame, &mut self.packed);
        // Its room is what the worst case needs.
        let stored = &self.packed[..packed.unwrap_or(0)];
        let mut head = [0; HEAD_BYTES];
        head[..4].copy_from_slice(&(self.frame.len() as u32).to_le_bytes());
        head[4..8].copy_from_slice(&(stored.len() as u32).to_le_bytes());
        let sum = checksum(&head, stored).to_le_bytes();
        head[8..].copy_from_slice(&sum);
        self.out.write_all(&head)?;
        self.out.write_all(stored)?;
        self.frame.clear();
        Ok(())
    }

    /// Ends the stream.
    pub(super) fn finish(mut self) -> io::Result<()> {
        if !self.frame.is_empty() {
            self.end_frame()?;
        }
        self.end_frame()?;
        self.out.flush()
    }
}

impl<W: Write> Write for FrameWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(FRAME_BYTES - self.frame.len());
        self.frame.extend_from_slice(&bytes[..taken]);
        if self.frame.len() == FRAME_BYTES {
            self.end_frame()?;
        }
        Ok(taken)
    }

    /// Frames end when they are full.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Of both lengths and the stored bytes.
fn checksum(head: &[u8; HEAD_BYTES], stored: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&head[..8]), stored)
}

/// What a reader is at: errors say so.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part {
    Beginning,
    Chunks,
    Unreadable,
    Columns(ChunkId),
    /// What is not parsed.
    Rest,
    End,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Beginning => f.write_str("the beginning of the device"),
            Self::Chunks => f.write_str("the chunk table"),
            Self::Unreadable => f.write_str("the list of unreadable sectors"),
            Self::Columns(ChunkId { unit, chunk }) => {
                write!(f, "the content of unit {}, chunk {chunk}", unit.0)
            }
            Self::Rest => f.write_str("what follows the chunk table"),
            Self::End => f.write_str("the end of the device"),
        }
    }
}

/// Reads frames.
pub(super) struct FrameReader<R> {
    input: R,
    /// Where the frame begins that bytes are given out of, and where the next one does.
    began: u64,
    at: u64,
    frame: Vec<u8>,
    /// Bytes of the frame that were given out.
    used: usize,
    stored: Vec<u8>,
    ended: bool,
    part: Part,
}

impl<R: Read> FrameReader<R> {
    /// Frames from `input` on, which has been read up to byte `at`.
    pub(super) const fn new(input: R, at: u64) -> Self {
        Self {
            input,
            began: at,
            at,
            frame: Vec::new(),
            used: 0,
            stored: Vec::new(),
            ended: false,
            part: Part::Beginning,
        }
    }

    /// What comes next is of this part.
    pub(super) const fn enter(&mut self, part: Part) {
        self.part = part;
    }

    /// An error about what was given out last.
    pub(super) fn damaged(&self, what: &str) -> SnapshotError {
        let what = format!("{what}, in {}", self.part);
        SnapshotError::Damaged { at: self.began, what }
    }

    /// An error about the frame that comes next.
    fn damaged_frame(&self, what: &str) -> SnapshotError {
        let what = format!("{what} ({})", self.part);
        SnapshotError::Damaged { at: self.at, what }
    }

    /// Fills `bytes` with what comes next in the stream.
    pub(super) fn fill(&mut self, bytes: &mut [u8]) -> Result<(), SnapshotError> {
        let mut filled = 0;
        while filled < bytes.len() {
            if self.used == self.frame.len() && !self.next_frame()? {
                return Err(self.damaged("truncated file"));
            }
            let length = (bytes.len() - filled).min(self.frame.len() - self.used);
            let from = &self.frame[self.used..self.used + length];
            bytes[filled..filled + length].copy_from_slice(from);
            self.used += length;
            filled += length;
        }
        Ok(())
    }

    /// Reads the rest of the stream and checks it.
    pub(super) fn skip_all(&mut self) -> Result<(), SnapshotError> {
        self.enter(Part::Rest);
        while self.next_frame()? {}
        self.used = self.frame.len();
        Ok(())
    }

    /// The stream must end here, and the input with it.
    pub(super) fn end(&mut self) -> Result<(), SnapshotError> {
        self.enter(Part::End);
        if self.used < self.frame.len() || self.next_frame()? {
            return Err(self.damaged("there is more than belongs to the device"));
        }
        match self.input.read(&mut [0])? {
            0 => Ok(()),
            _ => Err(SnapshotError::Damaged { at: self.at, what: FOLLOWED.to_owned() }),
        }
    }

    /// Reads one frame; whether it was not the end.
    fn next_frame(&mut self) -> Result<bool, SnapshotError> {
        if self.ended {
            return Ok(false);
        }
        let mut head = [0; HEAD_BYTES];
        self.read_exact(&mut head)?;
        let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| head[at + i]));
        let (length, stored) = (word(0) as usize, word(4) as usize);
        if length > FRAME_BYTES || stored > lz4_flex::block::get_maximum_output_size(FRAME_BYTES) {
            return Err(self.damaged_frame("a frame has an impossible length"));
        }
        let mut bytes = std::mem::take(&mut self.stored);
        bytes.resize(stored, 0);
        self.read_exact(&mut bytes)?;
        self.stored = bytes;
        if checksum(&head, &self.stored) != word(8) {
            return Err(self.damaged_frame("a checksum does not match"));
        }
        self.frame.resize(length, 0);
        let unpacked = lz4_flex::block::decompress_into(&self.stored, &mut self.frame);
        if unpacked.ok() != Some(length) {
            return Err(self.damaged_frame("a frame does not unpack to its length"));
        }
        self.used = 0;
        self.ended = length == 0;
        self.began = self.at;
        self.at += (HEAD_BYTES + stored) as u64;
        Ok(!self.ended)
    }

    /// Reads `bytes` whole; an input that ends before is damaged.
    fn read_exact(&mut self, bytes: &mut [u8]) -> Result<(), SnapshotError> {
        self.input.read_exact(bytes).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => self.damaged_frame("truncated file"),
            _ => error.into(),
        })
    }
}
