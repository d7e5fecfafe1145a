//! Fuzz targets: every parser and image reader as a function of the bytes of one input.
//!
//! A target passes its input to a parser or a reader of images. Values and errors are both fine; a panic, a task that
//! waits forever, ten CPU seconds without an answer, and more than 1 GiB of memory are findings (CONTRIBUTING.md). The same
//! bytes always do the same: no target reads a clock, or a file that it did not write.
//!
//! Tests of this crate replay `fuzz/corpus` and the [`seeds`]; `fuzz/` runs the targets under libFuzzer.

mod command_line;
mod ext4;
mod f2fs;
mod grid;
mod input;
mod job;
mod media;
mod paper;
mod results;
pub mod seeds;
mod stack;
mod state;
mod sweep;
mod trace;
mod volume;
mod wml;

pub use command_line::command_line;
pub use ext4::ext4;
pub use f2fs::f2fs;
pub use job::job;
pub use media::media;
pub use paper::paper;
pub use results::results;
pub use stack::stack;
pub use state::state;
pub use sweep::sweep;
pub use trace::trace;
pub use wml::wml;

/// A target: it panics at a finding.
pub type Target = fn(&[u8]);

/// All targets, in order of their names.
pub const TARGETS: [(&str, Target); 12] = [
    ("command_line", command_line),
    ("ext4", ext4),
    ("f2fs", f2fs),
    ("job", job),
    ("media", media),
    ("paper", paper),
    ("results", results),
    ("stack", stack),
    ("state", state),
    ("sweep", sweep),
    ("trace", trace),
    ("wml", wml),
];
