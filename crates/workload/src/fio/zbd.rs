//! What `zonemode=zbd` goes together with. fio 3.33 (zbd.c, init.c) says what it refuses; what is refused
//! beyond that would do something else than it does without zones.

use super::spec::{JobSpec, Mix};
use crate::direction::Direction;

/// Keys at fault, the one to blame first, and why.
type Refusal = (&'static [&'static str], &'static str);

/// What of a job does not go together with `zonemode=zbd`, if it has that.
pub(super) fn refused(job: &JobSpec) -> Option<Refusal> {
    let zoning = &job.zoning;
    if !zoning.is_zbd() {
        return None;
    }
    let trims = job.pattern.mix.has(Direction::Trim);
    let trimmed = Direction::Trim as usize;
    let varied = job.block_range[trimmed].is_some() || !job.block_split[trimmed].is_empty();
    let follows = job.pattern.random && job.percentage_random != [100; 3];
    let sequenced = job.sequence.ios > 1 || job.sequence.skip_bytes != 0;
    let refusals: [(bool, Refusal); 10] = [
        (zoning.skip > 0, (&["zoneskip"], "must be 0 with zonemode=zbd")),
        (
            zoning.size > 0 && zoning.capacity > zoning.size,
            (&["zonecapacity", "zonesize"], "is larger than zonesize"),
        ),
        (
            zoning.capacity > 0 && zoning.size == 0,
            (
                &["zonecapacity"],
                "needs a zonesize: it is that of zones that the device does not have",
            ),
        ),
        (
            job.replays(),
            (&["read_iolog"], "a log's addresses cannot follow the write pointers of zonemode=zbd"),
        ),
        (
            job.pattern.mix == Mix::TrimWrite,
            (
                &["rw", "readwrite"],
                "trimwrite is not supported with zonemode=zbd: a write resets the full zone that it hits",
            ),
        ),
        (
            trims && varied,
            (
                &["bsrange", "blocksize_range", "bssplit"],
                "trims of zonemode=zbd are whole zones, of one size (bs)",
            ),
        ),
        (job.serializes_overlaps, (&["serialize_overlap"], "is not supported with zonemode=zbd")),
        (sequenced, (&["rw", "readwrite"], "a `:` modifier is not supported with zonemode=zbd")),
        (follows, (&["percentage_random"], "is not supported with zonemode=zbd")),
        (
            zoning.job_max_open > 0 && zoning.ignores_limits && zoning.max_open == 0,
            (&["job_max_open_zones"], "needs max_open_zones where ignore_zone_limits is set"),
        ),
    ];
    refusals.into_iter().find_map(|(at_fault, refusal)| at_fault.then_some(refusal))
}

/// Keys that have no effect with, or without, `zonemode=zbd`, and why.
pub(super) fn without_effect(job: &JobSpec) -> impl Iterator<Item = (&'static str, &'static str)> {
    const ONLY_ZBD: &str = "has no effect without zonemode=zbd";
    let zoning = job.zoning;
    let zbd = zoning.is_zbd();
    let keys = [
        (zbd && zoning.range > 0, "zonerange", "has no effect with zonemode=zbd, as in fio"),
        (!zbd && zoning.capacity > 0, "zonecapacity", ONLY_ZBD),
        (!zbd && zoning.max_open > 0, "max_open_zones", ONLY_ZBD),
        (!zbd && zoning.job_max_open > 0, "job_max_open_zones", ONLY_ZBD),
        (!zbd && zoning.ignores_limits, "ignore_zone_limits", ONLY_ZBD),
        (!zbd && zoning.reads_beyond, "read_beyond_wp", ONLY_ZBD),
        (!zbd && zoning.reset_threshold > 0.0, "zone_reset_threshold", ONLY_ZBD),
        (!zbd && zoning.reset_frequency > 0.0, "zone_reset_frequency", ONLY_ZBD),
        (
            zbd && zoning.reset_threshold > 0.0 && zoning.reset_frequency == 0.0,
            "zone_reset_threshold",
            "has no effect without zone_reset_frequency, as in fio",
        ),
    ];
    keys.into_iter().filter(|(idle, ..)| *idle).map(|(_, key, why)| (key, why))
}
