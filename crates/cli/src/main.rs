//! The `nandscape` binary: command line in, a run in the lab or a campaign, results out. The only
//! place that reads the wall clock.

mod args;
mod bench;
mod cache;
mod compare;
mod crash;
mod interrupt;
mod output;
mod pool;
mod progress;
mod rows;
mod run;
mod stacks;
mod state;
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
        Command::Stacks(args) => stacks::stacks(&args),
        Command::State(args) => state::state(&args),
        Command::Crash(args) => crash::crash(&args),
        Command::Bench(args) => bench::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
