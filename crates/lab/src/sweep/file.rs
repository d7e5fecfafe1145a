//! The grammar of sweep files (docs/formats/sweep.md). Strict, and with the reader of stack files: a
//! value of the grid is laid over a stack together with its place, so that whatever is wrong with it
//! there is reported with file, line and column of the sweep.

use super::question::read_lines;
use super::vars::{JobText, Readers, TABLE, Vars};
use super::{Base, Case, Job, Named, Report, Sweep};
use crate::run::UntilSteady;
use crate::stack::document::{Node, Table, Value, merge, nest, parse};
use crate::stack::reader::Section;
use crate::stack::{DEFAULT, Place, Stack, StackError};
use nandscape_workload::fio::{Environment, Runtime};
use serde_json::Value as Json;
use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};
use std::path::Path;
use std::sync::Arc;

/// A key of the grid with its values.
struct Axis<'a> {
    /// Dotted.
    key: String,
    place: &'a Place,
    values: &'a [Node],
}

/// Reads a sweep from `text` with `over` laid over it; the files that it names are in the folder of
/// `file`.
pub(super) fn read(
    file: &str,
    text: &str,
    over: Table,
    environment: &dyn Environment,
) -> Result<Sweep, StackError> {
    let path = Path::new(file);
    let files = Files { folder: path.parent().unwrap_or(Path::new("")), environment };
    let file: Arc<str> = file.into();
    let mut table = parse(&file, text)?;
    merge(&mut table, over);
    let place = Place::of(&file, "", 0);
    let mut root = Section::root(&table, &place);
    let stem = || path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let name = root.optional("name")?.unwrap_or_else(stem);
    let bases = read_stacks(&mut root, &files)?;
    let jobs = read_jobs(&mut root, &files)?;
    let seeds = read_seeds(&mut root)?;
    let (report, lines) = (read_report(&mut root)?, read_lines(&mut root)?);
    let (until_steady, runtime) = (read_until_steady(&mut root)?, read_runtime(&mut root)?);
    if until_steady.is_some() && runtime.is_some() {
        return Err(root
            .reject("runtime", "does not go with until_steady, which defines how long jobs run"));
    }
    let session = root.optional("session")?.unwrap_or(false).then(|| name.clone());
    if session.is_some() && until_steady.is_some() {
        return Err(root.reject("session", "does not go with until_steady"));
    }
    let jobs = Jobs { sources: &jobs, runtime, session, files: &files };
    let set = root.table("set")?;
    let axes = read_axes(root.table("grid")?)?;
    let place = root.node("grid").map_or(&place, |node| &node.key_place).clone();
    root.close()?;
    let (mut cases, remarks) = cases(bases, &jobs, set, &axes, &place)?;
    cases.iter_mut().for_each(|case| case.until_steady = until_steady);
    Sweep { name, cases, seeds, report, lines, remarks }.checked(&place, "grid")
}

/// Where the files that a sweep names are found.
struct Files<'a> {
    folder: &'a Path,
    environment: &'a dyn Environment,
}

fn read_stacks(root: &mut Section<'_>, files: &Files<'_>) -> Result<Vec<Base>, StackError> {
    let load =
        |(name, place): (String, Place)| Base::load(&name, files.folder, files.environment, &place);
    match root.strings("stacks")? {
        Some(names) => names.into_iter().map(load).collect(),
        None => Ok(vec![Base::load(
            DEFAULT,
            files.folder,
            files.environment,
            &Place::Argument("stack"),
        )?]),
    }
}

/// A job as the sweep names it.
enum JobSource {
    /// Its text is known.
    Text(JobText),
    /// The file's name holds variables.
    Named(String, Place),
}

impl JobSource {
    fn file(name: String, place: Place, files: &Files<'_>) -> Result<Self, StackError> {
        match name.contains("${") {
            true => Ok(Self::Named(name, place)),
            false => file_job(&name, &place, files).map(Self::Text),
        }
    }
}

/// A list of job files, or a table of names and job texts.
fn read_jobs(root: &mut Section<'_>, files: &Files<'_>) -> Result<Vec<JobSource>, StackError> {
    let node = root.node("jobs").ok_or_else(|| {
        root.reject("jobs", "is missing; expected a list of job files, or a table of job texts")
    })?;
    if let Value::Table(table) = &node.value {
        let texts = in_file_order(table);
        let text = |(name, node): (&String, &Node)| inline_job(name, node, files);
        return texts.into_iter().map(|job| text(job).map(JobSource::Text)).collect();
    }
    let names = root.strings("jobs")?.unwrap_or_default();
    names.into_iter().map(|(name, place)| JobSource::file(name, place, files)).collect()
}

fn inline_job(name: &str, node: &Node, files: &Files<'_>) -> Result<JobText, StackError> {
    let key = format!("jobs.{name}");
    let Value::String(text) = &node.value else {
        let message = format!("expected the text of a job, found {}", node.value.describe());
        return Err(StackError::new(&node.place, key, message));
    };
    // A separate kind of path, so that includes are found and lines are those of the text.
    let path = files.folder.join(format!("{key} (inline)"));
    let path = path.to_string_lossy().into_owned();
    Ok(JobText { name: name.to_owned(), text: text.clone(), path, place: node.place.clone(), key })
}

fn file_job(name: &str, place: &Place, files: &Files<'_>) -> Result<JobText, StackError> {
    let path = files.folder.join(name);
    let error = |message: String| StackError::new(place, "jobs", message);
    let text = files.environment.read(&path);
    let text = text.map_err(|why| error(format!("cannot read {}: {why}", path.display())))?;
    let path = path.to_string_lossy().into_owned();
    Ok(JobText { name: name.to_owned(), text, path, place: place.clone(), key: "jobs".to_owned() })
}

/// A number of seeds, counted from 1, or a list of them.
fn read_seeds(root: &mut Section<'_>) -> Result<Vec<u64>, StackError> {
    let whole = |node: &Node| match node.value {
        Value::Integer(number) => u64::try_from(number).ok(),
        _ => None,
    };
    let seeds = match root.node("seeds") {
        None => Some(vec![1]),
        Some(node) => match &node.value {
            Value::Array(list) => list.iter().map(whole).collect(),
            _ => whole(node).filter(|n| *n <= super::RUNS_MAX as u64).map(|n| (1..=n).collect()),
        },
    };
    let distinct = |seeds: &Vec<u64>| seeds.iter().collect::<BTreeSet<_>>().len() == seeds.len();
    seeds.filter(|seeds| !seeds.is_empty() && distinct(seeds)).ok_or_else(|| {
        let most = super::RUNS_MAX;
        let rule = format!("expected how many (1 to {most}), or a list of seeds, none twice");
        root.reject("seeds", rule)
    })
}

fn read_report(root: &mut Section<'_>) -> Result<Report, StackError> {
    let named = |(text, place)| Named { text, place, key: "report" };
    let chosen = root.strings("report")?;
    Ok(chosen.map_or(Report::Usual, |all| Report::Chosen(all.into_iter().map(named).collect())))
}

/// `true`, or what a round is and how many there may be.
fn read_until_steady(root: &mut Section<'_>) -> Result<Option<UntilSteady>, StackError> {
    match root.node("until_steady").map(|node| &node.value) {
        None | Some(Value::Boolean(false)) => Ok(None),
        Some(Value::Boolean(true)) => Ok(Some(UntilSteady::default())),
        Some(Value::String(text)) => {
            text.parse().map(Some).map_err(|why: String| root.reject("until_steady", why))
        }
        Some(other) => {
            let found = other.describe();
            let why = format!("expected true, false or text such as \"round=25%\", found {found}");
            Err(root.reject("until_steady", why))
        }
    }
}

/// How long every job runs, as fio reads it.
fn read_runtime(root: &mut Section<'_>) -> Result<Option<Runtime>, StackError> {
    let text = match root.node("runtime").map(|node| &node.value) {
        None => return Ok(None),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.describe(),
    };
    let refuse = |why| root.reject("runtime", format!("{why}; found {text}"));
    text.parse().map(Some).map_err(refuse)
}

/// The keys of the grid, in the order in which they stand in the file.
fn read_axes(grid: Option<&Table>) -> Result<Vec<Axis<'_>>, StackError> {
    let mut axes = Vec::new();
    if let Some(grid) = grid {
        add_axes(grid, "", &mut axes)?;
    }
    Ok(axes)
}

fn add_axes<'a>(table: &'a Table, above: &str, axes: &mut Vec<Axis<'a>>) -> Result<(), StackError> {
    for (name, node) in in_file_order(table) {
        let key = if above.is_empty() { name.clone() } else { format!("{above}.{name}") };
        match &node.value {
            Value::Table(below) => add_axes(below, &key, axes)?,
            Value::Array(values) if !values.is_empty() => {
                axes.push(Axis { key, place: &node.key_place, values });
            }
            other => {
                let message = format!(
                    "expected a list of values, found {}; what is the same everywhere belongs in [set]",
                    other.describe()
                );
                return Err(StackError::new(&node.place, format!("grid.{key}"), message));
            }
        }
    }
    Ok(())
}

fn in_file_order(table: &Table) -> Vec<(&String, &Node)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(_, node)| match node.key_place {
        Place::File { line, column, .. } => (line, column),
        Place::Set(_) | Place::Argument(_) => (0, 0),
    });
    entries
}

/// What runs at each point, and how it is read.
struct Jobs<'a> {
    sources: &'a [JobSource],
    /// How long each of them runs, if the sweep says so.
    runtime: Option<Runtime>,
    /// The name of the session that they are together, if they are one.
    session: Option<String>,
    files: &'a Files<'a>,
}

impl Jobs<'_> {
    /// How many jobs each point has.
    const fn len(&self) -> usize {
        if self.session.is_some() { 1 } else { self.sources.len() }
    }

    /// The jobs with these variables.
    fn read(&self, vars: &Vars, readers: &mut Readers) -> Result<Vec<Arc<Job>>, StackError> {
        let parse = |source: &JobSource| self.read_one(source, vars, readers).map(Arc::new);
        let jobs: Vec<Arc<Job>> = self.sources.iter().map(parse).collect::<Result<_, _>>()?;
        Ok(match &self.session {
            Some(name) => vec![Arc::new(Job::session(name, &jobs))],
            None => jobs,
        })
    }

    fn read_one(
        &self,
        source: &JobSource,
        vars: &Vars,
        readers: &mut Readers,
    ) -> Result<Job, StackError> {
        let (environment, runtime) = (self.files.environment, self.runtime);
        match source {
            JobSource::Text(text) => text.parse(vars, environment, readers, runtime),
            JobSource::Named(name, place) => {
                let name = vars.file_name(name, readers);
                let name = name.map_err(|why| StackError::new(place, "jobs", why))?;
                file_job(&name, place, self.files)?.parse(vars, environment, readers, runtime)
            }
        }
    }
}

/// A point of the grid before its stack is resolved.
type Point = (Base, Vec<(String, Json)>);

/// Every combination: stacks slowest, then jobs, then the keys of the grid; and the notices about
/// them. A job is read once for each set of variables.
fn cases(
    bases: Vec<Base>,
    jobs: &Jobs<'_>,
    set: Option<&Table>,
    axes: &[Axis<'_>],
    place: &Place,
) -> Result<(Vec<Case>, Vec<String>), StackError> {
    let lengths = axes.iter().map(|axis| axis.values.len()).chain([bases.len(), jobs.len()]);
    let count = lengths.into_iter().try_fold(1_usize, usize::checked_mul);
    if count.is_none_or(|count| count > super::RUNS_MAX) {
        let message = format!("more than {} points", super::RUNS_MAX);
        return Err(StackError::new(place, "grid", message));
    }
    let (mut cases, mut readers) = (Vec::new(), Readers::default());
    let mut given = BTreeSet::new();
    for mut base in bases {
        merge(&mut base.table, set.cloned().unwrap_or_default());
        let points = axes.iter().fold(vec![(base, Vec::new())], cross);
        let resolved = points.into_iter().map(resolve).collect::<Result<Vec<_>, _>>()?;
        let mut read = BTreeMap::new();
        for case in &resolved {
            if let Entry::Vacant(new) = read.entry(&case.vars) {
                new.insert(jobs.read(&case.vars, &mut readers)?);
            }
        }
        let of_job = |job: usize| {
            let read = &read;
            resolved.iter().map(move |case| case.under(&read[&case.vars][job]))
        };
        cases.extend((0..jobs.len()).flat_map(of_job));
        resolved.iter().for_each(|case| readers.add_stack(&case.stack_name, &case.vars));
        given.extend(resolved.into_iter().map(|case| case.vars));
    }
    match given.iter().find_map(|vars| readers.unread(vars)) {
        Some(name) => Err(unread(name, set, place)),
        None => Ok((cases, readers.remarks())),
    }
}

/// The error that nothing reads a variable, at its place if it is in `[set]`.
fn unread(name: &str, set: Option<&Table>, place: &Place) -> StackError {
    let node = set.and_then(|set| match &set.get(TABLE)?.value {
        Value::Table(vars) => vars.get(name),
        _ => None,
    });
    let place = node.map_or(place, |node| &node.key_place);
    let why =
        format!("no job and no key of a stack names ${{{name}}}, and no workload sets ${name}");
    StackError::new(place, format!("var.{name}"), why)
}

/// Every point with every value of `axis`, the values fastest.
fn cross(points: Vec<Point>, axis: &Axis<'_>) -> Vec<Point> {
    let mut crossed = Vec::with_capacity(points.len() * axis.values.len());
    for (base, keys) in &points {
        for value in axis.values {
            let (mut base, mut keys) = (base.clone(), keys.clone());
            let leaf = Node { key_place: axis.place.clone(), ..value.clone() };
            merge(&mut base.table, nest(&axis.key, leaf));
            add_keys(&axis.key, &value.value, &mut keys);
            crossed.push((base, keys));
        }
    }
    crossed
}

/// What a value of the grid sets, as rows show it; a table sets several keys at once.
fn add_keys(key: &str, value: &Value, keys: &mut Vec<(String, Json)>) {
    match value {
        Value::Table(table) => {
            for (name, node) in in_file_order(table) {
                add_keys(&format!("{key}.{name}"), &node.value, keys);
            }
        }
        _ => keys.push((key.to_owned(), value.to_json())),
    }
}

/// A point of the grid without its job.
struct Resolved {
    stack_name: String,
    keys: Vec<(String, Json)>,
    stack: Stack,
    vars: Vars,
}

impl Resolved {
    fn under(&self, job: &Arc<Job>) -> Case {
        Case {
            stack_name: self.stack_name.clone(),
            keys: self.keys.clone(),
            stack: self.stack.clone(),
            job: Arc::clone(job),
            until_steady: None,
        }
    }
}

fn resolve((mut base, keys): Point) -> Result<Resolved, StackError> {
    let vars = Vars::take_from(&mut base.table)?;
    let stack = Stack::from_table(&base.table, &base.place)?;
    Ok(Resolved { stack_name: base.name, keys, stack, vars })
}
