//! What a seed chose, as keys and values in a fixed order. As text it is TOML: a key with its value on each line, groups
//! of keys as inline tables.

use nandscape_rt::Nanos;
use std::fmt;

/// Keys and values in order.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Settings(Vec<(String, Setting)>);

/// A value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Setting {
    /// Yes or no.
    Bool(bool),
    /// A number.
    Integer(u64),
    /// A name, or words.
    Text(String),
    /// Several values.
    List(Vec<Setting>),
    /// Keys that belong together.
    Table(Settings),
}

impl Settings {
    /// With one more key.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Setting>) -> Self {
        self.0.push((key.to_owned(), value.into()));
        self
    }

    /// With one more key, if there is a value.
    #[must_use]
    pub fn with_some(self, key: &str, value: Option<impl Into<Setting>>) -> Self {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    /// With all keys of `more`.
    #[must_use]
    pub fn and(mut self, more: Self) -> Self {
        self.0.extend(more.0);
        self
    }

    /// Keys and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Setting)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = true;
        self.iter().try_for_each(|(key, value)| {
            let line = if std::mem::take(&mut first) { "" } else { "\n" };
            write!(f, "{line}{key} = {value}")
        })
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => write!(f, "{value}"),
            Self::Integer(value) => write!(f, "{value}"),
            Self::Text(text) => {
                write!(f, "\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
            }
            Self::List(values) => {
                let values: Vec<String> = values.iter().map(ToString::to_string).collect();
                write!(f, "[{}]", values.join(", "))
            }
            Self::Table(table) => {
                let keys: Vec<String> =
                    table.iter().map(|(key, value)| format!("{key} = {value}")).collect();
                write!(f, "{{ {} }}", keys.join(", "))
            }
        }
    }
}

impl From<bool> for Setting {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<u64> for Setting {
    fn from(value: u64) -> Self {
        Self::Integer(value)
    }
}

impl From<u32> for Setting {
    fn from(value: u32) -> Self {
        Self::Integer(value.into())
    }
}

/// In nanoseconds.
impl From<Nanos> for Setting {
    fn from(value: Nanos) -> Self {
        Self::Integer(value.0)
    }
}

impl From<&str> for Setting {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for Setting {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl From<Settings> for Setting {
    fn from(value: Settings) -> Self {
        Self::Table(value)
    }
}

impl<T: Into<Self>> From<Vec<T>> for Setting {
    fn from(values: Vec<T>) -> Self {
        Self::List(values.into_iter().map(Into::into).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, Scenario};
    use nandscape_ftl::FtlKind;

    /// The text is TOML.
    #[test]
    fn settings_are_toml() {
        let media = Settings::default().with("groups", 4_u32).with("timing", "none");
        let settings = Settings::default()
            .with("seed", 7_u64)
            .with("media", media)
            .with_some("omit", None::<&str>)
            .with("quoted", "a \"b\" \\")
            .with("cuts", vec![Settings::default().with("delay_ns", Nanos(5))])
            .with("safe", true);
        let lines = [
            "seed = 7",
            "media = { groups = 4, timing = \"none\" }",
            "quoted = \"a \\\"b\\\" \\\\\"",
            "cuts = [{ delay_ns = 5 }]",
            "safe = true",
        ];
        assert_eq!(settings.to_string(), lines.join("\n"));
        let read: toml::Table = settings.to_string().parse().unwrap();
        assert_eq!(read["media"]["groups"].as_integer(), Some(4));
        assert_eq!(read["quoted"].as_str(), Some("a \"b\" \\"));
    }

    /// What seeds draw can be read again, whatever the kind of FTL.
    #[test]
    fn scenarios_are_toml() {
        for ftl in FtlKind::ALL {
            let options = Options { ftl, ..Options::default() };
            for seed in 0..40 {
                let text = Scenario::draw(seed, Vec::new(), &options).to_string();
                let read =
                    text.parse::<toml::Table>().unwrap_or_else(|error| panic!("{error}: {text}"));
                assert_eq!(read["seed"].as_integer(), Some(seed as i64));
                assert_eq!(read["ftl"]["kind"].as_str(), Some(ftl.name()));
                assert!(read["cuts"].as_array().is_some_and(|cuts| !cuts.is_empty()), "{text}");
            }
        }
    }
}
