//! The adversary under the campaign on devices: its worst is permitted.

use nandscape_block::zone::ZoneLimits;
use nandscape_block::{
    AdversaryDevice, Bio, BlockDevice, Completion, DeviceCaps, Flags, Op, Region, RegionKind,
    Submit, Token,
};
use nandscape_crash::plan::Plan;
use nandscape_crash::subject::{CommandCounts, DeviceUnderTest, Power, Recovery, TriggerMode};
use nandscape_crash::{CampaignReport, run_device};
use nandscape_rt::{Nanos, Stream};

const SECTORS: u64 = 300;
/// The random region of a zoned device, and what follows it.
const RANDOM: u64 = 32;
const ZONES: u64 = 12;
const ZONE: ZoneLimits = ZoneLimits {
    zone_sectors: 32,
    capacity: 24,
    max_open: 3,
    max_active: 5,
    append: true,
    write_sectors: 1,
};
/// What every recovery of this device takes, in commands: it has nothing to do.
const RECOVERY_COMMANDS: u64 = 50;

/// The device, or one that breaks a promise.
struct Subject {
    device: AdversaryDevice,
    ready_at: Nanos,
    /// It does not see bios with these flags for what they are; [`Flags::NONE`]: flushes.
    unseen: Option<Flags>,
}

impl BlockDevice for Subject {
    fn caps(&self) -> &DeviceCaps {
        self.device.caps()
    }

    fn submit(&mut self, now: Nanos, bio: Bio, token: Token) -> Submit {
        let seen = match self.unseen {
            Some(Flags::NONE) if bio.op == Op::Flush => Bio::read(bio.lba, 1),
            Some(flag) if flag != Flags::NONE && bio.flags.has(flag) => {
                Bio { flags: Flags::NONE, ..bio }
            }
            _ => bio,
        };
        self.device.submit(now, seen, token)
    }

    fn next_event(&self) -> Option<Nanos> {
        self.device.next_event()
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        self.device.advance(now, done);
    }
}

impl DeviceUnderTest for Subject {
    type PoweredOff = Self;

    fn watch(&mut self, watch: TriggerMode) {
        self.device.switch_off_after(match watch {
            TriggerMode::OffAfter(steps) => Some(steps),
            TriggerMode::Nothing | TriggerMode::Notice(..) => None,
        });
    }

    fn power(&self) -> Power {
        self.device.off_at().map_or(Power::On, Power::Off)
    }

    fn ready_at(&self) -> Nanos {
        self.ready_at
    }

    fn commands(&self) -> CommandCounts {
        CommandCounts { programs: self.device.steps().landings, ..CommandCounts::default() }
    }

    fn cut(mut self, _at: Nanos) -> Self {
        self.device.cut_power();
        self
    }

    fn cut_remains(remains: &mut Self, _at: Nanos) {
        remains.device.cut_power();
    }

    fn recover(remains: Self, now: Nanos, off_after: Option<u64>) -> Recovery<Self> {
        match off_after {
            Some(n) if n < RECOVERY_COMMANDS => Recovery::CutAgain(remains, now + Nanos(n)),
            _ => Recovery::Up(Self { ready_at: now, ..remains }),
        }
    }

    fn check_invariants(&self) -> Result<(), String> {
        Ok(())
    }
}

fn random(rng: Stream) -> AdversaryDevice {
    let caps = DeviceCaps { max_sectors: 64, ..DeviceCaps::conventional(SECTORS) };
    AdversaryDevice::with_caps(caps, rng)
}

fn zoned(rng: Stream) -> AdversaryDevice {
    let end = RANDOM + ZONES * ZONE.zone_sectors;
    let regions = [
        Region::new(0..RANDOM, RegionKind::Random),
        Region::new(RANDOM..end, RegionKind::Zones(ZONE)),
    ];
    let caps =
        DeviceCaps { regions: regions.into(), max_sectors: 64, ..DeviceCaps::conventional(end) };
    AdversaryDevice::with_zones(caps, rng).expect("regions of a device")
}

fn campaign(
    seeds: std::ops::Range<u64>,
    device: fn(Stream) -> AdversaryDevice,
    unseen: Option<Flags>,
) -> CampaignReport {
    let mut report = CampaignReport::default();
    for seed in seeds {
        let plan = Plan::draw(seed, None, None, 100);
        let device = device(Stream::new(seed, "adversary"));
        let subject = Subject { device, ready_at: Nanos::ZERO, unseen };
        report.add(run_device(seed, &plan, plan.settings(), subject, || None));
    }
    report
}

/// Hostile, but within the crash model.
#[test]
fn the_adversary_keeps_every_promise() {
    let report = campaign(0..300, random, None);
    assert!(report.passed(), "{report}");
    assert!(report.counts.cuts > 900, "{report}");
}

/// The same device without one of its promises is caught: flushes, FUA, PREFLUSH.
#[test]
fn an_adversary_that_breaks_a_promise_is_caught() {
    for unseen in [Flags::NONE, Flags::FUA, Flags::PREFLUSH] {
        assert!(!campaign(0..60, random, Some(unseen)).passed(), "{unseen:?} is never missed");
    }
}

/// The same with zones: writes in flight land in any order, cuts keep prefixes and lose resets.
#[test]
fn the_zoned_adversary_keeps_every_promise() {
    let report = campaign(0..400, zoned, None);
    assert!(report.passed(), "{report}");
    let counts = report.counts;
    assert!(counts.cuts > 1_200 && counts.sectors_discarded > 20_000, "{report}");
}

/// And it is caught without flushes, FUA or PREFLUSH.
#[test]
fn a_zoned_adversary_that_breaks_a_promise_is_caught() {
    for unseen in [Flags::NONE, Flags::FUA, Flags::PREFLUSH] {
        assert!(!campaign(0..60, zoned, Some(unseen)).passed(), "{unseen:?} is never missed");
    }
}
