//! The async face over devices that answer at once, later, or never.

use super::*;
use crate::bio::Op;
use crate::fake::FakeDevice;
use crate::mem::MemDevice;
use crate::region::{Region, RegionKind};
use crate::tag::Tag;
use nandscape_rt::combine::{join_all, timeout};
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
    assert!(device.clone().into_inner().is_none(), "a task drives it");
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

/// A device that flags what it is made to flag, whose bios take 10 ns: their outcome is known at
/// submission, or comes from `advance`.
struct Flagging {
    memory: MemDevice,
    caps: DeviceCaps,
    known: bool,
    flags: Attention,
}

impl Flagging {
    fn start(handle: &Handle, known: bool) -> AsyncDevice<Self> {
        let memory = MemDevice::new(8).with_latency(Nanos(if known { 0 } else { 10 }));
        let caps = DeviceCaps { raises_attention: true, ..memory.caps().clone() };
        AsyncDevice::new(handle, Self { memory, caps, known, flags: Attention::NONE })
    }
}

impl BlockDevice for Flagging {
    fn caps(&self) -> &DeviceCaps {
        &self.caps
    }

    fn submit(&mut self, now: Nanos, bio: Bio, token: Token) -> Submit {
        match self.memory.submit(now, bio, token) {
            Submit::Done(done) if self.known => Submit::Done(Done { at: now + Nanos(10), ..done }),
            other => other,
        }
    }

    fn next_event(&self) -> Option<Nanos> {
        self.memory.next_event()
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        self.memory.advance(now, done);
    }

    fn attention(&self) -> Attention {
        self.flags
    }
}

/// A write whose future is dropped wakes the waiter when it completes and not before, also when
/// the device came to flag something while the write was in flight.
#[test]
fn dropped_futures_still_draw_attention() {
    for known in [true, false] {
        for early in [true, false] {
            run(move |handle| async move {
                let device = Flagging::start(&handle, known);
                let (waiting, clock) = (device.clone(), handle.clone());
                let waiter =
                    handle.spawn("waiter", async move { (waiting.attention().await, clock.now()) });
                handle.sleep(Nanos(5)).await;
                device.with(|device| {
                    device.flags = if early { Attention::UPCALL } else { Attention::NONE }
                });
                drop(device.write(Lba(0), 1, tags(1)));
                handle.sleep(Nanos(4)).await;
                device.with(|device| device.flags = Attention::UPCALL);
                assert_eq!(waiter.await.ok(), Some((Attention::UPCALL, Nanos(15))));
            });
        }
    }
}

/// What was flagged and withdrawn before the completion is delivered wakes no task.
#[test]
fn flags_count_at_delivery() {
    for known in [true, false] {
        run(move |handle| async move {
            let device = Flagging::start(&handle, known);
            device.with(|device| device.flags = Attention::UPCALL);
            drop(device.write(Lba(0), 1, tags(1)));
            handle.sleep(Nanos(9)).await;
            device.with(|device| device.flags = Attention::NONE);
            let waited = timeout(&handle, Nanos(100), device.attention()).await;
            assert!(waited.is_err(), "{waited:?}");
        });
    }
}

/// An idle device wakes no task, whatever it flags; the next completion does, and so does each
/// further one until the flags are gone.
#[test]
fn attention_travels_with_completions() {
    for known in [true, false] {
        run(move |handle| async move {
            let device = Flagging::start(&handle, known);
            device.with(|device| device.flags = Attention::UPCALL);
            let waited = timeout(&handle, Nanos(1_000), device.attention()).await;
            assert!(waited.is_err(), "{waited:?}");
            for lba in 0..2 {
                device.write(Lba(lba), 1, tags(1)).await.unwrap();
                let delivered = handle.now();
                assert_eq!(device.attention().await, Attention::UPCALL);
                assert_eq!(handle.now(), delivered, "the delivery was kept");
            }
            device.write(Lba(2), 1, tags(1)).await.unwrap();
            device.with(|device| device.flags = Attention::NONE);
            let waited = timeout(&handle, Nanos(1_000), device.attention()).await;
            assert!(waited.is_err(), "what was kept is out of date: {waited:?}");
        });
    }
}

/// A host task that fetches whatever the device flags gets all records, and each once.
#[test]
fn upcalls_are_drained() {
    run(|handle| async move {
        let regions = [
            Region::new(0..16, RegionKind::Append),
            Region::new(16..64, RegionKind::DeviceOwned { of: 0 }),
        ];
        let caps = DeviceCaps {
            regions: regions.into(),
            raises_attention: true,
            ..DeviceCaps::conventional(64)
        };
        let fake = FakeDevice::new(caps).unwrap().with_latency(Nanos(10)).with_collector(2, 3);
        let device = AsyncDevice::new(&handle, fake);
        let (host, seen) = (device.clone(), Rc::new(RefCell::new(Vec::new())));
        let found = Rc::clone(&seen);
        drop(handle.spawn_daemon("upcalls", async move {
            loop {
                assert_eq!(host.attention().await, Attention::UPCALL);
                let fetch = || Bio::new(Op::FetchUpcall, Lba(0), 2);
                while let Ok(Reply::Upcall(id, moves)) = host.submit(fetch()).await {
                    found.borrow_mut().extend(moves);
                    let complete = Bio::new(Op::CompleteUpcall(id), Lba(0), 0);
                    host.submit(complete).await.unwrap();
                }
            }
        }));
        for lba in 0..16 {
            device.write(Lba(lba), 1, tags(1)).await.unwrap();
            device.flush().await.unwrap();
        }
        handle.sleep(Nanos(1_000)).await;
        let mut at: BTreeMap<Lba, Lba> = BTreeMap::new();
        for &(old, new) in seen.borrow().iter() {
            assert!(old.0 < 16 || at.contains_key(&old), "{old} held no data");
            at.remove(&old);
            at.insert(new, old);
        }
        assert!(seen.borrow().len() >= 16, "{:?}", seen.borrow());
        let left = device.with(|device| device.attention());
        assert_eq!(left, Attention::NONE);
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
