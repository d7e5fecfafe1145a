//! Writing a device into the state in which it is to be measured: a sequential fill in large bios,
//! then random 4 KiB overwrites, so many or until write amplification is steady, all through the same
//! write path as the measured phase and without timing: no virtual time passes.
//!
//! Without timing, user writes never wait in a write buffer, so a limiter that divides the buffer between users
//! and collection divides nothing, and the free space ends where an idle device has it. A device under load has
//! less. So random overwrites end with a *settling phase*: they go on with NAND timing until the free space no
//! longer falls. The NAND of that phase is the same for all stacks, since the division does not depend on it;
//! stacks that differ in timing alone share their states. A stack without timing needs no such phase.

use super::criterion;
use super::device::free_sectors;
use super::error::RunError;
use crate::stack::Precondition;
use crate::state::Preconditioned;
use nandscape_block::{Bio, Completion, DeviceCaps, Lba, Payload, Submit, Tag, Token};
use nandscape_ftl::Ftl;
use nandscape_rt::{Nanos, Stream};
use nandscape_workload::trace::Footprint;
use std::ops::Range;

/// Sectors of a bio of the fill, where the device takes as many.
const FILL_SECTORS: u32 = 1024;
/// Bios in flight.
const DEPTH: u32 = 32;
/// Sectors between two progress reports.
const REPORT_SECTORS: u64 = 1 << 16;

/// Rounds of the overwrites that go on until write amplification is steady, in a logical space.
const ROUNDS: u64 = 4;

/// Rounds of the settling phase, in a spare space.
const SETTLING_ROUNDS: u64 = 4;
/// Spare spaces that the settling phase writes at most.
const SETTLING_MAX: u64 = 4;

/// Writes what `plan` asks for and drains it. After random overwrites `enable_timing`, if given, switches the NAND's
/// timing on, and they go on until the device has settled. `progress` receives the fraction done, and may end it.
pub(super) fn precondition<F: Ftl>(
    ftl: &mut F,
    plan: Precondition,
    seed: u64,
    enable_timing: Option<impl FnOnce(&mut F)>,
    progress: impl FnMut(f64) -> Result<(), RunError>,
) -> Result<Preconditioned, RunError> {
    let logical = fillable(ftl.caps());
    let of = |times: f64| (times * logical as f64) as u64;
    let (fill_sectors, overwrite_sectors) = (of(plan.fill), of(plan.random_overwrite));
    let steady_max = of(plan.steady_overwrite);
    let total = fill_sectors + overwrite_sectors + steady_max;
    let mut writer = Writer::new(ftl, total, progress);
    writer.fill(fill_sectors)?;
    let mut addresses = Stream::new(seed, "precondition");
    writer.overwrite(overwrite_sectors, &mut addresses)?;
    let steady = match steady_max {
        0 => None,
        most => Some(writer.overwrite_until_steady(most, &mut addresses)?),
    };
    if let Some(enable_timing) = enable_timing.filter(|_| plan.overwrites()) {
        writer.enable_timing(enable_timing)?;
        writer.settle(&mut addresses)?;
    }
    let overwrite_sectors = writer.written - fill_sectors;
    writer.finish()?;
    Ok(Preconditioned { fill_sectors, overwrite_sectors, steady })
}

/// Sectors that are filled, from the first on. Append-only regions are left to a file system.
fn fillable(caps: &DeviceCaps) -> u64 {
    match caps.has_append_only() {
        true => caps.random_range().end.min(caps.live_sectors()),
        false => caps.live_sectors(),
    }
}

/// Writes every sector of `footprint` once, in order, and drains it; no virtual time passes.
pub(super) fn prefill(
    ftl: &mut impl Ftl,
    footprint: &Footprint,
    progress: impl FnMut(f64) -> Result<(), RunError>,
) -> Result<(), RunError> {
    let mut writer = Writer::new(ftl, footprint.sectors(), progress);
    footprint.ranges().iter().try_for_each(|range| writer.write_range(range.clone()))?;
    writer.finish()
}

/// Keeps a device busy with writes, [`DEPTH`] at a time.
struct Writer<'a, F, P> {
    device: &'a mut F,
    /// Sectors that may hold data at once, from the first on: what a time of filling writes.
    logical: u64,
    /// Sectors in all, for the progress.
    total: u64,
    progress: P,
    /// Until when everything has happened.
    now: Nanos,
    is_timed: bool,
    in_flight: u32,
    written: u64,
    keeps_content: bool,
    completions: Vec<Completion>,
}

impl<'a, F: Ftl, P: FnMut(f64) -> Result<(), RunError>> Writer<'a, F, P> {
    fn new(device: &'a mut F, total: u64, progress: P) -> Self {
        let (keeps_content, logical) = (device.caps().keeps_content, fillable(device.caps()));
        let (in_flight, written, completions) = (0, 0, Vec::new());
        let (now, is_timed) = (device.now(), false);
        Self {
            device,
            logical,
            total,
            progress,
            now,
            is_timed,
            in_flight,
            written,
            keeps_content,
            completions,
        }
    }

    /// From now on the device takes time. It is at rest then.
    fn enable_timing(&mut self, enable_timing: impl FnOnce(&mut F)) -> Result<(), RunError> {
        self.drain()?;
        enable_timing(self.device);
        self.is_timed = true;
        Ok(())
    }

    fn max_sectors(&self) -> u32 {
        match self.device.caps().max_sectors {
            0 => u32::MAX,
            sectors => sectors,
        }
    }

    /// In order, from the beginning again where it goes beyond the end.
    fn fill(&mut self, sectors: u64) -> Result<(), RunError> {
        let mut at = 0;
        while at < sectors {
            let lba = at % self.logical;
            let part = (sectors - at).min(self.logical - lba);
            self.write_range(lba..lba + part)?;
            at += part;
        }
        Ok(())
    }

    /// In order, in large bios.
    fn write_range(&mut self, range: Range<u64>) -> Result<(), RunError> {
        let step = u64::from(FILL_SECTORS.min(self.max_sectors()));
        let mut at = range.start;
        while at < range.end {
            let part = step.min(range.end - at);
            self.write(Lba(at), part as u32)?;
            at += part;
        }
        Ok(())
    }

    fn overwrite(&mut self, sectors: u64, addresses: &mut Stream) -> Result<(), RunError> {
        for _ in 0..sectors {
            self.write(Lba(addresses.below(self.logical)), 1)?;
        }
        Ok(())
    }

    /// In rounds, until write amplification is steady over the last of them; whether it is.
    fn overwrite_until_steady(
        &mut self,
        most: u64,
        addresses: &mut Stream,
    ) -> Result<bool, RunError> {
        let round = (self.logical / ROUNDS).max(1);
        let mut amplification = Vec::new();
        let mut before = self.device.sectors();
        for _ in 0..most / round {
            self.overwrite(round, addresses)?;
            let now = self.device.sectors();
            let copies = (now.gc - before.gc) as f64;
            amplification.push(1.0 + copies / (now.user - before.user).max(1) as f64);
            before = now;
            if criterion::settled("write amplification", &amplification).is_ok() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Overwrites until the free space of a round's end is no longer below that of its beginning by as much as an
    /// erase unit. What is written then is a function of the stack alone, as everything before it.
    fn settle(&mut self, addresses: &mut Stream) -> Result<(), RunError> {
        let size = self.device.size();
        let round = (size.spare_sectors() / SETTLING_ROUNDS).max(1);
        let mut before = free_sectors(self.device);
        for _ in 0..SETTLING_ROUNDS * SETTLING_MAX {
            self.overwrite(round, addresses)?;
            let free = free_sectors(self.device);
            if free + u64::from(size.erase_unit_data_sectors) > before {
                break;
            }
            before = free;
        }
        Ok(())
    }

    /// Every sector written gets a unique tag.
    fn write(&mut self, lba: Lba, sectors: u32) -> Result<(), RunError> {
        let payload = match self.keeps_content {
            true => Payload::Run(Tag::new((1 << 62) + self.written)),
            false => Payload::None,
        };
        self.written += u64::from(sectors);
        if self.written.is_multiple_of(REPORT_SECTORS) {
            (self.progress)((self.written as f64 / self.total as f64).min(1.0))?;
        }
        self.submit(Bio::write(lba, sectors, payload))?;
        while self.in_flight >= DEPTH {
            self.step()?;
        }
        Ok(())
    }

    fn submit(&mut self, bio: Bio) -> Result<(), RunError> {
        match self.device.submit(self.now, bio, Token(0)) {
            Submit::Done(done) => {
                done.result?;
            }
            Submit::Pending => self.in_flight += 1,
        }
        Ok(())
    }

    /// Lets the device act on its next event.
    fn step(&mut self) -> Result<(), RunError> {
        let next = self.device.next_event().ok_or(RunError::Stuck)?;
        if next > self.now && !self.is_timed {
            return Err(RunError::TimePassed);
        }
        self.now = self.now.max(next);
        self.device.advance(self.now, &mut self.completions);
        for completion in self.completions.drain(..) {
            self.in_flight -= 1;
            completion.done.result?;
        }
        Ok(())
    }

    /// A flush covers what was acknowledged before it, so every write has to be.
    fn finish(mut self) -> Result<(), RunError> {
        self.drain()?;
        self.submit(Bio::flush())?;
        self.drain()
    }

    fn drain(&mut self) -> Result<(), RunError> {
        while self.in_flight > 0 {
            self.step()?;
        }
        Ok(())
    }
}
