//! `nandscape metrics`: what the numbers of a result are, and their paths.

use crate::args::MetricsArgs;
use crate::listing::Listing;
use crate::output::Failure;
use crate::paint::{ColorChoice, Paint, Tone};
use anyhow::anyhow;
use nandscape_lab::stack::keys::plain;
use nandscape_report::metrics::{Entry, find};

/// Prints the metrics that the text selects.
pub(crate) fn metrics(args: &MetricsArgs, color: ColorChoice) -> Result<(), Failure> {
    let entries = find(&args.text).map_err(|why| Failure::input(anyhow!("{why}")))?;
    let paint = Paint::new(color, false);
    let described = || entries.iter().map(|entry| described(entry, paint)).collect();
    listing(&entries).print(args.output_format, described)
}

fn described(entry: &Entry, paint: Paint) -> String {
    let path = paint.paint(Tone::Heading, &entry.path());
    let meaning = paint.wrapped("  ", &plain(entry.metric.meaning));
    let present = paint.wrapped("  present  ", &plain(entry.group.when));
    format!("{path}   ({})\n{meaning}\n{present}\n\n", entry.metric.unit)
}

fn listing(entries: &[Entry]) -> Listing<4> {
    let row = |entry: &Entry| {
        [
            entry.path(),
            entry.metric.unit.to_owned(),
            plain(entry.metric.meaning),
            plain(entry.group.when),
        ]
    };
    Listing {
        columns: ["metric", "unit", "meaning", "present"],
        rows: entries.iter().map(row).collect(),
    }
}
