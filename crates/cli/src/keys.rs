//! `nandscape keys`: what the keys of stack files take and mean.

use crate::args::KeysArgs;
use crate::listing::Listing;
use crate::output::Failure;
use crate::paint::{ColorChoice, Paint, Tone};
use anyhow::anyhow;
use nandscape_lab::stack::keys::{Default, Entry, find, plain};

/// Prints the keys that the text selects.
pub(crate) fn keys(args: &KeysArgs, color: ColorChoice) -> Result<(), Failure> {
    let entries = find(&args.text).map_err(|why| Failure::input(anyhow!("{why}")))?;
    let paint = Paint::new(color, false);
    let described = || entries.iter().map(|entry| described(entry, paint)).collect();
    listing(&entries).print(args.output_format, described)
}

fn described(entry: &Entry, paint: Paint) -> String {
    let name = paint.paint(Tone::Heading, &entry.name());
    let when = entry.group.when.to_string();
    let when = if when.is_empty() { when } else { format!("   ({when})") };
    let values = paint.wrapped("  values   ", &plain(&entry.key.values.to_string()));
    let default = paint.wrapped("  default  ", &default(entry));
    let meaning = paint.wrapped("  ", &plain(entry.key.meaning));
    format!("{name}{when}\n{meaning}\n{values}\n{default}\n\n")
}

/// What holds where the key is not given.
fn default(entry: &Entry) -> String {
    match entry.key.default {
        Default::Is(value) => value.to_owned(),
        Default::By(rule) => plain(rule),
        Default::Nothing => "none".to_owned(),
        Default::Required => "required".to_owned(),
    }
}

fn listing(entries: &[Entry]) -> Listing<6> {
    let row = |entry: &Entry| {
        [
            entry.name(),
            entry.group.when.to_string(),
            entry.key.values.kind().to_owned(),
            plain(&entry.key.values.to_string()),
            default(entry),
            plain(entry.key.meaning),
        ]
    };
    Listing {
        columns: ["key", "when", "type", "values", "default", "meaning"],
        rows: entries.iter().map(row).collect(),
    }
}
