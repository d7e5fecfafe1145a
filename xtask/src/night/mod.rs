//! `cargo xtask night`: what is too long for the gate, in parts that `xtask/night.toml` lists.
//!
//! Each part has the paths that it covers, and the commit at which it last passed. A night runs all parts; interrupted, it
//! resumes with those that have not ended. A part that passes notes the commit in the list, and each writes its row of
//! `docs/results/night.md`. The gate runs, in a shorter form where there is one, the parts whose paths changed since they
//! passed (`--due`): a change pays for what it touches.

mod page;
mod parts;

use crate::repository::Repository;
use crate::{cpu, files};
use parts::Part;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// What `cargo xtask night` does.
pub(crate) enum Task {
    /// Prints name and command of each part that the gate has to run, with a tab between them.
    Due,
    /// Runs the parts of these names, or all.
    Run { names: Vec<String>, restart: bool },
}

impl Task {
    /// The task of these words; `None`: they are none.
    pub(crate) fn of(words: &[&str]) -> Option<Self> {
        if words == ["--due"] {
            return Some(Self::Due);
        }
        let (options, names): (Vec<&str>, Vec<&str>) =
            words.iter().partition(|word| word.starts_with('-'));
        let restart = match options.as_slice() {
            [] => false,
            ["--restart"] => true,
            _ => return None,
        };
        Some(Self::Run { names: names.into_iter().map(str::to_owned).collect(), restart })
    }
}

/// How a part ended.
#[derive(Serialize, Deserialize, Clone, Debug)]
struct Ended {
    /// The night, from which seeds derive.
    night: String,
    part: String,
    commit: String,
    passed: bool,
    wall_s: f64,
    cpu_s: f64,
    /// The last line that it printed.
    summary: String,
}

/// Does the task; returns whether all parts passed that ran.
///
/// # Errors
/// There is no such part, what it covers has changes that no commit has, or something cannot be run, read or written.
pub(crate) fn run(repository: &Repository, task: &Task) -> Result<bool, String> {
    let parts = parts::read(repository.root())?;
    match task {
        Task::Due => {
            for part in parts.iter().filter(|part| part.is_due(repository)) {
                println!("{}\t{}", part.name, part.gate.as_deref().unwrap_or_default());
            }
            Ok(true)
        }
        Task::Run { names, restart } => {
            let parts = parts::named(parts, names)?;
            Night::open(repository, &parts, *restart)?.run_all(&parts)
        }
    }
}

/// A night that goes on.
struct Night<'a> {
    repository: &'a Repository,
    name: String,
    ended: Vec<Ended>,
}

impl<'a> Night<'a> {
    /// The one that was interrupted, else a new one.
    fn open(repository: &'a Repository, parts: &[Part], restart: bool) -> Result<Self, String> {
        let log = files::log(&repository.target().join("night.jsonl"))?;
        let mut ended: Vec<Ended> =
            log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let name = match ended.last() {
            Some(last) if !restart => last.night.clone(),
            _ => new_name()?,
        };
        ended.retain(|one| one.night == name);
        let mut night = Self { repository, name, ended };
        if parts.iter().all(|part| night.has_ended(part)) {
            (night.name, night.ended) = (new_name()?, Vec::new());
        }
        Ok(night)
    }

    fn has_ended(&self, part: &Part) -> bool {
        self.ended.iter().any(|one| one.part == part.name)
    }

    fn run_all(&mut self, parts: &[Part]) -> Result<bool, String> {
        for part in parts {
            if self.has_ended(part) {
                println!("{}: ended before the interruption", part.name);
                continue;
            }
            part.check_committed(self.repository)?;
            let ended = self.run(part)?;
            self.note(part, &ended)?;
            self.ended.push(ended);
        }
        let failed: Vec<&Ended> = self.ended.iter().filter(|one| !one.passed).collect();
        failed.iter().for_each(|one| println!("failed: {}: {}", one.part, one.summary));
        Ok(failed.is_empty())
    }

    #[expect(clippy::disallowed_methods, reason = "the page says how long a part took")]
    fn run(&self, part: &Part) -> Result<Ended, String> {
        let (from, cpu_from) = (Instant::now(), cpu::of_children()?);
        println!("==> {}: {}", part.name, part.what);
        let (passed, summary) = run_command(self.repository.root(), &part.command(&self.name))?;
        Ok(Ended {
            night: self.name.clone(),
            part: part.name.clone(),
            commit: self.repository.commit()?,
            passed,
            wall_s: from.elapsed().as_secs_f64(),
            cpu_s: cpu::of_children()? - cpu_from,
            summary,
        })
    }

    fn note(&self, part: &Part, ended: &Ended) -> Result<(), String> {
        let line = serde_json::to_string(ended).map_err(|e| e.to_string())?;
        files::append(&self.repository.target().join("night.jsonl"), &line)?;
        if ended.passed {
            parts::note_passed(self.repository.root(), part, &ended.commit)?;
        }
        let row = page::row(part, ended);
        println!("<== {row}");
        page::update(self.repository.root(), &part.name, &row)
    }
}

/// The time at which a night begins, in seconds, is its name.
#[expect(clippy::disallowed_methods, reason = "each night explores other seeds")]
fn new_name() -> Result<String, String> {
    let time = SystemTime::now().duration_since(UNIX_EPOCH).map_err(|e| e.to_string())?;
    Ok(time.as_secs().to_string())
}

/// Runs a command of bash in a folder; whether it succeeded, and the last line that it printed.
fn run_command(folder: &Path, command: &str) -> Result<(bool, String), String> {
    let failed = |e: std::io::Error| format!("bash: {e}");
    let mut bash = Command::new("bash");
    bash.args(["-euo", "pipefail", "-c", command]).current_dir(folder);
    let mut child = bash.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().map_err(failed)?;
    let mut last = String::new();
    for line in child.stdout.take().into_iter().flat_map(|out| BufReader::new(out).split(b'\n')) {
        let line = String::from_utf8_lossy(&line.map_err(failed)?).into_owned();
        println!("{line}");
        if !line.trim().is_empty() {
            last = line.trim().to_owned();
        }
    }
    Ok((child.wait().map_err(failed)?.success(), last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_is_kept() {
        let here = Path::new(".");
        assert_eq!(run_command(here, "echo a; echo b c; echo"), Ok((true, "b c".into())));
        assert_eq!(run_command(here, "echo a; false; echo b"), Ok((false, "a".into())));
    }

    #[test]
    fn words_are_parts_or_options() {
        assert!(matches!(Task::of(&["--due"]), Some(Task::Due)));
        let Some(Task::Run { names, restart }) = Task::of(&["papers", "--restart"]) else {
            panic!("a night");
        };
        assert_eq!((names, restart), (vec!["papers".to_owned()], true));
        assert!(Task::of(&["--again"]).is_none());
    }
}
