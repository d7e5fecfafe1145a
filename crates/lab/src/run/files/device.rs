//! The jobs' files, or a block device behind its page cache, as the device that the engine runs on.

use super::calls::{Calls, Target};
use super::tasks::{in_time, told};
use crate::run::counts::FileCounts;
use crate::run::device::{HintedDevice, LabDevice, Mounted, RunFtl};
use crate::run::silence::HANG_LIMIT;
use crate::timeline::{Request, Requests};
use nandscape_block::{AsyncDevice, Bio, BlockDevice, Completion, DeviceCaps, Submit, Token};
use nandscape_rt::{Executor, Host, Nanos};
use nandscape_workload::wml::engine::Planted;
use std::ops::Range;
use std::rc::Rc;

/// Files of jobs, or a file system that a workload calls itself and that serves no bios.
pub(in crate::run) struct Files {
    executor: Executor,
    device: AsyncDevice<HintedDevice>,
    calls: Rc<Calls>,
    caps: DeviceCaps,
    /// Filesets of a workload, for whoever runs it.
    planted: Vec<Planted>,
    /// What was counted when counts began anew.
    reset: FileCounts,
    /// CacheLookup for a timeline.
    requests: Option<Box<Requests>>,
    /// Calls under way, and when the last one began or ended.
    under_way: usize,
    heard: Nanos,
}

impl Files {
    /// Those of calls to a file system on `device`, which no other task uses.
    pub(super) fn new(
        executor: Executor,
        device: AsyncDevice<HintedDevice>,
        calls: Calls,
        planted: Vec<Planted>,
    ) -> Self {
        let caps = device.with(|device| caps(device.caps(), &calls.target));
        let (calls, reset) = (Rc::new(calls), FileCounts::default());
        let (requests, under_way, heard) = (None, 0, Nanos::ZERO);
        Self { executor, device, calls, caps, planted, reset, requests, under_way, heard }
    }
}

/// What the target of calls can do on a device that can do this. Behind a page cache, nothing is atomic.
fn caps(device: &DeviceCaps, target: &Target) -> DeviceCaps {
    match target {
        Target::Device(_) => DeviceCaps { atomic_sectors: 0, ..device.clone() },
        Target::Files(files) => DeviceCaps {
            atomic_sectors: 0,
            scoped_flush: true,
            keeps_content: device.keeps_content,
            ..DeviceCaps::conventional(files.layout.sectors())
        },
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
        let silent = |next: Nanos| next.saturating_sub(self.heard) > HANG_LIMIT;
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
    fn with<R>(&mut self, look: impl FnOnce(&mut RunFtl, &mut Option<Box<Requests>>) -> R) -> R {
        let requests = &mut self.requests;
        self.device.with(|device| look(&mut device.ftl, requests))
    }

    fn look<R>(&self, look: impl FnOnce(&RunFtl) -> R) -> R {
        self.device.with(|device| look(&device.ftl))
    }

    fn host(&self) -> &Host {
        &self.calls.host
    }

    fn now(&self) -> Nanos {
        self.calls.handle.now()
    }

    fn is_logged(&self) -> bool {
        self.requests.is_some()
    }

    fn files(&self) -> Vec<Vec<Range<u64>>> {
        match &self.calls.target {
            Target::Files(files) => files.layout.file_ranges(),
            Target::Device(_) => Vec::new(),
        }
    }

    fn fs_counts(&self) -> Option<FileCounts> {
        Some(self.calls.counts().since(&self.reset))
    }

    fn fs_memory(&self) -> Vec<(&'static str, u64)> {
        match &self.calls.target {
            Target::Files(files) => files.fs.memory_parts(),
            Target::Device(_) => Vec::new(),
        }
    }

    fn reset_fs_counts(&mut self) {
        self.reset = self.calls.counts();
    }

    fn mounted(&mut self) -> Option<Mounted> {
        let Target::Files(files) = &self.calls.target else { return None };
        Some(Mounted {
            rt: self.calls.handle.clone(),
            host: self.calls.host.clone(),
            fs: files.fs.clone(),
            planted: std::mem::take(&mut self.planted),
            cost: self.calls.cost,
        })
    }

    fn waiting(&self) -> Option<String> {
        Some(told(&self.executor.waiting()))
    }

    fn close(&mut self) -> Result<(), String> {
        let calls = Rc::clone(&self.calls);
        in_time(&mut self.executor, async move { calls.close().await })?
    }

    fn release(self) -> Option<RunFtl> {
        let Self { executor, device, calls, .. } = self;
        drop((executor, calls));
        device.into_inner().map(|device| device.ftl)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::device::{format, without_faults};
    use crate::run::drive::drive;
    use crate::run::engine::JobsUnderWay;
    use crate::run::error::RunError;
    use crate::run::files::set_up::set_up;
    use crate::run::files::{Contents, Layout};
    use crate::run::observer::NoObserver;
    use crate::run::prepare;
    use crate::stack::Stack;
    use nandscape_workload::fio::{HostEnvironment, parse};

    /// A call that never comes back ends the run with who waits, although daemons have timers for ever; so
    /// does a file system that cannot be unmounted for it.
    #[test]
    fn a_call_that_hangs_is_told() {
        let small = ["media.chunks=48", "media.sectors=128", "ftl.op_percent=35"];
        let stack = Stack::load("ext4-pblk", &small).unwrap();
        let jobs = parse("[w]\nrw=write\nsize=1m\n", "a.fio", &HostEnvironment).unwrap();
        let media = without_faults(prepare::fresh(&stack, 1).unwrap());
        let host = stack.host.build();
        let device = HintedDevice::new(format(&stack, media, 1).unwrap(), &stack.hints, &host);
        let contents = Contents::Jobs(Layout::new(&jobs, 1).unwrap());
        let fs = stack.fs.as_ref().unwrap();
        let mut files = set_up(&stack, fs, contents, (device, true), None, 1).unwrap();
        let mut under_way = JobsUnderWay::new(&jobs, &mut files, 1, &mut NoObserver).unwrap();
        under_way.until = Nanos::from_us(50);
        drive(&mut under_way, &mut files, &mut NoObserver).unwrap();
        under_way.until = Nanos::MAX;
        let (handle, host) = (files.calls.handle.clone(), files.calls.host.clone());
        let for_ever = async move { host.work(&handle, host.core(0), Nanos::MAX).await };
        drop(files.calls.handle.spawn_daemon("other work", for_ever));
        let hang_reason = drive(&mut under_way, &mut files, &mut NoObserver).unwrap_err();
        let RunError::Failed(why) = hang_reason else { panic!("{hang_reason}") };
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
