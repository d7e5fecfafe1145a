//! Device states: bytes as they are, or a state of a small device in which bytes of the file, of the header or of the
//! content are replaced. It is inspected, and a short job runs on it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nandscape_fuzz::input::Numbers;
use nandscape_fuzz::state::{frames, parts, seal_header};
use nandscape_lab::run::{NoObserver, RunOptions, make_state, run};
use nandscape_lab::stack::Stack;
use nandscape_lab::state::{StateSource, inspect_from};
use nandscape_lab::workload::fio::{HostEnvironment, JobFile, parse};

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

fuzz_target!(|input: &[u8]| {
    BASE.with(|base| {
        let state = base.changed(input);
        drop(inspect_from("fuzz.state", &state[..]));
        let options =
            RunOptions { states: StateSource::Bytes(&state), program: PROGRAM, until_steady: None };
        drop(run(&base.stack, &base.job, 1, options, &mut NoObserver));
    });
});
