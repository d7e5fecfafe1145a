//! fio's I/O logs, versions 2 and 3 (fio's manual, "Trace file format"; axboe/fio, iolog.c).

use super::fields::{end, field, number, time};
use super::line::{Line, Request};
use super::record::Record;
use crate::direction::Direction;
use nandscape_rt::Nanos;

/// The first lines.
pub(super) const HEADERS: [&str; 2] = ["fio version 2 iolog", "fio version 3 iolog"];

/// A line of version 2; `clock` is the sum of the waits so far, which are in microseconds.
pub(super) fn version_2<'a>(line: &'a str, clock: &mut Nanos) -> Result<Line<'a>, String> {
    if HEADERS.contains(&line) {
        return Ok(Line::Header);
    }
    let mut fields = line.split_ascii_whitespace();
    let device = field(&mut fields, "file name")?;
    let action = field(&mut fields, "action")?;
    if action != "wait" {
        return behind_time(*clock, device, action, fields);
    }
    let wait = time(field(&mut fields, "wait")?, Nanos::from_us(1))?;
    // fio writes a length behind each wait, but none is needed.
    fields.next();
    end(&mut fields)?;
    *clock = clock.saturating_add(wait);
    Ok(Line::Nothing)
}

/// A line of version 3: a time in microseconds, and then as in version 2, but without waits.
pub(super) fn version_3(line: &str) -> Result<Line<'_>, String> {
    if HEADERS.contains(&line) {
        return Ok(Line::Header);
    }
    let mut fields = line.split_ascii_whitespace();
    let at = time(field(&mut fields, "time")?, Nanos::from_us(1))?;
    let device = field(&mut fields, "file name")?;
    let action = field(&mut fields, "action")?;
    behind_time(at, device, action, fields)
}

/// What both versions have in common.
fn behind_time<'a>(
    at: Nanos,
    device: &'a str,
    action: &str,
    mut fields: impl Iterator<Item = &'a str>,
) -> Result<Line<'a>, String> {
    if matches!(action, "add" | "open" | "close" | "unlink") {
        end(&mut fields)?;
        return Ok(Line::Nothing);
    }
    let direction = match action {
        "read" => Some(Direction::Read),
        "write" => Some(Direction::Write),
        "trim" => Some(Direction::Trim),
        "sync" | "datasync" => None,
        _ => return Err(format!("unknown action {action:?}")),
    };
    let offset: u64 = number(field(&mut fields, "offset")?, "offset")?;
    let length: u64 = number(field(&mut fields, "length")?, "length")?;
    end(&mut fields)?;
    let record = match direction {
        Some(direction) => Record::io(at, direction, offset, length)?,
        None => Record::flush(at),
    };
    Ok(Line::Request(Request { device, record }))
}
