//! A number of a results page stands in a file that a command made. Below its heading a section names the files of
//! `docs/results/figures` that have its numbers, and numbers that no command makes: parameters, published values, and
//! sums that a reader can do.
//!
//! ```text
//! <!-- figures: ssd-collection; given: 225.96 46,000 -->
//! ```
//!
//! A number is looked for if it has three significant digits or more, which are not written by chance, outside of code
//! and links, and is no power of two, which is a size. It is found if a number of the files, in the unit that follows it, is rounded to it.

use super::tree::File;
use super::{Finding, Tree};
use crate::figures::FOLDER;
use std::collections::BTreeMap;

/// Significant digits from which on a number is looked for.
const DIGITS: usize = 3;
/// Begins the comment of a section.
const MARK: &str = "<!-- figures: ";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let made = Numbers::of(tree);
    let pages = tree.files.iter().filter(|file| is_page(&file.path));
    let of_page = |page| sections(page).into_iter().flat_map(|section| section.check(page, &made));
    pages.flat_map(of_page).collect()
}

/// Pages of measured numbers: results, what begins with them, and notes of papers. Others of that folder are written by
/// a command as a whole.
fn is_page(path: &str) -> bool {
    let written = ["mutants.md", "campaigns.md", "night.md"];
    let of_results = path.strip_prefix("docs/results/");
    of_results.is_some_and(|name| name.ends_with(".md") && !written.contains(&name))
        || path.starts_with("papers/") && path.ends_with("/NOTES.md")
        || path == "README.md"
}

/// The numbers of each file.
struct Numbers(BTreeMap<String, Vec<f64>>);

impl Numbers {
    fn of(tree: &Tree) -> Self {
        let made = tree.files.iter().filter_map(|file| {
            let name = file.path.strip_prefix(FOLDER)?.strip_prefix('/')?.strip_suffix(".txt")?;
            let body = file.text.split_once("\n\n").map_or("", |(_, body)| body);
            let numbers = tokens(body).chain(written(body));
            // Some programs write a unit without a space.
            let bare = |number: &str| value(number.trim_end_matches(char::is_alphabetic));
            let numbers = numbers.filter_map(|(_, number)| bare(number));
            Some((name.to_owned(), numbers.collect()))
        });
        Self(made.collect())
    }
}

/// A part of a page from a heading to the next.
struct Section<'a> {
    /// Where it begins in the page.
    from: usize,
    text: &'a str,
}

fn sections(page: &File) -> Vec<Section<'_>> {
    let mut starts = Vec::new();
    let (mut offset, mut code) = (0, false);
    for line in page.text.split_inclusive('\n') {
        code ^= line.starts_with("```");
        if line.starts_with('#') && !code {
            starts.push(offset);
        }
        offset += line.len();
    }
    let ends = starts.iter().skip(1).copied().chain([page.text.len()]);
    let ranges = starts.iter().zip(ends);
    ranges.map(|(&from, end)| Section { from, text: &page.text[from..end] }).collect()
}

impl Section<'_> {
    /// Numbers that stand in no file that the section names, and files that are not there.
    fn check(&self, page: &File, made: &Numbers) -> Vec<Finding> {
        let finding = |at, message| Finding::at(page, self.from + at, "figures", message);
        let mark = self.text.find(MARK);
        let end = mark.and_then(|from| Some(from + self.text[from..].find("-->")?));
        let named = mark.zip(end).map_or("", |(from, end)| &self.text[from + MARK.len()..end]);
        let (files, given) = named.split_once("; given: ").unwrap_or((named, ""));
        let files: Vec<&str> =
            files.split(", ").map(str::trim).filter(|name| !name.is_empty()).collect();
        let given: Vec<&str> = given.split_whitespace().collect();
        let missing = files.iter().filter(|name| !made.0.contains_key(**name));
        let mut findings: Vec<Finding> = missing
            .map(|name| finding(mark.unwrap_or(0), format!("{FOLDER} has no {name}.txt")))
            .collect();
        let known: Vec<f64> =
            files.iter().filter_map(|name| made.0.get(*name)).flatten().copied().collect();
        let text = without_code(self.text);
        let mut used = Vec::new();
        for (at, number) in written(&text).filter(|(_, number)| digits(number) >= DIGITS) {
            if given.contains(&number) {
                used.push(number);
            } else if !is_among(number, &units_at(&text, at, number), &known) {
                let of = if files.is_empty() { "no file".to_owned() } else { files.join(", ") };
                findings.push(finding(
                    at,
                    format!("{number} is made by no command: {of} does not have it"),
                ));
            }
        }
        let unused = given.iter().filter(|number| !used.contains(number));
        findings.extend(unused.map(|number| {
            finding(
                mark.unwrap_or(0),
                format!("{number} is given, but the section does not have it"),
            )
        }));
        findings
    }
}

/// The text with code, comments, pictures, and targets of links blanked out, byte for byte as long.
fn without_code(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for (begin, end) in [("```", "```"), ("<!--", "-->"), ("`", "`"), ("![", "]("), ("](", ")")] {
        let mut at = 0;
        while let Some(from) = find(&bytes, begin, at) {
            let to = find(&bytes, end, from + begin.len()).map_or(bytes.len(), |to| to + end.len());
            bytes[from..to].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
            at = to;
        }
    }
    let indented = |line: &[u8]| line.starts_with(b"    ");
    bytes
        .split_mut(|byte| *byte == b'\n')
        .filter(|line| indented(line))
        .for_each(|line| line.fill(b' '));
    String::from_utf8_lossy(&bytes).into_owned()
}

fn find(bytes: &[u8], what: &str, from: usize) -> Option<usize> {
    let rest = bytes.get(from..)?;
    rest.windows(what.len()).position(|window| window == what.as_bytes()).map(|at| from + at)
}

/// Numbers as pages write them, with commas between thousands, and the bytes at which they begin.
fn written(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let part = |c: char| c.is_alphanumeric() || "._,".contains(c);
    words(text, part).filter_map(|(at, word)| {
        let word = word.trim_end_matches(['.', ',']);
        let (whole, rest) = word.split_once('.').unwrap_or((word, "0"));
        let mut groups = whole.split(',');
        let first = groups.next().is_some_and(is_digits);
        let is_number = first && groups.all(|group| group.len() == 3 && is_digits(group));
        (is_number && is_digits(rest)).then_some((at, word))
    })
}

/// Numbers as programs print them, and the bytes at which they begin.
fn tokens(text: &str) -> impl Iterator<Item = (usize, &str)> {
    words(text, |c| c.is_alphanumeric() || "._+-".contains(c))
}

/// The longest parts of these characters.
fn words(text: &str, part: impl Fn(char) -> bool + Copy) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    let all = text.split(move |c| !part(c)).map(move |word| {
        let from = at;
        at = from + word.len();
        at += text[at..].chars().next().map_or(0, char::len_utf8);
        (from, word)
    });
    all.filter(|(_, word)| !word.is_empty())
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn value(number: &str) -> Option<f64> {
    number.replace(',', "").parse().ok().filter(|value: &f64| value.is_finite())
}

/// Significant digits; zeroes at the end of a whole number are none. A size, which is a power of two, has none.
fn digits(number: &str) -> usize {
    if number.replace(',', "").parse().is_ok_and(u64::is_power_of_two) {
        return 0;
    }
    let all: String = number.chars().filter(char::is_ascii_digit).collect();
    let all = all.trim_start_matches('0');
    if number.contains('.') { all.len() } else { all.trim_end_matches('0').len() }
}

/// What is after a number, and in a table above its column: words that may be units.
fn units_at<'a>(text: &'a str, at: usize, number: &str) -> Vec<&'a str> {
    let is_unit = |c: char| c.is_alphabetic() || c == '%';
    let after = text[at + number.len()..].trim_start_matches(' ');
    let after = after.split(|c| !is_unit(c)).next();
    let line = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let column = text[line..at].matches('|').count();
    let mut head = None;
    for above in text[..line].lines().rev().take_while(|above| above.starts_with('|')) {
        head = Some(above);
    }
    let head = head.filter(|_| text[line..].starts_with('|'));
    let cell = head.and_then(|head| head.split('|').nth(column)).unwrap_or("");
    after.into_iter().chain(cell.split(|c| !is_unit(c))).filter(|word| !word.is_empty()).collect()
}

/// What a number of a program is multiplied with for a page that writes it in a unit.
fn scales(unit: &str) -> &'static [f64] {
    const KIB: f64 = 1024.0;
    match unit {
        "%" => &[100.0],
        "us" => &[1e-3, 1e6],
        "ms" => &[1e-6, 1e3],
        "s" => &[1e-9],
        "k" | "kB" | "thousand" | "thousands" => &[1e-3],
        "M" | "MB" | "million" => &[1e-6],
        "GB" => &[1e-9],
        "KiB" => &[1.0 / KIB],
        "MiB" => &[1.0 / (KIB * KIB)],
        "GiB" => &[1.0 / (KIB * KIB * KIB)],
        _ => &[],
    }
}

/// Half of the last of so many decimals.
fn half_of(decimals: usize) -> f64 {
    (0..decimals).fold(0.5, |half, _| half / 10.0)
}

/// Whether one of these values, in one of these units or as it is, is rounded to this number.
fn is_among(number: &str, units: &[&str], known: &[f64]) -> bool {
    let Some(stated) = value(number) else { return false };
    let decimals = number.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let half = half_of(decimals) + 1e-9 * stated;
    let scales = units.iter().flat_map(|unit| scales(unit)).copied().chain([1.0]);
    let scales: Vec<f64> = scales.collect();
    known.iter().any(|value| scales.iter().any(|scale| (value * scale - stated).abs() <= half))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MADE: &str = "commit: 1\ncommand: nandscape sweep a.toml\n\nkey,iops,lat\n1,42741.23,1095000\n2,0.98362,\nfill 3.86M\n";

    fn found(page: &str) -> Vec<String> {
        let file = "docs/results/figures/a.txt";
        let tree = Tree::of(&[(file, MADE), ("docs/results/README.md", page)]);
        check(&tree).iter().map(ToString::to_string).collect()
    }

    /// Numbers of the file are found as they are rounded, in the unit behind them or above them; others are not.
    #[test]
    fn numbers_stand_in_files() {
        let page = |text: &str| format!("# A\n\n<!-- figures: a -->\n\n{text}\n");
        for good in [
            "It makes 42,741 a second, 42.7 k, with 1.095 ms.",
            "Busy 0.984, 98.4 %, `1.234` of 12 and 1,200; 3.86 M",
            "| IOPS | p99, ms |\n|---|---|\n| 42,741 | 1.095 |",
        ] {
            assert_eq!(found(&page(good)), [""; 0], "{good}");
        }
        let expected = "42,742 is made by no command: a does not have it";
        let all = found(&page("It makes 42,742 a second, 1.095 us."));
        assert_eq!(all[0], format!("docs/results/README.md:5: figures: {expected}"));
        assert_eq!(all.len(), 2);
    }

    /// What no command makes is given or has no place; a file that is not there, and what is given in vain, are named.
    #[test]
    fn sections_name_what_is_there() {
        assert_eq!(found("# A\n\n<!-- figures: a; given: 225.96 -->\n\n225.96 us"), [""; 0]);
        let given = found("# A\n\n<!-- figures: a; given: 225.96 -->\n\n42,741");
        assert!(
            given[0].ends_with("225.96 is given, but the section does not have it"),
            "{given:?}"
        );
        assert!(found("# A\n\n<!-- figures: b -->\n")[0].ends_with("has no b.txt"));
        assert!(found("# A\n\n1.234")[0].ends_with("no file does not have it"));
    }
}
