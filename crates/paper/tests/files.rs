//! The files of a paper: what is right is read, what is wrong is told with its place.

mod common;

use common::{changed, tiny};
use nandscape_lab::stack::document::{Table, sweep_overrides};
use nandscape_paper::{Claim, Files, Paper, shipped};
use std::path::Path;

/// A paper is read as it stands, and --quick lays what it says over the sweeps.
#[test]
fn a_paper_is_read() {
    let paper = Paper::load(Files::Host, &tiny(), false, &Table::new()).unwrap();
    assert_eq!((paper.id.as_str(), paper.year, paper.runs()), ("tiny", 2026, 18));
    assert_eq!(paper.statements[1].claim, Claim::Readings(vec![0.5, 0.66]));
    assert_eq!(paper.statements[0].sensitivity, [0]);
    let quick = Paper::load(Files::Host, &tiny(), true, &Table::new()).unwrap();
    assert_eq!(quick.runs(), 10);
}

/// Every paper that ships is sound, also when it is asked quickly.
#[test]
fn papers_that_ship_are_sound() {
    for id in shipped() {
        let (files, folder) = Files::find(id);
        for quick in [false, true] {
            if let Err(error) = Paper::load(files, &folder, quick, &Table::new()) {
                panic!("{error}");
            }
        }
    }
}

/// File, what stands there, what stands there instead, and what is said of it.
type Slip = (&'static str, &'static str, &'static str, &'static str);

const RENAMED: [Slip; 5] = [
    ("paper.toml", "[[experiment]]", "[[question]]", "paper.toml:7:3: question: is experiment now"),
    ("paper.toml", "metric = \"waf.gc", "shows = \"waf.gc", "figure.shows: is metric now"),
    ("published.toml", "text = ", "says = ", "statement.says: is text now"),
    ("published.toml", "not_measured", "unmeasured", "statement.unmeasured: is not_measured now"),
    (
        "published.toml",
        "experiment = \"space\"",
        "question = \"space\"",
        "statement.measured.question: is experiment now",
    ),
];

const SLIPS_OF_PAPERS: [Slip; 9] = [
    ("paper.toml", "claims =", "claim =", "paper.toml:1:1: claims: is missing"),
    ("paper.toml", "plot = \"bars\"", "plot = \"pie\"", "figure.plot: expected bars | lines | cdf"),
    (
        "paper.toml",
        "experiment = \"space\"",
        "experiment = \"spac\"",
        "there is no \"spac\"; there are: space",
    ),
    (
        "paper.toml",
        "x = \"job\"",
        "x = \"jobs\"",
        "figure.x: experiment \"space\" has no axis \"jobs\"",
    ),
    ("paper.toml", "id = \"2\"", "id = \"1\"", "figure.id: \"1\" is there twice"),
    (
        "paper.toml",
        "stack=small.toml",
        "stack=tiny",
        "no point has stack=tiny; there are small.toml, empty.toml",
    ),
    (
        "paper.toml",
        "chosen = 2",
        "chosen = 3",
        "assumption.chosen: experiment \"depth\" has no var.depth=3; it has 2, 8",
    ),
    (
        "paper.toml",
        "sweep = \"maps.toml\"",
        "sweep = \"none.toml\"",
        "experiment.sweep: none.toml: ",
    ),
    (
        "paper.toml",
        "latency_cdf.sync",
        "latency_cdf.flush",
        "figure.metric: expected latency_cdf.read | ",
    ),
];

const SLIPS_BESIDE: [Slip; 11] = [
    (
        "published.toml",
        "at_most = 0.9\n",
        "",
        "statement.value: expected one of value, values, at_most, ",
    ),
    ("published.toml", "within = 0.0", "within = -1", "statement.within: expected a share"),
    (
        "published.toml",
        "partially = 0.1",
        "partially = 0.01",
        "statement.partially: expected no less than within",
    ),
    (
        "published.toml",
        "stack = \"empty.toml\"",
        "stack = \"tiny.toml\"",
        "has no stack=tiny.toml; it has small.toml, empty.toml",
    ),
    (
        "published.toml",
        "sensitivity = [\"depth\"]",
        "sensitivity = [\"space\"]",
        "statement.sensitivity: there is no \"space\"; there are: depth",
    ),
    (
        "published.toml",
        "direction = false",
        "direction = false\nsensitivity = [\"depth\"]",
        "statement.sensitivity: assumption \"depth\" of experiment \"depth\" is var.depth=2, and the statement is measured at 8",
    ),
    (
        "published.toml",
        "take = \"max\"",
        "take = \"most\"",
        "statement.measured.take: expected mean | max | min",
    ),
    (
        "published.toml",
        "not_measured",
        "unmesured",
        "statement.measured: expected either measured, or not_measured",
    ),
    (
        "published.toml",
        "figure = \"1\"",
        "figure = \"9\"",
        "statement.figure: there is no \"9\"; there are: 1, 2, 3",
    ),
    ("space.toml", "seeds = 2", "seed = 2", "space.toml:3:1: seed: unknown key"),
    ("empty.toml", "fill = 0.0", "fill = -1.0", "empty.toml:5:8: precondition.fill: "),
];

/// Whatever is wrong has a file, a line, a column and a key, and says what would be right.
#[test]
fn wrong_papers_name_their_place() {
    for (at, slip) in RENAMED.iter().chain(&SLIPS_OF_PAPERS).chain(&SLIPS_BESIDE).enumerate() {
        let (file, from, to, message) = *slip;
        let load = |folder: &Path| Paper::load(Files::Host, folder, false, &Table::new());
        let error = changed(&format!("wrong-{at}"), file, (from, to), load).unwrap_err();
        let error = error.to_string();
        assert!(error.contains(message), "{from} -> {to}: {error}");
        assert!(error.contains(".toml:"), "{error}");
    }
}

/// A key that is laid over every sweep reaches each stack, but for what the sweep's own grid sets.
#[test]
fn a_key_of_the_command_line_reaches_every_stack() {
    let over = |set: &str| sweep_overrides(&[set.to_owned()]);
    let load = |over: &Table| Paper::load(Files::Host, &tiny(), false, over);
    let paper = load(&over("ftl.gc.victim=random").unwrap()).unwrap();
    let cases = paper.experiments.iter().flat_map(|experiment| &experiment.sweep.cases);
    let changed = cases.filter(|case| case.stack.toml.contains("victim = \"random\"")).count();
    let all =
        paper.experiments.iter().map(|experiment| experiment.sweep.cases.len()).sum::<usize>();
    assert_eq!(changed, all);
    assert!(load(&over("ftl.nonsense=1").unwrap()).is_err());
    assert!(over("nonsense").is_err());
}
