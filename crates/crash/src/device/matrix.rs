//! The composition matrix: each legal composition gets its share of power cuts; what the FTL refuses
//! is reported with its sentence. A composition's run depends on nothing but itself, so an engineer who has
//! threads may spread them.

use crate::device::target::run_seed;
use crate::draw::pblk::composition::{self, Composition, Pins, Widths};
use crate::draw::scenario::Options;
use crate::outcome::{CampaignReport, Violation};
use nandscape_rt::words::grouped;
use std::collections::BTreeMap;
use std::fmt;

/// Seeds that each composition has for itself.
const SEEDS_EACH: u64 = 100_000;

/// What is to be run.
#[derive(Clone, Debug)]
pub struct Matrix {
    /// Compositions to run.
    pub legal: Vec<Composition>,
    /// Those that the FTL refuses, and its sentence.
    pub refused: Vec<(Composition, String)>,
    /// Power cuts for each, at least.
    pub cuts: u64,
    /// The first composition's first seed.
    pub first: u64,
}

impl Matrix {
    /// Every legal composition with the choices that are given; with usual widths, if none are given.
    #[must_use]
    pub fn all(given: &Pins, cuts: u64, first: u64) -> Self {
        let (mut legal, mut refused) = (Vec::new(), Vec::new());
        for composition in composition::all(given.widths.unwrap_or(Widths::Usual))
            .into_iter()
            .filter(|it| given.permit(it))
        {
            match composition.refusal() {
                None => legal.push(composition),
                Some(why) => refused.push((composition, why)),
            }
        }
        Self { legal, refused, cuts, first }
    }

    /// Some of these, in which any two choices meet.
    #[must_use]
    pub fn pairs(given: &Pins, cuts: u64, first: u64) -> Self {
        let all = Self::all(given, cuts, first);
        Self { legal: composition::pairwise(&all.legal), ..all }
    }

    /// Runs the composition with this index, until it has its cuts or enough violations, or `stop` says so.
    #[must_use]
    pub fn run(&self, index: usize, options: &Options, stop: &dyn Fn() -> bool) -> CampaignReport {
        let options = Options { pins: self.legal[index].into(), ..options.clone() };
        let first = self.first.wrapping_add(index as u64 * SEEDS_EACH);
        let mut report = CampaignReport::default();
        for seed in (0..SEEDS_EACH).map(|further| first.wrapping_add(further)) {
            let enough = report.counts.cuts >= self.cuts
                || report.violations.len() >= options.violations_max;
            if enough || stop() {
                break;
            }
            report.add(run_seed(seed, &options));
        }
        report
    }
}

/// What a matrix found, in the order of its compositions.
#[derive(Clone, Debug)]
pub struct MatrixReport<'a> {
    matrix: &'a Matrix,
    reports: Vec<CampaignReport>,
}

impl<'a> MatrixReport<'a> {
    /// The reports of the compositions, one each; of a matrix that was interrupted those of the first ones.
    #[must_use]
    pub fn new(matrix: &'a Matrix, reports: Vec<CampaignReport>) -> Self {
        Self { matrix, reports }
    }

    /// Compositions and what was found in them.
    pub fn compositions(&self) -> impl Iterator<Item = (&Composition, &CampaignReport)> {
        self.matrix.legal.iter().zip(&self.reports)
    }

    /// What was to be run.
    #[must_use]
    pub const fn matrix(&self) -> &Matrix {
        self.matrix
    }

    /// Compositions and what broke in them.
    pub fn violations(&self) -> impl Iterator<Item = (&Composition, &Violation)> {
        self.compositions().flat_map(|(it, report)| report.violations.iter().map(move |v| (it, v)))
    }

    /// The least cuts that any composition got.
    #[must_use]
    pub fn cuts_least(&self) -> u64 {
        self.reports.iter().map(|report| report.counts.cuts).min().unwrap_or(0)
    }

    /// Seeds that ran.
    #[must_use]
    pub fn seeds(&self) -> u64 {
        self.total().seeds
    }

    fn total(&self) -> Row {
        self.reports.iter().fold(Row::default(), Row::plus)
    }

    /// Rows of the choices of one kind, which `name` cuts out of a composition's name.
    fn rows(&self, part: usize) -> BTreeMap<String, Row> {
        let mut rows = BTreeMap::new();
        for (composition, report) in self.compositions() {
            let name = composition.to_string();
            let name = name.split('/').nth(part).unwrap_or_default().to_string();
            let row: &mut Row = rows.entry(name).or_default();
            *row = row.plus(report);
        }
        rows
    }
}

/// Sums of a few compositions.
#[derive(Clone, Copy, Default, Debug)]
struct Row {
    compositions: u64,
    seeds: u64,
    cuts: u64,
    in_recovery: u64,
    violations: usize,
}

impl Row {
    fn plus(self, report: &CampaignReport) -> Self {
        Self {
            compositions: self.compositions + 1,
            seeds: self.seeds + report.seeds,
            cuts: self.cuts + report.counts.cuts,
            in_recovery: self.in_recovery + report.counts.cuts_in_recovery,
            violations: self.violations + report.violations.len(),
        }
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result {
        writeln!(
            f,
            "{name:<42} {:>6} {:>8} {:>9} {:>9} {:>10}",
            self.compositions, self.seeds, self.cuts, self.in_recovery, self.violations
        )
    }
}

impl fmt::Display for MatrixReport<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let heads = ["ROUTING", "FLUSH SCOPE", "LINE SET", "STREAM OF COPIES", "MAP"];
        for (part, head) in heads.into_iter().enumerate() {
            writeln!(
                f,
                "{head:<42} {:>6} {:>8} {:>9} {:>9} {:>10}",
                "stacks", "seeds", "cuts", "recovery", "violations"
            )?;
            self.rows(part).iter().try_for_each(|(name, row)| row.write(f, name))?;
            writeln!(f)?;
        }
        self.total().write(f, "TOTAL")?;
        self.write_refused(f)
    }
}

impl MatrixReport<'_> {
    /// The sentences of the FTL, each with the number of compositions that it refused so.
    fn write_refused(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let refused = &self.matrix.refused;
        match refused.len() as u64 {
            1 => write!(f, "1 composition is refused")?,
            n => write!(f, "{} compositions are refused", grouped(n))?,
        }
        let mut sentences: BTreeMap<&str, (usize, &Composition)> = BTreeMap::new();
        for (composition, why) in refused {
            sentences.entry(why).or_insert((0, composition)).0 += 1;
        }
        let mut sentences = sentences.iter();
        sentences.try_for_each(|(why, (n, first))| write!(f, "\n  {n} such as {first}: {why}"))
    }
}
