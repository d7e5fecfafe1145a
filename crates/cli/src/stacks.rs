//! `nandscape stacks`: the built-in stacks as a table, and their TOML.

use crate::args::{StacksArgs, StacksCommand, TableFormat};
use crate::output::{Failure, comma_separated, pretty, print};
use crate::summary::bytes;
use crate::table::{lay_out, markdown};
use anyhow::anyhow;
use nandscape_lab::SECTOR_BYTES;
use nandscape_lab::stack::{SHIPPED, Stack, summary};
use serde_json::{Map, Value};

/// Lists the built-in stacks, or prints one.
pub(crate) fn stacks(args: &StacksArgs) -> Result<(), Failure> {
    match &args.command {
        None => print(&list(args.output_format)?),
        Some(StacksCommand::Show { name, resolved, set }) => show(name, *resolved, set),
    }
}

fn list(format: TableFormat) -> Result<String, Failure> {
    let row = |(name, text): &(&'static str, &'static str)| Row::new(name, summary(text));
    let rows: Vec<Row> = SHIPPED.iter().map(row).collect::<Result<_, _>>()?;
    match format {
        TableFormat::Normal => {
            let lines = lay_out(&columns(&rows), HEADERS.len());
            Ok(lines.iter().map(|line| format!("{}\n", line.trim())).collect())
        }
        TableFormat::Json => pretty(&rows.iter().map(|row| Value::Object(row.to_json())).collect()),
        TableFormat::Csv => {
            let header = KEYS.map(str::to_owned).to_vec();
            comma_separated(std::iter::once(header).chain(rows.iter().map(Row::values)))
        }
        TableFormat::Markdown => Ok(markdown(&columns(&rows), HEADERS.len())),
    }
}

/// Columns of the table for people, and for programs.
const HEADERS: [&str; 9] = [
    "name",
    "size",
    "usable",
    "channels x units",
    "FTL",
    "file system",
    "OP %",
    "preconditioning",
    "description",
];
const KEYS: [&str; 11] = [
    "name",
    "size_bytes",
    "usable_bytes",
    "channels",
    "units_per_channel",
    "ftl",
    "fs",
    "op_raw_percent",
    "op_usable_percent",
    "preconditioning",
    "summary",
];

/// A built-in stack.
struct Row {
    name: &'static str,
    size_bytes: u64,
    /// What the device holds, and its overprovisioning.
    usable_bytes: u64,
    op_raw_percent: f64,
    op_usable_percent: f64,
    channels: u64,
    units: u64,
    ftl: String,
    fs: Option<&'static str>,
    preconditioning: &'static str,
    summary: &'static str,
}

impl Row {
    fn new(name: &'static str, summary: &'static str) -> Result<Self, Failure> {
        let stack = Stack::load(name, &[] as &[&str]).map_err(Failure::run)?;
        let geometry = &stack.media.geometry;
        let size =
            stack.device_size().ok_or_else(|| Failure::run(anyhow!("defect: {name} cannot be")))?;
        let ftl = stack.resolved_keys().find(|(key, _)| key == "ftl.kind");
        Ok(Self {
            name,
            size_bytes: geometry.total_sectors() * SECTOR_BYTES,
            usable_bytes: size.live_sectors * SECTOR_BYTES,
            op_raw_percent: size.op_percent_of_raw(),
            op_usable_percent: size.op_percent_of_usable(),
            channels: geometry.groups.into(),
            units: geometry.units.into(),
            ftl: ftl.map_or_else(String::new, |(_, kind)| kind.trim_matches('"').to_owned()),
            fs: stack.fs.as_ref().map(|fs| fs.config.kind().name()),
            preconditioning: stack.preconditioning_label(),
            summary,
        })
    }

    fn cells(&self) -> [String; 9] {
        [
            self.name.to_owned(),
            bytes(self.size_bytes as f64),
            bytes(self.usable_bytes as f64),
            format!("{} x {}", self.channels, self.units),
            self.ftl.clone(),
            self.fs.unwrap_or("-").to_owned(),
            format!("{:.1}", self.op_usable_percent),
            self.preconditioning.to_owned(),
            self.summary.to_owned(),
        ]
    }

    fn to_json(&self) -> Map<String, Value> {
        let values: [Value; 11] = [
            self.name.into(),
            self.size_bytes.into(),
            self.usable_bytes.into(),
            self.channels.into(),
            self.units.into(),
            self.ftl.as_str().into(),
            self.fs.into(),
            self.op_raw_percent.into(),
            self.op_usable_percent.into(),
            self.preconditioning.into(),
            self.summary.into(),
        ];
        KEYS.iter().map(|key| (*key).to_owned()).zip(values).collect()
    }

    fn values(&self) -> Vec<String> {
        let text = |value: &Value| match value {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let json = self.to_json();
        KEYS.iter().map(|key| text(&json[*key])).collect()
    }
}

fn columns(rows: &[Row]) -> Vec<(String, Vec<String>)> {
    let cells: Vec<[String; 9]> = rows.iter().map(Row::cells).collect();
    let column = |at: usize| cells.iter().map(|row| row[at].clone()).collect();
    HEADERS.iter().enumerate().map(|(at, header)| ((*header).to_owned(), column(at))).collect()
}

fn show(name: &str, resolved: bool, set: &[String]) -> Result<(), Failure> {
    let stack = Stack::load(name, set).map_err(Failure::input)?;
    match nandscape_lab::stack::shipped(name) {
        Some(text) if !resolved && set.is_empty() => print(text),
        _ => print(&stack.toml),
    }
}
