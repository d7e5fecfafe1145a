//! DiskSim's ASCII traces (DiskSim 4.0 Reference Manual, "The ascii format"): arrival time, device
//! number, block number, size in blocks, flags, of which bit 0 is set for reads. MQSim reads the same
//! lines. DiskSim writes times in milliseconds, with a point; MQSim takes nanoseconds, without one.

use super::fields::{decimal_time, end, field, number, sectors, time};
use super::line::{Line, Request};
use super::record::Record;
use crate::direction::Direction;
use nandscape_rt::Nanos;

/// The bit of the flags that stands for a read.
const READ: u32 = 1;

/// A line.
pub(super) fn line(line: &str) -> Result<Line<'_>, String> {
    let mut fields = line.split_ascii_whitespace();
    let at = match field(&mut fields, "time")? {
        ms if ms.contains('.') => decimal_time(ms, Nanos::from_ms(1))?,
        ns => time(ns, Nanos(1))?,
    };
    let device = field(&mut fields, "device number")?;
    let _: u32 = number(device, "device number")?;
    let offset = sectors(field(&mut fields, "block number")?, "block number")?;
    let size = sectors(field(&mut fields, "size")?, "size")?;
    let flags = field(&mut fields, "flags")?;
    let flags = u32::from_str_radix(flags.trim_start_matches("0x"), 16)
        .map_err(|error| format!("flags {flags:?}: {error}"))?;
    end(&mut fields)?;
    let direction = if flags & READ == READ { Direction::Read } else { Direction::Write };
    Ok(Line::Request(Request { device, record: Record::io(at, direction, offset, size)? }))
}
