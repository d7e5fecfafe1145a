//! Variables of a sweep: `var.NAME` in `[set]` or `[grid]` stands for `${NAME}` in the texts of jobs and
//! in the strings of stack keys, and takes the place of what a Filebench workload sets `$NAME` to, so
//! that one axis can change a job and its stack together. One that nothing reads is an error; one that
//! `${NAME}` names somewhere and a workload sets may be two things of one name, which is reported.

use super::Job;
use crate::stack::document::{Node, Table, Value};
use crate::stack::{Place, StackError};
use nandscape_workload::fio::{Environment, ExpandError, Runtime, expand};
use nandscape_workload::wml::{self, WmlError};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

/// The top-level table that variables stand in.
pub(super) const TABLE: &str = "var";

/// Variables with their values.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Vars {
    values: BTreeMap<String, String>,
    /// Those that strings of the stack name.
    in_stack: BTreeSet<String>,
}

impl Vars {
    /// Takes the variables out of a stack's tree, and puts their values where its strings name them.
    ///
    /// # Errors
    /// A value that is no text, number or truth, or a name that no variable has.
    pub(super) fn take_from(table: &mut Table) -> Result<Self, StackError> {
        let values = table.remove(TABLE).map_or_else(|| Ok(BTreeMap::new()), values)?;
        let mut vars = Self { values, in_stack: BTreeSet::new() };
        vars.expand_table(table)?;
        Ok(vars)
    }

    fn expand_table(&mut self, table: &mut Table) -> Result<(), StackError> {
        table.iter_mut().try_for_each(|(key, node)| self.expand_node(key, node))
    }

    fn expand_node(&mut self, key: &str, node: &mut Node) -> Result<(), StackError> {
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

    fn expand(&mut self, text: &str) -> Result<String, String> {
        let named = RefCell::new(Vec::new());
        let expanded = expand(text, |name| {
            named.borrow_mut().push(name.to_owned());
            self.values.get(name).cloned()
        });
        self.in_stack.extend(named.into_inner());
        expanded.map_err(message_of)
    }

    /// The name of a job file, with the values of what it names.
    ///
    /// # Errors
    /// A name that no variable has.
    pub(super) fn file_name(&self, name: &str, readers: &mut Readers) -> Result<String, String> {
        let named = RefCell::new(Vec::new());
        let expanded = expand(name, |variable| {
            named.borrow_mut().push(variable.to_owned());
            self.values.get(variable).cloned()
        });
        for variable in named.into_inner() {
            readers.named.entry(variable).or_insert_with(|| "the list of jobs".to_owned());
        }
        expanded.map_err(message_of)
    }
}

/// Why a text with variables is none.
fn message_of(error: ExpandError) -> String {
    match error {
        ExpandError::Unended => format!("{error}; expected `}}`"),
        ExpandError::Unset(name) => format!("no variable var.{name} is set"),
    }
}

/// Who reads variables, over a whole sweep.
#[derive(Default)]
pub(super) struct Readers {
    /// By variable, the first one that names it as `${NAME}`.
    named: BTreeMap<String, String>,
    /// By variable, the first workload that sets it.
    set: BTreeMap<String, String>,
}

impl Readers {
    /// Adds what the strings of a stack name.
    pub(super) fn add_stack(&mut self, stack: &str, vars: &Vars) {
        for name in &vars.in_stack {
            self.named.entry(name.clone()).or_insert_with(|| format!("the stack {stack}"));
        }
    }

    /// Adds what a job reads.
    fn add_job(&mut self, job: &JobText, names: impl IntoIterator<Item = String>) {
        let readers = if job.is_workload() { &mut self.set } else { &mut self.named };
        for name in names {
            readers.entry(name).or_insert_with(|| job.name.clone());
        }
    }

    /// A variable that no job reads.
    pub(super) fn unread<'a>(&self, vars: &'a Vars) -> Option<&'a str> {
        let is_read =
            |name: &&String| self.named.contains_key(*name) || self.set.contains_key(*name);
        vars.values.keys().find(|name| !is_read(name)).map(String::as_str)
    }

    /// Variables that may be two of one name.
    pub(super) fn remarks(&self) -> Vec<String> {
        let both = |(name, named): (&String, &String)| {
            let set = self.set.get(name)?;
            Some(format!(
                "notice: var.{name} stands for ${{{name}}} in {named} and takes the place of ${name} in \
                 {set}; if these are two things, one needs another name"
            ))
        };
        self.named.iter().filter_map(both).collect()
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
    /// The job with these variables, before those of `environment`, as long as `runtime` says.
    ///
    /// # Errors
    /// The first thing wrong with the job, and where.
    pub(super) fn parse(
        &self,
        vars: &Vars,
        environment: &dyn Environment,
        readers: &mut Readers,
        runtime: Option<Runtime>,
    ) -> Result<Job, StackError> {
        let job = match self.is_workload() {
            true => self.filebench(vars, readers, runtime).map_err(|why| why.to_string()),
            false => {
                let world = Overlaid { vars, environment, asked: RefCell::default() };
                let job = Job::fio(&self.name, &self.path, &self.text, &world, runtime);
                readers.add_job(self, world.asked.into_inner());
                job.map_err(|why| why.to_string())
            }
        };
        job.map_err(|why| StackError::new(&self.place, self.key.clone(), why))
    }

    fn is_workload(&self) -> bool {
        wml::is_workload(Path::new(&self.name))
    }

    /// A workload; variables stand in place of what it sets those of the same name to.
    fn filebench(
        &self,
        vars: &Vars,
        readers: &mut Readers,
        runtime: Option<Runtime>,
    ) -> Result<Job, WmlError> {
        let set = wml::variables(&self.text, &self.path)?;
        let given = set.into_iter().filter_map(|name| {
            let value = vars.values.get(&name)?.clone();
            Some((name, value))
        });
        let given: Vec<_> = given.collect();
        readers.add_job(self, given.iter().map(|(name, _)| name.clone()));
        Job::filebench(&self.name, &self.path, &self.text, &given, runtime)
    }
}

/// An environment in which a sweep's variables come first.
struct Overlaid<'a> {
    vars: &'a Vars,
    environment: &'a dyn Environment,
    /// Variables that the job asked for and had.
    asked: RefCell<BTreeSet<String>>,
}

impl Environment for Overlaid<'_> {
    fn read(&self, path: &Path) -> io::Result<String> {
        self.environment.read(path)
    }

    fn variable(&self, name: &str) -> Option<String> {
        let own = self.vars.values.get(name).cloned();
        if own.is_some() {
            self.asked.borrow_mut().insert(name.to_owned());
        }
        own.or_else(|| self.environment.variable(name))
    }
}
