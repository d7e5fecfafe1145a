//! Stack files with overrides; of what they extend, only shipped stacks. A stack that is accepted has a resolved text that
//! is the same stack.

use crate::input::Files;
use nandscape_lab::stack::document::{Value, parse};
use nandscape_lab::stack::{Stack, shipped};

/// The name of the text that has overrides, `KEY=VALUE` in each line.
const SET: &str = "--set";

/// Whether the stack reads no file of this machine.
fn reads_no_file(text: &str) -> bool {
    match parse(&"stack.toml".into(), text).ok().and_then(|mut table| table.remove("extends")) {
        Some(node) => matches!(&node.value, Value::String(name) if shipped(name).is_some()),
        None => true,
    }
}

/// Reads a stack file, and the resolved text of what it describes.
pub fn stack(input: &[u8]) {
    let Some(mut files) = Files::of(input) else { return };
    let set: Vec<&str> = files.take(SET).lines().collect();
    if !reads_no_file(files.first) {
        return;
    }
    let Ok(stack) = Stack::parse("stack.toml", files.first, &set) else { return };
    let again = Stack::parse("resolved.toml", &stack.toml, &[] as &[&str]);
    let again = again.unwrap_or_else(|error| panic!("{error}\n{}", stack.toml));
    assert_eq!(again.toml, stack.toml);
    drop((stack.check_device(), stack.label(), stack.device_label(), stack.hash()));
}
