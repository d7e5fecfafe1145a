//! The command line.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// NAND landscape: a flash storage stack in one program, on a virtual clock.
#[derive(Parser, Debug)]
#[command(name = "nandscape", version, after_long_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXAMPLES: &str = "\
Examples:
  nandscape run                                     the built-in job on the default stack
  nandscape run my.fio --stack pblk-4.13            a fio job file on another stack
  nandscape run --set ftl.gc.victim=greedy --set ftl.op_percent=20
  nandscape run --output-format json --output result.json
  nandscape trace info my.trace                     what a block trace is like
  nandscape trace run my.trace --stack pblk --fold  and what a stack makes of it
  nandscape stacks show pblk > mine.toml            a stack to change
  nandscape run --stack mine.toml                   and to run
  nandscape compare pblk-4.13 pblk pblk-5.11 --seeds 3
  nandscape sweep examples/op-vs-victim.toml        a grid of runs, on all cores
  nandscape run --report run.html                   plots of a run, one file that works offline
  nandscape report old.json new.json                or of results that were kept, side by side
  nandscape crash --stack pblk --seeds 1000         cut the power a thousand times

Exit codes: 0 done; 1 the run failed or a check did not hold; 2 the input was wrong; 130 a sweep
was interrupted.";

/// What to do.
#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Run a fio job file on a stack, in virtual time
    Run(RunArgs),
    /// Describe a block trace, or replay it on a stack
    Trace(TraceArgs),
    /// Run one job on several stacks, and set the figures beside each other
    Compare(CompareArgs),
    /// Run a grid of stacks, jobs, keys and seeds, in parallel; what is finished is kept
    Sweep(SweepArgs),
    /// Turn results into one HTML file that works offline
    Report(ReportArgs),
    /// List the stacks that ship, or show one
    Stacks(StacksArgs),
    /// Cut the power at random instants and check what is left, over many seeds
    Crash(CrashArgs),
    /// Measure this program: ratios of speeds taken in one run
    Bench(BenchArgs),
}

/// How results are written.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(crate) enum OutputFormat {
    /// A summary to read.
    Normal,
    /// fio's JSON, and one key of ours.
    Json,
}

/// Which stack, and what is changed in it.
#[derive(Args, Clone, Debug)]
pub(crate) struct StackArgs {
    /// A stack that ships (see `nandscape stacks`), or a stack file
    #[arg(long, value_name = "NAME|FILE", default_value = nandscape_lab::stack::DEFAULT)]
    pub(crate) stack: String,
    /// Change a key of the stack, for example ftl.gc.victim=greedy (may be repeated)
    #[arg(long, value_name = "KEY.PATH=VALUE")]
    pub(crate) set: Vec<String>,
}

/// Where results go.
#[derive(Args, Clone, Debug)]
pub(crate) struct OutputArgs {
    /// How to write the result
    #[arg(long, value_enum, default_value_t = OutputFormat::Normal)]
    pub(crate) output_format: OutputFormat,
    /// Write the result to a file instead of standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// Where a report goes.
#[derive(Args, Clone, Debug)]
pub(crate) struct HtmlArgs {
    /// Write a report with plots: one HTML file that works offline
    #[arg(long = "report", value_name = "FILE.html")]
    pub(crate) html: Option<PathBuf>,
}

/// `nandscape report`.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = "\
Examples:
  nandscape run --output-format json --output run.json
  nandscape report run.json                         report.html
  nandscape report old.json new.json --output both.html
  nandscape report op-vs-victim.jsonl --figure waf.gc --output sweep.html
  nandscape report run.json --specs plots           plots/*.vl.json, for vl2svg or the Vega editor

One result is drawn over time and in detail; a few are drawn in one colour each; many, or results \
along an axis of numbers, as figures with 95 % confidence bands. Every plot in the page can be saved \
as SVG or PNG. Nothing is run again: the JSON is all that a report is made from.")]
pub(crate) struct ReportArgs {
    /// Results of `run --output-format json`, or rows of a sweep
    #[arg(value_name = "RESULT.json|ROWS.jsonl", required = true)]
    pub(crate) results: Vec<PathBuf>,
    /// Where the page goes
    #[arg(long, value_name = "FILE.html", default_value = "report.html")]
    pub(crate) output: PathBuf,
    /// Write each plot as a stand-alone Vega-Lite specification into this folder, too
    #[arg(long, value_name = "DIR")]
    pub(crate) specs: Option<PathBuf>,
    /// A figure to compare, as a path in the JSON of a run, such as waf.gc (may be repeated)
    #[arg(long, value_name = "PATH")]
    pub(crate) figure: Vec<String>,
    /// What stands above it; without it, the files' names
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
}

/// `nandscape run`.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = "\
Preconditioning ([precondition] in the stack) runs first, without timing; every figure is of what \
follows. Same job, stack and seed: same result, to the last digit.")]
pub(crate) struct RunArgs {
    /// A fio job file; without one, the built-in example: 4 KiB random writes, queue depth 32
    #[arg(value_name = "JOB")]
    pub(crate) job: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) stack: StackArgs,
    /// Where all randomness comes from
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) report: HtmlArgs,
}

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
    /// Footprint, mix, sizes, sequentiality, update intervals
    Info(TraceInfoArgs),
    /// Replay it on a stack, in virtual time
    Run(TraceRunArgs),
}

/// Which trace, and how it is read.
#[derive(Args, Clone, Debug)]
pub(crate) struct TraceFileArgs {
    /// The trace
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Its format; without it, recognised by content
    #[arg(long, value_enum)]
    pub(crate) format: Option<TraceFormat>,
    /// Leave out up to so many malformed lines
    #[arg(long, value_name = "N", default_value_t = 0)]
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
4 KiB, trims narrowed.

Examples:
  nandscape trace run my.trace --stack pblk --fold
  nandscape trace run my.trace --as-fast-as-possible --iodepth 64
  nandscape trace run my.trace --scale 0.1 --output-format json")]
pub(crate) struct TraceRunArgs {
    #[command(flatten)]
    pub(crate) trace: TraceFileArgs,
    #[command(flatten)]
    pub(crate) stack: StackArgs,
    /// Issue a request whenever there is room, whatever its time
    #[arg(long, conflicts_with = "scale")]
    pub(crate) as_fast_as_possible: bool,
    /// Multiply the trace's times: 0.5 is twice as fast
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = time_scale)]
    pub(crate) scale: f64,
    /// Take addresses beyond the device modulo its size
    #[arg(long)]
    pub(crate) fold: bool,
    /// Requests in the device at most [default: 1024, or 32 as fast as possible]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) iodepth: Option<u16>,
    /// Where all randomness comes from
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) report: HtmlArgs,
}

/// A factor that times can be multiplied by.
fn time_scale(text: &str) -> Result<f64, String> {
    let scale: f64 = text.parse().map_err(|error| format!("{error}"))?;
    match scale > 0.0 && scale <= TIME_SCALE_MAX {
        true => Ok(scale),
        false => Err(format!("not above 0 and up to {TIME_SCALE_MAX}")),
    }
}

/// Times further apart than this factor makes them are a slip of the pen.
const TIME_SCALE_MAX: f64 = 1e6;

/// How many runs go on at once.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct JobsArgs {
    /// Runs at once; no result depends on it [default: one a core]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) jobs: Option<u32>,
}

/// `nandscape compare`.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = "\
Examples:
  nandscape compare pblk-4.13 pblk pblk-5.11 --seeds 3
  nandscape compare pblk mine.toml --job my.fio --seeds 5 --output mine.jsonl
  nandscape compare pblk-4.13 pblk-5.11 --set media.chunks=120 --figure waf.gc --figure write.iops
  nandscape compare pblk-4.13 pblk --report both.html

Figures are means over the seeds with their 95 % confidence interval (Student's t), and beside \
them the ratio to the first stack. With --output, finished runs are kept as in a sweep.")]
pub(crate) struct CompareArgs {
    /// Stacks that ship (see `nandscape stacks`), or stack files
    #[arg(value_name = "STACK", required = true)]
    pub(crate) stacks: Vec<String>,
    /// A fio job file; without one, the built-in example: 4 KiB random writes, queue depth 32
    #[arg(long, value_name = "JOB")]
    pub(crate) job: Option<PathBuf>,
    /// Repetitions, with the seeds from 1
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub(crate) seeds: u64,
    /// Change a key of every stack (may be repeated)
    #[arg(long, value_name = "KEY.PATH=VALUE")]
    pub(crate) set: Vec<String>,
    /// A figure to show, as a path in the JSON of a run, such as waf.gc (may be repeated)
    #[arg(long, value_name = "PATH")]
    pub(crate) figure: Vec<String>,
    /// Keep a row for each run in this file, and take from it what is finished
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) report: HtmlArgs,
    #[command(flatten)]
    pub(crate) jobs: JobsArgs,
}

/// `nandscape sweep`.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = "\
Examples:
  nandscape sweep examples/op-vs-victim.toml        rows in op-vs-victim.jsonl, then a table
  nandscape sweep examples/op-vs-victim.toml --report op-vs-victim.html
  nandscape sweep my.toml --jobs 1 --output my.jsonl

Each finished run is a row of JSON in the output file. Ctrl-C lets the runs under way finish and \
stops; once more ends at once. The same command goes on where it stopped: rows are recognised by \
a hash of resolved stack, job, seed and program. docs/formats/sweep.md describes both files.")]
pub(crate) struct SweepArgs {
    /// A sweep file
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Where rows are kept; without it, the sweep file's name with .jsonl, in the current folder
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) report: HtmlArgs,
    #[command(flatten)]
    pub(crate) jobs: JobsArgs,
}

/// `nandscape stacks`.
#[derive(Args, Debug)]
pub(crate) struct StacksArgs {
    #[command(subcommand)]
    pub(crate) command: Option<StacksCommand>,
}

/// What about them.
#[derive(Subcommand, Debug)]
pub(crate) enum StacksCommand {
    /// Print a stack's TOML
    Show {
        /// A stack that ships, or a stack file
        name: String,
        /// Everything it extends merged in and every default written out
        #[arg(long)]
        resolved: bool,
        /// Change a key first (implies --resolved)
        #[arg(long, value_name = "KEY.PATH=VALUE")]
        set: Vec<String>,
    },
}

/// `nandscape crash`.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Each seed chooses a small device, a load, faults, and the instants at which power fails, also while \
the device recovers. A violation is shown with everything that led to it; --first SEED --seeds 1 \
shows it again. The exit code is 1 if any promise was broken.")]
pub(crate) struct CrashArgs {
    /// A stack whose device is scaled down; without one, each seed chooses its FTL too
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) stack: Option<String>,
    /// Change a key of the stack (may be repeated)
    #[arg(long, value_name = "KEY.PATH=VALUE", requires = "stack")]
    pub(crate) set: Vec<String>,
    /// How many seeds
    #[arg(long, default_value_t = 1000)]
    pub(crate) seeds: u64,
    /// The first seed
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub(crate) first: u64,
    /// One in so many programs and erases fails (0: none); without it, each seed chooses
    #[arg(long, value_name = "ONE_IN")]
    pub(crate) faults: Option<u32>,
    /// Leave out a safety rule, to see that the campaign notices
    #[arg(long, value_enum)]
    pub(crate) broken: Option<BrokenRule>,
    /// Threads; the result does not depend on it
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) jobs: u32,
}

/// A safety rule that can be left out.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(crate) enum BrokenRule {
    /// Recovery ignores sequence numbers
    Sequence,
    /// Lines are erased before their successors are durable
    EraseRule,
    /// PREFLUSH does not wait for what it covers
    PreflushDrain,
    /// Discards are not logged
    LostTrims,
}

/// `nandscape bench`.
#[derive(Args, Debug)]
pub(crate) struct BenchArgs {
    /// What to measure; without it, everything
    #[arg(value_enum, value_name = "WHAT")]
    pub(crate) what: Vec<Bench>,
}

/// A measurement.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(crate) enum Bench {
    /// Random writes in steady state: placed sectors a second
    Steady,
    /// Random writes on a device so empty that nothing is copied
    Empty,
    /// Random reads, beside a bare loop that does only the look-up
    Read,
    /// Sequential fill of 256 GiB
    Fill,
    /// RAM of a 512 GiB device, without content and with tags
    Ram,
    /// Writes a second and RAM a GiB as the device grows, beside a bare loop
    Growth,
}
