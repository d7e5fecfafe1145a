//! The event log of a violation: what happened to the sector or the file at fault, typed, and as a line for people.

use crate::device::request::Request;
use nandscape_block::{BlockError, Lba, SectorData, Tag};
use nandscape_rt::Nanos;
use std::fmt;

/// Low bits of a tag: the object that the content was written for. Above are those of the write's number.
pub(crate) const OBJECT_BITS: u32 = 32;

/// One event of a log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogEvent {
    /// When it happened, in virtual time.
    pub at: Nanos,
    /// What happened.
    pub what: EventKind,
}

/// What happened. Requests have the number that the model gave them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EventKind {
    /// A request was submitted.
    Submitted(u64, Request),
    /// A request completed, without an error or with this one. A read returned this at the sector that is watched.
    Completed(u64, Request, Result<Option<(Lba, Content)>, BlockError>),
    /// Power was cut.
    PowerCut,
    /// Power was cut again before recovery had ended.
    PowerCutInRecovery,
    /// A write with PREFLUSH survived a power cut: what it covers must have, too.
    PreflushSurvived(u64),
    /// A call of a campaign on files, or its end.
    Call(String),
}

/// What a sector holds, by the tag that names the write and the object that it is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Content {
    /// Zeroes: never written, or discarded.
    Zeroes,
    /// The data of this write.
    Write(u64),
    /// The data of this write for another object.
    Misplaced(u64, u64),
    /// Nothing.
    Absent,
    /// Bytes of no write, or of several.
    Torn,
}

impl Content {
    /// What `data` is at this object.
    #[must_use]
    pub fn of(data: &SectorData, object: u64) -> Self {
        let tag = match data {
            SectorData::Tag(tag) => *tag,
            SectorData::Absent => return Self::Absent,
            data if *data == SectorData::Tag(Tag::ZERO) => Tag::ZERO,
            _ => return Self::Torn,
        };
        let (write, owner) = (tag.bits() >> OBJECT_BITS, tag.bits() & ((1 << OBJECT_BITS) - 1));
        match (tag == Tag::ZERO, owner == object) {
            (true, _) => Self::Zeroes,
            (_, true) => Self::Write(write),
            (_, false) => Self::Misplaced(write, owner),
        }
    }
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zeroes => f.write_str("zeroes"),
            Self::Write(write) => write!(f, "data of write #{write}"),
            Self::Misplaced(write, object) => {
                write!(f, "data of another LBA (write #{write}, sector {object})")
            }
            Self::Absent => f.write_str("no content"),
            Self::Torn => f.write_str("torn sector: matches no write"),
        }
    }
}

impl fmt::Display for LogEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "t={:<9} {}", spaced(self.at), self.what)
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Submitted(number, request) => {
                write!(f, "{} #{number}{}", request.name(), request.details())
            }
            Self::Completed(number, request, Ok(read)) => {
                write!(f, "{} #{number} completed OK", request.name())?;
                read.map_or(Ok(()), |(lba, content)| write!(f, "; {lba}: {content}"))
            }
            Self::Completed(number, request, Err(error)) => {
                write!(f, "{} #{number} failed: {error}", request.name())
            }
            Self::PowerCut => f.write_str("power cut"),
            Self::PowerCutInRecovery => f.write_str("power cut in recovery"),
            Self::PreflushSurvived(number) => {
                write!(f, "write #{number} (preflush) survived, and so must what it covers")
            }
            Self::Call(call) => f.write_str(call),
        }
    }
}

/// A time with a space before its unit.
fn spaced(at: Nanos) -> String {
    let text = at.to_string();
    let unit = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    format!("{} {}", &text[..unit], &text[unit..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::request::Sender;
    use nandscape_block::{Flags, FlushScope, Owner};

    /// Events are lines in the words of the field: ranges, decoded flags, numbers of requests, errors in words.
    #[test]
    fn events_are_lines_for_people() {
        let owner = Owner { file: 3, generation: 2, thread: 0, core: 0 };
        let sender = Sender { owner: Some(owner), scope: FlushScope::Owner };
        let write = Request::Write(Lba(272), 32, Flags::FUA | Flags::PREFLUSH, sender);
        let read = Request::Read(Lba(8), 1);
        let tag =
            |write: u64, object: u64| SectorData::Tag(Tag::new(write << OBJECT_BITS | object));
        let lost = BlockError::Io { lba: Lba(8), what: "uncorrectable" };
        let cases = [
            (
                EventKind::Submitted(296, write),
                "write #296 lba 272..303 (fua, preflush of file 3, file 3, generation 2)",
            ),
            (EventKind::Completed(296, write, Ok(None)), "write #296 completed OK"),
            (EventKind::Submitted(7, Request::Flush(Sender::ANONYMOUS)), "flush #7"),
            (EventKind::Submitted(8, read), "read #8 lba 8"),
            (
                EventKind::Completed(8, read, Ok(Some((Lba(8), Content::of(&tag(5, 8), 8))))),
                "read #8 completed OK; lba 8: data of write #5",
            ),
            (
                EventKind::Completed(8, read, Ok(Some((Lba(8), Content::of(&tag(5, 9), 8))))),
                "read #8 completed OK; lba 8: data of another LBA (write #5, sector 9)",
            ),
            (
                EventKind::Completed(8, read, Err(lost)),
                "read #8 failed: I/O error at lba 8: uncorrectable",
            ),
        ];
        for (what, line) in cases {
            let event = LogEvent { at: Nanos(1_550_000_000), what };
            assert_eq!(event.to_string(), format!("t=1.55 s    {line}"));
        }
    }
}
