//! The way in where the host's CPU costs something: a request passes its core and the locks before the FTL
//! learns of it, a write command is built before it is issued, a batch of copies keeps the
//! collecting thread busy, and commands for blocks of a cached mapping pass the mapping thread. A request that
//! finds no room waits behind all that, and costs nothing more.
//!
//! Not charged: completions, and metadata of lines.

use super::Pblk;
use super::cpu::{CpuQueues, LockDemand, Task};
use super::events::EventKind;
use super::flash::Flash;
use super::intake::Buffers;
use super::rules::Rules;
use super::waiting::Arrival;
use crate::pblk::config::FlushScope;
use nandscape_block::{Completion, Flags, Op, Submit};
use nandscape_media::OpenChannel;
use nandscape_rt::host::CoreId;
use nandscape_rt::invariant;

impl CpuQueues {
    /// Tasks begin on cores that are free.
    pub(super) fn run<M: OpenChannel>(
        &mut self,
        flash: &mut Flash<M>,
        buffers: &mut Buffers,
        rules: &Rules,
    ) {
        while let Some((core, task)) = self.next(flash.now) {
            let demand = self.lock_demand(buffers, rules, task);
            let end = self.begin(flash.now, core, task, demand);
            flash.events.push(end, EventKind::Core(core));
        }
    }

    /// A thread of the FTL has something to do, and begins if a core is free.
    #[cold]
    pub(super) fn run_task<M: OpenChannel>(
        &mut self,
        flash: &mut Flash<M>,
        buffers: &mut Buffers,
        rules: &Rules,
        task: Task,
    ) {
        self.wake(flash.now, task);
        self.run(flash, buffers, rules);
    }

    /// What a task asks of the locks.
    fn lock_demand(&mut self, buffers: &mut Buffers, rules: &Rules, task: Task) -> LockDemand {
        match task {
            Task::Request(number) => self.request_demand(buffers, rules, number),
            Task::Build(..) | Task::Map(_) => LockDemand::default(),
            Task::Copy(id, sectors) => {
                LockDemand { rings: 1 << id, inserted: sectors, mapped: sectors }
            }
        }
    }

    fn request_demand(&mut self, buffers: &mut Buffers, rules: &Rules, number: u32) -> LockDemand {
        // A device that has stopped has given it up.
        let Some(request) = self.request_mut(number) else { return LockDemand::default() };
        let bio = &request.bio;
        let covered = bio.op == Op::Flush || bio.flags.has(Flags::PREFLUSH);
        let sectors = bio.sectors;
        let mut demand = LockDemand { rings: 0, inserted: 0, mapped: sectors };
        if bio.op == Op::Write {
            let buffer = buffers.router.route(bio, &buffers.all);
            demand = LockDemand { rings: 1 << buffer, inserted: sectors, mapped: sectors };
            request.buffer = Some(buffer);
        }
        if covered {
            let file = buffers.router.flushed_file(bio);
            demand.rings |= match (rules.config.flush_scope, file) {
                (FlushScope::FileRing, Some(file)) => buffers.router.dirty_of(file, &buffers.all),
                _ => u64::MAX,
            };
        }
        demand
    }
}

impl<M: OpenChannel> Pblk<M> {
    /// A core is done: a request has come in, a command can be issued, or the collecting thread goes on.
    pub(super) fn core_done(&mut self, core: CoreId) {
        invariant!(self.cpu.is_some(), "a core that is done is one of the host's");
        let Some(host) = &mut self.cpu else { return };
        let issued = match host.end(self.flash.now, core) {
            Some(Task::Request(number)) => {
                self.admit_request(number);
                Ok(())
            }
            Some(Task::Build(id, number, _)) => self.issue_built(id, number),
            Some(Task::Map(order)) => match &mut self.mapping {
                Some(mapping) => mapping.issue(&mut self.flash, &self.buffers, order.what),
                None => Ok(()),
            },
            Some(Task::Copy(..)) | None => Ok(()),
        };
        if let Err(error) = issued {
            self.stop(error.into());
        }
        if let Some(cpu) = &mut self.cpu {
            cpu.run(&mut self.flash, &mut self.buffers, &self.rules);
        }
    }

    /// Reads that have not come in are served at once, now that nothing is written any more.
    pub(super) fn serve_outside(&mut self) {
        let reads = self.cpu.as_mut().map(|host| host.take_reads()).unwrap_or_default();
        for (bio, token) in reads {
            let done = self.read(&bio);
            self.done.push(Completion { token, done });
        }
    }

    /// A request has passed the locks.
    fn admit_request(&mut self, number: u32) {
        let Some(request) = self.cpu.as_mut().and_then(|host| host.take(number)) else { return };
        let cpu_ns = u32::try_from((self.flash.now - request.since).0).unwrap_or(u32::MAX);
        let entered = Arrival { since: request.since, cpu_ns, buffer: request.buffer };
        let token = request.token;
        if let Submit::Done(done) = self.serve(request.bio, token, entered) {
            self.done.push(Completion { token, done });
        }
    }
}
