//! Mounting what a power cut left (pblk-recovery.c), in these steps:
//! 1. open chunks are padded until the device serves all that was written to them;
//! 2. start metadata holds the device's size and the order in which lines were opened;
//! 3. the out-of-band data of every written sector is replayed: for each logical sector the copy
//!    with the highest sequence wins, then trim records hide what is older than they are;
//! 4. lines get their counts; the youngest line of each frontier with data and room goes on as its open
//!    line, lines without valid sectors are free, the others are closed.
//!
//! Nothing is written but padding, so a power cut during recovery leaves the same work to do again,
//! and at worst a full line where an open one was.
//! A line whose end metadata is complete, and can be read, keeps the addresses of sectors that media
//! cannot correct: they read as errors, never as an older copy. Of other lines such sectors are
//! forgotten, whether a power cut tore them or a fault struck them: out-of-band data are as unreadable.

use super::flash::Flash;
use super::format::Smeta;
use super::frontiers::{Frontiers, OpenLine};
use super::ids::FrontierId;
use super::layout::{Cursor, line_layout};
use super::mapmount::FoundMap;
use super::rules::Rules;
use super::units::MAX_UNIT;
use super::{Capacity, Pblk};
use crate::common::ids::{LineId, MAP_ORIGIN};
use crate::common::layout::Layout;
use crate::common::lines::LineState;
use crate::common::oob::key_lba;
use crate::common::replay::Replay;
use crate::common::trims::{TrimRecord, decode_trims};
use crate::error::FtlError;
use crate::kind::{FtlRun, OmittedRule};
use crate::pblk::config::Config;
use nandscape_media::{
    ChunkId, ChunkState, Geometry, Internal, KEY_EMPTY, KEY_TRIM, Kind, Linked, OpenChannel, Ppa,
    Status, WriteCmd,
};
use nandscape_rt::Nanos;

/// No device opens so many lines.
const LINE_SEQ_END: u64 = 1 << 31;

impl<M: OpenChannel> Flash<M> {
    /// Replays the written sectors of one line; reads its address list, or every unit without one. A
    /// line whose start metadata is lost is replayed as well: of a line that was being erased all
    /// copies are superseded.
    fn replay_line(
        &mut self,
        rules: &Rules,
        id: LineId,
        line_seq: u64,
        replay: &mut Replay,
        map: &mut FoundMap,
    ) -> Result<(), FtlError> {
        let ws_opt = self.geometry.ws_opt;
        let mut emeta_left = self.emeta_units(rules) * ws_opt;
        let written = self.served_units(id);
        for &at in &written {
            let told = (0..ws_opt)
                .map(|i| at.plus(i))
                .filter(|&at| self.media.oob(at).kind == Kind::Emeta && self.media.readable(at));
            emeta_left = emeta_left.saturating_sub(told.count() as u32);
        }
        let line = self.lines.get_mut(id);
        line.seq = line_seq;
        line.emeta = emeta_left == 0;
        let emeta = line.emeta;
        let mut end = self.now;
        for (position, &at) in written.iter().enumerate() {
            let kind = self.media.oob(at).kind;
            if emeta == (kind == Kind::Emeta) {
                end = end.max(self.media.read(self.now, self.now, at, ws_opt, &mut Internal)?.at);
            }
            let order = (line_seq + 1) << 32 | (position as u64 * u64::from(ws_opt));
            self.replay_unit(rules, id, at, order, replay, map);
        }
        self.now = end;
        Ok(())
    }

    /// The units of a line that the device serves, in the order of writing; what lies behind them
    /// is padding.
    fn served_units(&self, id: LineId) -> Vec<Ppa> {
        let mut at = Cursor::START;
        let mut served = Vec::new();
        while at < self.line_end() {
            let info = self.media.chunk(self.chunk_at(id, at.chunk));
            let first = self.ppa_at(id, at);
            let last = first.plus(self.geometry.ws_opt - 1);
            let written = matches!(info.state, ChunkState::Open | ChunkState::Closed)
                && self.layout.format.sector_of(last) < info.wp;
            if written && self.is_served(last) {
                served.push(first);
            }
            at.step(self.layout.width);
        }
        served
    }

    fn replay_unit(
        &mut self,
        rules: &Rules,
        id: LineId,
        at: Ppa,
        order: u64,
        replay: &mut Replay,
        map: &mut FoundMap,
    ) {
        for i in 0..self.geometry.ws_opt {
            let at = at.plus(i);
            let oob = self.media.oob(at);
            if oob.kind == Kind::Map {
                let line = self.lines.get_mut(id);
                line.data += 1;
                if rules.caches_map() {
                    line.origin = MAP_ORIGIN;
                }
                map.add(oob.key, oob.seq, at);
                continue;
            }
            if !matches!(oob.kind, Kind::Data | Kind::Pad) {
                continue;
            }
            self.lines.get_mut(id).data += 1;
            let readable = self.media.readable(at);
            let told = self.lines.get(id).emeta && !rules.run.omits(OmittedRule::Unreadable);
            if oob.kind == Kind::Pad || (!readable && !told) {
                continue;
            }
            if oob.key != KEY_TRIM || !rules.run.omits(OmittedRule::TrimSequence) {
                replay.seq_max = replay.seq_max.max(oob.seq);
            }
            let by_line = rules.run.omits(OmittedRule::Sequence);
            let order = if by_line { order + u64::from(i) } else { oob.seq };
            if oob.key == KEY_TRIM && readable {
                // Media may hold anything: what is no sector of records has none.
                let records = decode_trims(&self.media.data(at)).unwrap_or_default();
                let hides = |record: TrimRecord| (if by_line { order } else { record.seq }, record);
                replay.add_trims(oob.seq, at, records.into_iter().map(hides));
            } else if let Some(lba) = key_lba(oob.key).filter(|lba| lba.0 < self.l2p.len())
                // What superseded a dropped copy was durable: media must have lost it since.
                && !self.media.is_dropped(at)
            {
                replay.offer(&mut self.l2p, lba, order, at, |at| self.media.oob(at).seq);
            }
        }
    }

    fn usable_sectors(&self, id: LineId) -> u32 {
        (0..self.layout.width).map(|index| self.usable_of_chunk(self.chunk_at(id, index))).sum()
    }

    fn usable_of_chunk(&self, chunk: ChunkId) -> u32 {
        let info = self.media.chunk(chunk);
        match info.state {
            ChunkState::Free | ChunkState::Open => self.geometry.sectors - info.wp,
            ChunkState::Closed | ChunkState::Offline => 0,
        }
    }
}

impl Frontiers {
    /// The frontier that a line was opened for, if it is there, has no younger line, and the line has
    /// room.
    fn frontier_to_resume<M: OpenChannel>(
        &mut self,
        flash: &mut Flash<M>,
        frontier: u32,
        id: LineId,
    ) -> Option<FrontierId> {
        let (f, buffer) = self.origin_of(frontier)?;
        let frontier = self.all.get(usize::from(f))?;
        let stripe = flash.layout.stripe_of(id);
        let fits = frontier.open.is_none() && frontier.stripes.has(stripe);
        flash.lines.get_mut(id).origin = buffer;
        (fits && flash.usable_sectors(id) > 0).then_some(f)
    }

    /// The line goes on taking data, without end metadata: its chunks end at different rows now.
    fn resume<M: OpenChannel>(&mut self, flash: &mut Flash<M>, f: FrontierId, id: LineId) {
        let left = flash.usable_sectors(id);
        flash.lines.writable += u64::from(left);
        let end = flash.line_end();
        let line = flash.lines.get_mut(id);
        line.state = LineState::Open;
        line.left = left;
        line.emeta = false;
        self.all[usize::from(f)].open = Some(OpenLine { id, at: Cursor::START, end });
    }
}

impl<M: OpenChannel> Pblk<M> {
    /// Mounts the media at `now`; [`Ftl::now`](crate::face::Ftl::now) says when it was done.
    ///
    /// # Errors
    /// The media comes back with the reason: power went off again, the choices do not fit, or the
    /// media holds something else.
    pub fn recover(
        mut media: Linked<M>,
        config: Config,
        run: FtlRun,
        now: Nanos,
    ) -> Result<Self, (M, FtlError)> {
        match scan(&mut media, &config, now) {
            Err(error) => Err((media.into_inner(), error)),
            Ok(found) => {
                let mut pblk = Self::assemble(media, (config, run), found.capacity, found.now)?;
                match pblk.replay(&found) {
                    Ok(()) => Ok(pblk),
                    Err(error) => Err((pblk.flash.media.into_inner(), error)),
                }
            }
        }
    }

    fn replay(&mut self, found: &ScanResult) -> Result<(), FtlError> {
        self.frontiers.instance = found.instance.unwrap_or(self.frontiers.instance);
        let mut replay = Replay::new(0, !self.rules.run.omits(OmittedRule::Sequence));
        let mut map = FoundMap::default();
        for (id, smeta) in (0..).zip(&found.smetas) {
            let line_seq = smeta.map_or(0, |smeta| smeta.line_seq);
            self.flash.replay_line(&self.rules, id, line_seq, &mut replay, &mut map)?;
            self.frontiers.line_seq = self.frontiers.line_seq.max(line_seq + 1);
        }
        replay.hide_trimmed(&mut self.flash.l2p, |at| self.flash.media.oob(at).seq);
        self.flash.next_seq = replay.seq_max + 1;
        let trimmed = &mut self.buffers.trimmed;
        let hides = |sectors, by: &TrimRecord| trimmed.hide_part(sectors, *by);
        replay.count_valid(&self.flash.l2p, &mut self.flash.lines, hides);
        self.flash.drop_not_chosen();
        let Self { mapping, flash, buffers, rules, .. } = self;
        let stale = mapping.as_mut().map(|mapping| mapping.adopt((flash, buffers), rules, &map));
        self.place_lines(found);
        self.supply().limiter_update();
        stale.map_or(Ok(()), |stale| self.rewrite_blocks(stale))
    }

    /// Gives every line its state and list. Of the empty lines those with start metadata come last,
    /// in order: as they are erased in turn, the device's size stays on media.
    fn place_lines(&mut self, found: &ScanResult) {
        let (mut empty, mut kept): (Vec<LineId>, Vec<LineId>) =
            (0..self.rules.capacity.lines).partition(|&id| self.flash.lines.get(id).valid == 0);
        let age = |id: &LineId| found.smetas[*id as usize].map(|smeta| smeta.line_seq);
        empty.sort_by_key(age);
        kept.sort_by_key(age);
        for id in empty {
            self.flash.lines.get_mut(id).data = 0;
            self.flash.adopt_empty(&self.rules, id);
        }
        for &id in &kept {
            self.flash.count_chunks(&self.rules, id);
            self.flash.lines.in_use += u64::from(self.flash.lines.get(id).data);
        }
        for &id in kept.iter().rev() {
            let frontier = found.smetas[id as usize].map(|smeta| smeta.frontier);
            if let Some(f) =
                frontier.and_then(|f| self.frontiers.frontier_to_resume(&mut self.flash, f, id))
            {
                self.frontiers.resume(&mut self.flash, f, id);
            }
        }
        self.flash.count_map_lines(&self.rules);
        for id in kept {
            if self.flash.lines.get(id).state != LineState::Open {
                self.supply().line_closed(id);
            }
        }
    }
}

/// What the first look at the media finds.
struct ScanResult {
    capacity: Capacity,
    instance: Option<u64>,
    /// Start metadata of each line that has one.
    smetas: Vec<Option<Smeta>>,
    now: Nanos,
}

/// Pads open chunks, reads start metadata, and refuses what would be refused on a fresh device.
fn scan<M: OpenChannel>(
    media: &mut M,
    config: &Config,
    now: Nanos,
) -> Result<ScanResult, FtlError> {
    let geometry = *media.geometry();
    let (mut padded, mut good_chunks) = (now, 0);
    for chunk in geometry.all_chunks() {
        padded = padded.max(pad_chunk(media, &geometry, chunk, now)?);
        good_chunks += u64::from(media.chunk(chunk).state != ChunkState::Offline);
    }
    let layout = line_layout(&geometry, config.line_set)?;
    let (mut smetas, mut found, mut read_at) = (Vec::new(), None, padded);
    for line in 0..geometry.chunks * layout.stripes() {
        let smeta = read_smeta(media, &geometry, &layout, line, &mut read_at)?;
        if let Some(smeta) = smeta {
            check_smeta(&smeta, *found.get_or_insert(smeta), &geometry, &layout)?;
        }
        smetas.push(smeta);
    }
    let fixed_sectors = found.map(|smeta| smeta.logical_sectors);
    let capacity = Capacity::sized(&geometry, config, good_chunks, fixed_sectors)?;
    Capacity::check_formatted(&geometry, config, capacity.logical_sectors)?;
    Ok(ScanResult { capacity, instance: found.map(|smeta| smeta.instance), smetas, now: read_at })
}

/// Whether a line's start metadata fit this device, and the `first` that were found.
fn check_smeta(
    smeta: &Smeta,
    first: Smeta,
    geometry: &Geometry,
    layout: &Layout,
) -> Result<(), FtlError> {
    if smeta.width != layout.width {
        let why = format!(
            "the device was formatted with lines of {} parallel units, not {}",
            smeta.width, layout.width
        );
        return Err(FtlError::Config { key: "ftl.line_set", why });
    }
    let corrupt = |kind| Err(FtlError::Corrupt { kind, line: smeta.line });
    if smeta.instance != first.instance {
        return corrupt("start metadata (another device's)");
    }
    if smeta.logical_sectors > geometry.total_sectors() {
        return corrupt("start metadata (too many sectors)");
    }
    if smeta.line_seq >= LINE_SEQ_END {
        return corrupt("start metadata (line sequence)");
    }
    Ok(())
}

/// Pads an open chunk so far that the device serves everything written to it. When that is done.
fn pad_chunk<M: OpenChannel>(
    media: &mut M,
    geometry: &Geometry,
    chunk: ChunkId,
    now: Nanos,
) -> Result<Nanos, FtlError> {
    let info = media.chunk(chunk);
    let mut end = now;
    if info.state != ChunkState::Open {
        return Ok(end);
    }
    // Where open chunks are limited none may stay open behind the lines that go on.
    let units = |sectors: u32| sectors.next_multiple_of(geometry.ws_opt);
    let served = units(info.wp) + units(geometry.mw_cunits);
    let target =
        if geometry.limits_open_chunks() { geometry.sectors } else { served.min(geometry.sectors) };
    let mut wp = info.wp;
    while wp < target {
        let sectors = (target - wp).min(geometry.ws_opt);
        let keys = &[KEY_EMPTY; MAX_UNIT][..sectors as usize];
        let at = geometry.ppa(chunk, wp);
        let outcome = media.write(
            end,
            end,
            WriteCmd { at, kind: Kind::Pad, seq: 0, seq_deltas: &[], aux: &[], keys, data: &[] },
        )?;
        end = outcome.at;
        if outcome.status != Status::Ok {
            break;
        }
        wp += sectors;
    }
    Ok(end)
}

/// Start metadata of a line: in the first unit of its first chunk that was good when it opened, any
/// readable copy will do.
fn read_smeta<M: OpenChannel>(
    media: &mut M,
    geometry: &Geometry,
    layout: &Layout,
    line: LineId,
    now: &mut Nanos,
) -> Result<Option<Smeta>, FtlError> {
    for chunk in (0..layout.width).map(|index| layout.chunk(line, index)) {
        let info = media.chunk(chunk);
        let written = matches!(info.state, ChunkState::Open | ChunkState::Closed);
        if !written || info.wp < geometry.ws_opt {
            continue;
        }
        let first = geometry.ppa(chunk, 0);
        *now = media.read(*now, *now, first, geometry.ws_opt, &mut Internal)?.at;
        let copies = (0..geometry.ws_opt).map(|i| first.plus(i));
        let mut readable =
            copies.filter(|&at| media.readable(at) && media.oob(at).kind == Kind::Smeta);
        let smeta = readable.find_map(|at| Smeta::decode(&media.data(at)));
        if let Some(smeta) = smeta.filter(|s| s.line == line || s.width != layout.width) {
            return Ok(Some(smeta));
        }
    }
    Ok(None)
}
