//! The journal under power cuts, and judged by e2fsprogs.

#[path = "../common/mod.rs"]
mod common;
mod crash;
mod device;
mod files;
mod history;
mod load;
mod oracle;
