//! Arguments about how long jobs run.

use clap::Args;
use nandscape_lab::run::UntilSteady;
use nandscape_lab::workload::fio::Runtime;

/// Run time.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct RuntimeArgs {
    /// Override the run time (virtual) of every job, the workload or the trace: 5s, 500ms, 2m,
    /// or 0.5 for half a second
    #[arg(long, value_name = "TIME")]
    pub(crate) runtime: Option<Runtime>,
}

/// Sizes of jobs.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct FitArgs {
    /// Scale sizes and offsets of a fio job down, in proportion, if they exceed the block device: a job for
    /// 1 TB runs on a small device
    #[arg(long)]
    pub(crate) fit: bool,
}

/// Run until steady state.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct SteadyArgs {
    /// Repeat measurement rounds until steady state, and report the last five: round=LENGTH, rounds=N or both, with
    /// LENGTH such as 25% (of the device), 1GiB or 500ms
    #[arg(long, value_name = "ROUNDS", num_args = 0..=1, require_equals = true, default_missing_value = "",
        conflicts_with = "runtime")]
    pub(crate) until_steady: Option<UntilSteady>,
}
