//! What the device did and when, for a timeline: commands, and the spans for which they took units
//! and links. Kept only when asked for, and only as far as there is room.

use crate::command::{Cause, Kind, Status};
use crate::geometry::ChunkId;
use nandscape_rt::Nanos;

/// What a command does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Programs sectors of this kind.
    Program(Kind),
    /// Reads sectors.
    Read,
    /// Erases a chunk.
    Erase,
}

/// A command that the device took.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Command {
    /// What it does.
    pub action: Action,
    /// Its chunk.
    pub chunk: ChunkId,
    /// Its first sector.
    pub sector: u32,
    /// Its sectors; of an erase, those that were written.
    pub sectors: u32,
    /// What it is for.
    pub cause: Cause,
    /// When it was submitted.
    pub submitted: Nanos,
    /// When it completes by what was reported at its submission, and how.
    pub done: Nanos,
    /// How it ends.
    pub status: Status,
}

/// What a command takes for a while.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resource {
    /// A parallel unit.
    Unit(u32),
    /// A channel.
    Channel(u32),
    /// The host's link.
    Pcie,
}

/// A span for which a command took a resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// Number of the command, counted since the log began.
    pub command: u64,
    /// What it took.
    pub on: Resource,
    /// From when.
    pub start: Nanos,
    /// Until when.
    pub end: Nanos,
}

/// Commands and spans since they were last taken.
#[derive(Clone, Default, Debug)]
pub struct Log {
    /// Commands, in order of submission.
    pub commands: Vec<Command>,
    /// Spans. A unit's come in order, but not those of different units.
    pub spans: Vec<Span>,
    /// Commands and spans that still find room; what comes after is dropped.
    room: usize,
    /// Number of the next command.
    next: u64,
}

impl Log {
    pub(crate) fn new(room: usize) -> Self {
        Self { room, ..Self::default() }
    }

    /// Whether anything may have been dropped.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.room == 0
    }

    /// What was logged; goes on with so much room.
    pub(crate) fn take(&mut self, room: usize) -> Self {
        let rest = Self { room, next: self.next, ..Self::default() };
        std::mem::replace(self, rest)
    }

    /// Number of the command whose time is being reserved.
    pub(super) fn number(log: &Option<Box<Self>>) -> Option<u64> {
        log.as_ref().map(|log| log.next)
    }

    /// Notes a span of a command that the log knows, if it is one.
    #[inline]
    pub(super) fn note(
        log: &mut Option<Box<Self>>,
        command: Option<u64>,
        on: Resource,
        (start, end): (u64, u64),
    ) {
        if let (Some(log), Some(command)) = (log, command)
            && start < end
            && log.fits()
        {
            log.spans.push(Span { command, on, start: Nanos(start), end: Nanos(end) });
        }
    }

    /// Notes the command whose time was reserved last.
    pub(crate) fn command(&mut self, command: Command) {
        self.next += 1;
        if self.fits() {
            self.commands.push(command);
        }
    }

    fn fits(&mut self) -> bool {
        let fits = self.room > 0;
        self.room -= usize::from(fits);
        fits
    }
}
