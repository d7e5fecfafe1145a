//! Flash translation layers. One pblk, many policies: a variant is a [`config::Config`].

pub mod config;
pub mod stats;
