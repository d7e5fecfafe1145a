//! The `nandscape` binary: command line in, a run in the lab or a campaign, results out. The only
//! place that reads the wall clock.

mod args;
mod bench;
mod cache;
mod command;
mod compare;
mod complete;
mod crash;
mod docs;
mod fs;
mod hdr;
mod image;
mod interrupt;
mod job;
mod keys;
mod listing;
mod logs;
mod manual;
mod metrics;
mod outcome;
mod output;
mod paint;
mod paper;
mod pool;
mod progress;
mod replace;
mod report;
mod rows;
mod run;
mod run_csv;
mod sink;
mod stacks;
mod state;
mod state_cache;
mod summary;
mod sweep;
mod table;
mod terse;
mod timeline;
mod trace;
mod wml;
mod writable;
mod zones;

use args::{Cli, Command};
use output::Failure;
use paint::ColorChoice;
use std::process::ExitCode;

fn main() -> ExitCode {
    nandscape_heap::retain_freed_memory();
    let Cli { command, color } = args::parse();
    let result = interrupt::listen().and_then(|()| dispatch(command, color));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn dispatch(command: Command, color: ColorChoice) -> Result<(), Failure> {
    match command {
        Command::Run(args) => run::run(&args, color),
        Command::Trace(args) => trace::trace(&args, color),
        Command::Compare(args) => compare::compare(&args, color),
        Command::Sweep(args) => sweep::sweep(&args, color),
        Command::Paper(args) => paper::paper(&args, color),
        Command::Report(args) => report::report(&args),
        Command::Stacks(args) => stacks::stacks(&args),
        Command::Keys(args) => keys::keys(&args, color),
        Command::Metrics(args) => metrics::metrics(&args, color),
        Command::State(args) => state::state(&args),
        Command::Crash(args) => crash::crash(&args),
        Command::Mkfs(args) => fs::make(&args),
        Command::Fsck(args) => fs::fsck(&args),
        Command::Dump(args) => fs::show(&args),
        Command::Image(args) => image::image(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Docs(args) => docs::docs(&args),
        Command::Completions(args) => manual::completions(&args),
        Command::Man(args) => manual::man(&args),
    }
}
