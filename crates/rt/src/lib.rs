//! The runtime under everything: one single-threaded executor with two clocks, timers, locks and
//! channels, seeded randomness, and a model of the host's CPU.
//!
//! On the virtual clock nothing here reads the outside world: same inputs and seed, same output.

pub mod rng;
pub mod time;

pub use rng::Stream;
pub use time::Nanos;
