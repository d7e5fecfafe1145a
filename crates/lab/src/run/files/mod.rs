//! A file system between workload and FTL: jobs run on files.
//!
//! To the engine it is a block device whose address space is the jobs' files, one behind the other
//! ([`Layout`]); every bio becomes calls of the file system (`calls`), in a task of the runtime that
//! lives here and whose clock follows the engine's. The FTL is the file system's device.
//!
//! The file system is made, and files are laid out (`make`), before anything is measured and without
//! timing, so that no virtual time passes.

mod calls;
mod counts;
mod layout;
mod make;

pub use counts::FsCounts;
pub(super) use layout::Layout;

use super::RunError;
use super::device::{Flash, Hinted, LabDevice, Mounted};
use crate::stack::{FsStack, Stack};
use crate::timeline::{Request, Requests};
use calls::Calls;
use make::Made;
use nandscape_block::{AsyncDevice, Bio, BlockDevice, Completion, DeviceCaps, Fua, Submit, Token};
use nandscape_fs::contract::FileSystem;
use nandscape_ftl::Pblk;
use nandscape_rt::{Executor, Nanos};
use nandscape_workload::wml::engine::Planted;
use nandscape_workload::wml::{Tree, Workload};
use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;

/// What a new file system holds when a run begins.
#[derive(Debug)]
pub(super) enum Contents {
    /// Files of jobs.
    Jobs(Layout),
    /// Filesets of a workload.
    Trees(Rc<Workload>, Vec<Tree>),
}

/// The jobs' files, as the device that the engine runs on.
pub(super) struct Files {
    executor: Executor,
    device: AsyncDevice<Hinted>,
    calls: Rc<Calls>,
    caps: DeviceCaps,
    /// Filesets of a workload, for whoever runs it.
    planted: Vec<Planted>,
    /// What was counted when counts began anew.
    reset: FsCounts,
    /// Kept for a timeline.
    requests: Option<Box<Requests>>,
}

impl Files {
    /// Makes the file system of `stack` on a device, which nothing was written to if it is `fresh`, and
    /// what it is to hold.
    pub(super) fn lay_out(
        stack: &Stack,
        fs: &FsStack,
        contents: Contents,
        (device, fresh): (Hinted, bool),
        seed: u64,
    ) -> Result<Self, RunError> {
        stack.check_fs(device.caps().sectors)?;
        let under = device.caps().clone();
        let mut executor = Executor::on_virtual_clock();
        let handle = executor.handle();
        let device = AsyncDevice::new(&handle, device);
        let options = fs.for_run(seed, under.sectors, fresh);
        let made = make::make(&handle, &device.erased(), &options, contents);
        let made = executor.block_on(made).map_err(|stuck| RunError::Failed(stuck.to_string()))?;
        let Made { fs: fs_made, inodes, planted, contents } =
            made.map_err(|error| error.on(stack))?;
        if handle.now() > Nanos::ZERO {
            return Err(RunError::TimePassed);
        }
        let layout = match contents {
            Contents::Jobs(layout) => layout,
            Contents::Trees(..) => Layout::default(),
        };
        let caps = caps(&under, &layout);
        let calls = Rc::new(Calls {
            handle,
            fs: fs_made,
            layout,
            inodes,
            cost: fs.cost,
            free: RefCell::default(),
            written: RefCell::default(),
            done: RefCell::default(),
            counts: Cell::default(),
        });
        let reset = FsCounts::default();
        Ok(Self { executor, device, calls, caps, planted, reset, requests: None })
    }
}

/// What files on a device can do.
fn caps(device: &DeviceCaps, layout: &Layout) -> DeviceCaps {
    DeviceCaps {
        sectors: layout.sectors(),
        fua: Fua::Refused,
        volatile_cache: true,
        discard_sectors: 1,
        discard_zeroes: true,
        scoped_flush: true,
        keeps_content: device.keeps_content,
        placement_handles: 0,
        ..DeviceCaps::default()
    }
}

impl BlockDevice for Files {
    fn caps(&self) -> &DeviceCaps {
        &self.caps
    }

    fn submit(&mut self, now: Nanos, bio: Bio, token: Token) -> Submit {
        self.executor.run_until(now);
        if let Some(requests) = &mut self.requests {
            requests.opened(Request::new(now, &bio, token));
        }
        let calls = Rc::clone(&self.calls);
        drop(self.calls.handle.spawn("call", async move { calls.serve(bio, token).await }));
        Submit::Pending
    }

    fn next_event(&self) -> Option<Nanos> {
        if self.calls.done.borrow().is_empty() {
            return self.executor.next_event();
        }
        Some(self.calls.handle.now())
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        self.executor.run_until(now);
        let known = done.len();
        done.append(&mut self.calls.done.borrow_mut());
        if let Some(requests) = &mut self.requests {
            requests.completed(&done[known..]);
        }
    }
}

impl LabDevice for Files {
    fn with<R>(
        &mut self,
        look: impl FnOnce(&mut Pblk<Flash>, &mut Option<Box<Requests>>) -> R,
    ) -> R {
        let requests = &mut self.requests;
        self.device.with(|device| look(&mut device.ftl, requests))
    }

    fn look<R>(&self, look: impl FnOnce(&Pblk<Flash>) -> R) -> R {
        self.device.with(|device| look(&device.ftl))
    }

    fn is_logged(&self) -> bool {
        self.requests.is_some()
    }

    fn files(&self) -> Vec<Vec<Range<u64>>> {
        self.calls.layout.of_clones()
    }

    fn fs_counts(&self) -> Option<FsCounts> {
        Some(self.calls.counts().since(&self.reset))
    }

    fn reset_fs_counts(&mut self) {
        self.reset = self.calls.counts();
    }

    fn mounted(&mut self) -> Option<Mounted> {
        Some(Mounted {
            rt: self.calls.handle.clone(),
            fs: self.calls.fs.clone(),
            planted: std::mem::take(&mut self.planted),
            cost: self.calls.cost,
        })
    }

    fn close(&mut self) -> Result<(), String> {
        let fs = self.calls.fs.clone();
        match self.executor.block_on(async move { fs.unmount().await }) {
            Ok(unmounted) => unmounted.map_err(|error| error.to_string()),
            Err(deadlock) => Err(deadlock.to_string()),
        }
    }
}
