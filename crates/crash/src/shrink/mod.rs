//! Shrinking: what is left of a seed's run so that a violation still shows, and the search for the least of it
//! (delta debugging: Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", TSE 2002).
//!
//! Here is what holds for every campaign. How a run is reduced, and whether the violation is still the same, is the
//! business of the campaigns.

pub(crate) mod keep;
pub mod minimised;
pub mod numbers;
mod read;
pub mod reduction;
pub mod search;
