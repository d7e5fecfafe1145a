//! `--trace FILE`: a run as a timeline for Perfetto or Chrome's trace viewer.

use crate::args::TimelineArgs;
use crate::output::{Failure, complain, wrote};
use crate::replace::{Part, begin, with_path};
use anyhow::Context;
use nandscape_lab::timeline::Timeline;
use nandscape_rt::words::grouped;
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
        wrote("timeline", &self.path);
        if let Some((window, ended)) = written.missed {
            complain(&format!(
                "timeline without events: its window starts at {}, after the end of the run at {ended}; see \
                 --trace-window",
                window.start
            ));
        }
        if let Some(at) = written.cut_at {
            let events = grouped(written.events);
            complain(&format!(
                "timeline truncated at {at} (limit of {events} events); narrow --trace-window"
            ));
        }
        Ok(())
    }
}
