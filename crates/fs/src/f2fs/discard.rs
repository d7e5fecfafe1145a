//! Discards of segments that became free (`clear_prefree_segments`, `__issue_discard_cmd`): queued when a checkpoint is
//! durable, and sent some at a time. A segment that is reused before its turn is not discarded; one whose discard is in
//! flight is not reused, so discards wait while few sections are free.

use super::balance::Balance;
use super::format::{BLOCKS_PER_SEGMENT, SegNo};
use super::options::DiscardPolicy;
use super::segment::LOGS;
use super::segment_manager::SegmentManager;
use super::volume::Volume;
use nandscape_block::{Bio, Lba};
use nandscape_rt::{Nanos, invariant};
use std::rc::Rc;

/// Time between rounds (`DEF_MIN_DISCARD_ISSUE_TIME`).
const ROUND: Nanos = Nanos::from_ms(50);
/// Requests of a round: the kernel's, and that of D2FS's F2FS baseline.
const KERNEL_REQUESTS: usize = 8;
const AGGRESSIVE_REQUESTS: usize = 80_000;

impl Volume {
    /// A durable checkpoint, or a durable block of the GC journal, has made segments free: they are no victims any more, and
    /// their discards are queued.
    pub(super) fn note_freed(self: &Rc<Self>, freed: Vec<SegNo>) {
        for segment in &freed {
            self.cleaner
                .background_victims
                .borrow_mut()
                .remove(&self.mount.layout.section_of(*segment));
        }
        if self.segments.queue_freed(freed) {
            let volume = Rc::clone(self);
            let send = async move { volume.send_discards().await };
            drop(self.mount.env.rt.spawn_daemon("discard", send));
        }
    }

    /// Sends what waits, some per round, until nothing does.
    async fn send_discards(self: &Rc<Self>) {
        let most = match self.mount.options.discard_policy {
            DiscardPolicy::Kernel => KERNEL_REQUESTS,
            DiscardPolicy::Aggressive => AGGRESSIVE_REQUESTS,
        };
        while !self.segments.discards.waiting.borrow().is_empty() && !self.mount.stopped.get() {
            self.mount.env.rt.sleep(ROUND).await;
            if self.mount.env.calls.check_open().is_err() {
                break;
            }
            for _ in 0..most {
                let left = Balance::of(self).sections_to_write() + LOGS as u32;
                let Some(run) = self.segments.take_discard(left) else { break };
                self.send_discard(run);
            }
        }
        self.segments.discards.running.set(false);
    }

    fn send_discard(self: &Rc<Self>, run: std::ops::Range<u32>) {
        let first = self.mount.layout.block(SegNo(run.start), 0);
        invariant!(first.is_some(), "segment {} that is discarded has blocks", run.start);
        let Some(first) = first else { return };
        let blocks = (run.end - run.start) * BLOCKS_PER_SEGMENT;
        let reply = self.mount.env.device.submit(Bio::discard(Lba(first.0.into()), blocks));
        self.segments.discards.sent.set(self.segments.discards.sent.get() + 1);
        let volume = Rc::clone(self);
        drop(self.mount.env.rt.spawn_daemon("discard", async move {
            // A discard that fails frees nothing on the device, and nothing else is lost.
            let _ = reply.await;
            run.for_each(|segment| volume.segments.borrow_mut().unhold(SegNo(segment)));
        }));
    }
}

impl SegmentManager {
    /// Segments became free: zones are held until their reset, discards of others are queued. Whether a task is to be
    /// started that sends these.
    fn queue_freed(&self, freed: Vec<SegNo>) -> bool {
        if self.append.is_some() {
            return false;
        }
        let Some(zones) = &self.zones else { return self.queue_discards(freed) };
        let (of_zones, others) = freed.into_iter().partition(|segment| {
            self.borrow().capacity().is_zone(self.mount.layout.section_of(*segment))
        });
        let of_zones: Vec<SegNo> = of_zones;
        zones.hold_freed(
            self,
            of_zones.iter().map(|segment| self.mount.layout.section_of(*segment)),
        );
        self.queue_discards(others)
    }

    fn queue_discards(&self, freed: Vec<SegNo>) -> bool {
        if self.mount.env.device.caps().discard_sectors == 0 || freed.is_empty() {
            return false;
        }
        let freed = freed.into_iter().map(|segment| segment.0);
        self.discards.waiting.borrow_mut().extend(freed);
        !self.discards.running.replace(true)
    }

    /// Resets the zones of sections that became free; they may be used then.
    pub(super) async fn reset_freed(&self) {
        if let Some(zones) = &self.zones {
            zones.reset_freed(self).await;
        }
    }

    /// The first run of segments that wait and are still free; they are not reused until their discard has ended. So
    /// that nothing runs out of segments meanwhile, `left` sections are left: one for each log, and those of what is dirty.
    fn take_discard(&self, left: u32) -> Option<std::ops::Range<u32>> {
        let mut waiting = self.discards.waiting.borrow_mut();
        let mut segments = self.borrow_mut();
        let mut run: Option<std::ops::Range<u32>> = None;
        while let Some(&next) = waiting.first() {
            let is_apart = run.as_ref().is_some_and(|run| run.end != next);
            if is_apart || segments.free_sections() <= left {
                break;
            }
            waiting.remove(&next);
            if segments.hold(SegNo(next)) {
                run = Some(run.map_or(next, |run| run.start)..next + 1);
            } else if run.is_some() {
                break;
            }
        }
        run
    }

    /// Discards segments that the last checkpoint still refers to, which breaks a rule.
    pub(crate) async fn discard_prefree(&self) {
        if let Some(zones) = &self.zones {
            return zones.reset_prefree(self).await;
        }
        if self.append.is_some() {
            return;
        }
        let prefree = self.borrow().prefree();
        for segment in prefree {
            let first = self.mount.layout.block(segment, 0).unwrap_or_default();
            let bio = Bio::discard(Lba(first.0.into()), BLOCKS_PER_SEGMENT);
            let _ = self.mount.env.device.submit(bio).await;
        }
    }
}
