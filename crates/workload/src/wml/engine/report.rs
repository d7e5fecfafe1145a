//! What a run brought, and Filebench's way to show it (stats.c).

use super::super::model::{Thread, Workload};
use super::super::ops::Op;
use super::super::tree::Tree;
use super::runner::RunEnd;
use super::stats::{Row, Sums};
use crate::latency::Latencies;
use nandscape_rt::Nanos;
use std::fmt::Write;

/// Bytes of a megabyte, as Filebench has it.
const MEGABYTE: f64 = 1_048_576.0;
/// Buckets of a histogram: powers of two in nanoseconds.
const BUCKETS: usize = 64;

/// Figures at the end of a period.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Snapshot {
    /// From the start of the run.
    pub at: Nanos,
    /// What the sums are of.
    pub length: Nanos,
    /// Sums.
    pub sums: Sums,
}

/// A fileset, as it was made.
#[derive(Clone, PartialEq, Debug)]
pub struct FilesetMade {
    /// Its name.
    pub name: String,
    /// Files, there or not.
    pub files: u64,
    /// Files that were there at the beginning.
    pub preallocated: u64,
    /// Directories that hold something.
    pub directories: u64,
    /// Directories that hold nothing, there or not.
    pub leafdirs: u64,
    /// Bytes of all files, there or not.
    pub bytes: u64,
    /// Directories above a file, on average, as its shape wants it.
    pub mean_depth: f64,
}

/// Everything that a run brought.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// From the start to the end.
    pub length: Nanos,
    /// How it ended; none: its time was over.
    pub ending: Option<RunEnd>,
    /// Names of threads (process, thread) and how many instances there were.
    pub threads: Vec<(String, u64)>,
    /// Flowops, by thread.
    pub rows: Vec<Row>,
    /// Figures on the way.
    pub snapshots: Vec<Snapshot>,
    /// What `print` said.
    pub messages: Vec<String>,
    /// Sets of files.
    pub filesets: Vec<FilesetMade>,
    /// What `echo` said.
    pub echoes: Vec<String>,
    /// The table has histograms.
    pub shows_histograms: bool,
}

/// A line of the table: all flowops of a name.
#[derive(Clone, PartialEq, Debug)]
pub struct TableRow {
    /// The name.
    pub name: String,
    /// What it does.
    pub op: Op,
    /// How often it was done.
    pub count: u64,
    /// Bytes that it moved.
    pub bytes: u64,
    /// How long it took.
    pub latency: Latencies,
}

impl Report {
    /// Sums over all I/O.
    #[must_use]
    pub fn sums(&self) -> Sums {
        Sums::of(self.rows.iter())
    }

    /// Why it has no valid result, if it has none.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        match &self.ending {
            Some(RunEnd::Failed(why)) => Some(why),
            _ => None,
        }
    }

    /// It has none after all.
    pub fn fail(&mut self, why: &str) {
        self.ending = Some(RunEnd::Failed(why.to_owned()));
    }

    /// Flowops by name, in the order in which Filebench shows them: the last one first.
    #[must_use]
    pub fn table(&self) -> Vec<TableRow> {
        let mut table: Vec<TableRow> = Vec::new();
        for row in self.rows.iter().rev() {
            if let Some(known) = table.iter_mut().find(|known| known.name == row.name) {
                known.count += row.count;
                known.bytes += row.bytes;
                known.latency.merge(&row.latency);
                continue;
            }
            let Row { name, op, count, bytes, latency, .. } = row.clone();
            table.push(TableRow { name, op, count, bytes, latency });
        }
        table
    }

    /// The table and the summary, as Filebench writes them.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = "Per-Operation Breakdown\n".to_owned();
        for row in self.table() {
            text.push_str(&self.line(&row));
            text.push('\n');
        }
        text.push_str(&summary_line(&self.sums(), self.length));
        text.push('\n');
        text
    }

    fn line(&self, row: &TableRow) -> String {
        let seconds = self.length.as_secs_f64();
        let latency = &row.latency;
        let mut line = format!(
            "{:<20} {}ops {:>8.0}ops/s {:>5.1}mb/s {:>8.3}ms/op [{:.3}ms - {:>5.3}ms]",
            row.name,
            row.count,
            per(row.count as f64, seconds),
            per(row.bytes as f64 / MEGABYTE, seconds),
            ms(latency.mean_ns()),
            ms(if row.count > 0 { latency.min().0 as f64 } else { 0.0 }),
            ms(latency.max().0 as f64),
        );
        if self.shows_histograms {
            line.push_str("\t[ ");
            for count in histogram(latency) {
                let _ = write!(line, "{count} ");
            }
            line.push(']');
        }
        line
    }
}

/// Filebench's summary of a stretch of time.
#[must_use]
pub fn summary_line(sums: &Sums, length: Nanos) -> String {
    let seconds = length.as_secs_f64();
    format!(
        "IO Summary: {:>5} ops {:>5.3} ops/s {:.0}/{:.0} rd/wr {:>5.1}mb/s {:>5.3}ms/op",
        sums.ops,
        per(sums.ops as f64, seconds),
        per(sums.reads as f64, seconds),
        per(sums.writes as f64, seconds),
        per(sums.bytes() as f64 / MEGABYTE, seconds),
        ms(sums.mean_ns()),
    )
}

fn per(number: f64, seconds: f64) -> f64 {
    if seconds > 0.0 { number / seconds } else { 0.0 }
}

fn ms(ns: f64) -> f64 {
    ns / 1e6
}

/// How many took less than 1 ns, 2 ns, 4 ns and so on.
fn histogram(latency: &Latencies) -> [u64; BUCKETS] {
    let mut buckets = [0; BUCKETS];
    for (ns, count) in latency.buckets() {
        buckets[((u64::BITS - ns.leading_zeros()) as usize).min(BUCKETS - 1)] += count;
    }
    buckets
}

/// A thread's name, and how many instances it has.
pub(super) fn thread_name(thread: &Thread) -> (String, u64) {
    let instances = thread.process_instances * thread.instances;
    (format!("{}.{}", thread.process_name, thread.name), instances)
}

/// Filesets as they were made.
pub(super) fn made<'a>(
    workload: &Workload,
    trees: impl Iterator<Item = &'a Tree>,
) -> Vec<FilesetMade> {
    let sets = workload.filesets.iter().zip(trees);
    sets.map(|(fileset, tree)| FilesetMade {
        name: fileset.name.clone(),
        files: tree.files.len() as u64,
        preallocated: tree.order.len() as u64,
        directories: tree.directories.len() as u64,
        leafdirs: tree.leafdirs.len() as u64,
        bytes: tree.bytes(),
        mean_depth: tree.mean_depth,
    })
    .collect()
}
