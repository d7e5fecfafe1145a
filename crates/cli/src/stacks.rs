//! `nandscape stacks`: the stacks that ship, and their TOML.

use crate::args::{OutputFormat, StacksArgs, StacksCommand};
use crate::output::{Failure, pretty, print};
use nandscape_lab::stack::{SHIPPED, Stack, summary};
use serde_json::{Value, json};

/// Lists the shipped stacks, or shows one.
pub(crate) fn stacks(args: &StacksArgs) -> Result<(), Failure> {
    match &args.command {
        None => print(&match args.output_format {
            OutputFormat::Normal => list(),
            OutputFormat::Json => pretty(&to_json())?,
        }),
        Some(StacksCommand::Show { name, resolved, set }) => show(name, *resolved, set),
    }
}

fn list() -> String {
    let width = SHIPPED.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let row = |(name, text): &(&str, &str)| format!("{name:width$}  {}\n", summary(text));
    SHIPPED.iter().map(row).collect()
}

fn to_json() -> Value {
    let stack = |(name, text): &(&str, &str)| json!({ "name": name, "summary": summary(text) });
    SHIPPED.iter().map(stack).collect()
}

fn show(name: &str, resolved: bool, set: &[String]) -> Result<(), Failure> {
    let stack = Stack::load(name, set).map_err(Failure::input)?;
    match nandscape_lab::stack::shipped(name) {
        Some(text) if !resolved && set.is_empty() => print(text),
        _ => print(&stack.toml),
    }
}
