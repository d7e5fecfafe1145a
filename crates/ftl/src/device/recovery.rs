//! Making a fresh device, and mounting what a power cut left:
//! 1. the out-of-band data of every written sector are replayed: of each mapping unit the copy with the highest
//!    sequence wins, then trim records hide what is older than they are;
//! 2. erase units without valid sectors are erased;
//! 3. of the others in an instance, the two with most space left go on as the open ones, for collection and for
//!    the host, so that what a collection had copied is not lost to space; all others are closed, in the order in
//!    which they were written;
//! 4. where the cut used up erase units of the reserve, or those for saving a power-safe buffer, collection gives them
//!    back. Free space is no measure for the latter: erase units with bad chunks may be too small, however many are free.
//!
//! A unit counts only if all of its sectors can be read: of a torn one no part is served. The rest of a torn page is
//! padded when its chunk is written next. Nothing but copies is written, so a power cut during recovery leaves the same
//! work to do again.
//!
//! Sizes follow from the configuration and the geometry alone, so nothing is stored about them. A device that was
//! formatted with other instances or mapping units is refused when its data say so.

use super::config::Config;
use super::flash::{Flash, Rules};
use super::instance::Stream;
use super::region::RegionMap;
use super::space::{EXHAUSTED, Space};
use super::{DeviceFtl, Plan, plan};
use crate::common::ids::LineId;
use crate::common::lines::LineState;
use crate::common::oob::key_lba;
use crate::common::replay::Replay;
use crate::common::trims::{TrimRecord, decode_trims};
use crate::error::FtlError;
use crate::kind::{FtlRun, OmittedRule};
use nandscape_block::{BlockError, Lba};
use nandscape_media::{
    ChunkState, Geometry, Internal, KEY_EMPTY, KEY_TRIM, Kind, LinkTiming, OpenChannel, Ppa,
};
use nandscape_rt::{Nanos, invariant};
use std::cmp::Reverse;

impl<M: OpenChannel> DeviceFtl<M> {
    /// Makes a fresh device on `media`, below a link with this timing, beginning at time zero.
    ///
    /// # Errors
    /// The choice that does not fit the geometry, too many bad chunks, or that power went off.
    pub fn format(
        media: M,
        config: Config,
        run: FtlRun,
        link: LinkTiming,
    ) -> Result<Self, FtlError> {
        let geometry = *media.geometry();
        Self::format_on(media, geometry, config, run, link)
    }

    /// The same on the first chunks of every unit, which `geometry` has alone.
    pub(crate) fn format_on(
        media: M,
        geometry: Geometry,
        config: Config,
        run: FtlRun,
        link: LinkTiming,
    ) -> Result<Self, FtlError> {
        let plan = plan(config, &geometry, &run);
        Self::format_as((media, geometry), plan, (run, link))
    }

    /// Mounts what is on `media`, below a link with this timing, beginning at `now`.
    ///
    /// # Errors
    /// The media comes back with the reason: power went off again, the choices do not fit, or the media holds
    /// something else.
    pub fn recover(
        media: M,
        config: Config,
        run: FtlRun,
        link: LinkTiming,
        now: Nanos,
    ) -> Result<Self, (M, FtlError)> {
        let geometry = *media.geometry();
        Self::recover_on(media, geometry, config, (run, link), now)
    }

    /// The same on the first chunks of every unit, which `geometry` has alone.
    pub(crate) fn recover_on(
        media: M,
        geometry: Geometry,
        config: Config,
        run: (FtlRun, LinkTiming),
        now: Nanos,
    ) -> Result<Self, (M, FtlError)> {
        let plan = plan(config, &geometry, &run.0);
        Self::recover_as((media, geometry), plan, run, now)
    }
}

impl<M: OpenChannel, P: RegionMap> DeviceFtl<M, P> {
    /// A fresh device after this plan.
    pub(super) fn format_as(
        media: (M, Geometry),
        plan: Result<Plan<P>, FtlError>,
        run: (FtlRun, LinkTiming),
    ) -> Result<Self, FtlError> {
        let ftl = Self::assemble(media, plan, run, Nanos::ZERO);
        let mut ftl = ftl.map_err(|(_, error)| error)?;
        for line in 0..ftl.flash.rules.sizes.lines {
            ftl.erase(line)?;
        }
        for stripe in 0..ftl.flash.rules.layout.stripes() {
            let of = |&(id, _): &(LineId, _)| ftl.flash.rules.layout.stripe_of(id) == stripe;
            let capacities: Vec<u32> =
                ftl.flash.lines.iter().filter(of).map(|(_, line)| line.capacity).collect();
            let Rules { config, sizes, .. } = &ftl.flash.rules;
            config.check_space(sizes, capacities.iter().copied().map(u64::from).sum())?;
            config.check_spares(sizes, &capacities)?;
        }
        ftl.flash.now = ftl.flash.settled;
        ftl.flash.reset_counts();
        Ok(ftl)
    }

    /// What is on the media, as a device after this plan.
    pub(super) fn recover_as(
        media: (M, Geometry),
        plan: Result<Plan<P>, FtlError>,
        run: (FtlRun, LinkTiming),
        now: Nanos,
    ) -> Result<Self, (M, FtlError)> {
        let mut ftl = Self::assemble(media, plan, run, now)?;
        match ftl.mount() {
            Ok(()) => Ok(ftl),
            Err(error) => Err((ftl.flash.media, error)),
        }
    }

    fn mount(&mut self) -> Result<(), FtlError> {
        let by_sequence = !self.flash.rules.run.omits(OmittedRule::Sequence);
        let mut replay = Replay::new(self.flash.rules.sizes.unit.ilog2(), by_sequence);
        let mut end = self.flash.now;
        for line in 0..self.flash.rules.sizes.lines {
            for index in 0..self.flash.rules.layout.width {
                end = end.max(self.flash.replay_chunk(line, index, &mut replay)?);
            }
        }
        replay.hide_trimmed(&mut self.flash.map, |at| self.flash.media.oob(at).seq);
        self.flash.next_seq = replay.seq_max + 1;
        self.discards.places = replay
            .count_valid(&self.flash.map, &mut self.flash.lines, |_, _| {})
            .into_iter()
            .collect();
        self.count_instances();
        self.flash.drop_not_chosen();
        self.flash.now = end;
        for instance in 0..self.instances.len() {
            self.place_lines(instance)?;
        }
        self.flash.now = self.flash.now.max(self.flash.settled);
        for instance in 0..self.instances.len() {
            match self.restore_reserve(instance) {
                // What is on media can be read.
                Err(FtlError::Stopped(error @ BlockError::ReadOnly(_))) => self.stop(error),
                restored => restored?,
            }
        }
        self.flash.now = self.flash.now.max(self.flash.settled);
        self.flash.reset_counts();
        Ok(())
    }

    /// Tells the map in which instance each unit is.
    fn count_instances(&mut self) {
        let units: Vec<usize> = self
            .flash
            .map
            .mapped_in(0..self.flash.map.end())
            .filter_map(|unit| self.home_of(self.flash.map.get(Lba(unit))))
            .collect();
        units.into_iter().for_each(|instance| self.flash.map.came(instance));
    }

    /// Collects until an instance has its reserve, and an erase unit for saving the buffer, as far as that helps.
    fn restore_reserve(&mut self, instance: usize) -> Result<(), FtlError> {
        loop {
            self.release_durable()?;
            self.keep_spare(instance);
            let lacks_spare = self.lacks_spare(instance);
            let wanted = self.flash.rules.config.reserve_lines() + u32::from(lacks_spare);
            if !lacks_spare && self.flash.has_free(instance, wanted) {
                return Ok(());
            }
            let mut space = Space::Exhausted;
            if self.flash.lacks(instance, wanted) {
                space = self.collect(instance)?;
            }
            let is_idle = self.instances[instance].copying.is_empty();
            if space == Space::Exhausted && lacks_spare && is_idle && !self.spare_waits(instance) {
                space = self.collect_spare(instance)?;
            }
            if space == Space::Made {
                continue;
            }
            if let Some(at) = self.flash.events.next_at() {
                self.flash.now = self.flash.now.max(at);
                self.run_round()?;
            } else if !self.program(instance, Stream::Gc)? {
                break;
            }
        }
        if self.lacks_spare(instance) {
            let error =
                BlockError::ReadOnly("no erase unit to save the buffer when power fails".into());
            return Err(error.into());
        }
        if self.flash.lines.free_lines_of(instance as u32) == 0 {
            Err(EXHAUSTED.into())
        } else {
            Ok(())
        }
    }

    /// Gives every erase unit of an instance its state and list.
    fn place_lines(&mut self, instance: usize) -> Result<(), FtlError> {
        let stripe = instance as u32;
        let (empty, mut kept): (Vec<LineId>, Vec<LineId>) = (0..self.flash.rules.sizes.lines)
            .filter(|&line| self.flash.rules.layout.stripe_of(line) == stripe)
            .partition(|&line| self.flash.lines.get(line).valid == 0);
        for line in empty {
            self.erase(line)?;
        }
        for &line in &kept {
            self.flash.count_chunks(line);
            let (written, left) = self.flash.written_and_left(line);
            let entry = self.flash.lines.get_mut(line);
            (entry.data, entry.left) = (written, left);
            entry.state = LineState::Closing;
            self.flash.lines.in_use += u64::from(written);
        }
        for stream in [Stream::Gc, Stream::Host] {
            self.reopen(instance, stream, &kept);
        }
        // Policies that go by age see erase units in the order in which they were written.
        kept.sort_by_key(|&line| self.flash.lines.get(line).seq);
        for line in kept {
            if self.flash.lines.get(line).state == LineState::Closing {
                self.flash.lines.get_mut(line).left = 0;
                self.close_if_written(line)?;
            }
        }
        Ok(())
    }

    /// Goes on in the erase unit with most space left, if any has space.
    fn reopen(&mut self, instance: usize, stream: Stream, kept: &[LineId]) {
        let left = |line: &LineId| self.flash.lines.get(*line).left;
        let closing = |line: &&LineId| self.flash.lines.get(**line).state == LineState::Closing;
        let most =
            kept.iter().filter(closing).copied().max_by_key(|line| (left(line), Reverse(*line)));
        if let Some(line) = most.filter(|line| left(line) > 0) {
            self.flash.lines.writable += u64::from(left(&line));
            let entry = self.flash.lines.get_mut(line);
            (entry.state, entry.origin) = (LineState::Open, stream as u8);
            let point = self.instances[instance].point(stream);
            invariant!(point.line.is_none(), "a mount goes on in one erase unit at a write point");
            point.line = Some(line);
        }
    }
}

impl<M: OpenChannel, P: RegionMap> Flash<M, P> {
    /// Replays what is written in a chunk of an erase unit; when it was read.
    fn replay_chunk(
        &mut self,
        line: LineId,
        index: u32,
        replay: &mut Replay,
    ) -> Result<Nanos, FtlError> {
        let chunk = self.rules.layout.chunk(line, index);
        let info = self.media.chunk(chunk);
        let mut end = self.now;
        if !matches!(info.state, ChunkState::Open | ChunkState::Closed) {
            return Ok(end);
        }
        let page = self.rules.sizes.page;
        for first in (0..info.wp).step_by(page as usize) {
            let sectors = page.min(info.wp - first);
            let at = self.rules.layout.format.ppa(chunk, first);
            end = end.max(self.media.read(self.now, self.now, at, sectors, &mut Internal)?.at);
            let row =
                u64::from(first / page) * u64::from(self.rules.layout.width) + u64::from(index);
            let order = ((u64::from(line) + 1) << 32) + row * u64::from(page);
            for offset in (0..sectors).step_by(self.rules.sizes.unit as usize) {
                let whole = offset + self.rules.sizes.unit <= sectors;
                self.replay_unit(line, at.plus(offset), order + u64::from(offset), whole, replay)?;
            }
        }
        Ok(end)
    }

    /// Whether all that a unit holds can be read and was written together: the rest of a torn page is padded
    /// later.
    fn is_whole(&self, at: Ppa) -> bool {
        let first = self.media.oob(at);
        let follows = |index| {
            let oob = self.media.oob(at.plus(index));
            let key =
                if first.key == KEY_TRIM { Some(KEY_EMPTY) } else { first.key.checked_add(index) };
            oob.kind == Kind::Data && key == Some(oob.key)
        };
        let all =
            self.rules.run.omits(OmittedRule::TornUnits) || (1..self.rules.sizes.unit).all(follows);
        first.kind == Kind::Data && self.unit_readable(at) && all
    }

    fn replay_unit(
        &mut self,
        line: LineId,
        at: Ppa,
        place: u64,
        whole: bool,
        replay: &mut Replay,
    ) -> Result<(), FtlError> {
        let oob = self.media.oob(at);
        if !whole || (oob.key != KEY_TRIM && key_lba(oob.key).is_none()) || !self.is_whole(at) {
            return Ok(());
        }
        if oob.key != KEY_TRIM || !self.rules.run.omits(OmittedRule::TrimSequence) {
            replay.seq_max = replay.seq_max.max(oob.seq + u64::from(self.rules.sizes.unit) - 1);
        }
        let entry = self.lines.get_mut(line);
        entry.seq = entry.seq.max(oob.seq);
        let by_place = self.rules.run.omits(OmittedRule::Sequence);
        let order = if by_place { place } else { oob.seq };
        if oob.key == KEY_TRIM {
            // Media may hold anything: what is no sector of records has none.
            let records = decode_trims(&self.media.data(at)).unwrap_or_default();
            let hides = |record: TrimRecord| (if by_place { order } else { record.seq }, record);
            replay.add_trims(oob.seq, at, records.into_iter().map(hides));
        } else if let Some(lba) = key_lba(oob.key) {
            let unit = self.map.unit_of(lba);
            let here = || self.map.may_be_in(unit, self.rules.layout.stripe_of(line));
            if !self.map.has(lba) || self.map.index_of(lba) != 0 || !here() {
                let kind = "mapping unit (formatted with other sizes or instances)";
                return Err(FtlError::Corrupt { kind, line });
            }
            // What superseded a dropped copy was durable: media must have lost it since.
            if !(0..self.rules.sizes.unit).any(|index| self.media.is_dropped(at.plus(index))) {
                let seq_of = |at| self.media.oob(at).seq;
                replay.offer(&mut self.map, Lba(unit), order, at, seq_of);
            }
        }
        Ok(())
    }

    /// Sectors that are written in an erase unit, and those of pages that can still be.
    fn written_and_left(&self, line: LineId) -> (u32, u32) {
        let page = self.rules.sizes.page;
        let of_chunk = |index| {
            let info = self.media.chunk(self.rules.layout.chunk(line, index));
            match info.state {
                ChunkState::Free | ChunkState::Open => {
                    let next = info.wp.next_multiple_of(page);
                    (next, self.rules.geometry.sectors - next)
                }
                ChunkState::Closed => (info.wp, 0),
                ChunkState::Offline => (0, 0),
            }
        };
        (0..self.rules.layout.width)
            .map(of_chunk)
            .fold((0, 0), |(written, left), (w, l)| (written + w, left + l))
    }
}
