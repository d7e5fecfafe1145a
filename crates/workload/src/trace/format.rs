//! The formats, and which of them a file is in.

use super::blktrace::{Events, is_blktrace};
use super::line::Line;
use super::{alibaba, blkparse, disksim, iolog, msr, spc, systor, tencent};
use blkparse::Stage;
use nandscape_rt::Nanos;
use std::fmt;

/// How a trace is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// fio's I/O log, version 2.
    FioV2,
    /// fio's I/O log, version 3.
    FioV3,
    /// What blkparse prints.
    Blkparse,
    /// What blktrace writes, which is binary.
    Blktrace,
    /// The CSV of the MSR Cambridge traces.
    Msr,
    /// The CSV of Alibaba's block traces.
    Alibaba,
    /// The CSV of Tencent's traces of cloud block storage.
    Tencent,
    /// The CSV of the traces of SYSTOR '17.
    Systor17,
    /// The format of the Storage Performance Council, as in the UMass Trace Repository.
    Spc,
    /// DiskSim's ASCII, which MQSim reads too.
    DiskSim,
}

/// Formats that are recognised by a line: no line is of two of them.
const BY_LINE: [Format; 7] = [
    Format::Blkparse,
    Format::Msr,
    Format::Alibaba,
    Format::Tencent,
    Format::Systor17,
    Format::Spc,
    Format::DiskSim,
];

impl Format {
    /// Every format.
    pub const ALL: [Self; 10] = [
        Self::FioV2,
        Self::FioV3,
        Self::Blkparse,
        Self::Blktrace,
        Self::Msr,
        Self::Alibaba,
        Self::Tencent,
        Self::Systor17,
        Self::Spc,
        Self::DiskSim,
    ];

    /// What it is called.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::FioV2 => "fio-v2",
            Self::FioV3 => "fio-v3",
            Self::Blkparse => "blkparse",
            Self::Blktrace => "blktrace",
            Self::Msr => "msr",
            Self::Alibaba => "alibaba",
            Self::Tencent => "tencent",
            Self::Systor17 => "systor17",
            Self::Spc => "spc",
            Self::DiskSim => "disksim",
        }
    }

    /// What it is.
    #[must_use]
    pub const fn description(self) -> &'static str {
        match self {
            Self::FioV2 => "fio's I/O log, version 2",
            Self::FioV3 => "fio's I/O log, version 3",
            Self::Blkparse => "Text of blkparse",
            Self::Blktrace => "Binary files of blktrace, one or those of all CPUs",
            Self::Msr => "CSV of the MSR Cambridge traces",
            Self::Alibaba => "CSV of Alibaba's block traces",
            Self::Tencent => "CSV of Tencent's cloud block storage traces",
            Self::Systor17 => "CSV of the SYSTOR '17 traces",
            Self::Spc => "SPC traces, as in the UMass Trace Repository",
            Self::DiskSim => "ASCII of DiskSim, also MQSim's",
        }
    }

    /// The format of a file that begins like `head`: blktrace's and fio's by their first bytes, any other
    /// by the first line that one of them can read.
    #[must_use]
    pub fn recognise(head: &[u8]) -> Option<Self> {
        if is_blktrace(head) {
            return Some(Self::Blktrace);
        }
        let text = String::from_utf8_lossy(head);
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty()).peekable();
        let first = lines.peek()?;
        match iolog::HEADERS.iter().position(|header| header == first) {
            Some(0) => return Some(Self::FioV2),
            Some(_) => return Some(Self::FioV3),
            None => {}
        }
        let mut parsers = BY_LINE.map(|format| (format, format.parser(head)));
        lines.find_map(|line| {
            let mut parsers = parsers.iter_mut();
            parsers.find_map(|(format, parser)| parser.line(line).is_ok().then_some(*format))
        })
    }

    /// The parser for a file that begins like `head`.
    pub(super) fn parser(self, head: &[u8]) -> Parser {
        match self {
            Self::FioV2 => Parser::FioV2 { clock: Nanos::ZERO },
            Self::FioV3 => Parser::Plain(iolog::version_3),
            Self::Blkparse => Parser::Blkparse(Stage::of(&String::from_utf8_lossy(head))),
            Self::Blktrace => Parser::Blktrace(Events::of(head)),
            Self::Msr => Parser::Plain(msr::line),
            Self::Alibaba => Parser::Plain(alibaba::line),
            Self::Tencent => Parser::Plain(tencent::line),
            Self::Systor17 => Parser::Plain(systor::line),
            Self::Spc => Parser::Plain(spc::line),
            Self::DiskSim => Parser::Plain(disksim::line),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A format with what it remembers from line to line.
#[derive(Clone, Debug)]
pub(super) enum Parser {
    FioV2 {
        clock: Nanos,
    },
    Blkparse(Stage),
    /// Events, which are no lines.
    Blktrace(Events),
    /// Each line is read by itself.
    Plain(fn(&str) -> Result<Line<'_>, String>),
}

impl Parser {
    /// What a line that is not empty holds.
    pub(super) fn line<'a>(&'a mut self, line: &'a str) -> Result<Line<'a>, String> {
        match self {
            Self::FioV2 { clock } => iolog::version_2(line, clock),
            Self::Blkparse(stage) => blkparse::line(line, *stage),
            Self::Blktrace(events) => events.event(line.as_bytes()),
            Self::Plain(parse) => parse(line),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// What columns of the formats hold, each kind once.
    const VALUES: [&str; 6] = ["1", "4096", "1.5", "R", "Read", "src1"];

    /// No line of CSV is of two formats, whatever its columns hold, so that none needs to be guessed; and each
    /// format has lines.
    #[test]
    fn a_line_is_of_one_format_at_most() {
        let kinds = VALUES.len();
        let mut seen = BTreeSet::new();
        for columns in 4..=6_u32 {
            for number in 0..kinds.pow(columns) {
                let column = |column| VALUES[number / kinds.pow(column) % kinds];
                let line = (0..columns).map(column).collect::<Vec<_>>().join(",");
                let is_read = |format: &Format| format.parser(&[]).line(&line).is_ok();
                let formats: Vec<Format> = BY_LINE.into_iter().filter(is_read).collect();
                assert!(formats.len() <= 1, "{line}: {formats:?}");
                seen.extend(formats.into_iter().map(Format::name));
            }
        }
        assert!(seen.into_iter().eq(["alibaba", "msr", "spc", "systor17", "tencent"]));
    }
}
