//! The async face of a block device: submit now, await the reply when it is wanted.
//!
//! - A bio is submitted by the call, not by the first poll of the future that the call returns, so
//!   several can be in flight before any is awaited. Dropping that future retracts nothing: the bio
//!   goes on and only its reply is lost.
//! - A future ends at the very instant at which its bio completes.
//! - One task drives the device: it sleeps to the device's next event and hands out completions.
//! - Whoever is to be compiled once, and not for each kind of device, takes an [`AsyncDevice`] whose
//!   device is not known: [`AsyncDevice::erased`].

use crate::address::Lba;
use crate::bio::Bio;
use crate::caps::DeviceCaps;
use crate::device::{BlockDevice, Completion, Done, Reply, Submit, Token};
use crate::error::BlockError;
use crate::payload::Payload;
use nandscape_rt::combine::select2;
use nandscape_rt::sync::{Notify, OneshotReceiver, OneshotSender, oneshot};
use nandscape_rt::{Handle, Nanos};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::rc::Rc;

struct Inner<D: ?Sized> {
    handle: Handle,
    waiting: RefCell<BTreeMap<Token, OneshotSender<Done>>>,
    next_token: Cell<u64>,
    /// The event that the driver sleeps to, and how to tell it of an earlier one.
    scheduled: Cell<Option<Nanos>>,
    rescheduled: Notify,
    upcall_pending: Cell<bool>,
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
            scheduled: Cell::new(None),
            rescheduled: Notify::new(handle, "a bio"),
            upcall_pending: Cell::new(false),
            device: RefCell::new(device),
        });
        let device = Self(inner);
        drop(handle.spawn_daemon("block device", drive(device.erased().0)));
        device
    }

    /// The device, if nobody else has it any more: whoever drove it has ended with the executor.
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
    pub fn caps(&self) -> DeviceCaps {
        self.0.device.borrow().caps().clone()
    }

    /// Looks at the device, or changes it, between bios.
    pub fn with<R>(&self, look: impl FnOnce(&mut D) -> R) -> R {
        let seen = look(&mut self.0.device.borrow_mut());
        self.0.reschedule();
        seen
    }

    /// Whether the last completion said that migrations wait to be fetched.
    #[must_use]
    pub fn upcall_pending(&self) -> bool {
        self.0.upcall_pending.get()
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
            inner.upcall_pending.set(done.upcall_pending);
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
        let submitted = self.device.borrow_mut().submit(self.handle.now(), bio, token);
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

    /// Tells the driver if the device's next event is no longer the one it sleeps to.
    fn reschedule(&self) {
        if self.device.borrow().next_event() != self.scheduled.get() {
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
        for Completion { token, done } in completions {
            if let Some(waiting) = self.waiting.borrow_mut().remove(&token) {
                // Nobody waits for the reply any more: the bio was not retracted, only its reply is.
                let _ = waiting.send(done);
            }
        }
    }
}

async fn drive(inner: Rc<Inner<dyn BlockDevice>>) {
    loop {
        inner.advance();
        let next = inner.device.borrow().next_event();
        inner.scheduled.set(next);
        let rescheduled = inner.rescheduled.notified();
        match next {
            Some(at) => drop(select2(inner.handle.sleep_until(at), rescheduled).await),
            None => rescheduled.await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mem::MemDevice;
    use crate::tag::Tag;
    use nandscape_rt::combine::join_all;
    use nandscape_rt::{Deadlock, Executor};

    fn run<F: Future<Output = ()> + 'static>(body: impl FnOnce(Handle) -> F) {
        let mut executor = Executor::on_virtual_clock();
        let handle = executor.handle();
        executor.block_on(body(handle)).expect("every bio completes");
    }

    fn tags(first: u64) -> Payload {
        Payload::Run(Tag::new(first))
    }

    /// What was written is read, at once or after a latency, and a reply comes at its very instant.
    #[test]
    fn bios_take_the_devices_time() {
        for latency in [0, 10] {
            run(move |handle| async move {
                let device = MemDevice::new(8).with_latency(Nanos(latency));
                let device = AsyncDevice::new(&handle, device);
                device.write(Lba(3), 1, tags(5)).await.unwrap();
                device.flush().await.unwrap();
                assert_eq!(device.read(Lba(3), 1).await, Ok(tags(5)));
                device.discard(Lba(3), 1).await.unwrap();
                assert_eq!(device.read(Lba(3), 1).await, Ok(tags(0)));
                assert_eq!(handle.now(), Nanos(5 * latency));
            });
        }
    }

    /// A device comes back with what was written to it, once its executor is gone and no clone is left.
    #[test]
    fn devices_come_back() {
        let mut executor = Executor::on_virtual_clock();
        let device = AsyncDevice::new(&executor.handle(), MemDevice::new(8));
        executor.block_on(device.write(Lba(3), 1, tags(5))).unwrap().unwrap();
        assert!(device.clone().into_inner().is_none(), "somebody drives it");
        drop(executor);
        let device = device.into_inner().unwrap();
        assert_eq!(device.durable(Lba(3)), tags(0).sector(0), "nothing was flushed");
        let mut executor = Executor::on_virtual_clock();
        let device = AsyncDevice::new(&executor.handle(), device);
        let read = device.read(Lba(3), 1);
        assert_eq!(executor.block_on(read).unwrap(), Ok(tags(5)));
    }

    /// Bios are in flight together as soon as they are submitted, polled or not.
    #[test]
    fn bios_overlap() {
        run(|handle| async move {
            let device = MemDevice::new(8).with_latency(Nanos(10));
            let device = AsyncDevice::new(&handle, device);
            let writes: Vec<_> = (0..8).map(|lba| device.write(Lba(lba), 1, tags(lba))).collect();
            handle.sleep(Nanos(5)).await;
            let late = device.read(Lba(7), 1);
            assert!(join_all(writes).await.iter().all(Result::is_ok));
            assert_eq!(handle.now(), Nanos(10));
            assert_eq!(late.await, Ok(tags(7)));
            assert_eq!(handle.now(), Nanos(15));
        });
    }

    /// A future dropped before or after its first poll retracts nothing.
    #[test]
    fn dropped_futures_retract_nothing() {
        run(|handle| async move {
            let device = MemDevice::new(8).with_latency(Nanos(10));
            let device = AsyncDevice::new(&handle, device);
            drop(device.write(Lba(0), 1, tags(1)));
            select2(device.write(Lba(1), 1, tags(2)), handle.sleep(Nanos(3))).await;
            device.flush().await.unwrap();
            let durable = device.with(|device| [0, 1].map(|lba| device.durable(Lba(lba))));
            assert_eq!(durable, [tags(1).sector(0), tags(2).sector(0)]);
        });
    }

    /// Errors come back as replies do, and an idle device leaves the clock alone.
    #[test]
    fn errors_are_replies() {
        run(|handle| async move {
            let device = AsyncDevice::new(&handle, MemDevice::new(8));
            let error = device.read(Lba(8), 1).await.unwrap_err();
            assert!(matches!(error, BlockError::OutOfRange { .. }));
            assert_eq!(device.caps().sectors, 8);
            assert_eq!(handle.now(), Nanos::ZERO);
        });
    }

    /// A device that never completes its bios.
    struct Silent(DeviceCaps);

    impl BlockDevice for Silent {
        fn caps(&self) -> &DeviceCaps {
            &self.0
        }

        fn submit(&mut self, _now: Nanos, _bio: Bio, _token: Token) -> Submit {
            Submit::Pending
        }

        fn next_event(&self) -> Option<Nanos> {
            None
        }

        fn advance(&mut self, _now: Nanos, _done: &mut Vec<Completion>) {}
    }

    /// A device that forgets a bio shows up as a deadlock that names what is waited for.
    #[test]
    fn lost_bios_are_deadlocks() {
        let mut executor = Executor::on_virtual_clock();
        let device = AsyncDevice::new(&executor.handle(), Silent(DeviceCaps::default()));
        let Deadlock { waiting, .. } = executor.block_on(device.flush()).unwrap_err();
        let main = waiting.iter().find(|waiting| waiting.task == "main").unwrap();
        assert_eq!(main.on, ["answer `a bio's completion`"]);
    }
}
