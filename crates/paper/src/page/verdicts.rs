//! The table of verdicts: every statement for the paper as it stands and for each variant; below it what the
//! variants are, and the reasons for what does not agree.

use super::{Maker, tone};
use crate::model::{Column, Statement, Variant};
use crate::reason::Because;
use crate::reproduction::Reproduction;
use crate::verdict::{Judgement, Verdict};
use crate::{Judged, Verdicts};
use nandscape_report::{Cell, Document, Tone};

pub(super) fn table(page: &mut Document, one: &Reproduction, maker: &Maker) {
    let variants = &one.paper.variants;
    if !variants.is_empty() {
        page.section("Verdicts by variant");
        let ids = variants.iter().map(|variant| variant.id.as_str());
        let headers: Vec<&str> = ["claim", "published", "base"].into_iter().chain(ids).collect();
        page.table(&headers, one.statements().map(|(statement, judged)| line(statement, judged)));
        let lines = variants.iter().map(|variant| {
            let Variant { id, title, why, scale, sweeps } = variant;
            let seeds = sweeps.iter().map(|(_, sweep)| sweep.seeds.len()).max().unwrap_or(0);
            let experiments = sweeps.iter().map(|(at, _)| one.paper.experiments[*at].id.as_str());
            vec![
                Cell::Head(id.clone()),
                Cell::Words(format!("{title}. {why}")),
                Cell::Words(experiments.collect::<Vec<_>>().join(", ")),
                Cell::Words(scale.clone()),
                Cell::Number(seeds.to_string()),
            ]
        });
        page.table(
            &["variant", "what it is, and why it is asked", "experiments", "scale", "seeds"],
            lines,
        );
    }
    reasons(page, one, maker);
}

fn line(statement: &Statement, judged: &Judged) -> Vec<Cell> {
    let badge = |judgement: &Judgement, shown: String| {
        Cell::Badge(tone(judgement.verdict), format!("{} {shown}", statement.verdict(judgement)))
    };
    let base = badge(&judged.judgement, statement.shown(judged));
    let under = |one: &Option<Verdicts>| match one {
        Some(one) => badge(&one.judgement, statement.shown_under(one)),
        None => Cell::Badge(Tone::Unknown, "–".to_owned()),
    };
    let head = [Cell::Head(statement.id.clone()), Cell::Number(statement.published()), base];
    head.into_iter().chain(judged.variants.iter().map(under)).collect()
}

/// Why verdicts are not "agrees": for each reason the verdicts that it explains, and below them what it points to, both
/// by variant.
fn reasons(page: &mut Document, one: &Reproduction, maker: &Maker) {
    let (open, given) = one.reasons();
    if one.paper.reasons.is_empty() || open == 0 {
        return;
    }
    page.section("Why it does not agree");
    page.text(&format!("{given} of {open} verdicts that need a reason have one."));
    let explained: Vec<Explained<'_>> = explained(one).collect();
    for at in 0..one.paper.reasons.len() {
        let here: Vec<_> = explained.iter().filter(|one| one.because.reason == at).collect();
        if !here.is_empty() {
            reason(page, one, maker, &here);
        }
    }
}

/// A reason with the verdicts that it explains, of which there is at least one.
fn reason(page: &mut Document, one: &Reproduction, maker: &Maker, explained: &[&Explained<'_>]) {
    let reason = &one.paper.reasons[explained[0].because.reason];
    page.heading(&reason.id);
    page.text(&reason.text);
    let mut columns: Vec<Column> = explained.iter().map(|one| one.column).collect();
    columns.sort();
    columns.dedup();
    let names = columns.iter().map(|column| one.paper.column_name(*column));
    let headers: Vec<&str> = ["claim"].into_iter().chain(names).collect();
    page.table(&headers, cells(explained, &columns));
    let commands = columns.iter().map(|column| maker.command_of(&one.paper, *column));
    page.folded("Commands that measure it again", &commands.collect::<Vec<_>>().join("\n"));
}

/// A verdict that has a reason.
struct Explained<'a> {
    statement: &'a str,
    column: Column,
    verdict: Verdict,
    because: &'a Because,
}

fn explained(one: &Reproduction) -> impl Iterator<Item = Explained<'_>> {
    one.statements().flat_map(|(statement, judged)| {
        let variants = judged.variants.iter().enumerate().filter_map(|(at, verdicts)| {
            let verdicts = verdicts.as_ref()?;
            Some((Column::Variant(at), verdicts.judgement.verdict, verdicts.because.as_ref()?))
        });
        let base = judged.because.as_ref();
        let base = base.map(|because| (Column::Base, judged.judgement.verdict, because));
        base.into_iter().chain(variants).map(|(column, verdict, because)| Explained {
            statement: &statement.id,
            column,
            verdict,
            because,
        })
    })
}

/// Statements with their verdicts, then figures with their values; a column each.
fn cells(explained: &[&Explained<'_>], columns: &[Column]) -> Vec<Vec<Cell>> {
    let mut statements: Vec<&str> = explained.iter().map(|verdict| verdict.statement).collect();
    statements.dedup();
    let none = || Cell::Badge(Tone::Plain, "–".to_owned());
    let verdicts = statements.into_iter().map(|statement| {
        let of = |column: &Column| {
            let mut those = explained.iter();
            let verdict = those.find(|one| one.statement == statement && one.column == *column);
            verdict.map_or_else(none, |one| {
                Cell::Badge(tone(one.verdict), one.verdict.name().to_owned())
            })
        };
        let head = Cell::Head(statement.to_owned());
        [head].into_iter().chain(columns.iter().map(of)).collect()
    });
    let firsts: Vec<&Because> = columns
        .iter()
        .filter_map(|column| explained.iter().find(|one| one.column == *column))
        .map(|one| one.because)
        .collect();
    let names = firsts.first().map_or(&[][..], |because| &because.figures);
    let figures = names.iter().map(|(name, _)| {
        let of = |because: &&Because| {
            let value = because.figures.iter().find(|(other, _)| other == name);
            Cell::Number(value.map_or_else(|| "–".to_owned(), |(_, value)| value.clone()))
        };
        let head = Cell::Head(name.clone());
        [head].into_iter().chain(firsts.iter().map(of)).collect()
    });
    verdicts.chain(figures).collect()
}
