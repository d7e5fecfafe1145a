//! The journal under power cuts, and judged by e2fsprogs.

mod crash;
mod device;
mod history;
mod load;
