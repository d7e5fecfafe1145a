//! Interval histograms of latencies as HdrHistogram's tools read them: an interval log (format version
//! 1.3) of compressed V2 histograms in nanoseconds, each tagged `job/direction`.
//!
//! Intervals are aligned to the beginning of the run; one without I/Os of a job and direction is left
//! out. Times are virtual seconds.

use crate::sink::Stream;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{
    IntervalLogWriterBuilder, IntervalLogWriterError, Tag,
};
use nandscape_lab::workload::engine::{Completed, Recorder};
use nandscape_lab::workload::fio::JobFile;
use nandscape_lab::workload::latency::Latencies;
use nandscape_rt::Nanos;
use std::collections::BTreeMap;
use std::io::{Error, Write};
use std::time::Duration;

const HEADER: &str = "#[Histogram log format version 1.3]\n\
                      #[latencies in nanoseconds of virtual time]\n\
                      #[BaseTime: 0.000 (seconds since epoch)]\n\
                      #[StartTime: 0.000 (seconds since epoch)]\n\
                      \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\
                      \"Interval_Compressed_Histogram\"\n";

/// Directions, and flushes behind them.
const NAMES: [&str; 4] = ["read", "write", "trim", "sync"];

/// An interval log being written.
pub(crate) struct HdrLog {
    file: Stream,
    interval: Nanos,
    /// Names of jobs, clones one by one.
    jobs: Vec<String>,
    /// Of the current interval, by job and direction.
    current: BTreeMap<(u32, usize), Latencies>,
    began: Nanos,
    last: Nanos,
    serializer: V2DeflateSerializer,
}

impl std::fmt::Debug for HdrLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HdrLog").field("file", &self.file).finish_non_exhaustive()
    }
}

impl HdrLog {
    /// One that begins now.
    pub(crate) fn new(mut file: Stream, interval: Nanos, jobs: Vec<String>) -> Self {
        file.put(|out| out.write_all(HEADER.as_bytes()));
        Self {
            file,
            interval: interval.max(Nanos(1)),
            jobs,
            current: BTreeMap::new(),
            began: Nanos::ZERO,
            last: Nanos::ZERO,
            serializer: V2DeflateSerializer::new(),
        }
    }

    /// The interval ends at `at`: its histograms are written.
    fn close(&mut self, at: Nanos) {
        let length = at.saturating_sub(self.began);
        for ((job, direction), latencies) in std::mem::take(&mut self.current) {
            let name = self.jobs.get(job as usize).map_or("job", String::as_str);
            let tag = format!("{name}/{}", NAMES[direction]).replace([',', ' ', '\r', '\n'], "_");
            self.write(&tag, length, &latencies);
        }
    }

    fn write(&mut self, tag: &str, length: Nanos, latencies: &Latencies) {
        let Self { file, serializer, began, .. } = self;
        let seconds = |time: Nanos| Duration::from_nanos(time.0);
        let (began, length) = (seconds(*began), seconds(length));
        // A builder without settings writes no header.
        let mut builder = IntervalLogWriterBuilder::new();
        builder.with_max_value_divisor(1.0);
        file.put(|out| {
            let mut writer = builder.begin_log_with(out, serializer)?;
            let written =
                writer.write_histogram(&latencies.histogram(), began, length, Tag::new(tag));
            written.map_err(|error| match error {
                IntervalLogWriterError::IoError(error) => error,
                IntervalLogWriterError::SerializeError(error) => Error::other(error.to_string()),
            })
        });
    }
}

impl Recorder for HdrLog {
    fn completed(&mut self, io: &Completed) {
        let end = self.began.saturating_add(self.interval);
        if io.at >= end {
            self.close(end);
            self.began = Nanos(io.at.0 - io.at.0 % self.interval.0);
        }
        self.last = io.at;
        let direction = io.direction.map_or(3, |direction| direction as usize);
        self.current.entry((io.job, direction)).or_default().record(io.latency);
    }

    fn finish(&mut self, _: Nanos) {
        self.close(self.last);
    }
}

/// The names of the jobs of `file`, clones of `numjobs` numbered from 1.
pub(crate) fn job_names(file: &JobFile) -> Vec<String> {
    let clones = file.jobs.iter().flat_map(|spec| (1..=spec.numjobs).map(move |n| (spec, n)));
    clones
        .map(|(spec, n)| match spec.numjobs {
            1 => spec.name.clone(),
            _ => format!("{}.{n}", spec.name),
        })
        .collect()
}
