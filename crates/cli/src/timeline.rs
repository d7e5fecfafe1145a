//! `--trace FILE`: a run as a timeline for Perfetto or Chrome's trace viewer.

use crate::args::TimelineArgs;
use crate::output::{Failure, complain};
use crate::progress::Progress;
use anyhow::Context;
use nandscape_lab::run::{Observer, Phase};
use nandscape_lab::timeline::{Timeline, Window};
use nandscape_lab::workload::fio::time;
use nandscape_rt::Nanos;
use std::fs::File;
use std::path::PathBuf;

/// Whoever waits for a run: a progress bar, and a timeline if one is wanted.
pub(crate) struct Watcher {
    progress: Progress,
    timeline: Option<(Timeline, PathBuf)>,
}

impl Watcher {
    /// Creates the timeline's file, if one is wanted.
    pub(crate) fn new(args: &TimelineArgs) -> Result<Self, Failure> {
        let window = args.trace_window.unwrap_or_default();
        let timeline = args.trace.clone().map(|path| {
            let timeline =
                File::create(&path).and_then(|file| Timeline::new(Box::new(file), window));
            let timeline = timeline.with_context(|| format!("cannot write {}", path.display()));
            timeline.map(|timeline| (timeline, path))
        });
        let timeline = timeline.transpose().map_err(Failure::Input)?;
        Ok(Self { progress: Progress::new(), timeline })
    }

    /// The run has ended, well or not: so does the timeline.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        let Some((timeline, path)) = self.timeline else { return Ok(()) };
        let written = timeline.finish().with_context(|| format!("cannot write {}", path.display()));
        let written = written.map_err(Failure::Run)?;
        if let Some(at) = written.cut_at {
            let events = written.events;
            let path = path.display();
            complain(&format!("{path} is cut at {at}, after {events} events; see --trace-window"));
        }
        Ok(())
    }
}

impl Observer for Watcher {
    fn wall_s(&self) -> f64 {
        Progress::wall_s(&self.progress)
    }

    fn progress(&mut self, phase: Phase, fraction: f64) {
        self.progress.update(phase.name(), fraction);
    }

    fn timeline(&mut self) -> Option<&mut Timeline> {
        self.timeline.as_mut().map(|(timeline, _)| timeline)
    }
}

/// `START,DURATION`, with fio's suffixes.
pub(crate) fn window(text: &str) -> Result<Window, String> {
    let expected = "expected START,DURATION such as 1s,20ms";
    let (start, length) = text.split_once(',').ok_or(expected)?;
    let span = |text: &str| time(text.trim(), Nanos::from_secs(1)).ok_or(expected);
    let (start, length) = (span(start)?, span(length)?);
    if length == Nanos::ZERO {
        return Err("a window of no time holds nothing".to_owned());
    }
    Ok(Window { start, length, ..Window::default() })
}
