//! The files of a paper: what is right is read, what is wrong is reported with its place.

use crate::common;

use common::{changed, tiny};
use nandscape_lab::stack::document::{Table, sweep_overrides};
use nandscape_paper::{Column, Files, Measured, Paper, PublishedValue, Size, shipped};
use std::path::Path;

/// A paper is read as it stands, and --quick lays what it says over the sweeps.
#[test]
fn a_paper_is_read() {
    let paper = Paper::load(Files::Host, &tiny(), Size::Plain, &Table::new()).unwrap();
    assert_eq!((paper.id.as_str(), paper.year, paper.runs()), ("tiny", 2026, 18 + 8 + 8));
    assert_eq!(paper.statements[1].claim, PublishedValue::Readings(vec![0.5, 0.66]));
    assert_eq!(paper.statements[0].sensitivity, [0]);
    let quick = Paper::load(Files::Host, &tiny(), Size::Quick, &Table::new()).unwrap();
    assert_eq!(quick.runs(), 10 + 4 + 6);
}

/// Every paper that ships is sound at every size.
#[test]
fn papers_that_ship_are_sound() {
    for id in shipped() {
        let (files, folder) = Files::find(id);
        let load = |size| match Paper::load(files, &folder, size, &Table::new()) {
            Ok(paper) => paper,
            Err(error) => panic!("{error}"),
        };
        load(Size::Quick);
        if load(Size::Plain).has_full() {
            load(Size::Full);
        }
    }
}

/// What the tiny paper has for --full, with the end of the line.
const FULL: &str = "full = { seeds = 1, set = { media.chunks = 56 }, stacks = { \"empty.toml\" = \"roomy.toml\" } }\n";

/// File, what stands there, what stands there instead, and what is said of it.
type Slip = (&'static str, &'static str, &'static str, &'static str);

const RENAMED: [Slip; 5] = [
    ("paper.toml", "[[experiment]]", "[[question]]", "paper.toml:8:3: question: is experiment now"),
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

const SLIPS_OF_PAPERS: [Slip; 10] = [
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
    (
        "paper.toml",
        "series.write.bytes_per_s",
        "series.write.bytes",
        "figure.metric: expected series.iops | ",
    ),
];

const SLIPS_OF_VARIANTS: [Slip; 14] = [
    ("paper.toml", "id = \"greedy\"", "id = \"base\"", "variant.id: \"base\" is the paper without"),
    ("paper.toml", "id = \"filled\"", "id = \"greedy\"", "variant.id: \"greedy\" is there twice"),
    (
        "paper.toml",
        "experiments = [\"space\", \"depth\"]",
        "experiments = [\"spice\"]",
        "variant.experiments: there is no \"spice\"; there are: space, depth, maps",
    ),
    (
        "paper.toml",
        "scale = \"half\"",
        "scale = \"quarter\"",
        "variant.scale: experiment \"space\" has no scale \"quarter\"; it has half, full",
    ),
    ("paper.toml", "scale = \"full\"\n", "", "variant.scale: is missing"),
    ("paper.toml", "seeds = [3]\n", "", "variant.seeds: is missing"),
    ("paper.toml", "seeds = [3]", "seeds = 0", "seeds: expected how many"),
    (
        "paper.toml",
        "ftl.gc.victim = \"greedy\"",
        "ftl.gc.victims = 1",
        "ftl.gc.victims: unknown key",
    ),
    (
        "paper.toml",
        "\nstacks = { \"empty.toml\"",
        "\nstacks = { \"none.toml\"",
        "variant.stacks: no experiment of the variant has \"none.toml\"",
    ),
    (
        "paper.toml",
        "quick = { grid = { var.depth = [8] } }",
        "grid = { var.depth = [2] }",
        "statement.measured: variant \"filled\": experiment \"depth\" has no var.depth=8; it has 2",
    ),
    (
        "paper.toml",
        "quick = { grid = { var.depth = [8] } }",
        "grid = { var.deep = [2] }",
        "variant.grid: no experiment of the variant has this axis",
    ),
    (
        "paper.toml",
        "statements = [\"less\"",
        "statements = [\"least\"",
        "reason.statements: there is no \"least\"; there are: less, half, more, thousandth, power",
    ),
    (
        "paper.toml",
        "variants = [\"base\"",
        "variants = [\"bases\"",
        "reason.variants: there is no \"bases\"; there are: base, greedy, filled",
    ),
    (
        "paper.toml",
        "scale.half = { set = { media.chunks = 40 } }",
        "scale.half = 2",
        "experiment.scale: expected a table of changes under half",
    ),
];

const SLIPS_BESIDE: [Slip; 18] = [
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
        "/stack=small.toml\" }",
        "/stack=small.toml\", take = \"max\" }",
        "statement.measured.take: unknown key",
    ),
    (
        "published.toml",
        "not_measured",
        "unmesured",
        "statement.measured: expected either measured, or not_measured",
    ),
    (
        "published.toml",
        "not_measured",
        "surrogate = \"none\"\nnot_measured",
        "statement.surrogate: goes with measured only",
    ),
    (
        "published.toml",
        "not_measured",
        "undecidable = \"none\"\nnot_measured",
        "statement.undecidable: goes with measured only",
    ),
    ("published.toml", "value = 0.25 }", "}", "statement.contradicted.value: is missing"),
    (
        "published.toml",
        "value = 0.25 }",
        "value = 0.25, by = 2 }",
        "statement.contradicted.by: unknown key",
    ),
    ("published.toml", "within = 0.0\n", "within = 0.0\ninput = true\n", "statement.input: "),
    (
        "published.toml",
        "contradicted = {",
        "undecidable = \"none\"\ncontradicted = {",
        "statement.contradicted: goes without surrogate, undecidable and sensitivity",
    ),
    (
        "published.toml",
        "contradicted = {",
        "sensitivity = [\"depth\"]\ncontradicted = {",
        "statement.contradicted: goes without surrogate, undecidable and sensitivity",
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

/// Of `full`, in the paper as --full runs it.
const SLIPS_OF_FULL: [Slip; 6] = [
    ("paper.toml", FULL, "", "paper.toml:8:1: experiment: none has `full`, so --full has nothing"),
    ("paper.toml", "full = { seeds", "full = { seed", "paper.toml:13:10: seed: unknown key"),
    ("paper.toml", FULL, "full = 1\n", "paper.toml:13:8: experiment.full: expected a table"),
    (
        "paper.toml",
        "56 }, stacks = { \"empty.toml\"",
        "56 }, stacks = { \"none.toml\"",
        "paper.toml:13:61: experiment.stacks: experiment \"space\" has no stack \"none.toml\"",
    ),
    (
        "paper.toml",
        "\"roomy.toml\"",
        "2",
        "experiment.stacks: expected the file in the place of empty.toml",
    ),
    (
        "paper.toml",
        "stacks = { \"empty.toml\" = \"roomy.toml\" }",
        "stacks = [\"small.toml\", \"roomy.toml\"]",
        "experiment \"space\" has no stack=empty.toml; it has small.toml, roomy.toml",
    ),
];

/// Whatever is wrong has a file, a line, a column and a key, and says what would be right.
#[test]
fn wrong_papers_name_their_place() {
    let plain = RENAMED.iter().chain(&SLIPS_OF_PAPERS).chain(&SLIPS_OF_VARIANTS);
    let plain = plain.chain(&SLIPS_BESIDE).map(|slip| (Size::Plain, slip));
    let full = SLIPS_OF_FULL.iter().map(|slip| (Size::Full, slip));
    for (at, (size, slip)) in plain.chain(full).enumerate() {
        let (file, from, to, message) = *slip;
        let load = |folder: &Path| Paper::load(Files::Host, folder, size, &Table::new());
        let error = changed(&format!("wrong-{at}"), file, (from, to), load).unwrap_err();
        let error = error.to_string();
        assert!(error.contains(message), "{from} -> {to}: {error}");
        assert!(error.contains(".toml:"), "{error}");
    }
}

/// A variant lays its scale, its keys and its stacks over the experiments that it names, with seeds of its own;
/// under --quick one seed, and what it says besides. Points keep the names of the stacks that are replaced.
#[test]
fn variants_change_what_they_name() {
    let load = |size| Paper::load(Files::Host, &tiny(), size, &Table::new()).unwrap();
    let paper = load(Size::Plain);
    let names: Vec<String> = paper.sweeps().map(|(name, _)| name).collect();
    assert_eq!(names, ["space", "depth", "maps", "space-greedy", "space-filled", "depth-filled"]);
    let [greedy, filled] = paper.variants.as_slice() else { panic!("two variants") };
    let (at, sweep) = &greedy.sweeps[0];
    assert_eq!((*at, sweep.cases.len(), sweep.seeds.as_slice()), (0, 4, [1, 2].as_slice()));
    for case in &sweep.cases {
        for text in ["victim = \"greedy\"", "op_percent = 45", "chunks = 40"] {
            assert!(case.stack.toml.contains(text), "{text}: {}", case.stack.toml);
        }
    }
    let (_, sweep) = &filled.sweeps[0];
    let stacks: Vec<(&str, &str)> = sweep
        .cases
        .iter()
        .map(|case| (case.stack_name.as_str(), case.stack.name.as_str()))
        .collect();
    let replaced = ("empty.toml", "filled");
    assert_eq!(stacks, [("small.toml", "small"), ("small.toml", "small"), replaced, replaced]);
    assert_eq!(sweep.seeds, [3]);
    let quick = load(Size::Quick);
    let depth = &quick.variants[1].sweeps[1].1;
    assert_eq!((depth.cases.len(), depth.seeds.as_slice()), (2, [1].as_slice()));
}

/// --full runs what has `full`, with points named as ever, and leaves out variants and what other experiments show.
/// A statement on another experiment stays, and says so.
#[test]
fn full_leaves_what_it_runs() {
    let paper = Paper::load(Files::Host, &tiny(), Size::Full, &Table::new()).unwrap();
    let cases = paper.experiments.iter().flat_map(|experiment| &experiment.sweep.cases);
    let stacks: Vec<(&str, &str)> =
        cases.clone().map(|case| (case.stack_name.as_str(), case.stack.name.as_str())).collect();
    let (own, replaced) = (("small.toml", "small"), ("empty.toml", "roomy"));
    assert_eq!(stacks, [own, own, replaced, replaced]);
    assert!(cases.clone().all(|case| case.stack.toml.contains("chunks = 56")));
    assert_eq!((paper.runs(), paper.sweeps().count(), paper.variants.len()), (4, 1, 0));
    let figures: Vec<&str> = paper.figures.iter().map(|figure| figure.id.as_str()).collect();
    assert_eq!(figures, ["1", "3", "4"]);
    let left = (paper.assumptions.len(), paper.extensions.len(), paper.reasons.len());
    assert_eq!(left, (0, 0, 1));
    let [less, _, more, _, power] = paper.statements.as_slice() else { panic!("five statements") };
    assert!(less.sensitivity.is_empty() && matches!(less.measured, Measured::As(_)));
    let not = |why: &str| Measured::Not(why.to_owned());
    assert_eq!(more.measured, not("experiment \"depth\" is not run under --full"));
    assert_eq!(power.measured, not("no model of power"));
}

/// What stays refers to the experiments, figures and assumptions that stay, whatever their places were.
#[test]
fn full_keeps_references() {
    let end = "\n[[experiment]]\nid = \"depth\"\n";
    let (from, to) = (format!("{FULL}{end}"), format!("{end}{FULL}"));
    let load = |folder: &Path| Paper::load(Files::Host, folder, Size::Full, &Table::new());
    let paper = changed("full-depth", "paper.toml", (&from, &to), load).unwrap();
    let ids: Vec<&str> = paper.sweeps().map(|(_, sweep)| sweep.name.as_str()).collect();
    assert_eq!(ids, ["depth"]);
    let [figure] = paper.figures.as_slice() else { panic!("one figure") };
    assert_eq!((figure.id.as_str(), figure.experiment), ("2", 0));
    assert_eq!((paper.assumptions[0].experiment, paper.reasons.len()), (0, 0));
    let [less, _, more, ..] = paper.statements.as_slice() else { panic!("five statements") };
    assert_eq!((less.figure, less.sensitivity.as_slice()), (None, [].as_slice()));
    assert_eq!(less.measured, Measured::Not("experiment \"space\" is not run under --full".into()));
    let Measured::As(measure) = &more.measured else { panic!("it is measured") };
    assert_eq!(measure.experiment, 0);
}

/// Of the variants those stay that are named, and reasons with them.
#[test]
fn variants_are_left_by_name() {
    let mut paper = Paper::load(Files::Host, &tiny(), Size::Plain, &Table::new()).unwrap();
    assert_eq!(paper.reason(0, Column::Variant(1)), Some(0));
    assert!(paper.has_variant("base") && paper.has_variant("filled") && !paper.has_variant("full"));
    assert_eq!(
        paper.unknown_variant("full"),
        "tiny has no variant \"full\"; it has base, greedy, filled"
    );
    paper.leave_variants(&["base".to_owned(), "filled".to_owned()]);
    assert_eq!(paper.variants.len(), 1);
    assert_eq!(
        (paper.reason(0, Column::Variant(0)), paper.reason(0, Column::Base)),
        (Some(0), Some(0))
    );
    paper.leave_variants(&["base".to_owned()]);
    assert_eq!(paper.sweeps().count(), 3);
}

/// Without extensions, an experiment that only they show is not run, nor a variant of it alone; all else refers to what
/// it did before.
#[test]
fn extensions_are_left_out_with_their_experiments() {
    let own = "id = \"own\"\ntitle = \"Own\"\nwhy = \"A test.\"\nexperiments = [\"maps\"]\nscale = \"full\"\nseeds = 1\n";
    let (from, to) = ("\n[[variant]]\n", format!("\n[[variant]]\n{own}\n[[variant]]\n"));
    let load = |folder: &Path| Paper::load(Files::Host, folder, Size::Plain, &Table::new());
    let whole = changed("extensions", "paper.toml", (from, &to), load).unwrap();
    let mut paper = whole.clone();
    paper.leave_extensions();
    let ids = |paper: &Paper| {
        let ids = paper.sweeps().map(|(id, _)| id);
        ids.collect::<Vec<_>>().join(" ")
    };
    let left = "space depth space-greedy space-filled depth-filled";
    assert_eq!(ids(&whole), "space depth maps maps-own space-greedy space-filled depth-filled");
    assert_eq!(ids(&paper), left);
    assert_eq!((paper.extensions.len(), &paper.statements), (0, &whole.statements));
    assert_eq!((&paper.figures, &paper.assumptions), (&whole.figures, &whole.assumptions));
    for (before, after) in whole.variants[1..].iter().zip(&paper.variants) {
        assert_eq!(before, after);
    }
    for (at, reason) in whole.reasons.iter().enumerate() {
        let moved = |column: &Column| match column {
            Column::Base => Column::Base,
            Column::Variant(at) => Column::Variant(at - 1),
        };
        let columns = reason.columns.as_ref().map(|all| all.iter().map(moved).collect::<Vec<_>>());
        assert_eq!(paper.reasons[at].columns, columns);
    }
}

/// A key that is laid over every sweep reaches each stack, but for what the sweep's own grid sets.
#[test]
fn a_key_of_the_command_line_reaches_every_stack() {
    let over = |set: &str| sweep_overrides(&[set.to_owned()]);
    let load = |over: &Table| Paper::load(Files::Host, &tiny(), Size::Plain, over);
    let paper = load(&over("ftl.gc.victim=random").unwrap()).unwrap();
    let cases = paper.experiments.iter().flat_map(|experiment| &experiment.sweep.cases);
    let changed = cases.filter(|case| case.stack.toml.contains("victim = \"random\"")).count();
    let all =
        paper.experiments.iter().map(|experiment| experiment.sweep.cases.len()).sum::<usize>();
    assert_eq!(changed, all);
    assert!(load(&over("ftl.nonsense=1").unwrap()).is_err());
    assert!(over("nonsense").is_err());
}
