//! Lines of a job file, as fio's own reader splits them: `[section]`, `key`, `key=value`,
//! `include FILE`, blanks, and comments. A comment starts at `;` or `#` anywhere in a line.

use super::error::JobFileError;
use crate::place::Place;
use std::sync::Arc;

/// A line that says something.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Line<'a> {
    /// `[name]`
    Section(&'a str),
    /// `key` or `key=value`, both trimmed.
    Option {
        /// What stands before the `=`.
        key: &'a str,
        /// What stands behind it.
        value: Option<&'a str>,
    },
    /// `include FILE`
    Include(&'a str),
}

/// The lines of `text` that say something, with their places.
pub(super) fn lines<'a>(
    file: &'a Arc<str>,
    text: &'a str,
) -> impl Iterator<Item = Result<(Place, Line<'a>), JobFileError>> + 'a {
    text.lines().enumerate().filter_map(move |(index, raw)| {
        let body = raw.split([';', '#']).next().unwrap_or_default();
        let trimmed = body.trim();
        let column = body.chars().take_while(|c| c.is_whitespace()).count() as u32 + 1;
        let place = Place { file: file.clone(), line: index as u32 + 1, column };
        (!trimmed.is_empty()).then(|| match line(trimmed) {
            Ok(line) => Ok((place, line)),
            Err((problem, expected)) => Err(JobFileError::new(place, problem).expected(expected)),
        })
    })
}

/// One line without blanks around it; on failure the problem and what was expected.
fn line(text: &str) -> Result<Line<'_>, (&'static str, &'static str)> {
    if let Some(rest) = text.strip_prefix('[') {
        return section(rest);
    }
    if let Some(("include", path)) = text.split_once(char::is_whitespace)
        && !path.trim_start().starts_with('=')
    {
        return Ok(Line::Include(path.trim()));
    }
    let (key, value) = match text.split_once('=') {
        Some((key, value)) => (key.trim(), Some(value.trim())),
        None => (text, None),
    };
    if key.is_empty() {
        return Err(("a value without a key", "key=value"));
    }
    Ok(Line::Option { key, value })
}

/// What follows the `[` of a section header.
fn section(rest: &str) -> Result<Line<'_>, (&'static str, &'static str)> {
    let Some((name, behind)) = rest.rsplit_once(']') else {
        return Err(("the section header does not end", "`]`"));
    };
    if !behind.trim().is_empty() {
        return Err(("text behind a section header", "the end of the line"));
    }
    match name.trim() {
        "" => Err(("a section without a name", "[name]")),
        name => Ok(Line::Section(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Option<Result<(Place, Line<'_>), JobFileError>> {
        lines(Box::leak(Box::new("t".into())), text).next()
    }

    /// Comments and blanks vanish; what is left is trimmed and placed.
    #[test]
    fn a_line_is_split_at_its_first_equals_sign() {
        assert_eq!(one("  ; note"), None);
        assert_eq!(one("#[x]"), None);
        let (place, line) = one("\t bs = 4k,8k ; note").unwrap().unwrap();
        assert_eq!((place.line, place.column), (1, 3));
        assert_eq!(line, Line::Option { key: "bs", value: Some("4k,8k") });
        assert_eq!(one("direct").unwrap().unwrap().1, Line::Option { key: "direct", value: None });
        assert_eq!(one("include a b.fio").unwrap().unwrap().1, Line::Include("a b.fio"));
        assert_eq!(one("[a job]").unwrap().unwrap().1, Line::Section("a job"));
    }

    /// What is no line of a job file is an error at its place, not a guess.
    #[test]
    fn broken_lines_are_errors() {
        for text in ["[job", "[]", "[a] b", "= 4k"] {
            assert_eq!(one(text).unwrap().unwrap_err().place.line, 1, "{text}");
        }
    }
}
