//! Figures: what is asked of results (docs/formats/sweep.md, "Figures"). A term is the number at a path, or the sum
//! of several; two with a `/` between them are a ratio within a run, and the second may be a whole number; what is
//! `/ AXIS=VALUE` is relative to the point of that value, seed by seed, and what is `/ TERM @ AXIS=VALUE` to another
//! number there.

use crate::path::look_up;
use crate::point::{in_words, stem};
use crate::student::Mean;
use crate::units::show;
use serde_json::Value;
use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

/// What is asked of results. Shown, it is the text that it is parsed from, evenly spaced.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Figure {
    term: Term,
    per: Option<Divisor>,
    reference: Option<Reference>,
}

/// The sum of the numbers at these paths, of which there is at least one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Term(Vec<String>);

/// What a term is divided by.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Divisor {
    /// Another term of the same run.
    Term(Term),
    /// The same number for all runs.
    Number(NonZeroU64),
}

/// The value of an axis that a figure is relative to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Reference {
    /// The number there, if it is another one.
    pub(crate) term: Option<Term>,
    pub(crate) axis: String,
    pub(crate) value: String,
}

/// Why a figure cannot be shown.
#[derive(Clone, PartialEq, Eq, thiserror::Error, Debug)]
#[non_exhaustive]
pub enum FigureError {
    /// The text is none.
    #[error(
        "\"{text}\" is no figure; expected a path, a sum of paths in parentheses, or one of these divided by another or by a \
         whole number, such as \"waf.gc\", \"map.loads / writes.sectors\", \"(sectors.gc + sectors.pad) / sectors.user\" or \
         \"write.iops / 16\", perhaps relative to a value of an axis, such as \"waf.gc / stack=pblk\" or \
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
    let (terms, reference) = split_reference(text)?;
    let mut terms = terms.split('/');
    let figure = Figure {
        term: Term::parse(terms.next()?)?,
        per: terms.next().map_or(Some(None), |per| Divisor::parse(per).map(Some))?,
        reference,
    };
    terms.next().is_none().then_some(figure)
}

/// Terms have neither `/` nor `=`, and names of axes have no `/`: from the `/` before the first `=` on
/// everything belongs to the reference, whose value may be a file's name.
fn split_reference(text: &str) -> Option<(&str, Option<Reference>)> {
    let Some((before, value)) = text.split_once('=') else { return Some((text, None)) };
    let (terms, axis) = before.rsplit_once('/')?;
    let (term, axis) = match axis.split_once('@') {
        None => (None, axis),
        Some((term, axis)) => (Some(Term::parse(term)?), axis),
    };
    Some((terms, Some(Reference { term, axis: some_text(axis)?, value: some_text(value)? })))
}

impl Term {
    /// A path, or several between parentheses with `+` between them.
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let is_path = |text: &String| !text.contains(['(', ')', '+']) && whole(text).is_none();
        let path = |text: &str| some_text(text).filter(is_path);
        match text.strip_prefix('(').map(|text| text.strip_suffix(')')) {
            None => path(text).map(|path| Self(vec![path])),
            Some(inside) => {
                let paths: Vec<String> = inside?.split('+').map(path).collect::<Option<_>>()?;
                (paths.len() > 1).then_some(Self(paths))
            }
        }
    }

    /// Its paths.
    pub(crate) fn paths(&self) -> &[String] {
        &self.0
    }

    /// What it is in a result; `None` if one of its numbers is not there.
    fn within(&self, result: &Value) -> Option<f64> {
        self.0.iter().map(|path| look_up(result, path).flatten()).sum()
    }
}

impl Divisor {
    fn parse(text: &str) -> Option<Self> {
        match whole(text.trim()) {
            Some(number) => NonZeroU64::new(number).map(Self::Number),
            None => Term::parse(text).map(Self::Term),
        }
    }

    fn within(&self, result: &Value) -> Option<f64> {
        match self {
            Self::Term(term) => term.within(result),
            Self::Number(number) => Some(number.get() as f64),
        }
    }
}

/// A whole number, which no path is.
fn whole(text: &str) -> Option<u64> {
    text.parse().ok()
}

fn some_text(text: &str) -> Option<String> {
    Some(text.trim()).filter(|text| !text.is_empty()).map(str::to_owned)
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [path] => f.write_str(path),
            paths => write!(f, "({})", paths.join(" + ")),
        }
    }
}

impl fmt::Display for Divisor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Term(term) => term.fmt(f),
            Self::Number(number) => number.fmt(f),
        }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.term.iter().try_for_each(|term| write!(f, "{term} @ "))?;
        write!(f, "{}={}", self.axis, self.value)
    }
}

impl Reference {
    /// The point that it names, as plots show it.
    pub(crate) fn in_words(&self) -> String {
        let value = stem(&self.value);
        let point = in_words(&self.axis, value);
        self.term.iter().map(|term| format!("{term} of ")).collect::<String>() + &point
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.term.fmt(f)?;
        self.per.iter().try_for_each(|per| write!(f, " / {per}"))?;
        self.reference.iter().try_for_each(|reference| write!(f, " / {reference}"))
    }
}

impl Figure {
    /// The number at a path.
    pub(crate) fn at(path: &str) -> Self {
        Self { term: Term(vec![path.to_owned()]), per: None, reference: None }
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
        let of_reference = self.reference.iter().filter_map(|reference| reference.term.as_ref());
        let per = self.per.iter().filter_map(|per| match per {
            Divisor::Term(term) => Some(term),
            Divisor::Number(_) => None,
        });
        std::iter::once(&self.term).chain(per).chain(of_reference).flat_map(Term::paths)
    }

    /// The term, and what it is divided by.
    pub(crate) const fn parts(&self) -> (&Term, Option<&Divisor>) {
        (&self.term, self.per.as_ref())
    }

    /// What it is relative to.
    pub(crate) const fn reference(&self) -> Option<&Reference> {
        self.reference.as_ref()
    }

    /// A path that has its unit, unless it is a ratio.
    pub(crate) fn plain_path(&self) -> Option<&str> {
        match (&self.per, &self.reference) {
            (None | Some(Divisor::Number(_)), None) => self.term.0.first().map(String::as_str),
            _ => None,
        }
    }

    /// What it is in one result before it is set against another; `None` if there is no such number.
    pub(crate) fn within(&self, result: &Value) -> Option<f64> {
        let number = self.term.within(result)?;
        self.per.as_ref().map_or(Some(number), |per| quotient(number, per.within(result)?))
    }

    /// What another point's figure is set against in one result; as [`Self::within`] unless it is another number.
    pub(crate) fn base(&self, result: &Value) -> Option<f64> {
        match self.reference.as_ref().and_then(|reference| reference.term.as_ref()) {
            None => self.within(result),
            Some(term) => term.within(result),
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
        self.figure.show(&Mean::exactly(self.value))
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
            ("a/16", "a / 16", Some("16"), None),
            ("a / 16 / stack=b", "a / 16 / stack=b", Some("16"), Some(("stack", "b"))),
            ("( a+b )/c", "(a + b) / c", Some("c"), None),
        ];
        for (text, shown, per, reference) in cases {
            let read = figure(text);
            assert_eq!(read.to_string(), shown);
            assert_eq!(figure(shown), read);
            assert_eq!(read.per.as_ref().map(ToString::to_string).as_deref(), per, "{text}");
            let axis = read.reference.as_ref().map(|it| (it.axis.as_str(), it.value.as_str()));
            assert_eq!(axis, reference, "{text}");
        }
        let other = figure("a/b@stack = x@y.toml");
        assert_eq!(other.to_string(), "a / b @ stack=x@y.toml");
        assert_eq!(other.paths().collect::<Vec<_>>(), ["a", "b"]);
        let reference = other.reference.unwrap().term.unwrap().to_string();
        assert_eq!((other.per, reference.as_str()), (None, "b"));
        let sum = figure("a / (b + c) @ stack=x");
        assert_eq!(sum.to_string(), "a / (b + c) @ stack=x");
        assert_eq!(sum.paths().collect::<Vec<_>>(), ["a", "b", "c"]);
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
            "16",
            "16 / a",
            "a / 0",
            "a / 16 @ b=c",
            "a / 16 / b",
            "a + b",
            "a / b + c",
            "(a + b",
            "a + b)",
            "(a)",
            "(a + )",
            "(a + 16)",
            "((a + b) + c)",
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
            ("a / 4", Some(1.5)),
            ("none / 4", Some(0.0)),
            ("(a + b) / 4", Some(2.5)),
            ("a / (b + b + b)", Some(0.5)),
            ("(a + null)", None),
        ];
        for (text, expected) in cases {
            assert_eq!(figure(text).within(&result), expected, "{text}");
        }
        assert_eq!(figure("a / (a + b) @ x=y").base(&result), Some(10.0));
    }

    /// A ratio of times is no time.
    #[test]
    fn only_times_have_units() {
        let mean = Mean::exactly(1_500.0);
        assert_eq!(figure("write.clat_ns.p99").show(&mean), "1.500 µs");
        assert_eq!(figure("write.clat_ns.p99 / stack=pblk").show(&mean), "1,500");
        assert_eq!(figure("write.clat_ns.p99 / 16").show(&mean), "1.500 µs");
        assert_eq!(figure("write.clat_ns.p99 / write.iops").show(&mean), "1,500");
        let line =
            Line { figure: figure("waf.gc / stack=pblk"), value: 0.67, label: "the paper".into() };
        assert_eq!(line.to_string(), "waf.gc / stack=pblk = 0.670: the paper");
    }
}
