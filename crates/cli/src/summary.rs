//! A run's result for people: what they came for first, then what they need to believe it, then the
//! command that makes it again.

use nandscape_lab::run::{Outcome, VERSION, WINDOW_ROUNDS};
use nandscape_lab::workload::engine::{JobResult, Latencies};
use nandscape_lab::workload::fio::Direction;
use nandscape_rt::Nanos;
use std::fmt::Write;

/// The summary of `outcome`; `again` is the command that makes it again.
pub(crate) fn summary(outcome: &Outcome, job_name: &str, commit: &str, again: &str) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_summary(&mut text, outcome, job_name, commit, again);
    text
}

fn write_summary(
    out: &mut String,
    outcome: &Outcome,
    job_name: &str,
    commit: &str,
    again: &str,
) -> std::fmt::Result {
    let stack = &outcome.stack;
    writeln!(out, "{job_name} on {}, seed {}", stack.name, outcome.seed)?;
    for job in &outcome.workload.jobs {
        write_job(out, job)?;
    }
    write_trace(out, outcome)?;
    write_rounds(out, outcome)?;
    write_amplification(out, outcome)?;
    write_garbage(out, outcome)?;
    write_flushes(out, outcome)?;
    write_failures(out, outcome)?;
    write_device(out, outcome)?;
    writeln!(out)?;
    for warning in &outcome.warnings {
        writeln!(out, "  warning: {warning}")?;
    }
    writeln!(
        out,
        "  nandscape {VERSION} ({commit}): {:.2} s of virtual time in {:.2} s, {:.2} s of \
         preconditioning before",
        outcome.virtual_time.as_secs_f64(),
        outcome.wall.measured_s,
        outcome.wall.precondition_s
    )?;
    writeln!(out, "  again: {again}")
}

fn write_job(out: &mut String, job: &JobResult) -> std::fmt::Result {
    let clones = if job.jobs > 1 { format!(" ({} jobs)", job.jobs) } else { String::new() };
    writeln!(out, "\n  {}{clones}, {}", job.name, job.runtime)?;
    for direction in Direction::ALL {
        let result = job.direction(direction);
        if result.ios == 0 {
            continue;
        }
        writeln!(
            out,
            "    {:<6} {} IOPS, {}/s, {} in all",
            direction.name(),
            count(job.iops(direction)),
            bytes(job.bytes_per_s(direction)),
            bytes(result.bytes as f64)
        )?;
        writeln!(out, "           {}", latencies(&result.latency))?;
    }
    if job.sync.count() > 0 {
        writeln!(out, "    fsync  {} of them", job.sync.count())?;
        writeln!(out, "           {}", latencies(&job.sync))?;
    }
    if job.verified_sectors > 0 {
        writeln!(out, "    verify {} sectors read back and compared", job.verified_sectors)?;
    }
    job.failures.iter().try_for_each(|failure| writeln!(out, "    FAILED {failure}"))
}

fn write_trace(out: &mut String, outcome: &Outcome) -> std::fmt::Result {
    let Some(counts) = &outcome.trace else { return Ok(()) };
    let fit = &counts.fit;
    write!(out, "    {} requests in the trace", grouped(counts.read.requests))?;
    if fit.widened > 0 {
        let added = bytes(fit.widened_bytes as f64);
        write!(out, "; {} widened to whole sectors, {added} in all", grouped(fit.widened))?;
    }
    if fit.narrowed + fit.dropped > 0 {
        let (narrowed, dropped) = (grouped(fit.narrowed), grouped(fit.dropped));
        write!(
            out,
            "; {narrowed} trims narrowed to whole sectors, {dropped} without one left out"
        )?;
    }
    if counts.late > 0 {
        write!(out, "; at most {} late", counts.late_max)?;
    }
    writeln!(out)
}

fn write_rounds(out: &mut String, outcome: &Outcome) -> std::fmt::Result {
    let Some(run) = outcome.rounds else { return Ok(()) };
    let end = if outcome.steady { "steady" } else { "not steady" };
    let window = WINDOW_ROUNDS.min(run.rounds);
    let (round, rounds) = (run.asked.round, run.rounds);
    writeln!(out, "    {end}: the last {window} of {rounds} rounds of {round}")
}

/// Latencies, or other times, in a line.
pub(crate) fn latencies(latencies: &Latencies) -> String {
    let histogram = latencies.histogram();
    let at = |quantile| Nanos(histogram.value_at_quantile(quantile));
    format!(
        "mean {}, p50 {}, p99 {}, p99.9 {}, max {}",
        Nanos(latencies.mean_ns() as u64),
        at(0.5),
        at(0.99),
        at(0.999),
        latencies.max()
    )
}

fn write_amplification(out: &mut String, outcome: &Outcome) -> std::fmt::Result {
    let waf = outcome.write_amplification();
    let (Some(gc), Some(gc_pad), Some(media)) = (waf.gc, waf.gc_pad, waf.media) else {
        return Ok(());
    };
    let sectors = &outcome.ftl.sectors;
    writeln!(out, "\n  write amplification, in media sectors a user sector")?;
    writeln!(out, "    {gc:>6.3}  garbage collection: {} copies", grouped(sectors.gc))?;
    writeln!(out, "    {gc_pad:>6.3}  and padding: {} sectors", grouped(sectors.pad))?;
    let rest = sectors.line_meta + sectors.map + sectors.trim;
    writeln!(out, "    {media:>6.3}  and line metadata: {} sectors", grouped(rest))
}

fn write_garbage(out: &mut String, outcome: &Outcome) -> std::fmt::Result {
    let (ftl, gc) = (&outcome.ftl, &outcome.ftl.gc);
    if ftl.erases == 0 {
        return Ok(());
    }
    writeln!(
        out,
        "\n  {} lines collected, {:.1} % valid on average; {} chunks erased; each chunk erased {} \
         to {} times in its life",
        grouped(gc.victims),
        outcome.victim_valid_ratio() * 100.0,
        grouped(ftl.erases),
        outcome.wear.erases_min,
        outcome.wear.erases_max
    )
}

fn write_flushes(out: &mut String, outcome: &Outcome) -> std::fmt::Result {
    let flush = &outcome.ftl.flush;
    if flush.waited == 0 {
        return Ok(());
    }
    let share = |part_ns: u64| 100.0 * part_ns as f64 / flush.total_ns.max(1) as f64;
    writeln!(
        out,
        "  a flush waited {}: {:.0} % behind user data, {:.0} % behind copies, {:.0} % for padding, \
         {:.0} % for its program",
        Nanos(flush.total_ns / flush.waited),
        share(flush.queue_ns),
        share(flush.gc_ns),
        share(flush.padding_ns),
        share(flush.program_ns)
    )
}

fn write_failures(out: &mut String, outcome: &Outcome) -> std::fmt::Result {
    let (ftl, offline) = (&outcome.ftl, outcome.wear.offline);
    if ftl.program_failures + ftl.erase_failures + ftl.uncorrectable + u64::from(offline) == 0 {
        return Ok(());
    }
    writeln!(
        out,
        "  media failures: {} programs, {} erases, {} sectors that could not be read; {offline} chunks \
         offline",
        grouped(ftl.program_failures),
        grouped(ftl.erase_failures),
        grouped(ftl.uncorrectable)
    )
}

fn write_device(out: &mut String, outcome: &Outcome) -> std::fmt::Result {
    let (stack, size) = (&outcome.stack, &outcome.size);
    let geometry = &stack.media.geometry;
    writeln!(
        out,
        "\n  device  {} groups x {} units x {} chunks x {} sectors, {} lines; {}",
        geometry.groups,
        geometry.units,
        geometry.chunks,
        geometry.sectors,
        size.lines,
        stack.media.timing.name
    )?;
    writeln!(
        out,
        "          {} on media, {} for the host",
        sector_bytes(size.physical_sectors),
        sector_bytes(size.logical_sectors)
    )?;
    let written = &outcome.preconditioned;
    writeln!(
        out,
        "  before  {} written in order, {} overwritten at random, untimed",
        sector_bytes(written.fill_sectors),
        sector_bytes(written.overwrite_sectors)
    )?;
    writeln!(
        out,
        "  memory  {} for the FTL ({} of it the map), {} for the virtual media",
        bytes(outcome.memory.total() as f64),
        bytes(outcome.memory.map_bytes as f64),
        bytes(outcome.media_bytes as f64)
    )
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

/// With commas: `1,234,567`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .filter_map(|group| std::str::from_utf8(group).ok())
        .collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers are shown in units that people read.
    #[test]
    fn numbers_are_readable() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(count(12_345.0), "12.3k");
        assert_eq!(count(2_345_678.0), "2.35M");
        assert_eq!(bytes(512.0), "512 B");
        assert_eq!(bytes((3u64 << 29) as f64), "1.50 GiB");
    }
}
