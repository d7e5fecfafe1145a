//! Reading `paper.toml`, and with it the whole folder. Strict, as stack and sweep files are: whatever is
//! wrong is reported with file, line, column and key before anything runs.

use crate::answers::points;
use crate::full::full_sized;
use crate::library::Files;
use crate::model::{Assumption, Experiment, Extension, Figure, Form, Paper, PlotSpec, Size};
use crate::published;
use crate::read::{Manner, ReadRequest, axis, experiment, figure, figures, filter, form, read_all};
use crate::reason::read_reasons;
use crate::stacks::lay;
use crate::text::Text;
use crate::variant::read_variants;
use nandscape_lab::stack::StackError;
use nandscape_lab::stack::document::{Table, Value};
use nandscape_lab::stack::reader::Section;
use nandscape_lab::sweep::Sweep;
use nandscape_lab::workload::fio::Environment;
use nandscape_report::COURSES;
use std::path::Path;

/// Kinds of requests whose latency has a distribution.
const REQUESTS: [&str; 4] = ["read", "write", "trim", "sync"];

impl Paper {
    /// The paper in `folder` at this size; the `quick` or `full` table of each experiment is laid over their
    /// sweeps, and `over` is laid over each of them last. At [`Size::Full`] what has no `full` is left out.
    ///
    /// # Errors
    /// The first thing wrong with a file of it, and where.
    pub fn load(files: Files, folder: &Path, size: Size, over: &Table) -> Result<Self, StackError> {
        let text = Text::read(files, folder, "paper.toml")?;
        let (table, place) = (text.table()?, text.start());
        let mut root = Section::root(&table, &place);
        let manner = Manner { files, size, last: over };
        let asked = read_experiments(&mut root, folder, manner)?;
        let variants = read_variants(&mut root, &asked, manner)?;
        let asked = if size == Size::Full { full_sized(&root, asked, manner)? } else { asked };
        let id = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut paper = Self {
            name: match files {
                Files::Shipped => id.clone(),
                Files::Host => folder.to_string_lossy().into_owned(),
            },
            id,
            title: root.required("title")?,
            authors: root.required("authors")?,
            venue: root.required("venue")?,
            year: root.required("year")?,
            claims: root.required("claims")?,
            caution: root.optional("quick_caution")?.filter(|_: &String| size == Size::Quick),
            one_seed_decides: size != Size::Quick,
            experiments: Vec::new(),
            figures: read_all(&mut root, "figure", |entry, id| read_figure(entry, id, &asked))?,
            assumptions: read_all(&mut root, "assumption", |entry, id| {
                read_assumption(entry, id, &asked)
            })?,
            extensions: read_all(&mut root, "extension", |entry, id| {
                read_extension(entry, id, &asked)
            })?,
            variants: Vec::new(),
            statements: Vec::new(),
            reasons: Vec::new(),
            notes: Text::read(files, folder, "NOTES.md")?.text,
        };
        let published = Text::read(files, folder, "published.toml")?;
        paper.statements = published::read(&published, &paper, &asked, &variants)?;
        paper.reasons = read_reasons(&mut root, &paper, &asked, &variants)?;
        root.close()?;
        paper.variants = variants.into_iter().map(|asked| asked.variant).collect();
        paper.experiments = asked.into_iter().map(|asked| asked.experiment).collect();
        if size == Size::Full {
            paper.leave_full();
        }
        Ok(paper)
    }
}

fn read_experiments(
    root: &mut Section<'_>,
    folder: &Path,
    manner: Manner<'_>,
) -> Result<Vec<ReadRequest>, StackError> {
    let Manner { files, size, last } = manner;
    let all = read_all(root, "experiment", |entry, id| {
        let file: String = entry.required("sweep")?;
        let changes = entry.table("quick")?.cloned().unwrap_or_default();
        let full = entry.table("full")?.cloned();
        let scales = read_scales(entry)?;
        let path = folder.join(&file);
        let text = files.read(&path);
        let text = text.map_err(|why| entry.reject("sweep", format!("{file}: {why}")))?;
        let sweep = Sweep::parse_under(&path.to_string_lossy(), &text, last.clone(), &files)?;
        let asked = ReadRequest {
            points: points(&sweep),
            experiment: Experiment { id, sweep, file, full: full.is_some() },
            path,
            text,
            quick: changes,
            full,
            scales,
        };
        Ok(match size {
            Size::Quick => asked.under(lay(&asked, asked.quick.clone(), manner)?),
            Size::Plain | Size::Full => asked,
        })
    })?;
    match all.is_empty() {
        true => Err(root.reject("experiment", "is missing; a paper has at least one")),
        false => Ok(all),
    }
}

/// Tables by name, each laid over the sweep file by variants of that scale.
fn read_scales(entry: &mut Section<'_>) -> Result<Table, StackError> {
    let scales = entry.table("scale")?.cloned().unwrap_or_default();
    match scales.iter().find(|(_, node)| !matches!(node.value, Value::Table(_))) {
        None => Ok(scales),
        Some((name, node)) => {
            let why = format!("expected a table of changes under {name}");
            Err(StackError::new(&node.place, "experiment.scale", why))
        }
    }
}

fn read_figure(
    entry: &mut Section<'_>,
    id: String,
    all: &[ReadRequest],
) -> Result<Figure, StackError> {
    let experiment = experiment(entry, all)?;
    let asked = &all[experiment];
    let form = form(entry)?;
    let figure = Figure {
        id,
        title: entry.required("title")?,
        experiment,
        form,
        metric: match form {
            Form::Cdf => PlotSpec::Latency(read_request(entry)?),
            Form::Time => PlotSpec::Course(read_course(entry)?),
            Form::Bars | Form::Lines => PlotSpec::Figure(figure(entry, asked)?),
        },
        x: axis(entry, "x", asked)?,
        color: axis(entry, "color", asked)?,
        filter: filter(entry, asked)?,
    };
    check_across(entry, form, figure.x.as_deref())?;
    Ok(figure)
}

/// Bars and lines stand along an axis.
fn check_across(entry: &Section<'_>, form: Form, x: Option<&str>) -> Result<(), StackError> {
    match (form, x) {
        (Form::Bars | Form::Lines, None) => {
            Err(entry.reject("x", "is missing; expected the axis that lies across"))
        }
        _ => Ok(()),
    }
}

fn read_request(entry: &mut Section<'_>) -> Result<String, StackError> {
    let text: String = entry.required("metric")?;
    let request = text.strip_prefix("latency_cdf.").filter(|kind| REQUESTS.contains(kind));
    request.map(str::to_owned).ok_or_else(|| {
        let expected = REQUESTS.map(|kind| format!("latency_cdf.{kind}")).join(" | ");
        entry.reject("metric", format!("expected {expected}, found \"{text}\""))
    })
}

fn read_course(entry: &mut Section<'_>) -> Result<&'static str, StackError> {
    let text: String = entry.required("metric")?;
    let key = text.strip_prefix("series.");
    COURSES.into_iter().find(|course| key == Some(course)).ok_or_else(|| {
        let expected = COURSES.map(|course| format!("series.{course}")).join(" | ");
        entry.reject("metric", format!("expected {expected}, found \"{text}\""))
    })
}

fn read_assumption(
    entry: &mut Section<'_>,
    id: String,
    all: &[ReadRequest],
) -> Result<Assumption, StackError> {
    let experiment = experiment(entry, all)?;
    let asked = &all[experiment];
    let axis = axis(entry, "axis", asked)?
        .ok_or_else(|| entry.reject("axis", "is missing; expected the axis of the alternatives"))?;
    let chosen = entry.node("chosen").map(|node| node.value.to_json());
    let chosen = chosen.ok_or_else(|| {
        entry.reject("chosen", "is missing; expected the value of the axis that we chose")
    })?;
    let filter = crate::model::Filter::default().with(&axis, &chosen);
    asked.check_filter(&filter).map_err(|why| entry.reject("chosen", why))?;
    Ok(Assumption {
        id,
        title: entry.required("title")?,
        chosen,
        why: entry.required("why")?,
        experiment,
        axis,
        metric: figures(entry, asked)?,
    })
}

fn read_extension(
    entry: &mut Section<'_>,
    id: String,
    all: &[ReadRequest],
) -> Result<Extension, StackError> {
    let experiment = experiment(entry, all)?;
    let asked = &all[experiment];
    let form = form(entry)?;
    if matches!(form, Form::Cdf | Form::Time) {
        return Err(entry.reject("plot", "expected bars | lines"));
    }
    let extension = Extension {
        id,
        title: entry.required("title")?,
        text: entry.optional("text")?.unwrap_or_default(),
        experiment,
        form,
        metric: figures(entry, asked)?,
        x: axis(entry, "x", asked)?,
        color: axis(entry, "color", asked)?,
        filter: filter(entry, asked)?,
    };
    Ok(extension)
}
