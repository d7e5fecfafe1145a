//! The async face of a block device: submit now, await the reply when it is wanted.
//!
//! - A bio is submitted by the call, not by the first poll of the future that the call returns, so
//!   several can be in flight before any is awaited. Dropping that future retracts nothing: the bio
//!   goes on and only its reply is lost.
//! - A future ends at the very instant at which its bio completes.
//! - One task drives the device: it sleeps to the device's next event and hands out completions.
//! - Code that is to be compiled once, and not for each kind of device, takes an [`AsyncDevice`] whose
//!   device is not known: [`AsyncDevice::erased`].
//! - The capabilities are read once, when the face takes the device over, and are shared by its clones.
//! - What the device flags ([`BlockDevice::attention`]) is looked at whenever a completion is
//!   delivered, at that very instant, whether or not a task awaits the reply; at no other time.

use crate::address::Lba;
use crate::bio::{Bio, Flags, Op};
use crate::caps::DeviceCaps;
use crate::device::{Attention, BlockDevice, Completion, Done, Reply, Submit, Token};
use crate::error::BlockError;
use crate::payload::Payload;
use crate::zone::{ZoneAction, ZoneId, ZoneInfo};
use nandscape_rt::combine::select2;
use nandscape_rt::sync::{Notify, OneshotReceiver, OneshotSender, oneshot};
use nandscape_rt::{Handle, Nanos};
use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::future::Future;
use std::rc::Rc;

/// Requests since the face took the device over that make something durable.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Barriers {
    /// Flushes.
    pub flushes: u64,
    /// Writes with PREFLUSH.
    pub preflush_writes: u64,
    /// Writes with FUA; those with both flags count as both.
    pub fua_writes: u64,
}

impl Barriers {
    fn note(&mut self, bio: &Bio) {
        self.flushes += u64::from(bio.op == Op::Flush);
        if bio.op == Op::Write {
            self.preflush_writes += u64::from(bio.flags.has(Flags::PREFLUSH));
            self.fua_writes += u64::from(bio.flags.has(Flags::FUA));
        }
    }
}

struct Inner<D: ?Sized> {
    handle: Handle,
    waiting: RefCell<BTreeMap<Token, OneshotSender<Done>>>,
    next_token: Cell<u64>,
    barriers: Cell<Barriers>,
    /// The event that the driver sleeps to, and how to tell it of an earlier one.
    scheduled: Cell<Option<Nanos>>,
    rescheduled: Notify,
    caps: DeviceCaps,
    /// The instants of completions that were certain at submission and are still to be delivered;
    /// empty where the device raises no attention.
    deliveries: RefCell<BinaryHeap<Reverse<Nanos>>>,
    /// A completion was delivered while the device flagged something.
    flagged: Notify,
    device: RefCell<D>,
}

/// A block device whose replies are awaited. Cheap to clone; clones are the same device.
pub struct AsyncDevice<D: ?Sized = dyn BlockDevice>(Rc<Inner<D>>);

impl<D: ?Sized> Clone for AsyncDevice<D> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<D: BlockDevice + 'static> AsyncDevice<D> {
    /// Takes over a device, and starts the task that drives it.
    #[must_use]
    pub fn new(handle: &Handle, device: D) -> Self {
        let inner = Rc::new(Inner {
            handle: handle.clone(),
            waiting: RefCell::default(),
            next_token: Cell::new(0),
            barriers: Cell::default(),
            scheduled: Cell::new(None),
            rescheduled: Notify::new(handle, "a bio"),
            caps: device.caps().clone(),
            deliveries: RefCell::default(),
            flagged: Notify::new(handle, "a device's attention"),
            device: RefCell::new(device),
        });
        let device = Self(inner);
        drop(handle.spawn_daemon("block device", drive(device.erased().0)));
        device
    }

    /// The device, if no other clone is left: the task that drove it has ended with the executor.
    #[must_use]
    pub fn into_inner(self) -> Option<D> {
        Rc::into_inner(self.0).map(|inner| inner.device.into_inner())
    }

    /// The same device, of a kind that is not known.
    #[must_use]
    pub fn erased(&self) -> AsyncDevice {
        let inner: Rc<Inner<D>> = Rc::clone(&self.0);
        AsyncDevice(inner)
    }
}

impl<D: BlockDevice + ?Sized + 'static> AsyncDevice<D> {
    /// What the device can do.
    #[must_use]
    pub fn caps(&self) -> &DeviceCaps {
        &self.0.caps
    }

    /// Requests so far that make something durable.
    #[must_use]
    pub fn barriers(&self) -> Barriers {
        self.0.barriers.get()
    }

    /// Looks at the device, or changes it, between bios.
    pub fn with<R>(&self, look: impl FnOnce(&mut D) -> R) -> R {
        let seen = look(&mut self.0.device.borrow_mut());
        self.0.reschedule();
        seen
    }

    /// Waits until a completion was delivered while the device flagged something, and the device
    /// still does; returns what it flags. For one task: a delivery wakes one.
    ///
    /// Level-triggered: a delivery that no task awaited is kept, and the delivery of each further
    /// completion reports what is left. So a task that deals with the flags and then waits again misses
    /// none. A device without I/O in flight delivers nothing, and wakes no task.
    pub async fn attention(&self) -> Attention {
        loop {
            self.0.flagged.notified().await;
            let attention = self.0.device.borrow().attention();
            if !attention.is_none() {
                return attention;
            }
        }
    }

    /// Submits a bio now; its reply comes out of the future.
    pub fn submit(&self, bio: Bio) -> impl Future<Output = Result<Reply, BlockError>> + use<D> {
        let pending = self.0.submit(bio);
        let inner = Rc::clone(&self.0);
        async move {
            let done = match pending {
                Ok(done) => done,
                Err(answer) => answer.await.unwrap_or_else(|_| inner.unanswered()),
            };
            inner.handle.sleep_until(done.at).await;
            done.result
        }
    }

    /// Reads sectors.
    pub fn read(
        &self,
        lba: Lba,
        sectors: u32,
    ) -> impl Future<Output = Result<Payload, BlockError>> + use<D> {
        let reply = self.submit(Bio::read(lba, sectors));
        async move {
            match reply.await? {
                Reply::Data(payload) => Ok(payload),
                _ => Ok(Payload::None),
            }
        }
    }

    /// Writes sectors.
    pub fn write(
        &self,
        lba: Lba,
        sectors: u32,
        payload: Payload,
    ) -> impl Future<Output = Result<(), BlockError>> + use<D> {
        self.act(Bio::write(lba, sectors, payload))
    }

    /// Makes durable everything acknowledged so far.
    pub fn flush(&self) -> impl Future<Output = Result<(), BlockError>> + use<D> {
        self.act(Bio::flush())
    }

    /// Forgets sectors.
    pub fn discard(
        &self,
        lba: Lba,
        sectors: u32,
    ) -> impl Future<Output = Result<(), BlockError>> + use<D> {
        self.act(Bio::discard(lba, sectors))
    }

    /// Serves a zone management command.
    pub fn manage_zone(
        &self,
        zone: ZoneId,
        action: ZoneAction,
    ) -> impl Future<Output = Result<(), BlockError>> + use<D> {
        self.act(Bio::new(Op::Zone(zone, action), Lba(0), 0))
    }

    /// Up to `zones` zones, from the one on that an address lies in.
    pub fn report_zones(
        &self,
        lba: Lba,
        zones: u32,
    ) -> impl Future<Output = Result<Vec<ZoneInfo>, BlockError>> + use<D> {
        let reply = self.submit(Bio::new(Op::ZoneReport, lba, zones));
        async move {
            match reply.await? {
                Reply::Zones(zones) => Ok(zones),
                _ => Ok(Vec::new()),
            }
        }
    }

    fn act(&self, bio: Bio) -> impl Future<Output = Result<(), BlockError>> + use<D> {
        let reply = self.submit(bio);
        async move { reply.await.map(drop) }
    }
}

impl<D: BlockDevice + ?Sized> Inner<D> {
    /// The outcome, or where it will come from.
    fn submit(&self, bio: Bio) -> Result<Done, OneshotReceiver<Done>> {
        self.advance();
        let token = Token(self.next_token.get());
        self.next_token.set(token.0 + 1);
        let mut barriers = self.barriers.get();
        barriers.note(&bio);
        self.barriers.set(barriers);
        let submitted = self.device.borrow_mut().submit(self.handle.now(), bio, token);
        if let Submit::Done(done) = &submitted {
            self.will_deliver(done.at);
        }
        self.reschedule();
        match submitted {
            Submit::Done(done) => Ok(done),
            Submit::Pending => {
                let (sender, receiver) = oneshot(&self.handle, "a bio's completion");
                self.waiting.borrow_mut().insert(token, sender);
                Err(receiver)
            }
        }
    }

    /// Notes a completion that will be delivered at an instant known at submission.
    #[inline]
    fn will_deliver(&self, at: Nanos) {
        if !self.caps.raises_attention {
            return;
        }
        if at > self.handle.now() {
            self.deliveries.borrow_mut().push(Reverse(at));
        } else {
            self.delivered();
        }
    }

    /// Looks at the flags of a device that may raise them: a completion is delivered now.
    fn delivered(&self) {
        if !self.device.borrow().attention().is_none() {
            self.flagged.notify_one();
        }
    }

    /// When the driver must act next: the device's event, or a delivery at which to look at its flags.
    #[inline]
    fn next_event(&self) -> Option<Nanos> {
        let event = self.device.borrow().next_event();
        if !self.caps.raises_attention {
            return event;
        }
        let delivery = self.deliveries.borrow().peek().map(|Reverse(at)| *at);
        [event, delivery].into_iter().flatten().min()
    }

    /// Tells the driver if the next event is no longer the one it sleeps to.
    fn reschedule(&self) {
        if self.next_event() != self.scheduled.get() {
            self.rescheduled.notify_one();
        }
    }

    /// The end of a bio whose completion was dropped, which nothing here does.
    fn unanswered(&self) -> Done {
        let defect = BlockError::Defect("a completion was dropped".to_owned());
        Done::new(self.handle.now(), Err(defect))
    }

    /// Lets the device act on what is due, and hands out the completions.
    fn advance(&self) {
        let now = self.handle.now();
        let mut completions = Vec::new();
        let mut device = self.device.borrow_mut();
        if device.next_event().is_some_and(|event| event <= now) {
            device.advance(now, &mut completions);
        }
        drop(device);
        let delivers = !completions.is_empty();
        for Completion { token, done } in completions {
            if let Some(waiting) = self.waiting.borrow_mut().remove(&token) {
                // No task waits for the reply any more: the bio was not retracted, only its reply is.
                let _ = waiting.send(done);
            }
        }
        if self.caps.raises_attention && (self.drop_due_deliveries(now) || delivers) {
            self.delivered();
        }
    }

    /// Forgets the deliveries that were due by `now`; whether there were any.
    fn drop_due_deliveries(&self, now: Nanos) -> bool {
        let mut deliveries = self.deliveries.borrow_mut();
        let before = deliveries.len();
        while deliveries.peek().is_some_and(|Reverse(at)| *at <= now) {
            deliveries.pop();
        }
        deliveries.len() < before
    }
}

async fn drive(inner: Rc<Inner<dyn BlockDevice>>) {
    loop {
        inner.advance();
        let next = inner.next_event();
        inner.scheduled.set(next);
        let rescheduled = inner.rescheduled.notified();
        match next {
            Some(at) => drop(select2(inner.handle.sleep_until(at), rescheduled).await),
            None => rescheduled.await,
        }
    }
}

#[cfg(test)]
mod tests;
