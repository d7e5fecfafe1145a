//! The binary form that blktrace writes (linux/blktrace_api.h, `struct blk_io_trace`, version 7): events
//! of 48 bytes in the byte order of the machine that was traced, each followed by `pdu_len` bytes that are
//! no block I/O. A file of one CPU (`*.blktrace.N`) is in order of time; those of a device are given
//! together. Requests are taken at the same stage as from [`super::blkparse`]'s text.

use super::blkparse::Stage;
use super::fields::disk_sectors;
use super::line::{Line, Request};
use super::record::Record;
use crate::direction::Direction;
use nandscape_block::Flags;
use nandscape_rt::Nanos;

/// Bytes of an event without what follows it.
pub(super) const EVENT_BYTES: usize = 48;
/// The upper three bytes of the magic number; the lowest is the version.
const MAGIC: u32 = 0x6561_7400;
/// The version that is read.
const VERSION: u32 = 7;

/// Categories: the upper half of an event's action.
mod category {
    pub(super) const WRITE: u32 = 1 << 1;
    pub(super) const FLUSH: u32 = 1 << 2;
    pub(super) const SYNC: u32 = 1 << 3;
    /// A command that is no block I/O.
    pub(super) const PC: u32 = 1 << 9;
    /// The name of a process, a time of day, or a message.
    pub(super) const NOTIFY: u32 = 1 << 10;
    pub(super) const META: u32 = 1 << 12;
    pub(super) const DISCARD: u32 = 1 << 13;
    pub(super) const FUA: u32 = 1 << 15;
}

/// The byte order of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Order {
    Little,
    Big,
}

impl Order {
    /// The byte order of a file that begins like `head`, if it is one of blktrace's.
    fn of(head: &[u8]) -> Option<Self> {
        let magic: [u8; 4] = head.get(..4)?.try_into().ok()?;
        let is_magic = |number: u32| number & !0xff == MAGIC;
        match (is_magic(u32::from_le_bytes(magic)), is_magic(u32::from_be_bytes(magic))) {
            (true, _) => Some(Self::Little),
            (_, true) => Some(Self::Big),
            _ => None,
        }
    }

    /// The whole number of `N` bytes at `at`; the event is long enough.
    fn number<const N: usize>(self, event: &[u8], at: usize) -> u64 {
        let mut bytes = [0; 8];
        bytes[..N].copy_from_slice(&event[at..at + N]);
        match self {
            Self::Little => u64::from_le_bytes(bytes),
            Self::Big => u64::from_be_bytes(bytes) >> (64 - 8 * N as u32),
        }
    }

    fn u32(self, event: &[u8], at: usize) -> u32 {
        self.number::<4>(event, at) as u32
    }
}

/// Whether a file that begins like `head` is one of blktrace's.
pub(super) fn is_blktrace(head: &[u8]) -> bool {
    Order::of(head).is_some()
}

/// Bytes that follow an event of which this is the beginning.
pub(super) fn pdu_bytes(event: &[u8]) -> u64 {
    match Order::of(event) {
        Some(order) if event.len() == EVENT_BYTES => order.number::<2>(event, 46),
        _ => 0,
    }
}

/// The events of a file.
#[derive(Clone, Debug)]
pub(super) struct Events {
    stage: Stage,
    /// The last device and its name.
    device: (u32, String),
}

impl Events {
    /// The events of a file that begins like `head`.
    pub(super) fn of(head: &[u8]) -> Self {
        let mut rest = head;
        let mut stage = Stage::Issued;
        while let Some(event) = rest.get(..EVENT_BYTES) {
            let Some(order) = Order::of(event) else { break };
            let next = EVENT_BYTES + pdu_bytes(event) as usize;
            if action(order.u32(event, 28)) == Stage::Queued.number() && is_block(order, event) {
                stage = Stage::Queued;
                break;
            }
            rest = rest.get(next..).unwrap_or_default();
        }
        Self { stage, device: (u32::MAX, String::new()) }
    }

    /// What an event holds.
    pub(super) fn event(&mut self, event: &[u8]) -> Result<Line<'_>, String> {
        if event.len() < EVENT_BYTES {
            let bytes = event.len();
            return Err(format!("the event is truncated: {bytes} of {EVENT_BYTES} bytes"));
        }
        let order = Order::of(event).ok_or("the magic number of an event is missing")?;
        let version = order.u32(event, 0) & 0xff;
        if version != VERSION {
            return Err(format!("version {version} of blktrace's format; {VERSION} can be read"));
        }
        let expected = EVENT_BYTES as u64 + order.number::<2>(event, 46);
        if (event.len() as u64) < expected {
            let bytes = event.len();
            return Err(format!("the event is truncated: {bytes} of {expected} bytes"));
        }
        let bits = order.u32(event, 28);
        if !is_block(order, event) || action(bits) != self.stage.number() {
            return Ok(Line::Nothing);
        }
        let Some(record) = record(order, event, bits >> 16)? else { return Ok(Line::Nothing) };
        let device = self.name(order.u32(event, 36));
        Ok(Line::Request(Request { device, record }))
    }

    /// `major,minor`, as blkparse prints it.
    fn name(&mut self, device: u32) -> &str {
        if self.device.0 != device || self.device.1.is_empty() {
            self.device = (device, format!("{},{}", device >> 20, device & 0xf_ffff));
        }
        &self.device.1
    }
}

/// The action, without the mark for a control group.
const fn action(bits: u32) -> u32 {
    bits & 0xff
}

/// Whether an event is of block I/O.
fn is_block(order: Order, event: &[u8]) -> bool {
    (order.u32(event, 28) >> 16) & (category::NOTIFY | category::PC) == 0
}

/// The request of an event with these categories; `None` for a transfer of nothing.
fn record(order: Order, event: &[u8], categories: u32) -> Result<Option<Record>, String> {
    let is = |bit: u32| categories & bit != 0;
    let at = Nanos(order.number::<8>(event, 8));
    let length = u64::from(order.u32(event, 24));
    if length == 0 {
        return Ok(is(category::FLUSH).then(|| Record::flush(at)));
    }
    let offset = disk_sectors(order.number::<8>(event, 16), "sector")?;
    let direction = match (is(category::DISCARD), is(category::WRITE)) {
        (true, _) => Direction::Trim,
        (_, true) => Direction::Write,
        _ => Direction::Read,
    };
    let marks = [
        (category::FLUSH, Flags::PREFLUSH),
        (category::FUA, Flags::FUA),
        (category::SYNC, Flags::SYNC),
        (category::META, Flags::META),
    ];
    let marked = marks.into_iter().filter(|(bit, _)| is(*bit));
    let flags = marked.fold(Flags::NONE, |all, (_, flag)| all | flag);
    Ok(Some(Record { flags, ..Record::io(at, direction, offset, length)? }))
}
