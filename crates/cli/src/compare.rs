//! `nandscape compare`: one job on several stacks, as a sweep whose only axis is the stack.

use crate::args::CompareArgs;
use crate::cache::Cache;
use crate::command::{fit_words, metric_words, quoted, runtime_words, set_words, steady_words};
use crate::complete::{complete, print_notices};
use crate::job::job_text;
use crate::output::{Failure, print};
use crate::paint::ColorChoice;
use crate::report::report_sweep;
use crate::table::{Frame, Table};
use crate::wml::variables;
use crate::writable::expect_writable;
use anyhow::anyhow;
use nandscape_lab::sweep::{Job, Sweep};
use nandscape_lab::workload::fio::HostEnvironment;
use nandscape_lab::workload::wml::is_workload;
use std::path::Path;

/// Runs what is missing and prints the table.
pub(crate) fn compare(args: &CompareArgs, color: ColorChoice) -> Result<(), Failure> {
    let inputs = args.stacks.iter().map(Path::new).chain(args.job.as_deref());
    expect_writable([args.output.as_deref(), args.report.html.as_deref()], inputs)?;
    let (name, text) = job_text(args.job.as_deref())?;
    let (variables, keys) = variables(&args.set)?;
    let runtime = args.length.runtime;
    let job = match is_workload(Path::new(&name)) {
        true => Job::filebench(&name, &name, &text, &variables, runtime).map_err(Failure::input)?,
        false if variables.is_empty() => {
            Job::fio(&name, &name, &text, &HostEnvironment, runtime).map_err(Failure::input)?
        }
        false => return Err(Failure::input(anyhow!("{name} is no workload that has variables"))),
    };
    let job = if args.sizes.fit { job.fit() } else { job };
    let device = args.device.as_deref();
    let until_steady = args.rounds.until_steady;
    let mut sweep = Sweep::compare(&args.stacks, device, &keys, job, args.seeds, until_steady)
        .map_err(Failure::input)?;
    print_notices(&sweep);
    args.metrics.choose(&mut sweep);
    let mut table = Table::new(&sweep)?.with_devices();
    let cache = Cache::open(&args.cache)?;
    let (finished, ended) = complete(&sweep, args.output.as_deref(), args.jobs, cache.as_ref())?;
    table.fill(&sweep, &finished.ids, &finished.rows);
    let again = again(args);
    let frame = Frame {
        format: args.output_format,
        color,
        with_ratios: true,
        output: args.output.as_deref(),
        again: &again,
    };
    print(&table.show(&sweep, &finished, &frame)?)?;
    ended?;
    if let Some(html) = &args.report.html {
        report_sweep(html, &sweep, &table, &finished, &again)?;
    }
    table.verdict(&sweep)
}

/// The command that makes the same table.
fn again(args: &CompareArgs) -> String {
    let mut words = vec!["nandscape".to_owned(), "compare".to_owned()];
    words.extend(args.stacks.iter().map(|stack| quoted(stack)));
    if let Some(job) = &args.job {
        words.extend(["--job".to_owned(), quoted(&job.display().to_string())]);
    }
    if let Some(device) = &args.device {
        words.extend(["--device".to_owned(), quoted(device)]);
    }
    words.extend(["--seeds".to_owned(), args.seeds.to_string()]);
    words.extend(set_words(&args.set));
    words.extend(runtime_words(args.length));
    words.extend(fit_words(args.sizes));
    words.extend(steady_words(args.rounds));
    words.extend(metric_words(&args.metrics));
    words.join(" ")
}
