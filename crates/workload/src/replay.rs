//! Replay of a trace on a target, in virtual time.
//!
//! At most `iodepth` requests are in the device. Timed, a request is due at its own time; while the
//! device is full it waits outside, and its latency counts from when it was due, so that a device
//! which falls behind cannot hide it. As fast as possible, the next request follows at once when
//! there is room, and latencies count from submission. Requests go out in the order of the trace.
//!
//! A write that covers its first or its last sector in part reads that sector first. Results count the bytes
//! that the trace asks for, and [`TraceCounts`] those that were issued for them.
//!
//! A request that a device fails ends the replay when what is in flight is back, as in fio.

use crate::direction::Direction;
use crate::engine::{
    Completed, EngineError, FAILURES_MAX, Failure, FailureKind, JobResult, Options, Point, Probe,
    Rates, Recorder, Results, RunState, SHADOW_SECTORS_MAX, Series, Totals, Tournament, Waiting,
    depth_class, next_version, tag,
};
use crate::fio::Runtime;
use crate::latency::LatencyTotals;
use crate::target::IoTarget;
use crate::trace::{
    Action, Extent, Extents, FitCounts, Fitter, Footprint, ReadCounts, Record, TraceError,
    TraceReader,
};
use nandscape_block::{
    Bio, Completion, DeviceCaps, Done, Flags, Lba, Op, Payload, SECTOR_BYTES, Submit, Token,
};
use nandscape_rt::Nanos;
use thiserror::Error;

/// When requests are issued.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Pace {
    /// At the trace's times, multiplied by this factor: 0.5 is twice as fast.
    Timed(f64),
    /// As soon as there is room in the device.
    AsFastAsPossible,
}

/// How a trace is replayed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ReplayOptions {
    /// When requests are issued.
    pub pace: Pace,
    /// Requests in the device at most; at least 1.
    pub iodepth: u16,
    /// Whether addresses beyond the device are folded onto it.
    pub fold: bool,
    /// How long requests are issued, if not to the end of the trace.
    pub runtime: Option<Runtime>,
}

impl ReplayOptions {
    /// When a request of this time is due in a replay that began then.
    fn due(&self, began: Nanos, at: Nanos) -> Nanos {
        match self.pace {
            Pace::Timed(scale) => {
                let due = began.saturating_add(Nanos((at.0 as f64 * scale) as u64));
                // The last instant of all means never.
                due.min(Nanos(Nanos::MAX.0 - 1))
            }
            Pace::AsFastAsPossible => began,
        }
    }

    /// When a replay that began then issues nothing any more.
    fn end(&self, began: Nanos) -> Nanos {
        self.runtime.map_or(Nanos::MAX, |runtime| began.saturating_add(runtime.time()))
    }
}

/// What a result should say about the trace and how it was treated.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct TraceCounts {
    /// What was read.
    pub read: ReadCounts,
    /// What was changed to fit the device.
    pub fit: FitCounts,
    /// Devices that the trace's requests were for.
    pub devices: u64,
    /// Whether these were placed one after another.
    pub merged: bool,
    /// Requests issued behind their time, because the device was full.
    pub late: u64,
    /// The longest that one was late.
    pub late_max: Nanos,
    /// Bytes of whole sectors that were issued for the requests that completed, by direction.
    pub issued_bytes: [u64; 3],
    /// Sectors that were read because a write covers them in part.
    pub rmw_reads: u64,
}

/// Whether every request that a trace replayed so may issue fits a device with these capabilities, without
/// any device; and the sectors that these requests read or write.
///
/// # Errors
/// The first request that is malformed or does not fit, as a replay would have it.
pub fn check(
    reader: &mut TraceReader,
    caps: &DeviceCaps,
    how: &ReplayOptions,
) -> Result<Footprint, TraceError> {
    let mut fitter = Fitter::new(caps, how.fold);
    let mut footprint = Footprint::default();
    while let Some(record) = reader.next_record()? {
        if how.due(Nanos::ZERO, record.at) >= how.end(Nanos::ZERO) {
            break;
        }
        let fitted = fitter.fit(&record).map_err(|problem| reader.error(&record, problem))?;
        if let (Action::Io(Direction::Read | Direction::Write), Some(extents)) =
            (record.action, fitted)
        {
            footprint.add(extents);
        }
    }
    Ok(footprint.whole())
}

/// Why a replay has no results.
#[derive(Clone, PartialEq, Eq, Error, Debug)]
#[non_exhaustive]
pub enum ReplayError {
    /// The trace is malformed, or does not fit the device: bad input.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The device went wrong.
    #[error(transparent)]
    Device(#[from] EngineError),
}

/// A request that may be in flight.
#[derive(Clone, Copy, Debug)]
struct Slot {
    record: Record,
    extents: Extents,
    /// What its latency counts from.
    since: Nanos,
    latest: Nanos,
    open_parts: u32,
    /// The write itself comes after the reads of sectors that it covers in part.
    modifies: bool,
    failed: bool,
}

/// The request that is issued next.
#[derive(Clone, Copy, Debug)]
struct Next {
    record: Record,
    extents: Extents,
    due: Nanos,
}

/// A trace, replayed on a device. `S` is what the series samples.
#[derive(Debug)]
pub struct Replay<S> {
    reader: TraceReader,
    fitter: Fitter,
    how: ReplayOptions,
    began: Nanos,
    next: Option<Next>,
    slots: Vec<Option<Slot>>,
    free: Vec<u32>,
    /// Leaves: the slots, then the timer of the next request.
    events: Tournament,
    series: Series<S>,
    now: Nanos,
    /// Number of the last write.
    version: u32,
    tagged: bool,
    bio_sectors: u32,
    result: JobResult,
    counts: TraceCounts,
    completions: Vec<Completion>,
    rates: Rates,
    recorder: Option<Box<dyn Recorder>>,
}

impl<S> Replay<S> {
    /// A replay that is ready to begin on a device with these capabilities. Of `options` the
    /// beginning, the version and what concerns the series count.
    ///
    /// # Errors
    /// A first request that is malformed or does not fit.
    pub fn new(
        reader: TraceReader,
        caps: &DeviceCaps,
        how: ReplayOptions,
        options: &Options,
    ) -> Result<Self, ReplayError> {
        let depth = u32::from(how.iodepth.max(1));
        let mut replay = Self {
            result: JobResult {
                name: reader.name().to_owned(),
                jobs: 1,
                depth,
                ..JobResult::default()
            },
            reader,
            fitter: Fitter::new(caps, how.fold),
            how,
            began: options.began,
            next: None,
            slots: vec![None; depth as usize],
            free: (0..depth).rev().collect(),
            events: Tournament::new(depth as usize + 1),
            series: options.series(),
            now: options.began,
            version: options.version,
            tagged: caps.keeps_content && caps.sectors <= SHADOW_SECTORS_MAX,
            bio_sectors: if caps.max_sectors == 0 { u32::MAX } else { caps.max_sectors },
            counts: TraceCounts::default(),
            completions: Vec::new(),
            rates: Rates::begin(options.began, Default::default()),
            recorder: None,
        };
        replay.fetch()?;
        Ok(replay)
    }

    /// Everything that completes from now on is reported to `recorder`.
    pub fn record(&mut self, recorder: Option<Box<dyn Recorder>>) {
        self.recorder = recorder;
    }

    /// Runs for so many events, or until everything has been replayed.
    ///
    /// # Errors
    /// A malformed line, a request that does not fit, or a device that hangs.
    pub fn run_for<T: IoTarget>(
        &mut self,
        target: &mut T,
        probe: &mut impl Probe<T, Sample = S>,
        events: u64,
    ) -> Result<RunState, ReplayError> {
        for _ in 0..events {
            self.issue(target)?;
            if self.next.is_none() && self.free.len() == self.slots.len() {
                if self.series.points.last().is_none_or(|last| last.at < self.now) {
                    self.look(target, probe, self.now);
                }
                return Ok(RunState::Finished);
            }
            self.step(target, probe)?;
        }
        Ok(RunState::Paused)
    }

    /// What was read so far, for the progress of the replay.
    #[must_use]
    pub fn read(&self) -> ReadCounts {
        self.reader.counts()
    }

    /// What was measured, as of a job, and what happened to the trace.
    #[must_use]
    pub fn finish(mut self) -> (Results<S>, TraceCounts) {
        self.result.set_time(self.began, self.now);
        let totals = self.totals();
        self.result.set_rates(self.rates, totals);
        if let Some(recorder) = &mut self.recorder {
            recorder.finish(self.now);
        }
        let counts = TraceCounts {
            read: self.reader.counts(),
            fit: self.fitter.counts,
            devices: self.reader.devices(),
            merged: self.reader.is_placed(),
            ..self.counts
        };
        let results = Results {
            jobs: vec![self.result],
            series: self.series,
            iologs: Vec::new(),
            ended: self.now,
            global_options: Vec::new(),
        };
        (results, counts)
    }

    /// Reads the next request that is due before the end and of which anything is left on this device.
    fn fetch(&mut self) -> Result<(), ReplayError> {
        self.next = None;
        while let Some(record) = self.reader.next_record()? {
            let due = self.how.due(self.began, record.at);
            if due >= self.how.end(self.began) {
                break;
            }
            let fitted = self.fitter.fit(&record);
            let fitted = fitted.map_err(|problem| self.reader.error(&record, problem))?;
            if let Some(extents) = fitted {
                self.next = Some(Next { record, extents, due });
                break;
            }
        }
        Ok(())
    }

    /// Issues what is due, as long as there is room.
    fn issue<T: IoTarget>(&mut self, target: &mut T) -> Result<(), ReplayError> {
        let timer = self.slots.len();
        self.events.clear(timer);
        let end = self.how.end(self.began);
        while let Some(next) = self.next {
            if self.now >= end {
                self.next = None;
                return Ok(());
            }
            if next.due > self.now {
                self.events.set(timer, next.due);
                return Ok(());
            }
            let Some(index) = self.free.pop() else { return Ok(()) };
            self.begin(target, index, &next);
            self.fetch()?;
        }
        Ok(())
    }

    /// Puts a request into a slot and submits it.
    fn begin<T: IoTarget>(&mut self, target: &mut T, index: u32, next: &Next) {
        let Next { record, extents, due } = *next;
        let timed = self.how.pace != Pace::AsFastAsPossible;
        let since = if timed { due } else { self.now };
        let late = self.now.saturating_sub(since);
        self.counts.late += u64::from(late > Nanos::ZERO);
        self.counts.late_max = self.counts.late_max.max(late);
        let partial = partial_sectors(&record, extents);
        let modifies = partial.iter().any(Option::is_some);
        self.slots[index as usize] = Some(Slot {
            record,
            extents,
            since,
            latest: self.now,
            open_parts: 1,
            modifies,
            failed: false,
        });
        for lba in partial.into_iter().flatten() {
            self.counts.rmw_reads += 1;
            self.send(target, index, self.bio(Direction::Read, lba, 1));
        }
        if modifies {
            return self.close_part(index, self.now);
        }
        self.submit(target, index, record.action, extents);
    }

    /// Submits the request of a slot, of which a part is open.
    fn submit<T: IoTarget>(
        &mut self,
        target: &mut T,
        index: u32,
        action: Action,
        extents: Extents,
    ) {
        if action == Action::Io(Direction::Write) {
            self.version = next_version(self.version);
        }
        match action {
            Action::Flush => self.send(target, index, Bio::flush()),
            Action::Io(direction) => {
                for extent in extents.into_iter().flatten() {
                    self.send_extent(target, index, direction, extent);
                }
            }
        }
        self.close_part(index, self.now);
    }

    /// Submits an extent in bios of the size that the device takes.
    fn send_extent<T: IoTarget>(
        &mut self,
        target: &mut T,
        index: u32,
        direction: Direction,
        extent: Extent,
    ) {
        let largest = if direction == Direction::Trim { u32::MAX } else { self.bio_sectors };
        let mut done = 0;
        while done < extent.sectors {
            let sectors = largest.min(extent.sectors - done);
            let bio = self.bio(direction, extent.lba.plus(u64::from(done)), sectors);
            let flags = self.slots[index as usize].map_or(Flags::NONE, |slot| slot.record.flags);
            self.send(target, index, bio.with(flags));
            done += sectors;
        }
    }

    fn bio(&self, direction: Direction, lba: Lba, sectors: u32) -> Bio {
        match direction {
            Direction::Read => Bio::read(lba, sectors).with(Flags::NO_DATA),
            Direction::Write if self.tagged => {
                Bio::write(lba, sectors, Payload::Run(tag(lba, self.version)))
            }
            Direction::Write => Bio::new(Op::Write, lba, sectors),
            Direction::Trim => Bio::discard(lba, sectors),
        }
    }

    fn send<T: IoTarget>(&mut self, target: &mut T, index: u32, bio: Bio) {
        if let Some(slot) = &mut self.slots[index as usize] {
            slot.open_parts += 1;
        }
        if let Submit::Done(done) = target.submit(self.now, bio, Token(u64::from(index))) {
            self.part_done(index, done);
        }
    }

    fn part_done(&mut self, index: u32, done: Done) {
        if let Err(error) = done.result
            && let Some(slot) = &mut self.slots[index as usize]
        {
            slot.failed = true;
            let what = FailureKind::Io(slot.record.action.name(), error);
            let lba = slot.extents[0].map_or(Lba(0), |extent| extent.lba);
            let job = self.result.name.clone();
            self.result.errors += 1;
            self.result.ended_by_failure = true;
            if self.result.failures.len() < FAILURES_MAX {
                self.result.failures.push(Failure { job, at: self.now, lba, what });
            }
        }
        self.close_part(index, done.at);
    }

    /// One part less is open; the last one sets when the request completes.
    fn close_part(&mut self, index: u32, at: Nanos) {
        let Some(slot) = &mut self.slots[index as usize] else { return };
        slot.latest = slot.latest.max(at).max(self.now);
        slot.open_parts -= 1;
        if slot.open_parts == 0 {
            self.events.set(index as usize, slot.latest);
        }
    }

    /// Handles the next event.
    fn step<T: IoTarget>(
        &mut self,
        target: &mut T,
        probe: &mut impl Probe<T, Sample = S>,
    ) -> Result<(), ReplayError> {
        let (own, leaf) = self.events.first();
        let targets = target.next_event().unwrap_or(Nanos::MAX);
        let at = own.min(targets);
        if at == Nanos::MAX {
            return Err(self.stuck().into());
        }
        while at > self.series.due() {
            self.look(target, probe, self.series.due());
        }
        self.now = self.now.max(at);
        if own > targets {
            self.target_event(target)?;
        } else if leaf < self.slots.len() {
            self.complete(target, leaf);
        }
        Ok(())
    }

    fn target_event<T: IoTarget>(&mut self, target: &mut T) -> Result<(), ReplayError> {
        let mut completions = std::mem::take(&mut self.completions);
        target.advance(self.now, &mut completions);
        for Completion { token, done } in completions.drain(..) {
            let slot = usize::try_from(token.0).ok().and_then(|index| self.slots.get(index));
            if slot.is_none_or(|slot| slot.is_none_or(|slot| slot.open_parts == 0)) {
                return Err(EngineError::UnknownCompletion { token }.into());
            }
            self.part_done(token.0 as u32, done);
        }
        self.completions = completions;
        Ok(())
    }

    /// What the slot submitted has completed.
    fn complete<T: IoTarget>(&mut self, target: &mut T, index: usize) {
        self.events.clear(index);
        if let Some(slot) = &mut self.slots[index]
            && slot.modifies
            && !slot.failed
        {
            (slot.modifies, slot.open_parts) = (false, 1);
            let Slot { record, extents, .. } = *slot;
            return self.submit(target, index as u32, record.action, extents);
        }
        let depth = (self.slots.len() - self.free.len()) as u32;
        self.free.push(index as u32);
        let Some(slot) = self.slots[index].take() else { return };
        if slot.failed {
            self.next = None;
            return;
        }
        if self.now >= self.rates.due() {
            let totals = self.totals();
            self.rates.close(self.now, totals);
        }
        self.result.depths[depth_class(depth)] += 1;
        self.count(&slot);
    }

    /// The request counts, and is reported to the recorder.
    fn count(&mut self, slot: &Slot) {
        let latency = self.now.saturating_sub(slot.since);
        let bytes = slot.record.length_bytes;
        let direction = match slot.record.action {
            Action::Flush => None,
            Action::Io(direction) => Some(direction),
        };
        match direction {
            None => self.result.sync.record(latency),
            Some(direction) => {
                let extents = slot.extents.into_iter().flatten();
                let issued = extents.map(|extent| extent.bytes()).sum::<u64>();
                self.counts.issued_bytes[direction as usize] += issued;
                let result = &mut self.result.directions[direction as usize];
                result.ios += 1;
                result.bytes += bytes;
                result.latency.record(latency);
            }
        }
        if let Some(recorder) = &mut self.recorder {
            let offset =
                slot.extents[0].map_or(0, |extent| extent.lba.0 * nandscape_block::SECTOR_BYTES);
            let (began, at) = (self.began, self.now);
            recorder.completed(&Completed { job: 0, direction, began, at, latency, offset, bytes });
        }
    }

    fn totals(&self) -> Totals {
        self.result.directions.each_ref().map(|direction| (direction.ios, direction.bytes))
    }

    /// Adds a point to the series.
    fn look<T>(&mut self, target: &T, probe: &mut impl Probe<T, Sample = S>, at: Nanos) {
        let directions = &self.result.directions;
        self.series.push(Point {
            at,
            ios: directions.each_ref().map(|direction| direction.ios),
            bytes: directions.each_ref().map(|direction| direction.bytes),
            latency: latency_totals(&self.result),
            in_flight: Some((self.slots.len() - self.free.len()) as u32),
            sample: probe.sample(target, at),
        });
    }

    /// Every request that is in flight, although nothing can happen any more.
    fn stuck(&self) -> EngineError {
        let waiting = self.slots.iter().flatten().map(|slot| Waiting {
            job: self.result.name.clone(),
            op: slot.record.action.name(),
            lba: slot.extents[0].map_or(Lba(0), |extent| extent.lba),
            since: slot.since,
        });
        EngineError::Stuck { at: self.now, waiting: waiting.collect() }
    }
}

/// The first and the last sector of a write, where it covers them in part; one sector is read once.
fn partial_sectors(record: &Record, extents: Extents) -> [Option<Lba>; 2] {
    let end_bytes = record.offset_bytes + record.length_bytes;
    let is_partial = |at: u64| !at.is_multiple_of(SECTOR_BYTES);
    if record.action != Action::Io(Direction::Write) {
        return [None, None];
    }
    let mut used = extents.into_iter().flatten();
    let first = used.next();
    let last = used.next().or(first);
    let head = first.filter(|_| is_partial(record.offset_bytes)).map(|at| at.lba);
    let tail = last.filter(|_| is_partial(end_bytes));
    let tail = tail.map(|at| at.lba.plus(u64::from(at.sectors) - 1));
    [head, tail.filter(|tail| Some(*tail) != head)]
}

/// Latencies so far, by direction, and of flushes.
fn latency_totals(result: &JobResult) -> [LatencyTotals; 4] {
    let mut totals = <[LatencyTotals; 4]>::default();
    let all = result.directions.iter().map(|direction| &direction.latency).chain([&result.sync]);
    totals.iter_mut().zip(all).for_each(|(totals, latencies)| totals.add(latencies));
    totals
}
