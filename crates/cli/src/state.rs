//! `nandscape state`: preconditioned devices as files.

use crate::args::{StateCommand, StateSaveArgs, StatesArgs};
use crate::command::COMMIT;
use crate::logs::Watch;
use crate::output::{Failure, classify, print, wrote};
use crate::replace::{replace, with_path};
use crate::state_cache::state_cache;
use crate::summary::{before, bytes};
use crate::writable::expect_writable;
use anyhow::{Error, anyhow};
use nandscape_lab::SECTOR_BYTES;
use nandscape_lab::run::{FinalState, Observer, RunError, make_state};
use nandscape_lab::stack::{Stack, payload_name};
use nandscape_lab::state::{Header, State, StateSummary, inspect};
use nandscape_lab::sweep::program;
use nandscape_rt::words::grouped;
use std::fmt::Write as _;
use std::path::Path;

/// Saves or shows.
pub(crate) fn state(args: &StatesArgs) -> Result<(), Failure> {
    match &args.command {
        StateCommand::Save(args) => save(args),
        StateCommand::Show { file } => {
            let (header, summary) = inspect(file).map_err(Failure::input)?;
            print(&description(file, &header, &summary))
        }
        StateCommand::Cache(args) => state_cache(args),
    }
}

fn save(args: &StateSaveArgs) -> Result<(), Failure> {
    expect_writable([Some(args.output.as_path())], [args.stack.file()])?;
    let stack = Stack::load(&args.stack.stack, &args.stack.set).map_err(Failure::input)?;
    if stack.precondition.is_none() {
        let why = "configures no preconditioning, so there is no state to save";
        return Err(Failure::input(stack.error("precondition", why)));
    }
    let mut watch = Watch::new();
    let state = make_state(&stack, args.seed, &program(COMMIT), &mut watch).map_err(classify)?;
    let made_s = watch.wall_s();
    write(&args.output, &state)?;
    let size = std::fs::metadata(&args.output).map_err(Failure::run)?.len();
    print(&format!(
        "{}: {} written in {:.2} s wall time (+ {made_s:.2} s preconditioning); state {}\n",
        args.output.display(),
        bytes(size as f64),
        watch.wall_s() - made_s,
        state.header.key
    ))
}

/// Writes what a run left where it is wanted.
pub(crate) fn keep(path: Option<&Path>, left: FinalState) -> Result<(), Failure> {
    let (Some(path), Some(left)) = (path, left) else { return Ok(()) };
    let not_saved = format!("no state is saved to {}", path.display());
    let state = left.map_err(|error| match error {
        RunError::Interrupted => Failure::Interrupted(anyhow!("interrupted: {not_saved}")),
        error => Failure::Run(Error::from(error).context(not_saved)),
    })?;
    write(path, &state)?;
    wrote("device state", path);
    Ok(())
}

/// Writes a state to a file of its own.
pub(crate) fn write(path: &Path, state: &State) -> Result<(), Failure> {
    replace(path, |out| with_path(path, state.write(out)))
}

fn description(file: &Path, header: &Header, summary: &StateSummary) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = describe(&mut text, file, header, summary);
    text
}

fn size(sectors: u64) -> String {
    bytes(sectors as f64 * SECTOR_BYTES as f64)
}

fn describe(
    out: &mut String,
    file: &Path,
    header: &Header,
    summary: &StateSummary,
) -> std::fmt::Result {
    let Header { geometry, preconditioned, .. } = header;
    writeln!(out, "{}: state {}, seed {}", file.display(), header.key, header.seed)?;
    writeln!(
        out,
        "  device   {} channels x {} PUs x {} chunks of {}: {}; payload {}",
        geometry.groups,
        geometry.units,
        geometry.chunks,
        size(geometry.sectors.into()),
        size(geometry.total_sectors()),
        payload_name(header.payload)
    )?;
    let settled = header.text.contains("precondition.settled");
    writeln!(out, "  contents {}", before(preconditioned, header.origin(), settled))?;
    let wear = &summary.wear;
    writeln!(
        out,
        "  wear     {} erases; P/E cycles {}-{}; {} of {} chunks offline",
        grouped(wear.erases),
        wear.erases_min,
        wear.erases_max,
        wear.offline,
        wear.chunks + wear.offline
    )?;
    let lines = &summary.lines;
    writeln!(
        out,
        "  lines    {} closed, {} open, {} free",
        lines.written, lines.open, lines.erased
    )?;
    writeln!(out, "  program  {}", header.program)?;
    writeln!(out, "  created from")?;
    header.text.lines().try_for_each(|line| writeln!(out, "    {line}"))
}
