//! `nandscape trace`: what a block trace is like, and its replay on a stack.

use crate::args::{
    OutputFormat, STDIO, TraceArgs, TraceCommand, TraceFileArgs, TraceFormat, TraceInfoArgs,
    TraceRunArgs,
};
use crate::cache::{Cache, states};
use crate::command::{COMMIT, quoted, runtime_words, stack_words, state_words};
use crate::logs::{Outputs, Watch};
use crate::outcome::{ResultOutput, finish_result};
use crate::output::{Failure, classify, pretty};
use crate::paint::ColorChoice;
use crate::replace::deliver;
use crate::summary::{bytes, count, latencies, time};
use crate::writable::expect_writable;
use anyhow::anyhow;
use nandscape_lab::SECTOR_BYTES;
use nandscape_lab::run::{RunOptions, Trace, check_trace, replay};
use nandscape_lab::stack::Stack;
use nandscape_lab::sweep::program;
use nandscape_lab::workload::engine::Latencies;
use nandscape_lab::workload::fio::Direction;
use nandscape_lab::workload::trace::{
    DirectionInfo, Footprint, Format, Info, Pace, ReadOptions, ReplayOptions, SIZE_CLASSES,
    TraceReader,
};
use nandscape_rt::words::{counted, grouped};
use serde_json::{Value, json};
use std::fmt::Write;
use std::io::BufReader;

/// Requests in the device at most, timed.
const TIMED_DEPTH: u16 = 1024;
/// Requests in the device at most, as fast as possible.
const FAST_DEPTH: u16 = 32;
/// Percentiles of update intervals.
const PERCENTILES: [f64; 5] = [10.0, 50.0, 90.0, 99.0, 99.9];

/// Describes or replays.
pub(crate) fn trace(args: &TraceArgs, color: ColorChoice) -> Result<(), Failure> {
    match &args.command {
        TraceCommand::Info(args) => info(args),
        TraceCommand::Run(args) => run(args, color),
    }
}

fn open(args: &TraceFileArgs) -> Result<TraceReader, Failure> {
    let format = args.format.map(|format| match format {
        TraceFormat::FioV2 => Format::FioV2,
        TraceFormat::FioV3 => Format::FioV3,
        TraceFormat::Blkparse => Format::Blkparse,
        TraceFormat::Msr => Format::Msr,
        TraceFormat::Disksim => Format::DiskSim,
    });
    let options = ReadOptions { format, skip_bad_lines: args.skip_bad_lines };
    let reader = match args.file.to_str() {
        Some(STDIO) => {
            TraceReader::new("standard input", BufReader::new(std::io::stdin()), options)
        }
        _ => TraceReader::open(&args.file, options),
    };
    let reader = reader.map_err(Failure::input)?;
    Ok(match &args.device {
        Some(device) => reader.only(device),
        None => reader,
    })
}

/// Bytes of a trace that can be read twice.
fn length(args: &TraceFileArgs) -> Result<Option<u64>, Failure> {
    if args.file.to_str() == Some(STDIO) {
        return Ok(None);
    }
    let file = std::fs::metadata(&args.file).map_err(Failure::input)?;
    Ok(file.is_file().then_some(file.len()))
}

fn run(args: &TraceRunArgs, color: ColorChoice) -> Result<(), Failure> {
    expect_writable(args.outputs(), args.inputs())?;
    let stack = Stack::load(&args.stack.stack, &args.stack.set).map_err(Failure::input)?;
    let reader = open(&args.trace)?;
    let length = length(&args.trace)?;
    let how = how(args);
    let prefill = prefill(args, &stack, &how, length.is_some())?;
    let name = reader.name().to_owned();
    let trace = Trace { reader, bytes: length.unwrap_or(0), how, prefill };
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
    is_file: bool,
) -> Result<Footprint, Failure> {
    let is_fresh = stack.precondition.is_none() && args.device.state.is_none();
    let wanted = args.prefill || (is_fresh && !args.no_prefill);
    if !is_file {
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
    let checked = check_trace(stack, args.seed, &mut open(&args.trace)?, how).map_err(classify)?;
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
    words.push(quoted(&args.trace.file.display().to_string()));
    words.extend(stack_words(&args.stack));
    words.extend(state_words(args.device.state.as_deref()));
    let mut put = |is_set: bool, word: String| words.extend(is_set.then_some(word));
    let format = args.trace.format.and_then(|format| clap::ValueEnum::to_possible_value(&format));
    put(
        format.is_some(),
        format.map_or_else(String::new, |f| format!("--format {}", f.get_name())),
    );
    let device = args.trace.device.as_deref().map(|device| format!("--device {}", quoted(device)));
    put(device.is_some(), device.unwrap_or_default());
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

fn info(args: &TraceInfoArgs) -> Result<(), Failure> {
    expect_writable([args.output.file()], [args.trace.file.as_path()])?;
    let mut reader = open(&args.trace)?;
    let mut info = Info::default();
    while let Some(record) = reader.next_record().map_err(Failure::input)? {
        info.add(&record);
    }
    let text = match args.output.output_format {
        OutputFormat::Normal => description(&reader, &info),
        OutputFormat::Json => pretty(&to_json(&reader, &info))?,
    };
    deliver(&text, args.output.file())
}

fn to_json(reader: &TraceReader, info: &Info) -> Value {
    let counts = reader.counts();
    let [all, read, write] = info.footprint_bytes();
    json!({
        "file": reader.name(),
        "format": reader.format().name(),
        "requests": info.requests(),
        "flushes": info.flushes(),
        "devices": reader.devices(),
        "duration_s": info.duration().as_secs_f64(),
        "end_bytes": info.end_bytes(),
        "footprint_bytes": { "all": all, "read": read, "write": write },
        "unaligned": info.unaligned(),
        "out_of_order": counts.disordered,
        "malformed_lines": counts.malformed_lines,
        "read": direction_json(info.direction(Direction::Read)),
        "write": direction_json(info.direction(Direction::Write)),
        "trim": direction_json(info.direction(Direction::Trim)),
        "update_interval_ns": intervals_json(info.update_intervals()),
    })
}

fn direction_json(direction: &DirectionInfo) -> Value {
    let sizes = direction.sizes.iter().enumerate();
    let sizes = sizes.map(|(class, n)| json!({ "max_bytes": class_bytes(class), "requests": n }));
    json!({
        "requests": direction.requests,
        "bytes": direction.bytes,
        "min_bytes": direction.min_bytes,
        "mean_bytes": direction.mean_bytes(),
        "max_bytes": direction.max_bytes,
        "sequential": direction.sequential,
        "sizes": sizes.collect::<Vec<_>>(),
    })
}

/// The largest size of a class; `None` for the last, which has no end.
fn class_bytes(class: usize) -> Option<u64> {
    (class + 1 < SIZE_CLASSES).then(|| SECTOR_BYTES << class)
}

fn intervals_json(intervals: &Latencies) -> Value {
    let rank = intervals.ranks();
    let at = |percent: f64| rank(percent / 100.0).0;
    let ranks = PERCENTILES.map(|percent| (format!("{percent:.6}"), at(percent).into()));
    json!({
        "N": intervals.count(),
        "min": intervals.min().0,
        "max": intervals.max().0,
        "mean": intervals.mean_ns(),
        "percentile": Value::Object(ranks.into_iter().filter(|_| intervals.count() > 0).collect()),
    })
}

fn description(reader: &TraceReader, info: &Info) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = describe(&mut text, reader, info);
    text
}

fn describe(out: &mut String, reader: &TraceReader, info: &Info) -> std::fmt::Result {
    let seconds = info.duration().as_secs_f64();
    let requests = info.requests();
    writeln!(
        out,
        "{}: {}, {} and {} in {}, {} a second\n",
        reader.name(),
        reader.format(),
        counted(requests, ["request", "requests"]),
        counted(info.flushes(), ["flush", "flushes"]),
        time(info.duration()),
        if seconds > 0.0 { count(requests as f64 / seconds) } else { "-".to_owned() }
    )?;
    for direction in Direction::ALL {
        describe_direction(out, direction, info.direction(direction), requests)?;
    }
    let [all, read, write] = info.footprint_bytes().map(|sum| bytes(sum as f64));
    writeln!(out, "\n  footprint  {all} in distinct 4 KiB sectors: {read} read, {write} written")?;
    writeln!(out, "  needs      a device of {}, or --fold", bytes(info.end_bytes() as f64))?;
    let updates = info.update_intervals();
    if updates.count() > 0 {
        writeln!(out, "  updates    {} sectors written again, after", grouped(updates.count()))?;
        writeln!(out, "             {}", latencies(updates))?;
    }
    describe_oddities(out, reader, info)
}

fn describe_direction(
    out: &mut String,
    direction: Direction,
    info: &DirectionInfo,
    requests: u64,
) -> std::fmt::Result {
    if info.requests == 0 {
        return Ok(());
    }
    let share = |part: u64, whole: u64| 100.0 * part as f64 / whole.max(1) as f64;
    writeln!(
        out,
        "  {:<6} {} ({:.1} %), {}, {:.1} % sequential; mean {}, {} to {}",
        direction.name(),
        grouped(info.requests),
        share(info.requests, requests),
        bytes(info.bytes as f64),
        share(info.sequential, info.requests),
        bytes(info.mean_bytes()),
        bytes(info.min_bytes as f64),
        bytes(info.max_bytes as f64)
    )?;
    let used = info.sizes.iter().enumerate().filter(|(_, n)| **n > 0);
    let sizes = used.map(|(class, n)| {
        let class = class_bytes(class)
            .map_or_else(|| "more".to_owned(), |max| format!("up to {}", bytes(max as f64)));
        format!("{class} {:.1} %", share(*n, info.requests))
    });
    writeln!(out, "         {}", sizes.collect::<Vec<_>>().join(", "))
}

fn describe_oddities(out: &mut String, reader: &TraceReader, info: &Info) -> std::fmt::Result {
    let counts = reader.counts();
    let notes = [
        (
            info.unaligned(),
            ["request not in whole 4 KiB sectors", "requests not in whole 4 KiB sectors"],
        ),
        (counts.disordered, ["request out of order", "requests out of order"]),
        (counts.malformed_lines, ["malformed line skipped", "malformed lines skipped"]),
        (
            reader.devices().saturating_sub(1),
            ["further device in one address space", "further devices in one address space"],
        ),
    ];
    let mut notes = notes.into_iter().filter(|(n, _)| *n > 0);
    notes.try_for_each(|(n, what)| writeln!(out, "  note: {}", counted(n, what)))
}
