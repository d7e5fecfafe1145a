//! What the FTL did: write amplification, garbage collection, flushes, failures of media.

use super::units::time;
use super::{Page, SECTORS};
use crate::paint::Tone;
use nandscape_lab::run::Outcome;
use nandscape_rt::Nanos;
use nandscape_rt::words::{counted, grouped};

impl Page {
    /// The amplification of all media writes, and the parts that add up to it.
    pub(super) fn amplification(&mut self, outcome: &Outcome) {
        let sectors = &outcome.ftl.sectors;
        let copies = counted(sectors.gc + sectors.stale, ["copy", "copies"]);
        let Some(media) = outcome.write_amplification().media else {
            if sectors.user + sectors.gc + sectors.stale > 0 {
                let user = counted(sectors.user, SECTORS);
                let least = grouped(outcome.amplification_min());
                self.gap();
                let text = format!(
                    "WAF n/a: {user} written by the host, fewer than the {least} of a line; {copies} by GC"
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
        if let Some(total) = outcome.total_amplification().filter(|_| outcome.fs.is_some()) {
            let fs = outcome.fs_amplification();
            let fs =
                fs.map_or_else(String::new, |fs| format!(", of which FS {fs:.3} x WAF {media:.3}"));
            let text =
                format!("total {total:.3}: bytes that media wrote per byte that jobs wrote{fs}");
            self.line("    ", &text);
        }
        if let Some(law) = &outcome.law {
            let text = format!(
                "theory ({}, uniform writes): WAF {:.3} with an effective OP of {:.1} %",
                law.name,
                law.waf,
                100.0 * law.spare
            );
            self.line("    ", &text);
        }
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

    /// How busy the parallel units were, and how many requests waited for them.
    pub(super) fn busy(&mut self, outcome: &Outcome) {
        let (busy, length) = (outcome.busy(), outcome.virtual_time);
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        let text = format!(
            "PUs busy {} ({} to {}); {:.1} requests in the device on average, at least one for {} of the time",
            percent(busy.mean),
            percent(busy.least),
            percent(busy.most),
            outcome.queue.mean(length),
            percent(outcome.queue.occupied_share(length))
        );
        self.gap();
        self.line("  ", &text);
    }

    pub(super) fn garbage(&mut self, outcome: &Outcome) {
        let (ftl, gc) = (&outcome.ftl, &outcome.ftl.gc);
        if ftl.erases == 0 {
            return;
        }
        let valid = outcome.victim_valid_ratio();
        let valid = valid
            .map_or_else(String::new, |valid| format!(", {:.1} % valid on average", valid * 100.0));
        let text = format!(
            "GC: {}{valid}; {}; P/E cycles {}-{}",
            counted(gc.victims, ["victim line", "victim lines"]),
            counted(ftl.erases, ["erase", "erases"]),
            outcome.wear.erases_min,
            outcome.wear.erases_max
        );
        self.gap();
        self.line("  ", &text);
    }

    pub(super) fn flushes(&mut self, outcome: &Outcome) {
        let flush = &outcome.ftl.flush;
        if flush.waited == 0 {
            return;
        }
        let share = |part_ns: u64| 100.0 * part_ns as f64 / flush.total_ns.max(1) as f64;
        let parts = [
            ("behind other I/O", flush.queue_ns),
            ("behind GC and erases", flush.gc_ns),
            ("padding", flush.padding_ns),
            ("program", flush.program_ns),
            ("cores and locks", flush.cpu_ns),
            ("writer thread", flush.writer_ns),
        ];
        let host = flush.cpu_ns + flush.writer_ns > 0;
        let parts = parts.into_iter().take(if host { 6 } else { 4 });
        let parts: Vec<String> =
            parts.map(|(name, ns)| format!("{:.1} % {name}", share(ns))).collect();
        let mean = time(Nanos(flush.total_ns / flush.waited));
        self.line("  ", &format!("Device flush, mean {mean}: {}", parts.join(", ")));
    }

    pub(super) fn failures(&mut self, outcome: &Outcome) {
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
}
