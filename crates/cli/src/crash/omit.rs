//! `--omit`: the rule that a campaign must find missing, of whichever kind involved has one of that name; and `--rules`, the list
//! of them.

use crate::args::{BaseChoice, CrashArgs, KindChoice, ListFormat};
use crate::listing::Listing;
use crate::output::Failure;
use anyhow::anyhow;
use nandscape_crash::fs::FsOptions;
use nandscape_crash::{FtlKind, Options, ftl_kinds, kind_of_name};
use nandscape_fs::{FsConfig, FsKind, Rule, Where};

/// Leaves out a rule of the FTL, or of the file system on it.
pub(super) fn rule(
    name: &str,
    device: &mut Options,
    fs: Option<&mut FsConfig>,
) -> Result<(), Failure> {
    let kind = device.kind();
    if let Some(rule) = kind.rules().iter().find(|rule| rule.name() == name) {
        device.omit = Some(*rule);
        return Ok(());
    }
    let mut kinds = kind.to_string();
    let mut valid: Vec<&str> = kind.rules().iter().map(|rule| rule.name()).collect();
    if let Some(fs) = fs {
        if fs.omit(name).is_ok() {
            return Ok(());
        }
        kinds = format!("{kinds} or {}", fs.kind().name());
        valid.extend(fs.kind().rules().iter().map(|rule| rule.name));
    }
    let valid = valid.join(", ");
    Err(Failure::input(anyhow!(
        "--omit {name}: no rule of {kinds}: expected one of {valid}; crash --rules describes them"
    )))
}

/// A rule of the list.
struct Row {
    name: &'static str,
    without: &'static str,
    applies: String,
}

/// Prints the rules that can be left out: of all kinds, or of those of the stack and the file system that are given.
pub(super) fn list(args: &CrashArgs, format: ListFormat) -> Result<(), Failure> {
    let rows = rows(args)?;
    let width = rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
    let line = |Row { name, without, applies }: &Row| match applies.is_empty() {
        true => format!("{name:width$}  {without}\n"),
        false => format!("{name:width$}  {without} ({applies})\n"),
    };
    let listing = Listing {
        columns: ["rule", "without", "applies"],
        rows: rows
            .iter()
            .map(|row| [row.name.to_owned(), row.without.to_owned(), row.applies.clone()])
            .collect(),
    };
    listing.print(format, || rows.iter().map(line).collect())
}

fn rows(args: &CrashArgs) -> Result<Vec<Row>, Failure> {
    let given = super::stack(args, &[])?;
    let fs = args.on_fs.fs.map(|KindChoice(kind)| kind);
    let kind = match (&given, &args.ftl) {
        (Some(stack), _) => Some(stack.ftl.kind()),
        (None, Some(name)) => kind_of_name(name),
        (None, None) => fs.map(FsOptions::ftl_kind),
    };
    let is_adverse = args.base() != BaseChoice::Flash;
    let mut rows: Vec<Row> = Vec::new();
    let kinds = ftl_kinds().into_iter();
    for of in kinds.filter(|of| !is_adverse && kind.is_none_or(|kind| kind == *of)) {
        for rule in of.rules() {
            match rows.iter_mut().find(|row| row.name == rule.name()) {
                Some(row) => row.applies += &format!(", {of}"),
                None => rows.push(Row {
                    name: rule.name(),
                    without: rule.without(),
                    applies: of.to_string(),
                }),
            }
        }
    }
    if kind.is_some() {
        rows.iter_mut().for_each(|row| row.applies.clear());
    }
    if fs.is_none() && kind.is_some() {
        return Ok(rows);
    }
    for of in FsKind::ALL.into_iter().filter(|of| fs.is_none_or(|fs| fs == *of)) {
        let may_apply = |rule: &&Rule| fs.is_none() || applies(rule.applies, args, kind);
        rows.extend(of.rules().iter().filter(may_apply).map(|rule| {
            let with = rule.applies.to_string();
            let applies = match (fs, with.is_empty()) {
                (Some(_), _) => with,
                (None, true) => of.name().to_owned(),
                (None, false) => format!("{}, {with}", of.name()),
            };
            Row { name: rule.name, without: rule.without(), applies }
        }));
    }
    Ok(rows)
}

/// Whether a part of the file system may be at work on the device that is given. Without a stack that may be any.
fn applies(with: Where, args: &CrashArgs, kind: Option<FtlKind>) -> bool {
    let base = args.base();
    let is = |name: &str| match (base, kind) {
        (BaseChoice::Flash, Some(kind)) => kind.name() == name,
        (BaseChoice::Flash, None) => true,
        (BaseChoice::Adversary | BaseChoice::AdversaryZoned, _) => false,
    };
    match with {
        Where::Always | Where::Mode(..) => true,
        Where::Zones => is("zoned") || base == BaseChoice::AdversaryZoned,
        Where::AppendOnly => is("interval") || is("coupled"),
        Where::Upcalls => is("coupled"),
    }
}
