//! Named variants of several keys: the paper's experiments asked of another platform, session or state, each with
//! verdicts of its own. A variant is an overlay of sweep files, with a load that it states: a scale and seeds.

use crate::model::{BASE, Column, Size, Variant};
use crate::read::{Manner, ReadRequest, index_of, read_all};
use crate::stacks::{Stacks, lay_with};
use nandscape_lab::stack::document::{Node, Table, Value, merge};
use nandscape_lab::stack::reader::Section;
use nandscape_lab::stack::{Place, StackError};
use nandscape_lab::sweep::Sweep;

/// The scale of sweep files as they stand.
const FULL: &str = "full";

/// A variant with its experiments, in the order of its sweeps.
pub(crate) struct AskedVariant {
    pub(crate) variant: Variant,
    /// Each with the points that it has under the variant.
    pub(crate) asked: Vec<(usize, ReadRequest)>,
}

/// All variants of a paper with these experiments.
pub(crate) fn read_variants(
    root: &mut Section<'_>,
    experiments: &[ReadRequest],
    manner: Manner<'_>,
) -> Result<Vec<AskedVariant>, StackError> {
    read_all(root, "variant", |entry, id| read_variant(entry, id, experiments, manner))
}

fn read_variant(
    entry: &mut Section<'_>,
    id: String,
    experiments: &[ReadRequest],
    manner: Manner<'_>,
) -> Result<AskedVariant, StackError> {
    if id == BASE {
        return Err(entry.reject("id", "\"base\" is the paper without a variant"));
    }
    let (title, why) = (entry.required("title")?, entry.required("why")?);
    let scale: String = entry.required("scale")?;
    let stacks = entry.table("stacks")?.map(|table| Stacks::read(table, "variant.stacks"));
    let stacks = stacks.transpose()?.unwrap_or_default();
    let seeds = entry.node("seeds").cloned().ok_or_else(|| {
        entry.reject("seeds", "is missing; expected how many seeds the variant runs with")
    })?;
    let mut over = Table::from([("seeds".to_owned(), seeds)]);
    for key in ["set", "grid"] {
        if entry.table(key)?.is_some() {
            over.extend(entry.node(key).map(|node| (key.to_owned(), node.clone())));
        }
    }
    let quick =
        entry.table("quick")?.filter(|_| manner.size == Size::Quick).cloned().unwrap_or_default();
    let names = entry.strings("experiments")?.unwrap_or_default();
    if names.is_empty() {
        return Err(entry.reject("experiments", "is missing; expected ids of experiments"));
    }
    let layers = Layers { scale: &scale, stacks: &stacks, over: &over, quick: &quick };
    let mut asked = Vec::new();
    for (name, place) in names {
        let error = |why: String| StackError::new(&place, "variant.experiments", why);
        let ids = experiments.iter().map(|asked| asked.experiment.id.as_str());
        let at = index_of(&name, ids).map_err(error)?;
        let sweep = layers.sweep(&experiments[at], manner, entry)?;
        asked.push((at, experiments[at].under(sweep)));
    }
    check_stacks(entry, &stacks, &asked, experiments)?;
    check_grid(entry.table("grid")?, &asked, experiments)?;
    let sweeps = asked.iter().map(|(at, asked)| (*at, asked.experiment.sweep.clone())).collect();
    Ok(AskedVariant { variant: Variant { id, title, why, scale, sweeps }, asked })
}

/// Every stack that is replaced is one of an experiment.
fn check_stacks(
    entry: &Section<'_>,
    stacks: &Stacks,
    asked: &[(usize, ReadRequest)],
    experiments: &[ReadRequest],
) -> Result<(), StackError> {
    match stacks.unknown(asked.iter().map(|(at, _)| &experiments[*at])) {
        None => Ok(()),
        Some((name, _)) => {
            Err(entry.reject("stacks", format!("no experiment of the variant has \"{name}\"")))
        }
    }
}

/// What a variant lays over the sweep file of an experiment, lowest first.
struct Layers<'a> {
    scale: &'a str,
    stacks: &'a Stacks,
    over: &'a Table,
    quick: &'a Table,
}

impl Layers<'_> {
    fn sweep(
        &self,
        asked: &ReadRequest,
        manner: Manner<'_>,
        entry: &Section<'_>,
    ) -> Result<Sweep, StackError> {
        let mut over = self.scaled(asked, entry)?;
        if manner.size == Size::Quick {
            merge(&mut over, asked.quick.clone());
        }
        let mut own = self.over.clone();
        if manner.size == Size::Quick {
            merge(&mut own, self.one_seed());
            merge(&mut own, self.quick.clone());
        }
        if let Some(Value::Table(grid)) = own.get_mut("grid").map(|node| &mut node.value) {
            narrow(grid, "", asked);
        }
        merge(&mut over, own);
        lay_with(asked, over, self.stacks, manner)
    }

    /// What the scale of the variant lays over the sweep file.
    fn scaled(&self, asked: &ReadRequest, entry: &Section<'_>) -> Result<Table, StackError> {
        match asked.scales.get(self.scale).map(|node| &node.value) {
            Some(Value::Table(table)) => Ok(table.clone()),
            _ if self.scale == FULL => Ok(Table::new()),
            _ => {
                let known = asked.scales.keys().map(String::as_str);
                let known = known.chain([FULL]).collect::<Vec<_>>().join(", ");
                let (id, scale) = (&asked.experiment.id, self.scale);
                let why = format!("experiment \"{id}\" has no scale \"{scale}\"; it has {known}");
                Err(entry.reject("scale", why))
            }
        }
    }

    fn one_seed(&self) -> Table {
        let seeds = self.over.get("seeds").cloned();
        let one = seeds.map(|node| Node { value: Value::Integer(1), raw: None, ..node });
        one.map(|node| ("seeds".to_owned(), node)).into_iter().collect()
    }
}

/// Leaves the axes that an experiment has: a variant may name those of several.
fn narrow(grid: &mut Table, above: &str, asked: &ReadRequest) {
    grid.retain(|name, node| {
        let key = if above.is_empty() { name.clone() } else { format!("{above}.{name}") };
        match &mut node.value {
            Value::Table(below) => {
                narrow(below, &key, asked);
                !below.is_empty()
            }
            _ => asked.has_axis(&key),
        }
    });
}

/// Every axis that the grid of a variant narrows is one of an experiment.
fn check_grid(
    grid: Option<&Table>,
    asked: &[(usize, ReadRequest)],
    experiments: &[ReadRequest],
) -> Result<(), StackError> {
    let Some(mut unknown) = grid.cloned() else { return Ok(()) };
    for (at, _) in asked {
        let mut known = unknown.clone();
        narrow(&mut known, "", &experiments[*at]);
        remove(&mut unknown, &known);
    }
    match unknown.values().next() {
        None => Ok(()),
        Some(node) => {
            let why = "no experiment of the variant has this axis";
            Err(StackError::new(&node.key_place, "variant.grid", why))
        }
    }
}

/// Removes from `all` what `known` has.
fn remove(all: &mut Table, known: &Table) {
    all.retain(|name, node| match (&mut node.value, known.get(name).map(|node| &node.value)) {
        (Value::Table(all), Some(Value::Table(known))) => {
            remove(all, known);
            !all.is_empty()
        }
        (_, known) => known.is_none(),
    });
}

/// The columns that `variants` names; all if it is not given.
pub(crate) fn columns(
    entry: &mut Section<'_>,
    variants: &[AskedVariant],
) -> Result<Option<Vec<Column>>, StackError> {
    let Some(names) = entry.strings("variants")? else { return Ok(None) };
    let column = |(name, place): (String, Place)| {
        let ids = variants.iter().map(|asked| asked.variant.id.as_str());
        let at = index_of(&name, std::iter::once(BASE).chain(ids));
        let at = at.map_err(|why| StackError::new(&place, "reason.variants", why))?;
        Ok(at.checked_sub(1).map_or(Column::Base, Column::Variant))
    };
    names.into_iter().map(column).collect::<Result<_, _>>().map(Some)
}
