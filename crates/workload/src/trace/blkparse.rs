//! The text that blkparse prints by default (blktrace, blkparse.1, "DEFAULT FORMAT"): device, CPU,
//! sequence, time in seconds, process, action, RWBS, then `sector + sectors [command]`.
//!
//! A request passes several stages, each a line. Replayed is the stage where it enters the device's
//! queue (`Q`, as fio does it) or, in traces that were taken without it, where the driver gets it
//! (`D`). The summary that blkparse appends ends the trace.

use super::fields::{decimal_time, field, number, sectors};
use super::line::{Line, Request};
use super::record::Record;
use crate::direction::Direction;
use nandscape_block::Flags;
use nandscape_rt::Nanos;

/// The stage at which requests are taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    Queued,
    Issued,
}

impl Stage {
    /// The stage that a trace with this beginning has.
    pub(super) fn of(head: &str) -> Self {
        let queued = head.lines().any(|line| line.split_ascii_whitespace().nth(5) == Some("Q"));
        if queued { Self::Queued } else { Self::Issued }
    }

    const fn action(self) -> &'static str {
        match self {
            Self::Queued => "Q",
            Self::Issued => "D",
        }
    }

    /// The same as a number of blktrace's binary form.
    pub(super) const fn number(self) -> u32 {
        match self {
            Self::Queued => 1,
            Self::Issued => 7,
        }
    }
}

/// A line.
pub(super) fn line(line: &str, stage: Stage) -> Result<Line<'_>, String> {
    if ["CPU", "Total ("].iter().any(|summary| line.starts_with(summary)) {
        return Ok(Line::End);
    }
    let mut fields = line.split_ascii_whitespace();
    let device = field(&mut fields, "device")?;
    check_device(device)?;
    let _: u32 = number(field(&mut fields, "CPU")?, "CPU")?;
    let _: u64 = number(field(&mut fields, "sequence number")?, "sequence number")?;
    let at = decimal_time(field(&mut fields, "time")?, Nanos::from_secs(1))?;
    let _: u32 = number(field(&mut fields, "process")?, "process")?;
    if field(&mut fields, "action")? != stage.action() {
        return Ok(Line::Nothing);
    }
    let rwbs = field(&mut fields, "RWBS")?;
    let Some(direction) = direction(rwbs) else {
        let flush = rwbs.starts_with('F');
        let record = flush.then(|| Record::flush(at));
        return Ok(record.map_or(Line::Nothing, |record| Line::Request(Request { device, record })));
    };
    let (offset, length) = match extent(fields)? {
        Some(extent) => extent,
        // An empty write that only flushes: blkparse prints no sectors.
        None if rwbs.starts_with('F') => {
            return Ok(Line::Request(Request { device, record: Record::flush(at) }));
        }
        None => return Err("the sectors are missing".to_owned()),
    };
    let record = Record { flags: flags(rwbs), ..Record::io(at, direction, offset, length)? };
    Ok(Line::Request(Request { device, record }))
}

/// `major,minor`.
fn check_device(device: &str) -> Result<(), String> {
    let (major, minor) =
        device.split_once(',').ok_or_else(|| format!("{device:?} is no major,minor"))?;
    let _: u32 = number(major, "major")?;
    let _: u32 = number(minor, "minor")?;
    Ok(())
}

/// `sector + sectors` in bytes; `None` where a command or nothing stands instead.
fn extent<'a>(mut fields: impl Iterator<Item = &'a str>) -> Result<Option<(u64, u64)>, String> {
    let Some(sector) = fields.next().filter(|field| !field.starts_with('[')) else {
        return Ok(None);
    };
    let offset = sectors(sector, "sector")?;
    match field(&mut fields, "+")? {
        "+" => {}
        other => return Err(format!("{other:?} where + was expected")),
    }
    let length = sectors(field(&mut fields, "sectors")?, "sectors")?;
    Ok((length > 0).then_some((offset, length)))
}

/// What RWBS says is transferred; `None` for nothing, and for commands that are no block I/O.
fn direction(rwbs: &str) -> Option<Direction> {
    match rwbs.strip_prefix('F').unwrap_or(rwbs).chars().next()? {
        'R' => Some(Direction::Read),
        'W' => Some(Direction::Write),
        'D' => Some(Direction::Trim),
        _ => None,
    }
}

/// What RWBS says beside the direction. An F before it asks for a flush first, one behind it for FUA.
fn flags(rwbs: &str) -> Flags {
    let before = rwbs.starts_with('F');
    let behind = rwbs.get(1..).is_some_and(|rest| rest.contains('F'));
    let marks = [
        (before, Flags::PREFLUSH),
        (behind, Flags::FUA),
        (rwbs.contains('S'), Flags::SYNC),
        (rwbs.contains('M'), Flags::META),
    ];
    let marked = marks.into_iter().filter(|(is_set, _)| *is_set);
    marked.fold(Flags::NONE, |all, (_, flag)| all | flag)
}
