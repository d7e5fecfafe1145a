//! fio job files: text in, [`JobFile`] out.
//!
//! Follows fio's manual ("Job file format", "Job file parameters"). Where it differs, it is stricter:
//! an unknown key, an undefined environment variable and a value with something behind it are
//! errors with a place. Nothing is ignored without a [`Notice`].

mod error;
mod files;
mod fit;
mod keys;
mod known;
mod lexer;
mod log_keys;
mod reader;
mod rules;
mod runtime;
mod sources;
mod spec;
mod splits;
mod steady;
mod suggest;
mod units;
mod value;
mod zbd;

pub use error::{JobFileError, Notice, Why};
pub use files::{FileLayout, JobInstance, LaidOutFile};
pub use keys::supported_keys;
pub use reader::{
    Environment, ExpandError, HostEnvironment, expand, load, parse, parse_for, read_all,
};
pub use rules::{
    AccessZone, BlockSizes, Counted, ExitRule, ExitWhat, FileKeys, FileOrder, FileService,
    FlowShare, IoLog, LatencyGoal, Reaping, Replaying, Sequence, SteadyCriterion, SteadyRule,
    ThinkTime, ZoneMode, Zoning,
};
pub use runtime::Runtime;
pub use sources::{COMMAND_LINE, JobSources, JobText, is_flag, is_known};
pub use spec::{
    Distribution, JobFile, JobOption, JobSpec, Logs, Mix, Pattern, SyncWrites, Tolerated,
};
pub use suggest::edit_distance;
pub use units::{Amount, UNIT_BYTES, time};
