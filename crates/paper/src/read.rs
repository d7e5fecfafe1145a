//! What the readers of both files share: names that must be known, figures that must fit their experiment,
//! and points that must be there.

use crate::answers::points;
use crate::library::Files;
use crate::model::{Experiment, Filter, Form, Size, same};
use nandscape_lab::stack::document::{Node, Table, Value};
use nandscape_lab::stack::reader::Section;
use nandscape_lab::stack::{Place, StackError};
use nandscape_lab::sweep::Sweep;
use nandscape_report::{Column, Figure, Point, plain, values};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// How sweeps are read: at which size, and under what the command line sets.
#[derive(Clone, Copy)]
pub(crate) struct Manner<'a> {
    pub(crate) files: Files,
    pub(crate) size: Size,
    pub(crate) last: &'a Table,
}

/// Keys of both files that had another name in earlier versions, and their names now.
pub(crate) const RENAMED: &[(&str, &str)] = &[
    ("question", "experiment"),
    ("choice", "assumption"),
    ("beyond", "extension"),
    ("says", "text"),
    ("shows", "metric"),
    ("across", "sensitivity"),
    ("partly", "partially"),
    ("unmeasured", "not_measured"),
];

/// An experiment with the points of its sweep, and what other sweeps of the same file are read from.
pub(crate) struct ReadRequest {
    pub(crate) experiment: Experiment,
    pub(crate) points: Vec<Point>,
    /// The sweep file.
    pub(crate) path: PathBuf,
    pub(crate) text: String,
    /// What `--quick` lays over it.
    pub(crate) quick: Table,
    /// What `--full` lays over it, if it runs then.
    pub(crate) full: Option<Table>,
    /// Other sizes of its load, by name: what each lays over it.
    pub(crate) scales: Table,
}

impl ReadRequest {
    /// The same experiment with another sweep of its file.
    pub(crate) fn under(&self, sweep: Sweep) -> Self {
        let Experiment { id, file, full, .. } = self.experiment.clone();
        Self {
            points: points(&sweep),
            experiment: Experiment { id, file, full, sweep },
            path: self.path.clone(),
            text: self.text.clone(),
            quick: self.quick.clone(),
            full: self.full.clone(),
            scales: self.scales.clone(),
        }
    }

    /// The values of an axis that points name, each once.
    fn values(&self, axis: &str) -> Vec<&serde_json::Value> {
        let values = values(&self.points, axis).into_iter();
        values.filter(|value| !value.is_null()).collect()
    }

    /// Whether its grid has this key, as one value or as several that are set together.
    pub(crate) fn has_axis(&self, key: &str) -> bool {
        let together = format!("{key}.");
        let keys = self.experiment.sweep.cases.first().map(|case| case.keys.as_slice());
        keys.unwrap_or_default().iter().any(|(name, _)| name == key || name.starts_with(&together))
    }

    /// Why there is no such axis, if there is none.
    pub(crate) fn check_axis(&self, axis: &str) -> Result<(), String> {
        match self.values(axis).is_empty() {
            false => Ok(()),
            true => Err(format!("experiment \"{}\" has no axis \"{axis}\"", self.experiment.id)),
        }
    }

    /// Why the filter leaves no point, if it leaves none.
    pub(crate) fn check_filter(&self, filter: &Filter) -> Result<(), String> {
        for (axis, wanted) in &filter.0 {
            self.check_axis(axis)?;
            let values = self.values(axis);
            let missing = wanted.iter().find(|one| !values.iter().any(|value| same(value, one)));
            if let Some(missing) = missing {
                let known = values.into_iter().map(plain).collect::<Vec<_>>().join(", ");
                let (id, missing) = (&self.experiment.id, plain(missing));
                return Err(format!("experiment \"{id}\" has no {axis}={missing}; it has {known}"));
            }
        }
        match self.points.iter().any(|point| filter.holds(point)) {
            true => Ok(()),
            false => {
                Err(format!("no point of experiment \"{}\" has all of these", self.experiment.id))
            }
        }
    }

    /// Why no result has the figure, or the experiment does not, if that is so.
    pub(crate) fn check_figure(&self, figure: &Figure) -> Result<(), String> {
        figure.check().map_err(|why| why.to_string())?;
        let id = &self.experiment.id;
        let column = Column::new(figure.clone(), &self.points);
        column.map(drop).map_err(|why| format!("experiment \"{id}\": {why}"))
    }
}

/// The index of what `key` names among `names`.
pub(crate) fn named<'n>(
    section: &mut Section<'_>,
    key: &'static str,
    names: impl Iterator<Item = &'n str> + Clone,
) -> Result<Option<usize>, StackError> {
    let Some(name) = section.optional::<String>(key)? else { return Ok(None) };
    index_of(&name, names).map(Some).map_err(|why| section.reject(key, why))
}

/// The index of `name` among `names`.
pub(crate) fn index_of<'n>(
    name: &str,
    mut names: impl Iterator<Item = &'n str> + Clone,
) -> Result<usize, String> {
    let known = names.clone();
    names.position(|other| other == name).ok_or_else(|| {
        let known = known.collect::<Vec<_>>().join(", ");
        format!("there is no \"{name}\"; there are: {known}")
    })
}

/// The index of the experiment under `experiment`, which must be given.
pub(crate) fn experiment(
    section: &mut Section<'_>,
    asked: &[ReadRequest],
) -> Result<usize, StackError> {
    let names = asked.iter().map(|asked| asked.experiment.id.as_str());
    named(section, "experiment", names)?
        .ok_or_else(|| section.reject("experiment", "is missing; expected the id of an experiment"))
}

/// The figures under `metric`, all of which fit the experiment.
pub(crate) fn figures(
    section: &mut Section<'_>,
    asked: &ReadRequest,
) -> Result<Vec<Figure>, StackError> {
    let Some(texts) = section.strings("metric")? else {
        return Err(section.reject("metric", "is missing; expected a figure, such as \"waf.gc\""));
    };
    let figure = |(text, place): (String, Place)| {
        let error = |why: String| StackError::new(&place, "metric", why);
        let figure: Figure = text.parse().map_err(|why| error(format!("{why}")))?;
        asked.check_figure(&figure).map_err(error)?;
        Ok(figure)
    };
    texts.into_iter().map(figure).collect()
}

/// The one figure under `metric`.
pub(crate) fn figure(section: &mut Section<'_>, asked: &ReadRequest) -> Result<Figure, StackError> {
    let mut all = figures(section, asked)?.into_iter();
    match (all.next(), all.next()) {
        (Some(figure), None) => Ok(figure),
        _ => Err(section.reject("metric", "expected one figure")),
    }
}

/// The form under `plot`.
pub(crate) fn form(section: &mut Section<'_>) -> Result<Form, StackError> {
    let word: String = section.required("plot")?;
    match word.as_str() {
        "bars" => Ok(Form::Bars),
        "lines" => Ok(Form::Lines),
        "cdf" => Ok(Form::Cdf),
        "time" => Ok(Form::Time),
        _ => {
            let why = format!("expected bars | lines | cdf | time, found \"{word}\"");
            Err(section.reject("plot", why))
        }
    }
}

/// The axis under `key`, which the experiment has.
pub(crate) fn axis(
    section: &mut Section<'_>,
    key: &'static str,
    asked: &ReadRequest,
) -> Result<Option<String>, StackError> {
    let Some(axis) = section.optional::<String>(key)? else { return Ok(None) };
    asked.check_axis(&axis).map_err(|why| section.reject(key, why))?;
    Ok(Some(axis))
}

/// The points under `where`, of which the experiment has some.
pub(crate) fn filter(section: &mut Section<'_>, asked: &ReadRequest) -> Result<Filter, StackError> {
    let mut filter = Filter::default();
    if let Some(table) = section.table("where")? {
        add(table, "", &mut filter)?;
    }
    asked.check_filter(&filter).map_err(|why| section.reject("where", why))?;
    Ok(filter)
}

/// Axes may be named in one piece or as tables; a list holds values of which any will do.
fn add(table: &Table, above: &str, filter: &mut Filter) -> Result<(), StackError> {
    for (name, node) in table {
        let axis = if above.is_empty() { name.clone() } else { format!("{above}.{name}") };
        match &node.value {
            Value::Table(below) => add(below, &axis, filter)?,
            Value::Array(nodes) => {
                let values = nodes.iter().map(|node| value(node, &axis));
                filter.0.push((axis.clone(), values.collect::<Result<_, _>>()?));
            }
            _ => filter.0.push((axis.clone(), vec![value(node, &axis)?])),
        }
    }
    Ok(())
}

fn value(node: &Node, axis: &str) -> Result<serde_json::Value, StackError> {
    match &node.value {
        Value::Array(_) | Value::Table(_) | Value::Datetime => {
            let message = format!("expected a value of {axis}, found {}", node.value.describe());
            Err(StackError::new(&node.place, "where", message))
        }
        value => Ok(value.to_json()),
    }
}

/// What `read` makes of each of the tables under `key` and its id, which no two of them share.
pub(crate) fn read_all<T>(
    root: &mut Section<'_>,
    key: &'static str,
    read: impl Fn(&mut Section<'_>, String) -> Result<T, StackError>,
) -> Result<Vec<T>, StackError> {
    root.refuse_renamed(RENAMED)?;
    let mut ids = BTreeSet::new();
    let mut all = Vec::new();
    for mut entry in root.entries(key)? {
        entry.refuse_renamed(RENAMED)?;
        let id: String = entry.required("id")?;
        if !ids.insert(id.clone()) {
            return Err(entry.reject("id", format!("\"{id}\" is there twice")));
        }
        all.push(read(&mut entry, id)?);
        entry.close()?;
    }
    Ok(all)
}
