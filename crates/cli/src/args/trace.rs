//! `nandscape trace`: what recorded I/O looks like, and replaying it.

use super::{
    CacheArgs, DeviceArgs, OutputArgs, ResultArgs, RuntimeArgs, StackArgs, TimelineArgs, seed,
    whole,
};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use nandscape_lab::workload::fio::Runtime;
use nandscape_lab::workload::trace::{Format, WRITABLE};
use std::path::{Path, PathBuf};

/// `nandscape trace`.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  nandscape trace info my.trace
  nandscape trace info io_traces.csv.gz --output-format json
  nandscape trace run my.trace --stack pblk --fold
  nandscape trace run my.trace --as-fast-as-possible --iodepth 64
  nandscape trace run my.trace --scale 0.1          ten times as fast as it was recorded
  nandscape trace convert sda.blktrace.* --to fio-v3 --output sda.log

Formats: I/O logs of fio (versions 2 and 3), blktrace (binary) and blkparse (text), CSV of MSR Cambridge, \
Alibaba, Tencent CBS and SYSTOR '17, SPC (UMass), DiskSim and MQSim ASCII; recognised by content, \
compressed by gzip or zstd or not.")]
pub(crate) struct TraceArgs {
    #[command(subcommand)]
    pub(crate) command: TraceCommand,
}

/// What about it.
#[derive(Subcommand, Debug)]
pub(crate) enum TraceCommand {
    /// Trace statistics: footprint, read/write mix, sizes, sequentiality, rewrite intervals
    Info(TraceInfoArgs),
    /// Replay a trace on a stack, in virtual time
    Run(Box<TraceRunArgs>),
    /// Write a trace in another format
    Convert(TraceConvertArgs),
}

/// Which trace, and how it is read.
#[derive(Args, Clone, Debug)]
pub(crate) struct TraceFileArgs {
    /// The trace file; several are merged by time; - is standard input
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Its format [default: recognised by content]
    #[arg(long, value_parser = one_of(&Format::ALL))]
    pub(crate) format: Option<Format>,
    /// Take the requests of this device only, repeat for several: disk number (MSR), device_id (Alibaba),
    /// VolumeID (Tencent), LUN (SYSTOR '17), ASU (SPC), device number (DiskSim), MAJOR,MINOR (blktrace) or file
    /// name (fio)
    #[arg(long, value_name = "NAME")]
    pub(crate) device: Vec<String>,
    /// Place the devices one after another, in order of their names [default: their addresses share one space]
    #[arg(long)]
    pub(crate) merge: bool,
    /// Tolerate up to this many malformed lines in each file
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = whole::<0, { u64::MAX }>)]
    pub(crate) skip_bad_lines: u64,
}

/// `nandscape trace info`.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = "\
Examples:
  nandscape trace info my.trace
  nandscape trace info msr.csv.gz --device 0 --skip-bad-lines 10
  nandscape trace info sda.blktrace.*               the files of all CPUs together
  nandscape trace info cloud.csv --merge            each device with its own range of addresses
  tar -xOf 2018100101.tgz | nandscape trace info -
  nandscape trace info my.trace --output-format json --output info.json")]
pub(crate) struct TraceInfoArgs {
    #[command(flatten)]
    pub(crate) trace: TraceFileArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// `nandscape trace convert`.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = "\
Devices keep their names, or become one with --merge. What the new format has no line for is left out, and \
the number is printed: fio's logs have whole microseconds and no FUA, MSR Cambridge's CSV has no trims and \
flushes, blkparse's text has sectors of 512 bytes.

Examples:
  nandscape trace convert my.csv.gz --to fio-v3 --output my.log
  nandscape trace convert sda.blktrace.* --to blkparse --output sda.txt.gz     compressed by gzip
  nandscape trace convert day.csv --device 3 --runtime 1h --to msr | nandscape trace info -")]
pub(crate) struct TraceConvertArgs {
    #[command(flatten)]
    pub(crate) trace: TraceFileArgs,
    /// The format to write
    #[arg(long, value_name = "FORMAT", value_parser = one_of(&WRITABLE))]
    pub(crate) to: Format,
    /// The file to write, compressed if its name ends in .gz [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Multiply the trace's times: 0.5 is twice as fast
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = time_scale)]
    pub(crate) scale: f64,
    /// End there, after scaling: 5s, 500ms, 2m
    #[arg(long, value_name = "TIME")]
    pub(crate) runtime: Option<Runtime>,
}

/// One of these formats, by its name.
fn one_of(formats: &'static [Format]) -> impl TypedValueParser<Value = Format> {
    let value = |format: &Format| PossibleValue::new(format.name()).help(format.description());
    let named = |name: String| formats.iter().copied().find(|format| format.name() == name);
    let parser = PossibleValuesParser::new(formats.iter().map(value));
    parser.try_map(move |name| named(name).ok_or("unknown format"))
}

/// `nandscape trace run`.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = "\
Requests are issued at the times of the trace, counted from its first request. If the queue is full a \
request is delayed; latency is measured from its scheduled time. Requests are rounded out to sectors of \
4 KiB: a write of a part of a sector reads the sector first (read-modify-write). Bandwidth counts the bytes \
that the trace asks for; the bytes issued are reported beside it. Trims are narrowed. On a fresh device everything that the trace reads or writes is written first \
(--no-prefill leaves that out); of a trace on standard input, which cannot be read twice, nothing is.

Examples:
  nandscape trace run my.trace --stack pblk --fold
  nandscape trace run my.trace --as-fast-as-possible --iodepth 64
  nandscape trace run my.trace --scale 0.1 --output-format json
  nandscape trace run day.trace --fold --runtime 1h --save-state one-hour.state
                                                    its first hour, and the device as that leaves it")]
pub(crate) struct TraceRunArgs {
    #[command(flatten)]
    pub(crate) trace: TraceFileArgs,
    #[command(flatten)]
    pub(crate) stack: StackArgs,
    /// Ignore the times of requests: keep the queue full
    #[arg(long, conflicts_with = "scale")]
    pub(crate) as_fast_as_possible: bool,
    /// Multiply the trace's times: 0.5 is twice as fast
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = time_scale)]
    pub(crate) scale: f64,
    /// Wrap out-of-range addresses (LBA modulo capacity)
    #[arg(long)]
    pub(crate) fold: bool,
    /// Write every sector that the trace reads or writes once, in order and untimed, before it is replayed: the
    /// default on a device that nothing else was written to
    #[arg(long, overrides_with = "no_prefill")]
    pub(crate) prefill: bool,
    /// Replay on the device as it is: reads of sectors that hold nothing cost no media time
    #[arg(long)]
    pub(crate) no_prefill: bool,
    /// Maximum queue depth [default: 1024, or 32 with --as-fast-as-possible]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) iodepth: Option<u16>,
    #[command(flatten)]
    pub(crate) length: RuntimeArgs,
    /// Random seed
    #[arg(long, default_value_t = 1, value_parser = seed)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
    #[command(flatten)]
    pub(crate) cache: CacheArgs,
    #[command(flatten)]
    pub(crate) timeline: TimelineArgs,
    #[command(flatten)]
    pub(crate) output: ResultArgs,
}

impl TraceRunArgs {
    /// The files that are named to be written.
    pub(crate) fn outputs(&self) -> impl Iterator<Item = Option<&Path>> {
        let beside = [self.timeline.trace.as_deref(), self.device.save_state.as_deref()];
        self.output.files().into_iter().chain(beside)
    }

    /// The files that are read.
    pub(crate) fn inputs(&self) -> impl Iterator<Item = &Path> {
        let files = self.trace.files.iter().map(PathBuf::as_path);
        files.chain([self.stack.file()]).chain(self.device.state.as_deref())
    }
}

/// A factor that times can be multiplied by.
fn time_scale(text: &str) -> Result<f64, String> {
    let scale = text.parse().ok().filter(|scale| *scale > 0.0 && *scale <= TIME_SCALE_MAX);
    scale.ok_or_else(|| format!("expected a number above 0 and up to {TIME_SCALE_MAX}"))
}

/// Times further apart than this factor makes them are a typing error.
const TIME_SCALE_MAX: f64 = 1e6;
