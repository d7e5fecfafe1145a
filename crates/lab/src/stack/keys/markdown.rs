//! Tables of keys as Markdown, and their text without it.

use super::{Default, Group, Key, Values};
use nandscape_rt::words::grouped;
use std::fmt::Write;

/// The keys of these groups as a table.
#[must_use]
pub fn table(groups: &[&Group]) -> String {
    let mut text = "| Key | Values | Default | Meaning |\n|---|---|---|---|\n".to_owned();
    for key in groups.iter().flat_map(|group| group.keys) {
        let Key { name, values, default, meaning } = key;
        _ = writeln!(text, "| `{name}` | {values} | {} | {meaning} |", default.markdown());
    }
    text
}

/// Markdown as plain text: links without their targets, code without quotes.
#[must_use]
pub fn plain(markdown: &str) -> String {
    let mut text = String::new();
    let mut rest = markdown;
    while let Some((before, after)) = rest.split_once("](") {
        let (head, link) = before.rsplit_once('[').unwrap_or((before, ""));
        text.push_str(head);
        text.push_str(link);
        rest = after.split_once(')').map_or("", |(_, rest)| rest);
    }
    text.push_str(rest);
    text.replace(['`', '*'], "")
}

impl Default {
    /// As a cell of a table.
    fn markdown(&self) -> String {
        match self {
            Self::Is(value) => format!("`{value}`"),
            Self::By(rule) => (*rule).to_owned(),
            Self::Nothing => "none".to_owned(),
            Self::Required => "required".to_owned(),
        }
    }
}

impl std::fmt::Display for Values {
    /// As a cell of a table.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let join = |words: &[&str]| {
            words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
        };
        match *self {
            Self::Words(words) => f.write_str(&join(words)),
            Self::Preset(words) => write!(f, "{}, or a table", join(words)),
            Self::Bool => f.write_str("`true`, `false`"),
            Self::Range(first, last) => write!(f, "{} to {}", grouped(first), grouped(last)),
            Self::Text(rule) | Self::List(rule) => f.write_str(rule),
            Self::Number("") | Self::Size("") | Self::Time("") => f.write_str(self.kind()),
            Self::Number(rule) | Self::Size(rule) | Self::Time(rule) => {
                write!(f, "{}, {rule}", self.kind())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plain text keeps what is read and drops what is not.
    #[test]
    fn links_and_code_are_plain() {
        assert_eq!(plain("a `b` of [c d](x.md#y), [`e`](#f)."), "a b of c d, e.");
        assert_eq!(plain("`[\"per-core\"]` or none"), "[\"per-core\"] or none");
    }
}
