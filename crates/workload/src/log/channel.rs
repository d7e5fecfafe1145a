//! One log of one job: what becomes of its I/Os in a file. Formats are those of fio's manual ("Log
//! File Formats") and of fio 3.36 (iolog.c, `flush_samples`, `flush_hist_samples`).
//!
//! Windows are exact and aligned to the beginning of the job. One that is over is written when the job
//! next completes an I/O, so entries are in order of time; windows without I/O are not written. LogValue is
//! left at the end is written too, but for rates, where fio writes whole windows only; a job that is
//! shorter than a window gets its mean.

use super::LogSink;
use super::bins::{BINS, bin};
use crate::engine::Completed;
use crate::fio::Logs;
use nandscape_rt::Nanos;
use std::fmt::Write;

/// LogValue a log tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LogValue {
    /// Time to submit: none passes.
    Submission,
    /// Nanoseconds.
    Latency,
    /// KiB a second, or for each I/O bytes a millisecond.
    Bandwidth,
    /// I/Os a second.
    Iops,
    /// How many latencies in which of fio's bins.
    Histogram,
}

/// The I/Os of one direction in one window.
#[derive(Clone, Default, Debug)]
struct Window {
    ios: u64,
    bytes: u64,
    /// Size of every I/O; 0 when they differ.
    block: u64,
    latency_sum: u128,
    latency_max: u64,
    /// Of histograms only.
    bins: Vec<u64>,
}

impl Window {
    fn add(&mut self, io: &Completed, what: LogValue) {
        self.block = if self.ios == 0 || self.block == io.bytes { io.bytes } else { 0 };
        self.ios += 1;
        self.bytes += io.bytes;
        self.latency_sum += u128::from(io.latency.0);
        self.latency_max = self.latency_max.max(io.latency.0);
        if what == LogValue::Histogram {
            self.bins.resize(BINS, 0);
            self.bins[bin(io.latency.0)] += 1;
        }
    }

    /// The value of an entry for this window, `length` long.
    fn value(&self, what: LogValue, length: Nanos, max_value: bool) -> u128 {
        let (ios, ns) = (u128::from(self.ios.max(1)), u128::from(length.0.max(1)));
        match what {
            LogValue::Latency if max_value => self.latency_max.into(),
            LogValue::Latency => (self.latency_sum + ios / 2) / ios,
            LogValue::Bandwidth => u128::from(self.bytes) * 1_000_000_000 / ns / 1024,
            LogValue::Iops => u128::from(self.ios) * 1_000_000_000 / ns,
            LogValue::Submission | LogValue::Histogram => 0,
        }
    }
}

/// A log of a job.
#[derive(Clone, Debug)]
pub(super) struct Channel {
    pub(super) file: usize,
    what: LogValue,
    /// Zero: an entry for each I/O.
    window: Nanos,
    max_value: bool,
    offset: bool,
    coarseness: u32,
    /// When the current window ends, on the job's own clock.
    end: Nanos,
    /// When the last I/O completed, likewise.
    last: Nanos,
    windows: [Window; 3],
    written: bool,
}

impl Channel {
    pub(super) fn new(file: usize, what: LogValue, logs: &Logs) -> Self {
        let is_histogram = what == LogValue::Histogram;
        let window = if is_histogram { logs.histogram_interval } else { logs.average };
        Self {
            file,
            what,
            window,
            max_value: logs.max_value,
            offset: logs.offset,
            coarseness: logs.histogram_coarseness,
            end: window,
            last: Nanos::ZERO,
            windows: Default::default(),
            written: false,
        }
    }

    /// An I/O of the job completed.
    pub(super) fn completed(&mut self, io: &Completed, sink: &mut dyn LogSink, line: &mut String) {
        let Some(direction) = io.direction else { return };
        let at = io.at.saturating_sub(io.began);
        if self.window == Nanos::ZERO {
            self.entry(io, at, direction as usize, sink, line);
            return;
        }
        if at >= self.end {
            self.close(self.end, self.window, sink, line);
            let passed = at.saturating_sub(self.end).0 / self.window.0 + 1;
            self.end = self.end.saturating_add(Nanos(self.window.0.saturating_mul(passed)));
        }
        self.last = at;
        self.windows[direction as usize].add(io, self.what);
    }

    /// The job is over.
    pub(super) fn finish(&mut self, sink: &mut dyn LogSink, line: &mut String) {
        let is_rate = matches!(self.what, LogValue::Bandwidth | LogValue::Iops);
        if self.window > Nanos::ZERO && !(is_rate && self.written) {
            self.close(self.last, self.last, sink, line);
        }
    }

    /// An entry for one I/O.
    fn entry(
        &self,
        io: &Completed,
        at: Nanos,
        direction: usize,
        sink: &mut dyn LogSink,
        line: &mut String,
    ) {
        let value = match self.what {
            LogValue::Submission | LogValue::Histogram => 0,
            LogValue::Latency => io.latency.0.into(),
            LogValue::Bandwidth => {
                u128::from(io.bytes) * 1_000_000 / u128::from(io.latency.0.max(1))
            }
            LogValue::Iops => 1,
        };
        self.put(at, value, direction, io.bytes, io.offset, line);
        sink.line(self.file, line);
    }

    /// Writes what the windows hold, `length` of them, and empties them.
    fn close(&mut self, at: Nanos, length: Nanos, sink: &mut dyn LogSink, line: &mut String) {
        for direction in 0..self.windows.len() {
            if self.windows[direction].ios == 0 {
                continue;
            }
            self.written = true;
            let window = std::mem::take(&mut self.windows[direction]);
            if self.what == LogValue::Histogram {
                self.put_histogram(at, direction, &window, line);
            } else {
                let is_rate = matches!(self.what, LogValue::Bandwidth | LogValue::Iops);
                let block = if is_rate { window.block } else { 0 };
                let value = window.value(self.what, length, self.max_value);
                self.put(at, value, direction, block, 0, line);
            }
            sink.line(self.file, line);
        }
    }

    /// `time, value, direction, block size, [offset,] priority`.
    fn put(
        &self,
        at: Nanos,
        value: u128,
        direction: usize,
        block: u64,
        offset: u64,
        line: &mut String,
    ) {
        line.clear();
        let ms = at.0 / 1_000_000;
        // Writing to a string cannot fail.
        let _ = match self.offset {
            true => writeln!(line, "{ms}, {value}, {direction}, {block}, {offset}, 0"),
            false => writeln!(line, "{ms}, {value}, {direction}, {block}, 0"),
        };
    }

    /// `time, direction, block size, bin, bin, ...`.
    fn put_histogram(&self, at: Nanos, direction: usize, window: &Window, line: &mut String) {
        line.clear();
        // Writing to a string cannot fail.
        let _ = write!(line, "{}, {direction}, {}", at.0 / 1_000_000, window.block);
        for bins in window.bins.chunks(1 << self.coarseness) {
            let _ = write!(line, ", {}", bins.iter().sum::<u64>());
        }
        line.push('\n');
    }
}
