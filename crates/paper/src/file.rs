//! Reading `paper.toml`, and with it the whole folder. Strict, as stack and sweep files are: whatever is
//! wrong is told with file, line, column and key before anything runs.

use crate::library::Files;
use crate::model::{Beyond, Choice, Figure, Form, Paper, Question, Shown};
use crate::published;
use crate::read::{Asked, axis, figure, figures, filter, form, question, read_all};
use crate::text::Text;
use nandscape_lab::stack::StackError;
use nandscape_lab::stack::document::{Table, merge};
use nandscape_lab::stack::reader::Section;
use nandscape_lab::sweep::Sweep;
use nandscape_lab::workload::fio::Environment;
use std::path::Path;

/// Kinds of requests whose latency has a distribution.
const REQUESTS: [&str; 4] = ["read", "write", "trim", "sync"];

impl Paper {
    /// The paper in `folder`; with `quick`, what its questions say for being asked quickly is laid over
    /// their sweeps, and `over` is laid over each of them last.
    ///
    /// # Errors
    /// The first thing wrong with a file of it, and where.
    pub fn load(
        files: Files,
        folder: &Path,
        quick: bool,
        over: &Table,
    ) -> Result<Self, StackError> {
        let text = Text::read(files, folder, "paper.toml")?;
        let (table, place) = (text.table()?, text.start());
        let mut root = Section::root(&table, &place);
        let asked = read_questions(&mut root, files, folder, (quick, over))?;
        let mut paper = Self {
            id: folder.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            title: root.required("title")?,
            authors: root.required("authors")?,
            venue: root.required("venue")?,
            year: root.required("year")?,
            claims: root.required("claims")?,
            questions: Vec::new(),
            figures: read_all(&mut root, "figure", |entry, id| read_figure(entry, id, &asked))?,
            choices: read_all(&mut root, "choice", |entry, id| read_choice(entry, id, &asked))?,
            beyond: read_all(&mut root, "beyond", |entry, id| read_beyond(entry, id, &asked))?,
            statements: Vec::new(),
            notes: Text::read(files, folder, "NOTES.md")?.text,
        };
        root.close()?;
        let published = Text::read(files, folder, "published.toml")?;
        paper.statements = published::read(&published, &paper, &asked)?;
        paper.questions = asked.into_iter().map(|asked| asked.question).collect();
        Ok(paper)
    }
}

fn read_questions(
    root: &mut Section<'_>,
    files: Files,
    folder: &Path,
    (quick, last): (bool, &Table),
) -> Result<Vec<Asked>, StackError> {
    let all = read_all(root, "question", |entry, id| {
        let file: String = entry.required("sweep")?;
        let mut over = entry.table("quick")?.filter(|_| quick).cloned().unwrap_or_default();
        merge(&mut over, last.clone());
        let path = folder.join(&file);
        let text = files.read(&path);
        let text = text.map_err(|why| entry.reject("sweep", format!("{file}: {why}")))?;
        let sweep = Sweep::parse_under(&path.to_string_lossy(), &text, over, &files)?;
        Ok(Asked::new(Question { id, sweep, file }))
    })?;
    match all.is_empty() {
        true => Err(root.reject("question", "is missing; a paper asks something")),
        false => Ok(all),
    }
}

fn read_figure(entry: &mut Section<'_>, id: String, all: &[Asked]) -> Result<Figure, StackError> {
    let question = question(entry, all)?;
    let asked = &all[question];
    let form = form(entry)?;
    let figure = Figure {
        id,
        title: entry.required("title")?,
        question,
        form,
        shows: match form {
            Form::Cdf => Shown::Latency(read_request(entry)?),
            Form::Bars | Form::Lines => Shown::Figure(figure(entry, asked)?),
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
    let text: String = entry.required("shows")?;
    let request = text.strip_prefix("latency_cdf.").filter(|kind| REQUESTS.contains(kind));
    request.map(str::to_owned).ok_or_else(|| {
        let expected = REQUESTS.map(|kind| format!("latency_cdf.{kind}")).join(" | ");
        entry.reject("shows", format!("expected {expected}, found \"{text}\""))
    })
}

fn read_choice(entry: &mut Section<'_>, id: String, all: &[Asked]) -> Result<Choice, StackError> {
    let question = question(entry, all)?;
    let asked = &all[question];
    let axis = axis(entry, "axis", asked)?
        .ok_or_else(|| entry.reject("axis", "is missing; expected the axis of the alternatives"))?;
    let chosen = entry.node("chosen").map(|node| node.value.to_json());
    let chosen = chosen.ok_or_else(|| {
        entry.reject("chosen", "is missing; expected the value of the axis that we chose")
    })?;
    let filter = crate::model::Filter::default().with(&axis, &chosen);
    asked.check_filter(&filter).map_err(|why| entry.reject("chosen", why))?;
    Ok(Choice {
        id,
        title: entry.required("title")?,
        chosen,
        why: entry.required("why")?,
        question,
        axis,
        shows: figures(entry, asked)?,
    })
}

fn read_beyond(entry: &mut Section<'_>, id: String, all: &[Asked]) -> Result<Beyond, StackError> {
    let question = question(entry, all)?;
    let asked = &all[question];
    let form = form(entry)?;
    if form == Form::Cdf {
        return Err(entry.reject("plot", "expected bars | lines"));
    }
    let beyond = Beyond {
        id,
        title: entry.required("title")?,
        says: entry.optional("says")?.unwrap_or_default(),
        question,
        form,
        shows: figures(entry, asked)?,
        x: axis(entry, "x", asked)?,
        color: axis(entry, "color", asked)?,
        filter: filter(entry, asked)?,
    };
    Ok(beyond)
}
