//! The head of a state file: what the state is of, and where it came from. All integers are
//! little-endian. Byte table: docs/formats/state.md.

use super::FORMAT_VERSION;
use super::key::StateKey;
use crate::stack::Stack;
use nandscape_media::{Geometry, PayloadMode, SnapshotError};
use std::io::{ErrorKind, Read};

/// How a state begins.
const MAGIC: [u8; 8] = *b"nandstat";
/// Bytes in front of the texts.
const FIXED_BYTES: usize = 128;
/// Bytes of a text at most.
const TEXT_BYTES_MAX: u32 = 1 << 20;

/// What preconditioning did.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Preconditioned {
    /// Sectors of the sequential fill.
    pub fill_sectors: u64,
    /// Sectors of the random overwrites.
    pub overwrite_sectors: u64,
    /// Whether write amplification became steady, if that was asked for.
    pub steady: Option<bool>,
}

/// What a state file says of itself.
#[derive(Clone, PartialEq, Debug)]
pub struct Header {
    /// Its name: the hash of `text`.
    pub key: StateKey,
    /// Shape of the device.
    pub geometry: Geometry,
    /// What content is kept.
    pub payload: PayloadMode,
    /// Where its randomness came from.
    pub seed: u64,
    /// What was written.
    pub preconditioned: Preconditioned,
    /// Version and commit of the program that made it.
    pub program: String,
    /// All that it follows from: lines of `key = value`.
    pub text: String,
}

impl Header {
    /// Of a device of `stack` that follows from `text` and holds what was written.
    pub(crate) fn new(
        stack: &Stack,
        seed: u64,
        text: String,
        preconditioned: Preconditioned,
        program: &str,
    ) -> Self {
        Self {
            key: StateKey::of(&text),
            geometry: stack.media.geometry,
            payload: stack.media.payload,
            seed,
            preconditioned,
            program: program.to_owned(),
            text,
        }
    }

    /// Bytes of this header.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        (FIXED_BYTES + self.program.len() + self.text.len()) as u64
    }

    /// As it stands in a file.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; FIXED_BYTES];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, &MAGIC);
        put(8, &FORMAT_VERSION.to_le_bytes());
        put(16, &self.key.0.to_le_bytes());
        for (index, word) in words(&self.geometry).into_iter().enumerate() {
            put(32 + 4 * index, &word.to_le_bytes());
        }
        put(68, &payload_code(self.payload).to_le_bytes());
        put(72, &self.seed.to_le_bytes());
        put(80, &self.preconditioned.fill_sectors.to_le_bytes());
        put(88, &self.preconditioned.overwrite_sectors.to_le_bytes());
        put(96, &steady_code(self.preconditioned.steady).to_le_bytes());
        put(100, &(self.program.len() as u32).to_le_bytes());
        put(104, &(self.text.len() as u32).to_le_bytes());
        bytes.extend_from_slice(self.program.as_bytes());
        bytes.extend_from_slice(self.text.as_bytes());
        let crc = checksum(&bytes);
        bytes[12..16].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// The header that `input` begins with.
    ///
    /// # Errors
    /// Input that is no state, of another version of the format, or damaged.
    pub fn read(input: &mut impl Read) -> Result<Self, SnapshotError> {
        let mut fixed = [0; FIXED_BYTES];
        read_exact(input, &mut fixed, 0)?;
        if fixed[..8] != MAGIC {
            return Err(damaged(0, "this is not a device state"));
        }
        let version = u32_at(&fixed, 8);
        if version != FORMAT_VERSION {
            let what = format!("format version {version}; this program reads {FORMAT_VERSION}");
            return Err(damaged(8, &what));
        }
        let (program, text) = (u32_at(&fixed, 100), u32_at(&fixed, 104));
        if program > TEXT_BYTES_MAX || text > TEXT_BYTES_MAX {
            return Err(damaged(100, "impossible lengths of texts"));
        }
        let mut bytes = fixed.to_vec();
        bytes.resize(FIXED_BYTES + (program + text) as usize, 0);
        read_exact(input, &mut bytes[FIXED_BYTES..], FIXED_BYTES as u64)?;
        if u32_at(&bytes, 12) != checksum(&bytes) {
            return Err(damaged(12, "the checksum of the header does not match"));
        }
        Self::decode(&bytes, FIXED_BYTES + program as usize)
            .ok_or_else(|| damaged(16, "a device that cannot be"))
    }

    /// Fields that make sense together; the first text ends at `middle`.
    fn decode(bytes: &[u8], middle: usize) -> Option<Self> {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
        let header = Self {
            key: StateKey(u128::from_le_bytes(std::array::from_fn(|i| bytes[16 + i]))),
            geometry: geometry(bytes),
            payload: payload_of(u32_at(bytes, 68))?,
            seed: u64_at(bytes, 72),
            preconditioned: Preconditioned {
                fill_sectors: u64_at(bytes, 80),
                overwrite_sectors: u64_at(bytes, 88),
                steady: steady_of(u32_at(bytes, 96))?,
            },
            program: text(&bytes[FIXED_BYTES..middle])?,
            text: text(&bytes[middle..])?,
        };
        let sound = header.geometry.check().is_ok();
        let named = header.key == StateKey::of(&header.text);
        (sound && named && bytes[108..FIXED_BYTES].iter().all(|byte| *byte == 0)).then_some(header)
    }
}

/// Of everything but itself.
fn checksum(bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&bytes[..12]), &bytes[16..])
}

const fn words(geometry: &Geometry) -> [u32; 9] {
    [
        geometry.groups,
        geometry.units,
        geometry.chunks,
        geometry.sectors,
        geometry.ws_min,
        geometry.ws_opt,
        geometry.mw_cunits,
        geometry.maxoc,
        geometry.maxocpu,
    ]
}

fn geometry(bytes: &[u8]) -> Geometry {
    let word = |index: usize| u32_at(bytes, 32 + 4 * index);
    Geometry {
        groups: word(0),
        units: word(1),
        chunks: word(2),
        sectors: word(3),
        ws_min: word(4),
        ws_opt: word(5),
        mw_cunits: word(6),
        maxoc: word(7),
        maxocpu: word(8),
    }
}

const fn payload_code(payload: PayloadMode) -> u32 {
    match payload {
        PayloadMode::None => 0,
        PayloadMode::Tags => 1,
        PayloadMode::Bytes => 2,
    }
}

const fn payload_of(code: u32) -> Option<PayloadMode> {
    match code {
        0 => Some(PayloadMode::None),
        1 => Some(PayloadMode::Tags),
        2 => Some(PayloadMode::Bytes),
        _ => None,
    }
}

const fn steady_code(steady: Option<bool>) -> u32 {
    match steady {
        None => 0,
        Some(false) => 1,
        Some(true) => 2,
    }
}

const fn steady_of(code: u32) -> Option<Option<bool>> {
    match code {
        0 => Some(None),
        1 => Some(Some(false)),
        2 => Some(Some(true)),
        _ => None,
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

fn damaged(at: u64, what: &str) -> SnapshotError {
    SnapshotError::Damaged { at, what: what.to_owned() }
}

fn read_exact(input: &mut impl Read, bytes: &mut [u8], at: u64) -> Result<(), SnapshotError> {
    input.read_exact(bytes).map_err(|error| match error.kind() {
        ErrorKind::UnexpectedEof if at == 0 => damaged(0, "this is not a device state"),
        ErrorKind::UnexpectedEof => damaged(at, "truncated file"),
        _ => error.into(),
    })
}
