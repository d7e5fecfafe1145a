//! The FTL's invariants, checked the slow way; for tests and campaigns.

use super::Pblk;
use super::intake::EntryState;
use super::mapping::Mapping;
use super::rb::Ring;
use super::rl::RateLimiter;
use crate::common::l2p::MapEntry;
use crate::common::lines::{Line, LineState};
use crate::kind::OmittedRule;
use nandscape_block::{Lba, SectorData};
use nandscape_media::{ChunkState, KEY_TRIM, Kind, OpenChannel};

fn ensure(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}

/// Everything of a pblk, looked at to be checked.
pub(super) struct Checker<'a, M>(pub(super) &'a Pblk<M>);

impl<M: OpenChannel> Checker<'_, M> {
    /// Whether table, ring, lines and media agree.
    ///
    /// # Errors
    /// The first invariant that does not hold, in words.
    pub(super) fn check(&self) -> Result<(), String> {
        self.check_pointers()?;
        self.check_trims()?;
        let mapped = self.check_table()?;
        self.check_valid_bits(mapped)?;
        self.check_sequences()?;
        self.check_space()?;
        self.check_frontiers()?;
        self.check_open_lines()?;
        self.check_open_chunks()?;
        self.check_map()?;
        let wrong = self.0.flash.counts.media_errors.mismatches;
        ensure(wrong == 0, || format!("{wrong} sectors were not what was to be read"))
    }

    fn check_pointers(&self) -> Result<(), String> {
        self.0.buffers.all.iter().try_for_each(|buffer| check_buffer(&buffer.rb, &buffer.rl))
    }

    /// Where trim records are awaited in the ring there are some, and what records hide is not mapped.
    fn check_trims(&self) -> Result<(), String> {
        let rb = &self.0.buffers.all[0].rb;
        self.0.buffers.trims.emitted().filter(|&position| position >= rb.sync).try_for_each(
            |position| {
                let holds = position < rb.mem && rb.key(position) == KEY_TRIM;
                ensure(holds, || {
                    format!("trim records are awaited at {position}, which holds none")
                })
            },
        )?;
        self.0.buffers.trimmed.sectors().try_for_each(|lba| {
            let place = self.0.flash.l2p.get(lba);
            ensure(place == MapEntry::Unmapped, || format!("{lba} is discarded, but {place:?}"))
        })
    }

    /// Every table entry points at its sector. How many are on media.
    fn check_table(&self) -> Result<u64, String> {
        let mut mapped = 0;
        for lba in (0..self.0.flash.l2p.len()).map(Lba) {
            match self.0.flash.l2p.get(lba) {
                MapEntry::Unmapped => {}
                MapEntry::Buffered(slot) => {
                    let rb = self.0.buffers.ring_of(slot);
                    let back = rb.position_of(slot);
                    let holds = back >= rb.l2p_update && u64::from(rb.key(back)) == lba.0;
                    ensure(holds, || format!("{lba} points at slot {slot}, which is another's"))?;
                }
                MapEntry::Flash(at) => {
                    mapped += 1;
                    let oob = self.0.flash.media.oob(at);
                    let holds = oob.kind == Kind::Data && u64::from(oob.key) == lba.0;
                    ensure(holds, || format!("{lba} points at {at:?}, which holds {oob:?}"))?;
                    ensure(self.0.flash.lines.is_valid(at), || {
                        format!("{lba} at {at:?} is not valid")
                    })?;
                    ensure(self.0.flash.is_served(at), || {
                        format!("{lba} at {at:?} is not served yet")
                    })?;
                }
            }
        }
        Ok(mapped)
    }

    /// Bits, counts and mapped sectors agree; the rest of the bits are trim records.
    fn check_valid_bits(&self, mapped: u64) -> Result<(), String> {
        let mut valid = 0;
        for (id, line) in self.0.flash.lines.iter() {
            let bits: u32 = self
                .0
                .flash
                .line_sectors(id)
                .map(|at| u32::from(self.0.flash.lines.is_valid(at)))
                .sum();
            ensure(bits == line.valid, || format!("line {id}: {bits} bits, counted {line:?}"))?;
            let empty = matches!(
                line.state,
                LineState::Free | LineState::AwaitingDurability | LineState::Next
            );
            ensure(!empty || bits == 0, || format!("line {id} is empty but valid: {line:?}"))?;
            valid += u64::from(bits);
        }
        let blind = self.0.mapping.as_ref().and_then(|mapping| mapping.blind.as_ref());
        let mut superseded = 0;
        for at in blind.iter().flat_map(|blind| blind.unsettled()) {
            superseded += 1;
            ensure(self.0.flash.lines.is_valid(at), || {
                format!("{at:?} was freed before its merge")
            })?;
        }
        ensure(valid >= mapped + superseded, || {
            format!(
                "{valid} valid sectors, {mapped} mapped, {superseded} superseded by blind updates"
            )
        })
    }

    /// What is written next has a higher sequence than anything that counts.
    fn check_sequences(&self) -> Result<(), String> {
        let sectors = (0..self.0.rules.capacity.lines).flat_map(|id| self.0.flash.line_sectors(id));
        for at in
            sectors.filter(|&at| self.0.flash.lines.is_valid(at) && self.0.flash.media.readable(at))
        {
            let oob = self.0.flash.media.oob(at);
            let next = self.0.flash.next_seq;
            ensure(oob.kind != Kind::Data || oob.seq < next, || {
                format!("sequences go on with {next}, {at:?} holds {oob:?}")
            })?;
        }
        Ok(())
    }

    /// Mapping blocks are where the directory says and hold what the table says, every table entry
    /// that names what is not durable pins its block, and the lines kept for mapping blocks are accounted for.
    fn check_map(&self) -> Result<(), String> {
        let Some(mapping) = &self.0.mapping else { return Ok(()) };
        let (mut located, mut pinned, mut pinned_entries) = (0, 0, 0);
        for block in 0..mapping.cache.blocks() {
            located += self.check_block(mapping, block)?;
            let sectors = mapping.cache.sectors_of(block);
            let in_ring = (sectors.start..sectors.end.min(self.0.flash.l2p.len()))
                .filter(|&lba| !mapping.holds_blind(Lba(lba)))
                .filter(|&lba| {
                    self.0.buffers.entry_state(self.0.flash.l2p.get(Lba(lba)))
                        == EntryState::BufferedVolatile
                });
            let entries = in_ring.count() as u32;
            pinned += u32::from(entries > 0);
            pinned_entries += entries;
        }
        let pins = if mapping.cache.is_whole() { pinned } else { pinned_entries };
        let counted = mapping.cache.pinned();
        let ignored = self.0.rules.run.omits(OmittedRule::MapPins);
        ensure(counted == pins || ignored, || {
            format!("{pins} slots hold ring places, {counted} are pinned")
        })?;
        let map_lines =
            || self.0.flash.lines.iter().map(|(_, line)| line).filter(|line| line.is_map());
        let valid: u32 = map_lines().map(|line| line.valid).sum();
        ensure(valid == located, || format!("{located} mapping sectors, {valid} are valid"))?;
        let held = map_lines().filter(|line| line.state != LineState::Bad).count() as u32;
        let (kept, quota) = (self.0.flash.lines.kept, self.0.rules.capacity.map_lines);
        ensure(held + kept >= quota, || format!("{held} mapping lines and {kept} kept of {quota}"))
    }

    /// How many sectors of a block are on media.
    fn check_block(&self, mapping: &Mapping, block: u32) -> Result<u32, String> {
        let shape = mapping.store.shape;
        let settled = mapping.is_settled(block);
        if mapping.location(block, 0).is_none() {
            // A device that is worn out may not have written it any more.
            let blank = !settled
                || self.0.progress.stopped.is_some()
                || self.0.flash.l2p.is_blank(mapping.cache.sectors_of(block));
            ensure(blank, || format!("block {block} is neither loaded nor on media"))?;
            return Ok(0);
        }
        let truth = SectorData::Tag(mapping.digest(&self.0.flash, &self.0.buffers, block));
        let mut located = 0;
        for piece in 0..shape.pieces {
            let at = mapping.location(block, piece);
            let at = at.ok_or_else(|| format!("block {block} has no piece {piece}"))?;
            let key = shape.key(block, piece);
            for (at, key) in (0..shape.piece_len(piece)).map(|i| (at.plus(i), key + i)) {
                let oob = self.0.flash.media.oob(at);
                let holds =
                    (oob.kind, oob.key) == (Kind::Map, key) && self.0.flash.lines.is_valid(at);
                ensure(holds, || format!("block {block} points at {at:?}, which holds {oob:?}"))?;
                let data = self.0.flash.media.data(at);
                let tells = !settled || !self.0.rules.run.keep_content || data == truth;
                ensure(tells, || format!("block {block} at {at:?} is not what the table says"))?;
                located += 1;
            }
        }
        Ok(located)
    }

    /// The lines of frontiers are of their stripes, and no two frontiers of a buffer have any in common.
    fn check_frontiers(&self) -> Result<(), String> {
        for (f, frontier) in self.0.frontiers.all.iter().enumerate() {
            for line in frontier.lines() {
                let stripe = self.0.flash.layout.stripe_of(line);
                ensure(frontier.stripes.has(stripe), || {
                    format!(
                        "line {line} of stripe {stripe} is frontier {f}'s, of {:?}",
                        frontier.stripes
                    )
                })?;
            }
        }
        for buffer in &self.0.buffers.all {
            for stripe in 0..self.0.flash.layout.stripes() {
                let own = buffer.frontiers.clone().map(|f| &self.0.frontiers.all[usize::from(f)]);
                let takers = own.filter(|frontier| frontier.stripes.has(stripe)).count();
                ensure(takers == 1, || {
                    format!("{takers} of frontiers {:?} take stripe {stripe}", buffer.frontiers)
                })?;
            }
        }
        Ok(())
    }

    /// An open line takes as much as it has left. A program may have failed whose completion is still to come.
    fn check_open_lines(&self) -> Result<(), String> {
        for open in self.0.frontiers.all.iter().filter_map(|frontier| frontier.open) {
            let line = self.0.flash.lines.get(open.id);
            let room = |index| {
                let chunk = self.0.flash.media.chunk(self.0.flash.chunk_at(open.id, index));
                let end = open.data_end(index) * self.0.flash.geometry.ws_opt;
                let takes = matches!(chunk.state, ChunkState::Free | ChunkState::Open);
                if takes { end.saturating_sub(chunk.wp) } else { 0 }
            };
            let room: u32 = (0..self.0.flash.layout.width).map(room).sum();
            let id = open.id;
            ensure(line.in_flight > 0 || line.left == room, || {
                format!("line {id} takes {room} sectors, counted {line:?}")
            })?;
        }
        Ok(())
    }

    /// Where open chunks are limited only lines that count have any.
    fn check_open_chunks(&self) -> Result<(), String> {
        let counts = |line: &Line| {
            matches!(line.state, LineState::Next | LineState::Open | LineState::Closing)
        };
        let limited = self.0.flash.geometry.limits_open_chunks();
        for (id, line) in self.0.flash.lines.iter().filter(|(_, line)| limited && !counts(line)) {
            let open = (0..self.0.flash.layout.width).map(|index| self.0.flash.chunk_at(id, index));
            let open =
                open.filter(|&chunk| self.0.flash.media.chunk(chunk).state == ChunkState::Open);
            let open = open.count();
            // A program in flight may be the one that closes its chunk, or not be issued yet.
            ensure(open == 0 || line.in_flight > 0, || {
                format!("line {id} has {open} open chunks: {line:?}")
            })?;
        }
        Ok(())
    }

    fn check_space(&self) -> Result<(), String> {
        let (mut writable, mut in_use, mut free_chunks) = (0, 0, 0);
        for (_, line) in self.0.flash.lines.iter() {
            in_use += u64::from(line.data);
            match line.state {
                LineState::Free => {
                    writable += u64::from(line.capacity);
                    free_chunks += line.chunks;
                }
                LineState::Next | LineState::Open => writable += u64::from(line.left),
                _ => {}
            }
        }
        let counted = (
            self.0.flash.lines.writable,
            self.0.flash.lines.in_use,
            self.0.flash.lines.free_chunks,
        );
        ensure(counted == (writable, in_use, free_chunks), || {
            format!(
                "writable, in use, free chunks: counted {counted:?}, are {:?}",
                (writable, in_use, free_chunks)
            )
        })?;
        let pending_sectors: u64 =
            self.0.collector.pending_copies().map(|(_, sectors)| sectors).sum();
        ensure(self.0.collector.pending_sectors == pending_sectors, || {
            format!(
                "{pending_sectors} copies are to come, counted {}",
                self.0.collector.pending_sectors
            )
        })
    }
}

fn check_buffer(rb: &Ring, rl: &RateLimiter) -> Result<(), String> {
    let ordered = rb.l2p_update <= rb.sync
        && rb.sync <= rb.subm
        && rb.subm <= rb.mem
        && rb.mem - rb.l2p_update <= u64::from(rb.size());
    ensure(ordered, || format!("ring pointers out of order: {rb:?}"))?;
    let entries = rl.entries();
    ensure(u64::from(entries) == rb.mem - rb.sync, || {
        format!("the limiter counts {entries} entries, the ring {}", rb.mem - rb.sync)
    })
}
