//! Tencent's traces of cloud block storage (SNIA IOTTA, README of the distribution; Zhang et al., "OSCA",
//! USENIX ATC 2020): `Timestamp,Offset,Size,IOType,VolumeID`. Times are seconds of Unix time, offset and
//! size are sectors of 512 bytes, and the type is 0 for a read and 1 for a write.

use super::fields::{columns, decimal_time, end, field, is_header, number, sectors};
use super::line::{Line, Request};
use super::record::Record;
use crate::direction::Direction;
use nandscape_rt::Nanos;

/// The columns; the published files have no such line.
const HEADER: &str = "Timestamp,Offset,Size,IOType,VolumeID";

/// A line.
pub(super) fn line(line: &str) -> Result<Line<'_>, String> {
    if is_header(line, HEADER) {
        return Ok(Line::Header);
    }
    let mut fields = columns(line);
    let at = decimal_time(field(&mut fields, "Timestamp")?, Nanos::from_secs(1))?;
    let offset = sectors(field(&mut fields, "Offset")?, "Offset")?;
    let size = sectors(field(&mut fields, "Size")?, "Size")?;
    let direction = match field(&mut fields, "IOType")? {
        "0" => Direction::Read,
        "1" => Direction::Write,
        other => return Err(format!("IOType {other:?} is neither 0 nor 1")),
    };
    let device = field(&mut fields, "VolumeID")?;
    let _: u64 = number(device, "VolumeID")?;
    end(&mut fields)?;
    Ok(Line::Request(Request { device, record: Record::io(at, direction, offset, size)? }))
}
