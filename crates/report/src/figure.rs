//! Figures: what is asked of results (docs/formats/sweep.md, "Figures"). A path is a number of a run;
//! two with a `/` between them are a ratio within a run; what is `/ AXIS=VALUE` is relative to
//! the point of that value, seed by seed, and what is `/ PATH @ AXIS=VALUE` to another number there.

use crate::path::look_up;
use crate::student::Mean;
use crate::units::show;
use serde_json::Value;
use std::fmt;
use std::str::FromStr;

/// What is asked of results. Shown, it is the text that it is parsed from, evenly spaced.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Figure {
    path: String,
    /// The path whose number that of `path` is divided by.
    per: Option<String>,
    reference: Option<Reference>,
}

/// The value of an axis that a figure is relative to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Reference {
    /// The number there, if it is another one.
    pub(crate) path: Option<String>,
    pub(crate) axis: String,
    pub(crate) value: String,
}

/// Why a figure cannot be shown.
#[derive(Clone, PartialEq, Eq, thiserror::Error, Debug)]
#[non_exhaustive]
pub enum FigureError {
    /// The text is none.
    #[error(
        "\"{text}\" is no figure; expected a path or a ratio of two, such as \"waf.gc\" or \
         \"map.loads / writes.sectors\", perhaps relative to a value of an axis, such as \"waf.gc / stack=pblk\" or \
         \"sectors.gc / sectors.user @ stack=pblk\""
    )]
    Grammar {
        /// The text.
        text: String,
    },
    /// It is relative to a value of something that is no axis.
    #[error("\"{axis}\" is no axis of the results; they have {}", .known.join(", "))]
    NoAxis {
        /// What it names.
        axis: String,
        /// What there is.
        known: Vec<String>,
    },
    /// It is relative to a value that no point has.
    #[error("no point has {axis}={value}; there are {}", .known.join(", "))]
    NoValue {
        /// The axis.
        axis: String,
        /// What it names.
        value: String,
        /// What there is.
        known: Vec<String>,
    },
    /// It holds a path at which no result has a number.
    #[error("{why}")]
    NoMetric {
        /// Which, and what was perhaps meant.
        why: String,
    },
    /// It holds a path that none of the results at hand knows.
    #[error("\"{path}\" is nowhere in the results (`nandscape metrics` lists what may be)")]
    NoPath {
        /// The path.
        path: String,
    },
}

impl FromStr for Figure {
    type Err = FigureError;

    fn from_str(text: &str) -> Result<Self, FigureError> {
        parse(text).ok_or_else(|| FigureError::Grammar { text: text.to_owned() })
    }
}

fn parse(text: &str) -> Option<Figure> {
    let (paths, reference) = split_reference(text)?;
    let mut paths = paths.split('/').map(some_text);
    let figure = Figure {
        path: paths.next()??,
        per: paths.next().map_or(Some(None), |per| per.map(Some))?,
        reference,
    };
    paths.next().is_none().then_some(figure)
}

/// Paths have neither `/` nor `=`, and names of axes have no `/`: from the `/` before the first `=` on
/// everything belongs to the reference, whose value may be a file's name.
fn split_reference(text: &str) -> Option<(&str, Option<Reference>)> {
    let Some((before, value)) = text.split_once('=') else { return Some((text, None)) };
    let (paths, axis) = before.rsplit_once('/')?;
    let (path, axis) = match axis.split_once('@') {
        None => (None, axis),
        Some((path, axis)) => (Some(some_text(path)?), axis),
    };
    Some((paths, Some(Reference { path, axis: some_text(axis)?, value: some_text(value)? })))
}

fn some_text(text: &str) -> Option<String> {
    Some(text.trim()).filter(|text| !text.is_empty()).map(str::to_owned)
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.iter().try_for_each(|path| write!(f, "{path} @ "))?;
        write!(f, "{}={}", self.axis, self.value)
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)?;
        self.per.iter().try_for_each(|per| write!(f, " / {per}"))?;
        self.reference.iter().try_for_each(|reference| write!(f, " / {reference}"))
    }
}

impl Figure {
    /// The number at a path.
    pub(crate) fn at(path: &str) -> Self {
        Self { path: path.to_owned(), per: None, reference: None }
    }

    /// Checks that its paths are metrics, before there are results.
    ///
    /// # Errors
    /// The first that is none.
    pub fn check(&self) -> Result<(), FigureError> {
        let checked = self.paths().try_for_each(|path| crate::metrics::check(path));
        checked.map_err(|why| FigureError::NoMetric { why })
    }

    /// The paths that it is made of.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &String> {
        let of_reference = self.reference.iter().filter_map(|reference| reference.path.as_ref());
        std::iter::once(&self.path).chain(&self.per).chain(of_reference)
    }

    /// The two paths that it is the ratio of.
    pub(crate) fn ratio(&self) -> Option<(&str, &str)> {
        self.per.as_ref().map(|per| (self.path.as_str(), per.as_str()))
    }

    /// What it is relative to.
    pub(crate) const fn reference(&self) -> Option<&Reference> {
        self.reference.as_ref()
    }

    /// Its path, if it is a number of a run as it stands there.
    pub(crate) fn plain_path(&self) -> Option<&str> {
        Some(self.path.as_str()).filter(|_| self.per.is_none() && self.reference.is_none())
    }

    /// What it is in one result before it is set against another; `None` if there is no such number.
    pub(crate) fn within(&self, result: &Value) -> Option<f64> {
        let number = |path: &str| look_up(result, path).flatten();
        match &self.per {
            None => number(&self.path),
            Some(per) => quotient(number(&self.path)?, number(per)?),
        }
    }

    /// What another point's figure is set against in one result; as [`Self::within`] unless it is another number.
    pub(crate) fn base(&self, result: &Value) -> Option<f64> {
        match self.reference.as_ref().and_then(|reference| reference.path.as_ref()) {
            None => self.within(result),
            Some(path) => look_up(result, path).flatten(),
        }
    }

    /// To four digits, times in the unit that fits: `8.818 ± 0.012`, `1.812 ± 0.021 ms`.
    #[must_use]
    pub fn show(&self, mean: &Mean) -> String {
        show(self.plain_path().is_some_and(|path| path.contains("_ns")), mean)
    }

    /// Whether it tells by itself how points compare.
    #[must_use]
    pub const fn is_relative(&self) -> bool {
        self.reference.is_some()
    }
}

/// Of two numbers, if there is one.
pub(crate) fn quotient(number: f64, by: f64) -> Option<f64> {
    Some(number / by).filter(|quotient| quotient.is_finite())
}

/// A value that a figure is set against, such as a published one.
#[derive(Clone, PartialEq, Debug)]
pub struct Line {
    /// The figure.
    pub figure: Figure,
    /// The value, in the unit of the result.
    pub value: f64,
    /// What it is.
    pub label: String,
}

impl Line {
    /// Its value, to four digits.
    pub(crate) fn shown(&self) -> String {
        self.figure.show(&Mean { mean: self.value, half_width: None })
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}: {}", self.figure, self.shown(), self.label)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn figure(text: &str) -> Figure {
        text.parse().unwrap()
    }

    /// However a figure is spaced, it is the same; and what it shows is parsed to itself.
    #[test]
    fn figures_are_read() {
        let cases = [
            (" waf.gc ", "waf.gc", None, None),
            (
                "map.loads/writes.sectors",
                "map.loads / writes.sectors",
                Some("writes.sectors"),
                None,
            ),
            ("waf.gc/stack=pblk", "waf.gc / stack=pblk", None, Some(("stack", "pblk"))),
            (
                "a / stack = ../my/x=y.toml",
                "a / stack=../my/x=y.toml",
                None,
                Some(("stack", "../my/x=y.toml")),
            ),
            (
                "a / b / ftl.map.cache=100%",
                "a / b / ftl.map.cache=100%",
                Some("b"),
                Some(("ftl.map.cache", "100%")),
            ),
        ];
        for (text, shown, per, reference) in cases {
            let read = figure(text);
            assert_eq!(read.to_string(), shown);
            assert_eq!(figure(shown), read);
            assert_eq!(read.per.as_deref(), per, "{text}");
            let axis = read.reference.as_ref().map(|it| (it.axis.as_str(), it.value.as_str()));
            assert_eq!(axis, reference, "{text}");
        }
        let other = figure("a/b@stack = x@y.toml");
        assert_eq!(other.to_string(), "a / b @ stack=x@y.toml");
        assert_eq!(other.paths().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!((other.per, other.reference.unwrap().path.as_deref()), (None, Some("b")));
    }

    /// What is no figure is refused, and quoted.
    #[test]
    fn slips_are_no_figures() {
        for text in [
            "",
            "/",
            "a /",
            "/ b",
            "a / b / c",
            "stack=pblk",
            "a / =x",
            "a / b=",
            "/ b=c",
            "a / / b=c",
            "a / @ b=c",
            "a / b @ =c",
            "a @ b=c",
        ] {
            let error = text.parse::<Figure>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("\"{text}\" is no figure; expected")), "{error}");
        }
    }

    /// A ratio needs both of its numbers, and one that is not zero below.
    #[test]
    fn ratios_are_of_one_run() {
        let result = json!({ "nandscape": { "a": 6, "b": 4, "none": 0, "null": null } });
        let cases = [
            ("a", Some(6.0)),
            ("a / b", Some(1.5)),
            ("a / none", None),
            ("null / a", None),
            ("none / none", None),
        ];
        for (text, expected) in cases {
            assert_eq!(figure(text).within(&result), expected, "{text}");
        }
    }

    /// A ratio of times is no time.
    #[test]
    fn only_times_have_units() {
        let mean = Mean { mean: 1_500.0, half_width: None };
        assert_eq!(figure("write.clat_ns.p99").show(&mean), "1.500 µs");
        assert_eq!(figure("write.clat_ns.p99 / stack=pblk").show(&mean), "1,500");
        let line =
            Line { figure: figure("waf.gc / stack=pblk"), value: 0.67, label: "the paper".into() };
        assert_eq!(line.to_string(), "waf.gc / stack=pblk = 0.670: the paper");
    }
}
