//! Arguments of `nandscape paper`.

use super::{CacheArgs, JobsArgs, OutputFormat, whole};
use clap::Args;
use std::path::PathBuf;

/// Most seeds.
const SEEDS_MAX: u64 = 1_000;

/// `nandscape paper`.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = "\
Examples:
  nandscape paper --list                            the papers that ship
  nandscape paper --quick                           all of them, on small devices
  nandscape paper d2fs --full                       one, at the paper's own device sizes
  nandscape paper js-pblk --out js                  one, as it stands; then open js/index.html
  nandscape paper fa-ftl --seeds 30                 one, with more repetitions than it asks for
  nandscape paper js-pblk --set host.cores=64       one, on another host
  nandscape paper js-pblk --variant aged            one, with one of its variants
  nandscape paper d2fs --no-extensions              one, without what goes beyond the paper
  nandscape paper my/paper --check                  is a folder of one's own sound?

What a paper states is compared with what is measured, with a verdict for each statement: agrees, \
partially, disagrees, source contradicts itself, inconclusive, and the reason. Inputs, which were fitted or hold \
by definition, are counted apart. Numbers are means over the seeds with their 95 % \
confidence interval (Student's t); a verdict needs all of the interval. Tolerances stand beside the published numbers. \
What the paper leaves open is varied, and every run is checked for physical sense.

DIR gets index.html (works offline), paper.json, and rows of every run. Ctrl-C lets the runs under \
way finish and stops; the same command goes on from there. Two reproductions by one program give \
the same files.

Exit codes: 0 done, whatever the verdicts; 1 a physical check did not hold, or a run failed; 2 the \
input was wrong. `nandscape docs paper` describes a paper's files.")]
pub(crate) struct PaperArgs {
    /// Built-in papers (see --list), or folders of papers [default: all built-in ones]
    #[arg(value_name = "ID|FOLDER")]
    pub(crate) papers: Vec<String>,
    /// Smaller devices, fewer points and seeds, as each paper says
    #[arg(long)]
    pub(crate) quick: bool,
    /// The experiments that have `full`, with these changes, such as the paper's own device sizes; no other experiment
    /// and no variant
    #[arg(long, conflicts_with_all = ["quick", "variant"])]
    pub(crate) full: bool,
    /// Number of seeds of every run, from 1 [default: as each paper specifies]
    #[arg(long, value_name = "N", value_parser = whole::<1, SEEDS_MAX>)]
    pub(crate) seeds: Option<u64>,
    /// Run this variant beside the paper as it stands, and no other (may be repeated; `base` runs none); without it,
    /// all variants run
    #[arg(long, value_name = "ID")]
    pub(crate) variant: Vec<String>,
    /// Leave out each paper's extensions, and the experiments that only they show: what remains is the paper's own
    /// protocol
    #[arg(long)]
    pub(crate) no_extensions: bool,
    /// Change a key of every stack that a sweep does not set in its grid (may be repeated)
    #[arg(long, value_name = "KEY.PATH=VALUE")]
    pub(crate) set: Vec<String>,
    /// Directory for the report and the rows
    #[arg(long, value_name = "DIR", default_value = "papers-report")]
    pub(crate) out: PathBuf,
    /// List the built-in papers
    #[arg(long, conflicts_with_all = ["quick", "full", "check", "seeds", "set", "variant"])]
    pub(crate) list: bool,
    /// Check the papers' files, and run nothing
    #[arg(long)]
    pub(crate) check: bool,
    /// How to print the verdicts, the list, or what a check read
    #[arg(long, value_enum, default_value_t = OutputFormat::Normal)]
    pub(crate) output_format: OutputFormat,
    #[command(flatten)]
    pub(crate) cache: CacheArgs,
    #[command(flatten)]
    pub(crate) jobs: JobsArgs,
}
