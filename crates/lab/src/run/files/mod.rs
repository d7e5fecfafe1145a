//! A file system between workload and FTL: jobs run on files.
//!
//! To the engine it is a block device whose address space is the jobs' files, one behind the other
//! ([`Layout`]); every bio becomes calls of the file system (`calls`), in a task of the runtime that
//! lives here and whose clock follows the engine's. The FTL is the file system's device.
//!
//! The file system is made or mounted, and files are laid out (`make`), before anything is measured and without
//! timing, so that no virtual time passes. Then the device is off and on again, as it is behind
//! preconditioning: a run begins with nothing in RAM, neither in the page cache nor in a write buffer.
//!
//! Its daemons have timers for ever, so the clock never runs out of events. A call that does not come back
//! is told by silence: when for an hour none has begun or ended, nothing more is expected of the device.

mod calls;
mod layout;
mod make;

pub(super) use layout::Layout;

use super::counts::FsCounts;
use super::device::{Flash, Hinted, LabDevice, Mounted};
use super::error::RunError;
use super::prepare::off_and_on;
use super::silence::SILENCE;
use crate::stack::{FsStack, Stack};
use crate::timeline::{Request, Requests};
use calls::Calls;
use make::Made;
use nandscape_block::{AsyncDevice, Bio, BlockDevice, Completion, DeviceCaps, Fua, Submit, Token};
use nandscape_fs::contract::FileSystem;
use nandscape_ftl::Pblk;
use nandscape_rt::combine::timeout;
use nandscape_rt::{Executor, Nanos, Waiting};
use nandscape_workload::wml::engine::Planted;
use nandscape_workload::wml::{Tree, Workload};
use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;

/// Different things that are waited for, of which so many are told.
const WAITING_MAX: usize = 8;

/// What a file system holds when a run begins.
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
    /// Calls under way, and when the last one began or ended.
    under_way: usize,
    heard: Nanos,
}

impl Files {
    /// Makes the file system of `stack` on a device, which nothing was written to if it is `fresh`, or
    /// mounts the one that is there, from `file`; and makes what it is to hold.
    pub(super) fn lay_out(
        stack: &Stack,
        fs: &FsStack,
        contents: Contents,
        (device, fresh): (Hinted, bool),
        file: Option<&str>,
        seed: u64,
    ) -> Result<Self, RunError> {
        stack.check_fs(device.caps().sectors)?;
        let under = device.caps().clone();
        let options = fs.for_run(seed, fresh);
        let (device, made) = made(stack, &options, contents, device, file)?;
        let ftl = off_and_on(stack, device.ftl, seed)?;
        let (mut executor, device) = driven(Hinted::new(ftl, &stack.hints));
        let handle = executor.handle();
        let opened = make::open(&handle, &device.erased(), made);
        let (fs_made, Made { inodes, planted, contents, .. }) =
            at_once(&mut executor, opened)?.map_err(|error| error.on(stack, file))?;
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
        let (requests, under_way, heard) = (None, 0, Nanos::ZERO);
        Ok(Self { executor, device, calls, caps, planted, reset, requests, under_way, heard })
    }
}

/// The file system of `stack` with these contents on a device that it lets go again.
fn made(
    stack: &Stack,
    options: &FsStack,
    contents: Contents,
    device: Hinted,
    file: Option<&str>,
) -> Result<(Hinted, Made), RunError> {
    let (mut executor, device) = driven(device);
    let made = make::make(&executor.handle(), &device.erased(), options, contents);
    let made = at_once(&mut executor, made)?.map_err(|error| error.on(stack, file))?;
    drop(executor);
    let device = device.into_inner();
    let device = device.ok_or_else(|| RunError::Failed("somebody has the device".to_owned()))?;
    Ok((device, made))
}

/// A device, and the runtime that drives it.
fn driven(device: Hinted) -> (Executor, AsyncDevice<Hinted>) {
    let executor = Executor::on_virtual_clock();
    let device = AsyncDevice::new(&executor.handle(), device);
    (executor, device)
}

/// What `future` brings, in no virtual time.
fn at_once<F>(executor: &mut Executor, future: F) -> Result<F::Output, RunError>
where
    F: Future + 'static,
    F::Output: 'static,
{
    let output = in_time(executor, future).map_err(RunError::Failed)?;
    match executor.handle().now() > Nanos::ZERO {
        true => Err(RunError::TimePassed),
        false => Ok(output),
    }
}

/// What `future` brings, which takes no longer than the longest silence.
///
/// # Errors
/// What everybody waits for.
fn in_time<F>(executor: &mut Executor, future: F) -> Result<F::Output, String>
where
    F: Future + 'static,
    F::Output: 'static,
{
    let handle = executor.handle();
    let task = handle.spawn("file system", future);
    match executor.block_on(async move { timeout(&handle, SILENCE, task).await }) {
        Ok(Ok(Ok(output))) => Ok(output),
        Ok(_) => Err(format!("the file system hangs: {}", told(&executor.waiting()))),
        Err(deadlock) => Err(deadlock.to_string()),
    }
}

/// What tasks wait for, each thing once.
fn told(waiting: &[Waiting]) -> String {
    let mut told: Vec<String> = Vec::new();
    for waiting in waiting.iter().map(Waiting::to_string) {
        if !told.contains(&waiting) {
            told.push(waiting);
        }
    }
    let more = if told.len() > WAITING_MAX { "; ..." } else { "" };
    told.truncate(WAITING_MAX);
    told.join("; ") + more
}

/// What files on a device can do.
fn caps(device: &DeviceCaps, layout: &Layout) -> DeviceCaps {
    DeviceCaps {
        sectors: layout.sectors(),
        fua: Fua::Honoured,
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
        (self.under_way, self.heard) = (self.under_way + 1, now);
        drop(self.calls.handle.spawn("call", async move { calls.serve(bio, token).await }));
        Submit::Pending
    }

    fn next_event(&self) -> Option<Nanos> {
        if !self.calls.done.borrow().is_empty() {
            return Some(self.calls.handle.now());
        }
        let silent = |next: Nanos| next.saturating_sub(self.heard) > SILENCE;
        self.executor.next_event().filter(|next| self.under_way == 0 || !silent(*next))
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        self.executor.run_until(now);
        let known = done.len();
        done.append(&mut self.calls.done.borrow_mut());
        if done.len() > known {
            (self.under_way, self.heard) = (self.under_way + known - done.len(), now);
        }
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

    fn waiting(&self) -> Option<String> {
        Some(told(&self.executor.waiting()))
    }

    fn close(&mut self) -> Result<(), String> {
        let fs = self.calls.fs.clone();
        let unmounted = in_time(&mut self.executor, async move { fs.unmount().await })?;
        unmounted.map_err(|error| error.to_string())
    }

    fn release(self) -> Option<Pblk<Flash>> {
        let Self { executor, device, calls, .. } = self;
        drop((executor, calls));
        device.into_inner().map(|device| device.ftl)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::device::{format, sound};
    use crate::run::drive::drive;
    use crate::run::engine::JobsUnderWay;
    use crate::run::observer::Unobserved;
    use crate::run::prepare;
    use nandscape_workload::fio::{HostEnvironment, parse};

    /// A call that never comes back ends the run with who waits, although daemons have timers for ever; so
    /// does a file system that cannot be unmounted for it.
    #[test]
    fn a_call_that_hangs_is_told() {
        let small = ["media.chunks=48", "media.sectors=128", "ftl.op_percent=35"];
        let stack = Stack::load("ext4-pblk", &small).unwrap();
        let jobs = parse("[w]\nrw=write\nsize=1m\n", "a.fio", &HostEnvironment).unwrap();
        let media = sound(prepare::fresh(&stack, 1).unwrap());
        let device = Hinted::new(format(&stack, media, 1).unwrap(), &stack.hints);
        let contents = Contents::Jobs(Layout::new(&jobs, 1).unwrap());
        let fs = stack.fs.as_ref().unwrap();
        let mut files = Files::lay_out(&stack, fs, contents, (device, true), None, 1).unwrap();
        let mut under_way = JobsUnderWay::new(&jobs, &mut files, 1, &mut Unobserved).unwrap();
        under_way.until = Nanos::from_us(50);
        drive(&mut under_way, &mut files, &mut Unobserved).unwrap();
        under_way.until = Nanos::MAX;
        let thread_for_ever =
            files.calls.free.borrow().keys().map(|thread| (*thread, Nanos::MAX)).collect();
        *files.calls.free.borrow_mut() = thread_for_ever;
        let hung = drive(&mut under_way, &mut files, &mut Unobserved).unwrap_err();
        let RunError::Failed(why) = hung else { panic!("{hung}") };
        assert!(
            why.contains("the device has nothing left to do, but 1 requests wait: write of"),
            "{why}"
        );
        assert!(why.ends_with("; task `call` waits for something unnamed"), "{why}");
        let never = std::future::pending::<()>();
        let why = in_time(&mut files.executor, never).unwrap_err();
        assert!(why.starts_with("the file system hangs: task `"), "{why}");
        assert!(why.contains("task `call` waits"), "{why}");
    }
}
