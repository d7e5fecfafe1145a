//! The event log of a violation: what happened to the sector or the file at fault, typed, and as a line for people.

use crate::calls::{Call, FileRef};
use crate::request::Request;
use nandscape_block::{BlockError, Lba, SectorData, Tag};
use nandscape_rt::Nanos;
use std::fmt;

/// Low bits of a tag: the object that the content was written for. Above are those of the write's number.
pub(crate) const OBJECT_BITS: u32 = 32;

/// Lines of the story of a minimised run.
const STORY_LINES_MAX: usize = 30;

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
    /// A call of a campaign on files was made.
    Call(Call),
    /// A sync returned without an error.
    Returned(Call),
    /// A call was refused, as there is no space for it.
    NoSpace,
}

/// The events as lines: runs of writes to a file that go on in equal steps are one line, and so are requests that
/// complete together.
#[must_use]
pub fn lines(events: &[LogEvent]) -> Vec<String> {
    let (mut lines, mut rest) = (Vec::new(), events);
    while let Some(first) = rest.first() {
        let together: Vec<String> = rest.iter().map_while(|it| completed_with(first, it)).collect();
        if together.len() > 1 {
            lines.push(timed(first.at, &(together.join(", ") + " completed OK")));
            rest = &rest[together.len()..];
            continue;
        }
        let further = match rest.windows(3).take_while(|three| goes_on(three)).count() {
            0 => 0,
            windows => windows + 1,
        };
        lines.push(match file_write(&rest[further]) {
            Some((_, last, _)) if further > 0 => {
                format!("{first}; {further} more up to offset {last}")
            }
            _ => first.to_string(),
        });
        rest = &rest[further + 1..];
    }
    lines
}

/// The calls on files as a case of call sequences, in directories that are made first. Of several power cuts the last one
/// is that of the case.
pub(crate) fn as_case(dirs: impl Iterator<Item = String>, events: &[LogEvent]) -> Vec<String> {
    let mut case: Vec<String> = dirs.map(|dir| Call::Mkdir(dir).to_string()).collect();
    let is_cut = |event: &LogEvent| event.what == EventKind::PowerCut;
    let last_cut = events.iter().rposition(is_cut);
    for (index, event) in events.iter().enumerate() {
        match &event.what {
            EventKind::Call(call) => case.push(call.to_string()),
            EventKind::PowerCut if Some(index) == last_cut => case.push("CUT".to_owned()),
            EventKind::PowerCut | EventKind::PowerCutInRecovery | EventKind::NoSpace => {
                case.push(format!("# {}", event.what));
            }
            _ => {}
        }
    }
    case
}

/// The last of the events that are a story of a minimised run: so many that they are no more than its lines.
#[must_use]
pub(crate) fn story(events: &[LogEvent]) -> &[LogEvent] {
    let mut from = events.len();
    while from > 0 && lines(&events[from - 1..]).len() <= STORY_LINES_MAX {
        from -= 1;
    }
    &events[from..]
}

/// The request of an event, if it completed without an error, at the same instant as that of the first.
fn completed_with(first: &LogEvent, event: &LogEvent) -> Option<String> {
    match &event.what {
        EventKind::Completed(number, request, Ok(None)) if event.at == first.at => {
            Some(format!("{} #{number}", request.name()))
        }
        _ => None,
    }
}

/// Of a write to a file: the file, the offset, and what is the same in a run of writes.
fn file_write(event: &LogEvent) -> Option<(&FileRef, u64, (u64, bool))> {
    match &event.what {
        EventKind::Call(Call::Write { file, offset, length, direct, .. }) => {
            Some((file, *offset, (*length, *direct)))
        }
        _ => None,
    }
}

/// Whether three writes are of one kind, in equal steps.
fn goes_on(events: &[LogEvent]) -> bool {
    let [Some(a), Some(b), Some(c)] = [0, 1, 2].map(|at| events.get(at).and_then(file_write))
    else {
        return false;
    };
    (a.0, a.2) == (b.0, b.2)
        && (b.0, b.2) == (c.0, c.2)
        && b.1.wrapping_sub(a.1) == c.1.wrapping_sub(b.1)
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
        f.write_str(&timed(self.at, &self.what))
    }
}

/// Something with its time before it.
fn timed(at: Nanos, what: &dyn fmt::Display) -> String {
    format!("t={:<9} {what}", spaced(at))
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
            Self::Call(call) => write!(f, "{call}"),
            Self::Returned(call) => write!(f, "{call} completed OK"),
            Self::NoSpace => f.write_str("no space"),
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
    use crate::calls;
    use crate::request::Sender;
    use nandscape_block::{Flags, FlushScope, Owner};

    /// A run of writes is one line, and what is between two runs is kept.
    #[test]
    fn runs_of_writes_are_one_line() {
        let event = |what| LogEvent { at: Nanos(1_000), what };
        let write = |name: &str, offset| {
            let file = FileRef::Path(name.to_owned());
            let (length, direct, content) = (4_096, true, calls::Content::Tag(10));
            event(EventKind::Call(Call::Write { file, offset, length, content, direct }))
        };
        let call = || event(EventKind::Call(Call::Fsync(FileRef::Path("f".to_owned()))));
        let steps = |n: u64| (0..n).map(|i| write("f", 100 + 8_192 * i)).collect::<Vec<_>>();
        let first = "t=1.0 us    write f 100 4096 tag:a direct";
        let fsync = "t=1.0 us    fsync f";
        let run = format!("{first}; 3 more up to offset 24676");
        assert_eq!(lines(&[steps(4), vec![call()]].concat()), [&run, fsync]);
        assert_eq!(lines(&[vec![call()], steps(4)].concat()), [fsync, &run]);
        assert_eq!(lines(&[steps(1), vec![call()], steps(1)].concat()), [first, fsync, first]);
        assert_eq!(lines(&steps(2)).len(), 2);
        assert_eq!(lines(&[steps(3), vec![write("f", 0), write("g", 8)]].concat()).len(), 3);
        assert!(lines(&[]).is_empty());
        // The last 30 lines, of which one is four writes.
        let many = [vec![call(); 40], steps(4)].concat();
        assert_eq!((story(&many).len(), story(&many[..40]).len()), (33, 30));
    }

    /// Requests that complete together are one line; what a read returned, errors and other instants are not.
    #[test]
    fn requests_that_complete_together_are_one_line() {
        let event = |at, what| LogEvent { at: Nanos(at), what };
        let write = |at, number| {
            event(at, EventKind::Completed(number, Request::Flush(Sender::ANONYMOUS), Ok(None)))
        };
        let read = Request::Read(Lba(8), 1);
        let read = event(5, EventKind::Completed(9, read, Ok(Some((Lba(8), Content::Zeroes)))));
        let all = [write(5, 1), write(5, 2), write(6, 3), write(5, 4), read.clone(), write(5, 5)];
        let together = "t=5 ns      flush #1, flush #2 completed OK";
        let alone = |it: &LogEvent| it.to_string();
        let expected = [together.to_owned()].into_iter().chain(all[2..].iter().map(alone));
        assert_eq!(lines(&all), expected.collect::<Vec<_>>());
    }

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
