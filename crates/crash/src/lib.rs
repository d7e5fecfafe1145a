//! Power-cut and fault campaigns. A seed chooses geometry, load, faults and the instants at which
//! power is cut; a reference model that shares no code with what it checks specifies what every sector
//! may show afterwards ("The crash model" in DESIGN.md).

pub mod calls;
mod coverage;
mod device;
mod draw;
mod event;
pub mod fs;
mod kernel_loss;
mod loss;
pub mod outcome;
pub mod request;
mod settings;
pub mod shrink;

pub use coverage::Coverage;
pub use device::campaign::run_device;
pub use device::target::{run_campaign, run_seed, shrink_seed};
pub use device::{matrix, model, resets, subject, trigger};
pub use draw::append::{AppendWanted, RegionsWanted};
pub use draw::faults::FaultRates;
pub use draw::kind::{GivenKeys, ftl_kinds, given_keys, has_compositions, kind_of_name};
pub use draw::pblk::{composition, maps};
pub use draw::scenario::{Options, Scenario, StackChoice};
pub use draw::{family, load, plan, scenario, streams};
pub use event::{Content, EventKind, LogEvent, lines};
pub use kernel_loss::KernelLoss;
pub use nandscape_ftl::FtlKind;
pub use outcome::{CampaignReport, Counts, Progress, SeedOutcome, Violation, verdict};
pub use settings::{Setting, Settings};
pub use shrink::minimised::{Minimised, OnRun};
pub use shrink::reduction::Reduction;
pub use shrink::search::Budget;
