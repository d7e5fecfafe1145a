//! Traces in the format of the Storage Performance Council ("SPC Trace File Format Specification", revision
//! 1.0.1), as in the UMass Trace Repository (Financial, WebSearch): `ASU,LBA,size,opcode,timestamp`, and
//! further fields that are not used. An ASU is a device, the size is bytes, times are seconds from the
//! beginning, and the opcode is R or W. The size of a block is not part of the format: 512 bytes, as there.

use super::fields::{columns, decimal_time, field, letter, number, sectors};
use super::line::{Line, Request};
use super::record::Record;
use nandscape_rt::Nanos;

/// A line.
pub(super) fn line(line: &str) -> Result<Line<'_>, String> {
    let mut fields = columns(line);
    let device = field(&mut fields, "ASU")?;
    let _: u32 = number(device, "ASU")?;
    let offset = sectors(field(&mut fields, "LBA")?, "LBA")?;
    let size = number(field(&mut fields, "size")?, "size")?;
    let direction = letter(field(&mut fields, "opcode")?, "opcode")?;
    let at = decimal_time(field(&mut fields, "timestamp")?, Nanos::from_secs(1))?;
    Ok(Line::Request(Request { device, record: Record::io(at, direction, offset, size)? }))
}
