//! What a reader should know before believing a figure.

use super::counts::Counts;
use super::criterion::is_fresh;
use super::load::{Measurement, NOT_JUDGED, RunEnd};
use super::prepare::InitialState;
use super::sense::{self, effective_op_percent};
use crate::stack::{FsStack, Stack};
use nandscape_block::{BlockError, SECTOR_BYTES};
use nandscape_ftl::{DeviceSize, Rest};
use nandscape_rt::words::{bytes, counted, grouped};
use nandscape_workload::engine::FailureKind;
use nandscape_workload::replay::TraceCounts;

/// Share of what jobs transfer below which a page cache has served nearly all of it.
const REACHED_MIN: f64 = 0.1;
/// Less is too little to be measured.
const CACHED_BYTES_MIN: u64 = 1 << 20;
/// Share of the overprovisioning below which what GC has of it is another device.
const EFFECTIVE_MIN: f64 = 2.0 / 3.0;

/// All warnings of a run, those about its initial state first.
pub(super) fn warnings(
    stack: &Stack,
    (size, rest): (&DeviceSize, Option<Rest>),
    before: Option<InitialState>,
    measured: &Measurement,
) -> Vec<String> {
    let mut all: Vec<String> = interruption(measured).into_iter().collect();
    all.extend(end_of_life(measured));
    all.extend(page_cache(measured));
    all.extend(measured.warnings.iter().cloned());
    all.extend(initial_state_warnings(stack, size, before, measured));
    all.extend(unwritten(stack, measured));
    all.extend(rest.and_then(|rest| restless(&rest, size, measured)));
    let judged = |why: &&String| !why.starts_with(NOT_JUDGED);
    all.extend(measured.steady.as_ref().err().filter(judged).cloned());
    all.extend(sense::warnings(measured));
    all.extend(reserved(size, measured));
    all.extend(defects(measured));
    all.extend(host(stack, measured.counts.fs.is_some()).map(str::to_owned));
    let depth = measured.results.jobs.first().map_or(0, |job| job.depth);
    all.extend(measured.trace.iter().flat_map(|counts| trace(counts, depth)));
    all
}

/// On an end before the end.
fn interruption(measured: &Measurement) -> Option<String> {
    let length = measured.length;
    (measured.end == RunEnd::Interrupted).then(|| {
        format!("partial results: the run was interrupted, and metrics cover the first {length}")
    })
}

/// On a device that served until too many of its chunks had failed.
fn end_of_life(measured: &Measurement) -> Option<String> {
    let mut failures = measured.results.jobs.iter().flat_map(|job| &job.failures);
    let is_read_only = |what: &_| matches!(what, FailureKind::Io(_, BlockError::ReadOnly(_)));
    let errors = &measured.counts.ftl.media_errors;
    let failed = errors.program_failures + errors.erase_failures > 0;
    (failed && failures.any(|failure| is_read_only(&failure.what))).then(|| {
        format!(
            "end of life: the device became read-only after {} programs and {} erases had failed; \
             results cover the {} until then",
            grouped(errors.program_failures),
            grouped(errors.erase_failures),
            measured.length
        )
    })
}

/// On what the stack says of the host and nothing comes of; `cached` says whether a page cache was used.
fn host(stack: &Stack, cached: bool) -> impl Iterator<Item = &'static str> {
    let unused = stack.host.memory_bytes.filter(|_| !cached);
    let memory = unused.map(|_| "[host] memory has no effect: nothing used a page cache");
    // Calls to a page cache use cores; direct jobs and traces on a block device use none.
    let idle = stack.host.cores.filter(|_| !stack.ftl.charges_host() && !cached);
    let cores = idle.map(
        |_| "[host] cores has no effect: the stack sets no ftl.cpu, and nothing used a page cache",
    );
    memory.into_iter().chain(cores).chain(without_buffers(stack)).chain(without_areas(stack))
}

/// On a number of normal write buffers that the routing ignores.
fn without_buffers(stack: &Stack) -> Option<&'static str> {
    let ignored = stack.sets("ftl.write_buffers") && !stack.ftl.uses_write_buffers();
    ignored.then_some("ftl.write_buffers has no effect: ftl.routing has one normal write buffer")
}

/// On a number of ijournal areas that the file system does not have.
fn without_areas(stack: &Stack) -> Option<&'static str> {
    let commit = |fs: &FsStack| fs.config.choices().contains(&("commit", "ijournal"));
    let ignored = stack.sets("fs.ijournal_areas") && !stack.fs.as_ref().is_some_and(commit);
    ignored.then_some("fs.ijournal_areas has no effect: fs.commit is not ijournal")
}

/// On the state in which the device was.
fn initial_state_warnings(
    stack: &Stack,
    size: &DeviceSize,
    before: Option<InitialState>,
    measured: &Measurement,
) -> impl Iterator<Item = String> {
    let Counts { ftl, .. } = &measured.counts;
    let wrote = ftl.host.written > 0;
    let fresh = before.is_none()
        && measured.random_writes
        && wrote
        && is_fresh(size.live_sectors, ftl.host.written);
    let remedy = match (&stack.fs, &measured.flowops) {
        (None, _) => "precondition it (precondition.recipe)",
        (Some(_), None) => "let jobs overwrite large files before those that count (stonewall)",
        (Some(_), Some(_)) => "let the workload write several times what the device holds",
    };
    let gc = match ftl.gc.victims {
        0 => "no GC yet".to_owned(),
        victims => format!(
            "GC began within the run, and collected {}",
            counted(victims, ["line", "lines"])
        ),
    };
    let fresh = fresh
        .then(|| format!("the device was fresh: write results are optimistic ({gc}); {remedy}"));
    let done = before.map(|before| before.done);
    let partly =
        done.filter(|done| done.fill_sectors < size.live_sectors && wrote).map(|done| {
            format!(
                "the device held {} of {} logical sectors at the beginning: unwritten space acts as extra \
                 overprovisioning",
                grouped(done.fill_sectors),
                grouped(size.live_sectors)
            )
        });
    let restless = done.filter(|done| done.steady == Some(false)).map(|_| {
        "preconditioning ended before write amplification was steady \
         (precondition.steady_overwrite)"
            .to_owned()
    });
    fresh.into_iter().chain(partly).chain(restless)
}

/// On reads of sectors that hold nothing. A file system reads a few structures before it wrote them.
fn unwritten(stack: &Stack, measured: &Measurement) -> Option<String> {
    let host = &measured.counts.ftl.host;
    let few = if stack.fs.is_some() { host.read / 100 } else { 0 };
    let remedy = match (&stack.fs, &measured.trace) {
        (Some(_), _) => "let the workload write what it reads",
        (None, Some(_)) => "let the footprint of the trace be written first (--prefill)",
        (None, None) => "write them first (precondition.recipe=fill)",
    };
    (host.unwritten > few).then(|| {
        format!(
            "{} of {} sectors read hold nothing; such reads cost a command and the link, and no media \
             time: {remedy}",
            grouped(host.unwritten),
            grouped(host.read)
        )
    })
}

/// On collection that cannot come to rest.
fn restless(rest: &Rest, size: &DeviceSize, measured: &Measurement) -> Option<String> {
    let collects = measured.counts.ftl.gc.victims > 0;
    (collects && !rest.is_possible()).then(|| {
        let lines = |chunks: u64| chunks as f64 / rest.line_chunks.max(1) as f64;
        format!(
            "GC cannot rest on this device, also while the host is idle: pblk's limiter collects until {} chunks \
             ({:.1} lines) are free, and stale sectors need {} more (1/{} of the device), or victims are all but valid: \
             {} in all; with {} of {} logical sectors in use at most {} ({:.1} lines) can be free. \
             ftl.limiter=reserve-2 keeps two lines free; more overprovisioning (ftl.op_percent) helps, too",
            rest.wanted_chunks,
            lines(rest.wanted_chunks),
            rest.stale_chunks(),
            Rest::STALE_INVERSE,
            rest.wanted_chunks + rest.stale_chunks(),
            grouped(rest.mapped_sectors),
            grouped(size.logical_sectors),
            rest.free_chunks_max,
            lines(rest.free_chunks_max)
        )
    })
}

/// On what jobs read and wrote and the page cache kept from the device.
fn page_cache(measured: &Measurement) -> Option<String> {
    measured.counts.fs.as_ref()?;
    let (jobs, host) = (measured.bytes(), &measured.counts.ftl.host);
    let part = |(of_jobs, sectors, how): (u64, u64, &str)| {
        let reached = sectors * SECTOR_BYTES;
        let kept = of_jobs >= CACHED_BYTES_MIN && reached as f64 <= REACHED_MIN * of_jobs as f64;
        kept.then(|| {
            format!("{} of the {} that jobs {how}", bytes(reached as f64), bytes(of_jobs as f64))
        })
    };
    let parts = [(jobs.written, host.written, "wrote"), (jobs.read, host.read, "read")];
    let parts: Vec<String> = parts.into_iter().filter_map(part).collect();
    let remedy = match measured.flowops {
        None => "direct=1, fsync=1, end_fsync=1 or a file larger than the cache reach the device",
        Some(_) => "filesets larger than the cache (host.memory), or fsync, reach the device",
    };
    let measures = match parts.iter().any(|part| part.ends_with("wrote")) {
        true => "this measures",
        false => "reads measure",
    };
    (!parts.is_empty()).then(|| {
        let parts = parts.join(" and ");
        format!("only {parts} reached the device: {measures} the page cache ({remedy})")
    })
}

/// On overprovisioning that erase units take which are kept free.
fn reserved(size: &DeviceSize, measured: &Measurement) -> Option<String> {
    let effective = effective_op_percent(size, &measured.counts.ftl)?;
    let nominal = size.op_percent_of_usable();
    (effective < EFFECTIVE_MIN * nominal).then(|| {
        format!(
            "GC works with {effective:.1} % of overprovisioning, not with {nominal:.1} %: lines that are kept free or are \
             being written, and metadata, take the rest of a device of {} lines; write amplification is that of {effective:.1} % \
             (media.chunks: more and smaller ones leave more)",
            grouped(size.erase_units.into())
        )
    })
}

/// On what should not happen.
fn defects(measured: &Measurement) -> impl Iterator<Item = String> {
    let errors = &measured.counts.ftl.media_errors;
    let counted = [
        (errors.mismatches, "reads found another sector's data: a defect of the FTL"),
        (errors.uncorrectable, "sectors could not be read from the media"),
    ];
    let counted = counted.into_iter().filter(|(count, _)| *count > 0);
    counted.map(|(count, what)| format!("{} {what}", grouped(count)))
}

/// On how a trace was treated, with so many requests in the device at most.
fn trace(counts: &TraceCounts, depth: u32) -> Vec<String> {
    let request = ["request", "requests"];
    let late = format!("delayed by a full queue (QD {depth}); latency includes that delay");
    let shared = if counts.merged || counts.devices < 2 { 0 } else { counts.devices };
    let said = [
        (counts.read.malformed_lines, ["malformed line", "malformed lines"], "skipped"),
        (counts.read.disordered, request, "out of order, issued without going back in time"),
        (counts.fit.folded, ["out-of-range request", "out-of-range requests"], "wrapped"),
        (counts.late, request, &late),
        (
            shared,
            ["device", "devices"],
            "share one address space (--device selects one, --merge places them one after another)",
        ),
    ];
    let said = said.into_iter().filter(|(number, ..)| *number > 0);
    said.map(|(number, what, how)| format!("{} {how}", counted(number, what))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cores are idle when neither the FTL nor calls of a file system use them; the remark is made only if
    /// the stack sets their number.
    #[test]
    fn idle_cores_are_reported() {
        let reported = |name: &str, set: &[&str]| {
            let stack = Stack::load(name, set).unwrap();
            host(&stack, stack.fs.is_some()).any(|remark| remark.contains("cores"))
        };
        assert!(reported("pblk", &["host.cores=2"]));
        assert!(!reported("ext4-pblk", &["host.cores=2"]), "calls share them");
        assert!(!reported("pblk", &["host.cores=2", "ftl.cpu=qemu"]), "the FTL works on them");
        assert!(!reported("pblk", &[]));
    }

    /// A number of buffers or areas that nothing uses is remarked upon if the stack sets it.
    #[test]
    fn numbers_without_effect_are_reported() {
        let reported = |name: &str, set: &[&str], key: &str| {
            let stack = Stack::load(name, set).unwrap();
            host(&stack, stack.fs.is_some()).any(|remark| remark.starts_with(key))
        };
        let buffers = |set: &[&str]| reported("pblk", set, "ftl.write_buffers has no effect");
        assert!(buffers(&["ftl.write_buffers=4"]));
        assert!(!buffers(&[]));
        assert!(!buffers(&["ftl.write_buffers=4", "ftl.routing=per-core"]));
        let fsync_rings = ["ftl.write_buffers=4", "ftl.routing=per-file"];
        assert!(!buffers(&fsync_rings), "the default of fsync_rings");
        assert!(buffers(&[&fsync_rings[..], &["ftl.fsync_rings=2"]].concat()));
        let areas = |set: &[&str]| reported("ext4-pblk", set, "fs.ijournal_areas has no effect");
        assert!(areas(&["fs.ijournal_areas=4"]));
        assert!(!areas(&["fs.ijournal_areas=4", "fs.commit=ijournal"]));
        assert!(!areas(&[]));
    }
}
