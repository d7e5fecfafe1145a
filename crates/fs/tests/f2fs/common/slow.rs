//! A device in memory that answers some bios late, and is lent to one executor after the other.

use nandscape_block::zone::{ZoneAction, ZoneId};
use nandscape_block::{
    AsyncDevice, Attention, Bio, BlockDevice, Completion, DeviceCaps, Done, FakeDevice, Op, Reply,
    Submit, Token,
};
use nandscape_rt::{Executor, Handle, Nanos, Stream};
use std::collections::BTreeMap;

/// Time until an answer.
pub(crate) const LATENCY: Nanos = Nanos::from_us(20);
/// Time until the answer of a late read.
pub(crate) const LATE: Nanos = Nanos::from_ms(150);

/// A device that serves reads, discards and resets of zones when it answers them, and answers a read late now and then.
pub(crate) struct Slow {
    pub(crate) fake: FakeDevice,
    /// Reads, discards and resets by the time of their answer.
    waiting: BTreeMap<(Nanos, Token), Bio>,
    rng: Stream,
    /// Share of reads that are late.
    pub(crate) late: f64,
    /// Time until the answer of a discard.
    pub(crate) discard_latency: Nanos,
    /// Time until the answer of a reset of a zone.
    pub(crate) reset_latency: Nanos,
    /// Time until the answer of a fetch of upcalls.
    pub(crate) fetch_latency: Nanos,
    /// It asks the host to complete upcalls where it has none to be fetched.
    pub(crate) asks: bool,
}

impl Slow {
    /// None of whose reads is late.
    pub(crate) fn new(fake: FakeDevice) -> Self {
        Self {
            fake,
            waiting: BTreeMap::new(),
            rng: Stream::new(1, "slow reads"),
            late: 0.0,
            discard_latency: LATENCY,
            reset_latency: LATENCY,
            fetch_latency: LATENCY,
            asks: false,
        }
    }

    /// The zones that are being reset.
    pub(crate) fn resetting(&self) -> Vec<ZoneId> {
        let zone_of = |bio: &Bio| match bio.op {
            Op::Zone(zone, ZoneAction::Reset) => Some(zone),
            _ => None,
        };
        self.waiting.values().filter_map(zone_of).collect()
    }
}

impl BlockDevice for Slow {
    fn caps(&self) -> &DeviceCaps {
        self.fake.caps()
    }

    fn submit(&mut self, now: Nanos, bio: Bio, token: Token) -> Submit {
        if bio.op == Op::FetchUpcall && self.asks && self.fake.attention().is_none() {
            let ask = Reply::Upcall(0, Vec::new());
            return Submit::Done(Done::new(now.saturating_add(LATENCY), Ok(ask)));
        }
        let latency = match bio.op {
            Op::Read if self.rng.chance(self.late) => LATE,
            Op::Read => LATENCY,
            Op::Discard => self.discard_latency,
            Op::Zone(_, ZoneAction::Reset) => self.reset_latency,
            Op::FetchUpcall => {
                let Submit::Done(fetched) = self.fake.submit(now, bio, token) else {
                    return Submit::Pending;
                };
                return Submit::Done(Done {
                    at: now.saturating_add(self.fetch_latency),
                    ..fetched
                });
            }
            _ => return self.fake.submit(now, bio, token),
        };
        self.waiting.insert((now.saturating_add(latency), token), bio);
        Submit::Pending
    }

    fn next_event(&self) -> Option<Nanos> {
        let waiting = self.waiting.first_key_value().map(|((at, _), _)| *at);
        [waiting, self.fake.next_event()].into_iter().flatten().min()
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        while let Some(entry) = self.waiting.first_entry().filter(|entry| entry.key().0 <= now) {
            let ((_, token), bio) = entry.remove_entry();
            let Submit::Done(served) = self.fake.submit(now, bio, token) else { continue };
            done.push(Completion { token, done: Done::new(now, served.result) });
        }
        if self.fake.next_event().is_some_and(|event| event <= now) {
            self.fake.advance(now, done);
        }
    }

    fn attention(&self) -> Attention {
        self.fake.attention()
    }
}

/// Lends a device to a body that leaves nothing behind.
pub(crate) fn with<T: 'static>(
    device: Slow,
    body: impl AsyncFnOnce(Handle, AsyncDevice) -> T + 'static,
) -> (Slow, T) {
    with_slow(device, async move |rt, device| body(rt, device.erased()).await)
}

/// The same, to a body that changes how the device answers.
pub(crate) fn with_slow<T: 'static>(
    device: Slow,
    body: impl AsyncFnOnce(Handle, AsyncDevice<Slow>) -> T + 'static,
) -> (Slow, T) {
    let mut executor = Executor::on_virtual_clock();
    let handle = executor.handle();
    let shared = AsyncDevice::new(&handle, device);
    let lent = shared.clone();
    let value = executor.block_on(async move { body(handle, lent).await }).expect("no deadlock");
    drop(executor);
    let mut device = shared.into_inner().expect("no other owner");
    // What was on its way is lost, and the next host numbers its own from the start.
    device.waiting.clear();
    (device, value)
}
