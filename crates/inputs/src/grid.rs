//! How many points a sweep would have. One may have 100,000, each with its stack in memory: more than a target waits for.

use nandscape_lab::stack::document::{Table, Value};

/// Points of the grids of a sweep or a paper, all multiplied with each other: at least as many as any sweep of them has.
pub(crate) fn points(table: &Table) -> usize {
    let of_key = |key: &str, value: &Value| match (key, value) {
        ("grid", Value::Table(below)) => combinations(below),
        ("stacks" | "jobs", Value::Array(values)) => values.len(),
        ("stacks" | "jobs", Value::Table(below)) => below.len(),
        (_, value) => below(value),
    };
    table.iter().map(|(key, node)| of_key(key, &node.value).max(1)).fold(1, usize::saturating_mul)
}

/// The same of what lies deeper.
fn below(value: &Value) -> usize {
    match value {
        Value::Table(table) => points(table),
        Value::Array(values) => {
            values.iter().map(|node| below(&node.value)).fold(1, usize::saturating_mul)
        }
        _ => 1,
    }
}

/// Combinations of the values of all lists.
fn combinations(table: &Table) -> usize {
    let length = |value: &Value| match value {
        Value::Array(values) => values.len().max(1),
        Value::Table(below) => combinations(below),
        _ => 1,
    };
    table.values().map(|node| length(&node.value)).fold(1, usize::saturating_mul)
}
