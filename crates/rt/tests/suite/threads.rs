//! The real clock and other threads: work arrives, in order, and wakes an idle executor. Nothing
//! here asserts a time.
#![allow(clippy::disallowed_methods, reason = "threads are the subject of these tests")]

use nandscape_rt::combine::{Either, select2};
use nandscape_rt::sync::unbounded;
use nandscape_rt::{Executor, Nanos, Stopped};
use std::future::poll_fn;
use std::sync::mpsc;
use std::task::{Poll, Waker};
use std::thread;

/// Calls injected by one thread run on the executor's thread, in the order they were sent.
#[test]
fn injected_calls_run_in_order() {
    let (mut executor, injector) = Executor::on_real_clock();
    let handle = executor.handle();
    let (sender, mut receiver) = unbounded(&handle, "numbers");
    let thread = thread::spawn(move || {
        for value in 0..100 {
            injector.call(move |handle| drop(handle.spawn("echo", async move { value }))).unwrap();
        }
        injector
    });
    handle.spawn("main work", async move { sender.send(1) });
    assert_eq!(executor.block_on(async move { receiver.recv().await }), Ok(Some(1)));
    let injector = thread.join().unwrap();
    let (seen, order) = mpsc::channel();
    for value in 0..100 {
        let seen = seen.clone();
        injector.call(move |_| seen.send(value).unwrap()).unwrap();
    }
    executor.block_on(async {}).unwrap();
    executor.run().unwrap();
    drop(seen);
    assert_eq!(order.iter().collect::<Vec<_>>(), (0..100).collect::<Vec<_>>());
}

/// An idle executor serves requests of several threads and answers each of them; every thread's
/// requests are served in its order, and the end of the last thread ends the service.
#[test]
fn threads_are_served() {
    let (mut executor, injector) = Executor::on_real_clock();
    let handle = executor.handle();
    let (inlet, mut outlet) = injector.channel::<(u32, mpsc::Sender<u32>)>("requests");
    let clients: Vec<_> = (0..4)
        .map(|client| {
            let inlet = inlet.clone();
            thread::spawn(move || {
                (0..50).all(|round| {
                    let (reply, answer) = mpsc::channel();
                    inlet.send((client * 100 + round, reply)).unwrap();
                    answer.recv() == Ok(client * 100 + round + 1)
                })
            })
        })
        .collect();
    drop(inlet);
    let served = executor.block_on(async move {
        let mut served = [0; 4];
        while let Some((request, reply)) = outlet.recv(&handle).await {
            let client = (request / 100) as usize;
            assert_eq!(request % 100, served[client]);
            served[client] += 1;
            handle.sleep(Nanos(1)).await;
            reply.send(request + 1).unwrap();
        }
        served
    });
    assert_eq!(served, Ok([50; 4]));
    assert!(clients.into_iter().all(|client| client.join().unwrap()));
}

/// A standard waker that another thread holds wakes the executor, though no timer would.
#[test]
fn a_waker_works_from_another_thread() {
    let (mut executor, _injector) = Executor::on_real_clock();
    let (give, take) = mpsc::channel::<Waker>();
    let thread = thread::spawn(move || take.recv().unwrap().wake());
    let mut polled = false;
    executor
        .block_on(poll_fn(move |cx| {
            if std::mem::replace(&mut polled, true) {
                return Poll::Ready(());
            }
            give.send(cx.waker().clone()).unwrap();
            Poll::Pending
        }))
        .unwrap();
    thread.join().unwrap();
}

/// Timers go on while other tasks never stop being ready.
#[test]
fn busy_tasks_do_not_stop_the_clock() {
    let (mut executor, _injector) = Executor::on_real_clock();
    let handle = executor.handle();
    let outcome = executor.block_on(async move {
        let spin = async {
            loop {
                handle.yield_now().await;
            }
        };
        select2(spin, handle.sleep(Nanos::from_us(50))).await
    });
    assert_eq!(outcome, Ok(Either::<(), ()>::Second(())));
}

/// What is sent to an executor that is gone has no effect, and the sender gets an error.
#[test]
fn a_stopped_executor_refuses() {
    let (executor, injector) = Executor::on_real_clock();
    let (inlet, outlet) = injector.channel::<u32>("requests");
    drop(executor);
    assert_eq!(injector.call(|_| ()), Err(Stopped));
    assert_eq!(inlet.send(1), Ok(()), "the outlet outlives its executor");
    drop(outlet);
    assert_eq!(inlet.send(2), Err(Stopped));
}
