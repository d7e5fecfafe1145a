//! Reasons for verdicts that are not "agrees": a sentence with figures of this reproduction beside it, and the
//! command that measures them.

use crate::answers::Answers;
use crate::model::{Column, Paper, Reason};
use crate::read::{ReadRequest, experiment, figures, filter, index_of, read_all};
use crate::variant::{AskedVariant, columns};
use nandscape_lab::stack::reader::Section;
use nandscape_lab::stack::{Place, StackError};
use nandscape_report::{Axis, axes, label};

/// All reasons of a paper whose statements are known.
pub(crate) fn read_reasons(
    root: &mut Section<'_>,
    paper: &Paper,
    asked: &[ReadRequest],
    variants: &[AskedVariant],
) -> Result<Vec<Reason>, StackError> {
    read_all(root, "reason", |entry, id| {
        let experiment = experiment(entry, asked)?;
        let asked = &asked[experiment];
        Ok(Reason {
            id,
            statements: read_statements(entry, paper)?,
            columns: columns(entry, variants)?,
            text: entry.required("text")?,
            experiment,
            filter: filter(entry, asked)?,
            metric: figures(entry, asked)?,
        })
    })
}

fn read_statements(entry: &mut Section<'_>, paper: &Paper) -> Result<Vec<usize>, StackError> {
    let Some(names) = entry.strings("statements")? else {
        return Err(entry.reject("statements", "is missing; expected ids of statements"));
    };
    let statement = |(name, place): (String, Place)| {
        let ids = paper.statements.iter().map(|statement| statement.id.as_str());
        let error = |why: String| StackError::new(&place, "reason.statements", why);
        index_of(&name, ids).map_err(error)
    };
    names.into_iter().map(statement).collect()
}

/// A reason with its figures as they were measured.
#[derive(Clone, PartialEq, Debug)]
pub struct Because {
    /// The index of the reason.
    pub reason: usize,
    /// What is measured and where, and how much it is.
    pub figures: Vec<(String, String)>,
    /// The column whose runs these are.
    pub column: Column,
}

impl Paper {
    /// The first reason that explains a statement in a column.
    #[must_use]
    pub fn reason(&self, statement: usize, column: Column) -> Option<usize> {
        self.reasons.iter().position(|reason| {
            let here = reason.columns.as_ref().is_none_or(|columns| columns.contains(&column));
            here && reason.statements.contains(&statement)
        })
    }
}

impl Reason {
    /// Its figures in the answers to its experiment.
    pub(crate) fn figures(&self, answers: &Answers) -> Vec<(String, String)> {
        let at = self.filter.of(answers.points());
        let points: Vec<_> = at.iter().map(|at| answers.points()[*at].clone()).collect();
        let axes: Vec<Axis> = axes(&points);
        let columns = self.metric.iter().filter_map(|metric| answers.column(metric).ok());
        let mut figures = Vec::new();
        for column in columns {
            for &at in &at {
                let point = &answers.points()[at];
                let place = axes.iter().map(|axis| label(answers.points(), &axis.name, point));
                let place = place.collect::<Vec<_>>().join(", ");
                let mean = column.mean(at).map(|mean| column.figure().show(&mean));
                let name = match place.is_empty() {
                    true => column.figure().to_string(),
                    false => format!("{} ({place})", column.figure()),
                };
                figures.push((name, mean.unwrap_or_else(|| "–".to_owned())));
            }
        }
        figures
    }
}

impl Because {
    /// Its figures in one line.
    #[must_use]
    pub fn shown(&self) -> String {
        let figures = self.figures.iter().map(|(name, value)| format!("{name} {value}"));
        figures.collect::<Vec<_>>().join("; ")
    }
}
