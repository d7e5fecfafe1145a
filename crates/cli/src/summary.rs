//! A run's result for people: what they came for first, then what they need to believe it, then the
//! command that makes it again.

use crate::paint::{Paint, Tone};
use nandscape_fs::cache::Lookups;
use nandscape_lab::run::{IoPath, Outcome, VERSION, WINDOW_ROUNDS, ZoneReport};
use nandscape_lab::state::{Origin, Preconditioned};
use nandscape_lab::workload::engine::{JobResult, Latencies, ZoneCounts};
use nandscape_lab::workload::fio::Direction;
use nandscape_lab::workload::wml::engine::{Report, summary_line};
use nandscape_rt::Nanos;
use nandscape_rt::words::{counted, grouped};

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
        None => outcome.workload.jobs.iter().for_each(|job| page.job(job, outcome.io_path(job))),
    }
    page.all_jobs(outcome);
    page.trace(outcome);
    page.steady(outcome);
    page.files(outcome);
    page.amplification(outcome);
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

    fn job(&mut self, job: &JobResult, path: IoPath) {
        let clones = if job.jobs > 1 { format!(" ({} jobs)", job.jobs) } else { String::new() };
        self.gap();
        self.line("  ", &format!("{}{clones}, {}, {path}", job.name, time(job.runtime)));
        for direction in Direction::ALL {
            let result = job.direction(direction);
            if result.ios > 0 {
                let passed = job.runtime > Nanos::ZERO;
                let iops = passed.then(|| job.iops(direction));
                let rate = passed.then(|| job.bytes_per_s(direction));
                self.rates(direction, iops, rate, result.bytes, job.zones.as_ref());
                self.line("           ", &latencies(&result.latency));
            }
        }
        let changed = |zones: &&ZoneCounts| zones.resets + zones.begun + zones.filled > 0;
        job.zones.iter().filter(changed).for_each(|zones| self.zones(zones));
        if job.sync.count() > 0 {
            self.line("    fsync  ", &format!("{} of them", grouped(job.sync.count())));
            self.line("           ", &latencies(&job.sync));
        }
        if let Some(depth) = job.latency_depth {
            self.line("    depth  ", &format!("{depth} kept latencies within latency_target"));
        }
        if job.unaligned.iter().any(|ios| *ios > 0) {
            let [reads, writes, _] = job.unaligned.map(grouped);
            let text = format!("{reads} reads and {writes} writes cover 4 KiB sectors in part");
            self.line("    sector ", &text);
        }
        if job.verified_sectors > 0 {
            let sectors = counted(job.verified_sectors, SECTORS);
            self.line("    verify ", &format!("{sectors} read back and compared"));
        }
        for failure in &job.failures {
            let failed = self.paint.paint(Tone::Failure, "FAILED");
            self.line("    ", &format!("{failed} {failure}"));
        }
    }

    /// Rates of a direction, and what it transferred in all.
    fn rates(
        &mut self,
        direction: Direction,
        iops: Option<f64>,
        rate: Option<f64>,
        all: u64,
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
        self.line(&first, &format!("{rates}, {} total{resets}", bytes(all as f64)));
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
        if outcome.flowops.is_some() || outcome.workload.jobs.len() < 2 {
            return;
        }
        let totals = outcome.workload.totals();
        self.gap();
        self.line("  ", &format!("all jobs, {}", time(totals.length)));
        for direction in Direction::ALL.into_iter().filter(|d| totals.ios[*d as usize] > 0) {
            let (iops, rate) = (totals.iops(direction), totals.bytes_per_s(direction));
            let zones = totals.zones.as_ref();
            self.rates(direction, iops, rate, totals.bytes[direction as usize], zones);
        }
        totals.zones.iter().for_each(|zones| self.zones(zones));
    }

    /// What flowops did, as Filebench shows it.
    fn flowops(&mut self, report: &Report) {
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

    fn trace(&mut self, outcome: &Outcome) {
        let Some(counts) = &outcome.trace else { return };
        let fit = &counts.fit;
        let requests = counted(counts.read.requests, ["request", "requests"]);
        let mut text = format!("{requests} in the trace");
        if fit.widened > 0 {
            let added = bytes(fit.widened_bytes as f64);
            text += &format!("; {} widened to whole sectors, {added} total", grouped(fit.widened));
        }
        if fit.narrowed + fit.dropped > 0 {
            let (narrowed, dropped) = (grouped(fit.narrowed), grouped(fit.dropped));
            text += &format!(
                "; {narrowed} trims narrowed to whole sectors, {dropped} without one left out"
            );
        }
        if counts.late > 0 {
            text += &format!("; at most {} late", time(counts.late_max));
        }
        self.line("    ", &text);
    }

    /// Whether the figures are those of a steady state, and over what.
    fn steady(&mut self, outcome: &Outcome) {
        let reason = outcome.not_steady.as_deref().unwrap_or("steady state");
        let rounds = outcome.rounds.map_or_else(String::new, |run| {
            let window = WINDOW_ROUNDS.min(run.rounds);
            let (round, rounds) = (run.asked.round, run.rounds);
            format!("; figures are of the last {window} of {rounds} rounds of {round}")
        });
        self.gap();
        self.line("  ", &format!("{reason}{rounds}"));
    }

    fn files(&mut self, outcome: &Outcome) {
        let Some(counts) = &outcome.fs else { return };
        let written = outcome.fs_amplification().map_or_else(
            || "nothing written by jobs".to_owned(),
            |factor| format!("{factor:.3} sectors on the device for a sector that jobs wrote"),
        );
        let mut phrases = counts.fs.detail.phrases().into_iter();
        let first = phrases.next().map_or_else(String::new, |phrase| phrase + "; ");
        let mut text = format!("{written}; {first}{} cached", sector_bytes(counts.cached_pages));
        let Lookups { hits, misses } = counts.fs.lookups;
        if hits + misses > 0 {
            let share = 100.0 * hits as f64 / (hits + misses) as f64;
            text += &format!("; {share:.1} % of {} pages read were cached", grouped(hits + misses));
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

    /// The amplification of all media writes, and the parts that add up to it.
    fn amplification(&mut self, outcome: &Outcome) {
        let sectors = &outcome.ftl.sectors;
        let copies = counted(sectors.gc + sectors.stale, ["copy", "copies"]);
        let Some(media) = outcome.write_amplification().media else {
            if sectors.user + sectors.gc + sectors.stale > 0 {
                let user = counted(sectors.user, SECTORS);
                let least = grouped(outcome.amplification_min());
                self.gap();
                let text = format!(
                    "WAF n/a: {user} written for users, fewer than the {least} of a line; {copies} of garbage \
                     collection"
                );
                self.line("  ", &text);
            }
            return;
        };
        let named = |name: &str| match name {
            "gc" => "GC",
            "stale" => "stale GC copies",
            "pad" => "padding",
            "meta" => "metadata",
            "map" => "translation",
            _ => "user",
        };
        let shown =
            |(name, part): &(&str, f64)| *part >= 0.0005 || !["stale", "map"].contains(name);
        let parts = outcome.amplification_parts().into_iter().filter(shown);
        let parts: Vec<_> =
            parts.map(|(name, part)| format!("{part:.3} {}", named(name))).collect();
        let waf = self.paint.paint(Tone::Figure, &format!("WAF {media:.3}"));
        self.gap();
        self.line("  ", &format!("{waf} = {}", parts.join(" + ")));
        self.bar(&[
            (Tone::User, "user", sectors.user),
            (Tone::Gc, "GC", sectors.gc),
            (Tone::Gc, "stale", sectors.stale),
            (Tone::Pad, "padding", sectors.pad.saturating_sub(sectors.stale)),
            (Tone::Meta, "metadata", sectors.line_meta + sectors.trim),
            (Tone::Map, "translation", sectors.map),
        ]);
    }

    /// What media was written for: a bar, and a legend with shares.
    fn bar(&mut self, parts: &[(Tone, &str, u64)]) {
        let all = parts.iter().map(|(_, _, sectors)| *sectors).sum::<u64>().max(1);
        let shown = || parts.iter().filter(|(_, _, sectors)| *sectors > 0);
        let bar = self.paint.bar(self.paint.width().saturating_sub(8).max(10), parts);
        self.text.push_str(&format!("    [{bar}]\n"));
        let legend = shown().map(|(tone, name, sectors)| {
            let share = 100.0 * *sectors as f64 / all as f64;
            format!("{} {share:.1} %", self.paint.paint(*tone, name))
        });
        let legend = legend.collect::<Vec<_>>().join(", ");
        self.line("     ", &legend);
    }

    fn garbage(&mut self, outcome: &Outcome) {
        let (ftl, gc) = (&outcome.ftl, &outcome.ftl.gc);
        if ftl.erases == 0 {
            return;
        }
        let valid = outcome.victim_valid_ratio();
        let valid = valid
            .map_or_else(String::new, |valid| format!(", {:.1} % valid on average", valid * 100.0));
        let text = format!(
            "{} collected{valid}; {} erased; each chunk erased {} to {} times in its life",
            counted(gc.victims, ["line", "lines"]),
            counted(ftl.erases, ["chunk", "chunks"]),
            outcome.wear.erases_min,
            outcome.wear.erases_max
        );
        self.gap();
        self.line("  ", &text);
    }

    fn flushes(&mut self, outcome: &Outcome) {
        let flush = &outcome.ftl.flush;
        if flush.waited == 0 {
            return;
        }
        let share = |part_ns: u64| 100.0 * part_ns as f64 / flush.total_ns.max(1) as f64;
        let parts = [
            ("waiting for user data", flush.queue_ns),
            ("waiting for copies", flush.gc_ns),
            ("padding", flush.padding_ns),
            ("the rest of its program", flush.program_ns),
            ("cores and locks", flush.cpu_ns),
            ("the writer thread", flush.writer_ns),
        ];
        let host = flush.cpu_ns + flush.writer_ns > 0;
        let parts = parts.into_iter().take(if host { 6 } else { 4 });
        let parts: Vec<String> =
            parts.map(|(name, ns)| format!("{:.1} % {name}", share(ns))).collect();
        let mean = time(Nanos(flush.total_ns / flush.waited));
        self.line("  ", &format!("a flush took {mean}: {}", parts.join(", ")));
    }

    fn failures(&mut self, outcome: &Outcome) {
        let (errors, offline) = (&outcome.ftl.media_errors, outcome.wear.offline);
        if errors.program_failures
            + errors.erase_failures
            + errors.uncorrectable
            + u64::from(offline)
            == 0
        {
            return;
        }
        let text = format!(
            "media failures: {} programs, {} erases, {} sectors that could not be read; {offline} \
             chunks offline",
            grouped(errors.program_failures),
            grouped(errors.erase_failures),
            grouped(errors.uncorrectable)
        );
        self.line("  ", &text);
    }

    fn device(&mut self, outcome: &Outcome) {
        let (stack, size) = (&outcome.stack, &outcome.size);
        let geometry = &stack.media.geometry;
        let shape = format!(
            "{} groups x {} units x {} chunks x {} sectors, {} lines; {}",
            geometry.groups,
            geometry.units,
            geometry.chunks,
            geometry.sectors,
            size.erase_units,
            stack.media.timing.name
        );
        let sizes = format!(
            "{} on media, {} for the host: OP {:.1} % of raw, {:.1} % of usable",
            sector_bytes(size.physical_sectors),
            sector_bytes(size.logical_sectors),
            size.op_percent_of_raw(),
            size.op_percent_of_usable()
        );
        let settled = !stack.timing().nand.is_instant();
        let mut before = before(&outcome.preconditioned, outcome.origin, settled);
        if outcome.prefilled > 0 {
            let footprint = sector_bytes(outcome.prefilled);
            before +=
                &format!("; then {footprint} that the trace reads or writes, in order, untimed");
        }
        let memory = format!(
            "{} for the FTL ({} of it the map), {} for the virtual media",
            bytes(outcome.memory.total() as f64),
            bytes(outcome.memory.part("map") as f64),
            bytes(outcome.media_bytes as f64)
        );
        self.gap();
        let zones = outcome.zones.as_ref().map(zones);
        let lines = [("device", Some(shape)), ("", Some(sizes)), ("zones", zones)];
        for (first, text) in
            lines.into_iter().chain([("preconditioning", Some(before)), ("memory", Some(memory))])
        {
            text.into_iter().for_each(|text| self.line(&format!("  {first:<17}"), &text));
        }
    }

    fn foot(&mut self, outcome: &Outcome, commit: &str, again: &str) {
        self.gap();
        // Why it is not steady stands above.
        let is_other = |warning: &&String| outcome.not_steady.as_ref() != Some(*warning);
        for warning in outcome.warnings.iter().filter(is_other) {
            let word = self.paint.paint(Tone::Warning, "warning:");
            self.line("  ", &format!("{word} {warning}"));
        }
        let program = format!(
            "nandscape {VERSION} ({commit}): {:.2} s of virtual time in {:.2} s, after {:.2} s of preconditioning",
            outcome.virtual_time.as_secs_f64(),
            outcome.wall.measured_s,
            outcome.wall.precondition_s
        );
        self.line("  ", &self.paint.paint(Tone::Faint, &program));
        // In one line at any width, to be copied.
        self.text.push_str(&format!("  again: {again}\n"));
    }
}

/// The zones of a device at the end.
fn zones(report: &ZoneReport) -> String {
    let states = report.states().map(|(name, count)| format!("{count} {name}"));
    let capacity = match report.capacity() {
        sectors if sectors == report.zone_sectors => String::new(),
        sectors => format!(", of which {} can be written", sector_bytes(sectors)),
    };
    let random = match report.random_sectors {
        0 => String::new(),
        sectors => format!(", behind {} that are written at random", sector_bytes(sectors)),
    };
    format!(
        "{} of {}{capacity}{random}: {}",
        report.zones.len(),
        sector_bytes(report.zone_sectors),
        states.collect::<Vec<_>>().join(", ")
    )
}

/// What a device held before anything was measured on it, and how that came there.
pub(crate) fn before(done: &Preconditioned, origin: Option<Origin>, settled: bool) -> String {
    let filled = sector_bytes(done.fill_sectors);
    let steady = match done.steady {
        None => "",
        Some(true) => ", until write amplification was steady",
        Some(false) => ", without write amplification becoming steady",
    };
    let over = sector_bytes(done.overwrite_sectors);
    match origin {
        Some(Origin::Image) => format!("{filled} of an image"),
        Some(Origin::Run) => format!("{filled}, as a run left it"),
        None if *done == Preconditioned::default() => "nothing: the device was fresh".to_owned(),
        None => {
            let settles = settled && done.overwrite_sectors > 0;
            let settling = if settles { " but for settling at the end" } else { "" };
            format!(
                "{filled} written in order, {over} overwritten at random, untimed{settling}{steady}"
            )
        }
    }
}

/// Latencies, or other times, in a line.
pub(crate) fn latencies(latencies: &Latencies) -> String {
    let rank = latencies.ranks();
    let at = |share| time(rank(share));
    format!(
        "mean {}, p50 {}, p99 {}, p99.9 {}, max {}",
        time(Nanos(latencies.mean_ns() as u64)),
        at(0.5),
        at(0.99),
        at(0.999),
        time(latencies.max())
    )
}

/// To three digits, in the unit that fits: `1.90 ms`.
pub(crate) fn time(time: Nanos) -> String {
    let units = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)];
    let Some((unit, ns)) = units.into_iter().find(|(_, ns)| time.0 >= *ns) else {
        return format!("{} ns", time.0);
    };
    let number = time.0 as f64 / ns as f64;
    let decimals = if number >= 100.0 { 0 } else { 1 + usize::from(number < 10.0) };
    format!("{number:.decimals$} {unit}")
}

fn sector_bytes(sectors: u64) -> String {
    bytes(sectors as f64 * nandscape_lab::SECTOR_BYTES as f64)
}

/// In the largest binary unit: `1.50 GiB`.
pub(crate) fn bytes(bytes: f64) -> String {
    let units = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let of = |shift: u32| bytes / (1u64 << shift) as f64;
    match units.into_iter().find(|(_, shift)| of(*shift) >= 1.0) {
        Some((unit, shift)) => format!("{:.2} {unit}", of(shift)),
        None => format!("{bytes:.0} B"),
    }
}

/// As fio abbreviates: `12.3k`.
pub(crate) fn count(number: f64) -> String {
    match number {
        n if n >= 1e6 => format!("{:.2}M", n / 1e6),
        n if n >= 1e3 => format!("{:.1}k", n / 1e3),
        n => format!("{n:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers are shown in units that people read.
    #[test]
    fn numbers_are_readable() {
        assert_eq!(count(12_345.0), "12.3k");
        assert_eq!(count(2_345_678.0), "2.35M");
        assert_eq!(time(Nanos(999)), "999 ns");
        assert_eq!(time(Nanos(1_900_000)), "1.90 ms");
        assert_eq!(time(Nanos::from_secs(60)), "60.0 s");
        assert_eq!(time(Nanos(123_456)), "123 us");
        assert_eq!(bytes(512.0), "512 B");
        assert_eq!(bytes((3u64 << 29) as f64), "1.50 GiB");
    }
}
