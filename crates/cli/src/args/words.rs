//! Jobs on the command line, as fio has them: `nandscape run --name=t --rw=randread --bs 4k`.
//!
//! Keys of fio are taken out before clap sees the arguments. Where an option of ours has the name of a key
//! (`--runtime`), it is ours before the first `--name` and the job's after it. fio accepts one minus for two.

use clap::{Arg, Command};
use nandscape_lab::workload::fio::{JobOption, edit_distance, is_flag, is_known};
use std::collections::VecDeque;
use std::ffi::OsString;

/// The key that begins a job.
const NAME: &str = "name";
/// Typing errors that still let one of our options be recognised.
const DISTANCE_MAX: usize = 2;

/// Arguments for clap, and the options of jobs.
#[derive(Default)]
pub(super) struct Split {
    pub(super) ours: Vec<OsString>,
    pub(super) jobs: Vec<JobOption>,
}

/// Splits the arguments of a process whose command is `run`; others are all ours.
pub(super) fn split(arguments: impl IntoIterator<Item = OsString>, root: &Command) -> Split {
    let mut rest: VecDeque<OsString> = arguments.into_iter().collect();
    let mut split = Split::default();
    split.ours.extend(rest.pop_front());
    while let Some(word) = rest.pop_front() {
        let option = option(&word).map(|(key, value)| (key, value.is_some()));
        let takes = option.as_ref().and_then(|(key, given)| (!given).then(|| find(root, key)));
        split.ours.push(word);
        match option {
            Some(_) if takes.flatten().is_some_and(takes_next) => {
                split.ours.extend(rest.pop_front());
            }
            Some(_) => {}
            None => break,
        }
    }
    let run = root.find_subcommand("run");
    match run.filter(|run| split.ours.last().is_some_and(|word| word == run.get_name())) {
        Some(run) => split.run(rest, run),
        None => split.ours.extend(rest),
    }
    split
}

impl Split {
    fn run(&mut self, mut rest: VecDeque<OsString>, run: &Command) {
        let is_job = |word: &OsString| option(word).is_some_and(|(key, _)| key == NAME);
        let has_jobs = rest.iter().any(is_job);
        let mut named = false;
        while let Some(word) = rest.pop_front() {
            let Some((key, value)) = option(&word) else {
                let ends = word == "--";
                self.ours.push(word);
                if ends {
                    self.ours.extend(rest.drain(..));
                }
                continue;
            };
            named |= key == NAME;
            let ours = find(run, &key).filter(|_| !(named && is_known(&key)));
            if let Some(arg) = ours {
                let value = value.map_or_else(String::new, |value| format!("={value}"));
                let takes = value.is_empty() && takes_next(arg);
                self.ours.push(format!("--{key}{value}").into());
                self.ours.extend(takes.then(|| rest.pop_front()).flatten());
            } else if is_known(&key) || has_jobs && !is_like_ours(run, &key) {
                let next = rest.front().filter(|_| value.is_none() && !is_flag(&key));
                let next =
                    next.filter(|next| option(next).is_none()).and_then(|next| next.to_str());
                let next = next.map(str::to_owned);
                if next.is_some() {
                    rest.pop_front();
                }
                self.jobs.push((key, value.or(next)));
            } else {
                self.ours.push(word);
            }
        }
    }
}

/// Key and value of an option, with one minus or two. Options of one letter are clap's.
fn option(word: &OsString) -> Option<(String, Option<String>)> {
    let body = word.to_str()?.strip_prefix('-')?;
    let (key, value) = match body.strip_prefix('-').unwrap_or(body).split_once('=') {
        Some((key, value)) => (key, Some(value.to_owned())),
        None => (body.strip_prefix('-').unwrap_or(body), None),
    };
    (key.len() > 1).then(|| (key.to_owned(), value))
}

/// Our option of this name.
fn find<'a>(command: &'a Command, key: &str) -> Option<&'a Arg> {
    let mut args = command.get_arguments();
    args.find(|arg| names(arg).any(|name| name == key))
}

fn names(arg: &Arg) -> impl Iterator<Item = &str> {
    arg.get_long().into_iter().chain(arg.get_all_aliases().into_iter().flatten())
}

/// Whether the option's value may be the next word.
fn takes_next(arg: &Arg) -> bool {
    arg.get_action().takes_values() && !arg.is_require_equals_set()
}

/// Whether `key` is one of our options with typing errors; clap then says which.
fn is_like_ours(run: &Command, key: &str) -> bool {
    let is_like = |name: &str| edit_distance(name.as_bytes(), key.as_bytes()) <= DISTANCE_MAX;
    run.get_arguments().flat_map(names).any(is_like)
}
