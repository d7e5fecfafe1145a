//! What a reader should know before believing a figure.

use super::outcome::DeviceSize;
use super::prepare::Before;
use super::{Measured, replay};
use crate::stack::Stack;

/// All remarks on a run, those on the beginning first.
pub(super) fn remarks(
    stack: &Stack,
    size: &DeviceSize,
    before: Option<Before>,
    measured: &Measured,
) -> Vec<String> {
    let mut all: Vec<String> = beginning(stack, size, before, measured).collect();
    all.extend(measured.warnings.iter().cloned());
    all.extend(measured.steady.as_ref().err().cloned());
    all.extend(defects(measured));
    all.extend(host(stack).map(str::to_owned));
    all.extend(measured.trace.iter().flat_map(replay::warnings));
    all
}

/// On what the stack says of the host and nothing comes of.
fn host(stack: &Stack) -> impl Iterator<Item = &'static str> {
    let unused = stack.host.memory_bytes.filter(|_| stack.fs.is_none());
    let memory = unused.map(|_| "[host] memory limits nothing: the stack has no file system");
    let idle = stack.host.cores.filter(|_| stack.ftl.cpu.is_free());
    let cores = idle.map(|_| "[host] cores cost nothing: the stack sets no ftl.cpu");
    memory.into_iter().chain(cores)
}

/// On the state in which the device was.
fn beginning(
    stack: &Stack,
    size: &DeviceSize,
    before: Option<Before>,
    measured: &Measured,
) -> impl Iterator<Item = String> {
    let wrote = measured.counts.ftl.user_written > 0;
    let fresh = before.is_none() && wrote && measured.random_writes;
    let remedy = match (&stack.fs, &measured.flowops) {
        (None, _) => "precondition it (precondition.recipe)",
        (Some(_), None) => "let jobs overwrite large files before those that count (stonewall)",
        (Some(_), Some(_)) => "let the workload write several times what the device holds",
    };
    let fresh = fresh.then(|| {
        format!(
            "the device was fresh, and random writes on a fresh device are faster than they will \
             be: {remedy}"
        )
    });
    let done = before.map(|before| before.done);
    let partly = done.filter(|done| done.fill_sectors < size.logical_sectors && wrote).map(|done| {
        format!(
            "preconditioning filled {} of {} logical sectors: the rest is fresh, and acts as more \
             overprovisioning",
            done.fill_sectors, size.logical_sectors
        )
    });
    let restless = done.filter(|done| done.steady == Some(false)).map(|_| {
        "preconditioning ended before write amplification was steady \
         (precondition.steady_overwrite)"
            .to_owned()
    });
    fresh.into_iter().chain(partly).chain(restless)
}

/// On what should not happen.
fn defects(measured: &Measured) -> impl Iterator<Item = String> {
    let counted = [
        (measured.counts.ftl.mismatches, "reads found another sector's data: a defect of the FTL"),
        (measured.counts.ftl.uncorrectable, "sectors could not be read from the media"),
    ];
    let counted = counted.into_iter().filter(|(count, _)| *count > 0);
    counted.map(|(count, what)| format!("{count} {what}"))
}
