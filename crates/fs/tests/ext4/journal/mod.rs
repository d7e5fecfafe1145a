//! The journal under power cuts, and judged by e2fsprogs.

mod crash;
mod files;
mod history;
mod load;
mod oracle;
