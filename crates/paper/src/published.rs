//! Reading `published.toml`: what the paper states, where, and how far off still counts. The only place
//! where published numbers come from.

use crate::model::{
    Assumption, Contradiction, Measure, Measured, Paper, PublishedValue, Statement, Tolerance, same,
};
use crate::read::{RENAMED, ReadRequest, experiment, figure, filter, index_of, named, read_all};
use crate::text::Text;
use crate::variant::AskedVariant;
use nandscape_lab::stack::document::Value;
use nandscape_lab::stack::reader::{Field, Section};
use nandscape_lab::stack::{Place, StackError};
use nandscape_report::plain;

/// The statements of a paper whose figures and assumptions are known.
pub(crate) fn read(
    text: &Text,
    paper: &Paper,
    asked: &[ReadRequest],
    variants: &[AskedVariant],
) -> Result<Vec<Statement>, StackError> {
    let (table, place) = (text.table()?, text.start());
    let mut root = Section::root(&table, &place);
    let statement = |entry: &mut Section<'_>, id| {
        let statement = read_statement(entry, id, paper, asked)?;
        check_variants(&statement, variants).map_err(|why| entry.reject("measured", why))?;
        Ok(statement)
    };
    let all = read_all(&mut root, "statement", statement)?;
    root.close()?;
    Ok(all)
}

fn read_statement(
    entry: &mut Section<'_>,
    id: String,
    paper: &Paper,
    asked: &[ReadRequest],
) -> Result<Statement, StackError> {
    let claim = read_claim(entry)?;
    let tolerance = read_tolerance(entry)?;
    let measured = read_measured(entry, asked)?;
    let surrogate = read_of_measured(entry, "surrogate", &measured)?;
    let undecidable = read_of_measured(entry, "undecidable", &measured)?;
    let sensitivity = read_sensitivity(entry, paper, asked, &measured)?;
    let contradicted = read_contradicted(entry)?;
    if contradicted.is_some()
        && (surrogate.is_some() || undecidable.is_some() || !sensitivity.is_empty())
    {
        let rule =
            "goes without surrogate, undecidable and sensitivity, which do not change its verdict";
        return Err(entry.reject("contradicted", rule));
    }
    Ok(Statement {
        id,
        figure: named(entry, "figure", paper.figures.iter().map(|figure| figure.id.as_str()))?,
        place: entry.required("place")?,
        text: entry.required("text")?,
        input: entry.optional("input")?,
        sensitivity,
        claim,
        tolerance,
        measured,
        surrogate,
        undecidable,
        contradicted,
    })
}

/// A text that is about what is measured.
fn read_of_measured(
    entry: &mut Section<'_>,
    key: &'static str,
    measured: &Measured,
) -> Result<Option<String>, StackError> {
    match (entry.optional(key)?, measured) {
        (Some(_), Measured::Not(_)) => Err(entry.reject(key, "goes with measured only")),
        (text, _) => Ok(text),
    }
}

fn read_contradicted(entry: &mut Section<'_>) -> Result<Option<Contradiction>, StackError> {
    let Some(table) = entry.table("contradicted")? else { return Ok(None) };
    let place = entry.place_of("contradicted").clone();
    let mut section = Section::entry(table, "statement.contradicted", &place);
    let contradiction = Contradiction {
        place: section.required("place")?,
        text: section.required("text")?,
        value: section.required("value")?,
    };
    section.close()?;
    Ok(Some(contradiction))
}

/// Why a variant of the statement's experiment does not have its points or its figure, if one does not.
fn check_variants(statement: &Statement, variants: &[AskedVariant]) -> Result<(), String> {
    let Measured::As(measure) = &statement.measured else { return Ok(()) };
    for AskedVariant { variant, asked } in variants {
        for (_, asked) in asked.iter().filter(|(at, _)| *at == measure.experiment) {
            let of_variant = |why: String| format!("variant \"{}\": {why}", variant.id);
            asked.check_filter(&measure.filter).map_err(of_variant)?;
            asked.check_figure(&measure.metric).map_err(of_variant)?;
        }
    }
    Ok(())
}

/// One of the ways to state a number.
fn read_claim(entry: &mut Section<'_>) -> Result<PublishedValue, StackError> {
    let value = entry.optional("value")?.map(|value| PublishedValue::Readings(vec![value]));
    let values = read_numbers(entry, "values")?.map(PublishedValue::Readings);
    let at_most = entry.optional("at_most")?.map(PublishedValue::AtMost);
    let at_least = entry.optional("at_least")?.map(PublishedValue::AtLeast);
    let between = match read_numbers(entry, "between")?.as_deref() {
        None => None,
        Some([low, high]) if low <= high => Some(PublishedValue::Between(*low, *high)),
        Some(_) => return Err(entry.reject("between", "expected two numbers, the smaller first")),
    };
    let mut all = [value, values, at_most, at_least, between].into_iter().flatten();
    match (all.next(), all.next()) {
        (Some(claim), None) => Ok(claim),
        _ => {
            let rule = "expected one of value, values, at_most, at_least, between";
            Err(entry.reject("value", rule))
        }
    }
}

fn read_numbers(
    entry: &mut Section<'_>,
    key: &'static str,
) -> Result<Option<Vec<f64>>, StackError> {
    let Some(node) = entry.node(key) else { return Ok(None) };
    let numbers: Option<Vec<f64>> = match &node.value {
        Value::Array(nodes) => nodes.iter().map(f64::read).collect(),
        _ => None,
    };
    let numbers = numbers.filter(|numbers| !numbers.is_empty());
    numbers.map(Some).ok_or_else(|| entry.reject(key, "expected a list of numbers"))
}

fn read_tolerance(entry: &mut Section<'_>) -> Result<Tolerance, StackError> {
    let within: f64 = entry.required("within")?;
    let partially: f64 = entry.optional("partially")?.unwrap_or(within);
    let direction = entry.optional("direction")?.unwrap_or(true);
    if within < 0.0 {
        return Err(entry.reject("within", "expected a share, such as 0.1"));
    }
    if partially < within {
        return Err(entry.reject("partially", "expected no less than within"));
    }
    Ok(Tolerance { within, partially, direction })
}

/// `measured`, or why nothing is.
fn read_measured(entry: &mut Section<'_>, asked: &[ReadRequest]) -> Result<Measured, StackError> {
    let table = entry.table("measured")?;
    let place = entry.place_of("measured").clone();
    match (table, entry.optional::<String>("not_measured")?) {
        (Some(table), None) => {
            let mut section = Section::entry(table, "statement.measured", &place);
            section.refuse_renamed(RENAMED)?;
            let measure = read_measure(&mut section, asked)?;
            section.close()?;
            Ok(Measured::As(measure))
        }
        (None, Some(why)) => Ok(Measured::Not(why)),
        _ => {
            Err(entry
                .reject("measured", "expected either measured, or not_measured with the reason"))
        }
    }
}

fn read_measure(section: &mut Section<'_>, all: &[ReadRequest]) -> Result<Measure, StackError> {
    let experiment = experiment(section, all)?;
    let asked = &all[experiment];
    Ok(Measure { experiment, filter: filter(section, asked)?, metric: figure(section, asked)? })
}

/// Assumptions whose experiments know the figure and the points of the statement.
fn read_sensitivity(
    entry: &mut Section<'_>,
    paper: &Paper,
    asked: &[ReadRequest],
    measured: &Measured,
) -> Result<Vec<usize>, StackError> {
    let Some(names) = entry.strings("sensitivity")? else { return Ok(Vec::new()) };
    let Measured::As(measure) = measured else {
        return Err(entry.reject("sensitivity", "what is not measured has no alternatives"));
    };
    let assumption = |(name, place): (String, Place)| {
        let error = |why: String| StackError::new(&place, "statement.sensitivity", why);
        let ids = paper.assumptions.iter().map(|assumption| assumption.id.as_str());
        let at = index_of(&name, ids).map_err(error)?;
        let assumption = &paper.assumptions[at];
        let filter = measure.filter.with(&assumption.axis, &assumption.chosen);
        asked[assumption.experiment].check_filter(&filter).map_err(error)?;
        asked[assumption.experiment].check_figure(&measure.metric).map_err(error)?;
        check_chosen(assumption, measure, asked).map_err(error)?;
        Ok(at)
    };
    names.into_iter().map(assumption).collect()
}

/// Why a statement that is measured in the assumption's own experiment is not measured as chosen, if it is not.
fn check_chosen(
    assumption: &Assumption,
    measure: &Measure,
    asked: &[ReadRequest],
) -> Result<(), String> {
    let ReadRequest { experiment, points, .. } = &asked[measure.experiment];
    let counted = measure.filter.of(points).into_iter().map(|at| points[at].at(&assumption.axis));
    let mut others = counted.filter(|value| !same(value, &assumption.chosen));
    match others.next().filter(|_| assumption.experiment == measure.experiment) {
        None => Ok(()),
        Some(other) => Err(format!(
            "assumption \"{}\" of experiment \"{}\" is {}={}, and the statement is measured at {}",
            assumption.id,
            experiment.id,
            assumption.axis,
            plain(&assumption.chosen),
            plain(other)
        )),
    }
}
