//! Counts instructions: the program under callgrind, on devices that it made before at full speed.

use super::base::Base;
use super::loads::{Job, LOADS, Load, Start, with_length};
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

/// The figures of all loads.
pub(super) fn all(binary: &Path, scratch: &Path) -> Result<Base, String> {
    std::fs::create_dir_all(scratch).map_err(|e| format!("{}: {e}", scratch.display()))?;
    let stripped = scratch.join("nandscape");
    side_by_side(vec![strip(binary, &stripped)])?;
    let bench = Bench { binary: &stripped, scratch };
    let lengths = || LOADS.iter().flat_map(|load| load.lengths.map(|length| (load, length)));
    let states = States::of(lengths());
    let made = states.0.iter().enumerate().map(|(number, state)| bench.make(number, state));
    side_by_side(made.collect::<Result<_, _>>()?)?;
    let runs = lengths().map(|(load, length)| bench.count(load, length, &states));
    let reports = side_by_side(runs.collect::<Result<_, _>>()?)?;
    let mut base = Base::default();
    for (load, reports) in LOADS.iter().zip(reports.chunks_exact(2)) {
        let [short, long] = [0, 1].map(|at| bench.read(load, load.lengths[at], &reports[at]));
        let (short, long) = (short?, long?);
        let per_unit = difference(&short, &long)
            .ok_or_else(|| format!("{}: the longer run did not do more", load.name))?;
        base.instructions.insert(load.name.into(), per_unit);
        base.commit = long.commit;
    }
    Ok(base)
}

/// What the allocator reserves at a time. Up to 1 GiB it draws the address, on which depends where it looks for free memory,
/// and runs of file systems then differ by a tenth of a million instructions (mimalloc, `_mi_os_get_aligned_hint`).
const ARENA: &str = "2GiB";

/// Copies the program without its line tables, which valgrind would read in each run, for a third of a second.
fn strip(binary: &Path, to: &Path) -> Command {
    let mut command = Command::new("strip");
    command.args(["--strip-debug", "-o"]).arg(to).arg(binary);
    command
}

/// Instructions per unit of what the longer run does more, to a hundredth.
fn difference(short: &Run, long: &Run) -> Option<f64> {
    let units = long.units.checked_sub(short.units).filter(|units| *units > 0)?;
    let instructions = long.instructions.checked_sub(short.instructions)?;
    Some((instructions as f64 / units as f64 * 100.0).round() / 100.0)
}

/// The saved states that runs start from, each once.
struct States(Vec<State>);

/// A state: arguments of its stack, and how it is made.
#[derive(PartialEq, Eq)]
struct State {
    stack: Vec<String>,
    start: Start,
}

impl State {
    /// What a run of this length starts from; none on a fresh device.
    fn of(load: &Load, length: u64) -> Option<Self> {
        Some(Self { stack: arguments(load.stack, length), start: load.start? })
    }
}

impl States {
    fn of<'a>(runs: impl Iterator<Item = (&'a Load, u64)>) -> Self {
        let mut states = Vec::new();
        for state in runs.filter_map(|(load, length)| State::of(load, length)) {
            if !states.contains(&state) {
                states.push(state);
            }
        }
        Self(states)
    }

    /// The number of the state that a run starts from.
    fn number(&self, load: &Load, length: u64) -> Option<usize> {
        let wanted = State::of(load, length)?;
        self.0.iter().position(|state| *state == wanted)
    }
}

/// Arguments of a run of this length.
fn arguments(texts: &[&str], length: u64) -> Vec<String> {
    texts.iter().map(|text| with_length(text, length)).collect()
}

impl Bench<'_> {
    fn file(&self, name: &str) -> PathBuf {
        self.scratch.join(name)
    }

    fn state_file(&self, number: usize) -> PathBuf {
        self.file(&format!("{number}.state"))
    }

    fn result_file(&self, load: &Load, length: u64) -> PathBuf {
        self.file(&format!("{}-{length}.json", load.name))
    }

    /// Writes a job to a file.
    fn write(&self, name: &str, job: Job, length: u64) -> Result<PathBuf, String> {
        let file = self.file(&format!("{name}.{}", job.extension()));
        std::fs::write(&file, job.text(length)).map_err(|e| format!("{}: {e}", file.display()))?;
        Ok(file)
    }

    /// Makes a state.
    fn make(&self, number: usize, State { stack, start }: &State) -> Result<Command, String> {
        let mut command = Command::new(self.binary);
        match *start {
            Start::Preconditioned => {
                command.args(["state", "save", "--output"]).arg(self.state_file(number));
            }
            Start::Aged(job, arguments) => {
                command.arg("run").arg(self.write(&format!("{number}-age"), job, 0)?);
                command.args(["--no-state-cache", "--save-state"]).arg(self.state_file(number));
                command.args(arguments);
            }
        }
        command.args(stack);
        Ok(command)
    }

    /// Runs a load under callgrind.
    fn count(&self, load: &Load, length: u64, states: &States) -> Result<Command, String> {
        let mut command = Command::new("valgrind");
        command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(self.binary);
        command.env("MIMALLOC_ARENA_RESERVE", ARENA);
        command.arg("run").arg(self.write(&format!("{}-{length}", load.name), load.job, length)?);
        command.args(arguments(load.stack, length)).args(arguments(load.run, length));
        match states.number(load, length) {
            Some(number) => command.arg("--state").arg(self.state_file(number)),
            None => command.arg("--no-state-cache"),
        };
        command.args(["--output-format=json", "--output"]).arg(self.result_file(load, length));
        Ok(command)
    }

    /// Reads what such a run counted.
    fn read(&self, load: &Load, length: u64, output: &Output) -> Result<Run, String> {
        let instructions = collected(&String::from_utf8_lossy(&output.stderr))
            .ok_or("callgrind reports no instructions")?;
        let file = self.result_file(load, length);
        let text =
            std::fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        let result: Value = serde_json::from_str(&text).map_err(|e| e.to_string())?;
        let missing = || format!("{}: the result does not count {}s", load.name, load.unit.name());
        let units = load.unit.count(&result).ok_or_else(missing)?;
        let commit = result["nandscape"]["commit"].as_str().unwrap_or("unknown").into();
        Ok(Run { instructions, units, commit })
    }
}

/// Runs commands, one per core at a time, which changes no count of instructions. What they wrote, in the order of the commands.
fn side_by_side(commands: Vec<Command>) -> Result<Vec<Output>, String> {
    let cores = cores();
    let (mut started, mut found) = (VecDeque::new(), Vec::new());
    for command in commands {
        if started.len() == cores {
            found.extend(started.pop_front().map(Started::end).transpose()?);
        }
        started.push_back(Started::of(command)?);
    }
    for last in started {
        found.push(last.end()?);
    }
    Ok(found)
}

/// A command that goes on.
struct Started {
    command: Command,
    child: Child,
}

impl Started {
    fn of(mut command: Command) -> Result<Self, String> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let child = command.spawn().map_err(|error| format!("{command:?}: {error}"))?;
        Ok(Self { command, child })
    }

    /// Waits until it has succeeded.
    fn end(self) -> Result<Output, String> {
        let Self { command, child } = self;
        let output = child.wait_with_output().map_err(|error| format!("{command:?}: {error}"))?;
        if output.status.success() {
            return Ok(output);
        }
        let text = String::from_utf8_lossy(&output.stderr);
        Err(format!("{command:?}: {}\n{text}", output.status))
    }
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

    /// A load whose length scales its device has a state for each length; loads on the same device share one.
    #[test]
    fn states_are_made_once() {
        let load = |name: &str| LOADS.iter().find(|load| load.name == name).unwrap();
        let number =
            |states: &States, name, at: usize| states.number(load(name), load(name).lengths[at]);
        let runs = ["steady", "read", "state", "empty"].map(load);
        let states =
            States::of(runs.iter().flat_map(|load| load.lengths.map(|length| (*load, length))));
        assert_eq!(states.0.len(), 3);
        for (name, numbers) in [
            ("steady", [Some(0), Some(0)]),
            ("read", [Some(0), Some(0)]),
            ("state", [Some(1), Some(2)]),
            ("empty", [None, None]),
        ] {
            assert_eq!([0, 1].map(|at| number(&states, name, at)), numbers, "{name}");
        }
    }

    #[test]
    fn the_report_is_read() {
        let report = "==7== Events    : Ir\n==7== Collected : 677634689\n==7== \n";
        assert_eq!(collected(report), Some(677_634_689));
        assert_eq!(collected("valgrind: no such tool"), None);
    }
}
