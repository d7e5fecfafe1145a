//! What campaigns found, as JSON (docs/formats/crash.md).

use super::again;
use super::findings::{End, Findings, Found};
use super::ground::Ground;
use crate::args::CrashArgs;
use crate::command::COMMIT;
use nandscape_crash::composition::Composition;
use nandscape_crash::matrix::MatrixReport;
use nandscape_crash::{
    CampaignReport, Counts, FtlKind, GivenKeys, Minimised, Setting, Settings, given_keys, lines,
};
use nandscape_lab::run::VERSION;
use serde_json::{Map, Value, json};

/// A campaign on devices, of a stack of that kind if one is given.
pub(super) fn campaign(
    findings: &Findings<'_>,
    report: &CampaignReport,
    stack: Option<FtlKind>,
) -> Value {
    let all = joined(head_of(findings), of_report(findings, None, report));
    let Some(kind) = stack else { return all };
    let GivenKeys { kept, drawn } = given_keys(kind);
    joined(all, json!({ "stack": { "as_given": kept, "drawn": drawn } }))
}

/// A campaign on a file system.
pub(super) fn fs_campaign(
    findings: &Findings<'_>,
    report: &CampaignReport,
    ground: &Ground,
    stack: Option<FtlKind>,
) -> Value {
    let mounted = joined(mounted(ground), json!({ "full": ground.full }));
    let of_fs = json!({ "fs": mounted, "coverage": coverage(report) });
    joined(campaign(findings, report, stack), of_fs)
}

/// The file system of a campaign, on what, and how it is mounted.
pub(super) fn mounted(ground: &Ground) -> Value {
    let Ground { kind, modes, base, .. } = ground;
    let of_kind = [("kind", kind.name()), ("base", base.name())].into_iter();
    let all =
        of_kind.chain(modes.iter().copied()).map(|(key, value)| (key.to_owned(), value.into()));
    Value::Object(all.collect())
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
pub(super) fn matrix(findings: &Findings<'_>, report: &MatrixReport<'_>) -> Value {
    let of_one = |(composition, report): (&Composition, &CampaignReport)| {
        joined(
            json!({ "composition": composition.to_string() }),
            of_report(findings, Some(composition), report),
        )
    };
    let matrix = report.matrix();
    let refused = matrix.refused.iter();
    let refused = refused.map(|(it, why)| json!({ "composition": it.to_string(), "why": why }));
    let all = json!({
        "cuts": matrix.cuts,
        "compositions": report.compositions().map(of_one).collect::<Vec<_>>(),
        "refused": refused.collect::<Vec<_>>(),
    });
    joined(head_of(findings), all)
}

fn head_of(findings: &Findings<'_>) -> Value {
    head(findings.args, findings.violations.is_empty(), findings.end)
}

/// What every campaign says.
pub(super) fn head(args: &CrashArgs, passed: bool, end: End) -> Value {
    json!({
        "version": VERSION,
        "commit": COMMIT,
        "first_seed": args.first,
        "passed": passed,
        "interrupted": end == End::Interrupted,
        "stopped": end == End::Stopped,
    })
}

/// What some seeds found.
fn of_report(
    findings: &Findings<'_>,
    composition: Option<&Composition>,
    report: &CampaignReport,
) -> Value {
    let found = findings.violations.iter().filter(|found| found.composition == composition);
    let violations = found.map(|found| violation(findings.args, found));
    json!({
        "seeds": report.seeds,
        "counts": counts(&report.counts),
        "violations": violations.collect::<Vec<_>>(),
    })
}

/// Two objects as one, the keys of `first` before the others.
pub(super) fn joined(mut first: Value, rest: Value) -> Value {
    if let (Some(keys), Value::Object(rest)) = (first.as_object_mut(), rest) {
        keys.extend(rest);
    }
    first
}

fn violation(args: &CrashArgs, found: &Found<'_>) -> Value {
    let Found { composition, violation, minimised } = found;
    let command = |only| again::seed(args, *composition, violation.seed, only);
    let minimised = minimised.as_ref().map(|minimised| {
        let Minimised { reduction, operations_before, runs, violation } = minimised;
        json!({
            "operations": reduction.operations(),
            "operations_before": operations_before,
            "rounds": reduction.rounds.len(),
            "runs": runs,
            "message": violation.what,
            "lba": violation.lba.map(|lba| lba.0),
            "expected": violation.expected,
            "actual": violation.got,
            "event_log": lines(&violation.event_log),
            "calls": violation.calls,
            "only": reduction.to_string(),
            "reproduce": command(Some(reduction)),
        })
    });
    let mut value = json!({
        "seed": violation.seed,
        "round": violation.round,
        "message": violation.what,
        "lba": violation.lba.map(|lba| lba.0),
        "expected": violation.expected,
        "actual": violation.got,
        "event_log": lines(&violation.event_log),
        "scenario": table(&violation.scenario),
        "reproduce": command(args.only.as_ref()),
    });
    if let Some(keys) = value.as_object_mut() {
        keys.extend(minimised.map(|minimised| ("minimised".to_owned(), minimised)));
    }
    value
}

/// Keys and values of a scenario.
fn table(settings: &Settings) -> Value {
    Value::Object(settings.iter().map(|(key, value)| (key.to_owned(), setting(value))).collect())
}

fn setting(value: &Setting) -> Value {
    match value {
        Setting::Bool(value) => (*value).into(),
        Setting::Integer(value) => (*value).into(),
        Setting::Text(text) => text.as_str().into(),
        Setting::List(values) => values.iter().map(setting).collect(),
        Setting::Table(settings) => table(settings),
    }
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
