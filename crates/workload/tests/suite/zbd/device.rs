//! A device with zones that refuses what breaks a rule, and keeps what was asked of it.

use nandscape_block::fake::FakeDevice;
use nandscape_block::zone::{ZoneInfo, ZoneLimits};
use nandscape_block::{
    Bio, BlockDevice, Completion, DeviceCaps, Done, Lba, Op, Region, RegionKind, Reply, Submit,
    Token,
};
use nandscape_rt::Nanos;

/// A bio, when it was submitted, and when it was back.
pub(crate) struct Served {
    pub(crate) at: Nanos,
    pub(crate) back: Nanos,
    pub(crate) bio: Bio,
}

/// Zones over a [`FakeDevice`], in which bios take times that depend on where they go.
pub(crate) struct ZonedDevice {
    device: FakeDevice,
    pub(crate) log: Vec<Served>,
    /// The longest that an I/O takes.
    spread_ns: u64,
}

/// Capabilities of a device with `random` sectors in front of `zones` zones.
pub(crate) fn caps(random: u64, zones: u64, limits: ZoneLimits) -> DeviceCaps {
    let end = random + zones * limits.zone_sectors;
    let zoned = Region::new(random..end, RegionKind::Zones(limits));
    let front = (random > 0).then(|| Region::new(0..random, RegionKind::Random));
    DeviceCaps {
        regions: front.into_iter().chain([zoned]).collect(),
        ..DeviceCaps::conventional(end)
    }
}

impl ZonedDevice {
    pub(crate) fn new(caps: DeviceCaps) -> Self {
        Self { device: FakeDevice::new(caps).unwrap(), log: Vec::new(), spread_ns: 0 }
    }

    /// The same device, in which bios take up to this long.
    pub(crate) fn with_spread(self, spread: Nanos) -> Self {
        Self { spread_ns: spread.0, ..self }
    }

    /// All zones.
    pub(crate) fn report(&mut self) -> Vec<ZoneInfo> {
        let bio = Bio::new(Op::ZoneReport, Lba(0), u32::MAX);
        match self.device.submit(Nanos::ZERO, bio, Token::default()) {
            Submit::Done(Done { result: Ok(Reply::Zones(zones)), .. }) => zones,
            other => panic!("{other:?}"),
        }
    }
}

impl BlockDevice for ZonedDevice {
    fn caps(&self) -> &DeviceCaps {
        self.device.caps()
    }

    fn submit(&mut self, now: Nanos, bio: Bio, token: Token) -> Submit {
        let spread = 500 + bio.lba.0.wrapping_mul(0x9e37_79b9) % (self.spread_ns + 1);
        let back = now + Nanos(spread);
        self.log.push(Served { at: now, back, bio: bio.clone() });
        match self.device.submit(now, bio, token) {
            Submit::Done(done) => {
                assert!(
                    done.result.is_ok(),
                    "{:?}: {:?}",
                    self.log.last().unwrap().bio,
                    done.result
                );
                Submit::Done(Done::new(back, done.result))
            }
            Submit::Pending => Submit::Pending,
        }
    }

    fn next_event(&self) -> Option<Nanos> {
        self.device.next_event()
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        self.device.advance(now, done);
    }
}
