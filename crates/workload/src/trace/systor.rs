//! The traces of SYSTOR '17 (SNIA IOTTA, README of the distribution; Lee et al., "Understanding storage traffic
//! characteristics on enterprise virtual desktop infrastructure", SYSTOR 2017):
//! `Timestamp,Response,IOType,LUN,Offset,Size`. Times are seconds of Unix time with a fraction, offset and
//! size are bytes, and the type is R, W, or nothing for a request of which no answer was seen.

use super::fields::{columns, decimal_time, end, field, is_header, letter, number};
use super::line::{Line, Request};
use super::record::Record;
use nandscape_rt::Nanos;

/// The first line of each file.
const HEADER: &str = "Timestamp,Response,IOType,LUN,Offset,Size";

/// A line.
pub(super) fn line(line: &str) -> Result<Line<'_>, String> {
    if is_header(line, HEADER) {
        return Ok(Line::Header);
    }
    let mut fields = columns(line);
    let at = decimal_time(field(&mut fields, "Timestamp")?, Nanos::from_secs(1))?;
    field(&mut fields, "Response")?;
    let direction = match field(&mut fields, "IOType")? {
        "" => None,
        known => Some(letter(known, "IOType")?),
    };
    let device = field(&mut fields, "LUN")?;
    let _: u32 = number(device, "LUN")?;
    let offset = number(field(&mut fields, "Offset")?, "Offset")?;
    let size = number(field(&mut fields, "Size")?, "Size")?;
    end(&mut fields)?;
    let Some(direction) = direction else { return Ok(Line::Nothing) };
    Ok(Line::Request(Request { device, record: Record::io(at, direction, offset, size)? }))
}
