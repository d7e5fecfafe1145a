//! Exploring: targets search for inputs that reach new code, each for a number of CPU seconds, some of them at once.
//!
//! libFuzzer knows limits on the wall only. So the CPU time of each target is looked at, and SIGUSR1 ends a target
//! whose time is over as libFuzzer itself would. A search begins with the committed corpus, the seeds and what explorations
//! on this machine found before. An input that took too long on the wall, but not alone (`fuzzer`), ends a run of the target
//! and not its search: another run follows, with a seed of its own. A finding ends the search, because the next run would
//! most likely find the same.

use super::Exploration;
use super::fuzzer::Fuzzer;
use crate::cpu;
use std::collections::VecDeque;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

/// How often running targets are looked at.
const POLL: Duration = Duration::from_millis(100);
/// How libFuzzer names an input that took too long on the wall.
const TIMEOUT: &str = "timeout-";

/// Lets the targets search, and returns whether they found nothing.
///
/// # Errors
/// Something cannot be run, read or written.
#[expect(clippy::disallowed_methods, reason = "targets are processes; this one sleeps meanwhile")]
pub(super) fn explore(
    fuzzer: &Fuzzer,
    targets: &[String],
    exploration: &Exploration,
) -> Result<bool, String> {
    let mut waiting: VecDeque<Search> =
        targets.iter().map(|target| Search::new(target, exploration)).collect();
    let (mut running, mut passed) = (Vec::<Run>::new(), true);
    while !(waiting.is_empty() && running.is_empty()) {
        while running.len() < exploration.jobs.max(1)
            && let Some(search) = waiting.pop_front()
        {
            running.push(search.start(fuzzer)?);
        }
        std::thread::sleep(POLL);
        for mut run in std::mem::take(&mut running) {
            let Some(success) = run.ended()? else {
                running.push(run);
                continue;
            };
            match run.search.judge(fuzzer, success)? {
                Next::Run => waiting.push_front(run.search),
                Next::End(line) => println!("{}: {line}", run.search.target),
                Next::Finding(line) => {
                    println!("{}: {line}", run.search.target);
                    passed = false;
                }
            }
        }
    }
    Ok(passed)
}

/// The search of a target, over all of its runs.
struct Search {
    target: String,
    seed: u64,
    /// CPU seconds that it may use, and that it used.
    limit_s: f64,
    used_s: f64,
    runs: u32,
    executions: u64,
}

/// What follows a run.
enum Next {
    Run,
    /// The time is over: what the target did.
    End(String),
    Finding(String),
}

/// A target that is running.
struct Run {
    search: Search,
    child: Child,
    /// CPU seconds of earlier runs.
    before_s: f64,
    /// Whether it was asked to end.
    asked: bool,
}

impl Search {
    fn new(target: &str, exploration: &Exploration) -> Self {
        Self {
            target: target.to_owned(),
            seed: exploration.seed,
            limit_s: exploration.cpu_seconds as f64,
            used_s: 0.0,
            runs: 0,
            executions: 0,
        }
    }

    fn log(&self, fuzzer: &Fuzzer) -> PathBuf {
        fuzzer.log(&self.target, "explore")
    }

    fn start(mut self, fuzzer: &Fuzzer) -> Result<Run, String> {
        let target = &self.target;
        let found = fuzzer.folder("found", target)?;
        let (corpus, seeds) = (fuzzer.corpus(target)?, fuzzer.folder("seeds", target)?);
        let log = self.log(fuzzer);
        let failed = |e: std::io::Error| format!("{}: {e}", log.display());
        let mut command = fuzzer.exploring(target, &[&found, &corpus, &seeds])?;
        self.runs += 1;
        command.args([
            format!("-seed={}", run_seed(self.seed, target, self.runs)),
            format!("-artifact_prefix={}/", fuzzer.folder("findings", target)?.display()),
            "-print_final_stats=1".to_owned(),
        ]);
        let out = File::create(&log).map_err(failed)?;
        let err = out.try_clone().map_err(failed)?;
        let child = command.stdout(out).stderr(err).spawn().map_err(|e| format!("cargo: {e}"))?;
        let before_s = self.used_s;
        Ok(Run { search: self, child, before_s, asked: false })
    }

    /// Decides what follows a run that ended.
    fn judge(&mut self, fuzzer: &Fuzzer, success: bool) -> Result<Next, String> {
        let file = self.log(fuzzer);
        let text = std::fs::read(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        let log = String::from_utf8_lossy(&text);
        self.executions += statistic(&log, EXECUTIONS).parse::<u64>().unwrap_or(0);
        if !success {
            match artifact(&log).filter(|input| is_timeout(input)) {
                Some(input) if fuzzer.ends_in_time(&self.target, input)? => {
                    std::fs::remove_file(input).map_err(|e| format!("{}: {e}", input.display()))?;
                }
                _ => return Ok(Next::Finding(finding(&self.target, &log, &file))),
            }
        }
        if self.used_s < self.limit_s {
            return Ok(Next::Run);
        }
        Ok(Next::End(format!(
            "no finding in {} executions, {:.0} CPU seconds; {} edges covered, {} MiB at most",
            self.executions,
            self.used_s,
            statistic(&log, " cov: "),
            statistic(&log, "stat::peak_rss_mb:")
        )))
    }
}

impl Run {
    /// Whether it was a success, if it ended. It is asked to end once its CPU time is over.
    fn ended(&mut self) -> Result<Option<bool>, String> {
        let target = &self.search.target;
        let pid = self.child.id();
        self.search.used_s = self.before_s + cpu::of_process(pid)?;
        if let Some(status) = self.child.try_wait().map_err(|e| format!("{target}: {e}"))? {
            return Ok(Some(status.success()));
        }
        if self.search.used_s >= self.search.limit_s && !self.asked {
            self.asked = true;
            let kill = Command::new("sh").args(["-c", &format!("kill -USR1 {pid}")]).status();
            kill.map_err(|e| format!("sh: {e}"))?;
        }
        Ok(None)
    }
}

/// A seed of libFuzzer, which takes 0 for none: FNV-1a of what the run is.
fn run_seed(seed: u64, target: &str, run: u32) -> u32 {
    let name = format!("{seed}/{target}/{run}");
    let hash = |hash: u32, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    name.bytes().fold(0x811c_9dc5, hash).max(1)
}

const EXECUTIONS: &str = "stat::number_of_executed_units:";

/// The number that the last line with `mark` has behind it.
fn statistic<'a>(log: &'a str, mark: &str) -> &'a str {
    after(log, mark).and_then(|rest| rest.split(' ').next()).unwrap_or("?")
}

/// The file of a finding.
fn artifact(log: &str) -> Option<&Path> {
    after(log, "Test unit written to ").map(Path::new)
}

fn is_timeout(input: &Path) -> bool {
    input.file_name().is_some_and(|name| name.to_string_lossy().starts_with(TIMEOUT))
}

/// What happened in a target, and how to reproduce it.
fn finding(target: &str, log: &str, file: &Path) -> String {
    let mut marks = ["panicked at ", "ERROR: libFuzzer: "].into_iter();
    let what = marks.find_map(|mark| after(log, mark)).unwrap_or("it failed");
    let input = artifact(log)
        .map(|input| format!("\n  cargo xtask fuzz {target} --input {}", input.display()));
    format!("{what} ({}){}", file.display(), input.unwrap_or_default())
}

/// What follows `mark` in the last line that has it.
fn after<'a>(log: &'a str, mark: &str) -> Option<&'a str> {
    log.lines().rev().find_map(|line| line.split_once(mark)).map(|(_, rest)| rest.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A finding is reported with what happened and the file that reproduces it.
    #[test]
    fn findings_are_reported() {
        let log = "thread '<unnamed>' panicked at a.rs:1:2:\nno\nartifact_prefix='x/'; Test unit written to x/crash-1\n";
        let line = finding("job", log, Path::new("job.log"));
        assert_eq!(line, "a.rs:1:2: (job.log)\n  cargo xtask fuzz job --input x/crash-1");
        assert!(!is_timeout(artifact(log).unwrap()));
        assert!(is_timeout(artifact("; Test unit written to x/timeout-1\n").unwrap()));
    }

    /// Executions and coverage are those at the end.
    #[test]
    fn statistics_are_the_last() {
        let log = "#8\tNEW    cov: 7 ft: 8\n#12\tDONE   cov: 56 ft: 78 corp: 1/2b\n\
                   stat::number_of_executed_units: 12\nstat::peak_rss_mb:  34\n";
        let of = |mark| statistic(log, mark);
        assert_eq!([of(EXECUTIONS), of(" cov: "), of("stat::peak_rss_mb:")], ["12", "56", "34"]);
    }

    /// Runs, targets and explorations differ in their seeds, which are never none.
    #[test]
    fn seeds_differ() {
        let seeds = [(1, "job", 1), (1, "job", 2), (1, "wml", 1), (2, "job", 1)];
        let mut seeds = seeds.map(|(seed, target, run)| run_seed(seed, target, run));
        seeds.sort_unstable();
        assert!(seeds[0] > 0 && seeds.windows(2).all(|two| two[0] < two[1]), "{seeds:?}");
    }
}
