//! The invariants of a conventional SSD, checked the slow way; for tests and campaigns.

use super::DeviceFtl;
use super::flash::Flash;
use super::instance::Stream;
use super::region::RegionMap;
use crate::common::ids::LineId;
use crate::common::l2p::MapEntry;
use crate::common::lines::{Line, LineState};
use nandscape_block::Lba;
use nandscape_media::{ChunkState, KEY_TRIM, Kind, OpenChannel, Ppa};
use std::collections::BTreeSet;

fn ensure(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}

/// A device that is looked at.
pub(super) struct Check<'a, M, P> {
    pub(super) device: &'a DeviceFtl<M, P>,
    pub(super) flash: &'a Flash<M, P>,
}

impl<M: OpenChannel, P: RegionMap> Check<'_, M, P> {
    /// Whether table, buffer, erase units and media agree.
    pub(super) fn all(&self) -> Result<(), String> {
        let mapped = self.check_table()?;
        self.check_valid_bits(mapped)?;
        self.check_sequences()?;
        self.check_lines()?;
        self.check_trims()?;
        (0..self.device.instances.len()).try_for_each(|instance| self.check_space(instance))?;
        let (used, shares) = (self.device.buffer.used(), self.device.buffer.shares());
        ensure(used == shares, || {
            format!("the buffer counts {used} sectors, pages have {shares}")
        })?;
        let wrong = self.flash.counts.media_errors.mismatches;
        ensure(wrong == 0, || format!("{wrong} sectors were not what was to be read"))
    }

    /// Every table entry points at its unit. How many sectors are on media.
    fn check_table(&self) -> Result<u64, String> {
        let mut mapped = 0;
        let mut of_instances = vec![0; self.device.instances.len()];
        for unit in self.flash.map.mapped_in(0..self.flash.map.end()) {
            let home = self.device.home_of(self.flash.map.get(Lba(unit)));
            home.into_iter().for_each(|instance| of_instances[instance] += 1);
            let lba = self.flash.map.first_of(unit);
            match self.flash.map.get(Lba(unit)) {
                MapEntry::Unmapped => {}
                MapEntry::Buffered(slot) => {
                    let key = self.device.buffer.key(slot);
                    ensure(u64::from(key) == lba.0, || {
                        format!("{lba} points at slot {slot}, which holds {key}")
                    })?;
                }
                MapEntry::Flash(at) => {
                    mapped += u64::from(self.flash.rules.sizes.unit);
                    let stripe = self.flash.rules.layout.stripe_of(self.flash.lines.of(at));
                    ensure(self.flash.map.may_be_in(unit, stripe), || {
                        format!("{lba} is in instance {stripe}")
                    })?;
                    (0..self.flash.rules.sizes.unit)
                        .try_for_each(|i| self.check_sector(lba, at, i))?;
                }
            }
        }
        self.device.discards.waiting().for_each(|instance| of_instances[instance] += 1);
        self.flash.map.check(&of_instances)?;
        Ok(mapped)
    }

    /// What is written next has a higher sequence than anything that counts.
    fn check_sequences(&self) -> Result<(), String> {
        let sectors = (0..self.flash.rules.sizes.lines).flat_map(|id| self.sectors_of(id));
        for at in
            sectors.filter(|&at| self.flash.lines.is_valid(at) && self.flash.media.readable(at))
        {
            let (oob, next) = (self.flash.media.oob(at), self.flash.next_seq);
            ensure(oob.kind != Kind::Data || oob.seq < next, || {
                format!("sequences go on with {next}, {at:?} holds {oob:?}")
            })?;
        }
        Ok(())
    }

    /// What the buffer holds where trim records are awaited are such; those of programs that completed are gone.
    fn check_trims(&self) -> Result<(), String> {
        let slots = self.device.buffer.filled_pages().flat_map(|(id, page)| {
            let first = self.device.buffer.first_slot(id);
            first..first + page.filled
        });
        let others = slots.filter(|&slot| self.device.buffer.key(slot) != KEY_TRIM);
        let others: BTreeSet<u64> = others.map(|slot| self.device.buffer.seq(slot)).collect();
        let wrong = self.device.discards.log.emitted().find(|seq| others.contains(seq));
        ensure(wrong.is_none(), || {
            format!("trim records are awaited at {wrong:?}, which holds none")
        })
    }

    fn check_sector(&self, lba: Lba, at: Ppa, index: u32) -> Result<(), String> {
        let (lba, at) = (lba.plus(u64::from(index)), at.plus(index));
        let oob = self.flash.media.oob(at);
        let holds = oob.kind == Kind::Data && u64::from(oob.key) == lba.0;
        ensure(holds, || format!("{lba} points at {at:?}, which holds {oob:?}"))?;
        ensure(self.flash.lines.is_valid(at), || format!("{lba} at {at:?} is not valid"))
    }

    /// Bits, counts and mapped sectors agree; the rest of the bits are trim records.
    fn check_valid_bits(&self, mapped: u64) -> Result<(), String> {
        let mut valid = 0;
        for (id, line) in self.flash.lines.iter() {
            let bits: u32 =
                self.sectors_of(id).map(|at| u32::from(self.flash.lines.is_valid(at))).sum();
            ensure(bits == line.valid, || format!("line {id}: {bits} bits, counted {line:?}"))?;
            let empty = matches!(
                line.state,
                LineState::Free | LineState::AwaitingDurability | LineState::Next | LineState::Bad
            );
            ensure(!empty || bits == 0, || format!("line {id} is empty but valid: {line:?}"))?;
            valid += u64::from(bits);
        }
        ensure(valid >= mapped, || format!("{valid} valid sectors, {mapped} mapped"))
    }

    fn sectors_of(&self, id: LineId) -> impl Iterator<Item = Ppa> {
        (0..self.flash.rules.layout.width).flat_map(move |index| {
            let first =
                self.flash.rules.layout.format.ppa(self.flash.rules.layout.chunk(id, index), 0);
            (0..self.flash.rules.geometry.sectors).map(move |i| first.plus(i))
        })
    }

    /// Free erase units are erased; open ones have the places that they count.
    fn check_lines(&self) -> Result<(), String> {
        for (id, line) in self.flash.lines.iter() {
            let chunks = (0..self.flash.rules.layout.width)
                .map(|i| self.flash.media.chunk(self.flash.rules.layout.chunk(id, i)));
            let good = chunks.filter(|chunk| chunk.state != ChunkState::Offline);
            let (mut written, mut room) = (0, 0);
            for chunk in good {
                written += chunk.wp;
                let takes = matches!(chunk.state, ChunkState::Free | ChunkState::Open);
                let next = chunk.wp.next_multiple_of(self.flash.rules.sizes.page);
                room += if takes { self.flash.rules.geometry.sectors - next } else { 0 };
            }
            let free = line.state == LineState::Free;
            ensure(!free || written == 0, || {
                format!("line {id} is free, but {written} are written")
            })?;
            // Places that were given to pages in the buffer are not written yet.
            let open = line.state == LineState::Open;
            ensure(!open || (line.left <= room && room - line.left <= line.pending), || {
                format!("line {id} has {room} sectors of places: {line:?}")
            })?;
        }
        Ok(())
    }

    /// An instance has what a collection needs, now or when what waits for its erase was erased.
    fn check_space(&self, instance: usize) -> Result<(), String> {
        let errors = &self.flash.counts.media_errors;
        let failed = errors.program_failures + errors.erase_failures > 0;
        ensure(
            failed || self.device.stopped.is_some() || self.device.copies_fit(instance),
            || format!("instance {instance}: the copies of its victims do not fit"),
        )?;
        // A program that failed may have taken what is given back when those in flight have completed.
        if self.device.stopped.is_some() || !self.device.instances[instance].is_idle() {
            return Ok(());
        }
        let stripe = instance as u32;
        let of = |&(id, _): &(LineId, &Line)| self.flash.rules.layout.stripe_of(id) == stripe;
        // Failures may take what the sizes promise; then trim records may have the last erase unit.
        let good =
            self.flash.lines.iter().filter(of).map(|(_, line)| u64::from(line.capacity)).sum();
        if self.flash.rules.config.check_space(&self.flash.rules.sizes, good).is_err() {
            return Ok(());
        }
        let free = self.flash.lines.free_lines_of(stripe) as usize;
        let waiting = self.flash.lines.quarantined_in(stripe).count();
        let point = &self.device.instances[instance].gc;
        let open = self.flash.places_left(point.line) * self.flash.rules.sizes.page;
        let fits = |line: &Line| line.state == LineState::Closed && line.valid <= open;
        let has_victim = || self.flash.lines.iter().filter(of).any(|(_, line)| fits(line));
        ensure(
            free + waiting > 0 || open >= self.flash.rules.sizes.line_sectors || has_victim(),
            || {
                format!(
                    "instance {instance} has no free erase unit, and {open} sectors open for copies"
                )
            },
        )?;
        for stream in [Stream::Host, Stream::Gc] {
            let point = match stream {
                Stream::Host => &self.device.instances[instance].host,
                Stream::Gc => point,
            };
            if let Some(line) = point.line {
                let state = self.flash.lines.get(line).state;
                ensure(state == LineState::Open, || format!("line {line} is open, but {state:?}"))?;
            }
        }
        Ok(())
    }
}
