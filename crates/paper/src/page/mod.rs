//! The report: one page about all papers that were reproduced. First what a hurried reader wants, the
//! verdicts; then each paper with its statements, figures, assumptions, extensions, and checks.

mod plots;
mod verdicts;

use crate::answers::{Answer, Answers, each_run};
use crate::checks::Checked;
use crate::judge::{Judged, Sensitivity};
use crate::model::{
    Assumption, Column, Extension, Filter, Kind, Paper, Size, Statement, distinct_runs,
};
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
    /// The size of experiments.
    pub size: Size,
    /// What of the command changes results: `--quick` or `--full`, `--seeds` and `--set` as they were given.
    pub options: String,
}

impl Maker {
    /// The command that measures one column of a paper again.
    #[must_use]
    pub fn command_of(&self, paper: &Paper, column: Column) -> String {
        let command = format!("nandscape paper {}{}", paper.name, self.options);
        match self.size {
            Size::Full => command,
            _ => format!("{command} --variant {}", paper.column_name(column)),
        }
    }
}

/// The page about these papers.
#[must_use]
pub fn page(all: &[Reproduction], maker: &Maker) -> String {
    let runs = distinct_runs(all.iter().map(|one| &one.paper));
    let papers =
        if all.len() == 1 { "1 paper".to_owned() } else { format!("{} papers", all.len()) };
    let size = match maker.size {
        Size::Plain => "",
        Size::Quick => " (--quick: reduced scale)",
        Size::Full => " (--full: only the experiments at the paper's device sizes)",
    };
    let subtitle = format!("{papers}, {runs} simulated runs{size}");
    let mut page = Document::new("Papers reproduced", &subtitle);
    let nonsense: Vec<String> = all
        .iter()
        .flat_map(|one| one.nonsense().into_iter().map(|why| format!("{}: {why}", one.paper.id)))
        .collect();
    page.failures("Sanity checks that failed", &nonsense);
    overview(&mut page, all);
    for one in all {
        chapter(&mut page, one, maker);
    }
    again(&mut page, maker);
    page.html()
}

/// Verdicts by paper.
fn overview(page: &mut Document, all: &[Reproduction]) {
    let link = |one: &Reproduction| (one.paper.id.clone(), one.paper.title.clone());
    page.links(&all.iter().map(link).collect::<Vec<_>>());
    page.section("Verdicts");
    let names = Verdict::ALL.map(Verdict::name);
    let headers = ["paper"].into_iter().chain(names).chain(["inputs that agree", "checks"]);
    let headers: Vec<&str> = headers.collect();
    let line = |one: &Reproduction| {
        let count = |verdict| one.count(Kind::Reproduction, verdict);
        let counts = Verdict::ALL.map(|verdict| Cell::Number(count(verdict).to_string()));
        let inputs = match one.paper.count(Kind::Input) {
            0 => "–".to_owned(),
            all => format!("{} of {all}", one.count(Kind::Input, Verdict::Agrees)),
        };
        let failures = one.nonsense().len();
        let checks = match failures {
            0 => Cell::Badge(Tone::Good, "all hold".to_owned()),
            n => Cell::Badge(Tone::Bad, format!("{n} failed")),
        };
        let head = Cell::Head(one.paper.id.clone());
        [head].into_iter().chain(counts).chain([Cell::Number(inputs), checks]).collect()
    };
    let rows: Vec<Vec<Cell>> = all.iter().map(line).collect();
    page.table(&headers, rows);
    page.note(
        "A claim agrees if what is measured is within the tolerance that stands beside it, agrees \
         partially if it is within the wider one or at least on the stated side of the baseline, and is \
         inconclusive if the seeds, or what the paper leaves open, decide. The source contradicts itself if the authors' own \
         data exclude the claim, whatever is measured. Inputs, which were fitted or hold by definition, are counted \
         apart. ± is half the width of the interval in which \
         the mean over the seeds lies with 95 % confidence; of two seeds the range is in brackets. Ratios are of runs \
         of the same seed.",
    );
}

fn chapter(page: &mut Document, one: &Reproduction, maker: &Maker) {
    let Paper { id, title, authors, venue, year, claims, .. } = &one.paper;
    page.chapter(id, title);
    page.note(&format!("{authors}: {venue}, {year}"));
    page.text(claims);
    if let Some(caution) = &one.paper.caution {
        page.text(&format!("Caution: {caution}"));
    }
    statements(page, one);
    figures(page, one);
    verdicts::table(page, one, maker);
    assumptions(page, one);
    extensions(page, one);
    checks(page, one);
    made_of(page, one);
}

const fn tone(verdict: Verdict) -> Tone {
    match verdict {
        Verdict::Agrees => Tone::Good,
        Verdict::Partially => Tone::Fair,
        Verdict::Disagrees => Tone::Bad,
        Verdict::Contradicted | Verdict::Inconclusive => Tone::Unknown,
    }
}

fn statements(page: &mut Document, one: &Reproduction) {
    if one.judged.is_empty() {
        return;
    }
    page.section("Claims");
    page.table(
        &STATEMENT,
        one.statements().map(|(statement, judged)| linked(one, statement, judged)),
    );
}

/// The headers above [`stated`].
const STATEMENT: [&str; 5] = ["claim", "text", "published", "measured", "verdict"];

/// Where a figure of a paper stands on the page.
fn place_of(one: &Reproduction, figure: usize) -> String {
    format!("{}-figure-{figure}", one.paper.id)
}

/// A statement that links to its figure, if it has one.
fn linked(one: &Reproduction, statement: &Statement, judged: &Judged) -> Row {
    let mut row = stated(statement, judged);
    if let Some(figure) = statement.figure {
        row.cells[0] = Cell::Link(place_of(one, figure), statement.id.clone());
    }
    row
}

/// A statement beside what was measured, and the verdict with its reason.
fn stated(statement: &Statement, judged: &Judged) -> Row {
    let verdict = judged.judgement.verdict;
    let cells = vec![
        Cell::Head(statement.id.clone()),
        Cell::Words(format!("{} ({})", statement.text, statement.place)),
        Cell::Number(statement.published()),
        Cell::Number(statement.shown(judged)),
        Cell::Badge(tone(verdict), statement.verdict(&judged.judgement)),
    ];
    let input = statement.input.as_ref().map(|why| format!("; input: {why}"));
    Row { cells, below: Some(judged.judgement.reason.clone() + &input.unwrap_or_default()) }
}

/// Each figure with what is stated of it.
fn figures(page: &mut Document, one: &Reproduction) {
    if one.paper.figures.is_empty() {
        return;
    }
    page.section("Figures");
    for (at, figure) in one.paper.figures.iter().enumerate() {
        page.anchor(&place_of(one, at));
        page.plots(plots::of_figure(one, figure));
        let of_figure = one.statements().filter(|(statement, _)| statement.figure == Some(at));
        let rows: Vec<Row> =
            of_figure.map(|(statement, judged)| explained(one, statement, judged)).collect();
        if !rows.is_empty() {
            page.table(&STATEMENT, rows);
        }
    }
}

/// A statement as [`stated`], and why it does not agree, if the paper's folder gives that.
fn explained(one: &Reproduction, statement: &Statement, judged: &Judged) -> Row {
    let mut row = stated(statement, judged);
    if let (Some(because), Some(below)) = (&judged.because, &mut row.below) {
        let reason = &one.paper.reasons[because.reason];
        below.push_str(&format!(". {}", reason.text));
    }
    row
}

fn assumptions(page: &mut Document, one: &Reproduction) {
    if one.paper.assumptions.is_empty() {
        return;
    }
    page.section("Unspecified parameters (sensitivity)");
    for (at, assumption) in one.paper.assumptions.iter().enumerate() {
        let Assumption { id, title, why, .. } = assumption;
        page.heading(&format!("{title} ({id})"));
        let other = effect(one, at);
        let why = why.trim_end_matches('.');
        page.text(&format!("Baseline: {}. {why}. {other}", plain(&assumption.chosen)));
        alternatives(page, one, at);
        page.plots(plots::of_assumption(one, assumption));
        table(page, one, assumption.experiment, &Filter::default(), &assumption.metric);
    }
}

/// Statements along an assumption.
fn along(
    one: &Reproduction,
    assumption: usize,
) -> impl Iterator<Item = (&Statement, &Judged, &Sensitivity)> {
    one.statements().flat_map(move |(statement, judged)| {
        let along = judged.sensitivity.iter().filter(move |along| along.assumption == assumption);
        along.map(move |along| (statement, judged, along))
    })
}

/// What an assumption does to verdicts, and what its runs do, in words.
fn effect(one: &Reproduction, assumption: usize) -> String {
    let names = |of: &dyn Fn(&Judged, &Sensitivity) -> bool| {
        let those = along(one, assumption).filter(|(_, judged, along)| of(judged, along));
        those.map(|(statement, ..)| statement.id.as_str()).collect::<Vec<_>>().join(", ")
    };
    let moved = names(&|_, along| along.moved().next().is_some());
    let inconclusive = names(&|_, along| along.inconclusive().next().is_some());
    let elsewhere = names(&|judged, along| along.chosen.verdict != judged.ours);
    let mut text = match moved.is_empty() {
        true => "It is not seen to change a verdict.".to_owned(),
        false => format!("It matters to {moved}."),
    };
    if !inconclusive.is_empty() {
        text.push_str(&format!(" Some alternatives are inconclusive for {inconclusive}."));
    }
    if !elsewhere.is_empty() {
        text.push_str(&format!(
            " Its runs are of another load, size or seeds than those of the statements: even as chosen, they \
             give another verdict on {elsewhere}."
        ));
    }
    text
}

/// Statements at the alternatives of an assumption, beside what was chosen in the same experiment.
fn alternatives(page: &mut Document, one: &Reproduction, assumption: usize) {
    let mut lines = Vec::new();
    for (statement, _, Sensitivity { chosen, others, .. }) in along(one, assumption) {
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
        let headers = ["claim", "baseline", "verdict", "alternative", "measured", "verdict"];
        page.table(&headers, lines);
    }
}

fn extensions(page: &mut Document, one: &Reproduction) {
    for extension in &one.paper.extensions {
        let Extension { title, text, experiment, filter, metric, .. } = extension;
        page.section(&format!("Extension: {title}"));
        if !text.is_empty() {
            page.text(text);
        }
        page.plots(plots::of_extension(one, extension));
        table(page, one, *experiment, filter, metric);
    }
}

/// Figures at the points of an experiment.
fn table(
    page: &mut Document,
    one: &Reproduction,
    experiment: usize,
    filter: &Filter,
    metric: &[Figure],
) {
    let answers = &one.answers[experiment];
    let points = filter.of(answers.points());
    let drawn: Vec<_> = points.iter().map(|at| answers.points()[*at].clone()).collect();
    let axes: Vec<Axis> = axes(&drawn);
    let columns: Vec<_> = metric.iter().filter_map(|figure| answers.column(figure).ok()).collect();
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
    page.section("Sanity checks");
    page.text("What must hold of every run, whatever the paper says.");
    let line = |checked: &Checked| {
        let verdict = match (checked.runs_checked, checked.failures.as_slice()) {
            (0, _) => Cell::Badge(Tone::Unknown, "does not apply".to_owned()),
            (n, []) => Cell::Badge(Tone::Good, format!("holds in {n} of {n}")),
            (n, failures) => Cell::Badge(Tone::Bad, format!("fails in {} of {n}", failures.len())),
        };
        let first = checked.failures.first();
        let below = first.map(|it| format!("The first: {}: {}", it.run, it.why));
        let (name, text) = (checked.name.to_owned(), checked.text.to_owned());
        Row { cells: vec![Cell::Head(name), Cell::Words(text), verdict], below }
    };
    page.table(&["check", "what must hold", "runs"], one.checked.iter().map(line));
}

/// What the results are of, what was decided, and what to be careful about.
fn made_of(page: &mut Document, one: &Reproduction) {
    page.section("Configuration");
    let all: Vec<(String, &Answers)> = one.all_answers().collect();
    let run = |(experiment, Answer { point, seed, result, .. }): (&str, Answer<'_>)| Run {
        source: experiment.to_owned(),
        stack: plain(point.at("stack")),
        job: plain(point.at("job")),
        keys: Vec::new(),
        seed,
        result: result.clone(),
    };
    let runs = each_run(all.iter().map(|(name, answers)| (name.as_str(), *answers)))
        .into_iter()
        .map(run)
        .collect();
    let report = Report::new(&one.paper.title, runs);
    page.facts(&report.facts());
    let experiments = one.paper.sweeps().map(|(name, sweep)| {
        vec![
            Cell::Head(name),
            Cell::Words(sweep.name.clone()),
            Cell::Number(sweep.cases.len().to_string()),
            Cell::Number(sweep.seeds.len().to_string()),
        ]
    });
    page.table(&["experiment", "sweep", "points", "seeds"], experiments);
    page.folded("Notes: what the paper leaves open, what we chose, and why", &one.paper.notes);
    let warnings = report.warnings();
    if !warnings.is_empty() {
        let summary = format!("Warnings ({})", warnings.len());
        page.folded(&summary, &warnings.join("\n"));
    }
}

fn again(page: &mut Document, maker: &Maker) {
    page.end_chapter();
    page.section("Reproduce");
    page.code(&maker.command);
    page.note(&format!("Made by {}. The same program makes the same files.", maker.program));
}
