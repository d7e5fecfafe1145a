//! What campaigns found, as JSON (docs/formats/crash.md).

use super::fs::FsReport;
use crate::command::COMMIT;
use nandscape_crash::composition::Composition;
use nandscape_crash::matrix::MatrixReport;
use nandscape_crash::{CampaignReport, Counts, Violation};
use nandscape_lab::run::VERSION;
use serde_json::{Map, Value, json};

/// A campaign whose first seed was `first`.
pub(super) fn campaign(report: &CampaignReport, first: u64) -> Value {
    joined(head(first, report.passed()), findings(report))
}

/// A campaign on a file system.
pub(super) fn fs_campaign(found: &FsReport, first: u64) -> Value {
    let FsReport { report, kind, modes, base } = found;
    let of_kind = [("kind", kind.name()), ("base", base.name())].into_iter();
    let mounted =
        of_kind.chain(modes.iter().copied()).map(|(key, value)| (key.to_owned(), value.into()));
    let of_fs = json!({ "fs": Value::Object(mounted.collect()), "coverage": coverage(report) });
    joined(campaign(report, first), of_fs)
}

/// What was reached, by group and name.
fn coverage(report: &CampaignReport) -> Value {
    let mut groups = Map::new();
    for (group, name, count) in report.coverage.rows() {
        let rows = groups.entry(group).or_insert_with(|| Value::Object(Map::new()));
        rows.as_object_mut()
            .into_iter()
            .for_each(|rows| drop(rows.insert(name.into(), count.into())));
    }
    Value::Object(groups)
}

/// A matrix: the findings of each composition, and what the FTL refuses.
pub(super) fn matrix(report: &MatrixReport<'_>) -> Value {
    let of_one = |(composition, report): (&Composition, &CampaignReport)| {
        joined(json!({ "composition": composition.to_string() }), findings(report))
    };
    let matrix = report.matrix();
    let refused = matrix.refused.iter();
    let refused = refused.map(|(it, why)| json!({ "composition": it.to_string(), "why": why }));
    let all = json!({
        "cuts": matrix.cuts,
        "compositions": report.compositions().map(of_one).collect::<Vec<_>>(),
        "refused": refused.collect::<Vec<_>>(),
    });
    joined(head(matrix.first, report.violations().next().is_none()), all)
}

/// What every campaign tells.
fn head(first: u64, passed: bool) -> Value {
    json!({ "version": VERSION, "commit": COMMIT, "first_seed": first, "passed": passed })
}

/// What some seeds found.
fn findings(report: &CampaignReport) -> Value {
    json!({
        "seeds": report.seeds,
        "counts": counts(&report.counts),
        "violations": report.violations.iter().map(violation).collect::<Vec<_>>(),
    })
}

/// Two objects as one, the keys of `first` before the others.
fn joined(mut first: Value, rest: Value) -> Value {
    if let (Some(keys), Value::Object(rest)) = (first.as_object_mut(), rest) {
        keys.extend(rest);
    }
    first
}

fn violation(violation: &Violation) -> Value {
    json!({
        "seed": violation.seed,
        "round": violation.round,
        "message": violation.what,
        "lba": violation.lba.map(|lba| lba.0),
        "expected": violation.expected,
        "actual": violation.got,
        "event_log": violation.event_log,
        "scenario": violation.scenario,
    })
}

fn counts(counts: &Counts) -> Value {
    json!({
        "cuts": counts.cuts,
        "cuts_in_recovery": counts.cuts_in_recovery,
        "requests": counts.requests,
        "sectors_written": counts.sectors_written,
        "sectors_read": counts.sectors_read,
        "sectors_discarded": counts.sectors_discarded,
        "flushes": counts.flushes,
        "refused": counts.refused,
        "programs": counts.programs,
        "erases": counts.erases,
        "program_failures": counts.program_failures,
        "erase_failures": counts.erase_failures,
        "unreadable": counts.unreadable,
        "worn_out": counts.worn_out,
        "rejected_configs": counts.rejected_configs,
    })
}
