//! Device states whose header or content was changed, with checksums that hold again, so that readers get to what follows
//! them (docs/formats/state.md).

use nandscape_lab::state::StateKey;

/// Content of a frame at most.
const FRAME_BYTES: usize = 1 << 20;
/// Length of the content, stored length, checksum.
const HEAD_BYTES: usize = 12;
/// Bytes of a header before its texts.
const FIXED_BYTES: usize = 128;
/// Where a header has the checksum, its name, and the lengths of its texts.
const CHECKSUM_AT: usize = 12;
const NAME_AT: usize = 16;
const LENGTHS_AT: [usize; 2] = [100, 104];

fn word(bytes: &[u8], at: usize) -> usize {
    bytes
        .get(at..)
        .and_then(|rest| rest.first_chunk())
        .map_or(0, |word| u32::from_le_bytes(*word) as usize)
}

/// Bytes of the header that a state begins with, and of its texts; `None`: the state is shorter.
fn lengths(state: &[u8]) -> Option<(usize, [usize; 2])> {
    let texts = LENGTHS_AT.map(|at| word(state, at));
    let length = FIXED_BYTES.checked_add(texts[0])?.checked_add(texts[1])?;
    (length <= state.len()).then_some((length, texts))
}

/// The header and the content of a state that is sound.
///
/// # Panics
/// If it is not.
#[must_use]
pub fn parts(state: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let (length, _) = lengths(state).expect("a whole header");
    let (header, mut frames) = state.split_at(length);
    let mut content = Vec::new();
    while frames.len() >= HEAD_BYTES {
        let (length, stored) = (word(frames, 0), word(frames, 4));
        let bytes = &frames[HEAD_BYTES..HEAD_BYTES + stored];
        content.extend(lz4_flex::block::decompress(bytes, length).expect("a frame"));
        frames = &frames[HEAD_BYTES + stored..];
    }
    (header.to_vec(), content)
}

/// Content in frames.
#[must_use]
pub fn frames(content: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for frame in content.chunks(FRAME_BYTES).chain([&[][..]]) {
        let stored = lz4_flex::block::compress(frame);
        let lengths = [frame.len() as u32, stored.len() as u32].map(u32::to_le_bytes).concat();
        let sum = crc32c::crc32c_append(crc32c::crc32c(&lengths), &stored);
        out.extend_from_slice(&lengths);
        out.extend_from_slice(&sum.to_le_bytes());
        out.extend_from_slice(&stored);
    }
    out
}

/// Recomputes name and checksum of the header that a state begins with.
pub fn seal_header(state: &mut [u8]) {
    let Some((length, [_, text])) = lengths(state) else { return };
    let header = &mut state[..length];
    if let Ok(text) = std::str::from_utf8(&header[length - text..]) {
        let name = StateKey::of(text).0.to_le_bytes();
        header[NAME_AT..NAME_AT + name.len()].copy_from_slice(&name);
    }
    let sum = crc32c::crc32c_append(crc32c::crc32c(&header[..CHECKSUM_AT]), &header[NAME_AT..]);
    header[CHECKSUM_AT..NAME_AT].copy_from_slice(&sum.to_le_bytes());
}
