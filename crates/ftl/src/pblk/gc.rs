//! Garbage collection: when victims are started, and which (pblk-gc.c). Their reads are the collector's.

use super::collector::{REQUESTS_MAX, VICTIMS_MAX, VictimLine, copying};
use super::flash::Flash;
use super::ids::BufferId;
use super::layout::Cursor;
use super::mapcache::MapCache;
use super::rules::Rules;
use super::supply::Supply;
use crate::common::ids::LineId;
use crate::common::lines::{Line, LineState};
use crate::error::FtlError;
use nandscape_media::{Internal, OpenChannel};
use nandscape_rt::{Nanos, invariant};
use smallvec::SmallVec;

impl<M: OpenChannel> Flash<M> {
    /// Whether nothing that is valid in a line can be read.
    fn is_lost(&self, line: LineId) -> bool {
        let mut sectors = self.line_sectors(line);
        sectors.all(|at| !self.lines.is_valid(at) || !self.media.readable(at))
    }

    /// Charges the reading of a victim's address list. It is read again from out-of-band data, so an
    /// uncorrectable sector in it costs nothing more.
    fn read_emeta(&mut self, rules: &Rules, line: LineId) -> Result<Nanos, FtlError> {
        let mut at = self.line_end();
        let mut missing = self.emeta_units(rules);
        let mut ready = self.now;
        while missing > 0 && at > Cursor::START {
            at.step_back(self.layout.width);
            let ppa = self.ppa_at(line, at);
            if self.is_written(ppa) {
                self.media.set_cause(copying(self.geometry.ws_opt));
                let (now, ws_opt) = (self.now, self.geometry.ws_opt);
                ready = ready.max(self.media.read(now, now, ppa, ws_opt, &mut Internal)?.at);
                missing -= 1;
            }
        }
        Ok(ready)
    }
}

impl<M: OpenChannel> Supply<'_, M> {
    /// The collector's thread of the host begins.
    pub(super) fn start_thread(&mut self) {
        self.collector.thread.pace(self.rules.config.pacing());
        self.limiter_update();
        self.collector.thread.arm(self.flash);
    }

    /// Chooses victims and reads them, as far as the limiter and the pacing want. Whether anything was
    /// started.
    pub(super) fn collect(&mut self, cache: Option<&MapCache>) -> Result<bool, FtlError> {
        self.return_constrained();
        let mut moved = self.start_victims()?;
        while self.collector.in_flight_requests() < REQUESTS_MAX {
            let Some(index) = self.collector.read_some(self.flash, cache)? else { break };
            self.collector.plan_copies(self.flash, self.buffers, self.rules);
            self.finish_victim(index);
            moved = true;
        }
        Ok(moved)
    }

    /// Starts victims where the pacing lets it. Whether anything was started or freed.
    fn start_victims(&mut self) -> Result<bool, FtlError> {
        if !self.collector.thread.is_paced() {
            return self.fill_victims();
        }
        if !self.collector.thread.begin_run(self.flash.now) {
            return Ok(false);
        }
        let mut moved = self.free_garbage();
        moved |= self.fill_victims()?;
        self.collector.thread.end_run(moved);
        Ok(moved)
    }

    /// Starts victims until as many are in flight as may be. Whether any was started.
    pub(super) fn fill_victims(&mut self) -> Result<bool, FtlError> {
        let mut moved = false;
        while self.collector.in_flight(self.flash.now) < VICTIMS_MAX && self.start_victim()? {
            moved = true;
        }
        self.collector.takes_all &= !moved;
        Ok(moved)
    }

    /// Starts on one more victim, if one is wanted and its valid sectors surely find room: the
    /// policy's choice, or, where a power cut has left little room, the line that needs least. While
    /// there is space enough only lines with write errors are wanted.
    fn start_victim(&mut self) -> Result<bool, FtlError> {
        let target = self.copies_target();
        let Some(id) = self.choose_victim(target) else { return Ok(false) };
        let line = *self.flash.lines.get(id);
        invariant!(
            line.state == LineState::Closed && line.pending == 0,
            "a victim is closed, and all of its entries have left the rings: {line:?}"
        );
        let buffer = self.space().copies_of(&line, target);
        self.flash.victims.remove(id);
        self.flash.lines.get_mut(id).state = LineState::Gc;
        self.stats.gc.victims += 1;
        self.stats.gc.victim_valid += u64::from(line.valid);
        self.stats.gc.victim_data += u64::from(line.data);
        let origin = &mut self.stats.buffers[usize::from(line.origin)];
        origin.victims += 1;
        origin.victim_valid += u64::from(line.valid);
        let ready_at =
            if line.emeta { self.flash.read_emeta(self.rules, id)? } else { self.flash.now };
        let unread = line.valid;
        let victim = VictimLine { id, at: Cursor::START, unread, requests: 0, ready_at, buffer };
        self.collector.victims.push(victim);
        self.collector.pending_sectors += u64::from(unread);
        if self.collector.takes_all {
            self.collector.gathers_in = Some((buffer, self.stats.admitted_sectors()));
        }
        self.collector.plan_copies(self.flash, self.buffers, self.rules);
        self.limiter_update();
        Ok(true)
    }

    /// Where copies go that need not stay with their like. Where any line is a victim that gains anything, all
    /// go to one buffer, that with most room: each buffer pads what they leave of a unit, which may be
    /// more than their lines gain.
    fn copies_target(&mut self) -> BufferId {
        if let Some(gc) = self.buffers.router.plan().gc {
            return gc;
        }
        if !self.collector.takes_all {
            return self.buffers.router.copies_in_turn();
        }
        let normal = self.buffers.router.plan().normal.clone();
        let roomiest = || normal.rev().max_by_key(|&id| self.space().uncommitted(id)).unwrap_or(0);
        let gathers = self.collector.gathers_in(self.stats).filter(|_| {
            self.collector.is_gathering(self.buffers, self.stats) || !self.collector.is_idle()
        });
        gathers.unwrap_or_else(roomiest)
    }

    /// Where lines are short on the whole, the stripe with most to gain is collected first; else each
    /// that is short itself. A victim must gain more than copying it may pad; what flushes of several
    /// buffers pad counts unless users stand still. Lines of the journal that are exempt are victims
    /// when nothing else helps: when forced, and where users stand still and they alone gain more than a unit. Each of
    /// the others could be copied into as much as it held, for ever.
    fn choose_victim(&mut self, target: BufferId) -> Option<LineId> {
        let short =
            self.space().wants_victim(self.frontiers.limiter_free(self.flash, self.rules, None));
        let stripes = self.flash.layout.stripes();
        let of_stripe = |stripe| {
            stripes > 1
                && self.space().wants_victim(self.frontiers.limiter_free(
                    self.flash,
                    self.rules,
                    Some(stripe),
                ))
        };
        let wanted = |stripe: u32| short || of_stripe(stripe);
        if !self.flash.victims.has_werr() && !(0..stripes).any(wanted) {
            return None;
        }
        let wanted: SmallVec<[bool; 8]> = (0..stripes).map(wanted).collect();
        let (lines, room) = (&self.flash.lines, self.space().uncommitted(target));
        let all = self.collector.takes_all;
        let least = all || (self.collector.is_idle() && room < self.space().reserved_lines());
        let halted = all
            || self.buffers.all[0]
                .rl
                .stops_users(self.frontiers.limiter_free(self.flash, self.rules, None));
        let pressed = self.buffers.all.len() == 1 || halted;
        let unit = self.flash.geometry.ws_opt;
        let copied = self.rules.capacity.copy_padding;
        let settled = |line: LineId| lines.get(line).pending == 0;
        let fits = |line: LineId| u64::from(lines.get(line).valid) <= room;
        let gains_beside = |line: LineId, padding: u32| {
            let Line { valid, capacity, .. } = *lines.get(line);
            valid + padding.max(copied.of(valid)) < capacity
        };
        let (plan, spares) = (self.buffers.router.plan(), self.space().spares_journal());
        let of_journal = |line: LineId| plan.is_journal(lines.get(line).origin);
        let helps = |line: LineId| settled(line) && fits(line) && gains_beside(line, unit);
        let any_helps = |passes: &dyn Fn(LineId) -> bool| {
            let mut wanted = (0..stripes).filter(|&stripe| wanted[stripe as usize]);
            wanted.any(|stripe| self.flash.victims.least_valid(stripe, passes).is_some())
        };
        let journal_helps = spares
            && halted
            && !any_helps(&|line| helps(line) && !of_journal(line))
            && any_helps(&helps);
        let flushed = if short && pressed && !journal_helps { 0 } else { unit };
        let spared = |line: LineId| spares && !journal_helps && of_journal(line);
        let order =
            if short { self.flash.victims.by_gain(settled) } else { lines.stripes_by_need() };
        self.flash.victims.find(order, |victims, stripe| {
            let line = |index: LineId| self.flash.layout.line(index, stripe);
            let fits = |index: &LineId| fits(line(*index));
            if !wanted[stripe as usize] {
                return victims.choose_werr(|index| settled(line(index))).filter(fits);
            }
            let eligible = |index| {
                let line = line(index);
                settled(line) && gains_beside(line, flushed) && !spared(line)
            };
            let chosen = if least { None } else { victims.choose(eligible).filter(fits) };
            chosen.or_else(|| victims.least_valid(u32::MAX, eligible).filter(fits))
        })
    }

    /// A victim that is fully read and inserted is empty, or holds what media could not read.
    pub(super) fn finish_victim(&mut self, index: usize) {
        let victim = self.collector.victims[index];
        if victim.at < self.flash.line_end() || victim.requests > 0 {
            return;
        }
        self.collector.victims.remove(index);
        if self.flash.lines.get(victim.id).valid == 0 {
            self.quarantine_line(victim.id);
        } else {
            invariant!(
                self.flash.is_lost(victim.id),
                "all of victim {} that can be read was copied",
                victim.id
            );
            self.flash.lines.get_mut(victim.id).state = LineState::Corrupt;
        }
        self.collector.plan_copies(self.flash, self.buffers, self.rules);
        self.limiter_update();
    }
}
