//! Power-cut and fault campaigns. A seed chooses geometry, load, faults and the instants at which
//! power is cut; a reference model that shares no code with what it checks says what every sector
//! may show afterwards ("The crash model" in DESIGN.md).

pub mod campaign;
pub mod composition;
mod draw;
mod drive;
pub mod family;
pub mod fs;
mod history;
pub mod load;
pub mod lookout;
mod lost;
pub mod maps;
pub mod matrix;
pub mod model;
mod odd;
pub mod outcome;
mod pblk;
pub mod plan;
mod rates;
pub mod request;
pub mod scenario;
pub mod streams;
pub mod subject;

pub use campaign::run_subject;
pub use outcome::{CampaignReport, Counts, Progress, SeedOutcome, Violation};
pub use pblk::{run_campaign, run_seed};
pub use rates::FaultRates;
pub use scenario::{Options, Scenario, StackChoice};
