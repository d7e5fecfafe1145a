//! What the jobs of a run are read from: options of the command line, and job files.
//!
//! As in fio, the options before the first `name` are global and apply to the first job file too. Further job
//! files begin without them, and the first job of each waits for the jobs of the file before it (`stonewall`).

use super::runtime::Runtime;
use super::spec::JobOption;
use super::{keys, known};

/// What messages call the command line.
pub const COMMAND_LINE: &str = "command line";

/// A job file.
#[derive(Clone, Copy, Debug)]
pub struct JobText<'a> {
    /// What messages call it; includes are relative to its folder.
    pub name: &'a str,
    /// Its content.
    pub text: &'a str,
}

/// Everything that jobs are read from.
#[derive(Clone, Default, Debug)]
pub struct JobSources<'a> {
    /// Options of the command line, in order; `name` begins a job.
    pub command_line: &'a [JobOption],
    /// Job files.
    pub files: Vec<JobText<'a>>,
    /// The only sections that are read beside `[global]`; empty: all.
    pub sections: &'a [String],
    /// In place of the `runtime` of every job.
    pub runtime: Option<Runtime>,
}

/// Keys whose value may be left out, so that fio does not take the next word of a command line for it.
const FLAGS: &[&str] = &[
    "bs_unaligned",
    "exitall",
    "exitall_on_error",
    "group_reporting",
    "new_group",
    "norandommap",
    "refill_buffers",
    "stonewall",
    "thread",
    "time_based",
    "verify_only",
    "wait_for_previous",
    "zero_buffers",
];

/// Whether `key` takes no value from the next word of a command line.
#[must_use]
pub fn is_flag(key: &str) -> bool {
    FLAGS.contains(&key)
}

/// Whether `key` is a key of fio, supported or not.
#[must_use]
pub fn is_known(key: &str) -> bool {
    let machine = known::MACHINE.iter().flat_map(|(_, names)| names.iter());
    keys::supported_keys().chain(machine.chain(known::UNSUPPORTED).copied()).any(|name| name == key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fio::{HostEnvironment, JobFile, parse, read_all};

    fn words(text: &str) -> Vec<JobOption> {
        let word = |word: &str| match word.split_once('=') {
            Some((key, value)) => (key.to_owned(), Some(value.to_owned())),
            None => (word.to_owned(), None),
        };
        text.split(' ').map(word).collect()
    }

    fn read(line: &str, files: &[&str], sections: &[&str]) -> Result<JobFile, String> {
        let line = if line.is_empty() { Vec::new() } else { words(line) };
        let sections: Vec<String> = sections.iter().map(|name| (*name).to_owned()).collect();
        let files = files.iter().map(|text| JobText { name: "a.fio", text }).collect();
        let sources = JobSources { command_line: &line, files, sections: &sections, runtime: None };
        read_all(&sources, &HostEnvironment).map_err(|error| error.to_string())
    }

    /// What `file` says of its jobs, without the places at which it says it.
    fn said(file: &JobFile) -> Vec<String> {
        let place = crate::place::Place::file("");
        let jobs = file.jobs.iter().cloned();
        jobs.map(|mut job| {
            job.place = place.clone();
            format!("{job:?}")
        })
        .collect()
    }

    /// The same words mean the same on the command line and in a job file.
    #[test]
    fn words_are_a_job_file() {
        let line = "bs=8k norandommap name=a rw=randread iodepth=4 name=b rw=write stonewall";
        let text =
            "[global]\nbs=8k\nnorandommap\n[a]\nrw=randread\niodepth=4\n[b]\nrw=write\nstonewall\n";
        let (line, file) =
            (read(line, &[], &[]).unwrap(), parse(text, "a.fio", &HostEnvironment).unwrap());
        assert_eq!(said(&line), said(&file));
        assert_eq!(line.options, file.options);
    }

    /// Errors name the command line and the key.
    #[test]
    fn errors_name_the_command_line() {
        for (line, message) in [
            ("name=t rw=foo", "command line: rw: cannot be `foo`; expected"),
            ("name=t iodept=3", "command line: iodept: unknown key; did you mean `iodepth`?"),
            ("name", "command line: name: has no value; expected a name"),
            ("bs=4k", "command line: no job in this file; expected --name=NAME or a job file"),
        ] {
            let error = read(line, &[], &[]).unwrap_err();
            assert!(error.starts_with(message), "{error}");
        }
    }

    /// As fio has it: globals of the command line reach the first file alone, and a further file waits.
    #[test]
    fn further_files_begin_anew() {
        let files = ["[a]\nrw=read\n", "[b]\nrw=read\n[c]\nrw=read\n"];
        let all = read("bs=8k name=x", &files, &[]).unwrap();
        let of = |at: usize| {
            let job = &all.jobs[at];
            (job.name.as_str(), job.block_bytes[0], job.stonewall)
        };
        assert_eq!(
            (0..4).map(of).collect::<Vec<_>>(),
            [("x", 8192, false), ("a", 8192, false), ("b", 4096, true), ("c", 4096, false),]
        );
    }

    /// A section that is left out is not read, and one that is missing is an error.
    #[test]
    fn sections_are_chosen() {
        let file = "[global]\nbs=8k\n[a]\nnonsense=1\n[b]\nrw=write\n";
        let all = read("", &[file], &["b"]).unwrap();
        assert_eq!((all.jobs.len(), all.jobs[0].block_bytes[1]), (1, 8192));
        let error = read("", &[file], &["c", "b"]).unwrap_err();
        assert_eq!(error, "--section: no section `c`; expected one of: b, a");
    }
}
