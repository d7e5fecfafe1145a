//! The reservations of a whole device: parallel units (first come, first served), channels, and the
//! PCIe link, and what each command costs on them.
//!
//! A read senses a flash page, moves it over the channel in pieces, and each piece over PCIe while
//! the next one is on the channel; its unit is taken until the last piece left it. A program moves
//! its data over the channel and then takes tPROG for each one-shot page. What crosses PCIe on the
//! way in is charged by the write buffer, not here. Model: NVMeVirt (FAST '23), `ssd_advance_nand`.

use super::calendar::{Calendar, Operation};
use super::link::{Link, TransferCost};
use super::log::{Log, On};
use super::{ReadPriority, Timing};
use nandscape_block::SECTOR_BYTES;
use nandscape_rt::Nanos;

/// A command's time on its unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Reserved {
    /// When the unit begins.
    pub(crate) start: Nanos,
    /// When the command completes.
    pub(crate) done: Nanos,
}

impl Reserved {
    const fn at_once(now: Nanos) -> Self {
        Self { start: now, done: now }
    }
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

    /// Takes the unit from the first moment at or after `ready` that it is free.
    #[inline]
    fn begin(&self, ready: u64) -> u64 {
        self.free.max(ready)
    }

    #[inline]
    fn end(&mut self, start: u64, end: u64) {
        self.busy_ns += end - start;
        self.free = end;
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
    timing: Timing,
    instant: bool,
    page_sectors: u32,
    /// Sectors that one sense brings up.
    sense_sectors: u32,
    /// Sectors that one tPROG programs.
    one_shot_sectors: u32,
    piece_sectors: u32,
    small_sectors: u32,
    /// tR by parity of the flash page, and by whether one sector is asked for.
    sense_ns: [[u64; 2]; 2],
    channel: TransferCost,
    pcie: TransferCost,
}

fn sectors_of(bytes: u64) -> u32 {
    u32::try_from(bytes / SECTOR_BYTES).unwrap_or(u32::MAX).clamp(1, 1 << 24)
}

/// The timing with every duration within bounds, so that no sum of them overflows.
fn bounded(mut timing: Timing) -> Timing {
    for ns in [
        &mut timing.command_ns,
        &mut timing.firmware_small_ns,
        &mut timing.firmware_large_ns,
        &mut timing.read_sector_lsb_ns,
        &mut timing.read_sector_msb_ns,
        &mut timing.read_page_lsb_ns,
        &mut timing.read_page_msb_ns,
        &mut timing.program_ns,
        &mut timing.erase_ns,
        &mut timing.channel_sector_ns,
        &mut timing.buffer_base_ns,
        &mut timing.buffer_sector_ns,
        &mut timing.late_ns,
        &mut timing.program_suspend_ns,
        &mut timing.erase_suspend_ns,
        &mut timing.resume_ns,
    ] {
        *ns = (*ns).min(Timing::NS_MAX);
    }
    timing
}

impl Costs {
    fn new(timing: Timing) -> Self {
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
            small_sectors: (timing.firmware_small_bytes / SECTOR_BYTES) as u32,
            channel: TransferCost::new(timing.channel_bytes_per_s),
            pcie: TransferCost::new(timing.pcie_bytes_per_s),
            sense_ns: [
                [timing.read_page_lsb_ns, timing.read_sector_lsb_ns],
                [timing.read_page_msb_ns, timing.read_sector_msb_ns],
            ],
            timing,
        }
    }

    #[inline]
    fn firmware_ns(&self, sectors: u32) -> u64 {
        let small = sectors <= self.small_sectors;
        if small { self.timing.firmware_small_ns } else { self.timing.firmware_large_ns }
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
fn calendars(timing: &Timing, units: u32) -> Vec<Calendar> {
    let units = if timing.read_priority != ReadPriority::None { units } else { 0 };
    (0..units).map(Calendar::new).collect()
}

/// All reservations of a device.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    costs: Costs,
    units: Vec<Unit>,
    channels: Vec<Link>,
    pcie: Link,
    /// Since the counts were last reset.
    programmed_sectors: u64,
    /// One a unit where reads have priority, else none.
    calendars: Vec<Calendar>,
    log: Option<Box<Log>>,
}

impl Schedule {
    /// A device at rest, all of whose units are equally fast.
    pub(crate) fn new(timing: Timing, units: u32, channels: u32) -> Self {
        let unit = |unit| Unit { free: 0, busy_ns: 0, channel: unit % channels, percent: 100 };
        Self {
            costs: Costs::new(timing),
            units: (0..units).map(unit).collect(),
            channels: vec![Link::new(timing.placing); channels as usize],
            pcie: Link::new(timing.placing),
            programmed_sectors: 0,
            calendars: calendars(&timing, units),
            log: None,
        }
    }

    /// Makes cell operations of a unit take `percent` of their time.
    pub(crate) fn slow_down(&mut self, unit: u32, percent: u32) {
        self.units[unit as usize].percent = percent;
    }

    /// Other parameters from now on, on a device at rest.
    pub(crate) fn set_timing(&mut self, timing: Timing) {
        self.costs = Costs::new(timing);
        self.calendars = calendars(&timing, self.units.len() as u32);
        self.rest();
    }

    /// Forgets every reservation; time counts stay.
    pub(crate) fn rest(&mut self) {
        let placing = self.costs.timing.placing;
        for unit in &mut self.units {
            unit.free = 0;
        }
        for link in self.channels.iter_mut().chain([&mut self.pcie]) {
            link.rest(placing);
        }
        self.calendars.iter_mut().for_each(Calendar::rest);
    }

    /// Reserves a program of `sectors` sectors.
    #[inline]
    pub(crate) fn program(&mut self, now: Nanos, unit: u32, sectors: u32) -> Reserved {
        self.programmed_sectors += u64::from(sectors);
        let costs = &self.costs;
        if costs.instant {
            return Reserved::at_once(now);
        }
        let number = unit;
        let unit = &mut self.units[unit as usize];
        let channel = &mut self.channels[unit.channel as usize];
        let start = unit.begin(now.0 + costs.timing.command_ns);
        let transfer_ns = costs.channel.ns(sectors);
        let crossed = channel.place(now.0, start, transfer_ns);
        let moved = crossed + costs.timing.channel_sector_ns * u64::from(sectors);
        let done = moved + unit.scaled(costs.program_ns(sectors));
        unit.end(start, done);
        if self.log.is_some() {
            let on = On::Channel(unit.channel);
            let command = Log::number(&self.log);
            Log::note(&mut self.log, command, on, (crossed - transfer_ns, crossed));
        }
        let (suspensions, suspend_ns) =
            (costs.timing.program_suspensions(), costs.timing.program_suspend_ns);
        self.operation(now, number, (start, done), (suspensions, suspend_ns))
    }

    /// Reserves a read of `sectors` sectors from sector `first` of a chunk on.
    #[inline]
    pub(crate) fn read(&mut self, now: Nanos, unit: u32, first: u32, sectors: u32) -> Nanos {
        let costs = &self.costs;
        if costs.instant {
            return now;
        }
        let number = unit as usize;
        let unit = &mut self.units[number];
        let channel = &mut self.channels[unit.channel as usize];
        let ready = now.0 + costs.firmware_ns(sectors);
        let start = match self.calendars.get_mut(number) {
            None => unit.begin(ready),
            Some(calendar) => calendar.begin_read(ready, &costs.timing, &mut self.log),
        };
        let command = Log::number(&self.log);
        let (mut on_unit, mut done) = (start, start);
        let (mut at, end) = (first, first + sectors);
        while at < end {
            let sensed_end = end.min(costs.sensed_end(at));
            on_unit += unit.scaled(costs.sense_ns(at, sensed_end - at));
            while at < sensed_end {
                let piece = costs.piece_sectors.min(sensed_end - at);
                let (on_channel_ns, on_pcie_ns) = (costs.channel.ns(piece), costs.pcie.ns(piece));
                let crossed = channel.place(now.0, on_unit, on_channel_ns);
                on_unit = crossed + costs.timing.channel_sector_ns * u64::from(piece);
                let arrived = self.pcie.place(now.0, on_unit, on_pcie_ns);
                if self.log.is_some() {
                    let on = On::Channel(unit.channel);
                    Log::note(&mut self.log, command, on, (crossed - on_channel_ns, crossed));
                    let span = (arrived - on_pcie_ns, arrived);
                    Log::note(&mut self.log, command, On::Pcie, span);
                }
                done = arrived.max(done);
                at += piece;
            }
        }
        unit.end(start, on_unit);
        Log::note(&mut self.log, command, On::Unit(number as u32), (start, on_unit));
        if let Some(calendar) = self.calendars.get_mut(number) {
            unit.free = calendar.end_read(on_unit);
            unit.busy_ns += calendar.take_suspended_ns();
        }
        Nanos(done)
    }

    /// Reserves an erase.
    pub(crate) fn erase(&mut self, now: Nanos, unit: u32) -> Reserved {
        let timing = &self.costs.timing;
        if self.costs.instant {
            return Reserved::at_once(now);
        }
        let number = unit;
        let unit = &mut self.units[unit as usize];
        let start = unit.begin(now.0 + timing.command_ns);
        let done = start + unit.scaled(timing.erase_ns);
        unit.end(start, done);
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
            let (end, told) = (done, done);
            let operation = Operation { command, start, end, told, suspensions, suspend_ns };
            calendar.push(now.0, operation, &mut self.log);
        } else if self.log.is_some() {
            let command = Log::number(&self.log);
            Log::note(&mut self.log, command, On::Unit(unit), (start, done));
        }
        Reserved { start: Nanos(start), done: Nanos(done) }
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

    /// Time that the write buffer takes to accept or to serve `sectors`: no source tells the two
    /// apart.
    #[inline]
    pub(crate) fn buffer(&self, sectors: u32) -> Nanos {
        let t = &self.costs.timing;
        let firmware = t.buffer_base_ns + t.buffer_sector_ns * u64::from(sectors);
        Nanos(firmware + self.costs.pcie.ns(sectors))
    }

    /// Busy time of each unit since the counts were last reset.
    pub(crate) fn units_busy(&self) -> impl Iterator<Item = Nanos> {
        self.units.iter().map(|unit| Nanos(unit.busy_ns))
    }

    /// Busy time of each channel since the counts were last reset.
    pub(crate) fn channels_busy(&self) -> impl Iterator<Item = Nanos> {
        self.channels.iter().map(|link| Nanos(link.busy_ns))
    }

    /// Busy time of the PCIe link since the counts were last reset.
    pub(crate) fn pcie_busy(&self) -> Nanos {
        Nanos(self.pcie.busy_ns)
    }

    /// Sectors programmed since the counts were last reset.
    pub(crate) const fn programmed_sectors(&self) -> u64 {
        self.programmed_sectors
    }

    /// Starts the counts anew.
    pub(crate) fn reset_busy(&mut self) {
        self.programmed_sectors = 0;
        self.units.iter_mut().for_each(|unit| unit.busy_ns = 0);
        self.channels.iter_mut().chain([&mut self.pcie]).for_each(|link| link.busy_ns = 0);
    }
}
