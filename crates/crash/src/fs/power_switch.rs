//! The device under a file system: an FTL over media, a hostile device in memory, or a copy of a volume,
//! below a switch that notices when the planned power cut is due.
//!
//! What media commands are to an FTL's media, its steps are to the hostile device: a piece of a write that
//! lands is a program, a piece of a read that takes its data a read, a flush that takes effect an erase.
//!
//! Once a media command was refused because power is off, every answer is void: the switch refuses
//! whatever comes, and what was still to be answered ends with [`BlockError::PowerLost`].

use crate::device::drive::CheckFailure;
use crate::device::subject::{CommandCounts, DeviceUnderTest, Power, Recovery, TriggerMode};
use crate::device::target::{PoweredOffDevice, Target};
use crate::draw::plan::{CommandKind, CutPlan, Trigger};
use nandscape_block::{
    AdversaryDevice, AsyncDevice, Attention, Bio, BlockDevice, BlockError, Completion, DeviceCaps,
    Done, Flags, MemDevice, Op, Submit, Token,
};
use nandscape_ftl::{Detail, FtlReport};
use nandscape_rt::combine::select2;
use nandscape_rt::sync::Notify;
use nandscape_rt::{Handle, Nanos, Stream};
use std::collections::BTreeMap;

/// The device of every file system here, so that file systems are compiled for one.
pub(crate) type Device = AsyncDevice<PowerSwitch>;

/// What holds the sectors.
pub(crate) enum Medium {
    /// An FTL over media.
    Flash(Box<Target>),
    /// A hostile device, and at how many steps of a kind the switch is to notice it.
    Adversary(Box<AdversaryDevice>, Option<(CommandKind, u64)>),
    /// A copy of a volume, under which power does not fail.
    Memory(Box<MemDevice>),
}

/// What a power cut leaves.
pub(crate) enum PoweredOffMedium {
    Flash(Box<PoweredOffDevice>),
    Adversary(Box<AdversaryDevice>),
    Memory(Box<MemDevice>),
}

/// How a medium came back.
pub(crate) enum PowerOnResult {
    /// It serves from this instant on.
    Up(Medium, Nanos),
    /// Power failed again, at this instant.
    CutAgain(PoweredOffMedium, Nanos),
    /// It gave up.
    Failed(String),
}

impl PowerOnResult {
    /// The medium, which is sound, and the instant from which on it serves.
    ///
    /// # Errors
    /// It does not serve, or is not sound.
    pub(crate) fn up(self) -> Result<(Medium, Nanos), CheckFailure> {
        match self {
            Self::Up(medium, ready) => match medium.check_invariants() {
                Ok(()) => Ok((medium, ready)),
                Err(why) => Err(CheckFailure::new(format!("after the FTL's recovery: {why}"))),
            },
            Self::CutAgain(..) => Err(CheckFailure::new("the FTL's recovery does not terminate")),
            Self::Failed(why) => {
                Err(CheckFailure::new(format!("the FTL's recovery failed: {why}")))
            }
        }
    }
}

/// How many steps of a kind the hostile device has done.
fn steps_of(device: &AdversaryDevice, kind: CommandKind) -> u64 {
    let steps = device.steps();
    match kind {
        CommandKind::Write => steps.landings,
        CommandKind::Read => steps.takings,
        CommandKind::Reset => steps.flushes,
    }
}

impl Medium {
    pub(crate) fn adversary(device: AdversaryDevice) -> Self {
        Self::Adversary(Box::new(device), None)
    }

    /// What another power cut at this instant leaves; none where that is unknown.
    pub(crate) fn after_another_cut(&self, rng: Stream) -> Option<Self> {
        match self {
            Self::Adversary(device, _) => Some(Self::adversary(device.after_another_cut(rng))),
            Self::Flash(_) | Self::Memory(_) => None,
        }
    }

    /// Power fails.
    pub(crate) fn cut(self, at: Nanos) -> PoweredOffMedium {
        match self {
            Self::Flash(target) => PoweredOffMedium::Flash(Box::new(target.cut(at))),
            Self::Adversary(mut device, _) => {
                device.cut_power();
                PoweredOffMedium::Adversary(device)
            }
            Self::Memory(device) => PoweredOffMedium::Memory(device),
        }
    }

    pub(crate) fn ready_at(&self) -> Nanos {
        match self {
            Self::Flash(target) => target.ready_at(),
            Self::Adversary(..) | Self::Memory(_) => Nanos::ZERO,
        }
    }

    pub(crate) fn commands(&self) -> CommandCounts {
        match self {
            Self::Flash(target) => target.commands(),
            Self::Adversary(..) | Self::Memory(_) => CommandCounts::default(),
        }
    }

    /// Media commands that it has taken. The power switch counts these.
    fn media_commands(&self) -> u64 {
        match self {
            Self::Flash(target) => target.media_commands(),
            Self::Adversary(device, _) => device.steps().all(),
            Self::Memory(_) => 0,
        }
    }

    /// What its FTL has counted since it became ready: what every kind counts, and what only this one does.
    pub(crate) fn report(&self) -> Option<(FtlReport, Detail)> {
        match self {
            Self::Flash(target) => Some((target.report(), target.detail())),
            Self::Adversary(..) | Self::Memory(_) => None,
        }
    }

    /// Sectors of append-only regions that hold something.
    fn appended_sectors(&self) -> u64 {
        match self {
            Self::Flash(target) => target.appended_sectors(),
            Self::Adversary(..) | Self::Memory(_) => 0,
        }
    }

    pub(crate) fn check_invariants(&self) -> Result<(), String> {
        match self {
            Self::Flash(target) => target.check_invariants(),
            Self::Adversary(..) | Self::Memory(_) => Ok(()),
        }
    }

    pub(crate) fn caps(&self) -> &DeviceCaps {
        self.device().caps()
    }

    fn device(&self) -> &dyn BlockDevice {
        match self {
            Self::Flash(target) => &**target,
            Self::Adversary(device, _) => &**device,
            Self::Memory(device) => &**device,
        }
    }

    fn device_mut(&mut self) -> &mut dyn BlockDevice {
        match self {
            Self::Flash(target) => &mut **target,
            Self::Adversary(device, _) => &mut **device,
            Self::Memory(device) => &mut **device,
        }
    }

    fn power(&self) -> Power {
        match self {
            Self::Flash(target) => target.power(),
            Self::Adversary(device, awaited) => match (device.off_at(), awaited) {
                (Some(at), _) => Power::Off(at),
                (None, Some((kind, steps))) if steps_of(device, *kind) >= *steps => {
                    Power::Noticed(Nanos::ZERO)
                }
                _ => Power::On,
            },
            Self::Memory(_) => Power::On,
        }
    }

    fn watch(&mut self, trigger: Option<Trigger>) {
        let mode = match trigger {
            Some(Trigger::Command(kind, n)) => TriggerMode::Notice(kind, n),
            Some(Trigger::OffAfter(n)) => TriggerMode::OffAfter(n),
            _ => TriggerMode::Nothing,
        };
        match self {
            Self::Flash(target) => target.watch(mode),
            Self::Adversary(device, awaited) => {
                device.switch_off_after(match mode {
                    TriggerMode::OffAfter(n) => Some(n),
                    TriggerMode::Nothing | TriggerMode::Notice(..) => None,
                });
                *awaited = match mode {
                    TriggerMode::Notice(kind, n) => Some((kind, steps_of(device, kind) + n)),
                    TriggerMode::Nothing | TriggerMode::OffAfter(_) => None,
                };
            }
            Self::Memory(_) => {}
        }
    }
}

impl PoweredOffMedium {
    /// Comes back at `now`; power fails again after so many media commands.
    pub(crate) fn recover(self, now: Nanos, off_after: Option<u64>) -> PowerOnResult {
        match self {
            Self::Memory(device) => PowerOnResult::Up(Medium::Memory(device), now),
            // It has nothing to recover, so there is nothing to cut.
            Self::Adversary(device) => PowerOnResult::Up(Medium::Adversary(device, None), now),
            Self::Flash(remains) => match Target::recover(*remains, now, off_after) {
                Recovery::Up(target) => {
                    let ready = target.ready_at().max(now);
                    PowerOnResult::Up(Medium::Flash(Box::new(target)), ready)
                }
                Recovery::CutAgain(mut remains, off) => {
                    let at = off.max(now) + Nanos(1);
                    Target::cut_remains(&mut remains, at);
                    PowerOnResult::CutAgain(Self::Flash(Box::new(remains)), at)
                }
                Recovery::WornOut(why) | Recovery::Failed(why) => PowerOnResult::Failed(why),
            },
        }
    }
}

/// A bio whose answer may set off a cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum DurabilityKind {
    /// It says that something is durable.
    Barrier,
    /// It says so of itself alone.
    Tail,
}

fn promise(bio: &Bio) -> Option<DurabilityKind> {
    let (flush, fua) = (bio.flags.has(Flags::PREFLUSH), bio.flags.has(Flags::FUA));
    match bio.op {
        Op::Flush => Some(DurabilityKind::Barrier),
        Op::Write if flush => Some(DurabilityKind::Barrier),
        Op::Write if fua => Some(DurabilityKind::Tail),
        _ => None,
    }
}

/// What was submitted.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Bios {
    /// All but reads.
    pub(crate) changes: u64,
    pub(crate) flushes: u64,
    pub(crate) sectors_read: u64,
    pub(crate) sectors_written: u64,
    pub(crate) sectors_discarded: u64,
    pub(crate) requests: u64,
    barriers: u64,
    acknowledged: u64,
    tails: u64,
}

impl Bios {
    fn count(&mut self, bio: &Bio) {
        let sectors = u64::from(bio.sectors);
        self.requests += 1;
        self.changes += u64::from(bio.op != Op::Read);
        self.barriers += u64::from(promise(bio).is_some());
        match bio.op {
            Op::Read => self.sectors_read += sectors,
            Op::Write => self.sectors_written += sectors,
            Op::Discard => self.sectors_discarded += sectors,
            Op::Flush => self.flushes += 1,
            _ => {}
        }
    }
}

/// The medium below the power switch.
pub(crate) struct PowerSwitch {
    medium: Medium,
    plan: Option<CutPlan>,
    due: Option<Nanos>,
    noticed: Notify,
    off: bool,
    /// Since power came on.
    bios: Bios,
    /// What had come when the cut was planned.
    before: Bios,
    /// Promises that are not answered yet.
    pending: BTreeMap<Token, DurabilityKind>,
    /// What looks at the medium on the way to the cut, if anything does.
    glances: Option<Glances>,
}

/// Looks at the medium just after some requests that change it were submitted.
pub(crate) struct Glances {
    /// How many changes precede each look; the first one last.
    pub(crate) after: Vec<u64>,
    pub(crate) look: Box<dyn FnMut(&Medium)>,
}

impl PowerSwitch {
    pub(crate) fn new(handle: &Handle, medium: Medium) -> Self {
        let mut switch = Self {
            medium,
            plan: None,
            due: None,
            noticed: Notify::new(handle, "a power cut"),
            off: false,
            bios: Bios::default(),
            before: Bios::default(),
            pending: BTreeMap::new(),
            glances: None,
        };
        switch.medium.watch(None);
        switch
    }

    /// Takes the medium out.
    pub(crate) fn take(&mut self) -> Medium {
        let nothing = Medium::Memory(Box::new(MemDevice::new(1)));
        std::mem::replace(&mut self.medium, nothing)
    }

    /// Plans a cut; triggers count from here on.
    fn plan(&mut self, plan: &CutPlan, now: Nanos) {
        self.medium.watch(Some(plan.trigger));
        self.before = self.bios;
        self.due = match plan.trigger {
            Trigger::Instant(after) => Some(now + after),
            _ => None,
        };
        self.plan = Some(plan.clone());
    }

    /// What a power cut at this instant leaves; none where that is known only of the cut itself.
    pub(crate) fn after_another_cut(&self, rng: Stream) -> Option<Medium> {
        self.medium.after_another_cut(rng)
    }

    /// Looks at the medium on the way to the cut, counted from here on.
    pub(crate) fn glance(&mut self, mut glances: Glances) {
        glances.after.iter_mut().for_each(|after| *after += self.bios.changes);
        self.glances = Some(glances);
    }

    fn take_glances(&mut self) {
        let Some(Glances { after, look }) = &mut self.glances else { return };
        while after.last().is_some_and(|after| *after <= self.bios.changes) {
            after.pop();
            look(&self.medium);
        }
    }

    /// Whether the medium was switched off though that was not planned, for exceeding the command limit.
    pub(crate) fn does_not_terminate(&self) -> bool {
        let planned = matches!(self.plan, Some(CutPlan { trigger: Trigger::OffAfter(_), .. }));
        self.off && !planned
    }

    /// Whether power is off.
    pub(crate) fn is_off(&mut self) -> bool {
        self.off
    }

    /// Sectors of append-only regions that hold something.
    pub(crate) fn appended_sectors(&self) -> u64 {
        self.medium.appended_sectors()
    }

    pub(crate) fn media_commands(&self) -> u64 {
        self.medium.media_commands()
    }

    pub(crate) fn bios(&self) -> Bios {
        self.bios
    }

    /// Looks whether the trigger has come. `kept` is a promise, and when its answer comes.
    fn look(&mut self, now: Nanos, kept: Option<(DurabilityKind, Nanos)>) {
        let power = self.medium.power();
        if matches!(power, Power::Off(_)) {
            self.off = true;
            self.set_due(now);
        }
        let Some(plan) = &self.plan else { return };
        let delay = plan.delay;
        let acknowledged = kept.map(|(_, at)| at);
        let tail = kept.filter(|(promise, _)| *promise == DurabilityKind::Tail).map(|(_, at)| at);
        self.bios.acknowledged += u64::from(acknowledged.is_some());
        self.bios.tails += u64::from(tail.is_some());
        let changes = self.bios.changes - self.before.changes;
        let barriers = self.bios.barriers - self.before.barriers;
        let tails = self.bios.tails - self.before.tails;
        let answered = self.bios.acknowledged - self.before.acknowledged;
        let since = match (plan.trigger, power) {
            (Trigger::Request(n), _) if changes >= n => Some(now),
            (Trigger::BarrierSubmitted(n), _) if barriers >= n => Some(now),
            (Trigger::BarrierAcked(n), _) if answered >= n => acknowledged,
            (Trigger::TailMoved(n), _) if tails >= n => tail,
            (_, Power::Noticed(at)) => Some(at.max(now)),
            _ => None,
        };
        if let Some(since) = since {
            self.set_due(since + delay);
        }
    }

    /// Sets the instant of the cut, unless it is set.
    fn set_due(&mut self, due: Nanos) {
        if self.due.is_none() || self.off {
            self.due = Some(self.due.map_or(due, |set| set.min(due)));
            self.noticed.notify_one();
        }
    }

    fn lost(now: Nanos) -> Done {
        Done::new(now, Err(BlockError::PowerLost))
    }
}

/// Waits until the cut that is planned from now on is due. All that happens up to that very instant
/// has happened; power fails right behind it.
pub(crate) async fn cut_is_due(handle: &Handle, device: &Device, plan: &CutPlan) {
    device.with(|switch| switch.plan(plan, handle.now()));
    loop {
        let (due, noticed) = device.with(|switch| (switch.due, switch.noticed.notified()));
        match due {
            Some(at) if at <= handle.now() => return,
            Some(at) => drop(select2(handle.sleep_until(at), noticed).await),
            None => noticed.await,
        }
    }
}

impl BlockDevice for PowerSwitch {
    fn caps(&self) -> &DeviceCaps {
        self.medium.device().caps()
    }

    fn submit(&mut self, now: Nanos, bio: Bio, token: Token) -> Submit {
        if self.off {
            return Submit::Done(Self::lost(now));
        }
        self.bios.count(&bio);
        let promise = promise(&bio);
        let submitted = self.medium.device_mut().submit(now, bio, token);
        let kept = match &submitted {
            Submit::Done(done) if done.result.is_ok() => promise.map(|promise| (promise, done.at)),
            Submit::Done(_) => None,
            Submit::Pending => {
                self.pending.extend(promise.map(|promise| (token, promise)));
                None
            }
        };
        self.take_glances();
        self.look(now, kept);
        if self.off { Submit::Done(Self::lost(now)) } else { submitted }
    }

    fn next_event(&self) -> Option<Nanos> {
        if self.off { None } else { self.medium.device().next_event() }
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        if self.off {
            return;
        }
        let first = done.len();
        self.medium.device_mut().advance(now, done);
        self.look(now, None);
        for completion in &mut done[first..] {
            if self.off {
                completion.done = Self::lost(now);
            } else if let Some(promise) = self.pending.remove(&completion.token)
                && completion.done.result.is_ok()
            {
                self.look(now, Some((promise, completion.done.at)));
            }
        }
    }
    fn attention(&self) -> Attention {
        if self.off { Attention::NONE } else { self.medium.device().attention() }
    }
}
