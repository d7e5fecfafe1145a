//! `docs/results/mutants.md`: scores by area, and what catches each mutant.

use super::record::Record;
use super::table::Mutant;
use crate::median::median;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

const HEAD: &str = "\
# Mutants

A mutant is a small change of the product that breaks one numbered promise of `docs/semantics`, or makes a figure wrong that a page of
`docs/formats` defines; recorded results do not count as what catches the latter. `cargo xtask mutants` builds the product once
with all of `xtask/mutants/*.toml`, runs for each mutant the campaigns and tests of the gate that are about its part of the product until one fails, and
writes this page. Campaigns run the seeds that they run in every gate, not those of a commit. A result counts until the mutant's file or the check
changes. `--long 3600` then runs further campaigns, for an hour, for each mutant that the gate misses.

";

/// How the words of a broken invariant begin (`nandscape_rt::invariant::BROKEN`).
const BROKEN: &str = "invariant: ";

/// Mutants and what became of them.
pub(super) struct Page<'a> {
    rows: Vec<(&'a Mutant, Option<Record>)>,
}

#[derive(Default)]
struct Score {
    mutants: usize,
    equivalent: usize,
    by_gate: usize,
    by_long: usize,
}

impl<'a> Page<'a> {
    /// Of these mutants, each with its record if that counts.
    pub(super) const fn of(rows: Vec<(&'a Mutant, Option<Record>)>) -> Self {
        Self { rows }
    }

    /// How many of the mutants that can be caught are.
    pub(super) fn summary(&self) -> String {
        let meaningful = self.rows.iter().filter(|(mutant, _)| mutant.equivalent.is_none()).count();
        let survivors = self.survivors();
        let names: Vec<&str> = survivors.iter().map(|mutant| mutant.id.as_str()).collect();
        let left =
            if names.is_empty() { String::new() } else { format!("; not {}", names.join(", ")) };
        format!("{} of {meaningful} mutants caught{left}", meaningful - survivors.len())
    }

    /// Mutants that no check catches, without those that none can.
    pub(super) fn survivors(&self) -> Vec<&Mutant> {
        let survives = |(mutant, record): &&(&'a Mutant, Option<Record>)| {
            mutant.equivalent.is_none() && !record.as_ref().is_some_and(Record::is_caught)
        };
        self.rows.iter().filter(survives).map(|(mutant, _)| *mutant).collect()
    }

    pub(super) fn text(&self) -> String {
        HEAD.to_owned()
            + &self.scores()
            + &self.campaigns()
            + &self.operations()
            + &self.promises()
            + &self.list()
    }

    /// # Errors
    /// The file cannot be written.
    pub(super) fn write(&self, file: &Path) -> Result<(), String> {
        std::fs::write(file, self.text()).map_err(|e| format!("{}: {e}", file.display()))
    }

    fn scores(&self) -> String {
        // Parts by name, then the sums.
        let mut scores: BTreeMap<(u32, &str), Score> = BTreeMap::new();
        for (mutant, record) in &self.rows {
            let layer = match mutant.area.as_str() {
                _ if mutant.is_of_ftls() => Some("FTLs and SSDs"),
                _ if mutant.is_of_figures() => None,
                _ => Some("file systems"),
            };
            let parts = [Some((0, mutant.area.as_str())), layer.map(|layer| (1, layer))];
            for part in parts.into_iter().flatten().chain([(2, "all")]) {
                let score = scores.entry(part).or_default();
                score.mutants += 1;
                score.equivalent += usize::from(mutant.equivalent.is_some());
                let caught = record.as_ref().filter(|record| record.is_caught());
                score.by_gate += usize::from(caught.is_some_and(|record| !record.long));
                score.by_long += usize::from(caught.is_some_and(|record| record.long));
            }
        }
        let mut text = "| Part | Mutants | Equivalent | Caught by the gate | Score | By longer campaigns | Survive |\n\
                        |---|---|---|---|---|---|---|\n"
            .to_owned();
        for ((_, part), score) in scores {
            let Score { mutants, equivalent, by_gate, by_long } = score;
            let meaningful = mutants - equivalent;
            let percent = 100.0 * by_gate as f64 / meaningful.max(1) as f64;
            let survive = meaningful - by_gate - by_long;
            let _ = writeln!(
                text,
                "| {part} | {mutants} | {equivalent} | {by_gate} | {percent:.1} % | {by_long} | {survive} |"
            );
        }
        text + "\n"
    }

    /// At what campaigns notice mutants, and at which seed.
    fn campaigns(&self) -> String {
        let records = self.rows.iter().filter_map(|(_, record)| record.as_ref());
        let is_of_campaign = |record: &&Record| record.place.is_some();
        let found: Vec<&Record> = records.filter(is_of_campaign).collect();
        let at_invariant =
            |record: &&&Record| record.what.as_deref().is_some_and(|what| what.contains(BROKEN));
        let seeds = found.iter().filter_map(|record| Some(record.place?.seed as f64));
        format!(
            "Campaigns notice {} mutants, {} of them first at an invariant; the median seed that does is {}.\n\n",
            found.len(),
            found.iter().filter(at_invariant).count(),
            median(seeds).unwrap_or_default()
        )
    }

    /// How small violations become that campaigns found.
    fn operations(&self) -> String {
        let found = self.rows.iter().filter_map(|(_, record)| record.as_ref()?.place?.operations);
        let found: Vec<[u64; 2]> = found.collect();
        let median = |index: usize| {
            median(found.iter().map(|counts| counts[index] as f64)).unwrap_or_default()
        };
        format!(
            "Campaigns minimised the violations of {} mutants: the median run of {} operations has {} left.\n\n",
            found.len(),
            median(0),
            median(1)
        )
    }

    fn promises(&self) -> String {
        let mut promises: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
        for (mutant, record) in self.rows.iter().filter(|(mutant, _)| mutant.equivalent.is_none()) {
            for promise in &mutant.promise {
                let counts = promises.entry(promise).or_default();
                counts[0] += 1;
                counts[1] += usize::from(record.as_ref().is_some_and(Record::is_caught));
            }
        }
        let mut text = "| Promise | Mutants | Caught |\n|---|---|---|\n".to_owned();
        for (promise, [mutants, caught]) in promises {
            let _ = writeln!(text, "| {promise} | {mutants} | {caught} |");
        }
        text + "\n"
    }

    fn list(&self) -> String {
        let mut text =
            "| Mutant | What it breaks | Promise | Caught by | Seed | Operations, minimised | What is reported |\n\
                        |---|---|---|---|---|---|---|\n"
                .to_owned();
        for (mutant, record) in &self.rows {
            let caught = match (&mutant.equivalent, record) {
                (Some(why), _) => format!("equivalent: {why} | | | "),
                (None, Some(Record { check: Some(check), what, place, .. })) => {
                    let seed = place.map(|place| place.seed.to_string()).unwrap_or_default();
                    let left = place.and_then(|place| place.operations);
                    let left = left.map(|[_, left]| left.to_string()).unwrap_or_default();
                    let what = shortened(what.as_deref().unwrap_or_default());
                    format!("`{}` | {seed} | {left} | {what}", check.trim())
                }
                _ => "survives | | | ".to_owned(),
            };
            let Mutant { id, breaks, promise, .. } = mutant;
            let _ = writeln!(text, "| `{id}` | {breaks} | {} | {caught} |", promise.join(", "));
        }
        text
    }
}

/// What became of one mutant, for a terminal.
pub(super) fn line(record: &Record) -> String {
    let Record { id, check, what, place, seconds, .. } = record;
    let seed = place.map(|place| format!(", seed {}", place.seed)).unwrap_or_default();
    match check {
        Some(check) => {
            let what = shortened(what.as_deref().unwrap_or_default());
            format!("{id}: {check}{seed}: {what} ({seconds:.0} s)")
        }
        None => format!("{id}: SURVIVES ({seconds:.0} s)"),
    }
}

/// A message for a cell of a table.
fn shortened(message: &str) -> String {
    let line: String = message.lines().next().unwrap_or_default().replace('|', "/");
    match line.char_indices().nth(120) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
