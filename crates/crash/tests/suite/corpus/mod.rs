//! The outcomes of recorded seeds are what they were when `corpus.json` was recorded: what a seed draws, how many
//! power cuts, requests, programs and erases it makes, and whether a promise is broken. A seed's number is data: reports
//! and tests name seeds. See `nandscape_corpus` for how rows are recorded and compared.

use nandscape_corpus::{Corpus, Row};
use nandscape_crash::composition::Pins;
use nandscape_crash::fs::{Base, FsOptions, run_fs_seed};
use nandscape_crash::matrix::Matrix;
use nandscape_crash::{Counts, FaultRates, Options, SeedOutcome, run_seed};
use nandscape_fs::FsKind;
use std::ops::Range;
use std::path::Path;

/// Seeds of one composition.
const SEEDS_EACH: u64 = 8;

fn numbers(counts: &Counts) -> String {
    let c = counts;
    let all = [
        c.cuts,
        c.cuts_in_recovery,
        c.requests,
        c.sectors_written,
        c.sectors_read,
        c.sectors_discarded,
        c.flushes,
        c.refused,
        c.programs,
        c.erases,
        c.program_failures,
        c.erase_failures,
        c.unreadable,
        c.worn_out,
        c.rejected_configs,
    ];
    format!("{all:?}")
}

/// A row of one seed or several: `scenario` is what they chose, `counts` what was done.
fn row(outcomes: &[SeedOutcome]) -> Row {
    let text =
        |part: fn(&SeedOutcome) -> String| outcomes.iter().map(part).collect::<Vec<_>>().join("\n");
    let sum = |part: fn(&Counts) -> u64| outcomes.iter().map(|it| part(&it.counts)).sum::<u64>();
    let violated = outcomes.iter().find_map(|it| it.violation.as_ref());
    let violation = violated.map_or("none".into(), |it| format!("seed-{}", it.seed));
    Row::default()
        .with_hash("scenario", &text(|it| it.scenario.to_string()))
        .with_hash("counts", &text(|it| numbers(&it.counts)))
        .with("cuts", sum(|it| it.cuts))
        .with("cuts_in_recovery", sum(|it| it.cuts_in_recovery))
        .with("requests", sum(|it| it.requests))
        .with("programs", sum(|it| it.programs))
        .with("erases", sum(|it| it.erases))
        .with("violation", violation)
}

/// A row for each of these seeds.
fn each(corpus: &mut Corpus, name: &str, seeds: Range<u64>, run: impl Fn(u64) -> SeedOutcome) {
    seeds.for_each(|seed| corpus.add(&format!("{name}/{seed:02}"), row(&[run(seed)])));
}

fn devices(corpus: &mut Corpus) {
    let options = Options::default();
    each(corpus, "pblk", 0..64, |seed| run_seed(seed, &options));
    let odd = Options { edge_cases: true, ..Options::default() };
    each(corpus, "pblk-odd", 0..16, |seed| run_seed(seed, &odd));
    let matrix = Matrix::pairs(&Pins::default(), 0, 0);
    for composition in &matrix.legal {
        let options = Options { pins: (*composition).into(), ..Options::default() };
        let outcomes: Vec<_> = (0..SEEDS_EACH).map(|seed| run_seed(seed, &options)).collect();
        corpus.add(&format!("pair/{composition}"), row(&outcomes));
    }
}

/// ext4 on this base, in these modes.
fn ext4(base: Base, modes: [(&'static str, &str); 2]) -> FsOptions {
    let mut fs = FsKind::Ext4.config();
    for (key, value) in modes {
        fs.choose(key, value).unwrap();
    }
    FsOptions::new(base, fs)
}

fn file_systems(corpus: &mut Corpus) {
    let faultless = Options { faults: Some(FaultRates::default()), ..Options::default() };
    let flash = || Base::Flash(Box::new(faultless.clone()));
    for data in ["ordered", "journal", "writeback"] {
        let options = ext4(flash(), [("data", data), ("commit", "jbd2")]);
        each(corpus, &format!("ext4-pblk-{data}"), 0..8, |seed| run_fs_seed(seed, &options, None));
    }
    for commit in ["jbd2", "ijournal"] {
        let options = ext4(Base::Adversary, [("data", "ordered"), ("commit", commit)]);
        let name = format!("ext4-adversary-{commit}");
        each(corpus, &name, 0..8, |seed| run_fs_seed(seed, &options, None));
    }
}

#[test]
fn outcomes_are_as_recorded() {
    let mut corpus = Corpus::default();
    devices(&mut corpus);
    file_systems(&mut corpus);
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus.json");
    let settled = corpus.settle(&file, Path::new(env!("CARGO_TARGET_TMPDIR")));
    settled.unwrap_or_else(|report| panic!("{report}"));
}
