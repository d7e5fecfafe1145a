//! fio's logs (docs/formats/logs.md): from the I/Os of a run to lines of files, which the caller that runs
//! it writes. Nothing is kept but the current window of each log.

mod bins;
mod channel;
#[cfg(test)]
mod tests;

pub use bins::{BINS, bin, bin_ns, bins};

use crate::engine::{Completed, Recorder};
use crate::fio::{JobFile, JobSpec};
use channel::{Channel, LogValue};
use nandscape_rt::Nanos;
use std::fmt;

/// Where the lines of logs go.
pub trait LogSink: fmt::Debug {
    /// A whole line, its end included, for the file at this place of [`FioLogs::files`].
    fn line(&mut self, file: usize, line: &str);
}

/// The logs that the jobs of a file ask for.
#[derive(Clone, Default, Debug)]
pub struct FioLogs {
    files: Vec<String>,
    /// By job, clones one by one.
    jobs: Vec<Vec<Channel>>,
}

impl FioLogs {
    /// Those of `file`.
    #[must_use]
    pub fn new(file: &JobFile) -> Self {
        let mut logs = Self::default();
        for spec in &file.jobs {
            for _ in 0..spec.numjobs {
                let channels = logs.channels(spec);
                logs.jobs.push(channels);
            }
        }
        logs
    }

    /// The logs of the next job.
    fn channels(&mut self, spec: &JobSpec) -> Vec<Channel> {
        let logs = &spec.logs;
        let wanted = [
            (&logs.latency, "slat", LogValue::Submission),
            (&logs.latency, "clat", LogValue::Latency),
            (&logs.latency, "lat", LogValue::Latency),
            (&logs.histogram, "clat_hist", LogValue::Histogram),
            (&logs.bandwidth, "bw", LogValue::Bandwidth),
            (&logs.iops, "iops", LogValue::Iops),
        ];
        let number = self.jobs.len() + 1;
        let mut channels = Vec::new();
        for (prefix, kind, what) in wanted {
            let Some(prefix) = prefix else { continue };
            let prefix = if prefix.is_empty() { &spec.name } else { prefix };
            let name = match logs.per_job {
                true => format!("{prefix}_{kind}.{number}.log"),
                false => format!("{prefix}_{kind}.log"),
            };
            channels.push(Channel::new(self.file(name), what, logs));
        }
        channels
    }

    /// The place of a file, which is added if it is new.
    fn file(&mut self, name: String) -> usize {
        let known = self.files.iter().position(|file| *file == name);
        known.unwrap_or_else(|| {
            self.files.push(name);
            self.files.len() - 1
        })
    }

    /// Names of the files, as fio chooses them.
    #[must_use]
    pub fn files(&self) -> &[String] {
        &self.files
    }

    /// Writes them.
    #[must_use]
    pub fn recorder(self, sink: impl LogSink + 'static) -> Box<dyn Recorder> {
        Box::new(Logger { jobs: self.jobs, sink: Box::new(sink), line: String::new() })
    }
}

/// Logs being written.
#[derive(Debug)]
struct Logger {
    jobs: Vec<Vec<Channel>>,
    sink: Box<dyn LogSink>,
    line: String,
}

impl Recorder for Logger {
    fn completed(&mut self, io: &Completed) {
        let channels = self.jobs.get_mut(io.job as usize).into_iter().flatten();
        for channel in channels {
            channel.completed(io, &mut *self.sink, &mut self.line);
        }
    }

    fn finish(&mut self, _: Nanos) {
        for channel in self.jobs.iter_mut().flatten() {
            channel.finish(&mut *self.sink, &mut self.line);
        }
    }
}
