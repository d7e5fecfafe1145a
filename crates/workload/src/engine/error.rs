//! Why a run cannot begin or cannot go on. Failures of single I/Os are results, not errors.

use crate::fio::JobSpec;
use crate::place::Place;
use nandscape_block::{Lba, Token};
use nandscape_rt::Nanos;
use std::fmt;
use thiserror::Error;

/// Why a run ended without results that mean anything.
#[derive(Clone, PartialEq, Eq, Error, Debug)]
#[non_exhaustive]
pub enum EngineError {
    /// A job does not fit the device.
    #[error("{place}: job {job}: {problem}")]
    Job {
        /// The job.
        job: String,
        /// Its section header.
        place: Place,
        /// What does not fit.
        problem: String,
    },
    /// Together the jobs ask for more requests in flight than the engine has room for.
    #[error("{asked} requests in flight at once; at most {max} are possible")]
    TooDeep {
        /// Sum of `iodepth` over jobs and clones.
        asked: u64,
        /// The limit.
        max: u64,
    },
    /// Requests are in flight, but the device has nothing left to do.
    #[error("at {at} the device has nothing left to do, but {} requests wait: {}",
        waiting.len(), list(waiting))]
    Stuck {
        /// When.
        at: Nanos,
        /// The requests.
        waiting: Vec<Waiting>,
    },
    /// Only the passing of time can end the jobs, and it does not pass.
    #[error(
        "virtual time stands still at {at} after {ios} more I/Os, which take no time on this device, and \
         only time can end the jobs: give them a size or number_ios, and no time_based"
    )]
    TimeStandsStill {
        /// Where time stands.
        at: Nanos,
        /// I/Os since it last moved.
        ios: u64,
    },
    /// The device completed a request that it does not have.
    #[error("defect: the device completed {token:?}, which is not in flight")]
    UnknownCompletion {
        /// What it named.
        token: Token,
    },
}

impl EngineError {
    /// This job does not fit the device.
    pub(super) fn of_job(spec: &JobSpec, problem: String) -> Self {
        Self::Job { job: spec.name.clone(), place: spec.place.clone(), problem }
    }
}

/// A request that never completed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Waiting {
    /// The job that issued it.
    pub job: String,
    /// What it is, as fio names it.
    pub op: &'static str,
    /// First sector.
    pub lba: Lba,
    /// When it was submitted.
    pub since: Nanos,
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} by {} since {}", self.op, self.lba, self.job, self.since)
    }
}

/// The first few, in words.
fn list(waiting: &[Waiting]) -> String {
    let shown: Vec<String> = waiting.iter().take(8).map(Waiting::to_string).collect();
    let more = if waiting.len() > shown.len() { ", ..." } else { "" };
    shown.join(", ") + more
}
