//! NAND timing by reservation: every parallel unit and every channel has times at which it is taken,
//! and a command's completion is computed at submission, first come first served per unit. What the
//! controller and the host's link add is in `link/`.
//!
//! Parameters are NVMeVirt's (`presets.rs` names the source of each); the model is ours.
//! Transfers are placed exactly, to the nanosecond, where NVMeVirt counts credits in slots of 4 us.
//! Read priority and suspension are ours too (`calendar.rs`), and off in every preset; what a suspension
//! costs there is the default of MQSim (`Flash_Parameter_Set`), which charges nothing for resuming.
//! Integer arithmetic only.

mod calendar;
mod collections;
pub(crate) mod lane;
mod log;
pub(crate) mod presets;
mod schedule;

pub use log::{Action, Command, Log, Resource, Span};
pub(crate) use schedule::Schedule;

/// Where a transfer is placed on a channel or on the host's link.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum LinkScheduling {
    /// In the earliest gap at or after it is ready, so that a command which waits for its unit
    /// does not block others.
    #[default]
    Backfill,
    /// After everything that was placed before it, as a plain next-free time does.
    Fifo,
}

/// Which operations take all planes of a unit at once.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum MultiPlane {
    /// Programs and senses.
    #[default]
    Both,
    /// Programs; a sense takes one plane after the other.
    Program,
    /// Senses; a program takes one plane after the other.
    Read,
    /// Neither.
    None,
}

/// What reads may go ahead of on their unit.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum ReadPriority {
    /// Nothing: units serve first come, first served.
    #[default]
    None,
    /// Programs and erases that have not begun.
    Ahead,
    /// These, and an erase in progress, which is suspended.
    SuspendErase,
    /// These, and a program in progress, which is suspended.
    SuspendProgram,
    /// These, and whatever is in progress.
    Suspend,
}

/// Parameters of the NAND timing model. All are plain numbers, so that a stack file may override each.
///
/// Durations above [`NandTiming::NS_MAX`] count as that; sizes below a sector count as a sector.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NandTiming {
    /// tR when one sector of a flash page is asked for; even flash pages of a chunk (LSB).
    pub read_sector_lsb_ns: u64,
    /// The same for odd flash pages (MSB).
    pub read_sector_msb_ns: u64,
    /// tR when more of a flash page is asked for; even flash pages of a chunk (LSB).
    pub read_page_lsb_ns: u64,
    /// The same for odd flash pages (MSB).
    pub read_page_msb_ns: u64,
    /// tPROG of a one-shot page.
    pub program_ns: u64,
    /// tBERS of a chunk.
    pub erase_ns: u64,
    /// What one sense brings up.
    pub flash_page_bytes: u64,
    /// What one program writes.
    pub one_shot_bytes: u64,
    /// Channel bandwidth; 0 means transfers take no time.
    pub channel_bytes_per_s: u64,
    /// Latency added to a channel transfer for each sector; it does not occupy the channel.
    pub channel_sector_ns: u64,
    /// Largest piece of a read's channel transfer; a piece goes on while the next one moves.
    pub max_transfer_bytes: u64,
    /// Placing on channels.
    pub placing: LinkScheduling,
    /// Planes that share a unit's flash page and one-shot page, in equal and consecutive parts. With one,
    /// `multi_plane` says nothing.
    pub planes: u64,
    /// What takes one tPROG or tR for all planes, rather than one for each plane that it touches.
    pub multi_plane: MultiPlane,
    /// What reads may go ahead of.
    pub read_priority: ReadPriority,
    /// How late reads may make what they go ahead of.
    pub max_read_preemption_ns: u64,
    /// How often an operation may be suspended.
    pub max_suspensions: u64,
    /// From the suspension of a program until a read may begin.
    pub program_suspend_ns: u64,
    /// From the suspension of an erase until a read may begin.
    pub erase_suspend_ns: u64,
    /// What resuming an operation adds to it.
    pub resume_ns: u64,
}

impl NandTiming {
    /// The longest single duration: 10 s.
    pub const NS_MAX: u64 = 10_000_000_000;

    /// Everything takes no time: for preconditioning and for theory.
    #[must_use]
    pub const fn none() -> Self {
        Self {
            read_sector_lsb_ns: 0,
            read_sector_msb_ns: 0,
            read_page_lsb_ns: 0,
            read_page_msb_ns: 0,
            program_ns: 0,
            erase_ns: 0,
            flash_page_bytes: 32 << 10,
            one_shot_bytes: 32 << 10,
            channel_bytes_per_s: 0,
            channel_sector_ns: 0,
            max_transfer_bytes: 16 << 10,
            placing: LinkScheduling::Backfill,
            planes: 1,
            multi_plane: MultiPlane::Both,
            read_priority: ReadPriority::None,
            max_read_preemption_ns: 10_000_000,
            max_suspensions: 4,
            program_suspend_ns: 100_000,
            erase_suspend_ns: 700_000,
            resume_ns: 0,
        }
    }

    pub(crate) const fn programs_all_planes(&self) -> bool {
        matches!(self.multi_plane, MultiPlane::Both | MultiPlane::Program)
    }

    pub(crate) const fn senses_all_planes(&self) -> bool {
        matches!(self.multi_plane, MultiPlane::Both | MultiPlane::Read)
    }

    /// How often a read may suspend a program.
    pub(crate) const fn program_suspensions(&self) -> u64 {
        match self.read_priority {
            ReadPriority::SuspendProgram | ReadPriority::Suspend => self.max_suspensions,
            _ => 0,
        }
    }

    /// How often a read may suspend an erase.
    pub(crate) const fn erase_suspensions(&self) -> u64 {
        match self.read_priority {
            ReadPriority::SuspendErase | ReadPriority::Suspend => self.max_suspensions,
            _ => 0,
        }
    }

    /// Whether no command takes any time.
    #[must_use]
    pub const fn is_instant(&self) -> bool {
        self.read_sector_lsb_ns
            | self.read_sector_msb_ns
            | self.read_page_lsb_ns
            | self.read_page_msb_ns
            | self.program_ns
            | self.erase_ns
            | self.channel_bytes_per_s
            | self.channel_sector_ns
            == 0
    }
}
