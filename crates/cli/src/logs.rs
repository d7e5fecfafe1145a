//! What a run writes beside its result: fio's logs, as the job file asks for them, interval histograms
//! in HdrHistogram's format, a timeline, and the device as it was left. Lines are written as the run goes on, and
//! the files take their places when it has ended, well or not; but not if its input was wrong or nothing was
//! measured: then what was there stays.

use crate::args::{ResultArgs, TimelineArgs};
use crate::hdr::HdrLog;
use crate::interrupt::Interrupt;
use crate::output::Failure;
use crate::progress::Progress;
use crate::replace::make_folder;
use crate::sink::{Stream, Streams};
use crate::timeline::TimelineFile;
use nandscape_lab::run::{FinalState, Observer, Phase, RunError};
use nandscape_lab::timeline::Timeline;
use nandscape_lab::workload::engine::{Completed, Recorder};
use nandscape_lab::workload::log::{FioLogs, LogSink};
use nandscape_rt::Nanos;
use std::io::Write;
use std::path::Path;

/// fio's logs as files.
#[derive(Debug)]
struct LogFiles(Vec<Stream>);

impl LogSink for LogFiles {
    fn line(&mut self, file: usize, line: &str) {
        if let Some(stream) = self.0.get_mut(file) {
            stream.put(|out| out.write_all(line.as_bytes()));
        }
    }
}

/// Several recorders as one.
#[derive(Debug)]
struct All(Vec<Box<dyn Recorder>>);

impl Recorder for All {
    fn completed(&mut self, io: &Completed) {
        self.0.iter_mut().for_each(|recorder| recorder.completed(io));
    }

    fn finish(&mut self, at: Nanos) {
        self.0.iter_mut().for_each(|recorder| recorder.finish(at));
    }
}

/// What is wanted of a run beside its result.
pub(crate) struct Outputs<'a> {
    /// Interval histograms, if it asks for them.
    pub(crate) output: &'a ResultArgs,
    /// The names of the jobs that they are of.
    pub(crate) jobs: Vec<String>,
    /// fio's logs, in this folder if there is one.
    pub(crate) fio_logs: Option<(FioLogs, Option<&'a Path>)>,
    /// A timeline, if it asks for one.
    pub(crate) timeline: &'a TimelineArgs,
    /// The device as the run leaves it.
    pub(crate) device: bool,
}

/// Watches a run: a progress bar, whatever is logged, and whether a signal asks it to end.
pub(crate) struct Watch {
    progress: Progress,
    recorders: Vec<Box<dyn Recorder>>,
    timeline: Option<TimelineFile>,
    streams: Streams,
    asked: Option<Interrupt>,
    /// Whether anything was measured yet.
    has_begun: bool,
    keeps_device: bool,
    left: FinalState,
}

impl Watch {
    /// Nothing is logged, and nothing kept.
    pub(crate) fn new() -> Self {
        Self {
            progress: Progress::new(),
            recorders: Vec::new(),
            timeline: None,
            streams: Streams::default(),
            asked: None,
            has_begun: false,
            keeps_device: false,
            left: None,
        }
    }

    /// For a run of which that is wanted, and which tells what it has when it is interrupted: the first
    /// Ctrl-C from now on ends the run, the second the program.
    pub(crate) fn of(wanted: Outputs<'_>) -> Result<Self, Failure> {
        let Outputs { output, jobs, fio_logs, timeline, device } = wanted;
        let asked = Some(Interrupt::new("printing partial results"));
        let mut watch = Self { asked, ..Self::new() };
        if let Some((logs, folder)) = fio_logs {
            watch.fio_logs(logs, folder)?;
        }
        if let Some(path) = &output.hdr_log {
            watch.hdr_log(path, Nanos::from_ms(output.hdr_interval), jobs)?;
        }
        watch.timeline = TimelineFile::begin(timeline)?;
        watch.keeps_device = device;
        Ok(watch)
    }

    fn fio_logs(&mut self, logs: FioLogs, folder: Option<&Path>) -> Result<(), Failure> {
        folder.map_or(Ok(()), make_folder)?;
        let folder = folder.unwrap_or(Path::new(""));
        if logs.files().is_empty() {
            return Ok(());
        }
        let begin = |name: &String| Stream::begin(&folder.join(name), &self.streams);
        let files = logs.files().iter().map(begin).collect::<Result<_, _>>()?;
        self.recorders.push(logs.recorder(LogFiles(files)));
        Ok(())
    }

    fn hdr_log(&mut self, path: &Path, interval: Nanos, jobs: Vec<String>) -> Result<(), Failure> {
        let file = Stream::begin(path, &self.streams)?;
        self.recorders.push(Box::new(HdrLog::new(file, interval, jobs)));
        Ok(())
    }

    /// The device as the run left it, unless a signal asked for an end meanwhile.
    pub(crate) fn take_device(&mut self) -> FinalState {
        let left = self.left.take()?;
        Some(if self.is_interrupted() { Err(RunError::Interrupted) } else { left })
    }

    /// The run has ended, perhaps with an `error`. Whether everything went where it belongs.
    pub(crate) fn finish(self, error: Option<&RunError>) -> Result<(), Failure> {
        drop(self.recorders);
        let kept = self.has_begun && !error.is_some_and(RunError::is_bad_input);
        let timeline = self.timeline.filter(|_| kept);
        let timeline = timeline.map_or(Ok(()), TimelineFile::finish);
        self.streams.end(kept).and(timeline)
    }
}

impl Observer for Watch {
    fn wall_s(&self) -> f64 {
        self.progress.wall_s()
    }

    fn progress(&mut self, phase: Phase, fraction: f64) {
        self.has_begun |= phase == Phase::Measure;
        self.progress.update(phase.name(), fraction);
    }

    fn recorder(&mut self) -> Option<Box<dyn Recorder>> {
        self.has_begun = true;
        let recorders = std::mem::take(&mut self.recorders);
        (!recorders.is_empty()).then(|| Box::new(All(recorders)) as Box<dyn Recorder>)
    }

    fn timeline(&mut self) -> Option<&mut Timeline> {
        self.timeline.as_mut().map(|file| &mut file.timeline)
    }

    fn is_interrupted(&self) -> bool {
        self.asked.as_ref().is_some_and(Interrupt::has_come)
    }

    fn final_state(&mut self) -> Option<&mut FinalState> {
        self.keeps_device.then_some(&mut self.left)
    }
}
