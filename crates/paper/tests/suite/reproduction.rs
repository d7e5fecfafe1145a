//! A small paper reproduced from end to end, in virtual time: verdicts, checks, page and JSON.

use crate::common;

use common::{changed, tiny};
use nandscape_lab::run::{NoObserver, RunOptions};
use nandscape_lab::stack::document::Table;
use nandscape_lab::sweep::{FinishedRow, Sweep};
use nandscape_paper::verdict::Verdict;
use nandscape_paper::{
    Answers, Column, Files, Kind, Maker, Paper, PublishedValue, Reproduction, Size, page,
};
use std::path::Path;

fn answers(sweep: &Sweep) -> Answers {
    let mut answers = Answers::new(sweep);
    for index in 0..sweep.runs() {
        let row = sweep.run(index, "test", RunOptions::default(), &mut NoObserver).unwrap();
        let (_, seed) = sweep.at(index);
        answers.add(index / sweep.seeds.len(), seed, FinishedRow::parse(&row).unwrap().result);
    }
    answers
}

fn reproduce(folder: &Path, size: Size) -> Reproduction {
    let paper = Paper::load(Files::Host, folder, size, &Table::new()).unwrap();
    let answers = paper.sweeps().map(|(_, sweep)| answers(sweep)).collect();
    Reproduction::new(paper, answers)
}

fn maker() -> Maker {
    let (program, command) = ("nandscape test".to_owned(), "nandscape paper tiny".to_owned());
    Maker { program, command, size: Size::Quick, options: " --quick".to_owned() }
}

/// Checks of what only SSDs with append-only regions have.
const OF_SSDS: [&str; 4] = ["migrations", "upcalls", "record memory", "no cleaning"];

/// Each kind of verdict, every check that applies holds, and both outputs tell all of it.
#[test]
fn a_paper_is_reproduced() {
    let one = reproduce(&tiny(), Size::Plain);
    let verdicts: Vec<Verdict> = one.judged.iter().map(|judged| judged.judgement.verdict).collect();
    assert_eq!(verdicts, Verdict::ALL);
    assert_eq!(one.nonsense(), [] as [String; 0]);
    let idle = one.checked.iter().filter(|one| one.runs_checked == 0).map(|one| one.name);
    let idle: Vec<&str> = idle.filter(|name| !OF_SSDS.contains(name)).collect();
    assert!(idle.len() <= 1, "{idle:?}");
    assert_eq!(one.unknown_path(), None);
    assert_eq!(one.judged[0].sensitivity.len(), 1);
    let reason = &one.judged[0].judgement.reason;
    assert!(reason.contains("verdict is insensitive to the unstated parameters (1)"), "{reason}");

    let html = page(std::slice::from_ref(&one), &maker());
    for text in [
        "A Paper that Does Not Exist",
        "half of the writes are left",
        "inconclusive",
        "Figure 1: Write amplification",
        "the depth of the queue",
        "Extension: ",
        "all hold",
        "nandscape paper tiny",
        "Geometry",
    ] {
        assert!(html.contains(text), "{text}");
    }
    let (statement, judged) = one.statements().next().unwrap();
    let chosen = statement.shown_at(&judged.sensitivity[0].chosen);
    assert_ne!(chosen, statement.shown(judged));
    let table = html.split_once("alternative</th>").unwrap().1.split_once("</table>").unwrap().0;
    assert!(table.contains(&format!(">{chosen}<")), "{table}");
    assert_eq!(html.matches("<figure").count(), html.matches("\"id\":\"tiny-").count());
    let course = html.split_once("\"id\":\"tiny-figure-4").expect("writes over time").1;
    for text in ["\"Time (s)\"", "Write bandwidth ("] {
        assert!(course.contains(text), "{text}");
    }

    let json = one.to_json(&maker());
    assert_eq!(json["statements"][1]["verdict"], "partially");
    assert_eq!(json["statements"][0]["published"]["at_most"], 0.9);
    assert!(json["statements"][0]["measured"]["mean"].as_f64().unwrap() < 0.9);
    let along = &json["statements"][0]["sensitivity"][0];
    assert_eq!((&along["assumption"], &along["chosen"]["value"]), (&"depth".into(), &2.into()));
    assert_eq!(
        (&along["chosen"]["verdict"], &along["others"][0]["value"]),
        (&"agrees".into(), &8.into())
    );
    let mean = |found: &serde_json::Value| found["mean"].as_f64().unwrap();
    assert_ne!(mean(&along["chosen"]), mean(&along["others"][0]));
    assert_eq!(json["figures"][0]["points"].as_array().unwrap().len(), 4);
    let figure = |id: &str| {
        let figures = json["figures"].as_array().unwrap();
        figures.iter().find(|figure| figure["id"] == id).unwrap()["variants"].clone()
    };
    let under = |figure: &serde_json::Value| -> Vec<(String, usize)> {
        let of = |one: &serde_json::Value| {
            (one["variant"].as_str().unwrap().to_owned(), one["points"].as_array().unwrap().len())
        };
        figure.as_array().unwrap().iter().map(of).collect()
    };
    assert_eq!(under(&figure("1")), [("greedy".to_owned(), 4), ("filled".to_owned(), 4)]);
    assert_eq!(under(&figure("2")), [("filled".to_owned(), 4)]);
    assert!(json["assumptions"][0]["points"][0]["figures"]["waf.gc"]["mean"].is_f64());
    assert_eq!(json["checks"].as_array().unwrap().len(), one.checked.len());
}

/// What a surrogate gave is shown with its number, and decides nothing: without it, the same number agrees.
#[test]
fn a_surrogate_is_inconclusive() {
    let less = "within = 0.0\nmeasured";
    let surrogate = "within = 0.0\nsurrogate = \"another load\"\nmeasured";
    let judge = |folder: &Path| reproduce(folder, Size::Quick).judged.swap_remove(0);
    let other = changed("surrogate", "published.toml", (less, surrogate), judge);
    let usual = judge(&tiny());
    assert_eq!(usual.judgement.looks_like, Some(Verdict::Agrees), "of one seed");
    assert_eq!((other.judgement.verdict, &other.seeds), (Verdict::Inconclusive, &usual.seeds));
    assert!(other.judgement.reason.contains("surrogate: another load"), "{other:?}");
}

/// What the paper leaves open, and decides the number, is as a surrogate.
#[test]
fn what_is_undecidable_is_inconclusive() {
    let less = "within = 0.0\nmeasured";
    let open = "within = 0.0\nundecidable = \"the drive is not named\"\nmeasured";
    let judge = |folder: &Path| reproduce(folder, Size::Plain).judged.swap_remove(0);
    let other = changed("undecidable", "published.toml", (less, open), judge);
    let usual = judge(&tiny());
    assert_eq!(usual.judgement.verdict, Verdict::Agrees);
    assert_eq!((other.judgement.verdict, &other.seeds), (Verdict::Inconclusive, &usual.seeds));
    assert!(other.judgement.reason.contains("; the drive is not named"), "{other:?}");
}

/// What the authors' own data exclude has that verdict whatever is measured, of the base, of variants and of one
/// seed, with the number of these data beside the stated one; it needs no other reason.
#[test]
fn what_the_source_contradicts_is_said() {
    let [one, quick] = [Size::Plain, Size::Quick].map(|size| reproduce(&tiny(), size));
    let says = "; its own table: copies are a quarter there: 0.250";
    for (judged, size) in [(&one.judged[3], "plain"), (&quick.judged[3], "quick")] {
        assert_eq!(judged.judgement.verdict, Verdict::Contradicted, "{size}");
        assert_eq!(judged.judgement.looks_like, None, "{size}");
        assert!(judged.judgement.reason.ends_with(says), "{}", judged.judgement.reason);
    }
    let judged = &one.judged[3];
    let of_filled = judged.variants[1].as_ref().unwrap();
    assert_eq!(of_filled.judgement.verdict, Verdict::Contradicted);
    assert_ne!((of_filled.seeds.len(), &of_filled.seeds), (0, &judged.seeds));
    assert_eq!(one.paper.statements[3].published(), "0.001 (the source's data: 0.250)");
    assert_eq!(one.count(Kind::Reproduction, Verdict::Contradicted), 1);

    let filled = |folder: &Path| reproduce(folder, Size::Plain);
    let from = "statements = [\"less\", \"half\"]";
    let to = "statements = [\"less\", \"half\", \"thousandth\"]";
    let more = changed("contradicted", "paper.toml", (from, to), filled);
    assert_eq!((more.reasons(), &more.judged[3].because), (one.reasons(), &None));

    let json = &one.to_json(&maker())["statements"][3];
    assert_eq!(json["verdict"], "source contradicts itself");
    let expected = serde_json::json!({
        "place": "its own table", "text": "copies are a quarter there", "value": 0.25
    });
    assert_eq!(json["contradicted"], expected);
    let html = page(std::slice::from_ref(&one), &maker());
    for text in ["source contradicts itself</th>", "0.001 (the source", says] {
        assert!(html.contains(text), "{text}");
    }
}

/// What is an input has a verdict, and is counted apart from reproductions in text, JSON and page.
#[test]
fn inputs_are_counted_apart() {
    let input = "within = 0.0\ninput = \"chosen so\"\nmeasured";
    let reproduce = |folder: &Path| reproduce(folder, Size::Plain);
    let one = changed("input", "published.toml", ("within = 0.0\nmeasured", input), reproduce);
    assert_eq!(one.judged[0].judgement.verdict, Verdict::Agrees);
    let agree = [Kind::Reproduction, Kind::Input].map(|kind| one.count(kind, Verdict::Agrees));
    assert_eq!((agree, one.paper.count(Kind::Input)), ([0, 1], 1));
    assert_eq!(one.paper.statements[0].verdict(&one.judged[0].judgement), "agrees (input)");

    let json = one.to_json(&maker());
    assert_eq!(
        (&json["statements"][0]["input"], &json["statements"][1]["input"]),
        (&"chosen so".into(), &serde_json::Value::Null)
    );
    let counts = serde_json::json!({
        "reproductions": { "agrees": 0, "partially": 1, "disagrees": 1, "source contradicts itself": 1, "inconclusive": 1 },
        "inputs": { "agrees": 1, "partially": 0, "disagrees": 0, "source contradicts itself": 0, "inconclusive": 0 },
    });
    assert_eq!(json["counts"], counts);
    let html = page(std::slice::from_ref(&one), &maker());
    for text in [">agrees (input)<", "; input: chosen so", "1 of 1"] {
        assert!(html.contains(text), "{text}");
    }
}

/// What the paper's folder says of --quick is in JSON and page then, and only then.
#[test]
fn quick_runs_have_their_caution() {
    let says = "The small device is full too soon.";
    for (size, expected) in [(Size::Quick, Some(says)), (Size::Plain, None), (Size::Full, None)] {
        let one = reproduce(&tiny(), size);
        assert_eq!(one.to_json(&maker())["caution"].as_str(), expected, "{size:?}");
        let html = page(std::slice::from_ref(&one), &maker());
        assert_eq!(html.contains(says), expected.is_some(), "{size:?}");
    }
}

/// Two reproductions are the same to the byte.
#[test]
fn reproductions_are_repeatable() {
    let (one, other) = (reproduce(&tiny(), Size::Quick), reproduce(&tiny(), Size::Quick));
    assert_eq!(one.to_json(&maker()).to_string(), other.to_json(&maker()).to_string());
    assert_eq!(page(&[one], &maker()), page(&[other], &maker()));
}

/// Measured figures are measured: another model, another figure. What is published stays.
#[test]
fn measured_figures_follow_the_model() {
    let usual = reproduce(&tiny(), Size::Quick);
    let quick = |folder: &Path| reproduce(folder, Size::Quick);
    let timing = "timing = { preset = \"nvmevirt-970pro\", program_ns = 740000 }";
    let usual_timing = "timing = \"nvmevirt-970pro\"";
    let program = changed("slower", "small.toml", (usual_timing, timing), quick);
    let reserve = ("op_percent = 35", "op_percent = 50");
    let reserve = changed("roomier", "small.toml", reserve, quick);
    let mean = |one: &Reproduction, at: usize| one.judged[at].measured().unwrap().mean;
    let bandwidth = |one: &Reproduction| {
        let figure = "write.bw_bytes".parse().unwrap();
        one.answers[0].column(&figure).unwrap().mean(0).unwrap().mean
    };
    assert!(bandwidth(&program) < bandwidth(&usual) / 2.0, "programs last four times as long");
    for at in 0..3 {
        assert_ne!(mean(&reserve, at), mean(&usual, at), "statement {at}");
        assert_eq!(reserve.paper.statements[at].claim, usual.paper.statements[at].claim);
    }
}

/// What is stated moves verdicts and nothing else.
#[test]
fn published_numbers_are_only_compared() {
    let usual = reproduce(&tiny(), Size::Quick);
    let mut paper = usual.paper.clone();
    paper.statements[0].claim = PublishedValue::AtMost(0.0001);
    let answers = usual.answers.iter().chain(usual.variants.iter().flatten()).cloned().collect();
    let bolder = Reproduction::new(paper, answers);
    assert_eq!(bolder.judged[0].seeds, usual.judged[0].seeds);
    assert_eq!(bolder.judged[0].judgement.looks_like, Some(Verdict::Partially));
    assert_eq!(bolder.judged[1..], usual.judged[1..]);
}

/// Every statement has a verdict on its own under each variant that changes its experiment, with the reason where
/// one is given and its figures of the same runs; page and JSON have both.
#[test]
fn variants_have_verdicts() {
    let one = reproduce(&tiny(), Size::Plain);
    let under = |statement: usize, variant: usize| one.judged[statement].variants[variant].as_ref();
    assert!(under(2, 0).is_none(), "the variant does not change this experiment");
    assert!(under(4, 0).is_none() && under(4, 1).is_none(), "nothing is measured");
    let [greedy, filled] = [0, 1].map(|variant| under(0, variant).unwrap());
    assert_eq!(greedy.seeds.len(), 2);
    assert_eq!((filled.seeds.len(), filled.judgement.verdict), (1, Verdict::Disagrees));
    assert_ne!(greedy.seeds, one.judged[0].seeds);
    assert_eq!(one.judged[0].judgement.verdict, Verdict::Agrees);
    assert_eq!(one.judged[0].because, None, "what agrees needs no reason");
    let because = filled.because.as_ref().unwrap();
    let names: Vec<&str> = because.figures.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["waf.gc (small)", "waf.gc (empty)"]);
    let own = one.judged[1].because.as_ref().unwrap();
    assert_ne!(own.figures, because.figures, "figures are those of the column");

    let json = one.to_json(&maker());
    assert_eq!(json["variants"][1]["id"], "filled");
    assert_eq!(json["variants"][0]["experiments"][0]["runs"], 8);
    let column = &json["statements"][0]["variants"][1];
    assert_eq!((&column["variant"], &column["verdict"]), (&"filled".into(), &"disagrees".into()));
    let command = &column["reason"]["command"];
    assert!(command.as_str().unwrap().ends_with("tiny --quick --variant filled"), "{command}");
    assert_eq!(json["statements"][0]["reason"], serde_json::Value::Null);
    assert_eq!(json["statements"][2]["variants"].as_array().unwrap().len(), 1);

    let html = page(std::slice::from_ref(&one), &maker());
    for text in ["Verdicts by variant", "another victim and more room", "the fresh device has room"]
    {
        assert!(html.contains(text), "{text}");
    }
    let table =
        html.split_once("<h2>Verdicts by variant").unwrap().1.split_once("</table>").unwrap().0;
    assert!(table.contains(">disagrees "), "{table}");
}

/// Under --full a statement on an experiment that is not run is inconclusive and says why; the others have verdicts
/// of the runs of that size, and page, JSON and commands say which it is.
#[test]
fn full_sizes_have_verdicts() {
    let [plain, one] = [Size::Plain, Size::Full].map(|size| reproduce(&tiny(), size));
    assert_ne!(one.judged[0].seeds[0], plain.judged[0].seeds[0], "the runs are others");
    assert_eq!(one.judged[0].judgement.verdict, Verdict::Agrees);
    assert!(!one.judged[0].judgement.reason.contains("unstated parameters"));
    assert_eq!(plain.judged[2].judgement.verdict, Verdict::Disagrees);
    assert_eq!(one.judged[2].judgement.verdict, Verdict::Inconclusive);
    let why = "experiment \"depth\" is not run under --full";
    assert_eq!(one.judged[2].judgement.reason, why);
    assert_eq!((one.unknown_path(), one.nonsense()), (None, Vec::new()));

    let maker = Maker { size: Size::Full, options: " --full".to_owned(), ..maker() };
    let json = one.to_json(&maker);
    assert_eq!(json["statements"][2]["comparison"], why);
    assert_eq!(json["experiments"].as_array().unwrap().len(), 1);
    let html = page(std::slice::from_ref(&one), &maker);
    assert!(html.contains("--full: only the experiments at"));
    assert!(!html.contains("Extension: ") && !html.contains("Figure 2: Depth"));
    let command = maker.command_of(&one.paper, Column::Base);
    assert!(command.ends_with("tiny --full"), "--variant does not go with it: {command}");
}
