//! Tables of text with a header, as JSON and as CSV.

use crate::output::{Failure, pretty};
use anyhow::Context;
use serde_json::{Map, Value};

/// A table: the names of its columns, and its rows.
pub(crate) struct Listing<const N: usize> {
    pub(crate) columns: [&'static str; N],
    pub(crate) rows: Vec<[String; N]>,
}

impl<const N: usize> Listing<N> {
    /// An object for each row; a cell without text is null.
    pub(crate) fn json(&self) -> Result<String, Failure> {
        let cell = |text: &String| match text.is_empty() {
            true => Value::Null,
            false => text.as_str().into(),
        };
        let object = |row: &[String; N]| -> Map<String, Value> {
            self.columns.iter().zip(row).map(|(name, text)| ((*name).into(), cell(text))).collect()
        };
        pretty(&self.rows.iter().map(object).collect())
    }

    /// As RFC 4180 has it.
    pub(crate) fn csv(&self) -> Result<String, Failure> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(self.columns).map_err(Failure::run)?;
        for row in &self.rows {
            writer.write_record(row).map_err(Failure::run)?;
        }
        let bytes = writer.into_inner().context("the table cannot be written");
        let text = bytes.and_then(|bytes| String::from_utf8(bytes).context("the table is no text"));
        text.map_err(Failure::Run)
    }
}
