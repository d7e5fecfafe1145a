//! What all I/Os of one kind of one job have in common, worked out once.

use super::governor;
use super::kind::Kind;
use super::min_rate::MinRates;
use super::plan::{Durability, Plan};
use crate::direction::Direction;
use crate::fio::{JobSpec, Mix};
use nandscape_block::{Flags, Op, Owner, Placement, SECTOR_BYTES};
use nandscape_rt::Nanos;

/// What follows an I/O in its slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Then {
    Nothing,
    /// The write of a trimmed block.
    Write,
    /// The write of whole sectors whose ends were read.
    Modify,
    /// The flush that makes a write durable.
    Flush,
}

/// The common part of I/Os.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) op: Op,
    pub(super) flags: Flags,
    pub(super) placement: Placement,
    pub(super) owner: Owner,
    /// Sectors of the largest bio.
    pub(super) bio_sectors: u32,
    /// Writes carry tags.
    pub(super) tagged: bool,
    /// Reads are compared with what was written.
    pub(super) checked: bool,
    pub(super) then: Then,
    /// One bio, and nothing to be done at its completion but to count it.
    pub(super) plain: bool,
}

impl Shape {
    /// The shape of one kind of I/O of job number `job`, which is a thread on a core of its own and
    /// writes a file of its own; `shadowed` when any job of the run verifies.
    pub(super) fn new(kind: Kind, job: u32, spec: &JobSpec, plan: &Plan, shadowed: bool) -> Self {
        let thread = job as u16;
        let owner = Owner { file: u64::from(job), generation: 0, thread, core: thread };
        let checked = spec.verify && !spec.unchecked && kind.direction() == Direction::Read;
        let flags = match kind {
            Kind::Read | Kind::Reread if !checked => Flags::NO_DATA,
            Kind::Write if plan.durability == Durability::Fua => Flags::FUA,
            _ => Flags::NONE,
        };
        let then = match kind {
            Kind::Trim if spec.pattern.mix == Mix::TrimWrite => Then::Write,
            Kind::Write if plan.durability == Durability::Flush => Then::Flush,
            _ => Then::Nothing,
        };
        let largest = match kind {
            Kind::Sync | Kind::Reset => 0,
            Kind::Reread => plan.largest[Direction::Write as usize],
            _ => plan.largest[kind.direction() as usize],
        };
        let bio_sectors = match (kind, plan.bio_sectors) {
            (Kind::Trim | Kind::Sync | Kind::Reset, _) | (_, 0) => u32::MAX,
            (_, limit) => limit,
        };
        let sectors = plan.unit_bytes == SECTOR_BYTES;
        let whole = largest <= bio_sectors && then == Then::Nothing && sectors;
        let silent = !shadowed && kind.is_io() && !is_watched(spec);
        Self {
            op: match kind {
                Kind::Read | Kind::Reread => Op::Read,
                Kind::Write => Op::Write,
                Kind::Sync => Op::Flush,
                // Of a zone it is a reset, which the I/O names.
                Kind::Trim | Kind::Reset => Op::Discard,
            },
            flags,
            owner,
            placement: Placement(if kind == Kind::Write { spec.write_hint } else { 0 }),
            bio_sectors,
            tagged: plan.tagged && kind == Kind::Write,
            checked,
            then,
            plain: whole && silent,
        }
    }
}

/// Whether the job looks at each I/O that completes.
fn is_watched(spec: &JobSpec) -> bool {
    spec.thinking.time > Nanos::ZERO
        || spec.max_latency.iter().any(Option::is_some)
        || spec.write_iolog.is_some()
        || MinRates::new(spec).is_some()
        || spec.steady.window().is_some()
        || governor::governs(spec)
}
