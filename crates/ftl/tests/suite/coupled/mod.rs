//! A coupled SSD: what it promises its host beside reads and writes, hosts that fetch nothing or complete late, and each
//! safety rule of moves and records, staged: with it the outcome is right, without it wrong.

pub(crate) mod driver;
mod hosts;
mod promises;
mod rules;
