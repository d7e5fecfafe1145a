//! The formats, and which of them a text is in.

use super::line::Line;
use super::{blkparse, disksim, iolog, msr};
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
    /// The CSV of the MSR Cambridge traces.
    Msr,
    /// DiskSim's ASCII, which MQSim reads too.
    DiskSim,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 5] = [Self::FioV2, Self::FioV3, Self::Blkparse, Self::Msr, Self::DiskSim];

    /// What it is called.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::FioV2 => "fio-v2",
            Self::FioV3 => "fio-v3",
            Self::Blkparse => "blkparse",
            Self::Msr => "msr",
            Self::DiskSim => "disksim",
        }
    }

    /// The format of a text that begins like `head`: fio's by its header, any other by the first
    /// line that only it can read.
    #[must_use]
    pub fn recognise(head: &str) -> Option<Self> {
        let mut lines = head.lines().map(str::trim).filter(|line| !line.is_empty()).peekable();
        let first = lines.peek()?;
        match iolog::HEADERS.iter().position(|header| header == first) {
            Some(0) => return Some(Self::FioV2),
            Some(_) => return Some(Self::FioV3),
            None => {}
        }
        lines.find_map(|line| {
            let mut headless = [Self::Blkparse, Self::Msr, Self::DiskSim].into_iter();
            headless.find(|format| format.parser(head).line(line).is_ok())
        })
    }

    /// The parser for a text that begins like `head`.
    pub(super) fn parser(self, head: &str) -> Parser {
        match self {
            Self::FioV2 => Parser::FioV2 { clock: Nanos::ZERO },
            Self::FioV3 => Parser::FioV3,
            Self::Blkparse => Parser::Blkparse(Stage::of(head)),
            Self::Msr => Parser::Msr,
            Self::DiskSim => Parser::DiskSim,
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
    FioV2 { clock: Nanos },
    FioV3,
    Blkparse(Stage),
    Msr,
    DiskSim,
}

impl Parser {
    /// What a line that is not empty holds.
    pub(super) fn line<'a>(&mut self, line: &'a str) -> Result<Line<'a>, String> {
        match self {
            Self::FioV2 { .. } | Self::FioV3 if iolog::HEADERS.contains(&line) => Ok(Line::Nothing),
            Self::FioV2 { clock } => iolog::version_2(line, clock),
            Self::FioV3 => iolog::version_3(line),
            Self::Blkparse(stage) => blkparse::line(line, *stage),
            Self::Msr => msr::line(line),
            Self::DiskSim => disksim::line(line),
        }
    }
}
