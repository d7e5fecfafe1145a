//! The table of verdicts: every statement for the paper as it stands and for each variant; below it what the
//! variants are, and the reasons for what does not agree.

use super::{Maker, tone};
use crate::model::{Column, Statement, Variant};
use crate::reason::Because;
use crate::reproduction::Reproduction;
use crate::verdict::Verdict;
use crate::{Judged, Verdicts};
use nandscape_report::{Cell, Document, Tone};

pub(super) fn table(page: &mut Document, one: &Reproduction, maker: &Maker) {
    let variants = &one.paper.variants;
    if !variants.is_empty() {
        page.section("Verdicts by variant");
        let ids = variants.iter().map(|variant| variant.id.as_str());
        let headers: Vec<&str> =
            ["statement", "published", "base"].into_iter().chain(ids).collect();
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
    let badge = |verdict: Verdict, shown: String| {
        Cell::Badge(tone(verdict), format!("{} {shown}", verdict.name()))
    };
    let base = badge(judged.judgement.verdict, statement.shown(judged));
    let under = |one: &Option<Verdicts>| match one {
        Some(one) => badge(one.judgement.verdict, statement.shown_under(one)),
        None => Cell::Badge(Tone::Unknown, "–".to_owned()),
    };
    let head = [Cell::Head(statement.id.clone()), Cell::Number(statement.published()), base];
    head.into_iter().chain(judged.variants.iter().map(under)).collect()
}

/// Why verdicts are not "agrees".
fn reasons(page: &mut Document, one: &Reproduction, maker: &Maker) {
    let (open, given) = one.reasons();
    if one.paper.reasons.is_empty() || open == 0 {
        return;
    }
    page.section("Why it does not agree");
    let mut lines = Vec::new();
    for (statement, judged) in one.statements() {
        let variants = judged.variants.iter().enumerate().filter_map(|(at, verdicts)| {
            let verdicts = verdicts.as_ref()?;
            Some((Column::Variant(at), verdicts.judgement.verdict, verdicts.because.as_ref()?))
        });
        let base = judged.because.as_ref();
        let base = base.map(|because| (Column::Base, judged.judgement.verdict, because));
        for (column, verdict, because) in base.into_iter().chain(variants) {
            let (text, figures, command) = words(one, because, maker);
            lines.push(vec![
                Cell::Head(statement.id.clone()),
                Cell::Head(one.paper.column_name(column).to_owned()),
                Cell::Badge(tone(verdict), verdict.name().to_owned()),
                Cell::Words(text),
                Cell::Words(figures),
                Cell::Words(command),
            ]);
        }
    }
    page.table(&["statement", "variant", "verdict", "reason", "measured", "command"], lines);
    page.note(&format!("{given} of {open} verdicts that are not \"agrees\" have a reason."));
}

/// The sentence, its figures and their command.
fn words(one: &Reproduction, because: &Because, maker: &Maker) -> (String, String, String) {
    let reason = &one.paper.reasons[because.reason];
    (reason.text.clone(), because.shown(), maker.command_of(&one.paper, because.column))
}
