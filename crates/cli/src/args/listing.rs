//! Arguments of the commands that describe what can be set and what is measured: `keys`.

use clap::{Args, ValueEnum};

/// How descriptions are written.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(crate) enum ListFormat {
    /// Human-readable
    Normal,
    /// JSON
    Json,
    /// Comma-separated values, with a header
    Csv,
}

/// `nandscape keys`.
#[derive(Args, Debug)]
#[command(after_long_help = "\
TEXT is a part of the name of a key. If no name contains it, it is searched in the descriptions.
docs/formats/stack.md has longer explanations, docs/GLOSSARY.md the terms.

Examples:
  nandscape keys                                    all keys
  nandscape keys ftl.gc                             those of garbage collection
  nandscape keys ftl.op_percent                     what OP is a percentage of
  nandscape keys overprovisioning                   searched in the descriptions
  nandscape keys fs --output-format csv > keys.csv")]
pub(crate) struct KeysArgs {
    /// A part of the name of a key, such as ftl.gc, or a word of a description
    #[arg(value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) text: String,
    /// How to print the keys
    #[arg(long, value_enum, default_value_t = ListFormat::Normal)]
    pub(crate) output_format: ListFormat,
}
