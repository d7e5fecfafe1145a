//! `nandscape trace`: what recorded I/O looks like, and replaying it.

use super::{
    CacheArgs, DeviceArgs, OutputArgs, ResultArgs, RuntimeArgs, StackArgs, TimelineArgs, seed,
    whole,
};
use clap::{Args, Subcommand, ValueEnum};
use std::path::{Path, PathBuf};

/// `nandscape trace`.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  nandscape trace info my.trace
  nandscape trace info my.trace --output-format json
  nandscape trace run my.trace --stack pblk --fold
  nandscape trace run my.trace --as-fast-as-possible --iodepth 64
  nandscape trace run my.trace --scale 0.1          ten times as fast as it was recorded

Formats: fio I/O logs (versions 2 and 3), blkparse text, MSR Cambridge CSV, DiskSim and MQSim ASCII; \
recognised by content.")]
pub(crate) struct TraceArgs {
    #[command(subcommand)]
    pub(crate) command: TraceCommand,
}

/// What about it.
#[derive(Subcommand, Debug)]
pub(crate) enum TraceCommand {
    /// Statistics of a trace: footprint, mix of reads and writes, sizes, sequentiality, update intervals
    Info(TraceInfoArgs),
    /// Replay a trace on a stack, in virtual time
    Run(Box<TraceRunArgs>),
}

/// Which trace, and how it is read.
#[derive(Args, Clone, Debug)]
pub(crate) struct TraceFileArgs {
    /// The trace file; - is standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Its format [default: recognised by content]
    #[arg(long, value_enum)]
    pub(crate) format: Option<TraceFormat>,
    /// Take the requests of one device only: disk number (MSR), device number (DiskSim), MAJOR,MINOR
    /// (blkparse) or file name (fio)
    #[arg(long, value_name = "NAME")]
    pub(crate) device: Option<String>,
    /// Tolerate up to this many malformed lines
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = whole::<0, { u64::MAX }>)]
    pub(crate) skip_bad_lines: u64,
}

/// How a trace is written.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(crate) enum TraceFormat {
    /// fio's I/O log, version 2
    FioV2,
    /// fio's I/O log, version 3
    FioV3,
    /// What blkparse prints
    Blkparse,
    /// The CSV of the MSR Cambridge traces
    Msr,
    /// DiskSim's ASCII, also MQSim's
    Disksim,
}

/// `nandscape trace info`.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = "\
Examples:
  nandscape trace info my.trace
  nandscape trace info msr.csv --device 0 --skip-bad-lines 10
  zcat my.trace.gz | nandscape trace info -
  nandscape trace info my.trace --output-format json --output info.json")]
pub(crate) struct TraceInfoArgs {
    #[command(flatten)]
    pub(crate) trace: TraceFileArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// `nandscape trace run`.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = "\
Requests go out at the times of the trace, counted from its first request. One that finds the device \
full waits, and its latency counts from when it was due. Reads and writes are widened to sectors of \
4 KiB, trims narrowed. On a fresh device everything that the trace reads or writes is written first \
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
    /// Wrap addresses beyond the end of the device
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
        let given = [self.trace.file.as_path(), self.stack.file()];
        given.into_iter().chain(self.device.state.as_deref())
    }
}

/// A factor that times can be multiplied by.
fn time_scale(text: &str) -> Result<f64, String> {
    let scale = text.parse().ok().filter(|scale| *scale > 0.0 && *scale <= TIME_SCALE_MAX);
    scale.ok_or_else(|| format!("expected a number above 0 and up to {TIME_SCALE_MAX}"))
}

/// Times further apart than this factor makes them are a typing error.
const TIME_SCALE_MAX: f64 = 1e6;
