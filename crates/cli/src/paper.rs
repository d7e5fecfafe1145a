//! `nandscape paper`: what papers ask is run, in one pool; then verdicts, checks and the report.

use crate::args::PaperArgs;
use crate::output::{Failure, print};
use crate::paint::ColorChoice;
use anyhow::anyhow;
use nandscape_paper::{Files, Paper, shipped};

/// Lists, checks or reproduces papers.
pub(crate) fn paper(args: &PaperArgs, _: ColorChoice) -> Result<(), Failure> {
    let names = names(args)?;
    if args.list {
        return list(&names);
    }
    if args.check {
        return check(&names);
    }
    Ok(())
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

fn load(name: &str, quick: bool) -> Result<Paper, Failure> {
    let (files, folder) = Files::find(name);
    Paper::load(files, &folder, quick).map_err(Failure::input)
}

fn list(names: &[String]) -> Result<(), Failure> {
    let width = names.iter().map(String::len).max().unwrap_or(0);
    let mut text = String::new();
    for name in names {
        let paper = load(name, false)?;
        let Paper { title, venue, year, .. } = &paper;
        text.push_str(&format!("{name:width$}  {title} ({venue}, {year})\n"));
    }
    print(&text)
}

/// Reads papers as they are and as they are asked quickly.
fn check(names: &[String]) -> Result<(), Failure> {
    for name in names {
        let (full, quick) = (load(name, false)?, load(name, true)?);
        let (statements, questions) = (full.statements.len(), full.questions.len());
        print(&format!(
            "{name}: {statements} statements, {questions} questions, {} runs, {} of them quick\n",
            full.runs(),
            quick.runs()
        ))?;
    }
    Ok(())
}
