//! The reservations of a whole device: parallel units (first come, first served) and channels, and
//! what each command costs on them.
//!
//! A read senses a flash page and moves it over the channel in pieces; each piece goes on to its
//! destination ([`DataOut`]) while the next one is on the channel, and the unit is taken until the
//! last piece left it. A program moves its data over the channel and then takes tPROG for each
//! one-shot page. No command begins before it is ready; the time until then is the caller's.
//! Model: NVMeVirt (FAST '23), `ssd_advance_nand`.

use super::calendar::{Calendar, Operation};
use super::collections::Collections;
use super::lane::{Lane, TransferCost};
use super::log::{Log, Resource};
use super::{NandTiming, ReadPriority};
use crate::command::{Crossing, DataOut};
use crate::geometry::UnitId;
use nandscape_block::SECTOR_BYTES;
use nandscape_rt::Nanos;
use std::mem::take;
use std::ops::Range;

/// A command's time on its unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Reserved {
    /// When the unit begins.
    pub(crate) start: Nanos,
    /// When the command completes.
    pub(crate) done: Nanos,
}

#[derive(Clone, Copy, Debug)]
struct Unit {
    free: u64,
    busy_ns: u64,
    channel: u32,
    /// How long cell operations take, in percent of the preset.
    percent: u32,
}

impl Unit {
    #[inline]
    fn scaled(&self, ns: u64) -> u64 {
        if self.percent == 100 { ns } else { slowed(ns, self.percent) }
    }

    /// The first moment at or after `ready` at which the unit is free.
    #[inline]
    fn begin(&self, ready: u64) -> u64 {
        self.free.max(ready)
    }

    #[inline]
    fn end(&mut self, start: u64, end: u64) {
        self.busy_ns += end - start;
        self.free = end;
    }

    /// An operation without duration; those after it on the unit still complete after it.
    #[inline]
    fn take_no_time(&mut self, start: u64) -> Reserved {
        self.free = start;
        Reserved { start: Nanos(start), done: Nanos(start) }
    }
}

/// `percent` of `ns`, at most 2^60.
#[cold]
fn slowed(ns: u64, percent: u32) -> u64 {
    (u128::from(ns) * u128::from(percent) / 100).min(1 << 60) as u64
}

/// Parameters in the form that commands use.
#[derive(Clone, Debug)]
struct Costs {
    timing: NandTiming,
    instant: bool,
    page_sectors: u32,
    /// Sectors that one sense brings up.
    sense_sectors: u32,
    /// Sectors that one tPROG programs.
    one_shot_sectors: u32,
    piece_sectors: u32,
    /// tR by parity of the flash page, and by whether one sector is asked for.
    sense_ns: [[u64; 2]; 2],
    channel: TransferCost,
}

fn sectors_of(bytes: u64) -> u32 {
    u32::try_from(bytes / SECTOR_BYTES).unwrap_or(u32::MAX).clamp(1, 1 << 24)
}

/// The timing with every duration within bounds, so that no sum of them overflows.
fn bounded(mut timing: NandTiming) -> NandTiming {
    for ns in [
        &mut timing.read_sector_lsb_ns,
        &mut timing.read_sector_msb_ns,
        &mut timing.read_page_lsb_ns,
        &mut timing.read_page_msb_ns,
        &mut timing.program_ns,
        &mut timing.erase_ns,
        &mut timing.channel_sector_ns,
        &mut timing.max_read_preemption_ns,
        &mut timing.program_suspend_ns,
        &mut timing.erase_suspend_ns,
        &mut timing.resume_ns,
    ] {
        *ns = (*ns).min(NandTiming::NS_MAX);
    }
    timing
}

impl Costs {
    fn new(timing: NandTiming) -> Self {
        let timing = bounded(timing);
        let planes = u32::try_from(timing.planes).unwrap_or(u32::MAX).max(1);
        let page_sectors = sectors_of(timing.flash_page_bytes);
        let one_shot_sectors = sectors_of(timing.one_shot_bytes);
        let at_once = |all, sectors: u32| if all { sectors } else { sectors.div_ceil(planes) };
        Self {
            instant: timing.is_instant(),
            page_sectors,
            sense_sectors: at_once(timing.senses_all_planes(), page_sectors),
            one_shot_sectors: at_once(timing.programs_all_planes(), one_shot_sectors),
            piece_sectors: sectors_of(timing.max_transfer_bytes),
            channel: TransferCost::new(timing.channel_bytes_per_s),
            sense_ns: [
                [timing.read_page_lsb_ns, timing.read_sector_lsb_ns],
                [timing.read_page_msb_ns, timing.read_sector_msb_ns],
            ],
            timing,
        }
    }

    #[inline]
    fn sense_ns(&self, at: u32, sectors: u32) -> u64 {
        let page = at / self.page_sectors;
        self.sense_ns[(page & 1) as usize][usize::from(sectors == 1)]
    }

    /// The end of what the sense of sector `at` brings up: a part of its flash page.
    #[inline]
    fn sensed_end(&self, at: u32) -> u32 {
        let page = at / self.page_sectors * self.page_sectors;
        let page_end = page + self.page_sectors;
        if self.sense_sectors == self.page_sectors {
            return page_end;
        }
        let parts = (at - page) / self.sense_sectors + 1;
        page_end.min(page + parts * self.sense_sectors)
    }

    #[inline]
    fn program_ns(&self, sectors: u32) -> u64 {
        let one = sectors <= self.one_shot_sectors;
        let pages = if one { 1 } else { sectors.div_ceil(self.one_shot_sectors) };
        self.timing.program_ns * u64::from(pages)
    }
}

/// Calendars for units, if reads have priority.
fn calendars(timing: &NandTiming, units: u32) -> Vec<Calendar> {
    let units = if timing.read_priority != ReadPriority::None { units } else { 0 };
    (0..units).map(Calendar::new).collect()
}

/// All reservations of a device.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    costs: Costs,
    units: Vec<Unit>,
    channels: Vec<Lane>,
    /// Since the counts were last reset.
    programmed_sectors: u64,
    /// One a unit where reads have priority, else none.
    calendars: Vec<Calendar>,
    /// How much longer the next command takes.
    delay_ns: u64,
    /// When its unit begins the last command.
    begins: Nanos,
    /// One a unit.
    collections: Vec<Collections>,
    log: Option<Box<Log>>,
}

impl Schedule {
    /// A device at rest, all of whose units are equally fast.
    pub(crate) fn new(timing: NandTiming, units: u32, channels: u32) -> Self {
        let unit = |unit| Unit { free: 0, busy_ns: 0, channel: unit % channels, percent: 100 };
        Self {
            costs: Costs::new(timing),
            units: (0..units).map(unit).collect(),
            channels: vec![Lane::new(timing.placing); channels as usize],
            programmed_sectors: 0,
            calendars: calendars(&timing, units),
            delay_ns: 0,
            begins: Nanos::ZERO,
            collections: vec![Collections::NONE; units as usize],
            log: None,
        }
    }

    /// Makes cell operations of a unit take `percent` of their time.
    pub(crate) fn slow_down(&mut self, unit: u32, percent: u32) {
        self.units[unit as usize].percent = percent;
    }

    /// Makes the next command keep its unit busy for so much longer.
    pub(crate) fn delay_next(&mut self, by: Nanos) {
        self.delay_ns = by.0.min(NandTiming::NS_MAX);
    }

    /// When its unit begins the last command.
    pub(crate) const fn begins(&self) -> Nanos {
        self.begins
    }

    /// From when on every unit is idle if no other command comes, and the unit that is so last, the first of several.
    pub(crate) fn idle_from(&self) -> (Nanos, UnitId) {
        let (mut last, mut from) = (0, 0);
        for (number, unit) in self.units.iter().enumerate() {
            if unit.free > from {
                (last, from) = (number as u32, unit.free);
            }
        }
        (Nanos(from), UnitId(last))
    }

    /// The last command, of this unit, was for collection.
    #[inline]
    pub(crate) fn note_collection(&mut self, unit: u32) {
        let end = self.units[unit as usize].free;
        self.collections[unit as usize].push(self.begins.0, end);
    }

    /// How long of a time a unit erased, or read and programmed for collection.
    pub(crate) fn collection_time(&self, unit: u32, time: Range<Nanos>) -> Nanos {
        self.collections[unit as usize].within(time)
    }

    /// Other parameters from now on, on a device at rest.
    pub(crate) fn set_timing(&mut self, timing: NandTiming) {
        self.costs = Costs::new(timing);
        self.calendars = calendars(&timing, self.units.len() as u32);
        self.reset_reservations();
    }

    /// Forgets every reservation; time counts stay.
    pub(crate) fn reset_reservations(&mut self) {
        self.delay_ns = 0;
        let placing = self.costs.timing.placing;
        for unit in &mut self.units {
            unit.free = 0;
        }
        for channel in &mut self.channels {
            channel.reset_reservations(placing);
        }
        self.calendars.iter_mut().for_each(Calendar::reset_reservations);
        self.collections.fill(Collections::NONE);
    }

    /// Reserves a program of `sectors` sectors, submitted at `now`, that begins at `ready` or later.
    #[inline]
    pub(crate) fn program(
        &mut self,
        now: Nanos,
        ready: Nanos,
        unit: u32,
        sectors: u32,
    ) -> Reserved {
        self.programmed_sectors += u64::from(sectors);
        let delay_ns = take(&mut self.delay_ns);
        let costs = &self.costs;
        let number = unit;
        let unit = &mut self.units[unit as usize];
        let start = unit.begin(ready.0);
        self.begins = Nanos(start);
        if costs.instant && delay_ns == 0 {
            return unit.take_no_time(start);
        }
        let channel = &mut self.channels[unit.channel as usize];
        let transfer_ns = costs.channel.ns(sectors);
        let crossed = channel.place(now.0, start, transfer_ns);
        let moved = crossed + costs.timing.channel_sector_ns * u64::from(sectors);
        let done = moved + unit.scaled(costs.program_ns(sectors)) + delay_ns;
        unit.end(start, done);
        if self.log.is_some() {
            let on = Resource::Channel(unit.channel);
            let command = Log::number(&self.log);
            Log::note(&mut self.log, command, on, (crossed - transfer_ns, crossed));
        }
        let (suspensions, suspend_ns) =
            (costs.timing.program_suspensions(), costs.timing.program_suspend_ns);
        self.operation(now, number, (start, done), (suspensions, suspend_ns))
    }

    /// Reserves a read of the sectors `first..end` of a chunk, submitted at `now`, that begins at
    /// `ready` or later and whose pieces go to `out`. When the last piece has arrived.
    #[inline]
    pub(crate) fn read(
        &mut self,
        now: Nanos,
        ready: Nanos,
        unit: u32,
        Range { start: first, end }: Range<u32>,
        out: &mut impl DataOut,
    ) -> Nanos {
        let delay_ns = take(&mut self.delay_ns);
        let costs = &self.costs;
        let number = unit as usize;
        let unit = &mut self.units[number];
        if costs.instant && delay_ns == 0 && out.is_instant() {
            self.begins = Nanos(unit.begin(ready.0));
            return self.begins;
        }
        let channel = &mut self.channels[unit.channel as usize];
        let start = match self.calendars.get_mut(number) {
            None => unit.begin(ready.0),
            Some(calendar) => calendar.begin_read(ready.0, &costs.timing, &mut self.log),
        };
        let command = Log::number(&self.log);
        let (mut on_unit, mut done) = (start + delay_ns, start);
        let mut at = first;
        while at < end {
            let sensed_end = end.min(costs.sensed_end(at));
            on_unit += unit.scaled(costs.sense_ns(at, sensed_end - at));
            while at < sensed_end {
                let piece = costs.piece_sectors.min(sensed_end - at);
                let on_channel_ns = costs.channel.ns(piece);
                let crossed = channel.place(now.0, on_unit, on_channel_ns);
                on_unit = crossed + costs.timing.channel_sector_ns * u64::from(piece);
                let Crossing { start: leaving, end: arrived } =
                    out.piece(now, Nanos(on_unit), piece);
                if self.log.is_some() {
                    let on = Resource::Channel(unit.channel);
                    Log::note(&mut self.log, command, on, (crossed - on_channel_ns, crossed));
                    Log::note(&mut self.log, command, Resource::Pcie, (leaving.0, arrived.0));
                }
                done = arrived.0.max(done);
                at += piece;
            }
        }
        unit.end(start, on_unit);
        Log::note(&mut self.log, command, Resource::Unit(number as u32), (start, on_unit));
        if let Some(calendar) = self.calendars.get_mut(number) {
            unit.free = calendar.end_read(on_unit);
            unit.busy_ns += calendar.take_suspended_ns();
        }
        self.begins = Nanos(start);
        Nanos(done)
    }

    /// Reserves an erase, submitted at `now`, that begins at `ready` or later.
    pub(crate) fn erase(&mut self, now: Nanos, ready: Nanos, unit: u32) -> Reserved {
        let delay_ns = take(&mut self.delay_ns);
        let timing = &self.costs.timing;
        let number = unit;
        let unit = &mut self.units[unit as usize];
        let start = unit.begin(ready.0);
        self.begins = Nanos(start);
        if self.costs.instant && delay_ns == 0 {
            return unit.take_no_time(start);
        }
        let done = start + unit.scaled(timing.erase_ns) + delay_ns;
        unit.end(start, done);
        self.collections[number as usize].push(start, done);
        let suspending = (timing.erase_suspensions(), timing.erase_suspend_ns);
        self.operation(now, number, (start, done), suspending)
    }

    /// Enters a program or an erase, that may be suspended so often and at this cost, where reads may
    /// go ahead of it, or else in the log.
    #[inline]
    fn operation(
        &mut self,
        now: Nanos,
        unit: u32,
        (start, done): (u64, u64),
        (suspensions, suspend_ns): (u64, u64),
    ) -> Reserved {
        if let Some(calendar) = self.calendars.get_mut(unit as usize) {
            let command = Log::number(&self.log);
            let (end, reported) = (done, done);
            let operation = Operation { command, start, end, reported, suspensions, suspend_ns };
            calendar.push(now.0, operation, &mut self.log);
        } else if self.log.is_some() {
            let command = Log::number(&self.log);
            Log::note(&mut self.log, command, Resource::Unit(unit), (start, done));
        }
        Reserved { start: Nanos(start), done: Nanos(done) }
    }

    /// Notes when the data of the next command cross the host's link, if a log is kept.
    #[inline]
    pub(crate) fn note_transfer(&mut self, Crossing { start, end }: Crossing) {
        let command = Log::number(&self.log);
        Log::note(&mut self.log, command, Resource::Pcie, (start.0, end.0));
    }

    /// Begins a log with room for so many commands and spans.
    pub(crate) fn start_log(&mut self, room: usize) {
        self.calendars.iter_mut().for_each(Calendar::unlog);
        self.log = Some(Box::new(Log::new(room)));
    }

    /// The log, if one is kept.
    pub(crate) const fn log_mut(&mut self) -> Option<&mut Box<Log>> {
        self.log.as_mut()
    }

    /// Ends the log, with what units have yet to do for its commands.
    pub(crate) fn end_log(&mut self) -> Option<Log> {
        for calendar in &self.calendars {
            calendar.note_rest(&mut self.log);
        }
        self.log.take().map(|log| *log)
    }

    /// Busy time of each unit since the counts were last reset.
    pub(crate) fn units_busy(&self) -> impl Iterator<Item = Nanos> {
        self.units.iter().map(|unit| Nanos(unit.busy_ns))
    }

    /// Busy time of each channel since the counts were last reset.
    pub(crate) fn channels_busy(&self) -> impl Iterator<Item = Nanos> {
        self.channels.iter().map(|channel| Nanos(channel.busy_ns))
    }

    /// Sectors programmed since the counts were last reset.
    pub(crate) const fn programmed_sectors(&self) -> u64 {
        self.programmed_sectors
    }

    /// Resets the counts.
    pub(crate) fn reset_busy(&mut self) {
        self.programmed_sectors = 0;
        self.units.iter_mut().for_each(|unit| unit.busy_ns = 0);
        self.channels.iter_mut().for_each(|channel| channel.busy_ns = 0);
    }
}
