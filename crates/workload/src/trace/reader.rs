//! A trace, line by line: finds out the format, bounds what may be malformed, and puts times into
//! order.
//!
//! Memory: the head of the file by which it is recognised, one line, and the names of the devices.

use super::error::TraceError;
use super::format::{Format, Parser};
use super::line::Line;
use super::record::Record;
use crate::fio::Place;
use nandscape_rt::Nanos;
use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Chain, Cursor, Read};
use std::path::Path;
use std::sync::Arc;

/// Bytes by which a format is recognised.
const HEAD_BYTES: u64 = 64 << 10;
/// Longest line in bytes.
const LINE_BYTES_MAX: u64 = 64 << 10;
/// Devices that one trace may name.
const DEVICES_MAX: usize = 1 << 12;

/// How a trace is read.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ReadOptions {
    /// The format; recognised by content where none is given.
    pub format: Option<Format>,
    /// Malformed lines that are left out before one is an error.
    pub skip_bad_lines: u64,
}

/// What was read so far.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ReadCounts {
    /// Bytes.
    pub bytes: u64,
    /// Lines.
    pub lines: u32,
    /// Requests.
    pub requests: u64,
    /// Malformed lines that were left out.
    pub malformed_lines: u64,
    /// Requests with a time before that of an earlier line; they count as of the same time.
    pub disordered: u64,
}

/// Where text comes from: who replays it is compiled once for all.
trait Source: BufRead + fmt::Debug {}

impl<R: BufRead + fmt::Debug> Source for R {}

/// A stream of requests.
#[derive(Debug)]
pub struct TraceReader {
    name: Arc<str>,
    input: Chain<Cursor<Vec<u8>>, Box<dyn Source>>,
    format: Format,
    parser: Parser,
    skip_bad_lines: u64,
    counts: ReadCounts,
    devices: BTreeSet<Box<str>>,
    /// The device whose requests are wanted; those of all where none is named.
    wanted: Option<Box<str>>,
    /// Devices whose requests were left out.
    others: BTreeSet<Box<str>>,
    /// Time of the first request, as the trace counts.
    began: Option<Nanos>,
    /// Time of the latest request, from the first.
    latest: Nanos,
    line: Vec<u8>,
    ended: bool,
}

impl TraceReader {
    /// Opens a file.
    ///
    /// # Errors
    /// A file that cannot be read, or whose format is not known.
    pub fn open(path: &Path, options: ReadOptions) -> Result<Self, TraceError> {
        let name = path.display().to_string();
        let file = File::open(path).map_err(|error| whole(&name, error.to_string()))?;
        Self::new(&name, BufReader::new(file), options)
    }

    /// Reads `input`, which errors call `name`.
    ///
    /// # Errors
    /// Input that cannot be read, or whose format is not known.
    pub fn new(
        name: &str,
        mut input: impl BufRead + fmt::Debug + 'static,
        options: ReadOptions,
    ) -> Result<Self, TraceError> {
        let mut head = Vec::new();
        let read = input.by_ref().take(HEAD_BYTES).read_to_end(&mut head);
        read.map_err(|error| whole(name, error.to_string()))?;
        let text = String::from_utf8_lossy(&head).into_owned();
        let format = options.format.or_else(|| Format::recognise(&text));
        let format = format.ok_or_else(|| whole(name, unknown_format()))?;
        Ok(Self {
            name: name.into(),
            input: Cursor::new(head).chain(Box::new(input)),
            format,
            parser: format.parser(&text),
            skip_bad_lines: options.skip_bad_lines,
            counts: ReadCounts::default(),
            devices: BTreeSet::new(),
            wanted: None,
            others: BTreeSet::new(),
            began: None,
            latest: Nanos::ZERO,
            line: Vec::new(),
            ended: false,
        })
    }

    /// The same stream with the requests of one device only, named as the trace has it; for MSR
    /// Cambridge's, the number of the disk will do.
    #[must_use]
    pub fn only(self, device: &str) -> Self {
        Self { wanted: Some(device.into()), ..self }
    }

    fn is_wanted(&self, device: &str) -> bool {
        let disk = || (self.format == Format::Msr).then(|| device.rsplit(',').next()).flatten();
        self.wanted.as_deref().is_none_or(|wanted| device == wanted || disk() == Some(wanted))
    }

    /// The format.
    #[must_use]
    pub const fn format(&self) -> Format {
        self.format
    }

    /// The name that errors call it by.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What was read so far.
    #[must_use]
    pub const fn counts(&self) -> ReadCounts {
        self.counts
    }

    /// Devices that requests so far were for.
    #[must_use]
    pub fn devices(&self) -> u64 {
        self.devices.len() as u64
    }

    /// An error about a request.
    #[must_use]
    pub fn error(&self, line: u32, problem: String) -> TraceError {
        TraceError { place: Place { file: self.name.clone(), line, column: 0 }, problem }
    }

    /// The next request; `None` at the end.
    ///
    /// # Errors
    /// A malformed line beyond those that may be skipped, a failure to read, or a trace that ends
    /// without a request of the wanted device.
    pub fn next_record(&mut self) -> Result<Option<Record>, TraceError> {
        while !self.ended && self.read_line()? {
            let line = std::mem::take(&mut self.line);
            let taken = self.take(&String::from_utf8_lossy(&line));
            self.line = line;
            match taken {
                Ok(Some(record)) => return Ok(Some(record)),
                Ok(None) => {}
                Err(problem) => self.bad_line(problem)?,
            }
        }
        match &self.wanted {
            Some(device) if self.counts.requests == 0 => {
                let others = self.others.iter().map(AsRef::as_ref).collect::<Vec<&str>>();
                let others = others.join("; ");
                Err(whole(&self.name, format!("no request of device {device}; it has: {others}")))
            }
            _ => Ok(None),
        }
    }

    /// The request of a line.
    fn take(&mut self, line: &str) -> Result<Option<Record>, String> {
        let text = line.trim();
        if text.is_empty() {
            return Ok(None);
        }
        if line.len() as u64 > LINE_BYTES_MAX {
            return Err(format!("the line is longer than {LINE_BYTES_MAX} bytes"));
        }
        let request = match self.parser.line(text)? {
            Line::Request(request) => request,
            Line::Nothing => return Ok(None),
            Line::End => {
                self.ended = true;
                return Ok(None);
            }
        };
        if !self.is_wanted(request.device) {
            if self.others.len() < DEVICES_MAX && !self.others.contains(request.device) {
                self.others.insert(request.device.into());
            }
            return Ok(None);
        }
        if !self.devices.contains(request.device) {
            if self.devices.len() == DEVICES_MAX {
                return Err(format!("more than {DEVICES_MAX} devices"));
            }
            self.devices.insert(request.device.into());
        }
        self.counts.requests += 1;
        Ok(Some(self.in_order(request.record)))
    }

    /// The record with its line, and its time from the first request on.
    fn in_order(&mut self, record: Record) -> Record {
        let began = *self.began.get_or_insert(record.at);
        if record.at < began.saturating_add(self.latest) {
            self.counts.disordered += 1;
        }
        self.latest = self.latest.max(record.at.saturating_sub(began));
        Record { at: self.latest, line: self.counts.lines, ..record }
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

    /// Reads a line, of which what is too long is left out; whether there was one.
    fn read_line(&mut self) -> Result<bool, TraceError> {
        self.line.clear();
        let kept = self.input.by_ref().take(LINE_BYTES_MAX + 1).read_until(b'\n', &mut self.line);
        let rest = match &kept {
            Ok(bytes) if *bytes as u64 > LINE_BYTES_MAX && !self.line.ends_with(b"\n") => {
                self.input.skip_until(b'\n')
            }
            _ => Ok(0),
        };
        self.counts.lines = self.counts.lines.saturating_add(1);
        let bytes = kept.and_then(|kept| Ok((kept + rest?) as u64));
        let bytes = bytes.map_err(|error: io::Error| {
            self.error(self.counts.lines, format!("cannot be read: {error}"))
        })?;
        self.counts.bytes += bytes;
        if bytes == 0 {
            self.counts.lines -= 1;
        }
        Ok(bytes > 0)
    }
}

/// An error about the whole file.
fn whole(name: &str, problem: String) -> TraceError {
    TraceError { place: Place::file(name), problem }
}

fn unknown_format() -> String {
    let names = Format::ALL.map(Format::name).join(", ");
    format!("no trace that is known; if it is one of {names}, name it with --format")
}
