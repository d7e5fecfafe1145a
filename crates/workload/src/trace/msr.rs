//! The CSV of the MSR Cambridge traces (Narayanan et al., "Write Off-Loading", FAST 2008; SNIA IOTTA
//! set 388): `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`. Times are Windows file
//! times, in units of 100 ns; offset and size are bytes.

use super::fields::{columns, end, field, is_header, number, time};
use super::line::{Line, Request};
use super::record::Record;
use crate::direction::Direction;
use nandscape_rt::Nanos;

/// Unit of a Windows file time.
const TICK: Nanos = Nanos(100);

/// The first line of some copies.
pub(super) const HEADER: &str = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime";

/// A line.
pub(super) fn line(line: &str) -> Result<Line<'_>, String> {
    if is_header(line, HEADER) {
        return Ok(Line::Header);
    }
    let mut fields = columns(line);
    let at = time(field(&mut fields, "time")?, TICK)?;
    let device = device(line).ok_or("host or disk number is missing")?;
    let mut fields = fields.skip(2);
    let direction = match field(&mut fields, "type")? {
        read if read.eq_ignore_ascii_case("read") => Direction::Read,
        write if write.eq_ignore_ascii_case("write") => Direction::Write,
        other => return Err(format!("type {other:?} is neither Read nor Write")),
    };
    let offset: u64 = number(field(&mut fields, "offset")?, "offset")?;
    let size: u64 = number(field(&mut fields, "size")?, "size")?;
    if let Some(response) = fields.next() {
        let _: u64 = number(response, "response time")?;
    }
    end(&mut fields)?;
    Ok(Line::Request(Request { device, record: Record::io(at, direction, offset, size)? }))
}

/// Host and disk number, as they stand.
fn device(line: &str) -> Option<&str> {
    let host_at = line.find(',')? + 1;
    let host = &line[host_at..];
    let disk = host.find(',')? + 1;
    let disk_end = host[disk..].find(',')?;
    let name = &host[..disk + disk_end];
    name[disk..].trim().parse::<u32>().is_ok().then_some(name)
}
