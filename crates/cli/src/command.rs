//! The command that makes a result again: its words, quoted for a shell, and the commit of the program.

use crate::args::{FitArgs, MetricArgs, RunArgs, RuntimeArgs, StackArgs, SteadyArgs};
use nandscape_lab::run::UntilSteady;
use nandscape_lab::stack::DEFAULT;
use nandscape_lab::workload::fio::{JobOption, Runtime};
use std::path::Path;

/// The commit that this program was built from.
pub(crate) const COMMIT: &str = env!("NANDSCAPE_COMMIT");

/// The command that makes the same result.
pub(crate) fn again(args: &RunArgs) -> String {
    let mut words = vec!["nandscape".to_owned(), "run".to_owned()];
    words.extend(args.files.iter().map(|file| quoted(&file.display().to_string())));
    words.extend(args.section.iter().flat_map(|name| ["--section".to_owned(), quoted(name)]));
    words.extend(stack_words(&args.stack));
    words.extend(state_words(args.device.state.as_deref()));
    words.extend(steady_words(args.rounds));
    words.extend(runtime_words(args.length));
    words.extend(fit_words(args.sizes));
    words.extend(["--seed".to_owned(), args.seed.to_string()]);
    words.extend(args.jobs.iter().map(job_word));
    words.join(" ")
}

/// An option of a job on the command line.
fn job_word((key, value): &JobOption) -> String {
    quoted(&value.as_ref().map_or_else(|| format!("--{key}"), |value| format!("--{key}={value}")))
}

/// The argument that names a state.
pub(crate) fn state_words(state: Option<&Path>) -> Vec<String> {
    let words = |path: &Path| ["--state".to_owned(), quoted(&path.display().to_string())];
    state.into_iter().flat_map(words).collect()
}

/// The argument that says how long something runs.
pub(crate) fn runtime_words(length: RuntimeArgs) -> Vec<String> {
    let words = |runtime: Runtime| ["--runtime".to_owned(), runtime.to_string()];
    length.runtime.into_iter().flat_map(words).collect()
}

/// The argument that scales sizes.
pub(crate) fn fit_words(sizes: FitArgs) -> Option<String> {
    sizes.fit.then(|| "--fit".to_owned())
}

/// The argument that asks for steady state.
pub(crate) fn steady_words(rounds: SteadyArgs) -> Option<String> {
    rounds.until_steady.map(|until| match until == UntilSteady::default() {
        true => "--until-steady".to_owned(),
        false => format!("--until-steady={until}"),
    })
}

/// The arguments that choose metrics.
pub(crate) fn metric_words(metrics: &MetricArgs) -> impl Iterator<Item = String> {
    metrics.metric.iter().flat_map(|path| ["--metric".to_owned(), quoted(path)])
}

/// The arguments that choose a stack.
pub(crate) fn stack_words(args: &StackArgs) -> Vec<String> {
    let mut words = Vec::new();
    if args.stack != DEFAULT {
        words.extend(["--stack".to_owned(), quoted(&args.stack)]);
    }
    words.extend(set_words(&args.set));
    words
}

/// The arguments that change keys of a stack.
pub(crate) fn set_words(set: &[String]) -> Vec<String> {
    set.iter().flat_map(|set| ["--set".to_owned(), quoted(set)]).collect()
}

/// For a shell, where it needs it.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-=:,+@%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}
