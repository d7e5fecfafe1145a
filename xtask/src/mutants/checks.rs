//! What has to catch mutants: the crash campaigns of the gate, with the seeds that they run in every gate, and the tests of
//! its crates. A check passes on the program without a mutant, and a mutant is caught by the first check that fails with it,
//! does not end, or takes too much memory.

use super::schema::CHOICE;
use super::table::Mutant;
use crate::campaigns::{Campaign, Seeds, campaigns};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A check of the gate.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Check {
    /// `nandscape crash` with these arguments.
    Campaign(String),
    /// The tests of a program whose names contain the filter.
    Test {
        /// The crate without `nandscape-`, and the program: `ftl lib`, `crash suite`.
        program: String,
        /// Of a program of many files, the tests of one: `campaign::`.
        filter: String,
    },
}

impl std::fmt::Display for Check {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Campaign(args) => write!(f, "crash {args}"),
            Self::Test { program, filter } => write!(f, "test {program} {filter}"),
        }
    }
}

/// A test program that cargo built.
#[derive(Clone, Debug)]
pub(super) struct TestProgram {
    pub(super) name: String,
    pub(super) executable: PathBuf,
    /// Where cargo runs it.
    pub(super) folder: PathBuf,
    /// The names of its tests.
    pub(super) tests: Vec<String>,
}

impl TestProgram {
    /// Its checks: one for unit tests, else one for each of its files, golden results last, as they say least.
    fn checks(&self) -> Vec<Check> {
        let check =
            |filter: &str| Check::Test { program: self.name.clone(), filter: filter.into() };
        if self.name.ends_with(" lib") {
            return vec![check("")];
        }
        let mut files: Vec<&str> = self.tests.iter().filter_map(|test| file_of(test)).collect();
        files.dedup();
        files.sort_by_key(|file| (RECORDED.contains(file), *file));
        files.dedup();
        files.into_iter().map(check).collect()
    }
}

/// The file of a test, as a filter: what comes before the first `::`, with it.
fn file_of(test: &str) -> Option<&str> {
    test.split_inclusive("::").next().filter(|file| file.ends_with("::"))
}

/// What was built of the copy.
pub(super) struct Built {
    pub(super) root: PathBuf,
    pub(super) nandscape: PathBuf,
    pub(super) tests: Vec<TestProgram>,
}

/// Where a campaign found a violation.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub(super) struct Place {
    pub(super) seed: u64,
    /// Operations of that seed's run up to the violation, and of the part of it that the search left.
    pub(super) operations: Option<[u64; 2]>,
}

/// A check that was run.
pub(super) struct Ran {
    pub(super) end: End,
    /// CPU seconds that it took.
    pub(super) cpu_s: f64,
}

/// How a check ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum End {
    Passed,
    /// What it found, and the place in a campaign.
    Caught {
        what: String,
        place: Option<Place>,
    },
}

/// Bytes of address space that a check may take.
const MEMORY_KIB: u64 = 12 << 20;

/// Crates whose tests are about a mutant: of a figure those of its own crate, and of what runs and prints it.
pub(super) fn crates_of(mutant: &Mutant) -> Vec<&str> {
    match mutant.area.as_str() {
        _ if mutant.is_of_ftls() => vec!["ftl", "crash", "lab"],
        _ if mutant.is_of_figures() => vec![mutant.owner(), "lab", "cli"],
        "page_cache" => vec!["fs", "workload", "crash", "lab"],
        _ => vec!["fs", "crash", "lab"],
    }
}

/// Files of tests with recorded results.
const RECORDED: [&str; 2] = ["corpus::", "golden::"];

/// Whether a check proves nothing about a mutant. A recorded result says that a figure changed, not which of both numbers is
/// the right one, and is recorded anew with each change: only what computes a figure in another way catches its mutant.
fn is_recorded(mutant: &Mutant, check: &Check) -> bool {
    let is_recorded = match check {
        Check::Test { filter, .. } => RECORDED.contains(&filter.as_str()),
        Check::Campaign(_) => false,
    };
    is_recorded && mutant.is_of_figures()
}

/// Whether a check runs nothing that a mutant changes: F2FS's own tests with a mutant of ext4. The tests of ext4 have
/// the promises that F2FS keeps, too.
fn is_beside(mutant: &Mutant, check: &Check) -> bool {
    let is_of_f2fs = match check {
        Check::Test { program, filter } => program.ends_with(" f2fs") || filter == "f2fs::",
        Check::Campaign(_) => false,
    };
    is_of_f2fs && ["ext4", "jbd2"].contains(&mutant.area.as_str())
}

/// The checks of the gate that are about a mutant, those first that its table names.
///
/// # Errors
/// Its table names a check that does not exist.
pub(super) fn of(mutant: &Mutant, built: &Built) -> Result<Vec<Check>, String> {
    let mut checks = first(mutant, built)?;
    let seeds = Seeds::read(&built.root)?;
    let of_area = |campaign: &Campaign| campaign.areas.contains(&mutant.area.as_str());
    let campaigns = campaigns(&built.root)?;
    let of_area = campaigns.iter().filter(|campaign| of_area(campaign));
    checks.extend(of_area.flat_map(|campaign| pinned(campaign, &seeds)));
    for owner in crates_of(mutant) {
        let of_crate =
            |test: &&TestProgram| test.name.split_once(' ').is_some_and(|(of, _)| of == owner);
        let of_crate = built.tests.iter().filter(of_crate).flat_map(TestProgram::checks);
        checks.extend(of_crate.filter(|check| !is_beside(mutant, check)));
        checks.retain(|check| !is_recorded(mutant, check));
    }
    let mut seen = Vec::new();
    checks.retain(|check| {
        let is_new = !seen.contains(check);
        seen.push(check.clone());
        is_new
    });
    Ok(checks)
}

/// The checks that the table of a mutant names.
///
/// # Errors
/// One of them does not exist.
pub(super) fn first(mutant: &Mutant, built: &Built) -> Result<Vec<Check>, String> {
    let (campaigns, seeds) = (campaigns(&built.root)?, Seeds::read(&built.root)?);
    let mut checks = Vec::new();
    for words in &mutant.first {
        let named = named(words, &campaigns, &seeds, &built.tests);
        checks.extend(named.map_err(|e| format!("{}: {e}", mutant.id))?);
    }
    Ok(checks)
}

/// The campaigns about a mutant, with the seeds that they derive from an origin.
///
/// # Errors
/// The campaigns cannot be read.
pub(super) fn fresh(mutant: &Mutant, built: &Built, origin: &str) -> Result<Vec<Check>, String> {
    let campaigns = campaigns(&built.root)?;
    let of_area = campaigns.iter().filter(|one| one.areas.contains(&mutant.area.as_str()));
    Ok(of_area.filter_map(|campaign| campaign.fresh(origin)).map(Check::Campaign).collect())
}

/// What a campaign runs in every gate.
fn pinned(campaign: &Campaign, seeds: &Seeds) -> Vec<Check> {
    campaign.pinned(seeds).into_iter().map(Check::Campaign).collect()
}

/// `crash ARGUMENTS`, which is the first campaign of the gate that has them, or `test CRATE PROGRAM [FILTER]`.
fn named(
    words: &str,
    campaigns: &[Campaign],
    seeds: &Seeds,
    tests: &[TestProgram],
) -> Result<Vec<Check>, String> {
    if let Some(args) = words.strip_prefix("crash ") {
        let campaign = campaigns.iter().find(|campaign| has_arguments(&campaign.args, args));
        return match campaign {
            Some(campaign) => Ok(pinned(campaign, seeds)),
            None => Err(format!("no campaign of the gate has the arguments {args:?}")),
        };
    }
    let parts: Vec<&str> = words.split(' ').collect();
    let ["test", owner, program, filter @ ..] = parts.as_slice() else {
        return Err(format!("{words:?} is no check"));
    };
    let (program, filter) = (format!("{owner} {program}"), filter.join(" "));
    let has_tests = |test: &&TestProgram| {
        test.name == program && test.tests.iter().any(|name| name.contains(&filter))
    };
    match tests.iter().find(has_tests) {
        Some(_) => Ok(vec![Check::Test { program, filter }]),
        None => {
            Err(format!("no test program {program:?} has tests with {filter:?} in their names"))
        }
    }
}

/// Whether all of `wanted`, options with their values, are among `args`.
fn has_arguments(args: &str, wanted: &str) -> bool {
    let options = |args: &str| -> Vec<String> {
        args.split("--").map(|option| option.trim().to_owned()).collect()
    };
    let there = options(args);
    options(wanted).iter().all(|option| there.contains(option))
}

/// Runs a check of a mutant, or of the program without one (0), for at most so many CPU seconds.
///
/// # Errors
/// It cannot be started.
pub(super) fn run(
    check: &Check,
    built: &Built,
    number: u32,
    cpu_max_s: u64,
) -> Result<Ran, String> {
    // What waits uses no CPU time, and ends by the clock.
    let wall_max_s = 4 * cpu_max_s + 120;
    let mut command = Command::new("timeout");
    command.args(["-k", "5", &wall_max_s.to_string(), "sh", "-c"]);
    command.arg(format!(
        "ulimit -v {MEMORY_KIB} -t {cpu_max_s}; \"$0\" \"$@\"; code=$?; times >&2; exit $code"
    ));
    match check {
        Check::Campaign(args) => {
            command.current_dir(&built.root).arg(&built.nandscape).arg("crash");
            command.args(args.split(' '));
            command.args(["--jobs", "1", "--max-violations", "1", "--output-format", "json"]);
        }
        Check::Test { program, filter } => {
            let test = built.tests.iter().find(|test| test.name == *program);
            let test = test.ok_or_else(|| format!("no test program {program:?}"))?;
            command.current_dir(&test.folder).arg(&test.executable).args(filter.split_whitespace());
            command.args(["--test-threads", "1"]);
        }
    }
    for required in ["FIO", "E2FS", "F2FS", "LOOP"] {
        command.env(format!("NANDSCAPE_REQUIRE_{required}"), "1");
    }
    command.env(CHOICE, number.to_string()).stdin(Stdio::null());
    let output = command.output().map_err(|e| format!("timeout: {e}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    // Without a report of the shell it was killed by the clock.
    let (errors, cpu_s) = with_times(&errors).unwrap_or((&errors, 0.0));
    let end = match (output.status.code(), check) {
        (Some(0), _) => End::Passed,
        (Some(TIMED_OUT | KILLED | OUT_OF_CPU), _) => {
            End::Caught { what: "it does not end".into(), place: None }
        }
        (_, Check::Campaign(_)) => violation(&text).unwrap_or_else(|| ended(errors)),
        (_, Check::Test { .. }) => failed_test(&text).unwrap_or_else(|| ended(errors)),
    };
    Ok(Ran { end, cpu_s })
}

/// Exit codes of `timeout`, when it ended the program and when it had to kill it, and of the shell whose program had no CPU
/// time left (128 + SIGXCPU).
pub(crate) const TIMED_OUT: i32 = 124;
pub(crate) const KILLED: i32 = 137;
const OUT_OF_CPU: i32 = 152;

/// What a program wrote before the two lines of the shell's `times`, and the CPU seconds in the second of them, which is of
/// the shell's children.
fn with_times(errors: &str) -> Option<(&str, f64)> {
    let (errors, of_children) = errors.trim_end().rsplit_once('\n')?;
    let (errors, _) = errors.rsplit_once('\n').unwrap_or(("", errors));
    let seconds = |time: &str| {
        let (minutes, seconds) = time.strip_suffix('s')?.split_once('m')?;
        Some(minutes.parse::<f64>().ok()? * 60.0 + seconds.parse::<f64>().ok()?)
    };
    let times: Option<Vec<f64>> = of_children.split(' ').map(seconds).collect();
    Some((errors, times?.iter().sum()))
}

/// The first violation of a campaign's report, or of one of its compositions.
fn violation(report: &str) -> Option<End> {
    let report: Value = serde_json::from_str(report).ok()?;
    let compositions = report["compositions"].as_array().into_iter().flatten();
    let first = std::iter::once(&report)
        .chain(compositions)
        .find_map(|part| part["violations"].as_array()?.first())?;
    let what = first["message"].as_str().unwrap_or("a violation").to_owned();
    let left = &first["minimised"];
    let counts = || Some([left["operations_before"].as_u64()?, left["operations"].as_u64()?]);
    let place = first["seed"].as_u64().map(|seed| Place { seed, operations: counts() });
    Some(End::Caught { what, place })
}

/// The first test that failed.
fn failed_test(text: &str) -> Option<End> {
    let name =
        text.lines().find_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"))?;
    Some(End::Caught { what: format!("`{name}`"), place: None })
}

/// Of a program that reports neither: the last line of its errors.
fn ended(errors: &str) -> End {
    let last =
        errors.lines().rev().find(|line| !line.trim().is_empty() && !line.starts_with("note:"));
    End::Caught { what: last.unwrap_or("it ends without a report").trim().to_owned(), place: None }
}

/// The test programs in what `cargo test --no-run --message-format=json` printed, unit tests first.
///
/// # Errors
/// One of them cannot list its tests.
pub(super) fn test_programs(messages: &str, root: &Path) -> Result<Vec<TestProgram>, String> {
    let mut programs: Vec<TestProgram> =
        messages.lines().filter_map(|line| test_program(line, root)).collect();
    programs.sort_by_key(|test| (!test.name.ends_with(" lib"), test.name.clone()));
    for program in &mut programs {
        let output =
            Command::new(&program.executable).args(["--list", "--format", "terse"]).output();
        let output = output.map_err(|e| format!("{}: {e}", program.executable.display()))?;
        program.tests = listed(&String::from_utf8_lossy(&output.stdout));
    }
    Ok(programs)
}

fn test_program(message: &str, root: &Path) -> Option<TestProgram> {
    let message: Value = serde_json::from_str(message).ok()?;
    if message["profile"]["test"] != true {
        return None;
    }
    let executable = PathBuf::from(message["executable"].as_str()?);
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
    let owner = folder.strip_prefix(root.join("crates")).ok()?.display().to_string();
    let target = &message["target"];
    let kind = target["kind"][0].as_str()?;
    let name = if kind == "lib" { "lib" } else { target["name"].as_str()? };
    Some(TestProgram { name: format!("{owner} {name}"), executable, folder, tests: Vec::new() })
}

/// The names in a list of tests.
fn listed(list: &str) -> Vec<String> {
    list.lines().filter_map(|line| Some(line.strip_suffix(": test")?.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_name_what_was_caught() {
        let report = r#"{"violations": [{"seed": 7, "message": "lba 3 shows zeroes"}]}"#;
        let caught = |operations| End::Caught {
            what: "lba 3 shows zeroes".into(),
            place: Some(Place { seed: 7, operations }),
        };
        assert_eq!(violation(report), Some(caught(None)));
        let minimised = r#""minimised": {"operations": 4, "operations_before": 90}, "seed""#;
        let report = report.replace("\"seed\"", minimised);
        assert_eq!(violation(&report), Some(caught(Some([90, 4]))));
        let matrix = format!(r#"{{"compositions": [{{"violations": []}}, {report}]}}"#);
        assert_eq!(violation(&matrix), Some(caught(Some([90, 4]))));
        assert_eq!(violation(r#"{"violations": []}"#), None);
        let text = "running 2 tests\ntest a ... ok\ntest b::c ... FAILED\n";
        let caught = End::Caught { what: "`b::c`".into(), place: None };
        assert_eq!(failed_test(text), Some(caught));
    }

    #[test]
    fn times_are_taken_from_the_end() {
        let times = "0m0.01s 0m0.00s\n1m2.50s 0m0.25s\n";
        assert_eq!(with_times(&format!("a\nb\n{times}")), Some(("a\nb", 62.75)));
        assert_eq!(with_times(times), Some(("", 62.75)));
        assert_eq!(with_times("a\nb c\n"), None);
    }

    #[test]
    fn campaigns_are_found_by_their_arguments() {
        let args = "--fs f2fs --oracle-every 50 --base adversary-zoned";
        assert!(has_arguments(args, "--fs f2fs --base adversary-zoned"));
        assert!(!has_arguments(args, "--fs f2fs --base adversary"));
    }

    #[test]
    fn programs_are_found_in_cargos_messages() {
        let line = |kind: &str, name: &str, test: bool| {
            serde_json::json!({
                "reason": "compiler-artifact", "profile": { "test": test }, "executable": "/t/x",
                "manifest_path": "/r/crates/ftl/Cargo.toml", "target": { "kind": [kind], "name": name }
            })
            .to_string()
        };
        let messages = [
            line("test", "suite", true),
            line("lib", "nandscape_ftl", true),
            line("bin", "b", false),
        ];
        let programs: Vec<String> = messages
            .iter()
            .filter_map(|line| Some(test_program(line, Path::new("/r"))?.name))
            .collect();
        assert_eq!(programs, ["ftl suite", "ftl lib"]);
    }

    /// Recorded results are checks of what devices and file systems keep, and none of figures.
    #[test]
    fn recorded_results_do_not_catch_figures() {
        let mutant = |area: &str, file: &str| Mutant {
            id: String::new(),
            area: area.into(),
            file: file.into(),
            promise: Vec::new(),
            breaks: String::new(),
            form: crate::mutants::table::Form::Expression,
            find: String::new(),
            replace: String::new(),
            first: Vec::new(),
            equivalent: None,
        };
        let of_figures = mutant("figures", "crates/report/src/student.rs");
        assert_eq!(crates_of(&of_figures), ["report", "lab", "cli"]);
        let golden = Check::Test { program: "lab suite".into(), filter: "golden::".into() };
        let truth = Check::Test { program: "lab suite".into(), filter: "truth::".into() };
        assert!(is_recorded(&of_figures, &golden) && !is_recorded(&of_figures, &truth));
        assert!(!is_recorded(&mutant("ssd", "crates/ftl/src/lib.rs"), &golden));
    }

    /// A program of many files is a check for each, unit tests are one.
    #[test]
    fn files_are_checks() {
        let names =
            "golden::a: test\npblk::map::b: test\npblk::c: test\nhosts::d: test\nx: benchmark\n";
        let program = |name: &str| TestProgram {
            name: name.into(),
            executable: PathBuf::new(),
            folder: PathBuf::new(),
            tests: listed(names),
        };
        let filters = |name| {
            let filter = |check| match check {
                Check::Test { filter, .. } => filter,
                Check::Campaign(args) => args,
            };
            program(name).checks().into_iter().map(filter).collect::<Vec<String>>()
        };
        assert_eq!(filters("ftl suite"), ["hosts::", "pblk::", "golden::"]);
        assert_eq!(filters("ftl lib"), [""]);
        assert_eq!(
            named("test ftl suite pblk::c", &[], &Seeds::default(), &[program("ftl suite")])
                .map(|it| it.len()),
            Ok(1)
        );
        assert!(
            named("test ftl suite none_such", &[], &Seeds::default(), &[program("ftl suite")])
                .is_err()
        );
    }
}
