//! The report: one page about all papers that were reproduced. First what a hurried reader wants, the
//! verdicts; then each paper with its statements, figures, open choices, what lies beyond, and checks.

mod plots;

use crate::answers::{Answer, each_run};
use crate::checks::Checked;
use crate::judge::{Judged, Sensitivity};
use crate::model::{Beyond, Choice, Filter, Paper, Statement, distinct_runs};
use crate::reproduction::Reproduction;
use crate::verdict::Verdict;
use nandscape_report::{Axis, Cell, Document, Figure, Report, Row, Run, Tone, axes, label, plain};

/// Lines of a table of figures at most; `paper.json` has them all.
const LINES_MAX: usize = 60;

/// What a reproduction was made by.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Maker {
    /// The program with its version and commit.
    pub program: String,
    /// The command that makes the same files.
    pub command: String,
    /// Whether questions were asked quickly.
    pub quick: bool,
}

/// The page about these papers.
#[must_use]
pub fn page(all: &[Reproduction], maker: &Maker) -> String {
    let runs = distinct_runs(all.iter().map(|one| &one.paper));
    let papers =
        if all.len() == 1 { "One paper".to_owned() } else { format!("{} papers", all.len()) };
    let quick = if maker.quick { ", asked quickly: smaller than it should be" } else { "" };
    let subtitle = format!("{papers}, {runs} runs on the virtual clock{quick}");
    let mut page = Document::new("Papers reproduced", &subtitle);
    let nonsense: Vec<String> = all
        .iter()
        .flat_map(|one| one.nonsense().into_iter().map(|why| format!("{}: {why}", one.paper.id)))
        .collect();
    page.failures("Results that make no physical sense", &nonsense);
    overview(&mut page, all);
    for one in all {
        chapter(&mut page, one);
    }
    again(&mut page, maker);
    page.html()
}

/// Verdicts by paper.
fn overview(page: &mut Document, all: &[Reproduction]) {
    let link = |one: &Reproduction| (one.paper.id.clone(), one.paper.title.clone());
    page.links(&all.iter().map(link).collect::<Vec<_>>());
    page.section("Verdicts");
    let headers = ["paper", "agrees", "partly", "disagrees", "cannot be told", "checks"];
    let line = |one: &Reproduction| {
        let counts = Verdict::ALL.map(|verdict| Cell::Number(one.count(verdict).to_string()));
        let failures = one.nonsense().len();
        let checks = match failures {
            0 => Cell::Badge(Tone::Good, "all hold".to_owned()),
            n => Cell::Badge(Tone::Bad, format!("{n} failed")),
        };
        let head = Cell::Head(one.paper.id.clone());
        [head].into_iter().chain(counts).chain([checks]).collect()
    };
    let rows: Vec<Vec<Cell>> = all.iter().map(line).collect();
    page.table(&headers, rows);
    page.note(
        "A statement agrees if what is measured is within the tolerance that stands beside it, agrees in \
         part if it is within the wider one or at least on the stated side of the baseline, and cannot be \
         told if the seeds, or what the paper leaves open, decide. ± is half the width of the interval in which \
         the mean over the seeds lies with 95 % confidence; ratios are of runs of the same seed.",
    );
}

fn chapter(page: &mut Document, one: &Reproduction) {
    let Paper { id, title, authors, venue, year, claims, .. } = &one.paper;
    page.chapter(id, title);
    page.note(&format!("{authors}: {venue}, {year}"));
    page.text(claims);
    statements(page, one);
    figures(page, one);
    choices(page, one);
    beyond(page, one);
    checks(page, one);
    made_of(page, one);
}

const fn tone(verdict: Verdict) -> Tone {
    match verdict {
        Verdict::Agrees => Tone::Good,
        Verdict::Partly => Tone::Fair,
        Verdict::Disagrees => Tone::Bad,
        Verdict::CannotBeTold => Tone::Unknown,
    }
}

fn statements(page: &mut Document, one: &Reproduction) {
    if one.judged.is_empty() {
        return;
    }
    page.section("What it states");
    let headers = ["statement", "it says", "published", "measured", "verdict"];
    let line = |(statement, judged): (&Statement, &Judged)| {
        let says = format!("{} ({})", statement.says, statement.place);
        let verdict = judged.judgement.verdict;
        let cells = vec![
            Cell::Head(statement.id.clone()),
            Cell::Words(says),
            Cell::Number(statement.published()),
            Cell::Number(statement.shown(judged)),
            Cell::Badge(tone(verdict), verdict.name().to_owned()),
        ];
        Row { cells, below: Some(judged.judgement.reason.clone()) }
    };
    page.table(&headers, one.statements().map(line));
}

fn figures(page: &mut Document, one: &Reproduction) {
    if one.paper.figures.is_empty() {
        return;
    }
    page.section("Its figures");
    page.plots(one.paper.figures.iter().flat_map(|figure| plots::of_figure(one, figure)).collect());
}

fn choices(page: &mut Document, one: &Reproduction) {
    if one.paper.choices.is_empty() {
        return;
    }
    page.section("What it leaves open");
    for (at, choice) in one.paper.choices.iter().enumerate() {
        let Choice { id, title, why, .. } = choice;
        page.heading(&format!("{title} ({id})"));
        let other = effect(one, at);
        let why = why.trim_end_matches('.');
        page.text(&format!("Chosen: {}. {why}. {other}", plain(&choice.chosen)));
        alternatives(page, one, at);
        page.plots(plots::of_choice(one, choice));
        table(page, one, choice.question, &Filter::default(), &choice.shows);
    }
}

/// Statements along a choice.
fn along(
    one: &Reproduction,
    choice: usize,
) -> impl Iterator<Item = (&Statement, &Judged, &Sensitivity)> {
    one.statements().flat_map(move |(statement, judged)| {
        let along = judged.across.iter().filter(move |along| along.choice == choice);
        along.map(move |along| (statement, judged, along))
    })
}

/// What a choice does to verdicts, and what its runs do, in words.
fn effect(one: &Reproduction, choice: usize) -> String {
    let names = |of: &dyn Fn(&Judged, &Sensitivity) -> bool| {
        let those = along(one, choice).filter(|(_, judged, along)| of(judged, along));
        those.map(|(statement, ..)| statement.id.as_str()).collect::<Vec<_>>().join(", ")
    };
    let moved = names(&|_, along| along.moved().next().is_some());
    let unsure = names(&|_, along| along.unsure().next().is_some());
    let elsewhere = names(&|judged, along| along.chosen.verdict != judged.ours);
    let mut text = match moved.is_empty() {
        true => "It is not seen to change a verdict.".to_owned(),
        false => format!("It matters to {moved}."),
    };
    if !unsure.is_empty() {
        text.push_str(&format!(" Of {unsure} not every alternative can be told."));
    }
    if !elsewhere.is_empty() {
        text.push_str(&format!(
            " Its runs are of another load, size or seeds than those of the statements: even as chosen, they \
             give another verdict on {elsewhere}."
        ));
    }
    text
}

/// Statements at the alternatives of a choice, beside what was chosen in the same question.
fn alternatives(page: &mut Document, one: &Reproduction, choice: usize) {
    let mut lines = Vec::new();
    for (statement, _, Sensitivity { chosen, others, .. }) in along(one, choice) {
        for other in others {
            lines.push(vec![
                Cell::Head(statement.id.clone()),
                Cell::Number(statement.shown_at(chosen)),
                Cell::Badge(tone(chosen.verdict), chosen.verdict.name().to_owned()),
                Cell::Head(plain(&other.value)),
                Cell::Number(statement.shown_at(other)),
                Cell::Badge(tone(other.verdict), other.verdict.name().to_owned()),
            ]);
        }
    }
    if !lines.is_empty() {
        let headers = ["statement", "as chosen", "verdict", "instead", "measured", "verdict"];
        page.table(&headers, lines);
    }
}

fn beyond(page: &mut Document, one: &Reproduction) {
    for beyond in &one.paper.beyond {
        let Beyond { title, says, question, filter, shows, .. } = beyond;
        page.section(&format!("Beyond it: {title}"));
        if !says.is_empty() {
            page.text(says);
        }
        page.plots(plots::of_beyond(one, beyond));
        table(page, one, *question, filter, shows);
    }
}

/// Figures at the points of a question.
fn table(
    page: &mut Document,
    one: &Reproduction,
    question: usize,
    filter: &Filter,
    shows: &[Figure],
) {
    let answers = &one.answers[question];
    let points = filter.of(answers.points());
    let drawn: Vec<_> = points.iter().map(|at| answers.points()[*at].clone()).collect();
    let axes: Vec<Axis> = axes(&drawn);
    let columns: Vec<_> = shows.iter().filter_map(|figure| answers.column(figure).ok()).collect();
    let names = axes.iter().map(|axis| axis.name.clone());
    let headers: Vec<String> =
        names.chain(columns.iter().map(|column| column.figure().to_string())).collect();
    let line = |at: &usize| {
        let point = &answers.points()[*at];
        let heads = axes.iter().map(|axis| Cell::Head(label(answers.points(), &axis.name, point)));
        let cells = columns.iter().map(|column| {
            let mean = column.mean(*at);
            Cell::Number(mean.map_or_else(|| "–".to_owned(), |mean| column.figure().show(&mean)))
        });
        heads.chain(cells).collect()
    };
    let lines: Vec<Vec<Cell>> = points.iter().take(LINES_MAX).map(line).collect();
    page.table(&headers.iter().map(String::as_str).collect::<Vec<_>>(), lines);
    if points.len() > LINES_MAX {
        page.note(&format!("paper.json has {} more lines.", points.len() - LINES_MAX));
    }
}

fn checks(page: &mut Document, one: &Reproduction) {
    page.section("Physical sense");
    page.text("What must hold of every run, whatever the paper says.");
    let line = |checked: &Checked| {
        let verdict = match (checked.looked_at, checked.failures.as_slice()) {
            (0, _) => Cell::Badge(Tone::Unknown, "does not apply".to_owned()),
            (n, []) => Cell::Badge(Tone::Good, format!("holds in {n} of {n}")),
            (n, failures) => Cell::Badge(Tone::Bad, format!("fails in {} of {n}", failures.len())),
        };
        let first = checked.failures.first();
        let below = first.map(|it| format!("The first: {}: {}", it.run, it.why));
        let (name, says) = (checked.name.to_owned(), checked.says.to_owned());
        Row { cells: vec![Cell::Head(name), Cell::Words(says), verdict], below }
    };
    page.table(&["check", "what must hold", "runs"], one.checked.iter().map(line));
}

/// What the results are of, what was decided, and what to be careful about.
fn made_of(page: &mut Document, one: &Reproduction) {
    page.section("What this is made of");
    let names = one.paper.questions.iter().map(|question| question.id.as_str());
    let run = |(question, Answer { point, seed, result, .. }): (&str, Answer<'_>)| Run {
        source: question.to_owned(),
        stack: plain(point.at("stack")),
        job: plain(point.at("job")),
        keys: Vec::new(),
        seed,
        result: result.clone(),
    };
    let runs = each_run(names.zip(&one.answers)).into_iter().map(run).collect();
    let report = Report::new(&one.paper.title, runs);
    page.facts(&report.facts());
    let questions = one.paper.questions.iter().map(|question| {
        vec![
            Cell::Head(question.id.clone()),
            Cell::Words(question.file.clone()),
            Cell::Number(question.sweep.cases.len().to_string()),
            Cell::Number(question.sweep.seeds.len().to_string()),
        ]
    });
    page.table(&["question", "sweep", "points", "seeds"], questions);
    page.folded("Notes: what the paper leaves open, what we chose, and why", &one.paper.notes);
    let warnings = report.warnings();
    if !warnings.is_empty() {
        let summary = format!("What to be careful about ({})", warnings.len());
        page.folded(&summary, &warnings.join("\n"));
    }
}

fn again(page: &mut Document, maker: &Maker) {
    page.section("Make it again");
    page.code(&maker.command);
    page.note(&format!("Made by {}. The same program makes the same files.", maker.program));
}
