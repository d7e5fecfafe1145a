//! Power cuts under a file system: on an FTL over media, or on a hostile device in memory.
//!
//! A seed chooses device, load and cuts. After each cut the FTL recovers, then the journal, each perhaps
//! cut again on the way; then every file and name must be one that the `model` permits
//! (docs/semantics/posix.md). A sample of what the cuts left also goes to an [`Oracle`]: other tools
//! that recover the same image, and judge what our recovery made of it. A seed's run is a function of
//! the seed and the options alone, with an oracle or without. After each cut, the `space` of the volume adds up; where
//! that is what a campaign is about, each part of the stack is driven to its end and back ([`FsOptions::full`]).

mod ballast;
pub mod calls;
mod damage;
mod draw;
mod emptied;
mod glances;
mod load;
mod model;
mod options;
mod oracle;
mod other_cuts;
mod plan;
mod power_switch;
mod reduced;
mod rounds;
mod seed;
mod space;
mod stretch;
mod tree;

use crate::device::drive::CheckFailure;
use nandscape_fs::contract::FsError;
use nandscape_rt::Nanos;
pub use options::{Base, DAMAGE_EVERY, FsOptions};
pub use oracle::{Image, Oracle};
pub use seed::{run_fs_seed, shrink_fs_seed};

/// Latency of the device under copies of volumes.
const LATENCY: Nanos = Nanos::from_us(40);

impl From<FsError> for CheckFailure {
    fn from(error: FsError) -> Self {
        Self::new(error.to_string())
    }
}
