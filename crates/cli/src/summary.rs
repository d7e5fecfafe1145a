//! A run's result for people: what they came for first, then what they need to believe it, then the
//! command that makes it again.

mod device;
mod ftl;
mod groups;
mod jobs;
mod units;

pub(crate) use device::before;
pub(crate) use units::{bytes, count, latencies, time};

use crate::paint::{Paint, Tone};
use nandscape_fs::cache::Lookups;
use nandscape_lab::run::{Outcome, WINDOW_ROUNDS};
use nandscape_lab::workload::Direction;
use nandscape_lab::workload::engine::JobResult;
use nandscape_lab::workload::replay::TraceCounts;
use nandscape_rt::words::{counted, grouped};
use units::sector_bytes;

/// The summary of `outcome`; `again` is the command that makes it again.
pub(crate) fn summary(
    outcome: &Outcome,
    job_name: &str,
    commit: &str,
    again: &str,
    paint: Paint,
) -> String {
    let mut page = Page { text: String::new(), paint };
    let title = format!("{job_name} on {}, seed {}", outcome.stack.label(), outcome.seed);
    page.line("", &paint.paint(Tone::Heading, &title));
    match &outcome.flowops {
        Some(report) => page.flowops(report),
        None => page.jobs(outcome),
    }
    page.trace(outcome);
    page.steady(outcome);
    page.files(outcome);
    page.amplification(outcome);
    page.busy(outcome);
    page.garbage(outcome);
    page.flushes(outcome);
    page.failures(outcome);
    page.device(outcome);
    page.foot(outcome, commit, again);
    page.text
}

/// What counts of them are of.
const SECTORS: [&str; 2] = ["sector", "sectors"];

/// A summary being written.
struct Page {
    text: String,
    paint: Paint,
}

impl Page {
    /// A line, or as many as the terminal needs for it.
    fn line(&mut self, first: &str, text: &str) {
        self.text.push_str(&self.paint.wrapped(first, text));
        self.text.push('\n');
    }

    fn gap(&mut self) {
        self.text.push('\n');
    }

    fn trace(&mut self, outcome: &Outcome) {
        let Some(counts) = &outcome.trace else { return };
        let fit = &counts.fit;
        let requests = counted(counts.read.requests, ["request", "requests"]);
        let mut text = format!("{requests} in the trace");
        if fit.widened > 0 {
            let added = bytes(fit.widened_bytes as f64);
            text +=
                &format!("; {} unaligned, rounded out to 4 KiB (+{added})", grouped(fit.widened));
            text += &issued(counts, &outcome.workload.jobs);
        }
        if fit.narrowed + fit.dropped > 0 {
            let (narrowed, dropped) = (grouped(fit.narrowed), grouped(fit.dropped));
            text += &format!(
                "; {narrowed} trims narrowed to whole sectors, {dropped} smaller than a sector \
                 dropped"
            );
        }
        if counts.late > 0 {
            text += &format!("; max issue delay {}", time(counts.late_max));
        }
        self.line("    ", &text);
    }

    /// Whether the metrics are those of a steady state, and over what.
    fn steady(&mut self, outcome: &Outcome) {
        let reason = outcome.not_steady.as_deref().unwrap_or("steady state");
        let rounds = outcome.rounds.map_or_else(String::new, |run| {
            let window = WINDOW_ROUNDS.min(run.rounds);
            let (round, rounds) = (run.asked.round, run.rounds);
            format!("; metrics cover the last {window} of {rounds} rounds of {round}")
        });
        self.gap();
        self.line("  ", &format!("{reason}{rounds}"));
    }

    fn files(&mut self, outcome: &Outcome) {
        let Some(counts) = &outcome.fs else { return };
        let written = match outcome.fs_amplification() {
            Some(factor) => format!("FS write amplification {factor:.3}"),
            None if counts.written_sectors == 0 => "no file writes".to_owned(),
            None => "FS write amplification n/a, as nothing was written to the device".to_owned(),
        };
        let mut phrases = counts.fs.detail.phrases().into_iter();
        let first = phrases.next().map_or_else(String::new, |phrase| phrase + "; ");
        let mut text =
            format!("{written}; {first}page cache {}", sector_bytes(counts.cached_pages));
        let Lookups { hits, misses } = counts.fs.lookups;
        if hits + misses > 0 {
            let share = 100.0 * hits as f64 / (hits + misses) as f64;
            let reads = counted(hits + misses, ["page read", "page reads"]);
            text += &format!("; hit ratio {share:.1} % ({reads})");
        }
        phrases.for_each(|phrase| text += &format!("; {phrase}"));
        self.gap();
        let name = outcome.stack.fs.as_ref().map_or_else(
            || "page cache".to_owned(),
            |stack| {
                let choices = stack.config.choices().into_iter().take(1);
                let choices: String =
                    choices.map(|(key, value)| format!(", {key}={value}")).collect();
                format!("{}{choices}", stack.config.kind().name())
            },
        );
        self.line("  ", &format!("{name}: {text}"));
    }
}

/// What a trace asked for, and what was issued for it in whole sectors.
fn issued(counts: &TraceCounts, jobs: &[JobResult]) -> String {
    let (transfers, all) = ([Direction::Read, Direction::Write], jobs.iter());
    let asked = all.map(|job| transfers.map(|to| job.direction(to).bytes).iter().sum::<u64>());
    let issued: u64 = transfers.map(|to| counts.issued_bytes[to as usize]).iter().sum();
    let seconds = jobs.first().map_or(0.0, |job| job.runtime.as_secs_f64());
    let rate = |sum: u64| format!("{}/s", bytes(sum as f64 / seconds));
    let mut text = String::new();
    if seconds > 0.0 {
        text = format!(": {} requested, {} issued", rate(asked.sum()), rate(issued));
    }
    if counts.rmw_reads > 0 {
        let reads = counted(counts.rmw_reads, ["read", "reads"]);
        text += &format!("; {reads} of 4 KiB for read-modify-write");
    }
    text
}
