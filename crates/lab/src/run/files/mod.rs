//! A page cache between workload and FTL: jobs run on files of a file system, or on the block device through its
//! page cache (`device_calls`).
//!
//! To the engine it is a block device (`device`) whose address space is the jobs' files, one behind the
//! other ([`Layout`]); every bio becomes calls of the file system (`calls`), in a task of a runtime (`tasks`)
//! whose clock follows the engine's. The FTL is the file system's device.
//!
//! Before anything is measured that is set up (`set_up`): the volume is made or checked (`volume`), what the
//! run needs is laid out on it (`lay_out`), and the device is off and on again.

mod calls;
mod device;
mod device_calls;
mod lay_out;
mod layout;
mod memory;
mod set_up;
mod tasks;
mod volume;

pub(super) use device_calls::{buffered, run_as};
pub(super) use layout::Layout;
pub(super) use set_up::{set_up, set_up_cache};

use nandscape_workload::wml::{Tree, Workload};
use std::rc::Rc;

/// What a file system holds when a run begins.
pub(super) enum Contents {
    /// Files of jobs.
    Jobs(Layout),
    /// Filesets of a workload.
    Trees(Rc<Workload>, Vec<Tree>),
}

/// What is between a load and the FTL.
pub(super) enum Above {
    /// Nothing: the load has the block device.
    Nothing,
    /// The page cache of the block device; these clones of jobs bypass it.
    PageCache(Vec<bool>),
    /// A file system with these contents.
    FileSystem(Contents),
}
