//! Stacks of a sweep file that other files take the place of, for variants and their scales, for `--quick` and for
//! `--full`. Points keep the names of the stacks that are replaced, so figures and statements find them.

use crate::read::{Manner, ReadRequest};
use nandscape_lab::stack::StackError;
use nandscape_lab::stack::document::{Node, Table, Value, merge};
use nandscape_lab::sweep::Sweep;

/// The key of the stacks that a layer of an experiment replaces.
const KEY: &str = "experiment.stacks";

/// The sweep of an experiment's file under `over`, where a table of stacks has files by the names of those that they
/// replace.
///
/// # Errors
/// What is wrong in `over`; a name that no stack of the experiment has.
pub(crate) fn lay(
    asked: &ReadRequest,
    over: Table,
    manner: Manner<'_>,
) -> Result<Sweep, StackError> {
    lay_with(asked, over, &Stacks::default(), manner)
}

/// The same; what `own` replaces counts more.
pub(crate) fn lay_with(
    asked: &ReadRequest,
    mut over: Table,
    own: &Stacks,
    manner: Manner<'_>,
) -> Result<Sweep, StackError> {
    let mut stacks = Stacks::default();
    if let Some(Value::Table(table)) = over.get("stacks").map(|node| &node.value) {
        stacks = Stacks::read(table, KEY)?;
        over.remove("stacks");
    }
    if let Some((name, node)) = stacks.unknown(std::iter::once(asked)) {
        let why = format!("experiment \"{}\" has no stack \"{name}\"", asked.experiment.id);
        return Err(StackError::new(&node.key_place, KEY, why));
    }
    merge(&mut stacks.0, own.0.clone());
    stacks.sweep(asked, over, manner)
}

/// Files by the names of the stacks that they replace, with their places.
#[derive(Default)]
pub(crate) struct Stacks(Table);

impl Stacks {
    /// Those of a table, which is the value of `key`.
    pub(crate) fn read(table: &Table, key: &'static str) -> Result<Self, StackError> {
        match table.iter().find(|(_, node)| !matches!(node.value, Value::String(_))) {
            None => Ok(Self(table.clone())),
            Some((name, node)) => {
                let why = format!("expected the file in the place of {name}");
                Err(StackError::new(&node.place, key, why))
            }
        }
    }

    /// The first stack to replace that none of these experiments has.
    pub(crate) fn unknown<'a>(
        &self,
        asked: impl Iterator<Item = &'a ReadRequest> + Clone,
    ) -> Option<(&String, &Node)> {
        self.0.iter().find(|(name, _)| !asked.clone().any(|one| names(one).contains(name)))
    }

    /// The sweep of an experiment's file under `over`, with these files in the place of the experiment's stacks.
    fn sweep(
        &self,
        asked: &ReadRequest,
        mut over: Table,
        manner: Manner<'_>,
    ) -> Result<Sweep, StackError> {
        let names = names(asked);
        if let Some(list) = self.replaced(&names) {
            over.insert("stacks".to_owned(), list);
        }
        merge(&mut over, manner.last.clone());
        let path = asked.path.to_string_lossy();
        let mut sweep = Sweep::parse_under(&path, &asked.text, over, &manner.files)?;
        for case in &mut sweep.cases {
            let old = self.0.iter().find(|(_, new)| is_text(new, &case.stack_name));
            let name = old.map(|(old, _)| old).filter(|old| names.contains(old));
            case.stack_name = name.unwrap_or(&case.stack_name).clone();
        }
        Ok(sweep)
    }

    /// The list of stacks with those that are replaced; none if no stack is.
    fn replaced(&self, names: &[&String]) -> Option<Node> {
        let place = &self.0.values().next()?.key_place;
        let node =
            |value| Node { key_place: place.clone(), place: place.clone(), raw: None, value };
        let stack = |name: &&String| {
            self.0.get(*name).cloned().unwrap_or_else(|| node(Value::String((*name).clone())))
        };
        Some(node(Value::Array(names.iter().map(stack).collect())))
    }
}

/// The stacks of an experiment, in order.
fn names(asked: &ReadRequest) -> Vec<&String> {
    let mut names: Vec<&String> = Vec::new();
    for case in &asked.experiment.sweep.cases {
        if !names.contains(&&case.stack_name) {
            names.push(&case.stack_name);
        }
    }
    names
}

fn is_text(node: &Node, text: &str) -> bool {
    matches!(&node.value, Value::String(own) if own == text)
}
