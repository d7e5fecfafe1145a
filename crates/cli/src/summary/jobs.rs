//! What jobs and flowops did.

use super::groups::status_groups;
use super::units::{bytes, count, latencies, time};
use super::{Page, SECTORS};
use crate::paint::Tone;
use nandscape_lab::run::{IoPath, Outcome};
use nandscape_lab::workload::Direction;
use nandscape_lab::workload::engine::{JobResult, Spread, ZoneCounts};
use nandscape_lab::workload::wml::engine::{Report, summary_line};
use nandscape_rt::Nanos;
use nandscape_rt::words::{counted, grouped};

impl Page {
    /// Each job, then all of them, in lines of ours and in those of fio.
    pub(super) fn jobs(&mut self, outcome: &Outcome) {
        let jobs = &outcome.workload.jobs;
        for (job, name) in jobs.iter().zip(names(jobs)) {
            self.job(&name, job, outcome.io_path(job));
        }
        if jobs.len() > 1 {
            self.all_jobs(outcome);
        }
        self.gap();
        self.text.push_str(&status_groups(jobs));
    }

    fn job(&mut self, name: &str, job: &JobResult, path: IoPath) {
        self.gap();
        self.line("  ", &format!("{name}, {}, {path}", time(job.runtime)));
        for direction in Direction::ALL {
            let result = job.direction(direction);
            if result.ios > 0 {
                let passed = job.runtime > Nanos::ZERO;
                let iops = passed.then(|| job.iops(direction));
                let rate = passed.then(|| job.bytes_per_s(direction));
                let amount = format!("{} total", bytes(result.bytes as f64));
                self.rates(direction, iops, rate, &amount, job.zones.as_ref());
                self.line("           ", &latencies(&result.latency));
                self.spread(&result.windows.spread());
            }
        }
        let changed = |zones: &&ZoneCounts| zones.resets + zones.begun + zones.filled > 0;
        job.zones.iter().filter(changed).for_each(|zones| self.zones(zones));
        if job.sync.count() > 0 {
            self.line("    fsync  ", &counted(job.sync.count(), ["call", "calls"]));
            self.line("           ", &latencies(&job.sync));
        }
        if let Some(depth) = job.latency_depth {
            self.line("    depth  ", &format!("queue depth {depth} meets latency_target"));
        }
        if job.unaligned.iter().any(|ios| *ios > 0) {
            let [reads, writes, _] = job.unaligned.map(grouped);
            let text = format!("{reads} reads and {writes} writes cover 4 KiB sectors in part");
            self.line("    sector ", &text);
        }
        if job.verified_sectors > 0 {
            let sectors = counted(job.verified_sectors, SECTORS);
            self.line("    verify ", &format!("{sectors} verified"));
        }
        for failure in &job.failures {
            let failed = self.paint.paint(Tone::Failure, "FAILED");
            self.line("    ", &format!("{failed} {failure}"));
        }
    }

    /// How much the rate varied.
    fn spread(&mut self, iops: &Spread) {
        if iops.samples < 2 {
            return;
        }
        let (mean, deviation) = (count(iops.mean), count(iops.deviation()));
        let (min, max) = (count(iops.min as f64), count(iops.max as f64));
        let text = format!(
            "IOPS over {} windows: min {min}, mean {mean}, max {max}, stdev {deviation}",
            grouped(iops.samples)
        );
        self.line("           ", &text);
    }

    /// Rates of a direction, and the amount that it transferred in all.
    fn rates(
        &mut self,
        direction: Direction,
        iops: Option<f64>,
        rate: Option<f64>,
        amount: &str,
        zones: Option<&ZoneCounts>,
    ) {
        let rates = match (iops, rate) {
            (Some(iops), Some(rate)) => {
                let rates = [format!("{} IOPS", count(iops)), format!("{}/s", bytes(rate))];
                rates.map(|text| self.paint.paint(Tone::Figure, &text)).join(", ")
            }
            _ => "IOPS n/a (no virtual time passed)".to_owned(),
        };
        let first = format!("    {:<7}", direction.name());
        // As in fio, in the line of the writes.
        let resets = zones
            .filter(|_| direction == Direction::Write)
            .map_or_else(String::new, |zones| format!("; {} zone resets", grouped(zones.resets)));
        self.line(&first, &format!("{rates}, {amount}{resets}"));
    }

    /// What a job did to zones.
    fn zones(&mut self, zones: &ZoneCounts) {
        let of = |count| counted(count, ["zone", "zones"]);
        let (begun, filled) = (of(zones.begun), of(zones.filled));
        self.line(
            "    zones  ",
            &format!("{} reset, {begun} begun, {filled} filled", of(zones.resets)),
        );
        if zones.reset_latency.count() > 0 {
            self.line("           ", &latencies(&zones.reset_latency));
        }
    }

    /// All jobs together, as fio's "Run status group".
    fn all_jobs(&mut self, outcome: &Outcome) {
        let totals = outcome.workload.totals();
        self.gap();
        self.line("  ", &format!("all jobs, {}", time(totals.length)));
        for direction in Direction::ALL.into_iter().filter(|d| totals.ios[*d as usize] > 0) {
            let (iops, rate) = (totals.iops(direction), totals.bytes_per_s(direction));
            let (zones, time_of) = (totals.zones.as_ref(), totals.times[direction as usize]);
            let mut amount = format!("{} total", bytes(totals.bytes[direction as usize] as f64));
            if time(time_of) != time(totals.length) {
                // Jobs of other directions ran longer, or at another time.
                amount += &format!(" in {}", time(time_of));
            }
            self.rates(direction, iops, rate, &amount, zones);
        }
        totals.zones.iter().for_each(|zones| self.zones(zones));
    }

    /// What flowops did, as Filebench shows it.
    pub(super) fn flowops(&mut self, report: &Report) {
        for text in report.echoes.iter().chain(&report.messages) {
            self.line("  ", text);
        }
        self.gap();
        for set in &report.filesets {
            let text = format!(
                "{}: {}, {} preallocated, in {}, {}; {}",
                set.name,
                counted(set.files, ["file", "files"]),
                grouped(set.preallocated),
                counted(set.directories, ["directory", "directories"]),
                bytes(set.bytes as f64),
                counted(set.leafdirs, ["empty directory", "empty directories"])
            );
            self.line("  ", &text);
        }
        for snapshot in &report.snapshots {
            let summary = summary_line(&snapshot.sums, snapshot.length);
            self.text.push_str(&format!("  {:>6.0} s: {summary}\n", snapshot.at.as_secs_f64()));
        }
        self.gap();
        // Lines of a table are not wrapped.
        self.text.push_str(&report.to_text());
        if let Some(why) = report.failure() {
            let failed = self.paint.paint(Tone::Failure, "FAILED");
            self.line("  ", &format!("{failed} {why}"));
        }
    }
}

/// Names of reports: where several share one, each with its number, as clones have it; with fio's group and number
/// of jobs, unless there is nothing to tell apart.
fn names(jobs: &[JobResult]) -> Vec<String> {
    let same = |job: &JobResult, jobs: &[JobResult]| {
        jobs.iter().filter(|other| other.name == job.name).count()
    };
    let name = |(at, job): (usize, &JobResult)| {
        let number = match same(job, jobs) {
            1 => String::new(),
            _ => format!(" #{}", same(job, &jobs[..=at])),
        };
        let group = match (jobs.len(), job.jobs) {
            (1, 1) => String::new(),
            (_, clones) => format!(" (groupid={}, jobs={clones})", job.group),
        };
        format!("{}{number}{group}", job.name)
    };
    jobs.iter().enumerate().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Clones that are reported one by one have numbers, and a job alone has only its name.
    #[test]
    fn clones_have_numbers() {
        let job = |name: &str, jobs| JobResult { name: name.into(), jobs, ..JobResult::default() };
        let named = names(&[job("log", 1), job("bulk", 4), job("log", 1)]);
        let expected = [
            "log #1 (groupid=0, jobs=1)",
            "bulk (groupid=0, jobs=4)",
            "log #2 (groupid=0, jobs=1)",
        ];
        assert_eq!(named, expected);
        assert_eq!(names(&[job("a", 1)]), ["a"]);
    }
}
