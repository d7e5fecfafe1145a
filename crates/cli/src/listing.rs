//! Tables of text with a header: for people, as JSON and as CSV.

use crate::args::ListFormat;
use crate::output::{Failure, comma_separated, pretty, print};
use serde_json::{Map, Value};

/// A table: the names of its columns, and its rows.
pub(crate) struct Listing<const N: usize> {
    pub(crate) columns: [&'static str; N],
    pub(crate) rows: Vec<[String; N]>,
}

impl<const N: usize> Listing<N> {
    /// Prints it in the form that is wanted; `described` is the one for people.
    pub(crate) fn print(
        &self,
        format: ListFormat,
        described: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        let text = match format {
            ListFormat::Normal => described(),
            ListFormat::Json => self.json()?,
            ListFormat::Csv => self.csv()?,
        };
        print(&text)
    }

    /// An object for each row; a cell without text is null.
    fn json(&self) -> Result<String, Failure> {
        let cell = |text: &String| match text.is_empty() {
            true => Value::Null,
            false => text.as_str().into(),
        };
        let object = |row: &[String; N]| -> Map<String, Value> {
            self.columns.iter().zip(row).map(|(name, text)| ((*name).into(), cell(text))).collect()
        };
        pretty(&self.rows.iter().map(object).collect())
    }

    fn csv(&self) -> Result<String, Failure> {
        let header = self.columns.map(str::to_owned).to_vec();
        comma_separated(std::iter::once(header).chain(self.rows.iter().map(|row| row.to_vec())))
    }
}
