//! The `nandscape` binary: command line in, a run in the lab or a campaign, results out. The only
//! place that reads the wall clock.

mod args;
mod bench;
mod compare;
mod crash;
mod interrupt;
mod output;
mod pool;
mod progress;
mod report;
mod rows;
mod run;
mod stacks;
mod summary;
mod sweep;
mod table;
mod trace;

use args::{Cli, Command};
use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Run(args) => run::run(&args),
        Command::Trace(args) => trace::trace(&args),
        Command::Compare(args) => compare::compare(&args),
        Command::Sweep(args) => sweep::sweep(&args),
        Command::Report(args) => report::report(&args),
        Command::Stacks(args) => stacks::stacks(&args),
        Command::Crash(args) => crash::crash(&args),
        Command::Bench(args) => bench::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
