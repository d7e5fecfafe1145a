//! One file of a trace, line by line: finds out the format and bounds what may be malformed.
//!
//! Memory: the head of the file by which it is recognised, one line, and of blktrace's binary form so many
//! requests that those of all CPUs come in order of time.

use super::blktrace::{EVENT_BYTES, pdu_bytes};
use super::decompress::{Source, check_is_no_archive, decompressed};
use super::devices::Devices;
use super::error::TraceError;
use super::format::{Format, Parser};
use super::line::Line;
use super::record::Record;
use crate::place::Place;
use nandscape_rt::Nanos;
use std::collections::BTreeMap;
use std::io::{self, BufRead, Chain, Cursor, Read};
use std::sync::Arc;

/// Bytes by which a format is recognised.
const HEAD_BYTES: u64 = 64 << 10;
/// Requests of blktrace's binary form among which the earliest is sought: in a stream of all CPUs, the events
/// of each come by the buffer.
const WINDOW_REQUESTS: usize = 1 << 14;
/// Longest line in bytes.
const LINE_BYTES_MAX: u64 = 64 << 10;

/// How a trace is read.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ReadOptions {
    /// The format; recognised by content where none is given.
    pub format: Option<Format>,
    /// Malformed lines of a file that are left out before one is an error.
    pub skip_bad_lines: u64,
}

/// What was read so far.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ReadCounts {
    /// Bytes, after decompression.
    pub bytes: u64,
    /// Lines, or events of a format without lines.
    pub lines: u32,
    /// Requests.
    pub requests: u64,
    /// Malformed lines that were left out.
    pub malformed_lines: u64,
    /// Requests with a time before that of an earlier line; they count as of the same time.
    pub disordered: u64,
}

/// A file.
#[derive(Debug)]
pub(super) struct Input {
    name: Arc<str>,
    source: Chain<Cursor<Vec<u8>>, Box<dyn Source>>,
    pub(super) is_compressed: bool,
    pub(super) format: Format,
    parser: Parser,
    skip_bad_lines: u64,
    pub(super) counts: ReadCounts,
    line: Vec<u8>,
    /// Requests that were read ahead, by time and line.
    window: BTreeMap<(Nanos, u32), Record>,
    ended: bool,
}

impl Input {
    /// The file that errors call `name`, whose content is `input`, compressed or not.
    pub(super) fn new(
        name: &str,
        input: impl Source + 'static,
        options: ReadOptions,
    ) -> Result<Self, TraceError> {
        let error = |problem| whole(name, problem);
        let (mut source, is_compressed) = decompressed(input).map_err(error)?;
        let mut head = Vec::new();
        let read = source.by_ref().take(HEAD_BYTES).read_to_end(&mut head);
        read.map_err(|problem| error(problem.to_string()))?;
        check_is_no_archive(&head).map_err(error)?;
        let format = options.format.or_else(|| Format::recognise(&head));
        let format = format.ok_or_else(|| error(unknown_format()))?;
        Ok(Self {
            name: name.into(),
            parser: format.parser(&head),
            source: Cursor::new(head).chain(source),
            is_compressed,
            format,
            skip_bad_lines: options.skip_bad_lines,
            counts: ReadCounts::default(),
            line: Vec::new(),
            window: BTreeMap::new(),
            ended: false,
        })
    }

    /// What errors call it.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// An error about a line.
    pub(super) fn error(&self, line: u32, problem: String) -> TraceError {
        TraceError { place: Place { file: self.name.clone(), line, column: 0 }, problem }
    }

    /// The next request of a wanted device, at its time as the file has it; `None` at the end.
    pub(super) fn next(&mut self, devices: &mut Devices) -> Result<Option<Record>, TraceError> {
        if self.format != Format::Blktrace {
            return self.next_line(devices);
        }
        while self.window.len() < WINDOW_REQUESTS
            && let Some(record) = self.next_line(devices)?
        {
            self.window.insert((record.at, record.line), record);
        }
        Ok(self.window.pop_first().map(|(_, record)| record))
    }

    /// The request of the next line that has one.
    fn next_line(&mut self, devices: &mut Devices) -> Result<Option<Record>, TraceError> {
        while !self.ended && self.read_line()? {
            let line = std::mem::take(&mut self.line);
            let taken = self.take(&line, devices);
            self.line = line;
            match taken {
                Ok(Some(record)) => return Ok(Some(record)),
                Ok(None) => {}
                Err(problem) => self.bad_line(problem)?,
            }
        }
        Ok(None)
    }

    /// The request of a line.
    fn take(&mut self, line: &[u8], devices: &mut Devices) -> Result<Option<Record>, String> {
        let text;
        let read = match &mut self.parser {
            Parser::Blktrace(events) => events.event(line)?,
            parser => {
                text = String::from_utf8_lossy(line);
                let trimmed = text.trim();
                if trimmed.is_empty() {
                    return Ok(None);
                }
                if line.len() as u64 > LINE_BYTES_MAX {
                    return Err(format!("the line is longer than {LINE_BYTES_MAX} bytes"));
                }
                parser.line(trimmed)?
            }
        };
        match read {
            Line::Request(request) => {
                let record = Record { line: self.counts.lines, ..request.record };
                devices.take(request.device, record)
            }
            Line::Nothing | Line::Header => Ok(None),
            Line::End => {
                self.ended = true;
                Ok(None)
            }
        }
    }

    fn bad_line(&mut self, problem: String) -> Result<(), TraceError> {
        if self.counts.malformed_lines < self.skip_bad_lines {
            self.counts.malformed_lines += 1;
            return Ok(());
        }
        let problem = match self.counts.malformed_lines {
            0 => problem,
            skipped => format!("{problem} ({skipped} bad lines were skipped before)"),
        };
        Err(self.error(self.counts.lines, problem))
    }

    /// Reads a line or an event; whether there was one.
    fn read_line(&mut self) -> Result<bool, TraceError> {
        self.line.clear();
        self.counts.lines = self.counts.lines.saturating_add(1);
        let read = match self.parser {
            Parser::Blktrace(_) => self.read_event(),
            _ => self.read_text(),
        };
        let bytes = read
            .map_err(|error| self.error(self.counts.lines, format!("cannot be read: {error}")))?;
        self.counts.bytes += bytes;
        if bytes == 0 {
            self.counts.lines -= 1;
        }
        Ok(bytes > 0)
    }

    /// Bytes of the next line, of which what is too long is left out.
    fn read_text(&mut self) -> io::Result<u64> {
        let most = LINE_BYTES_MAX + 1;
        let mut bytes = self.source.by_ref().take(most).read_until(b'\n', &mut self.line)?;
        if bytes as u64 > LINE_BYTES_MAX && !self.line.ends_with(b"\n") {
            bytes += self.source.skip_until(b'\n')?;
        }
        Ok(bytes as u64)
    }

    /// Bytes of the next event, with what follows it.
    fn read_event(&mut self) -> io::Result<u64> {
        self.source.by_ref().take(EVENT_BYTES as u64).read_to_end(&mut self.line)?;
        let more = pdu_bytes(&self.line);
        self.source.by_ref().take(more).read_to_end(&mut self.line)?;
        Ok(self.line.len() as u64)
    }
}

/// An error about the whole file.
pub(super) fn whole(name: &str, problem: String) -> TraceError {
    TraceError { place: Place::file(name), problem }
}

fn unknown_format() -> String {
    let names = Format::ALL.map(Format::name).join(", ");
    format!("unrecognized trace format; specify it with --format ({names})")
}
