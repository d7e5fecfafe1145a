//! What a campaign needs of whatever it breaks: a block device whose power can be cut and that
//! comes back from what the cut left.

use crate::device::resets::LostCopy;
use crate::draw::plan::CommandKind;
use nandscape_block::{BlockDevice, Lba, SectorData};
use nandscape_rt::Nanos;
use std::ops::Range;

/// What went through to the media.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct CommandCounts {
    /// Programs.
    pub programs: u64,
    /// Erases.
    pub erases: u64,
    /// Programs that failed.
    pub program_failures: u64,
    /// Erases that failed.
    pub erase_failures: u64,
}

/// State of the power switch below a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Power {
    /// On.
    On,
    /// On; the media command that the scenario waits for came at this instant.
    Noticed(Nanos),
    /// Off: a command was refused at this instant. Whatever the device answered since is void.
    /// A device that is not idle within the command limit is switched off too.
    Off(Nanos),
}

/// What to do with the power switch while the device runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TriggerMode {
    /// Nothing.
    Nothing,
    /// Notice the n-th command of a kind.
    Notice(CommandKind, u64),
    /// Let so many commands through, then switch off.
    OffAfter(u64),
}

/// How a recovery ended.
#[derive(Debug)]
pub enum Recovery<S: DeviceUnderTest> {
    /// The device serves again.
    Up(S),
    /// Power was switched off on the way, at this instant.
    CutAgain(S::PoweredOff, Nanos),
    /// The media has worn out under injected faults: nothing more can be checked on it.
    WornOut(String),
    /// It gave up without a reason that the scenario has given it.
    Failed(String),
}

/// A block device under test.
pub trait DeviceUnderTest: BlockDevice + Sized {
    /// What survives a power cut.
    type PoweredOff;

    /// Instructs the power switch, from here on.
    fn watch(&mut self, watch: TriggerMode);

    /// What the power switch did.
    fn power(&self) -> Power;

    /// When the device became ready.
    fn ready_at(&self) -> Nanos;

    /// What went through to the media since the device became ready, recovery included.
    fn commands(&self) -> CommandCounts;

    /// Commands that the media have taken, reads included, since the device was made. The power switch counts these.
    fn media_commands(&self) -> u64 {
        0
    }

    /// Sectors that the device has written for itself since it became ready: copies, mapping blocks, a log.
    fn background_sectors(&self) -> u64 {
        0
    }

    /// Power is cut at `at`: all volatile state is gone.
    fn cut(self, at: Nanos) -> Self::PoweredOff;

    /// Power fails again, at `at`, on what an interrupted recovery left.
    fn cut_remains(remains: &mut Self::PoweredOff, at: Nanos);

    /// Comes back at `now`; power is switched off again after so many media commands.
    fn recover(remains: Self::PoweredOff, now: Nanos, off_after: Option<u64>) -> Recovery<Self>;

    /// What copies of these sectors held that an injected fault has made unreadable.
    fn unreadable(&self, _sectors: Range<u64>) -> Vec<(Lba, SectorData)> {
        Vec::new()
    }

    /// Has each reset compared with what media hold, from now on.
    fn watch_resets(&mut self) {}

    /// What resets took from media since this was asked last, where nothing durable replaces it.
    fn lost_copies(&mut self) -> Vec<LostCopy> {
        Vec::new()
    }

    /// Which of these a power cut leaves without an address, discards as zeroes.
    fn forgotten(_remains: &Self::PoweredOff) -> Vec<(Lba, SectorData)> {
        Vec::new()
    }

    /// Compares the device's state with itself.
    ///
    /// # Errors
    /// What contradicts what.
    fn check_invariants(&self) -> Result<(), String>;
}
