//! `cargo xtask verdicts [--points] FILE...`: reproductions of papers as Markdown, for docs/results.
//!
//! FILE is the `paper.json` of `nandscape paper --out DIR` (docs/formats/paper.md). First comes a table with one row for
//! each paper, which counts verdicts on reproductions and keeps inputs apart. Then each paper becomes a table with one
//! row for each statement, and columns for what is published, the paper as it stands, and each variant. With `--points`
//! the points of all plots follow as tab-separated lines, and the numbers with which the page gives a reason.

use serde_json::Value;
use std::collections::BTreeMap;

/// The tables of the papers in the files, in order, with their points if these are wanted.
///
/// # Errors
/// The file that cannot be read, or is no `paper.json`, and why.
pub(crate) fn tables(files: &[&str], with_points: bool) -> Result<String, String> {
    let mut text = String::new();
    for file in files {
        let json = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
        let of_file = tables_of(&json, with_points).map_err(|error| format!("{file}: {error}"))?;
        text.push_str(&of_file);
    }
    Ok(text)
}

fn tables_of(json: &str, with_points: bool) -> Result<String, String> {
    let json: Value = serde_json::from_str(json).map_err(|error| error.to_string())?;
    let papers = json["papers"].as_array().ok_or("no key \"papers\"")?;
    let rows: String = papers.iter().map(counted).collect::<Result<_, _>>()?;
    let tables: String = papers.iter().map(table).collect::<Result<_, _>>()?;
    let points: String = match with_points {
        true => papers.iter().map(points).collect(),
        false => String::new(),
    };
    Ok(format!("{COUNTS}{rows}\n{tables}{points}"))
}

/// Points of all plots, and numbers of reasons: what they are of, keys, metric, mean and half of the interval.
fn points(paper: &Value) -> String {
    let mut text = String::new();
    for kind in ["figures", "assumptions", "extensions"] {
        for plot in paper[kind].as_array().into_iter().flatten() {
            let id = string(&plot["id"]);
            text += &of_points(id, &plot["points"]);
            for variant in plot["variants"].as_array().into_iter().flatten() {
                let id = format!("{id} ({})", string(&variant["variant"]));
                text += &of_points(&id, &variant["points"]);
            }
        }
    }
    for statement in paper["statements"].as_array().into_iter().flatten() {
        for one in statement["reason"]["figures"].as_array().into_iter().flatten() {
            let [of, value] = [string(&one["figure"]), string(&one["value"])];
            text += &format!("{}\t{of}\t{value}\n", string(&statement["id"]));
        }
    }
    text
}

fn of_points(plot: &str, points: &Value) -> String {
    points.as_array().into_iter().flatten().map(|point| of_point(plot, point)).collect()
}

/// Keys and metrics in alphabetical order, whatever order the build keeps them in.
fn of_point(plot: &str, point: &Value) -> String {
    let keys = sorted(point).filter(|(key, _)| *key != "figures");
    let keys: Vec<String> = keys.map(|(key, value)| format!("{key}={value}")).collect();
    let line = |(metric, figure): (&str, &Value)| {
        let (mean, half) = (&figure["mean"], &figure["ci95"]);
        format!("{plot}\t{}\t{metric}\t{mean}\t{half}\n", keys.join(" "))
    };
    sorted(&point["figures"]).map(line).collect()
}

fn sorted(object: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let entries = object.as_object().into_iter().flatten();
    let sorted: BTreeMap<&str, &Value> =
        entries.map(|(key, value)| (key.as_str(), value)).collect();
    sorted.into_iter()
}

/// Above [`counted`].
const COUNTS: &str = "\
    | Paper | Reproductions | Agree | Partially | Disagree | Source contradicts itself | Inconclusive | Inputs that agree |\n\
    |---|---|---|---|---|---|---|---|\n";

/// Verdicts by their names in `counts`.
const VERDICTS: [&str; 5] =
    ["agrees", "partially", "disagrees", "source contradicts itself", "inconclusive"];

/// The verdicts on the reproductions of a paper, and its inputs.
fn counted(paper: &Value) -> Result<String, String> {
    let of = |kind: &str| -> Result<Vec<u64>, String> {
        let count = |verdict: &&str| paper["counts"][kind][verdict].as_u64();
        let counts: Option<Vec<u64>> = VERDICTS.iter().map(count).collect();
        counts.ok_or_else(|| format!("a paper without \"counts\" of {kind}"))
    };
    let (reproductions, inputs) = (of("reproductions")?, of("inputs")?);
    let cells: String = reproductions.iter().map(|count| format!(" {count} |")).collect();
    let all: u64 = reproductions.iter().sum();
    let inputs = match inputs.iter().sum() {
        0_u64 => "-".to_owned(),
        all => format!("{} of {all}", inputs[0]),
    };
    Ok(format!("| {} | {all} |{cells} {inputs} |\n", string(&paper["id"])))
}

fn table(paper: &Value) -> Result<String, String> {
    let statements = paper["statements"].as_array().ok_or("a paper without \"statements\"")?;
    let variants = paper["variants"].as_array().ok_or("a paper without \"variants\"")?;
    let names: Vec<&str> = variants.iter().map(|variant| string(&variant["id"])).collect();
    let heads: String = names.iter().map(|name| format!(" `{name}` |")).collect();
    let mut text = format!("| Statement | Published | As it stands |{heads}\n");
    text += &format!("|---|---|---|{}\n", "---|".repeat(names.len()));
    for one in statements {
        let under = one["variants"].as_array().into_iter().flatten();
        let cells = names.iter().map(|name| {
            let found = under.clone().find(|under| under["variant"] == *name);
            format!(" {} |", found.map_or("-".into(), outcome))
        });
        let cells: String = cells.collect();
        let (id, says) = (string(&one["id"]), string(&one["text"]));
        let mut published = published(&one["published"]);
        if let Some(raw) = one["contradicted"]["value"].as_f64() {
            published += &format!(" (the source's data: {})", digits(raw, raw));
        }
        let input = if one["input"].is_null() { "" } else { " (input)" };
        text += &format!("| `{id}`: {says} | {published} | {}{input} |{cells}\n", outcome(one));
    }
    Ok(text + "\n")
}

fn string(of: &Value) -> &str {
    of.as_str().unwrap_or_default()
}

/// What the paper states.
fn published(of: &Value) -> String {
    let numbers = |key: &str| {
        let numbers = of[key].as_array().into_iter().flatten().filter_map(Value::as_f64);
        numbers.map(|number| digits(number, number)).collect::<Vec<_>>()
    };
    if let Some(value) = of["at_most"].as_f64() {
        return format!("at most {}", digits(value, value));
    }
    if let Some(value) = of["at_least"].as_f64() {
        return format!("at least {}", digits(value, value));
    }
    match numbers("between").as_slice() {
        [low, high] => format!("{low} to {high}"),
        _ => numbers("values").join(" or "),
    }
}

/// A mean with half the width of its interval, and the verdict.
fn outcome(of: &Value) -> String {
    let verdict = string(&of["verdict"]);
    // A statement of the paper as it stands keeps them apart from its variants' entries.
    let measured = if of["measured"].is_object() { &of["measured"] } else { of };
    match (measured["mean"].as_f64(), measured["ci95"].as_f64()) {
        (Some(mean), Some(half)) => {
            format!("{} ± {} {verdict}", digits(mean, mean), digits(half, mean))
        }
        (Some(mean), None) => format!("{} {verdict}", digits(mean, mean)),
        (None, _) => verdict.to_owned(),
    }
}

/// A number with as many decimals as three significant digits of `scale` take.
fn digits(number: f64, scale: f64) -> String {
    let decimals = match scale.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    format!("{number:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAPER: &str = r#"{"papers": [{"id": "p",
        "variants": [{"id": "aged"}, {"id": "other"}],
        "counts": {
            "reproductions": {"agrees": 1, "partially": 0, "disagrees": 0, "source contradicts itself": 1, "inconclusive": 0},
            "inputs": {"agrees": 1, "partially": 0, "disagrees": 0, "source contradicts itself": 0, "inconclusive": 0}},
        "statements": [
            {"id": "s", "text": "faster", "published": {"values": [2.41, 1.41]}, "verdict": "agrees",
                "measured": {"mean": 12.34, "ci95": 0.25},
                "variants": [{"variant": "aged", "mean": 0.5, "ci95": null, "verdict": "disagrees"}]},
            {"id": "t", "text": "less", "published": {"at_most": 0.67}, "verdict": "source contradicts itself",
                "contradicted": {"place": "a table", "text": "more", "value": 0.8},
                "measured": {"mean": null, "ci95": null}, "variants": []},
            {"id": "u", "text": "same", "input": "fitted", "published": {"between": [1.46, 1.5]}, "verdict": "agrees",
                "measured": {"mean": 123.4, "ci95": null}, "variants": []}]}]}"#;

    /// A row per statement, a column per variant; what a variant does not measure stays empty.
    #[test]
    fn a_paper_becomes_a_table() {
        let expected = "\
            | Paper | Reproductions | Agree | Partially | Disagree | Source contradicts itself | Inconclusive | Inputs that agree |\n\
            |---|---|---|---|---|---|---|---|\n\
            | p | 2 | 1 | 0 | 0 | 1 | 0 | 1 of 1 |\n\
            \n\
            | Statement | Published | As it stands | `aged` | `other` |\n\
            |---|---|---|---|---|\n\
            | `s`: faster | 2.41 or 1.41 | 12.3 ± 0.2 agrees | 0.500 disagrees | - |\n\
            | `t`: less | at most 0.670 (the source's data: 0.800) | source contradicts itself | - | - |\n\
            | `u`: same | 1.46 to 1.50 | 123 agrees (input) | - | - |\n\
            \n";
        assert_eq!(tables_of(PAPER, false).unwrap(), expected);
    }

    /// Points and reasons follow, one line for each number.
    #[test]
    fn points_are_lines() {
        let paper = r#"{"papers": [{"id": "p", "counts": COUNTS, "variants": [], "statements": [{"id": "s",
            "reason": {"figures": [{"figure": "waf.gc", "value": "1.500"}]}}],
            "extensions": [{"id": "e", "points": [{"stack": "a", "depth": 2,
                "figures": {"iops": {"mean": 12.5, "ci95": null}}}],
                "variants": [{"variant": "v", "points": [{"depth": 2, "figures": {"iops": {"mean": 11, "ci95": 0.5}}}]}]}]}]}"#;
        let none = r#"{"agrees": 0, "partially": 0, "disagrees": 0, "source contradicts itself": 0, "inconclusive": 0}"#;
        let counts = format!(r#"{{"reproductions": {none}, "inputs": {none}}}"#);
        let text = tables_of(&paper.replace("COUNTS", &counts), true).unwrap();
        let expected = "e\tdepth=2 stack=\"a\"\tiops\t12.5\tnull\n\
            e (v)\tdepth=2\tiops\t11\t0.5\ns\twaf.gc\t1.500\n";
        assert!(text.ends_with(expected), "{text}");
    }

    /// What is no reproduction is refused with its reason, and a missing file by its name.
    #[test]
    fn what_is_no_reproduction_is_refused() {
        assert!(tables(&["/no/such/file"], false).unwrap_err().starts_with("/no/such/file: "));
        let counts = |kinds: &str| {
            let none = r#"{"agrees": 0, "partially": 0, "disagrees": 0, "source contradicts itself": 0, "inconclusive": 0}"#;
            format!(
                r#"{{"papers": [{{{kinds} "counts": {{"reproductions": {none}, "inputs": {none}}}}}]}}"#
            )
        };
        let (no_statements, no_variants) = (counts(""), counts(r#""statements": [],"#));
        for (text, why) in [
            ("{", "EOF while parsing"),
            ("{}", "no key \"papers\""),
            (r#"{"papers": [{}]}"#, "a paper without \"counts\" of reproductions"),
            (&no_statements, "a paper without \"statements\""),
            (&no_variants, "a paper without \"variants\""),
        ] {
            let found = tables_of(text, true).unwrap_err();
            assert!(found.starts_with(why), "{found}");
        }
    }
}
