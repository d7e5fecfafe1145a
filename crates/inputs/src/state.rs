//! Device states: bytes as they are, or a state of a small device in which bytes of the file, of the header or of the
//! content are replaced. Its checksums hold again, so that readers get to what follows them (docs/formats/state.md). It is
//! inspected, and a short job runs on it.

use crate::input::Numbers;
use nandscape_lab::run::{NoObserver, RunOptions, make_state, run};
use nandscape_lab::stack::Stack;
use nandscape_lab::state::{StateKey, StateSource, inspect_from};
use nandscape_lab::workload::fio::{HostEnvironment, JobFile, parse};

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

const SMALL: [&str; 5] = [
    "media.chunks=40",
    "media.sectors=64",
    "ftl.op_percent=60",
    "precondition.recipe=fill",
    "media.memory_cap=64MiB",
];
const JOB: &str = "[a]\nrw=randrw\nbs=4k\nsize=1m\niodepth=4\nnumber_ios=60\nfsync=16\n";
const PROGRAM: &str = "fuzz";
/// Bytes that are replaced at most.
const PATCHES: usize = 64;

struct Base {
    stack: Stack,
    job: JobFile,
    header: Vec<u8>,
    content: Vec<u8>,
}

impl Base {
    fn new() -> Self {
        let stack = Stack::load("pblk", &SMALL).expect("a stack");
        let job = parse(JOB, "job.fio", &HostEnvironment).expect("a job");
        let state = make_state(&stack, 1, PROGRAM, &mut NoObserver).expect("a state");
        let mut bytes = Vec::new();
        state.write(&mut bytes).expect("memory");
        let (header, content) = parts(&bytes);
        Self { stack, job, header, content }
    }

    /// The state that an input makes.
    fn changed(&self, input: &[u8]) -> Vec<u8> {
        let mut numbers = Numbers::new(input);
        let way = numbers.number::<1>() % 5;
        if way == 0 {
            return numbers.rest().to_vec();
        }
        let (mut header, mut content) = (self.header.clone(), self.content.clone());
        match way {
            1 => patch(&mut header, &mut numbers),
            2 => patch(&mut content, &mut numbers),
            _ => {}
        }
        seal_header(&mut header);
        let mut state = [header, frames(&content)].concat();
        if way == 3 {
            patch(&mut state, &mut numbers);
        }
        if way == 4 {
            state.truncate(numbers.below(state.len()));
        }
        state
    }
}

/// Replaces bytes.
fn patch(bytes: &mut [u8], numbers: &mut Numbers<'_>) {
    for _ in 0..PATCHES {
        if numbers.is_empty() {
            return;
        }
        let at = numbers.below(bytes.len());
        bytes[at] = numbers.number::<1>() as u8;
    }
}

thread_local! {
    static BASE: Base = Base::new();
}

/// Changes a state, inspects it and runs a job on it.
pub fn state(input: &[u8]) {
    BASE.with(|base| {
        let state = base.changed(input);
        drop(inspect_from("fuzz.state", &state[..]));
        let options =
            RunOptions { states: StateSource::Bytes(&state), program: PROGRAM, until_steady: None };
        drop(run(&base.stack, &base.job, 1, options, &mut NoObserver));
    });
}

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
fn parts(state: &[u8]) -> (Vec<u8>, Vec<u8>) {
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
fn frames(content: &[u8]) -> Vec<u8> {
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
fn seal_header(state: &mut [u8]) {
    let Some((length, [_, text])) = lengths(state) else { return };
    let header = &mut state[..length];
    if let Ok(text) = std::str::from_utf8(&header[length - text..]) {
        let name = StateKey::of(text).0.to_le_bytes();
        header[NAME_AT..NAME_AT + name.len()].copy_from_slice(&name);
    }
    let sum = crc32c::crc32c_append(crc32c::crc32c(&header[..CHECKSUM_AT]), &header[NAME_AT..]);
    header[CHECKSUM_AT..NAME_AT].copy_from_slice(&sum.to_le_bytes());
}
