//! What a job with `zonemode=zbd` is about: its part of the zones, the I/O that it has in hand, and counts.

use super::layout::Span;
use super::table::{Command, Zone, Zones};
use crate::direction::Direction;
use crate::engine::kind::{Kind, Next};
use crate::fio::{JobSpec, Mix};
use crate::latency::Latencies;
use nandscape_block::{Lba, SECTOR_BYTES};
use std::collections::VecDeque;

/// What a job did to zones.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct ZoneCounts {
    /// Zones with data that were reset: fio's "zone resets".
    pub resets: u64,
    /// Zones whose first sector was written.
    pub begun: u64,
    /// Zones that were written up to their capacity, or up to where no block fits.
    pub filled: u64,
    /// Latencies of resets that came before a write; those of trims are with the trims.
    pub reset_latency: Latencies,
}

impl ZoneCounts {
    pub(in crate::engine) fn merge(&mut self, other: &Self) {
        self.resets += other.resets;
        self.begun += other.begun;
        self.filled += other.filled;
        self.reset_latency.merge(&other.reset_latency);
    }
}

/// An I/O that was drawn and not issued yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Hand {
    pub(super) direction: Direction,
    pub(super) lba: u64,
    pub(super) sectors: u32,
    /// It was counted towards the next reset above the threshold.
    pub(super) counted: bool,
}

/// How far the I/O in hand is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    Drawn,
    /// A write looks for a zone to be opened, behind this one.
    Seeking(u32),
    /// A write goes to this zone, which the job holds.
    Chosen(u32),
    /// A reset of this zone, which the job holds, is in flight.
    Resetting(u32),
}

/// The zoned side of a job.
#[derive(Clone, Debug)]
pub(in crate::engine) struct ZonedJob {
    pub(super) index: u32,
    pub(super) span: Span,
    pub(super) random: bool,
    /// Reads and writes.
    mixed: bool,
    changes: bool,
    pub(super) reads_beyond: bool,
    /// Resets would lose what is to be read again.
    pub(super) keeps_data: bool,
    /// Least block by direction, in sectors.
    pub(super) least: [u64; 3],
    /// Zones that it opens at most; 0: any number.
    pub(super) max_open: u32,
    /// Sectors with data above which zones are reset.
    pub(super) threshold: f64,
    /// Writes for a reset above it; 0: none.
    pub(super) writes_per_reset: u32,
    /// Behind the last I/O of each direction.
    pub(super) ends: [u64; 3],
    /// Random draws of a pass, and those to come.
    draws: u64,
    draws_left: u64,
    pub(super) hand: Option<Hand>,
    pub(super) stage: Stage,
    /// Zones to be reset before anything else.
    pub(super) to_reset: VecDeque<u32>,
    /// A pass is about to begin.
    fresh: bool,
    /// I/Os of this pass.
    issued: u64,
    pub(in crate::engine) counts: ZoneCounts,
}

impl ZonedJob {
    /// The side of job number `index`, whose pass draws so many random addresses at most.
    pub(in crate::engine) fn new(index: u32, spec: &JobSpec, span: Span, draws: u64) -> Self {
        let zoning = &spec.zoning;
        let mix = spec.pattern.mix;
        let frequency = zoning.reset_frequency;
        Self {
            index,
            random: spec.pattern.random,
            mixed: mix == Mix::ReadWrite,
            changes: mix.has(Direction::Write),
            reads_beyond: zoning.reads_beyond,
            keeps_data: spec.verify,
            least: Direction::ALL.map(|direction| spec.sizes(direction).min() / SECTOR_BYTES),
            max_open: zoning.job_max_open,
            threshold: span.sectors as f64 * zoning.reset_threshold,
            // As in fio: rounded down, and never more than 32 bits count.
            writes_per_reset: if frequency > 0.0 { (1.0 / frequency) as u32 } else { 0 },
            ends: [span.base; 3],
            draws,
            draws_left: draws,
            hand: None,
            stage: Stage::Drawn,
            to_reset: VecDeque::new(),
            fresh: true,
            issued: 0,
            counts: ZoneCounts::default(),
            span,
        }
    }

    pub(super) const fn least_write(&self) -> u64 {
        self.least[Direction::Write as usize]
    }

    /// Its range begins anew.
    pub(in crate::engine) const fn restart(&mut self) {
        self.fresh = true;
    }

    /// Whether anything was issued since the range began.
    pub(in crate::engine) const fn has_issued(&self) -> bool {
        self.issued > 0
    }

    pub(in crate::engine) const fn has_hand(&self) -> bool {
        self.hand.is_some()
    }

    /// The direction of what it has in hand, if no zone was looked at for it.
    pub(in crate::engine) fn drawn(&self) -> Option<Direction> {
        self.hand.filter(|_| self.stage == Stage::Drawn).map(|hand| hand.direction)
    }

    /// Number of the job.
    pub(in crate::engine) const fn index(&self) -> u32 {
        self.index
    }

    /// Whether a read in this zone is held by its job: the write pointer counts.
    pub(super) const fn holds_to_read(&self, zone: &Zone) -> bool {
        zone.sequential && !(self.reads_beyond && zone.readable)
    }

    /// Begins the pass that is due.
    pub(in crate::engine) fn begin_pass(&mut self, zones: &mut Zones) {
        if !std::mem::take(&mut self.fresh) {
            return;
        }
        (self.ends, self.issued, self.draws_left) = ([self.span.base; 3], 0, self.draws);
        if self.changes {
            zones.count_data(&self.span);
            zones.writes_to_reset = self.writes_per_reset;
            if self.keeps_data {
                self.to_reset = self.span.zones.clone().collect();
            }
        }
    }

    /// Takes an I/O that was drawn in hand; whether the range, or its random map, is not through.
    pub(in crate::engine) fn take(&mut self, zones: &Zones, drawn: Next, sectors: u32) -> bool {
        let nothing_to_read = self.mixed && zones.data == 0 && !self.reads_beyond;
        let direction = if nothing_to_read { Direction::Write } else { drawn.direction };
        let lba = if self.random { drawn.first } else { self.next_in_order(zones, direction) };
        if self.random {
            if self.draws_left == 0 {
                return false;
            }
            self.draws_left -= 1;
        }
        if lba >= self.span.base + self.span.sectors {
            return false;
        }
        let hand = Hand { direction, lba, sectors, counted: false };
        (self.hand, self.stage) = (Some(hand), Stage::Drawn);
        true
    }

    /// Where a sequence goes on: behind its last I/O, and behind what a zone cannot hold.
    fn next_in_order(&mut self, zones: &Zones, direction: Direction) -> u64 {
        let end = &mut self.ends[direction as usize];
        if direction == Direction::Write && *end < self.span.base + self.span.sectors {
            let index = zones.index(*end);
            if *end >= zones.zone(index).end {
                *end = zones.next_start(index);
            }
        }
        *end
    }

    /// The I/O in hand, whose direction it is, goes to these sectors.
    pub(super) fn issue(&mut self, lba: u64, sectors: u32) -> Direction {
        let direction = self.hand.take().map_or(Direction::Read, |hand| hand.direction);
        self.ends[direction as usize] = lba + u64::from(sectors);
        self.stage = Stage::Drawn;
        self.issued += 1;
        direction
    }

    /// Gives up what it has in hand, unless a reset is in flight.
    pub(in crate::engine) fn drop_hand(&mut self, zones: &mut Zones) {
        match self.stage {
            Stage::Resetting(_) => return,
            Stage::Chosen(zone) => zones.give_back(zone),
            Stage::Drawn | Stage::Seeking(_) => {}
        }
        (self.hand, self.stage) = (None, Stage::Drawn);
        self.to_reset.clear();
    }

    /// The reset in flight is back; whether it worked.
    pub(in crate::engine) fn reset_done(&mut self, zones: &mut Zones, worked: bool) {
        let Stage::Resetting(zone) = self.stage else { return };
        if worked {
            self.counts.resets += u64::from(zones.reset(zone));
        }
        self.stage = match self.hand {
            Some(_) if worked => Stage::Chosen(zone),
            _ => {
                zones.give_back(zone);
                Stage::Drawn
            }
        };
    }

    /// A trim at this sector is submitted: what it is on the device, and a zone is empty from now on.
    pub(in crate::engine) fn trim(&mut self, zones: &mut Zones, lba: Lba) -> Command {
        let index = zones.at(lba);
        let command = zones.command(index);
        if command != Command::Discard {
            self.counts.resets += u64::from(zones.reset(index));
        }
        command
    }

    /// An I/O completed: the job gives its zone back, if it held one.
    pub(in crate::engine) fn completed(
        &self,
        zones: &mut Zones,
        kind: Kind,
        lba: Lba,
        sectors: u32,
    ) {
        let index = zones.at(lba);
        let zone = zones.zone(index);
        let held = match kind {
            Kind::Read => self.holds_to_read(zone),
            Kind::Write | Kind::Trim => zone.sequential,
            Kind::Sync | Kind::Reread | Kind::Reset => false,
        };
        if held {
            let end = lba.0 + u64::from(sectors);
            zones.completed(index, (kind == Kind::Write).then_some(end));
        }
    }
}
