//! Words of stack files for choices that every kind of FTL has.

use nandscape_ftl::device::Schedule;
use nandscape_ftl::pblk::config::Victim;

/// The name of a victim policy in stack files.
pub(crate) fn victim_name(victim: Victim) -> String {
    match victim {
        Victim::PblkLists => "pblk-lists".to_owned(),
        Victim::Greedy => "greedy".to_owned(),
        Victim::CostBenefit => "cost-benefit".to_owned(),
        Victim::Fifo => "fifo".to_owned(),
        Victim::Random => "random".to_owned(),
        Victim::DChoices(d) => format!("d-choices-{d}"),
    }
}

/// The name of a schedule of collection in stack files.
pub(crate) const fn schedule_name(schedule: Schedule) -> &'static str {
    match schedule {
        Schedule::Pipelined => "pipelined",
        Schedule::Nvmevirt => "nvmevirt",
        Schedule::Femu => "femu",
    }
}
