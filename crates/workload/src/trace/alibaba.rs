//! Alibaba's block traces (github.com/alibaba/block-traces; Li et al., "An In-Depth Analysis of Cloud Block
//! Storage Workloads in Large-Scale Production", IISWC 2020): `device_id,opcode,offset,length,timestamp`.
//! Offset and length are bytes, times are microseconds of Unix time, and the opcode is R or W.

use super::fields::{columns, end, field, is_header, letter, number, time};
use super::line::{Line, Request};
use super::record::Record;
use nandscape_rt::Nanos;

/// The columns; the published file has no such line.
const HEADER: &str = "device_id,opcode,offset,length,timestamp";

/// A line.
pub(super) fn line(line: &str) -> Result<Line<'_>, String> {
    if is_header(line, HEADER) {
        return Ok(Line::Header);
    }
    let mut fields = columns(line);
    let device = field(&mut fields, "device_id")?;
    let _: u64 = number(device, "device_id")?;
    let direction = letter(field(&mut fields, "opcode")?, "opcode")?;
    let offset = number(field(&mut fields, "offset")?, "offset")?;
    let length = number(field(&mut fields, "length")?, "length")?;
    let at = time(field(&mut fields, "timestamp")?, Nanos::from_us(1))?;
    end(&mut fields)?;
    Ok(Line::Request(Request { device, record: Record::io(at, direction, offset, length)? }))
}
