//! A run as a timeline, for Perfetto or Chrome's trace viewer: what every parallel unit, every link, the
//! host's cores, threads and locks, and every job did when, in virtual time (docs/formats/timeline.md).
//!
//! The media log their commands and the device notes its requests; both are taken at each pause of the run,
//! clipped to the window and written. Nothing of this changes a result. The file is valid JSON after each
//! batch, so also when a run fails. When the window ends, or enough is written, nothing is logged any more.

mod flowops;
mod host;
mod levels;
mod names;
mod requests;
mod sink;

pub(crate) use levels::Levels;
pub(crate) use requests::{Request, Requests};
pub use sink::Output;

use levels::KnownEnds;
use nandscape_media::{Command, Geometry, Log, Media, Resource, Span};
use nandscape_rt::Nanos;
use sink::Sink;
use std::collections::BTreeMap;
use std::io;

/// Commands and spans logged between two pauses; more are dropped.
pub(crate) const LOG_ROOM: usize = 1 << 20;
/// Commands kept until the last of their spans comes; no unit puts off so many.
const COMMANDS_KEPT: usize = 1 << 16;
/// Processes of the document, as its viewers call groups of tracks.
const UNITS: u32 = 1;
const LINKS: u32 = 2;
const CORES: u32 = 3;
const THREADS: u32 = 4;
const LOCKS: u32 = 5;
const COUNTERS: u32 = 6;
const JOBS: u32 = 10;
/// Bits of a token that name an engine's slot.
const SLOT_MASK: u64 = u32::MAX as u64;

/// The part of a run that is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// From when, counted from the beginning of the measured phase.
    pub start: Nanos,
    /// For how long.
    pub length: Nanos,
    /// Events at most.
    pub events_max: u64,
}

impl Default for Window {
    /// The first 100 ms.
    fn default() -> Self {
        Self { start: Nanos::ZERO, length: Nanos::from_ms(100), events_max: 200_000 }
    }
}

impl Window {
    const fn end(&self) -> Nanos {
        self.start.saturating_add(self.length)
    }

    /// The part of a span that lies in the window, if any does.
    fn clip(&self, start: Nanos, end: Nanos) -> Option<(Nanos, Nanos)> {
        let within = start < self.end() && (end > self.start || start >= self.start);
        within.then(|| (start.max(self.start), end.min(self.end())))
    }
}

/// What became of a timeline.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Written {
    /// Events.
    pub events: u64,
    /// When it was cut short, because there was too much to write.
    pub cut_at: Option<Nanos>,
    /// The window, and when the run ended, if that was before the window began.
    pub missed: Option<(Window, Nanos)>,
}

/// Writes a timeline; see the head of this file.
pub struct Timeline {
    sink: Sink,
    window: Window,
    written: Written,
    /// The job of each slot of the engine.
    slots: Vec<u32>,
    /// The latest commands, by number, and how many there were.
    commands: BTreeMap<u64, Command>,
    logged: u64,
    pcie_track: u32,
    known_ends: KnownEnds,
    /// The last pause.
    last: Nanos,
}

impl std::fmt::Debug for Timeline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Timeline").field("window", &self.window).finish_non_exhaustive()
    }
}

/// A time in microseconds, exactly.
struct Micros(Nanos);

impl std::fmt::Display for Micros {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:03}", self.0.0 / 1_000, self.0.0 % 1_000)
    }
}

impl Timeline {
    /// A timeline of this window of a run, written to `out` as the run goes on.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn new(out: Box<dyn Output>, window: Window) -> io::Result<Self> {
        Ok(Self {
            sink: Sink::new(out)?,
            window,
            written: Written { events: 0, cut_at: None, missed: None },
            slots: Vec::new(),
            commands: BTreeMap::new(),
            logged: 0,
            pcie_track: 0,
            known_ends: KnownEnds::default(),
            last: Nanos::ZERO,
        })
    }

    /// Writes the rest.
    ///
    /// # Errors
    /// Something could not be written.
    pub fn finish(self) -> io::Result<Written> {
        let missed = (self.last < self.window.start).then_some((self.window, self.last));
        self.sink.finish().map(|()| Written { missed, ..self.written })
    }

    /// Names the tracks: a device's, and those of jobs, by the engine's slot.
    pub(crate) fn begin<'a>(
        &mut self,
        geometry: &Geometry,
        slots: impl Iterator<Item = (usize, &'a str)>,
    ) {
        self.name_group(UNITS, "parallel units");
        for unit in 0..geometry.total_units() {
            let name = format!("unit {unit}, channel {}", unit % geometry.groups);
            self.name_track(UNITS, unit + 1, &name);
        }
        self.name_group(LINKS, "links");
        for channel in 0..geometry.groups {
            self.name_track(LINKS, channel + 1, &format!("channel {channel}"));
        }
        self.pcie_track = geometry.groups + 1;
        self.name_track(LINKS, self.pcie_track, "PCIe");
        self.name_group(COUNTERS, "counters");
        for (job, name) in slots {
            let job = job as u32;
            if self.slots.last() != Some(&job) {
                self.name_group(JOBS + job, &format!("job {job}: {name}"));
            }
            self.slots.push(job);
        }
        self.sink.flush();
    }

    fn name_group(&mut self, pid: u32, name: &str) {
        let name = serde_json::Value::from(name);
        self.sink.push(format_args!(
            r#"{{"ph":"M","pid":{pid},"name":"process_name","args":{{"name":{name}}}}}"#
        ));
        self.sink.push(format_args!(
            r#"{{"ph":"M","pid":{pid},"name":"process_sort_index","args":{{"sort_index":{pid}}}}}"#
        ));
    }

    fn name_track(&mut self, pid: u32, tid: u32, name: &str) {
        let name = serde_json::Value::from(name);
        self.sink.push(format_args!(
            r#"{{"ph":"M","pid":{pid},"tid":{tid},"name":"thread_name","args":{{"name":{name}}}}}"#
        ));
        self.sink.push(format_args!(
            r#"{{"ph":"M","pid":{pid},"tid":{tid},"name":"thread_sort_index","args":{{"sort_index":{tid}}}}}"#
        ));
    }

    /// Begins to log.
    pub(crate) fn start(&self, media: &mut Media, requests: &mut Option<Box<Requests>>) {
        media.start_log(LOG_ROOM);
        *requests = Some(Box::default());
    }

    /// The run pauses at `now`: writes what was logged, and ends behind the window.
    pub(crate) fn sample(
        &mut self,
        now: Nanos,
        levels: Levels,
        media: &mut Media,
        requests: &mut Option<Box<Requests>>,
    ) {
        self.last = now;
        if now >= self.window.end() {
            return self.end(media, requests);
        }
        if let Some(log) = media.take_log(LOG_ROOM) {
            self.write_log(log);
        }
        for request in requests.as_mut().map(|requests| requests.take()).unwrap_or_default() {
            self.write_request(&request);
            if let Some(end) = request.done.filter(|end| *end > now) {
                self.known_ends.add(end);
            }
        }
        self.write_levels(now, levels, requests);
        if !self.sink.flush() || self.written.events >= self.window.events_max {
            self.end(media, requests);
        }
    }

    /// Ends: writes what was logged and what is in flight.
    pub(crate) fn end(&mut self, media: &mut Media, requests: &mut Option<Box<Requests>>) {
        if let Some(log) = media.end_log() {
            self.write_log(log);
        }
        for request in requests.take().into_iter().flat_map(|requests| requests.into_all()) {
            self.write_request(&request);
        }
        if let Some(at) = self.written.cut_at {
            let (at, events) = (Micros(at), self.written.events);
            self.sink.push(format_args!(
                r#"{{"ph":"i","s":"g","pid":{UNITS},"tid":1,"ts":{at},"name":"cut: {events} events are written"}}"#
            ));
        }
        self.commands.clear();
        self.sink.flush();
    }

    fn write_log(&mut self, log: Log) {
        if log.is_full() {
            let last = log.commands.last().map_or(Nanos::ZERO, |command| command.submitted);
            self.written.cut_at.get_or_insert(last);
        }
        for command in log.commands {
            self.commands.insert(self.logged, command);
            self.logged += 1;
        }
        for span in log.spans {
            if let Some(command) = self.commands.get(&span.command).copied() {
                self.write_span(&span, &command);
            }
        }
        while self.commands.len() > COMMANDS_KEPT {
            self.commands.pop_first();
        }
    }

    fn write_span(&mut self, span: &Span, command: &Command) {
        let Some((start, end)) = self.fit(span.start, span.end, 1) else { return };
        let look = names::command(command);
        let (pid, tid, name) = match (span.on, look.name) {
            (Resource::Unit(unit), name) => (UNITS, unit + 1, name),
            (Resource::Channel(channel), name) => (LINKS, channel + 1, name),
            (Resource::Pcie, name) => (LINKS, self.pcie_track, name),
        };
        let (category, colour) = (look.category, look.colour);
        let (ts, dur) = (Micros(start), Micros(end - start));
        let (cause, number) = (command.cause, span.command);
        let (kind, status) = (names::kind(command.action), names::status(command.status));
        let (submitted, done) = (Micros(command.submitted), Micros(command.done));
        self.sink.push(format_args!(
            r#"{{"ph":"X","pid":{pid},"tid":{tid},"ts":{ts},"dur":{dur},"name":"{name}","cat":"{category}","cname":"{colour}","args":{{"command":{number},"chunk":{},"sector":{},"sectors":{},"kind":"{kind}","user":{},"gc":{},"pad":{},"submitted_us":{submitted},"done_us":{done},"status":"{status}"}}}}"#,
            command.chunk.chunk, command.sector, command.sectors, cause.user, cause.gc, cause.pad
        ));
    }

    fn write_request(&mut self, request: &Request) {
        let done = request.done.unwrap_or(Nanos::MAX);
        let Some((start, end)) = self.fit(request.submitted, done, 2) else { return };
        let slot = (request.token.0 & SLOT_MASK) as usize;
        let pid = JOBS + self.slots.get(slot).copied().unwrap_or(0);
        let names::Look { name, category, colour } = names::request(request.op);
        let (id, begin, end) = (request.token.0, Micros(start), Micros(end));
        let flags = names::flags(request.flags);
        self.sink.push(format_args!(
            r#"{{"ph":"b","pid":{pid},"tid":{slot},"id":{id},"ts":{begin},"name":"{name}","cat":"{category}","cname":"{colour}","args":{{"lba":{},"sectors":{},"flags":"{flags}","failed":{},"completed":{}}}}}"#,
            request.lba.0, request.sectors, request.failed, request.done.is_some()
        ));
        self.sink.push(format_args!(
            r#"{{"ph":"e","pid":{pid},"tid":{slot},"id":{id},"ts":{end},"name":"{name}","cat":"{category}"}}"#
        ));
    }

    /// The part of a span that is to be written, in so many events, if there is room for it.
    fn fit(&mut self, start: Nanos, end: Nanos, events: u64) -> Option<(Nanos, Nanos)> {
        let (start, end) = self.window.clip(start, end)?;
        if self.written.events + events > self.window.events_max {
            self.written.cut_at.get_or_insert(start);
            return None;
        }
        self.written.events += events;
        Some((start, end))
    }
}
