//! A device whose power goes after so many bios. Of what no flush has covered, each sector keeps any
//! version, as the crash model says.

use nandscape_block::{
    AsyncDevice, Bio, BlockDevice, BlockError, Completion, DeviceCaps, Done, Fua, Lba, MemDevice,
    Submit, Token,
};
use nandscape_rt::{Executor, Handle, Nanos, Stream};
use std::future::Future;
use std::path::Path;

/// A [`MemDevice`] that loses power.
pub(crate) struct CutDevice {
    pub(crate) medium: MemDevice,
    rng: Stream,
    /// Bios until the cut; none for no cut.
    left: Option<u64>,
    /// Bios that came so far.
    pub(crate) bios: u64,
    dead: bool,
}

impl CutDevice {
    pub(crate) fn new(medium: MemDevice, left: Option<u64>, seed: u64) -> Self {
        Self { medium, rng: Stream::new(seed, "power"), left, bios: 0, dead: false }
    }

    /// Takes out what the power cut left; without one, everything.
    pub(crate) fn into_survivor(mut self, cut: bool) -> MemDevice {
        if cut && !self.dead {
            self.medium.cut_power(&mut self.rng);
        }
        self.medium
    }
}

impl BlockDevice for CutDevice {
    fn caps(&self) -> &DeviceCaps {
        self.medium.caps()
    }

    fn submit(&mut self, now: Nanos, bio: Bio, token: Token) -> Submit {
        self.bios += 1;
        if self.left == Some(0) && !self.dead {
            self.medium.cut_power(&mut self.rng);
            self.dead = true;
        }
        if self.dead {
            return Submit::Done(Done::new(now, Err(BlockError::PowerLost)));
        }
        self.left = self.left.map(|left| left - 1);
        self.medium.submit(now, bio, token)
    }

    fn next_event(&self) -> Option<Nanos> {
        self.medium.next_event()
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        self.medium.advance(now, done);
    }
}

/// A device of so many sectors, some of which refuse FUA, with a latency so that bios overlap.
pub(crate) fn medium(sectors: u64, fua: Fua) -> MemDevice {
    let caps = MemDevice::new(sectors).caps().clone();
    MemDevice::with_caps(DeviceCaps { fua, max_sectors: 16, ..caps }).with_latency(Nanos(1_000))
}

/// What a file system sees of a device.
pub(crate) type Device = AsyncDevice;

/// A device that a test can look into.
pub(crate) type OpenDevice = AsyncDevice<CutDevice>;

/// A device whose power stays.
pub(crate) fn powered(rt: &Handle, medium: MemDevice) -> OpenDevice {
    AsyncDevice::new(rt, CutDevice::new(medium, None, 0))
}

/// Runs `work` on a device whose power goes after `cut` bios; gives back what it left on the medium,
/// and the number of bios.
pub(crate) fn on_device<T: 'static, F: Future<Output = T> + 'static>(
    medium: MemDevice,
    cut: Option<u64>,
    seed: u64,
    work: impl FnOnce(Handle, Device) -> F,
) -> (T, MemDevice, u64) {
    let mut executor = Executor::on_virtual_clock();
    let rt = executor.handle();
    let device = AsyncDevice::new(&rt, CutDevice::new(medium, cut, seed));
    let output = executor.block_on(work(rt, device.erased())).expect("no task waits for ever");
    let empty = CutDevice::new(MemDevice::new(1), None, 0);
    let used = device.with(|device| std::mem::replace(device, empty));
    let bios = used.bios;
    (output, used.into_survivor(cut.is_some()), bios)
}

/// Everything that a medium holds.
pub(crate) fn content(medium: &MemDevice) -> Vec<u8> {
    let block = |at| medium.current(Lba(at)).expand().expect("content is kept");
    (0..medium.caps().sectors).flat_map(|at| *block(at)).collect()
}

/// Writes what a medium holds to an image file.
pub(crate) fn store(medium: &MemDevice, image: &Path) {
    std::fs::write(image, content(medium)).expect("an image");
}
