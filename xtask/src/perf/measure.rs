//! Counts instructions: the program under callgrind, on a device that it preconditioned before.

use super::base::Base;
use super::loads::{AGE, LOADS, Load, Place, STACK};
use crate::repository::cores;
use serde_json::Value;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// Where the program and its files are.
struct Bench<'a> {
    binary: &'a Path,
    scratch: &'a Path,
}

/// One run under callgrind.
struct Run {
    instructions: u64,
    units: u64,
    commit: String,
}

/// The stack of [`Place::Cleaned`].
const CLEANED: [&str; 6] =
    ["--stack", "f2fs-lfs-ssd", "--set", "media.sectors=64", "--set", "fs.background_gc=false"];
/// What it is made with beside that: the same volume for both values of `fs.reclaim`.
const MADE: [&str; 2] = ["--set", "fs.gc_journal_area=true"];

/// The figures of all loads.
pub(super) fn all(binary: &Path, scratch: &Path) -> Result<Base, String> {
    std::fs::create_dir_all(scratch).map_err(|e| format!("{}: {e}", scratch.display()))?;
    let bench = Bench { binary, scratch };
    bench.save_state()?;
    bench.age()?;
    let wanted: Vec<(&Load, u64)> =
        LOADS.iter().flat_map(|load| load.ios().map(|ios| (load, ios))).collect();
    let found = bench.run_all(&wanted)?;
    let mut base = Base::default();
    for (load, runs) in LOADS.iter().zip(found.chunks_exact(2)) {
        let (short, long) = (&runs[0], &runs[1]);
        let per_unit = difference(short, long)
            .ok_or_else(|| format!("{}: the longer run did not do more", load.name))?;
        base.instructions.insert(load.name.into(), per_unit);
        base.commit.clone_from(&long.commit);
    }
    Ok(base)
}

/// Instructions per unit of what the longer run does more, to a tenth.
fn difference(short: &Run, long: &Run) -> Option<f64> {
    let units = long.units.checked_sub(short.units).filter(|units| *units > 0)?;
    let instructions = long.instructions.checked_sub(short.instructions)?;
    Some((instructions as f64 / units as f64 * 10.0).round() / 10.0)
}

impl Bench<'_> {
    fn file(&self, name: &str) -> PathBuf {
        self.scratch.join(name)
    }

    /// Preconditions the device, at full speed.
    fn save_state(&self) -> Result<(), String> {
        let mut command = Command::new(self.binary);
        command.args(["state", "save", "--stack", STACK, "--output"]).arg(self.file("state"));
        run(&mut command).map(|_| ())
    }

    /// Ages a file on F2FS, at full speed.
    fn age(&self) -> Result<(), String> {
        let job = self.file("age.fio");
        std::fs::write(&job, AGE).map_err(|e| format!("{}: {e}", job.display()))?;
        let mut command = Command::new(self.binary);
        command
            .arg("run")
            .arg(&job)
            .args(CLEANED)
            .args(MADE)
            .arg("--save-state")
            .arg(self.file("aged"));
        run(&mut command).map(|_| ())
    }

    /// Runs of so many I/Os, in this order: one per core at a time, which changes no count of instructions.
    fn run_all(&self, wanted: &[(&Load, u64)]) -> Result<Vec<Run>, String> {
        let cores = cores();
        let (mut started, mut found) = (VecDeque::new(), Vec::new());
        for &(load, ios) in wanted {
            if started.len() == cores {
                found.extend(started.pop_front().map(Started::end).transpose()?);
            }
            started.push_back(self.start(load, ios)?);
        }
        for last in started {
            found.push(last.end()?);
        }
        Ok(found)
    }

    fn start<'a>(&self, load: &'a Load, ios: u64) -> Result<Started<'a>, String> {
        let job = self.file(&format!("{}-{ios}.fio", load.name));
        let result = self.file(&format!("{}-{ios}.json", load.name));
        std::fs::write(&job, load.job(ios)).map_err(|e| format!("{}: {e}", job.display()))?;
        let mut command = Command::new("valgrind");
        command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
        command.arg(self.binary).arg("run").arg(&job);
        match load.place {
            Place::Preconditioned => {
                command.args(["--stack", STACK, "--state"]).arg(self.file("state"));
            }
            Place::Fresh => {
                let fresh = ["--no-state-cache", "--set", "precondition.recipe=none"];
                command.args(["--stack", STACK]).args(fresh);
            }
            Place::Cleaned(reclaim) => {
                command.args(CLEANED).args(["--set", "fs.format=false"]);
                command.arg("--set").arg(format!("fs.reclaim={reclaim}"));
                command.arg("--state").arg(self.file("aged"));
            }
            // So little memory that most overwrites are written back.
            Place::File(stack) => {
                let small = ["--set", "media.sectors=64", "--set", "host.memory=64MiB"];
                command.args(["--stack", stack, "--no-state-cache"]).args(small);
            }
        }
        command.args(["--output-format", "json", "--output"]).arg(&result);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let child = command.spawn().map_err(|error| format!("valgrind: {error}"))?;
        Ok(Started { load, child, result })
    }
}

/// A run that goes on.
struct Started<'a> {
    load: &'a Load,
    child: Child,
    result: PathBuf,
}

impl Started<'_> {
    /// Waits for its end.
    fn end(self) -> Result<Run, String> {
        let Self { load, child, result } = self;
        let output = succeeded("valgrind", child.wait_with_output())?;
        let instructions = collected(&String::from_utf8_lossy(&output.stderr))
            .ok_or("callgrind reports no instructions")?;
        let text =
            std::fs::read_to_string(&result).map_err(|e| format!("{}: {e}", result.display()))?;
        let result: Value = serde_json::from_str(&text).map_err(|e| e.to_string())?;
        let missing = || format!("{}: the result does not count {}s", load.name, load.unit.name());
        let units = load.unit.count(&result).ok_or_else(missing)?;
        let commit = result["nandscape"]["commit"].as_str().unwrap_or("unknown").into();
        Ok(Run { instructions, units, commit })
    }
}

/// What a program wrote that has succeeded.
fn run(command: &mut Command) -> Result<Output, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    succeeded(&program, command.output())
}

/// The same of one that has ended.
fn succeeded(program: &str, output: std::io::Result<Output>) -> Result<Output, String> {
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(output);
    }
    let text = String::from_utf8_lossy(&output.stderr);
    Err(format!("{program}: {}\n{text}", output.status))
}

/// The instructions in callgrind's report: `==12== Collected : 1234`.
fn collected(report: &str) -> Option<u64> {
    let line = report.lines().find_map(|line| line.split_once("Collected :"))?;
    line.1.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(instructions: u64, units: u64) -> Run {
        Run { instructions, units, commit: String::new() }
    }

    /// What both runs do, such as loading the device, does not count.
    #[test]
    fn only_the_difference_counts() {
        assert_eq!(difference(&of(1_000_500, 10), &of(1_003_500, 40)), Some(100.0));
        assert_eq!(difference(&of(1_000, 10), &of(2_000, 10)), None);
        assert_eq!(difference(&of(2_000, 10), &of(1_000, 20)), None);
    }

    #[test]
    fn the_report_is_read() {
        let report = "==7== Events    : Ir\n==7== Collected : 677634689\n==7== \n";
        assert_eq!(collected(report), Some(677_634_689));
        assert_eq!(collected("valgrind: no such tool"), None);
    }
}
