//! Jobs of the command line, one option per line, then job files and chosen sections.

use crate::input::Files;
use nandscape_workload::fio::{JobOption, JobSources, JobText, read_all};

/// The name of the text that has the chosen sections, one per line.
const SECTIONS: &str = "--section";

/// Reads jobs of a command line.
pub fn command_line(input: &[u8]) {
    let Some(mut files) = Files::of(input) else { return };
    let sections: Vec<String> = files.take(SECTIONS).lines().map(str::to_owned).collect();
    let option = |line: &str| match line.split_once('=') {
        Some((key, value)) => (key.to_owned(), Some(value.to_owned())),
        None => (line.to_owned(), None),
    };
    let options: Vec<JobOption> = files.first.lines().map(option).collect();
    let sources = JobSources {
        command_line: &options,
        files: files.others().map(|(name, text)| JobText { name, text }).collect(),
        sections: &sections,
        runtime: None,
    };
    if let Ok(jobs) = read_all(&sources, &files) {
        assert!(!jobs.jobs.is_empty());
    }
}
