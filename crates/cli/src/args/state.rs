//! Arguments about preconditioned devices: where they are kept, and `nandscape state`.

use super::{StackArgs, TableFormat, seed};
use clap::{Args, Subcommand};
use nandscape_lab::stack::Size;
use std::path::PathBuf;

/// Where preconditioned devices are kept from run to run; no result depends on it.
#[derive(Args, Clone, Debug)]
pub(crate) struct CacheArgs {
    /// Keep preconditioned devices in this folder [default: nandscape/states in the user's cache]
    #[arg(long, value_name = "DIR")]
    pub(crate) state_dir: Option<PathBuf>,
    /// Maximum size of the state cache; the least recently used entries are evicted
    #[arg(long, value_name = "SIZE", default_value = "8GiB")]
    pub(crate) state_limit: Size,
    /// Do not use the state cache: precondition every device
    #[arg(long, conflicts_with_all = ["state_dir", "state_limit"])]
    pub(crate) no_state_cache: bool,
}

/// The device that a run begins on, and what becomes of it.
#[derive(Args, Clone, Debug)]
pub(crate) struct DeviceArgs {
    /// Run on this device state instead of preconditioning
    #[arg(long, value_name = "FILE")]
    pub(crate) state: Option<PathBuf>,
    /// Save the device at the end of the run, its file system unmounted, for --state and image export
    #[arg(long, value_name = "FILE")]
    pub(crate) save_state: Option<PathBuf>,
}

/// `nandscape state`.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  nandscape state save --stack pblk --set precondition.recipe=steady --output steady.state
  nandscape state show steady.state
  nandscape run my.fio --state steady.state
  nandscape state cache list                        preconditioned devices that runs share

A state fits every stack with the same geometry, payload and overprovisioning.")]
pub(crate) struct StatesArgs {
    #[command(subcommand)]
    pub(crate) command: StateCommand,
}

/// What about them.
#[derive(Subcommand, Debug)]
pub(crate) enum StateCommand {
    /// Precondition the device of a stack, and save it
    Save(StateSaveArgs),
    /// Verify a state file and show its contents
    #[command(after_long_help = "\
Examples:
  nandscape state show steady.state")]
    Show {
        /// The state
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// List or clear the cache of preconditioned devices
    Cache(StateCacheArgs),
}

/// `nandscape state cache`.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  nandscape state cache list                        size, last use and contents of each state
  nandscape state cache list --output-format csv
  nandscape state cache clear                       runs precondition their devices again
  nandscape state cache path")]
pub(crate) struct StateCacheArgs {
    #[command(subcommand)]
    pub(crate) command: StateCacheCommand,
    /// The folder of the cache [default: nandscape/states in the user's cache]
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) state_dir: Option<PathBuf>,
}

/// What about the cache.
#[derive(Subcommand, Debug)]
pub(crate) enum StateCacheCommand {
    /// List the states, the least recently used first
    #[command(after_long_help = "\
Examples:
  nandscape state cache list
  nandscape state cache list --output-format json")]
    List {
        /// How to print the list
        #[arg(long, value_enum, default_value_t = TableFormat::Normal)]
        output_format: TableFormat,
    },
    /// Remove all states
    #[command(after_long_help = "\
Examples:
  nandscape state cache clear")]
    Clear,
    /// Print the folder
    #[command(after_long_help = "\
Examples:
  nandscape state cache path")]
    Path,
}

/// `nandscape state save`.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = "\
Examples:
  nandscape state save --stack pblk --set precondition.recipe=steady --output steady.state
  nandscape state save --stack mine.toml --seed 7 --output mine.state")]
pub(crate) struct StateSaveArgs {
    #[command(flatten)]
    pub(crate) stack: StackArgs,
    /// Random seed
    #[arg(long, default_value_t = 1, value_parser = seed)]
    pub(crate) seed: u64,
    /// Output file
    #[arg(long, value_name = "FILE")]
    pub(crate) output: PathBuf,
}
