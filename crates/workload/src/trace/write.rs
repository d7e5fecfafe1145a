//! Requests in, a trace out, in a format that other tools read.
//!
//! Formats hold less than a request does: fio's logs have whole microseconds and no flags, MSR Cambridge's
//! 100 ns, no trims and no flushes, blkparse's text sectors of 512 bytes. What a format has no line for is
//! left out and counted.

use super::format::Format;
use super::record::{Action, Record};
use crate::direction::Direction;
use nandscape_block::Flags;
use nandscape_rt::Nanos;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Bytes of the sectors that blkparse counts in.
const DISK_SECTOR_BYTES: u64 = 512;

/// The formats that can be written.
pub const WRITABLE: [Format; 4] = [Format::FioV3, Format::FioV2, Format::Blkparse, Format::Msr];

/// What the format could not hold.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LeftOut {
    /// Requests that the format has no line for.
    pub requests: u64,
    /// Requests that were rounded out to sectors of 512 bytes.
    pub rounded: u64,
}

/// A trace that is being written.
#[derive(Debug)]
pub struct TraceWriter<W> {
    out: W,
    format: Format,
    /// Devices so far, and what the format calls them.
    names: BTreeMap<Box<str>, Box<str>>,
    latest: Nanos,
    lines: u64,
    left_out: LeftOut,
}

impl<W: Write> TraceWriter<W> {
    /// The beginning of a trace in one of [`WRITABLE`]; any other is written as fio's version 3.
    ///
    /// # Errors
    /// What `out` fails with.
    pub fn new(mut out: W, format: Format) -> io::Result<Self> {
        let format = if WRITABLE.contains(&format) { format } else { Format::FioV3 };
        match format {
            Format::FioV2 => writeln!(out, "fio version 2 iolog")?,
            Format::FioV3 => writeln!(out, "fio version 3 iolog")?,
            _ => {}
        }
        let (names, latest) = (BTreeMap::new(), Nanos::ZERO);
        Ok(Self { out, format, names, latest, lines: 0, left_out: LeftOut::default() })
    }

    /// Writes a request for a device of this name, not before the one before.
    ///
    /// # Errors
    /// What the output fails with.
    pub fn push(&mut self, record: &Record, device: &str) -> io::Result<()> {
        let name = match self.names.get(device) {
            Some(name) => name.clone(),
            None => self.add(device)?,
        };
        match self.format {
            Format::Blkparse => self.blkparse(record, &name)?,
            Format::Msr => self.msr(record, &name)?,
            _ => self.fio(record, &name)?,
        }
        self.latest = self.latest.max(record.at);
        self.lines += 1;
        Ok(())
    }

    /// Writes the end; what was left out.
    ///
    /// # Errors
    /// What the output fails with.
    pub fn finish(mut self) -> io::Result<LeftOut> {
        let at = self.latest;
        if self.is_fio() {
            for name in std::mem::take(&mut self.names).values() {
                self.fio_line(at, name, "close")?;
            }
        }
        self.out.flush()?;
        Ok(self.left_out)
    }

    const fn is_fio(&self) -> bool {
        matches!(self.format, Format::FioV2 | Format::FioV3)
    }

    /// The first request of a device: what the format calls it.
    fn add(&mut self, device: &str) -> io::Result<Box<str>> {
        let name: Box<str> = self.name(device).into();
        if self.is_fio() {
            self.fio_line(self.latest, &name, "add")?;
            self.fio_line(self.latest, &name, "open")?;
        }
        self.names.insert(device.into(), name.clone());
        Ok(name)
    }

    /// A name that the format can hold.
    fn name(&self, device: &str) -> String {
        let is_number = |text: &str| text.parse::<u32>().is_ok();
        let parts: Vec<&str> = device.split(',').collect();
        match (self.format, &parts[..]) {
            (Format::Blkparse, [major, minor]) if is_number(major) && is_number(minor) => {
                device.to_owned()
            }
            // Block devices with dynamic numbers have this major number.
            (Format::Blkparse, [minor]) if is_number(minor) => format!("259,{minor}"),
            (Format::Blkparse, _) => {
                let known = self.names.len();
                format!("259,{known}")
            }
            (Format::Msr, [_, disk]) if is_number(disk) => device.to_owned(),
            (Format::Msr, [disk]) if is_number(disk) => format!("host,{disk}"),
            (Format::Msr, _) => format!("{},0", device.replace(',', "_")),
            _ => device.split_whitespace().collect::<Vec<_>>().join("_"),
        }
    }

    fn fio(&mut self, record: &Record, device: &str) -> io::Result<()> {
        let us = |at: Nanos| at.0 / 1_000;
        let wait = us(record.at).saturating_sub(us(self.latest));
        if self.format == Format::FioV2 && wait > 0 {
            writeln!(self.out, "{device} wait {wait} 0")?;
        }
        let (offset, length) = (record.offset_bytes, record.length_bytes);
        let request = format!("{} {offset} {length}", record.action.name());
        self.fio_line(record.at, device, &request)
    }

    fn fio_line(&mut self, at: Nanos, device: &str, what: &str) -> io::Result<()> {
        match self.format {
            Format::FioV2 => writeln!(self.out, "{device} {what}"),
            _ => writeln!(self.out, "{} {device} {what}", at.0 / 1_000),
        }
    }

    fn msr(&mut self, record: &Record, device: &str) -> io::Result<()> {
        let kind = match record.action {
            Action::Io(Direction::Read) => "Read",
            Action::Io(Direction::Write) => "Write",
            Action::Io(Direction::Trim) | Action::Flush => {
                self.left_out.requests += 1;
                return Ok(());
            }
        };
        let (ticks, offset, size) = (record.at.0 / 100, record.offset_bytes, record.length_bytes);
        writeln!(self.out, "{ticks},{device},{kind},{offset},{size},0")
    }

    fn blkparse(&mut self, record: &Record, device: &str) -> io::Result<()> {
        let (seconds, ns) = (record.at.0 / 1_000_000_000, record.at.0 % 1_000_000_000);
        let rwbs = rwbs(record);
        let line = self.lines + 1;
        write!(self.out, "{device} 0 {line} {seconds}.{ns:09} 0 Q {rwbs} ")?;
        if record.action != Action::Flush {
            let (start, end) = (record.offset_bytes, record.offset_bytes + record.length_bytes);
            let (sector, after) = (start / DISK_SECTOR_BYTES, end.div_ceil(DISK_SECTOR_BYTES));
            let is_whole = [start, end].iter().all(|at| at.is_multiple_of(DISK_SECTOR_BYTES));
            self.left_out.rounded += u64::from(!is_whole);
            write!(self.out, "{sector} + {} ", after - sector)?;
        }
        writeln!(self.out, "[nandscape]")
    }
}

/// What a request asks for, as blkparse says it.
fn rwbs(record: &Record) -> String {
    let is = |flag: Flags| record.flags.has(flag);
    let direction = match record.action {
        Action::Io(Direction::Read) => 'R',
        Action::Io(Direction::Write) => 'W',
        Action::Io(Direction::Trim) => 'D',
        Action::Flush => return "FWS".to_owned(),
    };
    let before = is(Flags::PREFLUSH).then_some('F');
    let marks = [(Flags::FUA, 'F'), (Flags::SYNC, 'S'), (Flags::META, 'M')];
    let after = marks.into_iter().filter(|(flag, _)| is(*flag)).map(|(_, mark)| mark);
    before.into_iter().chain([direction]).chain(after).collect()
}
