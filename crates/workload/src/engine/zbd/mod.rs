//! `zonemode=zbd`: jobs that follow the write pointers of zones.
//!
//! The rules are those of fio 3.33 (zbd.c), where a draw says what a job would do without zones and
//! [`choose`] makes of it what zones allow:
//! - A write goes to the write pointer of its zone. With `max_open_zones`, a write whose zone cannot be opened
//!   goes to one that is open. A full zone that a write hits is reset first.
//! - A read stays below the write pointer, and moves to a zone with data where its own has none.
//! - A trim of a zone is its reset. Zones without a write pointer are read, written and trimmed at random.
//! - A job that has an I/O in a zone holds it: others wait for it, in their order. A reset waits for all that its job
//!   has in flight.
//! - Where the device has no zones, zones of `zonesize` bytes are thought into it, and resets are no commands.
//!
//! Write pointers advance as writes are submitted, so a job may have several writes in a zone in flight; the
//! device takes them in that order. No command breaks a rule of its zone while only these jobs write to zones.

mod choose;
mod job;
mod layout;
mod limits;
mod table;

pub(super) use choose::Choice;
pub use job::ZoneCounts;
pub(super) use job::ZonedJob;
pub(super) use layout::{Layout, Span};
pub(super) use table::{Command, Zones};
