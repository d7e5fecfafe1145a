//! A device whose power goes after so many bios. Of what no flush has covered, each sector keeps any
//! version, as the crash model says.

use nandscape_block::{
    Bio, BlockDevice, BlockError, Completion, DeviceCaps, Done, Fua, MemDevice, Submit, Token,
};
use nandscape_rt::{Nanos, Stream};

/// A [`MemDevice`] that loses power.
pub(crate) struct CutDevice {
    inner: MemDevice,
    rng: Stream,
    /// Bios until the cut; none for no cut.
    left: Option<u64>,
    /// Bios that came so far.
    pub(crate) bios: u64,
    dead: bool,
}

impl CutDevice {
    pub(crate) fn new(inner: MemDevice, left: Option<u64>, seed: u64) -> Self {
        Self { inner, rng: Stream::new(seed, "power"), left, bios: 0, dead: false }
    }

    /// Takes out what the power cut left; without one, everything.
    pub(crate) fn into_survivor(mut self, cut: bool) -> MemDevice {
        if cut && !self.dead {
            self.inner.cut_power(&mut self.rng);
        }
        self.inner
    }
}

impl BlockDevice for CutDevice {
    fn caps(&self) -> &DeviceCaps {
        self.inner.caps()
    }

    fn submit(&mut self, now: Nanos, bio: Bio, token: Token) -> Submit {
        self.bios += 1;
        if self.left == Some(0) && !self.dead {
            self.inner.cut_power(&mut self.rng);
            self.dead = true;
        }
        if self.dead {
            return Submit::Done(Done::new(now, Err(BlockError::PowerLost)));
        }
        self.left = self.left.map(|left| left - 1);
        self.inner.submit(now, bio, token)
    }

    fn next_event(&self) -> Option<Nanos> {
        self.inner.next_event()
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        self.inner.advance(now, done);
    }
}

/// A device of so many sectors, some of which refuse FUA, with a latency so that bios overlap.
pub(crate) fn medium(sectors: u64, fua: Fua) -> MemDevice {
    let caps = MemDevice::new(sectors).caps().clone();
    MemDevice::with_caps(DeviceCaps { fua, max_sectors: 16, ..caps }).with_latency(Nanos(1_000))
}
