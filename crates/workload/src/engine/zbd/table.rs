//! The zones of a device as all jobs share them: write pointers, which are open, and which job holds them.

use super::layout::{Layout, Span};
use nandscape_block::Lba;
use nandscape_block::zone::{ZoneId, ZoneInfo, ZoneState};

/// A zone, in sectors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Zone {
    pub(super) start: u64,
    /// End of what can be written.
    pub(super) end: u64,
    /// Write pointer; of a zone without one, its end.
    pub(super) pointer: u64,
    /// Whether it must be written at the pointer.
    pub(super) sequential: bool,
    pub(super) readable: bool,
    pub(super) writable: bool,
    /// The next write resets it, full or not.
    pub(super) reset_due: bool,
    /// The job that opened it.
    pub(super) opened_by: Option<u32>,
    /// The job that holds it, and how often.
    holder: u32,
    holds: u32,
}

impl Zone {
    pub(super) const fn is_full(&self, least: u64) -> bool {
        self.pointer + least > self.end
    }

    pub(super) const fn written(&self) -> u64 {
        self.pointer - self.start
    }

    pub(super) const fn is_open(&self) -> bool {
        self.opened_by.is_some()
    }
}

/// What a job waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Waiting {
    job: u32,
    /// A zone that another job holds; none: any that another job gives back.
    zone: Option<u32>,
}

/// What a trim or a reset of a zone is on the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::engine) enum Command {
    /// A discard: the zone has no write pointer.
    Discard,
    Reset(ZoneId),
    /// Nothing: the zone is empty, or the device has no zones.
    Nothing,
}

/// The zones of a run; none where no job has `zonemode=zbd`.
#[derive(Clone, Default, Debug)]
pub(in crate::engine) struct Zones {
    zones: Vec<Zone>,
    zone_sectors: u64,
    /// Number of the first zone that is one of the device's; none: the device has no zones.
    first_managed: Option<u32>,
    /// Zones that may be open at once; 0: any number.
    pub(super) max_open: u32,
    /// In the order in which they were opened.
    open: Vec<u32>,
    /// Sectors below pointers: in all zones, and in those that are sequential. As in fio, of the range of the job
    /// that began last, and what all jobs have changed since.
    pub(super) data: u64,
    pub(super) data_at_pointers: u64,
    /// Writes above the threshold until the next reset.
    pub(super) writes_to_reset: u32,
    waiting: Vec<Waiting>,
    /// Zones that were given to the job which waited for them.
    granted: Vec<(u32, u32)>,
    /// I/Os in zones that their jobs hold.
    in_flight: u32,
    /// Those that took part of the device's limits before the run.
    pub(super) active: Vec<u32>,
    /// Jobs that need wait no longer.
    pub(in crate::engine) woken: Vec<u32>,
}

impl Zones {
    /// The zones of a device in the state of this report; those that it does not name are empty.
    pub(in crate::engine) fn new(layout: &Layout, report: &[ZoneInfo]) -> Self {
        let zones = (0..layout.zones()).map(|index| zone(layout, index)).collect();
        let mut all = Self {
            zones,
            zone_sectors: layout.zone_sectors,
            first_managed: layout.first_managed(),
            max_open: layout.max_open,
            ..Self::default()
        };
        for info in report.iter().filter(|_| all.first_managed.is_some()) {
            let index = all.index(info.start.0) as usize;
            if let Some(zone) = all.zones.get_mut(index).filter(|zone| zone.start == info.start.0) {
                zone.pointer =
                    if info.state == ZoneState::Full { zone.end } else { info.write_pointer.0 };
                zone.readable = info.state != ZoneState::Offline;
                zone.writable = !info.state.is_failed();
                let counts = if layout.limits_active {
                    info.state.is_active()
                } else {
                    info.state.is_open()
                };
                all.active.extend(counts.then_some(index as u32));
            }
        }
        all
    }

    pub(super) fn index(&self, lba: u64) -> u32 {
        u32::try_from(lba / self.zone_sectors.max(1)).unwrap_or(u32::MAX)
    }

    pub(super) fn zone(&self, index: u32) -> &Zone {
        &self.zones[index as usize]
    }

    pub(super) fn zone_mut(&mut self, index: u32) -> &mut Zone {
        &mut self.zones[index as usize]
    }

    /// Where the zone behind this one begins.
    pub(super) fn next_start(&self, index: u32) -> u64 {
        self.zone(index).start + self.zone_sectors
    }

    pub(super) const fn limits_open(&self) -> bool {
        self.max_open > 0
    }

    pub(super) fn open_zones(&self) -> &[u32] {
        &self.open
    }

    /// Opens a zone, of which the limits were looked at.
    pub(super) fn open(&mut self, job: u32, index: u32) {
        if self.limits_open() && !self.zone(index).is_open() {
            self.zone_mut(index).opened_by = Some(job);
            self.open.push(index);
        }
    }

    fn close(&mut self, index: u32) {
        if self.zone_mut(index).opened_by.take().is_some() {
            self.open.retain(|open| *open != index);
        }
    }

    /// Takes hold of a zone, unless another job holds it: then the job waits for it.
    pub(super) fn hold(&mut self, job: u32, index: u32) -> bool {
        let zone = self.zone_mut(index);
        if zone.holds > 0 && zone.holder != job {
            self.waiting.push(Waiting { job, zone: Some(index) });
            return false;
        }
        zone.holder = job;
        zone.holds += 1;
        true
    }

    /// The job waits until any zone is given back.
    pub(super) fn wait_for_any(&mut self, job: u32) {
        self.waiting.push(Waiting { job, zone: None });
    }

    /// Gives a zone back once; the first job that waits for it holds it then.
    pub(in crate::engine) fn give_back(&mut self, index: u32) {
        let zone = self.zone_mut(index);
        zone.holds -= 1;
        if zone.holds > 0 {
            return;
        }
        if let Some(at) = self.waiting.iter().position(|waiting| waiting.zone == Some(index)) {
            let Waiting { job, .. } = self.waiting.remove(at);
            let zone = self.zone_mut(index);
            (zone.holder, zone.holds) = (job, 1);
            self.granted.push((job, index));
            self.woken.push(job);
        }
        let Self { waiting, woken, .. } = self;
        waiting.retain(|waiting| {
            let any = waiting.zone.is_none();
            woken.extend(any.then_some(waiting.job));
            !any
        });
    }

    /// The job waits no longer; the zone that it was given meanwhile, which it holds and must give back.
    pub(in crate::engine) fn recall(&mut self, job: u32) -> Option<u32> {
        self.waiting.retain(|waiting| waiting.job != job);
        let at = self.granted.iter().position(|(to, _)| *to == job)?;
        Some(self.granted.swap_remove(at).1)
    }

    /// Whether a job has an I/O in any zone.
    pub(super) const fn is_busy(&self) -> bool {
        self.in_flight > 0
    }

    /// An I/O in a zone that its job holds was issued.
    pub(super) const fn issued(&mut self) {
        self.in_flight += 1;
    }

    /// It completed; `wrote` up to this sector.
    pub(in crate::engine) fn completed(&mut self, index: u32, wrote: Option<u64>) {
        if wrote.is_some_and(|end| end >= self.zone(index).end) {
            self.close(index);
        }
        self.in_flight -= 1;
        self.give_back(index);
    }

    /// Counts sectors that were written at a pointer.
    pub(super) const fn add_data(&mut self, sectors: u64) {
        self.data += sectors;
        self.data_at_pointers += sectors;
    }

    /// What a reset of this zone is on the device.
    pub(in crate::engine) fn command(&self, index: u32) -> Command {
        let zone = self.zone(index);
        let id = self.first_managed.and_then(|first| index.checked_sub(first));
        match id {
            _ if !zone.sequential => Command::Discard,
            Some(id) if zone.written() > 0 => Command::Reset(ZoneId(id)),
            _ => Command::Nothing,
        }
    }

    /// The zone is empty from now on; whether it held data.
    pub(in crate::engine) fn reset(&mut self, index: u32) -> bool {
        let zone = self.zone_mut(index);
        let sectors = zone.written();
        zone.pointer = zone.start;
        zone.reset_due = false;
        self.data = self.data.saturating_sub(sectors);
        self.data_at_pointers = self.data_at_pointers.saturating_sub(sectors);
        sectors > 0
    }

    /// Counts the data of a range anew.
    pub(super) fn count_data(&mut self, span: &Span) {
        let sum = |sequential: bool| -> u64 {
            let zones = self.zones[span.zones.start as usize..span.zones.end as usize].iter();
            zones.filter(|zone| zone.sequential || !sequential).map(Zone::written).sum()
        };
        (self.data, self.data_at_pointers) = (sum(false), sum(true));
    }

    /// First sector of a zone.
    pub(in crate::engine) fn start(&self, index: u32) -> Lba {
        Lba(self.zone(index).start)
    }

    /// Sectors that a zone can hold.
    pub(in crate::engine) fn capacity(&self, index: u32) -> u32 {
        let zone = self.zone(index);
        u32::try_from(zone.end - zone.start).unwrap_or(u32::MAX)
    }

    /// The zone of a sector.
    pub(in crate::engine) fn at(&self, lba: Lba) -> u32 {
        self.index(lba.0)
    }
}

fn zone(layout: &Layout, index: u32) -> Zone {
    let start = u64::from(index) * layout.zone_sectors;
    let sequential = layout.first_managed().is_none_or(|first| index >= first);
    let sectors = if sequential { layout.capacity } else { layout.zone_sectors };
    let end = (start + sectors).min(layout.sectors);
    Zone {
        start,
        end,
        pointer: if sequential { start } else { end },
        sequential,
        readable: true,
        writable: true,
        reset_due: false,
        opened_by: None,
        holder: 0,
        holds: 0,
    }
}
