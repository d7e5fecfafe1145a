//! The command line.

mod crash;
mod fs;
mod length;
mod listing;
mod output;
mod paper;
mod report;
mod state;
mod trace;
mod words;

pub(crate) use crash::{BaseChoice, CrashArgs, Which};
pub(crate) use fs::{
    DumpArgs, DumpWhat, FsckArgs, ImageCommand, ImageExportArgs, ImageImportArgs, ImagesArgs,
    KindChoice, MkfsArgs,
};
pub(crate) use length::{FitArgs, RuntimeArgs, SteadyArgs};
pub(crate) use listing::{KeysArgs, ListFormat, MetricsArgs};
pub(crate) use output::{
    OutputArgs, OutputFormat, ResultArgs, ResultFormat, STDIO, TableFormat, TimelineArgs,
};
pub(crate) use paper::PaperArgs;
pub(crate) use report::{HtmlArgs, MetricArgs, ReportArgs};
pub(crate) use state::{
    CacheArgs, DeviceArgs, StateCacheArgs, StateCacheCommand, StateCommand, StateSaveArgs,
    StatesArgs,
};
pub(crate) use trace::{
    TraceArgs, TraceCommand, TraceConvertArgs, TraceFileArgs, TraceInfoArgs, TraceRunArgs,
};

use crate::paint::ColorChoice;
use clap::{Arg, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use nandscape_lab::workload::fio::JobOption;
use std::any::TypeId;
use std::path::{Path, PathBuf};
use words::Split;

/// NAND landscape: simulates a flash storage stack (workload, file system, FTL, NAND) in virtual time.
#[derive(Parser, Debug)]
#[command(name = "nandscape", version = RELEASE, after_long_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Colours: auto is on a terminal, unless NO_COLOR is set
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t)]
    pub(crate) color: ColorChoice,
}

/// The version and the commit, as results have them.
const RELEASE: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("NANDSCAPE_COMMIT"), ")");

const EXAMPLES: &str = "\
Examples:
  nandscape run                                     the built-in job on the default stack
  nandscape run --name=t --rw=randread --bs=4k --iodepth=32   a job on the command line, as in fio
  nandscape run my.fio --stack pblk-4.13            a fio job file on another stack
  nandscape run --set ftl.gc.victim=greedy --set ftl.op_percent=20
  nandscape run --output-format json --output result.json
  nandscape run examples/varmail.f --stack ext4-js-pblk   a Filebench workload on files
  nandscape run my.fio --trace run.json             a timeline for https://ui.perfetto.dev
  nandscape trace info my.trace                     statistics of a block trace
  nandscape trace run my.trace --stack pblk --fold  replay it on a stack
  nandscape stacks show pblk > mine.toml            a stack to change
  nandscape run --stack mine.toml                   and to run
  nandscape keys ftl.gc                             the keys of stack files, described
  nandscape metrics waf                             the metrics of results, likewise
  nandscape compare pblk rflush --device pblk --seeds 3   two FTLs on one device
  nandscape sweep examples/op-vs-victim.toml        a grid of runs, on all cores
  nandscape run --until-steady                      measure at SNIA's steady state
  nandscape state save --output filled.state        a preconditioned device, to run on again
  nandscape run --report run.html                   plots of a run, one file that works offline
  nandscape report old.json new.json                or of saved results, side by side
  nandscape paper --quick                           published figures beside measured ones
  nandscape crash --stack pblk --seeds 1000         a thousand campaigns of power cuts
  nandscape mkfs --fs ext4 disk.img --size 1GiB     an ext4 image, as mke2fs makes it
  nandscape mkfs --fs f2fs disk.img --size 1GiB     an F2FS image, as mkfs.f2fs makes it
  nandscape fsck disk.img                           check it
  nandscape docs stack                              the format of stack files
  nandscape completions bash                        for your shell; `nandscape man` for man

Exit codes: 0 success; 1 a run or a check failed; 2 invalid input; 130 interrupted.";

/// What to do.
#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Run a fio job file or a Filebench workload on a stack, in virtual time
    Run(RunArgs),
    /// Describe a block trace, or replay it on a stack
    Trace(TraceArgs),
    /// Run one job on several stacks and compare the results
    Compare(CompareArgs),
    /// Run a grid of stacks, jobs, keys and seeds in parallel; resumable
    Sweep(SweepArgs),
    /// Reproduce published results, with a verdict on each statement
    Paper(PaperArgs),
    /// Make a self-contained HTML report of results
    Report(ReportArgs),
    /// List the built-in stacks, or print one
    Stacks(StacksArgs),
    /// Describe the keys of stack files: values, defaults, meaning
    Keys(KeysArgs),
    /// Describe the metrics of results: paths for --metric, units, meaning
    Metrics(MetricsArgs),
    /// Save preconditioned devices to files, or show their contents
    State(StatesArgs),
    /// Power-loss testing: cut the power at random instants and verify what is recovered
    Crash(CrashArgs),
    /// Make a file system in an image file
    Mkfs(MkfsArgs),
    /// Check the file system in an image file (read-only)
    Fsck(FsckArgs),
    /// Show structures of the file system in an image file
    Dump(DumpArgs),
    /// Export a device to a raw image file, or import one
    Image(ImagesArgs),
    /// Benchmark the simulator itself
    Bench(BenchArgs),
    /// List the pages about files and results, or print one
    Docs(DocsArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// Print the manual page, or write one for each command
    Man(ManArgs),
}

/// Which stack, and what is changed in it.
#[derive(Args, Clone, Debug)]
pub(crate) struct StackArgs {
    /// A built-in stack (see `nandscape stacks`), or a stack file
    #[arg(long, value_name = "NAME|FILE", default_value = nandscape_lab::stack::DEFAULT)]
    pub(crate) stack: String,
    /// Change a key of the stack, for example ftl.gc.victim=greedy (may be repeated)
    #[arg(long, value_name = "KEY.PATH=VALUE")]
    pub(crate) set: Vec<String>,
}

impl StackArgs {
    /// The stack's file, if it is one.
    pub(crate) fn file(&self) -> &Path {
        Path::new(&self.stack)
    }
}

/// `nandscape run`.
#[derive(Args, Clone, Debug)]
#[command(
    override_usage = "nandscape run [OPTIONS] [JOB]...\n       \
    nandscape run [OPTIONS] [--KEY=VALUE]... --name=NAME [--KEY=VALUE]... [JOB]...",
    after_long_help = "\
Examples:
  nandscape run                                     the built-in job on the default stack
  nandscape run --name=t --rw=randread --bs=4k --iodepth=32
  nandscape run --bs=4k --name=log --rw=write --fsync=1 --name=bulk --rw=randwrite --iodepth=16
  nandscape run my.fio --stack pblk-4.13 --seed 7
  nandscape run fill.fio my.fio --section readers   two job files, and one section of them
  nandscape run my.fio --output-format json+ --output result.json
  nandscape run my.fio --log-dir logs               fio's logs, if the job asks for them
  nandscape run my.fio --hdr-log latency.hlog --hdr-interval 100
  nandscape run examples/fsync.fio --trace fsync.json --trace-window 1s,20ms
                                                    open fsync.json in https://ui.perfetto.dev
  nandscape run my.fio --set precondition.recipe=steady
  nandscape run my.fio --until-steady=round=500ms,rounds=40
  nandscape run my.fio --state filled.state
  nandscape run my.fio --state disk.state --set fs.format=false --save-state later.state
                                                    on the files of a device, and what became of them
  nandscape run my.fio --report run.html            plots, in one file that works offline
  nandscape run examples/fileserver.f --stack ext4-pblk --set '$files=10000'
                                                    a Filebench workload, and a variable of it
  nandscape run examples/varmail.f --stack ext4-pblk --runtime 5s
                                                    however long the file says that it runs

Every key of a job file is an option, as in fio: --name begins a job, and options before the first --name \
are global. --runtime before the first --name is the option below; after it, the job's. \
`nandscape docs job` lists the keys.

A file whose name ends in .f is a Filebench workload, which needs a stack with [fs]; --until-steady, \
--log-dir and --hdr-log do not go with it (`nandscape docs wml`).

Preconditioning ([precondition] in the stack) runs first, without timing; every figure is of what \
follows. Same job, stack and seed: same result, to the last digit. Preconditioned devices are kept \
in the user's cache folder, and reused by runs that need the same one; results do not depend on that.

Ctrl-C ends a run and prints partial results, marked as such; a second Ctrl-C aborts.

--save-state changes no result. A run that is interrupted, or that has no figures because of an error, \
saves no state, and a file that is there stays.

write_bw_log, write_lat_log, write_iops_log and write_hist_log in the job write fio's logs, under \
fio's names: `nandscape docs logs`."
)]
pub(crate) struct RunArgs {
    /// fio job files (- for standard input), or one Filebench workload (.f); without any and without --name, the
    /// built-in job: 4 KiB random writes, queue depth 32
    #[arg(value_name = "JOB")]
    pub(crate) files: Vec<PathBuf>,
    /// Options of jobs on the command line, which are not clap's.
    #[arg(skip)]
    pub(crate) jobs: Vec<JobOption>,
    /// Run this section of the job files only (may be repeated)
    #[arg(long, value_name = "NAME")]
    pub(crate) section: Vec<String>,
    #[command(flatten)]
    pub(crate) stack: StackArgs,
    /// Random seed
    #[arg(long, default_value_t = 1, value_parser = seed)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) length: RuntimeArgs,
    #[command(flatten)]
    pub(crate) sizes: FitArgs,
    #[command(flatten)]
    pub(crate) rounds: SteadyArgs,
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
    #[command(flatten)]
    pub(crate) cache: CacheArgs,
    #[command(flatten)]
    pub(crate) timeline: TimelineArgs,
    #[command(flatten)]
    pub(crate) output: ResultArgs,
    /// Directory for the job's fio logs [default: the current one]
    #[arg(long, value_name = "DIR")]
    pub(crate) log_dir: Option<PathBuf>,
}

impl RunArgs {
    /// The files that are named to be written.
    pub(crate) fn outputs(&self) -> impl Iterator<Item = Option<&Path>> {
        let beside = [self.timeline.trace.as_deref(), self.device.save_state.as_deref()];
        self.output.files().into_iter().chain(beside)
    }

    /// The files that are read.
    pub(crate) fn inputs(&self) -> impl Iterator<Item = &Path> {
        let files = self.files.iter().map(PathBuf::as_path);
        files.chain(self.device.state.as_deref()).chain([self.stack.file()])
    }
}

/// How many runs go on at once.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct JobsArgs {
    /// Parallel runs; results do not depend on it [default: number of cores]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) jobs: Option<u32>,
}

/// `nandscape compare`.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = "\
Examples:
  nandscape compare pblk-4.13 pblk pblk-5.11 --device pblk-5.11 --seeds 3
  nandscape compare pblk mine.toml --job my.fio --seeds 5 --output mine.jsonl
  nandscape compare pblk-4.13 pblk-5.11 --set media.chunks=120 --metric waf.gc --metric write.iops
  nandscape compare pblk pblk-5.11 --seeds 5 --metric \"waf.gc / stack=pblk\"
  nandscape compare pblk-4.13 pblk --seeds 3 --output-format csv
  nandscape compare pblk-4.13 pblk --report both.html
  nandscape compare ext4-pblk ext4-js-pblk --job examples/varmail.f --runtime 5s

Metrics are means over the seeds with their 95 % confidence interval (Student's t), followed by \
the ratio to the first stack. Stacks bring their own devices; a warning names the keys in which \
these differ, and --device puts every FTL on one. A metric is a path, a ratio of two (\"sectors.gc / sectors.user\"), \
or either relative to one stack, seed by seed (\"waf.gc / stack=pblk\"). With --output, finished \
runs are kept as in a sweep.")]
pub(crate) struct CompareArgs {
    /// Built-in stacks (see `nandscape stacks`), or stack files
    #[arg(value_name = "STACK", required = true)]
    pub(crate) stacks: Vec<String>,
    /// Put every FTL on the device of this stack: its media, link, overprovisioning and preconditioning
    #[arg(long, value_name = "STACK")]
    pub(crate) device: Option<String>,
    /// A fio job file, or a Filebench workload (.f); without one, the built-in example: 4 KiB random writes,
    /// queue depth 32
    #[arg(long, value_name = "JOB")]
    pub(crate) job: Option<PathBuf>,
    /// Number of seeds, from 1
    #[arg(long, default_value_t = 1, value_parser = whole::<1, 100_000>)]
    pub(crate) seeds: u64,
    /// Change a key of every stack, or '$name=value' a variable of the workload (may be repeated)
    #[arg(long, value_name = "KEY.PATH=VALUE")]
    pub(crate) set: Vec<String>,
    #[command(flatten)]
    pub(crate) length: RuntimeArgs,
    #[command(flatten)]
    pub(crate) sizes: FitArgs,
    #[command(flatten)]
    pub(crate) rounds: SteadyArgs,
    #[command(flatten)]
    pub(crate) cache: CacheArgs,
    #[command(flatten)]
    pub(crate) metrics: MetricArgs,
    /// Keep a row per run in this file, and reuse finished runs from it
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// How to print the table
    #[arg(long, value_enum, default_value_t = TableFormat::Normal)]
    pub(crate) output_format: TableFormat,
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
  nandscape sweep my.toml --runtime 500ms --output short.jsonl   a first look, before the whole
  nandscape sweep my.toml --output-format json      the table as JSON: mean, ci95, n
  nandscape sweep my.toml --metric waf.gc           other metrics of the same rows; nothing runs again

Each finished run is a row of JSON in the output file. Ctrl-C waits for the runs that have begun, prints \
the table of finished runs and stops; a second Ctrl-C aborts. The same command resumes: rows are recognised by \
a hash of resolved stack, job, seed and program.

report = [\"waf.gc\", \"map.loads / writes.sectors\", \"waf.gc / stack=pblk\"] asks for a metric, a ratio \
within a run, and a metric relative to another configuration; [[line]] adds a published value to one. \
`nandscape docs sweep` describes both files.")]
pub(crate) struct SweepArgs {
    /// A sweep file
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) length: RuntimeArgs,
    #[command(flatten)]
    pub(crate) sizes: FitArgs,
    #[command(flatten)]
    pub(crate) cache: CacheArgs,
    #[command(flatten)]
    pub(crate) metrics: MetricArgs,
    /// File of the rows [default: the sweep file's name with .jsonl, in the current folder]
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// How to print the table
    #[arg(long, value_enum, default_value_t = TableFormat::Normal)]
    pub(crate) output_format: TableFormat,
    #[command(flatten)]
    pub(crate) report: HtmlArgs,
    #[command(flatten)]
    pub(crate) jobs: JobsArgs,
}

/// `nandscape stacks`.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  nandscape stacks
  nandscape stacks --output-format csv
  nandscape stacks show pblk > mine.toml            a stack to change
  nandscape stacks show pblk --resolved             defaults, too
  nandscape stacks show pblk --set ftl.op_percent=20")]
pub(crate) struct StacksArgs {
    #[command(subcommand)]
    pub(crate) command: Option<StacksCommand>,
    /// How to print the list
    #[arg(long, value_enum, default_value_t = TableFormat::Normal)]
    pub(crate) output_format: TableFormat,
}

/// What about them.
#[derive(Subcommand, Debug)]
pub(crate) enum StacksCommand {
    /// Print a stack's TOML
    #[command(after_long_help = "\
Examples:
  nandscape stacks show pblk > mine.toml            a stack to change
  nandscape stacks show mine.toml --resolved        defaults, too
  nandscape stacks show pblk --set ftl.op_percent=20")]
    Show {
        /// A built-in stack, or a stack file
        name: String,
        /// Everything it extends merged in and defaults written out; `nandscape docs stack` says which are not
        #[arg(long)]
        resolved: bool,
        /// Change a key first (implies --resolved)
        #[arg(long, value_name = "KEY.PATH=VALUE")]
        set: Vec<String>,
    },
}

/// `nandscape docs`.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  nandscape docs                                    the pages
  nandscape docs job                                keys of job files
  nandscape docs stack | less")]
pub(crate) struct DocsArgs {
    /// A page; without one, the pages are listed
    #[arg(value_name = "PAGE")]
    pub(crate) page: Option<String>,
}

/// `nandscape completions`.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  nandscape completions bash > ~/.local/share/bash-completion/completions/nandscape
  nandscape completions zsh > ~/.zfunc/_nandscape
  nandscape completions fish > ~/.config/fish/completions/nandscape.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

/// `nandscape man`.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  nandscape man | man -l -
  nandscape man --output ~/.local/share/man/man1    then: man nandscape-run")]
pub(crate) struct ManArgs {
    /// Write a page for each command to this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
}

/// `nandscape bench`.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  nandscape bench
  nandscape bench steady empty")]
pub(crate) struct BenchArgs {
    /// What to measure; without it, everything
    #[arg(value_enum, value_name = "WHAT")]
    pub(crate) what: Vec<Bench>,
}

/// A measurement.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(crate) enum Bench {
    /// Random writes in steady state: placed sectors per second
    Steady,
    /// Random writes without garbage collection
    Empty,
    /// Random reads, beside a bare loop that does only the look-up
    Read,
    /// Sequential fill of 256 GiB
    Fill,
    /// RAM of a 512 GiB device, without content and with tags
    Ram,
    /// Writes per second and RAM per GiB as the device grows, beside a bare loop
    Growth,
}

/// A seed.
fn seed(text: &str) -> Result<u64, String> {
    whole::<0, { u64::MAX }>(text)
}

/// A whole number within these bounds.
fn whole<const MIN: u64, const MAX: u64>(text: &str) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number| (MIN..=MAX).contains(number));
    number.ok_or_else(|| format!("expected a whole number from {MIN} to {MAX}"))
}

/// The command line of this process. What is no name may begin with a minus: then the message says what is wrong with
/// it, and not that there is no such option.
pub(crate) fn parse() -> Cli {
    let mut command = with_minus(Cli::command());
    command.build();
    let Split { ours, jobs } = words::split(std::env::args_os(), &command);
    let matches = command.get_matches_from(ours);
    let mut cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    if let Command::Run(args) = &mut cli.command {
        args.jobs = jobs;
    }
    cli
}

fn with_minus(command: clap::Command) -> clap::Command {
    let names = [TypeId::of::<String>(), TypeId::of::<PathBuf>()];
    let is_name = |arg: &Arg| {
        let read = arg.get_value_parser().type_id();
        names.iter().any(|name| read == *name) || !arg.get_possible_values().is_empty()
    };
    let may_be_negative =
        |arg: &Arg| arg.get_action().takes_values() && !arg.is_positional() && !is_name(arg);
    let lenient = |arg: Arg| match may_be_negative(&arg) {
        true => arg.allow_hyphen_values(true),
        false => arg,
    };
    command.mut_args(lenient).mut_subcommands(with_minus)
}
