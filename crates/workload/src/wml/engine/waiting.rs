//! What threads wait for besides files: events, each other.

use super::super::model::Number;
use nandscape_rt::sync::Notify;
use nandscape_rt::{Handle, Nanos, Stream};
use std::cell::Cell;

/// Events are made so many at a time, or as many as come in the shortest period.
const BATCH: u64 = 10;
const PERIOD_MIN: Nanos = Nanos::from_us(1);
/// Events of so many seconds are kept at most.
const KEPT_SECONDS: u64 = 5;

/// Events, which limits consume.
pub(super) struct Events {
    rate: Option<Number>,
    is_on: Cell<bool>,
    queue: Cell<u64>,
    /// No more are kept.
    most: Cell<u64>,
    came: Notify,
}

impl Events {
    pub(super) fn new(rt: &Handle, rate: Option<Number>) -> Self {
        let is_on = Cell::new(!matches!(rate, None | Some(Number::Fixed(0))));
        let came = Notify::new(rt, "an event");
        Self { rate, is_on, queue: Cell::new(0), most: Cell::new(1), came }
    }

    /// Whether limits limit anything.
    pub(super) fn is_on(&self) -> bool {
        self.is_on.get()
    }

    /// Makes events for ever, at the rate that was asked for; each batch may have another.
    pub(super) async fn make(&self, rt: &Handle, mut rng: Stream) {
        let Some(rate) = &self.rate else { return };
        while self.is_on() {
            let per_second = rate.draw(&mut rng);
            if per_second == 0 {
                self.is_on.set(false);
                break;
            }
            let second = Nanos::from_secs(1).0;
            let period = Nanos(BATCH * second / per_second).max(PERIOD_MIN);
            rt.sleep(period).await;
            // No less than a batch: what the period was rounded down by does not count.
            let came = u128::from(per_second) * u128::from(period.0) / u128::from(second);
            self.most.set(per_second.saturating_mul(KEPT_SECONDS));
            if self.queue.get() < self.most.get() {
                self.queue.set(self.queue.get().saturating_add(BATCH.max(came as u64)));
            }
            self.came.notify_waiters();
        }
        self.came.notify_waiters();
    }

    /// Takes so many, all at once: a waiter for few passes others that wait for many. More than are
    /// ever kept are taken in parts.
    pub(super) async fn take(&self, mut wanted: u64) {
        while self.is_on() && wanted > 0 {
            let part = wanted.min(self.most.get());
            if self.queue.get() < part {
                self.came.notified().await;
                continue;
            }
            self.queue.set(self.queue.get() - part);
            wanted -= part;
        }
    }
}

/// A `semblock`: two counts that change together (System V semaphores in Filebench).
pub(super) struct Semaphore {
    /// Posts that were not consumed yet.
    posted: Cell<u64>,
    /// Posts that may still come before a poster has to wait.
    room: Cell<u64>,
    changed: Notify,
}

impl Semaphore {
    pub(super) fn new(rt: &Handle, highwater: u64) -> Self {
        let changed = Notify::new(rt, "a post");
        Self { posted: Cell::new(0), room: Cell::new(highwater), changed }
    }

    /// Waits for so many posts, for which there is room first.
    pub(super) async fn block(&self, value: u64) {
        self.room.set(self.room.get().saturating_add(value));
        self.changed.notify_waiters();
        while self.posted.get() < value {
            self.changed.notified().await;
        }
        self.posted.set(self.posted.get() - value);
    }

    /// Posts so many; waits for room if `blocking`.
    pub(super) async fn post(&self, value: u64, blocking: bool) {
        while blocking && self.room.get() < value {
            self.changed.notified().await;
        }
        if blocking {
            self.room.set(self.room.get() - value);
        }
        self.posted.set(self.posted.get().saturating_add(value));
        self.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_rt::Executor;
    use std::rc::Rc;

    fn a_thousand_a_second(rt: &Handle) -> Rc<Events> {
        let events = Rc::new(Events::new(rt, Some(Number::Fixed(1000))));
        let (maker, clock) = (Rc::clone(&events), rt.clone());
        let making = async move { maker.make(&clock, Stream::new(1, "e")).await };
        drop(rt.spawn_daemon("events", making));
        events
    }

    /// Consumers get as many events as were made, and no more.
    #[test]
    fn events_come_at_their_rate() {
        let mut executor = Executor::on_virtual_clock();
        let rt = executor.handle();
        let events = a_thousand_a_second(&rt);
        let counted = executor.block_on(async move {
            for _ in 0..500 {
                events.take(2).await;
            }
            rt.now()
        });
        assert_eq!(counted.unwrap(), Nanos::from_secs(1));
    }

    /// Who wants few does not wait behind others who want many.
    #[test]
    fn events_are_taken_all_at_once() {
        let mut executor = Executor::on_virtual_clock();
        let rt = executor.handle();
        let events = a_thousand_a_second(&rt);
        let takes = |wanted| {
            let (events, clock) = (Rc::clone(&events), rt.clone());
            rt.spawn("takes", async move {
                events.take(wanted).await;
                clock.now()
            })
        };
        let (many, few) = (takes(25), takes(5));
        let times = executor.block_on(async move { (many.await.unwrap(), few.await.unwrap()) });
        assert_eq!(times.unwrap(), (Nanos::from_ms(30), Nanos::from_ms(10)));
    }

    /// Who wants more than are ever kept gets them, too.
    #[test]
    fn more_events_than_are_kept() {
        let mut executor = Executor::on_virtual_clock();
        let rt = executor.handle();
        let events = a_thousand_a_second(&rt);
        let taken = executor.block_on(async move {
            rt.sleep(Nanos::from_ms(10)).await;
            events.take(2_000 * KEPT_SECONDS).await;
            rt.now()
        });
        assert_eq!(taken.unwrap(), Nanos::from_secs(2 * KEPT_SECONDS));
    }

    /// Without a rate nothing is limited.
    #[test]
    fn no_rate_is_no_limit() {
        let executor = Executor::on_virtual_clock();
        for rate in [None, Some(Number::Fixed(0))] {
            assert!(!Events::new(&executor.handle(), rate).is_on());
        }
    }

    /// Posts beyond the mark wait until the one who is posted to comes round again.
    #[test]
    fn posts_wait_at_the_mark() {
        let mut executor = Executor::on_virtual_clock();
        let rt = executor.handle();
        let semaphore = Rc::new(Semaphore::new(&rt, 3));
        let (poster, count) = (Rc::clone(&semaphore), Rc::new(Cell::new(0)));
        let posted = Rc::clone(&count);
        drop(rt.spawn("posts", async move {
            for _ in 0..8 {
                poster.post(1, true).await;
                posted.set(posted.get() + 1);
            }
        }));
        executor
            .block_on(async move {
                rt.sleep(Nanos(1)).await;
                assert_eq!(count.get(), 3);
                semaphore.block(5).await;
                rt.sleep(Nanos(1)).await;
                assert_eq!((count.get(), semaphore.posted.get()), (8, 3));
            })
            .unwrap();
    }
}
