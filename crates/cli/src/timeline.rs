//! `--trace FILE`: a run as a timeline for Perfetto or Chrome's trace viewer.

use crate::args::TimelineArgs;
use crate::output::{Failure, complain};
use anyhow::Context;
use nandscape_lab::timeline::Timeline;
use std::fs::File;
use std::path::PathBuf;

/// A timeline being written, and where.
#[derive(Debug)]
pub(crate) struct TimelineFile {
    pub(crate) timeline: Timeline,
    path: PathBuf,
}

impl TimelineFile {
    /// Creates the file, if one is wanted.
    pub(crate) fn create(args: &TimelineArgs) -> Result<Option<Self>, Failure> {
        let Some(path) = args.trace.clone() else { return Ok(None) };
        let window = args.trace_window.unwrap_or_default();
        let timeline = File::create(&path).and_then(|file| Timeline::new(Box::new(file), window));
        let timeline = timeline.with_context(|| format!("cannot write {}", path.display()));
        Ok(Some(Self { timeline: timeline.map_err(Failure::Input)?, path }))
    }

    /// The run has ended, well or not: so does the timeline.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        let path = self.path.display();
        let written = self.timeline.finish().with_context(|| format!("cannot write {path}"));
        let written = written.map_err(Failure::Run)?;
        if let Some(at) = written.cut_at {
            let events = written.events;
            complain(&format!("{path} is cut at {at}, after {events} events; see --trace-window"));
        }
        Ok(())
    }
}
