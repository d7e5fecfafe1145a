//! Runs call sequences ([`crate::calls`]) on a fresh volume, with power cut on the way and at their end, judged by the same
//! model as campaigns.
//!
//! - `player` makes the calls and tells the model; `run` cuts power and judges, with `expect` for what a case says.
//! - `enumerate` makes all sequences of a bounded space.

mod enumerate;
mod expect;
mod player;
mod run;
#[cfg(test)]
mod tests;

pub use enumerate::{Enumeration, LENGTH_MAX};
pub use run::{CallsOptions, CaseOutcome, CaseRunner, CutPoints, Finding};
