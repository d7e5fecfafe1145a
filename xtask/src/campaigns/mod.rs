//! Crash campaigns: those of the gate (`list`, `seeds`), the same with fresh seeds at night (`explore`), and long ones by
//! name (`long`).
//!
//! A campaign of the gate runs the same seeds each time, those above them that found something once, and fresh ones that
//! derive from the commit: two commits look in different places, and one commit always in the same.

mod crash;
mod explore;
mod list;
mod long;
mod seeds;

pub(crate) use list::{Campaign, campaigns};
pub(crate) use seeds::{Seeds, fresh};

use crate::repository::Repository;
use crash::{Crash, Ran};

/// What `cargo xtask campaigns` does.
pub(crate) enum Task {
    /// The campaigns of the gate: all and the open seeds, or those of a group.
    Gate(Option<String>),
    /// Fresh seeds for each campaign of the gate.
    Explore(explore::Options),
    /// A long campaign by name.
    Long(long::Options),
}

impl Task {
    /// The task of these words; `None`: they are none.
    pub(crate) fn of(words: &[&str]) -> Option<Self> {
        match words {
            ["gate"] => Some(Self::Gate(None)),
            ["gate", group] => Some(Self::Gate(Some((*group).to_owned()))),
            ["explore", rest @ ..] => explore::Options::of(rest).map(Self::Explore),
            ["long", name, rest @ ..] => long::Options::of(name, rest).map(Self::Long),
            _ => None,
        }
    }
}

/// Runs campaigns, and returns whether none found a violation.
///
/// # Errors
/// There is no such campaign, or something cannot be built, run, read or written.
pub(crate) fn run(repository: &Repository, task: &Task) -> Result<bool, String> {
    match task {
        Task::Gate(group) => gate(repository, group.as_deref()),
        Task::Explore(options) => explore::run(repository, options),
        Task::Long(options) => long::run(repository, options),
    }
}

/// Campaigns of the gate. A violation does not end it, so that a seed hides none after it; what failed is said once more
/// at the end.
fn gate(repository: &Repository, group: Option<&str>) -> Result<bool, String> {
    let all = campaigns(repository.root())?;
    let wanted: Vec<&Campaign> =
        all.iter().filter(|one| group.is_none_or(|group| one.group == group)).collect();
    if wanted.is_empty() {
        let mut groups: Vec<&str> = all.iter().map(|one| one.group).collect();
        groups.dedup();
        let group = group.unwrap_or_default();
        return Err(format!("no campaigns {group:?}: expected one of {}", groups.join(", ")));
    }
    let seeds = Seeds::read(repository.root())?;
    let commit = repository.commit()?;
    let of_one = |campaign: &&Campaign| {
        let mut runs = campaign.pinned(&seeds);
        runs.extend(campaign.fresh(&commit));
        runs
    };
    let crash = Crash::build(repository)?;
    let ran = crash.run_all(wanted.iter().flat_map(of_one).collect())?;
    let mut failed: Vec<String> =
        ran.into_iter().filter(|ran| !ran.passed).map(|ran| ran.args).collect();
    let open = if group.is_none() { seeds.open.as_slice() } else { &[] };
    for seed in open {
        println!("open: crash {}: {}", seed.args(), seed.why);
        let Ran { args, passed } = crash.run(seed.args())?;
        if passed {
            println!("it finds nothing any more: [[open]] of {} has to go", seeds::FILE);
            failed.push(args);
        }
    }
    for args in &failed {
        println!("failed: cargo run -- crash {args}");
    }
    Ok(failed.is_empty())
}
