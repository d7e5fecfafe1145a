//! `nandscape trace`: what a block trace is like, its replay on a stack, and its other formats.

mod convert;
mod info;
mod source;

use crate::args::{TraceArgs, TraceCommand, TraceRunArgs};
use crate::cache::{Cache, states};
use crate::command::{COMMIT, quoted, runtime_words, stack_words, state_words};
use crate::logs::{Outputs, Watch};
use crate::outcome::{ResultOutput, finish_result};
use crate::output::{Failure, classify};
use crate::paint::ColorChoice;
use crate::writable::expect_writable;
use anyhow::anyhow;
use nandscape_lab::run::{RunOptions, Trace, check_trace, replay};
use nandscape_lab::stack::Stack;
use nandscape_lab::sweep::program;
use nandscape_lab::workload::replay::{Pace, ReplayOptions};
use nandscape_lab::workload::trace::Footprint;
use source::Source;

/// Requests in the device at most, timed.
const TIMED_DEPTH: u16 = 1024;
/// Requests in the device at most, as fast as possible.
const FAST_DEPTH: u16 = 32;

/// Describes, replays or converts.
pub(crate) fn trace(args: &TraceArgs, color: ColorChoice) -> Result<(), Failure> {
    match &args.command {
        TraceCommand::Info(args) => info::info(args),
        TraceCommand::Run(args) => run(args, color),
        TraceCommand::Convert(args) => convert::convert(args),
    }
}

fn run(args: &TraceRunArgs, color: ColorChoice) -> Result<(), Failure> {
    expect_writable(args.outputs(), args.inputs())?;
    let stack = Stack::load(&args.stack.stack, &args.stack.set).map_err(Failure::input)?;
    let source = Source::of(&args.trace)?;
    let reader = source.open()?;
    let how = how(args);
    let prefill = prefill(args, &stack, &how, &source)?;
    let name = reader.name().to_owned();
    let bytes = source.bytes(&reader).unwrap_or(0);
    let trace = Trace { reader, bytes, how, prefill };
    let cache = Cache::open(&args.cache)?;
    let left = args.device.save_state.as_deref();
    let mut watch = Watch::of(Outputs {
        output: &args.output,
        jobs: vec!["trace".to_owned()],
        fio_logs: None,
        timeline: &args.timeline,
        device: left.is_some(),
    })?;
    let states = states(args.device.state.as_deref(), cache.as_ref());
    let manner = RunOptions { states, program: &program(COMMIT), until_steady: None };
    let outcome = replay(&stack, trace, args.seed, manner, &mut watch);
    let again = again(args);
    let output = ResultOutput { name: &name, again: &again, args: &args.output, color, left };
    finish_result(outcome, watch, &output)
}

/// What is written before a trace is replayed. What can be read twice is read once before the device is written.
fn prefill(
    args: &TraceRunArgs,
    stack: &Stack,
    how: &ReplayOptions,
    source: &Source<'_>,
) -> Result<Footprint, Failure> {
    let is_fresh = stack.precondition.is_none() && args.device.state.is_none();
    let wanted = args.prefill || (is_fresh && !args.no_prefill);
    if !source.is_repeatable() {
        let why = "--prefill: a trace on standard input cannot be read twice; give a file";
        return if args.prefill {
            Err(Failure::input(anyhow!(why)))
        } else {
            Ok(Footprint::NOTHING)
        };
    }
    if !wanted && args.fold {
        return Ok(Footprint::NOTHING);
    }
    let checked = check_trace(stack, args.seed, &mut source.open()?, how).map_err(classify)?;
    Ok(if wanted { checked } else { Footprint::NOTHING })
}

fn how(args: &TraceRunArgs) -> ReplayOptions {
    let (pace, depth) = match args.as_fast_as_possible {
        true => (Pace::AsFastAsPossible, FAST_DEPTH),
        false => (Pace::Timed(args.scale), TIMED_DEPTH),
    };
    let (iodepth, runtime) = (args.iodepth.unwrap_or(depth), args.length.runtime);
    ReplayOptions { pace, iodepth, fold: args.fold, runtime }
}

/// The command that makes the same result.
fn again(args: &TraceRunArgs) -> String {
    let mut words: Vec<String> = ["nandscape", "trace", "run"].map(str::to_owned).into();
    words.extend(args.trace.files.iter().map(|file| quoted(&file.display().to_string())));
    words.extend(stack_words(&args.stack));
    words.extend(state_words(args.device.state.as_deref()));
    words.extend(args.trace.format.map(|format| format!("--format {}", format.name())));
    words.extend(args.trace.device.iter().map(|device| format!("--device {}", quoted(device))));
    let mut put = |is_set: bool, word: String| words.extend(is_set.then_some(word));
    put(args.trace.merge, "--merge".to_owned());
    let skipped = args.trace.skip_bad_lines;
    put(skipped > 0, format!("--skip-bad-lines {skipped}"));
    put(args.as_fast_as_possible, "--as-fast-as-possible".to_owned());
    put(!args.as_fast_as_possible && args.scale != 1.0, format!("--scale {}", args.scale));
    put(args.fold, "--fold".to_owned());
    put(args.prefill, "--prefill".to_owned());
    put(args.no_prefill, "--no-prefill".to_owned());
    put(args.iodepth.is_some(), format!("--iodepth {}", args.iodepth.unwrap_or(0)));
    words.extend(runtime_words(args.length));
    words.extend(["--seed".to_owned(), args.seed.to_string()]);
    words.join(" ")
}
