//! `--trace FILE`: a run as a timeline for Perfetto or Chrome's trace viewer.

use crate::args::TimelineArgs;
use crate::output::{Failure, complain};
use crate::replace::{Part, begin, with_path};
use anyhow::Context;
use nandscape_lab::timeline::Timeline;
use std::path::PathBuf;

/// A timeline being written, and where.
#[derive(Debug)]
pub(crate) struct TimelineFile {
    pub(crate) timeline: Timeline,
    path: PathBuf,
    part: Option<Part>,
}

impl TimelineFile {
    /// Begins the file, if one is wanted.
    pub(crate) fn begin(args: &TimelineArgs) -> Result<Option<Self>, Failure> {
        let Some(path) = args.trace.clone() else { return Ok(None) };
        let window = args.trace_window.unwrap_or_default();
        let begun = begin(&path)
            .and_then(|(file, part)| Ok((Timeline::new(Box::new(file), window)?, part)));
        let begun = begun.with_context(|| format!("cannot write {}", path.display()));
        let (timeline, part) = begun.map_err(Failure::Input)?;
        Ok(Some(Self { timeline, path, part }))
    }

    /// The run has ended, and so does its timeline, which takes its place.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        let written = with_path(&self.path, self.timeline.finish())?;
        with_path(&self.path, self.part.map_or(Ok(()), Part::take_place))?;
        if let Some((window, ended)) = written.missed {
            let (path, start) = (self.path.display(), window.start);
            complain(&format!(
                "{path} has no events: its window starts at {start}, after the end of the run at {ended}; see \
                 --trace-window"
            ));
        }
        if let Some(at) = written.cut_at {
            let (path, events) = (self.path.display(), written.events);
            complain(&format!("{path} is cut at {at}, after {events} events; see --trace-window"));
        }
        Ok(())
    }
}
