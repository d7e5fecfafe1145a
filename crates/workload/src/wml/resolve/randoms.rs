//! Random variables, from their attributes.

use super::values::{Given, Scope};
use crate::wml::error::WmlError;
use crate::wml::random::{CUSTOM, Law, Random, TABLE_ROWS};
use crate::wml::syntax::{Attributes, ValueKind};
use nandscape_rt::dist::BadParameter;
use std::sync::Arc;

/// Attributes of a `randvar`.
const RANDVAR: [&str; 9] =
    ["name", "type", "seed", "randsrc", "gamma", "mean", "min", "round", "randtable"];
/// Attributes of a `cvar`.
const CVAR: [&str; 5] = ["type", "parameters", "min", "max", "round"];
/// Kinds of `randvar`.
const KINDS: [&str; 3] = ["uniform", "gamma", "tabular"];
/// Thousandths of the gamma parameter when nothing is said.
const GAMMA_DEFAULT: u64 = 1500;

fn bad(given: &Given<'_>, attribute: &str, why: &BadParameter) -> WmlError {
    given.error(given.place(attribute), why.to_string())
}

/// `randvar(…)`, and the name in it, which only `define randvar` has.
pub(super) fn randvar(
    scope: Scope<'_>,
    attributes: &Attributes,
) -> Result<(Option<String>, Arc<Random>), WmlError> {
    let given = Given::new(scope, "a randvar", attributes, &RANDVAR, false)?;
    let table = given.find("randtable").is_some();
    let kind =
        given.text("type")?.unwrap_or_else(|| if table { "tabular" } else { "gamma" }.into());
    let min = given.fixed_or("min", 0)? as f64;
    let gamma = given.fixed_or("gamma", GAMMA_DEFAULT)? as f64 / 1000.0;
    let mean = given.value("mean")?.map(|value| scope.fixed(value)).transpose()?;
    let mean = mean.filter(|mean| *mean > 0).map(|mean| mean as f64);
    if table != (kind == "tabular") {
        return Err(given.error(given.place("type"), "a randtable goes with type=tabular only"));
    }
    let (law, mean) = match kind.as_str() {
        "uniform" => (Law::Uniform(0.0, 2.0), mean.unwrap_or(0.0)),
        "tabular" => {
            let (law, own) = Law::unit_table(&rows(&given)?);
            (law, mean.unwrap_or(own))
        }
        "gamma" => {
            let law = Law::unit_gamma(gamma).map_err(|why| bad(&given, "gamma", &why))?;
            (law, mean.unwrap_or(gamma))
        }
        other => {
            let at = given.place("type");
            return Err(scope.source.unknown(at, "no kind of randvar", other, KINDS.into_iter()));
        }
    };
    if mean < min {
        return Err(given.error(given.place("mean"), "the mean must not be below min"));
    }
    let round = given.fixed_or("round", 0)? as f64;
    let limits = (f64::MIN, f64::MAX);
    let name = given.value("name")?.map(|value| match &value.kind {
        ValueKind::Variable(name) => Ok(name.clone()),
        _ => Err(given.error(value.at, "expected a variable such as $size")),
    });
    Ok((name.transpose()?, Arc::new(Random { law, stretch: Some((min, mean)), round, limits })))
}

/// The rows of a table: percent, from, to.
fn rows(given: &Given<'_>) -> Result<Vec<(usize, f64, f64)>, WmlError> {
    let value = given.required("randtable")?;
    let ValueKind::Table(rows) = &value.kind else {
        return Err(given.error(value.at, "expected a table: {{percent, from, to}, …}"));
    };
    let mut read = Vec::new();
    let mut sum: usize = 0;
    for [share, from, to] in rows {
        let (percent, low) = (given.scope.fixed(share)?, given.scope.fixed(from)?);
        let high = given.scope.fixed(to)?;
        if high < low {
            return Err(given.error(to.at, "a stretch must not end before it begins"));
        }
        let percent = percent.min(1 + TABLE_ROWS as u64) as usize;
        sum = sum.saturating_add(percent);
        if sum > TABLE_ROWS {
            return Err(given.error(share.at, "the percentages of the table exceed 100"));
        }
        read.push((percent, low as f64, high as f64));
    }
    if sum != TABLE_ROWS {
        let problem = format!("the percentages of the table add up to {sum}, not to 100");
        return Err(given.error(value.at, problem));
    }
    Ok(read)
}

/// `cvar(…)`
pub(super) fn cvar(scope: Scope<'_>, attributes: &Attributes) -> Result<Arc<Random>, WmlError> {
    let given = Given::new(scope, "a cvar", attributes, &CVAR, false)?;
    let library = given.required_text("type")?;
    let Some((_, known)) = CUSTOM.iter().find(|(name, _)| *name == library) else {
        let names = CUSTOM.iter().map(|(name, _)| *name);
        return Err(scope.source.unknown(given.place("type"), "no cvar", &library, names));
    };
    let parameters = parameters(&given, known)?;
    let law = Law::custom(&library, &parameters).map_err(|why| bad(&given, "parameters", &why))?;
    let round = given.fixed_or("round", 0)? as f64;
    let limits = (given.fixed_or("min", 0)? as f64, given.fixed_or("max", u64::MAX)? as f64);
    if limits.0 > limits.1 {
        return Err(given.error(given.place("max"), "max must not be below min"));
    }
    Ok(Arc::new(Random { law, stretch: None, round, limits }))
}

/// `name:number;name:number`, in the order of `known`.
fn parameters(given: &Given<'_>, known: &[(&str, f64)]) -> Result<Vec<f64>, WmlError> {
    let mut values: Vec<f64> = known.iter().map(|(_, default)| *default).collect();
    let text = given.text("parameters")?.unwrap_or_default();
    let at = given.place("parameters");
    for part in text.split(';').filter(|part| !part.is_empty()) {
        let (name, number) = part.split_once(':').unwrap_or((part, ""));
        let Some(index) = known.iter().position(|(known, _)| *known == name) else {
            let names = known.iter().map(|(name, _)| *name);
            return Err(given.scope.source.unknown(at, "no parameter", name, names));
        };
        let number = number.parse::<f64>().ok().filter(|number| number.is_finite());
        values[index] = number
            .ok_or_else(|| given.error(at, format!("expected {name}:NUMBER, found \"{part}\"")))?;
    }
    Ok(values)
}
