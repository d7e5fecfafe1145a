//! Timer events a second on one core: 64 tasks, each sleeping 25-75 us of virtual time over and
//! over. Printed beside a bare loop over the standard library's binary heap that draws and orders
//! the same events, measured in the same run.

use nandscape_rt::{Executor, Nanos, Stream};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;
use std::time::Instant;

const TASKS: u64 = 64;
const SLEEPS: u64 = 100_000;

fn span(rng: &mut Stream) -> Nanos {
    Nanos(25_000 + rng.below(50_000))
}

fn stream(task: u64) -> Stream {
    Stream::new(task, "timers")
}

/// The end of virtual time when tasks on the executor sleep.
fn executor() -> Nanos {
    let mut executor = Executor::on_virtual_clock();
    let handle = executor.handle();
    for task in 0..TASKS {
        let (clock, mut rng) = (handle.clone(), stream(task));
        handle.spawn("sleeper", async move {
            for _ in 0..SLEEPS {
                clock.sleep(span(&mut rng)).await;
            }
        });
    }
    executor.run().expect("every task ends");
    handle.now()
}

/// The same end, from a heap and nothing else.
fn bare_heap() -> Nanos {
    let mut rngs: Vec<(Stream, u64)> = (0..TASKS).map(|task| (stream(task), SLEEPS)).collect();
    let mut heap: BinaryHeap<_> =
        rngs.iter_mut().enumerate().map(|(task, (rng, _))| Reverse((span(rng), task))).collect();
    let mut now = Nanos::ZERO;
    while let Some(Reverse((at, task))) = heap.pop() {
        now = at;
        let (rng, left) = &mut rngs[task];
        *left -= 1;
        if *left > 0 {
            heap.push(Reverse((at + span(rng), task)));
        }
    }
    now
}

/// Events a second of the best of nine runs, and what the run returned.
#[allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn measure(run: fn() -> Nanos) -> (f64, Nanos) {
    let timed = || {
        let start = Instant::now();
        let end = black_box(run());
        ((TASKS * SLEEPS) as f64 / start.elapsed().as_secs_f64(), end)
    };
    (0..9).map(|_| timed()).max_by(|a, b| a.0.total_cmp(&b.0)).expect("nine runs")
}

fn main() {
    let (executor, end) = measure(executor);
    let (heap, expected) = measure(bare_heap);
    assert_eq!(end, expected, "both simulate the same sleeps");
    println!("executor:  {:.1} M timer events/s", executor / 1e6);
    println!("bare heap: {:.1} M timer events/s", heap / 1e6);
    println!("ratio:     {:.2}", executor / heap);
}
