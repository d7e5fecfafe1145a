//! `nandscape paper`: what papers ask is run, in one pool; then verdicts, checks and the report.

use crate::args::{OutputFormat, PaperArgs};
use crate::cache::Cache;
use crate::command::{COMMIT, quoted};
use crate::complete::{Finished, complete_all, print_notices};
use crate::output::{Failure, pretty, print};
use crate::paint::{ColorChoice, Paint, Tone};
use crate::replace::{deliver, make_folder};
use crate::table::lay_out;
use crate::writable::expect_writable;
use anyhow::anyhow;
use nandscape_lab::run::VERSION;
use nandscape_lab::stack::document::sweep_overrides;
use nandscape_lab::sweep::{FinishedRow, Sweep};
use nandscape_paper::verdict::{Judgement, Verdict};
use nandscape_paper::{
    Answers, Because, Files, Kind, Maker, Paper, Reproduction, Size, page, shipped,
};
use nandscape_rt::words::counted;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Columns that a statement may take at a terminal.
const SAYS_MAX: usize = 44;
/// What counts of them are of.
const STATEMENTS: [&str; 2] = ["statement", "statements"];
const REPRODUCTIONS: [&str; 2] = ["reproduction", "reproductions"];
const INPUTS: [&str; 2] = ["input", "inputs"];
const RUNS: [&str; 2] = ["run", "runs"];

/// Lists, checks or reproduces papers.
pub(crate) fn paper(args: &PaperArgs, color: ColorChoice) -> Result<(), Failure> {
    let names = names(args)?;
    if args.list {
        return list(&names, args);
    }
    if args.check {
        return check(&names, args);
    }
    let mut papers: Vec<Paper> =
        names.iter().map(|name| load(name, size(args), args)).collect::<Result<_, _>>()?;
    once(&papers)?;
    leave_variants(&mut papers, &args.variant)?;
    let all = reproduce(papers, args)?;
    let maker = maker(args);
    let json = to_json(&all, &maker);
    deliver(&page(&all, &maker), Some(&args.out.join("index.html")))?;
    deliver(&pretty(&json)?, Some(&args.out.join("paper.json")))?;
    print(&match args.output_format {
        OutputFormat::Normal => text(&all, &maker, &args.out, Paint::new(color, false)),
        OutputFormat::Json => pretty(&json)?,
    })?;
    verdict(&all)
}

/// The papers that are meant.
fn names(args: &PaperArgs) -> Result<Vec<String>, Failure> {
    let names: Vec<String> = match args.papers.as_slice() {
        [] => shipped().map(str::to_owned).collect(),
        named => named.to_vec(),
    };
    match names.is_empty() {
        true => Err(Failure::input(anyhow!("no paper ships with this program; name a folder"))),
        false => Ok(names),
    }
}

/// The size at which papers run.
const fn size(args: &PaperArgs) -> Size {
    match (args.quick, args.full) {
        (true, _) => Size::Quick,
        (false, true) => Size::Full,
        (false, false) => Size::Plain,
    }
}

fn load(name: &str, size: Size, args: &PaperArgs) -> Result<Paper, Failure> {
    let over = sweep_overrides(&args.set).map_err(Failure::input)?;
    let (files, folder) = Files::find(name);
    let mut paper = Paper::load(files, &folder, size, &over).map_err(|error| {
        let known = shipped().collect::<Vec<_>>().join(", ");
        let unknown = files == Files::Host && !folder.is_dir();
        let error = anyhow::Error::from(error);
        Failure::Input(match unknown {
            true => error.context(format!("unknown paper \"{name}\"; available: {known}")),
            false => error,
        })
    })?;
    args.seeds.into_iter().for_each(|seeds| paper.ask_with_seeds(seeds));
    if args.no_extensions {
        paper.leave_extensions();
    }
    Ok(paper)
}

/// The same paper under `--full`, if it has that.
fn load_full(name: &str, plain: &Paper, args: &PaperArgs) -> Result<Option<Paper>, Failure> {
    plain.has_full().then(|| load(name, Size::Full, args)).transpose()
}

/// Two papers of one name would write the same files.
fn once(papers: &[Paper]) -> Result<(), Failure> {
    let twin = |(at, paper): (usize, &Paper)| papers[..at].iter().any(|other| other.id == paper.id);
    match papers.iter().enumerate().find(|one| twin(*one)) {
        Some((_, paper)) => Err(Failure::input(anyhow!("two papers are called \"{}\"", paper.id))),
        None => Ok(()),
    }
}

/// Leaves the variants that are named, each of which some paper has; all if none is.
fn leave_variants(papers: &mut [Paper], names: &[String]) -> Result<(), Failure> {
    if names.is_empty() {
        return Ok(());
    }
    let is_known = |name: &String| papers.iter().any(|paper| paper.has_variant(name));
    if let Some(name) = names.iter().find(|name| !is_known(name))
        && let Some(paper) = papers.last()
    {
        return Err(Failure::input(anyhow!(paper.unknown_variant(name))));
    }
    for paper in papers {
        let own = names.iter().filter(|name| paper.has_variant(name));
        let own: Vec<String> = own.cloned().collect();
        paper.leave_variants(&own);
    }
    Ok(())
}

fn list(names: &[String], args: &PaperArgs) -> Result<(), Failure> {
    let read = |name: &String| {
        let plain = load(name, Size::Plain, args)?;
        let full = load_full(name, &plain, args)?;
        Ok((name.clone(), plain, full))
    };
    let all: Vec<(String, Paper, Option<Paper>)> =
        names.iter().map(read).collect::<Result<_, Failure>>()?;
    let width = names.iter().map(String::len).max().unwrap_or(0);
    print(&match args.output_format {
        OutputFormat::Normal => {
            let line = |(name, plain, full): &(String, Paper, Option<Paper>)| {
                let Paper { title, venue, year, .. } = plain;
                let full = full.as_ref().map(|full| format!("; {} under --full", of_runs(full)));
                let full = full.unwrap_or_default();
                format!("{name:width$}  {title} ({venue}, {year}){full}\n")
            };
            all.iter().map(line).collect()
        }
        OutputFormat::Json => {
            let entry = |(name, plain, full): &(String, Paper, Option<Paper>)| {
                let Paper { title, authors, venue, year, .. } = plain;
                json!({
                    "name": name, "title": title, "authors": authors, "venue": venue, "year": year,
                    "runs_if_full": full.as_ref().map(runs),
                })
            };
            pretty(&all.iter().map(entry).collect())?
        }
    })
}

/// What was read of a paper at each size; `full` if it has that.
struct Read<'a> {
    name: &'a str,
    plain: Paper,
    quick: Paper,
    full: Option<Paper>,
}

fn check(names: &[String], args: &PaperArgs) -> Result<(), Failure> {
    let all: Vec<Read<'_>> =
        names.iter().map(|name| Read::new(name, args)).collect::<Result<_, _>>()?;
    print(&match args.output_format {
        OutputFormat::Normal => all.iter().map(Read::text).collect(),
        OutputFormat::Json => pretty(&all.iter().map(Read::to_json).collect())?,
    })
}

fn of_runs(paper: &Paper) -> String {
    counted(paper.runs() as u64, RUNS)
}

fn runs(paper: &Paper) -> Value {
    json!({ "all": paper.runs(), "distinct": paper.distinct_runs() })
}

impl<'a> Read<'a> {
    fn new(name: &'a str, args: &PaperArgs) -> Result<Self, Failure> {
        let of = |size| load(name, size, args);
        let (plain, quick) = (of(Size::Plain)?, of(Size::Quick)?);
        let full = load_full(name, &plain, args)?;
        Ok(Self { name, plain, quick, full })
    }

    fn text(&self) -> String {
        let Self { name, plain, quick, full } = self;
        let statements = counted(plain.statements.len() as u64, STATEMENTS);
        let inputs = match plain.count(Kind::Input) {
            0 => String::new(),
            n => format!(" ({n} of them {})", if n == 1 { INPUTS[0] } else { INPUTS[1] }),
        };
        let experiments = counted(plain.experiments.len() as u64, ["experiment", "experiments"]);
        let full = full.as_ref().map(|full| {
            format!("; {} under --full, {} of them distinct", of_runs(full), full.distinct_runs())
        });
        format!(
            "{name}: {statements}{inputs}, {experiments}, {} ({} if quick), {} of them distinct ({}){}\n",
            of_runs(plain),
            quick.runs(),
            plain.distinct_runs(),
            quick.distinct_runs(),
            full.unwrap_or_default()
        )
    }

    fn to_json(&self) -> Value {
        let Self { name, plain, quick, full } = self;
        json!({
            "name": name, "statements": plain.statements.len(), "inputs": plain.count(Kind::Input),
            "experiments": plain.experiments.len(),
            "runs": runs(plain), "runs_if_quick": runs(quick), "runs_if_full": full.as_ref().map(runs),
        })
    }
}

/// Runs what all experiments lack, and judges the answers.
fn reproduce(papers: Vec<Paper>, args: &PaperArgs) -> Result<Vec<Reproduction>, Failure> {
    make_folder(&args.out)?;
    let sweeps = || papers.iter().flat_map(Paper::sweeps).map(|(_, sweep)| sweep);
    sweeps().for_each(print_notices);
    let rows: Vec<PathBuf> = papers
        .iter()
        .flat_map(|paper| paper.sweeps().map(|(name, _)| format!("{}-{name}.jsonl", paper.id)))
        .map(|name| args.out.join(name))
        .collect();
    let asked: Vec<(&Sweep, Option<&Path>)> =
        sweeps().zip(rows.iter().map(|path| Some(path.as_path()))).collect();
    let [page, json] = ["index.html", "paper.json"].map(|name| args.out.join(name));
    expect_writable([Some(page.as_path()), Some(json.as_path())], [])?;
    let cache = Cache::open(&args.cache)?;
    let finished = complete_all(&asked, args.jobs, cache.as_ref())?;
    let answers = sweeps().zip(&finished).map(|(sweep, finished)| answer(sweep, finished));
    let mut answers = answers.collect::<Result<Vec<Answers>, Failure>>()?.into_iter();
    let one = |paper: Paper| {
        let own = answers.by_ref().take(paper.sweeps().count()).collect();
        Reproduction::new(paper, own)
    };
    Ok(papers.into_iter().map(one).collect())
}

/// The answers in the rows of a finished sweep.
fn answer(sweep: &Sweep, finished: &Finished) -> Result<Answers, Failure> {
    let mut answers = Answers::new(sweep);
    for (run, id) in finished.ids.iter().enumerate() {
        let (case, seed) = sweep.at(run);
        let row = finished.rows.get(id).and_then(FinishedRow::parse);
        let row = row.ok_or_else(|| Failure::run(anyhow!("no row for {}", case.label())))?;
        if row.failed() {
            return Err(Failure::run(anyhow!("a job failed: {}, seed {seed}", case.label())));
        }
        answers.add(run / sweep.seeds.len(), seed, row.result);
    }
    Ok(answers)
}

fn maker(args: &PaperArgs) -> Maker {
    let mut words = vec!["nandscape".to_owned(), "paper".to_owned()];
    words.extend(args.papers.iter().map(|name| quoted(name)));
    let size = size(args);
    let mut options = match size {
        Size::Plain => Vec::new(),
        Size::Quick => vec![" --quick".to_owned()],
        Size::Full => vec![" --full".to_owned()],
    };
    options.extend(args.seeds.map(|seeds| format!(" --seeds {seeds}")));
    options.extend(args.set.iter().map(|set| format!(" --set {}", quoted(set))));
    options.extend(args.no_extensions.then(|| " --no-extensions".to_owned()));
    let options = options.concat();
    let variants = args.variant.iter().map(|one| format!(" --variant {}", quoted(one)));
    Maker {
        program: format!("nandscape {VERSION} ({COMMIT})"),
        command: words.join(" ") + &options + &variants.collect::<String>(),
        size,
        options,
    }
}

fn to_json(all: &[Reproduction], maker: &Maker) -> Value {
    json!({
        "version": VERSION,
        "commit": COMMIT,
        "command": maker.command,
        "quick": maker.size == Size::Quick,
        "full": maker.size == Size::Full,
        "papers": all.iter().map(|one| one.to_json(maker)).collect::<Vec<_>>(),
    })
}

/// Statements with their verdicts, checks that failed, and where the rest is.
fn text(all: &[Reproduction], maker: &Maker, out: &Path, paint: Paint) -> String {
    let mut text: String = all.iter().map(|one| of_paper(one, maker, paint)).collect();
    let Maker { program, command, .. } = maker;
    let place = out.join("index.html");
    let again = format!("{command} --out {}", quoted(&out.to_string_lossy()));
    text.push_str(&format!("report in {}\n  {program}\n  Reproduce: {again}\n", place.display()));
    text
}

/// A line of the table of verdicts: a statement as the paper stands, or under a variant.
struct Line<'a> {
    /// The statement in words, or the variant.
    head: String,
    published: String,
    measured: String,
    judgement: &'a Judgement,
    /// That in words.
    verdict: String,
    because: Option<&'a Because>,
    /// The command that measures it again.
    command: String,
}

/// Each statement, and below it the same under each variant.
fn lines<'a>(one: &'a Reproduction, maker: &Maker) -> Vec<Line<'a>> {
    let mut lines = Vec::new();
    for (statement, judged) in one.statements() {
        let command = |because: Option<&Because>| {
            because.map_or(String::new(), |because| maker.command_of(&one.paper, because.column))
        };
        lines.push(Line {
            head: shortened(&format!("{}: {}", statement.id, statement.text)),
            published: statement.published(),
            measured: statement.shown(judged),
            judgement: &judged.judgement,
            verdict: statement.verdict(&judged.judgement),
            because: judged.because.as_ref(),
            command: command(judged.because.as_ref()),
        });
        for (variant, under) in one.paper.variants.iter().zip(&judged.variants) {
            let Some(under) = under else { continue };
            lines.push(Line {
                head: format!("    {}", variant.id),
                published: String::new(),
                measured: statement.shown_under(under),
                judgement: &under.judgement,
                verdict: statement.verdict(&under.judgement),
                because: under.because.as_ref(),
                command: command(under.because.as_ref()),
            });
        }
    }
    lines
}

fn of_paper(one: &Reproduction, maker: &Maker, paint: Paint) -> String {
    let Paper { id, title, .. } = &one.paper;
    let mut text = format!("{}\n\n", paint.paint(Tone::Heading, &format!("{id}: {title}")));
    let all = lines(one, maker);
    let column = |header: &str, cell: &dyn Fn(&Line<'_>) -> String| {
        (header.to_owned(), all.iter().map(cell).collect::<Vec<_>>())
    };
    let columns = [
        column("statement", &|line| line.head.clone()),
        column("published", &|line| line.published.clone()),
        column("measured", &|line| line.measured.clone()),
    ];
    let mut given = Vec::new();
    for (at, laid) in lay_out(&columns, 1).into_iter().enumerate() {
        let Some(line) = at.checked_sub(1).and_then(|at| all.get(at)) else {
            text.push_str(&format!("{}\n", paint.paint(Tone::Faint, &format!("{laid}  verdict"))));
            continue;
        };
        let verdict = line.judgement.verdict;
        text.push_str(&format!("{laid}  {}\n", paint.paint(tone(verdict), &line.verdict)));
        if verdict != Verdict::Agrees {
            let why = why(line, one, &mut given);
            let why = paint.paint(Tone::Faint, &why);
            text.push_str(&format!("{}\n", paint.wrapped("      ", &why)));
        }
    }
    text + &summary(one, paint)
}

/// How a number stands to what is stated, and the reason for that, in full where it comes first.
fn why(line: &Line<'_>, one: &Reproduction, given: &mut Vec<(usize, String)>) -> String {
    let mut why = line.judgement.reason.clone();
    if let Some(because) = line.because {
        let reason = &one.paper.reasons[because.reason];
        let full = (because.reason, because.shown());
        match given.contains(&full) {
            true => why.push_str(&format!(". Reason: {}, above", reason.id)),
            false => {
                let (id, text, shown) = (&reason.id, &reason.text, &full.1);
                let text = text.trim_end_matches('.');
                why.push_str(&format!(". Reason ({id}): {text}: {shown} ({})", line.command));
                given.push(full);
            }
        }
    }
    why
}

/// Verdicts and checks, counted; what failed in full.
fn summary(one: &Reproduction, paint: Paint) -> String {
    let mut text = "\n".to_owned();
    for (kind, words) in [(Kind::Reproduction, REPRODUCTIONS), (Kind::Input, INPUTS)] {
        let of = |verdict: Verdict| format!("{} {}", one.count(kind, verdict), verdict.name());
        match one.paper.count(kind) {
            0 => {}
            all => {
                let counts = Verdict::ALL.map(of).join(", ");
                text.push_str(&format!("  {}: {counts}\n", counted(all as u64, words)));
            }
        }
    }
    if let Some(caution) = &one.paper.caution {
        let caution = paint.paint(Tone::Warning, &format!("caution: {caution}"));
        text.push_str(&format!("{}\n", paint.wrapped("  ", &caution)));
    }
    let (open, given) = one.reasons();
    if !one.paper.variants.is_empty() && open > 0 {
        let variants = counted(one.paper.variants.len() as u64, ["variant", "variants"]);
        text.push_str(&format!(
            "  with {variants}: {given} of {open} verdicts that need a reason have one\n"
        ));
    }
    let nonsense = one.nonsense();
    if nonsense.is_empty() {
        let checks = one.checked.len();
        let runs = counted(one.paper.distinct_runs() as u64, RUNS);
        text.push_str(&format!("  {checks} checks of physical sense hold in {runs}\n"));
    }
    for why in nonsense {
        let why = paint.paint(Tone::Failure, &format!("makes no sense: {why}"));
        text.push_str(&format!("{}\n", paint.wrapped("  ", &why)));
    }
    text + "\n"
}

fn tone(verdict: Verdict) -> Tone {
    match verdict {
        Verdict::Agrees => Tone::User,
        Verdict::Partially => Tone::Warning,
        Verdict::Disagrees => Tone::Failure,
        Verdict::Contradicted | Verdict::Inconclusive => Tone::Faint,
    }
}

fn shortened(text: &str) -> String {
    match text.chars().count() {
        n if n <= SAYS_MAX => text.to_owned(),
        _ => text.chars().take(SAYS_MAX - 1).chain(['…']).collect(),
    }
}

/// What is wrong with a reproduction that came to its end: figures that no result knows, or results
/// that make no sense. What a paper states may well be wrong.
fn verdict(all: &[Reproduction]) -> Result<(), Failure> {
    if let Some(unknown_path) = all.iter().find_map(Reproduction::unknown_path) {
        return Err(Failure::input(anyhow!(unknown_path)));
    }
    let failed: usize = all.iter().map(|one| one.nonsense().len()).sum();
    match failed {
        0 => Ok(()),
        1 => Err(Failure::run(anyhow!("1 result makes no physical sense; the report has it"))),
        n => Err(Failure::run(anyhow!(
            "{n} results make no physical sense; the report has them all"
        ))),
    }
}
