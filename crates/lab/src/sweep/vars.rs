//! Variables of a sweep: `var.NAME` in `[set]` or `[grid]` stands for `${NAME}` in the texts of jobs and
//! in the strings of stack keys, and takes the place of what a Filebench workload sets `$NAME` to, so
//! that one axis can change a job and its stack together.

use super::Job;
use crate::stack::document::{Node, Table, Value};
use crate::stack::{Place, StackError};
use nandscape_workload::fio::{Environment, ExpandError, expand};
use nandscape_workload::wml::{self, WmlError};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// The top-level table that variables stand in.
const TABLE: &str = "var";

/// Variables with their values.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Vars(BTreeMap<String, String>);

impl Vars {
    /// Takes the variables out of a stack's tree, and puts their values where its strings name them.
    ///
    /// # Errors
    /// A value that is no text, number or truth, or a name that no variable has.
    pub(super) fn take_from(table: &mut Table) -> Result<Self, StackError> {
        let vars = Self(table.remove(TABLE).map_or_else(|| Ok(BTreeMap::new()), values)?);
        vars.expand_table(table)?;
        Ok(vars)
    }

    fn expand_table(&self, table: &mut Table) -> Result<(), StackError> {
        table.iter_mut().try_for_each(|(key, node)| self.expand_node(key, node))
    }

    fn expand_node(&self, key: &str, node: &mut Node) -> Result<(), StackError> {
        match &mut node.value {
            Value::String(text) if text.contains("${") => {
                let expanded = self.expand(text);
                *text = expanded.map_err(|why| StackError::new(&node.place, key, why))?;
                Ok(())
            }
            Value::Array(nodes) => {
                nodes.iter_mut().try_for_each(|node| self.expand_node(key, node))
            }
            Value::Table(table) => self.expand_table(table),
            _ => Ok(()),
        }
    }

    fn expand(&self, text: &str) -> Result<String, String> {
        expand(text, |name| self.0.get(name).cloned()).map_err(|error| match error {
            ExpandError::Unended => format!("{error}; expected `}}`"),
            ExpandError::Unset(name) => format!("no variable var.{name} is set"),
        })
    }
}

fn values(node: Node) -> Result<BTreeMap<String, String>, StackError> {
    let mut values = BTreeMap::new();
    match &node.value {
        Value::Table(table) => add(table, &mut values)?,
        other => {
            let message = format!("expected a table of variables, found {}", other.describe());
            return Err(StackError::new(&node.place, TABLE, message));
        }
    }
    Ok(values)
}

/// The variables of a table; a table within only says which go together.
fn add(table: &Table, values: &mut BTreeMap<String, String>) -> Result<(), StackError> {
    for (name, node) in table {
        if let Value::Table(together) = &node.value {
            add(together, values)?;
        } else if values.insert(name.clone(), text(name, node)?).is_some() {
            let key = format!("{TABLE}.{name}");
            return Err(StackError::new(&node.place, key, "the variable is set twice"));
        }
    }
    Ok(())
}

/// A variable's value as text.
fn text(name: &str, node: &Node) -> Result<String, StackError> {
    match &node.value {
        Value::String(text) => Ok(text.clone()),
        Value::Integer(number) => Ok(number.to_string()),
        Value::Float(number) => Ok(number.to_string()),
        Value::Boolean(truth) => Ok(truth.to_string()),
        other => {
            let message = format!("expected text or a number, found {}", other.describe());
            Err(StackError::new(&node.place, format!("{TABLE}.{name}"), message))
        }
    }
}

/// A job before its variables are known.
pub(super) struct JobText {
    /// What tables and rows call it.
    pub(super) name: String,
    /// The job file's text.
    pub(super) text: String,
    /// Where includes are relative to, and what messages call it.
    pub(super) path: String,
    /// Where the sweep names it.
    pub(super) place: Place,
    /// The key there.
    pub(super) key: String,
}

impl JobText {
    /// The job with these variables, before those of `environment`.
    ///
    /// # Errors
    /// The first thing wrong with the job, and where.
    pub(super) fn parse(
        &self,
        vars: &Vars,
        environment: &dyn Environment,
    ) -> Result<Job, StackError> {
        let job = match wml::is_workload(Path::new(&self.name)) {
            true => self.filebench(vars).map_err(|why| why.to_string()),
            false => {
                let world = Overlaid { vars, environment };
                let job = Job::fio(&self.name, &self.path, &self.text, &world);
                job.map_err(|why| why.to_string())
            }
        };
        job.map_err(|why| StackError::new(&self.place, self.key.clone(), why))
    }

    /// A workload; variables stand in place of what it sets those of the same name to.
    fn filebench(&self, vars: &Vars) -> Result<Job, WmlError> {
        let set = wml::variables(&self.text, &self.path)?;
        let given = set.into_iter().filter_map(|name| {
            let value = vars.0.get(&name)?.clone();
            Some((name, value))
        });
        Job::filebench(&self.name, &self.path, &self.text, &given.collect::<Vec<_>>())
    }
}

/// An environment in which a sweep's variables come first.
struct Overlaid<'a> {
    vars: &'a Vars,
    environment: &'a dyn Environment,
}

impl Environment for Overlaid<'_> {
    fn read(&self, path: &Path) -> io::Result<String> {
        self.environment.read(path)
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.vars.0.get(name).cloned().or_else(|| self.environment.variable(name))
    }
}
