//! What fuzz targets share: how they read their bytes, and how they damage what was sound.
//!
//! A target passes its input to a parser or a reader of images. Values and errors are both fine; a panic, a task that
//! waits forever, ten seconds without an answer, and more than 1 GiB of memory are findings (CONTRIBUTING.md).

#![forbid(unsafe_code)]

pub mod grid;
pub mod input;
pub mod media;
pub mod state;
pub mod volume;
