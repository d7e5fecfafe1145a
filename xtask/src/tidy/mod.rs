//! Tidy: the coding rules of CONTRIBUTING.md as checks. Each rule reads the [`Tree`] and returns
//! findings; a finding that [`allow`] names is dropped, and an entry there that drops nothing is a
//! finding itself. Every rule has a test in which it catches a bad sample.

mod allow;
mod boundaries;
mod circles;
mod examples;
mod figures;
mod header;
mod layers;
mod lengths;
mod links;
mod map_order;
mod names;
mod published;
mod reach;
mod source;
mod spread;
mod text;
mod tree;
mod virtual_clock;
mod wording;

pub(crate) use tree::{File, Tree};

use std::fmt;

/// One broken rule.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Finding {
    path: String,
    line: usize,
    rule: &'static str,
    message: String,
}

impl Finding {
    /// `message` about byte `offset` of `file`.
    fn at(file: &File, offset: usize, rule: &'static str, message: String) -> Self {
        Self { path: file.path.clone(), line: file.line_of(offset), rule, message }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", self.path, self.line, self.rule, self.message)
    }
}

const RULES: [fn(&Tree) -> Vec<Finding>; 17] = [
    header::check,
    lengths::check_files,
    lengths::check_functions,
    virtual_clock::check,
    map_order::check,
    reach::check,
    layers::check,
    boundaries::check,
    circles::check,
    examples::check,
    links::check,
    names::check,
    published::check,
    figures::check,
    text::check,
    spread::check,
    wording::check,
];

/// Everything that is not as it should be, in order of place.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let found = RULES.iter().flat_map(|rule| rule(tree)).collect();
    let mut findings = allow::filter(found, allow::ALLOWED);
    findings.sort();
    findings
}
