//! The executor's contract: which task runs when, how tasks end, and how time moves. The bodies
//! assert order and outcome, never times, and run on both clocks wherever time is not the subject.

use crate::common;

use common::{Log, on_both_clocks};
use nandscape_rt::combine::{Either, Elapsed, in_turn, join_all, join2, select2, timeout};
use nandscape_rt::sync::{Mutex, Notify, Semaphore, bounded, oneshot};
use nandscape_rt::{Aborted, Executor, Handle, Nanos};
use std::cell::{Cell, RefCell};
use std::future::{pending, poll_fn};
use std::rc::Rc;
use std::task::{Poll, Waker};

const US: Nanos = Nanos::from_us(1);

/// Tasks start in the order of spawning and take turns when they yield.
#[test]
fn ready_tasks_take_turns() {
    on_both_clocks(|handle| async move {
        let log = Log::new();
        let tasks = ["a", "b", "c"].map(|name| {
            let (handle2, log) = (handle.clone(), log.clone());
            handle.spawn(name, async move {
                for round in 0..2 {
                    log.push((name, round));
                    handle2.yield_now().await;
                }
            })
        });
        for task in tasks {
            task.await.unwrap();
        }
        log.expect([("a", 0), ("b", 0), ("c", 0), ("a", 1), ("b", 1), ("c", 1)]);
    });
}

/// Timers fire in the order of their instants, not of their registration.
#[test]
fn sleeps_end_in_order_of_time() {
    on_both_clocks(|handle| async move {
        let log = Log::new();
        let tasks = [30, 10, 20].map(|us| {
            let (sleep, log) = (handle.sleep(US * us), log.clone());
            handle.spawn("sleeper", async move {
                sleep.await;
                log.push(us);
            })
        });
        for task in tasks {
            task.await.unwrap();
        }
        log.expect([10, 20, 30]);
    });
}

/// Timers of one instant fire in the order of registration.
#[test]
fn equal_instants_fire_in_order_of_registration() {
    on_both_clocks(|handle| async move {
        let log = Log::new();
        let deadline = handle.now() + US * 20;
        let tasks = [3, 1, 2].map(|name| {
            let (sleep, log) = (handle.sleep_until(deadline), log.clone());
            handle.spawn("sleeper", async move {
                sleep.await;
                log.push(name);
            })
        });
        for task in tasks {
            task.await.unwrap();
        }
        log.expect([3, 1, 2]);
    });
}

/// A wake of a task that is queued already does not queue it twice.
#[test]
fn wakes_of_a_queued_task_are_one() {
    on_both_clocks(|handle| async move {
        let polls = Rc::new(Cell::new(0));
        let (first, second) = (Notify::new(&handle, "first"), Notify::new(&handle, "second"));
        let (counter, one, two) = (Rc::clone(&polls), first.notified(), second.notified());
        let waiter = handle.spawn("waiter", async move {
            let both = join2(one, two);
            let mut both = std::pin::pin!(both);
            poll_fn(|cx| {
                counter.set(counter.get() + 1);
                both.as_mut().poll(cx)
            })
            .await;
        });
        handle.yield_now().await;
        first.notify_one();
        second.notify_one();
        waiter.await.unwrap();
        assert_eq!(polls.get(), 2);
    });
}

/// A task's output reaches the task that joins it, before or after its end.
#[test]
fn join_gives_the_output() {
    on_both_clocks(|handle| async move {
        let early = handle.spawn("early", async { 1 });
        handle.yield_now().await;
        assert!(early.is_finished());
        let clock = handle.clone();
        let late = handle.spawn("late", async move {
            clock.sleep(US).await;
            2
        });
        assert!(!late.is_finished());
        assert_eq!((early.await, late.await), (Ok(1), Ok(2)));
    });
}

/// Sets its flag when dropped.
struct Flag(Rc<Cell<bool>>);

impl Drop for Flag {
    fn drop(&mut self) {
        self.0.set(true);
    }
}

fn flag() -> (Flag, Rc<Cell<bool>>) {
    let dropped = Rc::new(Cell::new(false));
    (Flag(Rc::clone(&dropped)), dropped)
}

/// An aborted task is dropped at once, whether it waits or has never run, and its joiner learns.
#[test]
fn abort_drops_the_task() {
    on_both_clocks(|handle| async move {
        let ((held, dropped), (held_too, dropped_too)) = (flag(), flag());
        let waiting = handle.spawn("waiting", async move {
            let _held = held;
            pending::<()>().await;
        });
        handle.yield_now().await;
        let unborn = handle.spawn("unborn", async move { drop(held_too) });
        waiting.abort();
        unborn.abort();
        assert!(dropped.get() && dropped_too.get());
        assert_eq!((waiting.await, unborn.await), (Err(Aborted), Err(Aborted)));
    });
}

/// A task that aborts itself ends at its next waiting point; one that has ended is left in peace.
#[test]
fn abort_of_oneself_and_of_the_dead() {
    on_both_clocks(|handle| async move {
        let own = Rc::new(RefCell::new(None));
        let shared = Rc::clone(&own);
        let task = handle.spawn("suicidal", async move {
            if let Some(own) = shared.take() {
                let own: nandscape_rt::JoinHandle<()> = own;
                own.abort();
            }
            pending::<()>().await;
        });
        own.replace(Some(task));
        let ended = handle.spawn("ended", async { 5 });
        handle.yield_now().await;
        ended.abort();
        assert_eq!(ended.await, Ok(5));
        assert!(own.take().is_none(), "the task took its own handle");
    });
}

/// A task whose handle is dropped goes on.
#[test]
fn dropped_handles_detach() {
    on_both_clocks(|handle| async move {
        let (sender, receiver) = oneshot(&handle, "news");
        drop(handle.spawn("detached", async move { sender.send(3) }));
        assert_eq!(receiver.await, Ok(3));
    });
}

/// A waker that leaves through the standard interface wakes its task, as `std::future` promises.
#[test]
fn standard_wakers_work() {
    on_both_clocks(|handle| async move {
        let parked: Rc<RefCell<Option<Waker>>> = Rc::default();
        let shared = Rc::clone(&parked);
        let mut polled = false;
        let task = handle.spawn(
            "parked",
            poll_fn(move |cx| {
                if std::mem::replace(&mut polled, true) {
                    return Poll::Ready(());
                }
                shared.replace(Some(cx.waker().clone()));
                Poll::Pending
            }),
        );
        handle.yield_now().await;
        parked.take().expect("the task was polled").wake();
        task.await.unwrap();
    });
}

/// Of two futures that are both done the first wins, and the loser is dropped.
#[test]
fn select_prefers_the_first() {
    on_both_clocks(|handle| async move {
        assert_eq!(select2(async { 1 }, async { 2 }).await, Either::First(1));
        let (held, dropped) = flag();
        let slow = async move {
            let _held = held;
            pending::<()>().await;
        };
        assert_eq!(select2(slow, handle.sleep(US)).await, Either::Second(()));
        assert!(dropped.get());
    });
}

/// Joined futures wait side by side, not one after the other, and their outputs come in their own
/// order.
#[test]
fn joins_keep_the_order_of_their_futures() {
    on_both_clocks(|handle| async move {
        let events = ["a", "b", "c"].map(|name| Notify::new(&handle, name));
        let waiters = [0, 1, 2].map(|index| {
            let notified = events[index].notified();
            async move {
                notified.await;
                index
            }
        });
        let notifier = async {
            for index in [2, 0, 1] {
                handle.yield_now().await;
                events[index].notify_one();
            }
        };
        assert_eq!(join2(join_all(waiters), notifier).await, (vec![0, 1, 2], ()));
    });
}

/// What is under way goes on before its turn, and each is polled a few times only.
#[test]
fn in_turn_waits_for_what_is_under_way() {
    on_both_clocks(|handle| async move {
        let polls = Rc::new(Cell::new(0));
        let waits = (0..100_u64).map(|index| {
            let polls = Rc::clone(&polls);
            let task = handle.spawn("wait", {
                let handle = handle.clone();
                async move {
                    handle.sleep(Nanos(1_000 * (100 - index))).await;
                    index
                }
            });
            let mut task = Box::pin(task);
            poll_fn(move |cx| {
                polls.set(polls.get() + 1);
                task.as_mut().poll(cx)
            })
        });
        let outputs = in_turn(waits.collect::<Vec<_>>()).await;
        assert_eq!(outputs, (0..100).map(Ok).collect::<Vec<_>>());
        assert!(polls.get() <= 200, "{} polls", polls.get());
    });
}

/// A limit ends what lasts too long and leaves the rest alone.
#[test]
fn timeouts_limit() {
    on_both_clocks(|handle| async move {
        assert!(timeout(&handle, US, pending::<()>()).await.is_err());
        assert_eq!(timeout(&handle, Nanos::MAX, async { 4 }).await, Ok(4));
    });
}

/// Work that cannot be broken ends although the task that awaited it has gone, wherever it waits; work that has
/// not begun never does, and the executor takes with it what has not ended.
#[test]
fn unbroken_work_ends() {
    on_both_clocks(|handle| async move {
        let (mutex, log) = (Mutex::new(&handle, "counter", 0), Log::new());
        let begin = |steps: u32| {
            let (inner, mutex, log) = (handle.clone(), mutex.clone(), log.clone());
            handle.uncancellable("work", async move {
                for step in 0..steps {
                    let mut counter = mutex.lock().await;
                    inner.sleep(US).await;
                    *counter += 1;
                    log.push(step);
                }
                steps
            })
        };
        assert_eq!(begin(2).await, 2);
        drop(begin(7));
        assert_eq!(
            timeout(&handle, Nanos(1), join2(begin(2), begin(3))).await,
            Err(Elapsed(Nanos(1)))
        );
        while *mutex.lock().await < 7 {
            handle.sleep(US).await;
        }
        log.expect([0, 1, 0, 0, 1, 1, 2]);
    });
    let (held, dropped) = flag();
    let mut executor = Executor::on_virtual_clock();
    let handle = executor.handle();
    let inner = handle.clone();
    let work = handle.uncancellable("work", async move {
        let _held = held;
        inner.sleep(Nanos::from_secs(1)).await;
    });
    let ended = executor.block_on(async move { timeout(&handle, US, work).await });
    assert!(ended.is_ok_and(|ended| ended.is_err()) && !dropped.get());
    drop(executor);
    assert!(dropped.get());
}

/// Virtual time is exactly the sum of what was slept, and a timer that no task waits for any more does not
/// move it.
#[test]
fn virtual_time_is_exact() {
    let mut executor = Executor::on_virtual_clock();
    let handle = executor.handle();
    let clock = handle.clone();
    executor
        .block_on(async move {
            clock.sleep(Nanos(1)).await;
            clock.sleep_until(Nanos(5)).await;
            clock.sleep_until(Nanos(2)).await;
            assert_eq!(clock.now(), Nanos(5));
            timeout(&clock, US * 100, clock.sleep(Nanos(10))).await.unwrap();
        })
        .unwrap();
    executor.run().unwrap();
    assert_eq!(handle.now(), Nanos(15));
}

/// The clock may be moved by hand only where no timer is passed.
#[test]
fn advancing_by_hand_passes_no_task_over() {
    let mut executor = Executor::on_virtual_clock();
    let handle = executor.handle();
    let clock = handle.clone();
    let main = async move {
        assert!(clock.try_advance_to(Nanos(50)));
        assert!(!clock.try_advance_to(Nanos(49)), "time does not go back");
        let sleep = clock.sleep_until(Nanos(100));
        let sleeper = clock.spawn("sleeper", sleep);
        assert!(!clock.try_advance_to(Nanos(60)), "a task is ready");
        clock.yield_now().await;
        assert!(clock.try_advance_to(Nanos(99)));
        assert!(!clock.try_advance_to(Nanos(100)), "a timer is due");
        assert_eq!(clock.now(), Nanos(99));
        sleeper.abort();
        assert!(clock.try_advance_to(Nanos(200)), "an aborted sleeper leaves no timer");
    };
    executor.block_on(main).unwrap();
    let (mut executor, _injector) = Executor::on_real_clock();
    let clock = executor.handle();
    executor.block_on(async move { assert!(!clock.try_advance_to(Nanos::MAX)) }).unwrap();
}

async fn wait_for_everything(handle: Handle) {
    let mutex = Mutex::new(&handle, "journal", ());
    let _guard = mutex.lock().await;
    let (sender, mut receiver) = bounded::<()>(&handle, "commits", 1);
    let semaphore = Semaphore::new(&handle, "ring entries", 1);
    let stuck = handle.spawn("commit", async move { drop(mutex.lock().await) });
    handle.spawn("reader", async move { receiver.recv().await });
    handle.spawn("writer", async move { drop(semaphore.acquire(2).await) });
    handle.spawn("outsider", pending::<()>());
    let (_answer, question) = oneshot::<()>(&handle, "reply");
    let notify = Notify::new(&handle, "flush done");
    handle.spawn("chooser", async move {
        select2(notify.notified(), question).await;
        drop(sender);
    });
    stuck.await.unwrap();
}

/// A run that can never end says who waits for what.
#[test]
fn deadlocks_are_reported() {
    let mut executor = Executor::on_virtual_clock();
    let handle = executor.handle();
    handle.spawn_daemon("daemon", pending::<()>());
    let deadlock = executor.block_on(wait_for_everything(handle)).unwrap_err();
    let expected = "deadlock at 0ns: task `daemon` waits for something unnamed; \
        task `main` waits for task `commit`; \
        task `commit` waits for mutex `journal`; \
        task `reader` waits for channel `commits`; \
        task `writer` waits for semaphore `ring entries`; \
        task `outsider` waits for something unnamed; \
        task `chooser` waits for notification `flush done` or answer `reply`";
    assert_eq!(deadlock.to_string(), expected);
}

/// `run` ends with the last task that is not a daemon, and what is left goes on in the next run.
#[test]
fn daemons_keep_no_executor_running() {
    let mut executor = Executor::on_virtual_clock();
    let handle = executor.handle();
    let log = Log::new();
    let (clock, ticks) = (handle.clone(), log.clone());
    handle.spawn_daemon("ticker", async move {
        loop {
            clock.sleep(Nanos(10)).await;
            ticks.push(clock.now().0);
        }
    });
    handle.spawn("work", handle.sleep(Nanos(25)));
    executor.run().unwrap();
    log.expect([10, 20]);
    executor.run().unwrap();
    log.expect([]);
    executor.block_on(handle.sleep(Nanos(10))).unwrap();
    log.expect([30]);
}

/// A caller may keep the time: nothing happens before its instant, and everything by then,
/// tasks that tasks start included.
#[test]
fn an_executor_is_led_from_outside() {
    let mut executor = Executor::on_virtual_clock();
    let handle = executor.handle();
    let log = Log::new();
    assert_eq!(executor.next_event(), None);
    let (clock, events) = (handle.clone(), log.clone());
    handle.spawn_daemon("ticker", async move {
        loop {
            clock.sleep(Nanos(10)).await;
            let (inner, events) = (clock.clone(), events.clone());
            clock.spawn("child", async move { events.push(inner.now().0) });
        }
    });
    assert_eq!(executor.next_event(), Some(Nanos(0)), "a task is ready");
    executor.run_until(Nanos(9));
    log.expect([]);
    assert_eq!((executor.next_event(), handle.now()), (Some(Nanos(10)), Nanos(9)));
    executor.run_until(Nanos(30));
    log.expect([10, 20, 30]);
    executor.run_until(Nanos(5));
    assert_eq!((executor.next_event(), handle.now()), (Some(Nanos(40)), Nanos(30)));
}

/// An executor takes its tasks with it, also those that hold handles to it.
#[test]
fn dropping_the_executor_drops_its_tasks() {
    let (held, dropped) = flag();
    let executor = Executor::on_virtual_clock();
    let handle = executor.handle();
    let (inner, semaphore) = (handle.clone(), Semaphore::new(&handle, "permits", 1));
    let task = handle.spawn("holder", async move {
        let _held = (held, semaphore.acquire(1).await);
        inner.sleep(Nanos::MAX).await;
    });
    drop(executor);
    assert!(dropped.get() && task.is_finished());
}
