//! Arguments of the commands that describe what can be set and what is measured: `keys` and
//! `metrics`.

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

/// `nandscape metrics`.
#[derive(Args, Debug)]
#[command(after_long_help = "\
TEXT is the path of a metric or a part of it. If no path contains it, it is searched in the descriptions.
A path has placeholders: <n> is the number of a list entry, from 0; <direction> is read, write or trim; <percent> is
a percentile. `jobs.<n>.` may be left out for the first job. Figures are made of paths: waf.gc, write.iops / read.iops
(docs/formats/sweep.md). docs/formats/result.md has longer explanations.

Examples:
  nandscape metrics                                 all metrics
  nandscape metrics waf                             write amplification
  nandscape metrics all.write.clat_ns.p99           what a path is
  nandscape metrics padding                         searched in the descriptions
  nandscape metrics --output-format csv > metrics.csv")]
pub(crate) struct MetricsArgs {
    /// A path, a part of one such as waf, or a word of a description
    #[arg(value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) text: String,
    /// How to print the metrics
    #[arg(long, value_enum, default_value_t = ListFormat::Normal)]
    pub(crate) output_format: ListFormat,
}
