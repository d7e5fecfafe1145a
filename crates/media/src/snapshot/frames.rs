//! A stream of bytes in frames, each compressed (LZ4 block format) and with a checksum
//! (docs/formats/state.md).
//!
//! Whatever was damaged is noticed before a byte of its frame comes out, and no frame makes a reader
//! allocate more than [`FRAME_BYTES`] and its worst compressed size. The end is a frame of its own, so
//! that a stream that was cut off anywhere is noticed.

use super::SnapshotError;
use std::io::{ErrorKind, Read, Write};

/// Content of a frame at most.
pub(super) const FRAME_BYTES: usize = 1 << 20;
/// Length of the content, stored length, checksum.
const HEAD_BYTES: usize = 12;

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

    /// Adds bytes to the stream.
    pub(super) fn put(&mut self, mut bytes: &[u8]) -> Result<(), SnapshotError> {
        while !bytes.is_empty() {
            let room = FRAME_BYTES - self.frame.len();
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.frame.extend_from_slice(now);
            bytes = later;
            if self.frame.len() == FRAME_BYTES {
                self.flush()?;
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), SnapshotError> {
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
    pub(super) fn finish(mut self) -> Result<(), SnapshotError> {
        if !self.frame.is_empty() {
            self.flush()?;
        }
        self.flush()?;
        Ok(self.out.flush()?)
    }
}

/// Of both lengths and the stored bytes.
fn checksum(head: &[u8; HEAD_BYTES], stored: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&head[..8]), stored)
}

/// Reads frames.
pub(super) struct FrameReader<R> {
    input: R,
    /// Where the next frame begins.
    at: u64,
    frame: Vec<u8>,
    /// Bytes of the frame that were given out.
    used: usize,
    stored: Vec<u8>,
    ended: bool,
}

impl<R: Read> FrameReader<R> {
    /// Frames from `input` on, which has been read up to byte `at`.
    pub(super) const fn new(input: R, at: u64) -> Self {
        Self { input, at, frame: Vec::new(), used: 0, stored: Vec::new(), ended: false }
    }

    /// An error about the frame that comes next.
    pub(super) fn damaged(&self, what: &str) -> SnapshotError {
        SnapshotError::Damaged { at: self.at, what: what.to_owned() }
    }

    /// Fills `bytes` with what comes next in the stream.
    pub(super) fn fill(&mut self, bytes: &mut [u8]) -> Result<(), SnapshotError> {
        let mut filled = 0;
        while filled < bytes.len() {
            if self.used == self.frame.len() && !self.next_frame()? {
                return Err(self.damaged("the state ends too early"));
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
        while self.next_frame()? {}
        self.used = self.frame.len();
        Ok(())
    }

    /// The stream must end here, and the input with it.
    pub(super) fn end(&mut self) -> Result<(), SnapshotError> {
        if self.used < self.frame.len() || self.next_frame()? {
            return Err(self.damaged("there is more than belongs to the device"));
        }
        match self.input.read(&mut [0])? {
            0 => Ok(()),
            _ => Err(self.damaged("something follows the state")),
        }
    }

    /// Reads one frame; whether it was not the end.
    fn next_frame(&mut self) -> Result<bool, SnapshotError> {
        if self.ended {
            return Ok(false);
        }
        let mut head = [0; HEAD_BYTES];
        read_exact(&mut self.input, &mut head, self.at)?;
        let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| head[at + i]));
        let (length, stored) = (word(0) as usize, word(4) as usize);
        if length > FRAME_BYTES || stored > lz4_flex::block::get_maximum_output_size(FRAME_BYTES) {
            return Err(self.damaged("a frame has an impossible length"));
        }
        self.stored.resize(stored, 0);
        read_exact(&mut self.input, &mut self.stored, self.at)?;
        if checksum(&head, &self.stored) != word(8) {
            return Err(self.damaged("a checksum does not match"));
        }
        self.frame.resize(length, 0);
        let unpacked = lz4_flex::block::decompress_into(&self.stored, &mut self.frame);
        if unpacked.ok() != Some(length) {
            return Err(self.damaged("a frame does not unpack to its length"));
        }
        self.used = 0;
        self.ended = length == 0;
        self.at += (HEAD_BYTES + stored) as u64;
        Ok(!self.ended)
    }
}

/// Reads `bytes` whole; an input that ends before is damaged.
pub(super) fn read_exact(
    input: &mut impl Read,
    bytes: &mut [u8],
    at: u64,
) -> Result<(), SnapshotError> {
    input.read_exact(bytes).map_err(|error| match error.kind() {
        ErrorKind::UnexpectedEof => {
            SnapshotError::Damaged { at, what: "the file ends too early".to_owned() }
        }
        _ => SnapshotError::Io(error.to_string()),
    })
}
