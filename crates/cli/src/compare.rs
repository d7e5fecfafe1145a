//! `nandscape compare`: one job on several stacks, as a sweep whose only axis is the stack.

use crate::args::CompareArgs;
use crate::output::{Failure, complain, print};
use crate::report::report_sweep;
use crate::run::{job_text, quoted, set_words};
use crate::sweep::complete;
use crate::table::Table;
use nandscape_lab::stack::Place;
use nandscape_lab::sweep::{Job, Report, Sweep};
use nandscape_lab::workload::fio::HostEnvironment;

/// Runs what is missing and prints the table.
pub(crate) fn compare(args: &CompareArgs) -> Result<(), Failure> {
    let (name, text) = job_text(args.job.as_deref())?;
    let job = Job::parse(&name, &name, &text, &HostEnvironment).map_err(Failure::input)?;
    let mut sweep =
        Sweep::compare(&args.stacks, &args.set, job, args.seeds).map_err(Failure::input)?;
    for notice in sweep.notices() {
        complain(&notice.to_string());
    }
    if !args.figure.is_empty() {
        let chosen = |path: &String| (path.clone(), Place::Argument("--figure"));
        sweep.report = Report::Chosen(args.figure.iter().map(chosen).collect());
    }
    let finished = complete(&sweep, args.output.as_deref(), args.jobs)?;
    let table = Table::new(&sweep, &finished.ids, &finished.rows);
    let again = again(args);
    let footer = finished.footer(&table, args.output.as_deref(), &again);
    print(&format!("{}{footer}", table.text(true)))?;
    if let Some(html) = &args.report.html {
        report_sweep(html, &sweep, &finished, &again)?;
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
    words.extend(["--seeds".to_owned(), args.seeds.to_string()]);
    words.extend(set_words(&args.set));
    for path in &args.figure {
        words.extend(["--figure".to_owned(), quoted(path)]);
    }
    words.join(" ")
}
