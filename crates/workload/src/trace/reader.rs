//! A trace as a stream of requests in order of time, from one file or several.
//!
//! Memory: what each file needs, and the names of the devices.

use super::devices::{Devices, Layout};
use super::error::TraceError;
use super::format::Format;
use super::input::{Input, ReadCounts, ReadOptions, whole};
use super::record::Record;
use nandscape_rt::Nanos;
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// A stream of requests.
#[derive(Debug)]
pub struct TraceReader {
    name: String,
    files: Vec<Input>,
    /// The next request of each file; empty for a single file.
    pending: Vec<Option<Record>>,
    devices: Devices,
    /// Time of the first request, as the trace counts.
    began: Option<Nanos>,
    /// Time of the latest request, from the first.
    latest: Nanos,
    requests: u64,
    disordered: u64,
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
        input: impl BufRead + fmt::Debug + 'static,
        options: ReadOptions,
    ) -> Result<Self, TraceError> {
        let file = Input::new(name, input, options)?;
        Ok(Self {
            name: name.to_owned(),
            devices: Devices::new(file.format == Format::Msr),
            files: vec![file],
            pending: Vec::new(),
            began: None,
            latest: Nanos::ZERO,
            requests: 0,
            disordered: 0,
        })
    }

    /// The requests of this reader and of another in one stream, in order of the times that the files
    /// have; of the same time, this reader's are first. Nothing was read of either.
    ///
    /// # Errors
    /// Files of different formats.
    pub fn with(mut self, other: Self) -> Result<Self, TraceError> {
        let (own, others) = (self.format(), other.format());
        if own != others {
            let what = format!("its format is {others}, that of {} is {own}", self.files[0].name());
            return Err(whole(&other.name, what));
        }
        self.files.extend(other.files);
        self.name = format!("{} and {} more", self.files[0].name(), self.files.len() - 1);
        Ok(self)
    }

    /// The same stream with the requests of one device only, named as the trace has it; for MSR
    /// Cambridge's, the number of the disk will do. Called again, with those of another device too.
    #[must_use]
    pub fn only(mut self, device: &str) -> Self {
        self.devices.want(device);
        self
    }

    /// The same stream with each device at its place in one address space.
    #[must_use]
    pub fn placed(mut self, layout: &Layout) -> Self {
        self.devices.place(layout);
        self
    }

    /// Whether each device has its place.
    #[must_use]
    pub const fn is_placed(&self) -> bool {
        self.devices.are_placed
    }

    /// Reads to the end; the devices, one after another in one address space.
    ///
    /// # Errors
    /// What cannot be read, and devices that are too large together.
    pub fn layout(mut self) -> Result<Layout, TraceError> {
        while self.next_record()?.is_some() {}
        self.devices.layout().map_err(|problem| whole(&self.name, problem))
    }

    /// The format.
    #[must_use]
    pub fn format(&self) -> Format {
        self.files[0].format
    }

    /// Whether any file is compressed.
    #[must_use]
    pub fn is_compressed(&self) -> bool {
        self.files.iter().any(|file| file.is_compressed)
    }

    /// What results call it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What was read so far.
    #[must_use]
    pub fn counts(&self) -> ReadCounts {
        let Self { requests, disordered, .. } = *self;
        let start = ReadCounts { requests, disordered, ..ReadCounts::default() };
        self.files.iter().map(|file| file.counts).fold(start, |sum, file| ReadCounts {
            bytes: sum.bytes + file.bytes,
            lines: sum.lines.saturating_add(file.lines),
            malformed_lines: sum.malformed_lines + file.malformed_lines,
            ..sum
        })
    }

    /// Devices that requests so far were for.
    #[must_use]
    pub fn devices(&self) -> u64 {
        self.devices.count()
    }

    /// The name of the device that a request is for.
    #[must_use]
    pub fn device(&self, record: &Record) -> &str {
        self.devices.name(record.device)
    }

    /// An error about a request.
    #[must_use]
    pub fn error(&self, record: &Record, problem: String) -> TraceError {
        self.files[record.file as usize].error(record.line, problem)
    }

    /// The next request; `None` at the end.
    ///
    /// # Errors
    /// A malformed line beyond those that may be skipped, a failure to read, or a trace that ends
    /// without a request of the wanted devices.
    pub fn next_record(&mut self) -> Result<Option<Record>, TraceError> {
        let next = match &mut self.files[..] {
            [file] => file.next(&mut self.devices)?,
            _ => self.earliest()?,
        };
        match next {
            Some(record) => Ok(Some(self.in_order(record))),
            None if self.devices.are_named() && self.requests == 0 => {
                let devices = self.devices.list();
                let what = format!("no request of the chosen devices; it has: {devices}");
                Err(whole(&self.name, what))
            }
            None => Ok(None),
        }
    }

    /// The earliest of the next requests of all files.
    fn earliest(&mut self) -> Result<Option<Record>, TraceError> {
        if self.pending.is_empty() {
            for file in 0..self.files.len() {
                let first = self.next_of(file)?;
                self.pending.push(first);
            }
        }
        let times = self.pending.iter().flatten();
        let Some(first) = times.min_by_key(|record| record.at).copied() else { return Ok(None) };
        let file = first.file as usize;
        self.pending[file] = self.next_of(file)?;
        Ok(Some(first))
    }

    fn next_of(&mut self, file: usize) -> Result<Option<Record>, TraceError> {
        let next = self.files[file].next(&mut self.devices)?;
        Ok(next.map(|record| Record { file: file as u32, ..record }))
    }

    /// The record, counted, with its time from the first request on.
    fn in_order(&mut self, record: Record) -> Record {
        self.requests += 1;
        let began = *self.began.get_or_insert(record.at);
        if record.at < began.saturating_add(self.latest) {
            self.disordered += 1;
        }
        self.latest = self.latest.max(record.at.saturating_sub(began));
        Record { at: self.latest, ..record }
    }
}
