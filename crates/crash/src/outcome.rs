//! What a campaign found out: counts, violations with their event log, and the summary that people
//! read. Plain fields, from which JSON is made.

use crate::coverage::Coverage;
use crate::event::{LogEvent, lines};
use crate::settings::Settings;
use nandscape_block::Lba;
use nandscape_rt::words::{counted, grouped};
use std::fmt;
use std::ops::AddAssign;

/// What counts of them are of.
const SEEDS: [&str; 2] = ["seed", "seeds"];
const REQUESTS: [&str; 2] = ["request", "requests"];

/// What was done to the devices. Sectors of 4 KiB.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Power cuts, those during recovery included.
    pub cuts: u64,
    /// Power cuts during recovery.
    pub cuts_in_recovery: u64,
    /// Requests submitted.
    pub requests: u64,
    /// Sectors of submitted writes.
    pub sectors_written: u64,
    /// Sectors of submitted reads, checks after recovery included.
    pub sectors_read: u64,
    /// Sectors of submitted discards.
    pub sectors_discarded: u64,
    /// Flushes submitted (writes with PREFLUSH or FUA left out).
    pub flushes: u64,
    /// Requests that the device refused because of injected faults.
    pub refused: u64,
    /// Programs on the media.
    pub programs: u64,
    /// Erases on the media.
    pub erases: u64,
    /// Injected program failures.
    pub program_failures: u64,
    /// Injected erase failures.
    pub erase_failures: u64,
    /// Reads that failed because media had lost a sector.
    pub unreadable: u64,
    /// Devices that wore out under injected faults before their last round.
    pub worn_out: u64,
    /// Drawn configurations that the device found too small, and that were drawn again.
    pub rejected_configs: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.cuts += other.cuts;
        self.cuts_in_recovery += other.cuts_in_recovery;
        self.requests += other.requests;
        self.sectors_written += other.sectors_written;
        self.sectors_read += other.sectors_read;
        self.sectors_discarded += other.sectors_discarded;
        self.flushes += other.flushes;
        self.refused += other.refused;
        self.programs += other.programs;
        self.erases += other.erases;
        self.program_failures += other.program_failures;
        self.erase_failures += other.erase_failures;
        self.unreadable += other.unreadable;
        self.worn_out += other.worn_out;
        self.rejected_configs += other.rejected_configs;
    }
}

/// A promise that was not kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// The seed that shows it again.
    pub seed: u64,
    /// Rounds before the one in which it showed.
    pub round: u32,
    /// Which promise, or what went wrong.
    pub what: String,
    /// The sector at fault, when it is about one.
    pub lba: Option<Lba>,
    /// What the sector may show.
    pub expected: Vec<String>,
    /// What it showed.
    pub got: String,
    /// The last events that touched the sector, or the files of the writer at fault.
    pub event_log: Vec<LogEvent>,
    /// Of a part of a seed's run on a file system: its calls, as a case of `crash --calls`.
    pub calls: Vec<String>,
    /// Everything that the seed chose.
    pub scenario: Settings,
}

impl Violation {
    /// What went wrong, on one line.
    #[must_use]
    pub fn summary(&self) -> String {
        let Self { seed, round, what, .. } = self;
        match self.mismatch() {
            Some(mismatch) => format!("seed {seed}, round {round}: {what}; {mismatch}"),
            None => format!("seed {seed}, round {round}: {what}"),
        }
    }

    /// What went wrong, without numbers, names and what was expected: two violations of one class are of one kind.
    #[must_use]
    pub fn class(&self) -> String {
        let shown = self.what.split(';').next().unwrap_or_default();
        let named = |word: &&str| word.contains(|c: char| c.is_ascii_digit());
        shown.split(' ').filter(|word| !named(word)).collect::<Vec<_>>().join(" ")
    }

    /// What the sector showed, and what it may show.
    pub(crate) fn mismatch(&self) -> Option<String> {
        let lba = self.lba?;
        Some(format!("{lba}: {}; expected {}", self.got, self.expected.join(" or ")))
    }
}

/// All of it: the summary, the events, and the scenario as TOML.
impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}, round {}: {}", self.seed, self.round, self.what)?;
        if let Some(mismatch) = self.mismatch() {
            writeln!(f, "  {mismatch}")?;
        }
        if !self.event_log.is_empty() {
            writeln!(f, "  events:")?;
        }
        lines(&self.event_log).iter().try_for_each(|line| writeln!(f, "    {line}"))?;
        write!(f, "  scenario:")?;
        let scenario = self.scenario.to_string();
        scenario.lines().try_for_each(|line| write!(f, "\n    {line}"))
    }
}

/// How one seed ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SeedOutcome {
    /// The seed.
    pub seed: u64,
    /// Everything that it chose.
    pub scenario: Settings,
    /// What was done.
    pub counts: Counts,
    /// Of a campaign on files: what was reached.
    pub coverage: Coverage,
    /// The first promise that was not kept.
    pub violation: Option<Box<Violation>>,
}

/// How far a campaign is.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Progress {
    /// Seeds run.
    pub seeds: u64,
    /// Power cuts so far.
    pub cuts: u64,
    /// Seeds that showed a violation.
    pub violations: u64,
}

/// The result of a campaign.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct CampaignReport {
    /// Seeds run.
    pub seeds: u64,
    /// Sums over the seeds.
    pub counts: Counts,
    /// Of a campaign on files: what was reached.
    pub coverage: Coverage,
    /// In order of seeds added.
    pub violations: Vec<Violation>,
}

impl CampaignReport {
    /// Adds a seed's outcome.
    pub fn add(&mut self, outcome: SeedOutcome) {
        self.seeds += 1;
        self.counts += outcome.counts;
        self.coverage += &outcome.coverage;
        self.violations.extend(outcome.violation.map(|v| *v));
    }

    /// How far it is.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let violations = self.violations.len() as u64;
        Progress { seeds: self.seeds, cuts: self.counts.cuts, violations }
    }

    /// Whether there was no violation.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.violations.is_empty()
    }
}

/// Counts, verdict, and every violation in full.
impl fmt::Display for CampaignReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = counted(self.seeds, SEEDS);
        write!(f, "{}{}", self.totals(), verdict(self.violations.len() as u64, &of))?;
        self.violations.iter().try_for_each(|violation| write!(f, "\n\n{violation}"))
    }
}

/// Whether a campaign passed, in words; `of` is what ran.
#[must_use]
pub fn verdict(violations: u64, of: &str) -> String {
    match violations {
        0 => "PASS: no violations".to_owned(),
        n => format!("FAIL: violations in {} of {of}", grouped(n)),
    }
}

impl CampaignReport {
    /// What was done to the devices, in lines.
    #[must_use]
    pub fn totals(&self) -> String {
        let c = &self.counts;
        let [written, discarded, read] =
            [c.sectors_written, c.sectors_discarded, c.sectors_read].map(grouped);
        let mut lines = vec![
            format!(
                "{}, {} ({} during recovery), {}",
                counted(self.seeds, SEEDS),
                counted(c.cuts, ["power cut", "power cuts"]),
                grouped(c.cuts_in_recovery),
                counted(c.requests, REQUESTS)
            ),
            format!(
                "  sectors: {written} written, {discarded} discarded, {read} read; {}",
                counted(c.flushes, ["flush", "flushes"])
            ),
            format!(
                "  media: {} ({} failed), {} ({} failed); {} refused, {} worn out",
                counted(c.programs, ["program", "programs"]),
                grouped(c.program_failures),
                counted(c.erases, ["erase", "erases"]),
                grouped(c.erase_failures),
                counted(c.refused, REQUESTS),
                counted(c.worn_out, ["device", "devices"]),
            ),
        ];
        if c.unreadable > 0 {
            let reads = counted(c.unreadable, ["read", "reads"]);
            lines.push(format!("  {reads} of uncorrectable sectors"));
        }
        if c.rejected_configs > 0 {
            let configs = ["random configuration", "random configurations"];
            let configs = counted(c.rejected_configs, configs);
            lines.push(format!("  {configs} rejected and redrawn"));
        }
        lines.into_iter().map(|line| line + "\n").collect()
    }
}
