//! `nandscape state cache`: the preconditioned devices that runs share.

use crate::args::{StateCacheArgs, StateCacheCommand, TableFormat};
use crate::cache::{Entry, contents};
use crate::output::{Failure, comma_separated, pretty, print};
use crate::summary::{before, bytes};
use crate::table::{lay_out, markdown};
use anyhow::Context;
use nandscape_lab::SECTOR_BYTES;
use nandscape_lab::state::{Header, header};
use nandscape_rt::words::counted;
use serde_json::{Value, json};
use std::path::Path;

const HEADERS: [&str; 7] = ["state", "size", "last used", "device", "FTL", "seed", "contents"];
const KEYS: [&str; 7] = ["file", "bytes", "age_s", "device_bytes", "ftl", "seed", "contents"];

/// Lists, clears, or says where it is.
pub(crate) fn state_cache(args: &StateCacheArgs) -> Result<(), Failure> {
    let (folder, entries) = contents(args.state_dir.as_deref())?;
    match args.command {
        StateCacheCommand::List { output_format } => {
            print(&list(&folder, &entries, output_format)?)
        }
        StateCacheCommand::Clear => clear(&folder, &entries),
        StateCacheCommand::Path => print(&format!("{}\n", folder.display())),
    }
}

fn clear(folder: &Path, entries: &[Entry]) -> Result<(), Failure> {
    for entry in entries {
        let removed = std::fs::remove_file(&entry.path);
        removed.with_context(|| entry.path.display().to_string()).map_err(Failure::Run)?;
    }
    let states = counted(entries.len() as u64, ["state", "states"]);
    print(&format!("removed {states} ({}) from {}\n", total(entries), folder.display()))
}

fn total(entries: &[Entry]) -> String {
    bytes(entries.iter().map(|entry| entry.bytes).sum::<u64>() as f64)
}

fn list(folder: &Path, entries: &[Entry], format: TableFormat) -> Result<String, Failure> {
    let rows: Vec<Row> = entries.iter().map(Row::new).collect();
    match format {
        TableFormat::Normal => {
            let lines = lay_out(&columns(&rows), HEADERS.len());
            let table: String = lines.iter().map(|line| format!("{}\n", line.trim())).collect();
            let states = counted(entries.len() as u64, ["state", "states"]);
            let table = if rows.is_empty() { String::new() } else { table + "\n" };
            Ok(format!("{table}{states}, {} in {}\n", total(entries), folder.display()))
        }
        TableFormat::Markdown => Ok(markdown(&columns(&rows), HEADERS.len())),
        TableFormat::Json => pretty(&rows.iter().map(|row| row.json.clone()).collect()),
        TableFormat::Csv => {
            let text =
                |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let row = |row: &Row| KEYS.iter().map(|key| text(&row.json[*key])).collect();
            let header = KEYS.map(str::to_owned).to_vec();
            comma_separated(std::iter::once(header).chain(rows.iter().map(row)))
        }
    }
}

fn columns(rows: &[Row]) -> Vec<(String, Vec<String>)> {
    let column = |at: usize| rows.iter().map(|row| row.cells[at].clone()).collect();
    HEADERS.iter().enumerate().map(|(at, header)| ((*header).to_owned(), column(at))).collect()
}

/// A state of the cache, for people and for programs.
struct Row {
    cells: [String; 7],
    json: Value,
}

impl Row {
    fn new(entry: &Entry) -> Self {
        let age_s = entry.used.elapsed().map_or(0, |age| age.as_secs());
        let file = entry.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let head = header(&entry.path).map_err(|error| error.to_string());
        let sectors = head.as_ref().map_or(0, |head| head.geometry.total_sectors());
        let device_bytes = sectors * SECTOR_BYTES;
        let ftl = head.as_ref().map_or_else(|_| "-".to_owned(), ftl);
        let seed = head.as_ref().map_or(0, |head| head.seed);
        let contents = head.map_or_else(|error| error, |head| contents_of(&head));
        Self {
            cells: [
                file.chars().take(12).collect(),
                bytes(entry.bytes as f64),
                age(age_s),
                bytes(device_bytes as f64),
                ftl.clone(),
                seed.to_string(),
                contents.clone(),
            ],
            json: json!({
                "file": file,
                "bytes": entry.bytes,
                "age_s": age_s,
                "device_bytes": device_bytes,
                "ftl": ftl,
                "seed": seed,
                "contents": contents,
            }),
        }
    }
}

fn ftl(head: &Header) -> String {
    let mut lines = head.text.lines();
    let kind = lines.find_map(|line| line.strip_prefix("ftl.kind = "));
    kind.unwrap_or("-").trim_matches('"').to_owned()
}

fn contents_of(head: &Header) -> String {
    before(&head.preconditioned, head.origin(), head.text.contains("precondition.settled"))
}

/// How long ago: `3 h`.
fn age(seconds: u64) -> String {
    let units = [("d", 86_400), ("h", 3_600), ("min", 60)];
    let unit = units.into_iter().find(|(_, length)| seconds >= *length);
    unit.map_or_else(
        || format!("{seconds} s"),
        |(unit, length)| format!("{} {unit}", seconds / length),
    ) + " ago"
}

#[cfg(test)]
mod tests {
    use super::age;

    #[test]
    fn ages_have_one_unit() {
        assert_eq!(
            [5, 90, 7_300, 200_000].map(age),
            ["5 s ago", "1 min ago", "2 h ago", "2 d ago"]
        );
    }
}
