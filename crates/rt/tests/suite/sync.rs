//! Locks, semaphores, notifications and channels: order, fairness, and that nothing granted is lost
//! when the future that waited for it is dropped.

use crate::common;

use common::{Log, on_both_clocks};
use nandscape_rt::combine::{Either, select2};
use nandscape_rt::sync::{
    Closed, Mutex, Notify, RwLock, Semaphore, SendError, bounded, oneshot, unbounded,
};
use nandscape_rt::{Executor, Handle, JoinHandle, Nanos, Stream};
use proptest::prelude::*;
use std::future::pending;
use std::rc::Rc;

/// Permits go out in the order in which they were asked for, also past those who want few.
#[test]
fn semaphores_do_not_let_the_small_overtake() {
    on_both_clocks(|handle| async move {
        let (log, semaphore) = (Log::new(), Semaphore::new(&handle, "permits", 3));
        let held = semaphore.acquire(2).await;
        let tasks = [3, 1, 2].map(|permits| {
            let (log, semaphore) = (log.clone(), semaphore.clone());
            handle.spawn("taker", async move {
                let permit = semaphore.acquire(permits).await;
                log.push(permit.permits());
            })
        });
        handle.yield_now().await;
        assert!(semaphore.try_acquire(1).is_none(), "one permit is free, but others wait");
        log.expect([]);
        drop(held);
        for task in tasks {
            task.await.unwrap();
        }
        log.expect([3, 1, 2]);
        assert_eq!(semaphore.available(), 3);
    });
}

/// Forgotten permits are gone, added ones are granted.
#[test]
fn semaphores_shrink_and_grow() {
    on_both_clocks(|handle| async move {
        let semaphore = Semaphore::new(&handle, "permits", 1);
        semaphore.acquire(1).await.forget();
        let waiter = semaphore.clone();
        let task = handle.spawn("taker", async move { drop(waiter.acquire(2).await) });
        handle.yield_now().await;
        semaphore.add(2);
        task.await.unwrap();
        assert_eq!(semaphore.available(), 2);
    });
}

/// A waiter that is dropped after it was granted its permits, and before it could take them, gives
/// them to the next.
#[test]
fn granted_permits_are_not_lost() {
    on_both_clocks(|handle| async move {
        let semaphore = Semaphore::new(&handle, "permits", 1);
        let held = semaphore.acquire(1).await;
        let [doomed, next] = [(); 2].map(|()| {
            let semaphore = semaphore.clone();
            handle.spawn("taker", async move { semaphore.acquire(1).await.permits() })
        });
        handle.yield_now().await;
        drop(held);
        doomed.abort();
        assert_eq!(next.await, Ok(1));
        assert_eq!(semaphore.available(), 1);
    });
}

/// A waiter that leaves the head of the line lets those through for whom there is enough.
#[test]
fn leaving_the_line_lets_others_through() {
    on_both_clocks(|handle| async move {
        let semaphore = Semaphore::new(&handle, "permits", 2);
        let _held = semaphore.acquire(1).await;
        let [big, small] = [2, 1].map(|permits| {
            let semaphore = semaphore.clone();
            handle.spawn("taker", async move { semaphore.acquire(permits).await.permits() })
        });
        handle.yield_now().await;
        big.abort();
        assert_eq!(small.await, Ok(1));
    });
}

/// What a random task does to a semaphore of eight.
#[derive(Clone, Copy, Debug)]
struct Taker {
    permits: u32,
    hold_ns: u64,
    patience_ns: u64,
}

fn taker() -> impl Strategy<Value = Taker> {
    (1..=8u32, 0..50u64, 0..200u64).prop_map(|(permits, hold_ns, patience_ns)| Taker {
        permits,
        hold_ns,
        patience_ns,
    })
}

async fn take(
    handle: Handle,
    semaphore: Semaphore,
    log: Log<(usize, Nanos)>,
    index: usize,
    taker: Taker,
) {
    let patience = handle.sleep(Nanos(taker.patience_ns));
    if let Either::First(permit) = select2(semaphore.acquire(taker.permits), patience).await {
        log.push((index, handle.now()));
        handle.sleep(Nanos(taker.hold_ns)).await;
        drop(permit);
    }
}

proptest! {
    /// However many give up waiting, at whatever time, the rest are served in order and every permit
    /// comes home.
    #[test]
    fn impatience_loses_no_permit(takers in proptest::collection::vec(taker(), 1..40)) {
        let mut executor = Executor::on_virtual_clock();
        let handle = executor.handle();
        let (log, semaphore) = (Log::new(), Semaphore::new(&handle, "permits", 8));
        for (index, &taker) in takers.iter().enumerate() {
            let task = take(handle.clone(), semaphore.clone(), log.clone(), index, taker);
            handle.spawn("taker", task);
        }
        executor.run().unwrap();
        prop_assert_eq!(semaphore.available(), 8);
        let mut served = log.take();
        served.sort_unstable();
        prop_assert!(served.is_sorted_by_key(|&(_, at)| at), "overtaken: {served:?}");
    }
}

/// Increments that read, wait, and write back lose nothing under a mutex.
#[test]
fn mutexes_exclude() {
    on_both_clocks(|handle| async move {
        let mutex = Mutex::new(&handle, "count", 0);
        let tasks: Vec<_> = (0..5)
            .map(|_| {
                let (clock, mutex) = (handle.clone(), mutex.clone());
                handle.spawn("incrementer", async move {
                    let mut count = mutex.lock().await;
                    let before = *count;
                    clock.yield_now().await;
                    *count = before + 1;
                })
            })
            .collect();
        handle.yield_now().await;
        assert!(mutex.try_lock().is_none());
        join(tasks).await;
        assert_eq!(mutex.try_lock().map(|count| *count), Some(5));
    });
}

async fn join<T>(tasks: Vec<JoinHandle<T>>) {
    for task in tasks {
        assert!(task.await.is_ok(), "no task aborts these");
    }
}

/// A guard dropped with its aborted task unlocks.
#[test]
fn mutexes_survive_abort() {
    on_both_clocks(|handle| async move {
        let mutex = Mutex::new(&handle, "value", 1);
        let inner = mutex.clone();
        let holder = handle.spawn("holder", async move {
            let mut guard = inner.lock().await;
            *guard = 2;
            pending::<()>().await;
        });
        handle.yield_now().await;
        holder.abort();
        assert_eq!(*mutex.lock().await, 2);
    });
}

/// Readers share, a writer is alone, and readers who come after a waiting writer wait for it.
#[test]
fn rwlocks_are_fair_to_writers() {
    on_both_clocks(|handle| async move {
        let (log, lock) = (Log::new(), RwLock::new(&handle, "value", 0));
        let spawn = |name: &'static str, write: bool| {
            let (handle2, log, lock) = (handle.clone(), log.clone(), lock.clone());
            handle.spawn(name, async move {
                let value = if write {
                    let mut guard = lock.write().await;
                    handle2.yield_now().await;
                    *guard += 1;
                    *guard
                } else {
                    let guard = lock.read().await;
                    handle2.yield_now().await;
                    *guard
                };
                log.push((name, value));
            })
        };
        let names = [("r1", false), ("r2", false), ("w1", true), ("r3", false), ("w2", true)];
        join(names.map(|(name, write)| spawn(name, write)).into()).await;
        log.expect([("r1", 0), ("r2", 0), ("w1", 1), ("r3", 1), ("w2", 2)]);
    });
}

/// Who does not wait for a lock gets it when no task has it or waits for it.
#[test]
fn rwlocks_are_tried() {
    on_both_clocks(|handle| async move {
        let lock = RwLock::new(&handle, "value", 0);
        let reader = lock.read().await;
        assert!(lock.try_write().is_none());
        let other = lock.clone();
        let waits = handle.spawn("writer", async move { drop(other.write().await) });
        handle.yield_now().await;
        drop(reader);
        assert!(lock.try_write().is_none(), "another task came before");
        assert_eq!(waits.await, Ok(()));
        *lock.try_write().expect("no task has it") += 1;
        assert_eq!(*lock.read().await, 1);
    });
}

/// One notification is kept for who comes late; two are not.
#[test]
fn one_notification_is_kept() {
    on_both_clocks(|handle| async move {
        let notify = Notify::new(&handle, "event");
        notify.notify_one();
        notify.notify_one();
        notify.notified().await;
        let late = select2(notify.notified(), handle.yield_now()).await;
        assert_eq!(late, Either::Second(()));
    });
}

fn waiter(handle: &Handle, notify: &Notify, log: &Log<u32>, name: u32) -> JoinHandle<()> {
    let (notified, log) = (notify.notified(), log.clone());
    handle.spawn("waiter", async move {
        notified.await;
        log.push(name);
    })
}

/// Waiters are notified in the order in which they came, one at a time or all at once; all at once
/// leaves nothing for those who come later.
#[test]
fn notifications_keep_order() {
    on_both_clocks(|handle| async move {
        let (log, notify) = (Log::new(), Notify::new(&handle, "event"));
        let mut tasks: Vec<_> = (0..4).map(|n| waiter(&handle, &notify, &log, n)).collect();
        handle.yield_now().await;
        notify.notify_one();
        handle.yield_now().await;
        log.expect([0]);
        notify.notify_waiters();
        tasks.push(waiter(&handle, &notify, &log, 4));
        handle.yield_now().await;
        log.expect([1, 2, 3]);
        notify.notify_one();
        join(tasks).await;
        log.expect([4]);
    });
}

/// Only those go on who wait for no more than was reached; the others keep their order, and one meant
/// for one goes to the first of them.
#[test]
fn notifications_reach_levels() {
    on_both_clocks(|handle| async move {
        let (log, notify) = (Log::new(), Notify::new(&handle, "event"));
        let tasks: Vec<_> = [5, 0, 7, 6, 7, 9]
            .map(|level| {
                let (log, notify) = (log.clone(), notify.clone());
                handle.spawn("waiter", async move {
                    notify.notified_at(level).await;
                    log.push(level);
                })
            })
            .into();
        handle.yield_now().await;
        notify.notify_up_to(4);
        handle.yield_now().await;
        log.expect([0]);
        notify.notify_up_to(6);
        handle.yield_now().await;
        log.expect([5, 6]);
        notify.notify_one();
        handle.yield_now().await;
        log.expect([7]);
        notify.notify_waiters();
        join(tasks).await;
        log.expect([7, 9]);
    });
}

/// A notification for one goes on to the next if its receiver is dropped first; also when a
/// notification for all came in between, and into the store when no task waits.
#[test]
fn notifications_are_not_lost() {
    on_both_clocks(|handle| async move {
        let (log, notify) = (Log::new(), Notify::new(&handle, "event"));
        let doomed = waiter(&handle, &notify, &log, 0);
        let next = waiter(&handle, &notify, &log, 1);
        handle.yield_now().await;
        notify.notify_one();
        doomed.abort();
        next.await.unwrap();
        log.expect([1]);

        let doomed = waiter(&handle, &notify, &log, 2);
        handle.yield_now().await;
        notify.notify_one();
        notify.notify_waiters();
        doomed.abort();
        notify.notified().await;
    });
}

/// A notification for all dies with its receivers.
#[test]
fn notifications_for_all_are_not_kept() {
    on_both_clocks(|handle| async move {
        let (log, notify) = (Log::new(), Notify::new(&handle, "event"));
        let doomed = waiter(&handle, &notify, &log, 0);
        handle.yield_now().await;
        notify.notify_waiters();
        doomed.abort();
        let late = select2(notify.notified(), handle.yield_now()).await;
        assert_eq!(late, Either::Second(()));
    });
}

/// A full channel holds senders back, in order, and messages arrive in the order they were sent.
#[test]
fn bounded_channels_hold_senders_back() {
    on_both_clocks(|handle| async move {
        let (sender, mut receiver) = bounded(&handle, "numbers", 2);
        for value in 0..5 {
            let sender = sender.clone();
            handle.spawn("sender", async move { sender.send(value).await });
        }
        handle.yield_now().await;
        assert_eq!(receiver.backlog(), 2);
        assert_eq!(sender.try_send(9), Err(SendError(9)), "no overtaking");
        drop(sender);
        for value in 0..5 {
            assert_eq!(receiver.recv().await, Some(value));
        }
        assert_eq!(receiver.recv().await, None);
    });
}

/// A receiver waits for the first message, and learns that the last sender is gone.
#[test]
fn receivers_wait() {
    on_both_clocks(|handle| async move {
        let (sender, mut receiver) = unbounded(&handle, "numbers");
        let reader = handle.spawn("reader", async move {
            let mut sum = 0;
            while let Some(value) = receiver.recv().await {
                sum += value;
            }
            sum
        });
        for value in [1, 2, 3] {
            handle.yield_now().await;
            sender.clone().send(value).unwrap();
        }
        handle.yield_now().await;
        drop(sender);
        assert_eq!(reader.await, Ok(6));
    });
}

/// Every message that meets a closed channel comes back, also those of senders that were waiting.
#[test]
fn closed_channels_return_messages() {
    on_both_clocks(|handle| async move {
        let (sender, receiver) = bounded(&handle, "numbers", 1);
        sender.try_send(1).unwrap();
        let waiting = [2, 3].map(|value| {
            let sender = sender.clone();
            handle.spawn("sender", async move { sender.send(value).await })
        });
        handle.yield_now().await;
        drop(receiver);
        for (task, value) in waiting.into_iter().zip([2, 3]) {
            assert_eq!(task.await, Ok(Err(SendError(value))));
        }
        assert_eq!(sender.try_send(4), Err(SendError(4)));
        let (sender, receiver) = unbounded(&handle, "numbers");
        drop(receiver);
        assert_eq!(sender.send(5), Err(SendError(5)));
    });
}

/// A dropped `recv` takes no message with it, and a dropped `send` that was granted room gives it on.
#[test]
fn dropped_channel_futures_lose_nothing() {
    on_both_clocks(|handle| async move {
        let (sender, mut receiver) = bounded(&handle, "numbers", 1);
        assert_eq!(select2(receiver.recv(), handle.yield_now()).await, Either::Second(()));
        sender.try_send(1).unwrap();
        let [doomed, next] = [2, 3].map(|value| {
            let sender = sender.clone();
            handle.spawn("sender", async move { sender.send(value).await })
        });
        handle.yield_now().await;
        assert_eq!(receiver.recv().await, Some(1));
        doomed.abort();
        next.await.unwrap().unwrap();
        assert_eq!(receiver.try_recv(), Some(3));
    });
}

#[test]
fn oneshots_carry_one_message_or_tell() {
    on_both_clocks(|handle| async move {
        let (sender, receiver) = oneshot(&handle, "answer");
        let asker = handle.spawn("asker", receiver);
        handle.yield_now().await;
        sender.send(1).unwrap();
        assert_eq!(asker.await, Ok(Ok(1)));
        let (sender, receiver) = oneshot::<u32>(&handle, "answer");
        drop(sender);
        assert_eq!(receiver.await, Err(Closed));
        let (sender, receiver) = oneshot(&handle, "answer");
        drop(receiver);
        assert_eq!(sender.send(2), Err(2));
    });
}

/// Random work on all primitives at once happens in the same order every time.
#[test]
fn runs_repeat_themselves() {
    let trace = |seed| {
        let mut executor = Executor::on_virtual_clock();
        let handle = executor.handle();
        let events = Rc::new(std::cell::RefCell::new(Vec::new()));
        let semaphore = Semaphore::new(&handle, "permits", 3);
        let mutex = Mutex::new(&handle, "lock", ());
        for task in 0..20u64 {
            let (clock, events) = (handle.clone(), Rc::clone(&events));
            let (semaphore, mutex) = (semaphore.clone(), mutex.clone());
            let mut rng = Stream::new(seed + task, "chaos");
            handle.spawn("chaos", async move {
                for _ in 0..50 {
                    clock.sleep(Nanos(rng.below(4))).await;
                    let _permit = semaphore.acquire(1 + rng.below(3) as u32).await;
                    let _guard = mutex.lock().await;
                    clock.sleep(Nanos(rng.below(3))).await;
                    events.borrow_mut().push((clock.now(), task));
                }
            });
        }
        executor.run().unwrap();
        events.take()
    };
    assert_eq!(trace(1), trace(1));
    assert_ne!(trace(1), trace(2));
}
