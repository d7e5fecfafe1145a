//! What can be chosen about a journal.

use super::disk::Features;
use crate::ext4::rules::OmittedRule;
use nandscape_rt::Nanos;

/// The choices.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// Age at which a running transaction is committed by itself (ext4's `commit=`).
    pub commit_interval: Nanos,
    /// Share of the log that one transaction may take, a quarter at most.
    pub transaction_percent: u8,
    /// A commit moves the tail once so much of the log would come free.
    pub tail_move_percent: u8,
    /// Seconds since 1970 at virtual time zero, for the times in commit blocks.
    pub epoch_s: u64,
    /// Features of the log from now on.
    pub features: Features,
    /// A rule that is left out, for campaigns that must notice; `None` in all other use.
    pub omit: Option<OmittedRule>,
}

impl Config {
    /// The kernel's choices for a file system with or without `metadata_csum` and `64bit`.
    #[must_use]
    pub const fn of_file_system(metadata_csum: bool, wide: bool) -> Self {
        Self {
            commit_interval: Nanos::from_secs(5),
            transaction_percent: 25,
            tail_move_percent: 25,
            epoch_s: 0,
            features: Features::of_file_system(metadata_csum, wide),
            omit: None,
        }
    }
}
