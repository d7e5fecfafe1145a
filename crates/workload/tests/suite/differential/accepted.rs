//! What differs from fio 3.33 on purpose, each with its reason.

use super::case::{Case, Side};
use nandscape_workload::Direction;
use nandscape_workload::fio::{Amount, BlockSizes, JobSpec, Mix};

/// What differs on purpose, and why; docs/formats/job.md says so. Whether a difference of a job is one of these.
type Accepted = (&'static str, fn(&Case, &JobSpec) -> bool);
pub(super) const ACCEPTED: &[Accepted] = &[
    ("fio issues no flushes in jobs of trimwrite", |case, spec| {
        spec.pattern.mix == Mix::TrimWrite && (flushes(spec) || case.value("end_fsync").is_some())
    }),
    ("fio adds an offset twice to the writes of randtrimwrite", |_, spec| {
        let moved = spec.offset != Amount::Bytes(0);
        spec.pattern.mix == Mix::TrimWrite && spec.pattern.random && moved
    }),
    ("fio doubles number_ios of trimwrite at each pass", |_, spec| {
        spec.pattern.mix == Mix::TrimWrite && spec.number_ios.is_some()
    }),
    (
        "with several requests in flight, fio omits a flush where nothing completed since the last one",
        |_, spec| spec.depth() > 1 && flushes(spec),
    ),
    ("fio's Poisson process takes each I/O for one of the least size", |_, spec| {
        let sizes = Direction::ALL.map(|direction| spec.sizes(direction));
        spec.poisson && sizes.iter().any(|size| !matches!(size, BlockSizes::Fixed(_)))
    }),
    ("with time_based fio repeats the first block of zones behind size", |_, spec| {
        spec.time_based && spec.zoning.is_strided() && !spec.pattern.random
    }),
    ("in fio a flush takes the turn of a file", |case, spec| {
        case.side() == Side::Files && flushes(spec)
    }),
    ("fio's shift register accesses a block twice a pass", |_, spec| spec.shift_register),
];

fn flushes(spec: &JobSpec) -> bool {
    spec.fsync > 0 || spec.fdatasync > 0
}
