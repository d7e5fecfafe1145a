//! The keys that mean something in virtual time, and how each changes a job. Names and meanings are
//! those of fio's manual; docs of [`JobSpec`] say what each does here.

use super::error::Why;
use super::log_keys;
use super::rules::{Counted, ExitWhat, FileOrder, FileService, ZoneMode};
use super::spec::{Distribution, JobSpec, Mix, Pattern, SyncWrites, Tolerated};
use super::value::{Set, Setter, Value};
use super::{splits, steady, units};
use crate::direction::Direction;
use nandscape_rt::Nanos;
use std::convert::identity;

/// More requests in flight than any device has use for.
const DEPTH_MAX: u64 = 65_536;
/// fio's bound for open zones.
const OPEN_ZONES_MAX: u64 = 4_096;
/// Files of one job at most.
const FILES_MAX: u64 = 1 << 20;
const SECOND: Nanos = Nanos::from_secs(1);
const MILLISECOND: Nanos = Nanos::from_ms(1);
const MICROSECOND: Nanos = Nanos::from_us(1);

/// Stores a parsed value, without remark.
macro_rules! store {
    ($($field:ident).+, $parse:expr) => {
        |job, value| {
            let parse: fn(&Value<'_>) -> Result<_, String> = $parse;
            job.$($field).+ = parse(value)?;
            Ok(None)
        }
    };
}

/// Stores parsed values by direction, without remark. One that is not given stays as it was: a job
/// that says `bs=,16k` reads in the blocks of `[global]`, as in fio.
macro_rules! by_direction {
    ($field:ident, $parse:expr, $keep:expr) => {
        |job, value| {
            let given = $parse(value)?;
            for (kept, given) in job.$field.iter_mut().zip(given) {
                given.into_iter().for_each(|given| *kept = $keep(given));
            }
            Ok(None)
        }
    };
}

/// Every supported key with its aliases.
pub(super) const KEYS: &[(&[&str], Setter)] = &[
    (&["name"], store!(name, |v| Ok(v.text("a name")?.into()))),
    (&["description"], store!(description, |v| Ok(v.text.unwrap_or_default().into()))),
    (&["rw", "readwrite"], pattern),
    (&["rw_sequencer"], store!(sequence.identical, sequencer)),
    (&["bs", "blocksize"], by_direction!(block_bytes, block_sizes, identity)),
    (&["bsrange", "blocksize_range"], by_direction!(block_range, splits::ranges, Some)),
    (&["bssplit"], by_direction!(block_split, splits::sizes, identity)),
    (&["blockalign", "ba"], by_direction!(block_align, block_align, Some)),
    (&["size"], store!(size, |v| v.amount().map(Some))),
    (&["io_size", "io_limit"], store!(io_size, |v| v.amount().map(Some))),
    (&["offset", "fileoffset"], store!(offset, |v| v.amount())),
    (&["offset_align"], store!(offset_align, |v| whole(v).map(|n| (n > 0).then_some(n)))),
    (&["offset_increment"], store!(offset_increment, |v| v.amount())),
    (&["number_ios"], store!(number_ios, |v| v.count(0, u64::MAX).map(|n| (n > 0).then_some(n)))),
    (&["loops"], store!(loops, |v| v.count(1, u64::MAX))),
    (&["iodepth"], store!(iodepth, |v| v.count(1, DEPTH_MAX).map(|n| n as u32))),
    (&["iodepth_low"], store!(reaping.low, |v| v.count(0, DEPTH_MAX).map(|n| n as u32))),
    (&["iodepth_batch", "iodepth_batch_submit"], |_, value| {
        value.count(0, DEPTH_MAX).map(|_| Some(SUBMITTED_AT_ONCE))
    }),
    (
        &["iodepth_batch_complete_min", "iodepth_batch_complete"],
        store!(reaping.min, |v| v.count(0, DEPTH_MAX).map(|n| n as u32)),
    ),
    (
        &["iodepth_batch_complete_max"],
        store!(reaping.max, |v| v.count(0, DEPTH_MAX).map(|n| n as u32)),
    ),
    (&["ioengine"], io_engine),
    (&["numjobs"], store!(numjobs, |v| v.count(1, DEPTH_MAX).map(|n| n as u32))),
    (&["runtime", "timeout"], store!(runtime, |v| Ok(Some(v.time(SECOND)?).filter(|t| t.0 > 0)))),
    (&["time_based"], store!(time_based, |v| v.flag())),
    (&["ramp_time"], store!(ramp_time, |v| v.time(SECOND))),
    (&["startdelay"], store!(start_delay, start_delay)),
    (&["rwmixread"], store!(rwmixread, |v| v.count(0, 100))),
    (&["rwmixwrite"], store!(rwmixread, |v| v.count(0, 100).map(|writes| 100 - writes))),
    (&["random_distribution"], distribution),
    (&["percentage_random"], by_direction!(percentage_random, percentages, identity)),
    (&["zonemode"], store!(zoning.mode, zone_mode)),
    (&["zonesize"], store!(zoning.size, whole)),
    (&["zonerange"], store!(zoning.range, whole)),
    (&["zoneskip"], store!(zoning.skip, whole)),
    (&["zonecapacity"], store!(zoning.capacity, whole)),
    (&["max_open_zones"], store!(zoning.max_open, open_zones)),
    (&["job_max_open_zones"], store!(zoning.job_max_open, open_zones)),
    (&["ignore_zone_limits"], store!(zoning.ignores_limits, |v| v.flag())),
    (&["read_beyond_wp"], store!(zoning.reads_beyond, |v| v.flag())),
    (&["zone_reset_threshold"], store!(zoning.reset_threshold, ratio)),
    (&["zone_reset_frequency"], store!(zoning.reset_frequency, ratio)),
    (&["norandommap"], store!(random_map, |v| v.flag().map(|on| !on))),
    (&["random_generator"], store!(shift_register, generator)),
    (&["randrepeat"], store!(repeats, |v| v.flag())),
    (&["allrandrepeat"], all_repeat),
    (&["randseed"], store!(randseed, |v| v.count(0, u64::MAX).map(Some))),
    (&["fsync"], store!(fsync, |v| v.count(0, u64::MAX))),
    (&["fdatasync"], store!(fdatasync, |v| v.count(0, u64::MAX))),
    (&["end_fsync"], store!(end_fsync, |v| v.flag())),
    (&["sync"], store!(sync, sync)),
    (&["direct"], store!(files.direct, |v| v.flag())),
    (&["buffered"], store!(files.direct, |v| v.flag().map(|buffered| !buffered))),
    (&["filename"], file_name),
    (&["directory"], |job, value| {
        job.files.directory = value.text("the name of a folder")?.into();
        Ok(Some(Why::NoFiles))
    }),
    (&["nrfiles", "nr_files"], |job, value| {
        job.files.count = value.count(1, FILES_MAX)? as u32;
        Ok(Some(Why::NoFiles))
    }),
    (&["filesize"], |job, value| {
        job.files.bytes = file_bytes(value)?;
        Ok(Some(Why::NoFiles))
    }),
    (&["file_service_type"], |job, value| {
        job.files.service = file_service(value)?;
        Ok(Some(Why::NoFiles))
    }),
    (&["rate"], by_direction!(rate, byte_rates, unless_zero)),
    (&["rate_iops"], by_direction!(rate_iops, io_rates, unless_zero)),
    (&["rate_min", "ratemin"], by_direction!(rate_min, byte_rates, unless_zero)),
    (&["rate_iops_min"], by_direction!(rate_iops_min, io_rates, unless_zero)),
    (&["rate_cycle", "ratecycle"], store!(rate_cycle, |v| v.time(MILLISECOND))),
    (&["rate_process"], store!(poisson, rate_process)),
    (&["rate_ignore_thinktime"], store!(rate_ignores_thinking, |v| v.flag())),
    (&["thinktime"], store!(thinking.time, |v| v.time(MICROSECOND))),
    (&["thinktime_spin"], |_, value| value.time(MICROSECOND).map(|_| Some(SPINNING))),
    (&["thinktime_blocks"], store!(thinking.blocks, |v| v.count(1, u64::MAX).map(Some))),
    (&["thinktime_blocks_type"], store!(thinking.counted, counted)),
    (&["thinktime_iotime"], store!(thinking.io_time, |v| v.time(SECOND))),
    (&["latency_target"], store!(goal.target, |v| v.time(MICROSECOND))),
    (&["latency_window"], store!(goal.window, |v| v.time(MICROSECOND))),
    (&["latency_percentile"], store!(goal.percentile, percentile)),
    (&["latency_run"], store!(goal.goes_on, |v| v.flag())),
    (&["max_latency"], by_direction!(max_latency, latencies, unless_zero)),
    (&["flow"], store!(flow.weight, |v| v.count(0, u32::MAX.into()))),
    (&["flow_id"], store!(flow.id, |v| v.count(0, u64::MAX))),
    (&["flow_sleep"], store!(flow.sleep, |v| v.time(MICROSECOND))),
    (&["write_hint"], store!(write_hint, write_hint)),
    (&["read_iolog"], store!(replay.files, files)),
    (&["write_iolog"], store!(write_iolog, |v| Ok(Some(v.text("the name of a file")?.into())))),
    (&["replay_no_stall"], store!(replay.no_stall, |v| v.flag())),
    (&["replay_time_scale"], store!(replay.time_scale, |v| v.count(1, u32::MAX.into()))),
    (&["replay_scale"], store!(replay.scale, |v| v.count(0, u64::MAX))),
    (&["replay_align"], store!(replay.align, power_of_two)),
    (&["replay_skip"], replay_skip),
    (&["verify"], verify),
    (&["do_verify"], store!(do_verify, |v| v.flag())),
    (&["continue_on_error"], store!(tolerated, tolerated)),
    (&["serialize_overlap"], store!(serializes_overlaps, |v| v.flag())),
    (&["ignore_error"], ignore_error),
    (&["exitall"], store!(exit.when_done, |v| v.flag())),
    (&["exitall_on_error"], store!(exit.when_failed, |v| v.flag())),
    (&["exit_what"], store!(exit.what, exit_what)),
    (&["wait_for"], store!(wait_for, |v| Ok(Some(v.text("the name of a job above")?.into())))),
    (&["bs_is_seq_rand"], store!(sizes_by_order, |v| v.flag())),
    (&["steadystate", "ss"], store!(steady.criterion, |v| steady::criterion(v).map(Some))),
    (&["steadystate_duration", "ss_dur"], store!(steady.duration, |v| v.time(SECOND))),
    (&["steadystate_ramp_time", "ss_ramp"], store!(steady.ramp, |v| v.time(SECOND))),
    (&["steadystate_check_interval", "ss_interval"], store!(steady.interval, |v| v.time(SECOND))),
    (&["group_reporting"], store!(group_reporting, |v| v.flag())),
    (&["stonewall", "wait_for_previous"], store!(stonewall, |v| v.flag())),
    (&["new_group"], store!(new_group, |v| v.flag())),
    (&["kb_base"], |_, value| kb_base(value).map(|_| None)),
];

/// Every key that has an effect, those of logs included.
pub(super) fn all() -> impl Iterator<Item = &'static (&'static [&'static str], Setter)> {
    KEYS.iter().chain(log_keys::KEYS)
}

/// Every key that has an effect, aliases included.
pub fn supported_keys() -> impl Iterator<Item = &'static str> {
    all().flat_map(|(names, _)| names.iter().copied())
}

const SUBMITTED_AT_ONCE: Why = Why::Always("ignored: submission takes no virtual time");
const SPINNING: Why =
    Why::Always("ignored: spinning is part of thinktime, and takes no CPU in virtual time");

/// `kb_base`, which the reader of the file applies before all other keys of a section.
pub(super) fn kb_base(value: &Value<'_>) -> Result<u64, String> {
    match value.text {
        Some("1024") => Ok(1024),
        Some("1000") => Ok(1000),
        _ => Err("1024 or 1000".into()),
    }
}

fn pattern(job: &mut JobSpec, value: &Value<'_>) -> Set {
    let expected = "read, write, trim, randread, randwrite, randtrim, rw, randrw, trimwrite or \
                    randtrimwrite, with :N for N I/Os per random offset, or with :BYTES that each sequential I/O \
                    skips (multiples of 512, negative to go backwards)";
    let (name, modifier) = value.named(expected)?;
    let (mix, random) = match name {
        "read" => (Mix::Only(Direction::Read), false),
        "write" => (Mix::Only(Direction::Write), false),
        "trim" => (Mix::Only(Direction::Trim), false),
        "randread" => (Mix::Only(Direction::Read), true),
        "randwrite" => (Mix::Only(Direction::Write), true),
        "randtrim" => (Mix::Only(Direction::Trim), true),
        "rw" | "readwrite" => (Mix::ReadWrite, false),
        "randrw" => (Mix::ReadWrite, true),
        "trimwrite" => (Mix::TrimWrite, false),
        "randtrimwrite" => (Mix::TrimWrite, true),
        _ => return Err(expected.into()),
    };
    job.pattern = Pattern { mix, random };
    let modifier = modifier.map(str::trim).filter(|text| !text.is_empty());
    let (skip, ios) = match modifier {
        None => (Some(0), Some(1)),
        Some(ios) if random => (Some(0), ios.parse().ok().filter(|ios| *ios > 0)),
        Some(bytes) => (signed_units(bytes, value.kb_base), Some(1)),
    };
    job.sequence.skip_bytes = skip.ok_or(expected)?;
    job.sequence.ios = ios.ok_or(expected)?;
    Ok(None)
}

/// Bytes in whole units, which may be negative.
fn signed_units(text: &str, kb_base: u64) -> Option<i64> {
    let (sign, text) = text.strip_prefix('-').map_or((1, text), |text| (-1, text));
    let bytes =
        units::bytes(text, kb_base).filter(|bytes| bytes.is_multiple_of(units::UNIT_BYTES))?;
    i64::try_from(bytes).ok().map(|bytes| sign * bytes)
}

fn sequencer(value: &Value<'_>) -> Result<bool, String> {
    match value.text {
        Some("sequential") => Ok(false),
        Some("identical") => Ok(true),
        _ => Err("sequential or identical".into()),
    }
}

fn block_sizes(value: &Value<'_>) -> Result<[Option<u64>; 3], String> {
    let expected = "multiples of 512 bytes, such as 4k or 4k,16k; note that fio's `kib` is 1000 unless \
                    kb_base=1000";
    let bytes = |part: &str| units::bytes(part, value.kb_base).filter(|n| splits::is_block(*n));
    value.each_direction(expected, bytes)
}

fn block_align(value: &Value<'_>) -> Result<[Option<u64>; 3], String> {
    let expected = "multiples of 512 bytes, such as 16k or 4k,16k";
    let bytes = |part: &str| units::bytes(part, value.kb_base).filter(|n| splits::is_block(*n));
    value.each_direction(expected, bytes)
}

/// Bytes in whole units; 0 is none.
fn whole(value: &Value<'_>) -> Result<u64, String> {
    let expected = "a multiple of 512 bytes, such as 1m";
    let bytes = units::bytes(value.text(expected)?, value.kb_base);
    bytes.filter(|bytes| bytes.is_multiple_of(units::UNIT_BYTES)).ok_or_else(|| expected.into())
}

/// The least and the largest size of a file; 0 is none.
fn file_bytes(value: &Value<'_>) -> Result<Option<(u64, u64)>, String> {
    let expected = "a multiple of 512 bytes, such as 1m, or from one to another, such as 64k-1m";
    let text = value.text(expected)?;
    let (least, most) = text.split_once('-').unwrap_or((text, text));
    let [least, most] = [least, most].map(|text| whole(&Value { text: Some(text), ..*value }));
    match (least, most) {
        (Ok(0), Ok(0)) => Ok(None),
        (Ok(least), Ok(most)) if 0 < least && least <= most => Ok(Some((least, most))),
        _ => Err(expected.into()),
    }
}

/// A time, or from one to another.
fn start_delay(value: &Value<'_>) -> Result<(Nanos, Nanos), String> {
    let expected = "a time such as 10s or 200us (a plain number: seconds), or from one to another, \
                    such as 0-10ms";
    let text = value.text(expected)?;
    let (least, most) = text.split_once(['-', ':']).unwrap_or((text, text));
    let bounds = units::time(least, SECOND).zip(units::time(most, SECOND));
    bounds.filter(|(least, most)| least <= most).ok_or_else(|| expected.into())
}

fn file_service(value: &Value<'_>) -> Result<FileService, String> {
    let expected = "roundrobin, random or sequential, with :N for N I/Os in a row";
    let (name, ios) = value.named(expected)?;
    let order = match name {
        "roundrobin" => FileOrder::RoundRobin,
        "random" => FileOrder::Random,
        "sequential" => FileOrder::Sequential,
        "zipf" | "pareto" | "normal" | "gauss" => {
            return Err(format!("{expected} (skewed orders are not supported yet)"));
        }
        _ => return Err(expected.into()),
    };
    let ios = ios.map_or(Some(1), |text| text.parse().ok()).filter(|ios| *ios > 0);
    Ok(FileService { order, ios: ios.ok_or(expected)? })
}

fn file_name(job: &mut JobSpec, value: &Value<'_>) -> Set {
    job.files.name = Some(value.text("the name of a file or device")?.into());
    Ok(Some(Why::NoFiles))
}

/// Engines that have one request in flight, whatever `iodepth` says.
const SYNCHRONOUS: [&str; 6] = ["sync", "psync", "vsync", "pvsync", "pvsync2", "mmap"];
/// Engines that have as many as `iodepth` says.
const ASYNCHRONOUS: [&str; 13] = [
    "libaio",
    "posixaio",
    "solarisaio",
    "windowsaio",
    "io_uring",
    "io_uring_cmd",
    "libblkio",
    "xnvme",
    "sg",
    "splice",
    "rbd",
    "nbd",
    "null",
];

/// Engines that read and write are all one here; others do other things.
fn io_engine(job: &mut JobSpec, value: &Value<'_>) -> Set {
    let name = value.text("the name of an engine")?;
    // The null engine answers at once where one request may be in flight.
    job.synchronous = (name != "null").then_some(SYNCHRONOUS.contains(&name));
    if job.synchronous == Some(true) {
        return Ok(Some(Why::Always("ignored (simulated), except that one request is in flight")));
    }
    if !ASYNCHRONOUS.contains(&name) {
        let all = [&SYNCHRONOUS[..], &ASYNCHRONOUS].concat().join(", ");
        return Err(format!("an engine that reads and writes: {all}"));
    }
    Ok(Some(Why::Always("ignored (simulated)")))
}

fn distribution(job: &mut JobSpec, value: &Value<'_>) -> Set {
    let expected = "random, zipf:THETA (above 0, not 1), pareto:POWER (between 0 and 1), \
                    normal:DEVIATION (percent, up to 100), zoned:ACCESSES/SIZE:... or \
                    zoned_abs:ACCESSES/SIZE:...";
    let (name, parameter) = value.named(expected)?;
    let number = |default: f64, fits: fn(f64) -> bool| {
        let number = parameter.map_or(Some(default), |text| text.parse().ok());
        number.filter(|n| n.is_finite() && fits(*n)).ok_or_else(|| expected.to_owned())
    };
    job.distribution = match name {
        "random" if parameter.is_none() => Distribution::Uniform,
        "zipf" => Distribution::Zipf(number(1.1, |n| n > 0.0 && n != 1.0 && n <= 10.0)?),
        "pareto" => Distribution::Pareto(number(0.2, |n| n > 0.0 && n < 1.0)?),
        "normal" if parameter.is_some() => {
            Distribution::Normal(number(0.0, |n| n > 0.0 && n <= 100.0)?)
        }
        "zoned" | "zoned_abs" => {
            let zones = Value { text: parameter, ..*value };
            job.zones = splits::zones(&zones, name == "zoned_abs")?;
            Distribution::Zoned
        }
        _ => return Err(expected.into()),
    };
    Ok(None)
}

fn percentages(value: &Value<'_>) -> Result<[Option<u64>; 3], String> {
    let percent = |part: &str| part.parse().ok().filter(|percent| *percent <= 100);
    value.each_direction("percentages, such as 50 or 100,20", percent)
}

fn zone_mode(value: &Value<'_>) -> Result<ZoneMode, String> {
    match value.text {
        Some("none") => Ok(ZoneMode::None),
        Some("strided") => Ok(ZoneMode::Strided),
        Some("zbd") => Ok(ZoneMode::Zbd),
        _ => Err("none, strided or zbd".into()),
    }
}

fn open_zones(value: &Value<'_>) -> Result<u32, String> {
    value.count(0, OPEN_ZONES_MAX).map(|zones| zones as u32)
}

fn ratio(value: &Value<'_>) -> Result<f64, String> {
    let expected = "a ratio from 0 to 1, such as 0.5";
    let number: Option<f64> = value.text(expected)?.parse().ok();
    number.filter(|n| (0.0..=1.0).contains(n)).ok_or_else(|| expected.into())
}

fn rate_process(value: &Value<'_>) -> Result<bool, String> {
    match value.text {
        Some("linear") => Ok(false),
        Some("poisson") => Ok(true),
        _ => Err("linear or poisson".into()),
    }
}

fn counted(value: &Value<'_>) -> Result<Counted, String> {
    match value.text {
        Some("complete") => Ok(Counted::Completed),
        Some("issue") => Ok(Counted::Issued),
        _ => Err("complete or issue".into()),
    }
}

fn percentile(value: &Value<'_>) -> Result<f64, String> {
    let expected = "a percentage, such as 99.9";
    let number: Option<f64> = value.text(expected)?.parse().ok();
    number.filter(|n| (0.0..=100.0).contains(n)).ok_or_else(|| expected.into())
}

fn latencies(value: &Value<'_>) -> Result<[Option<Nanos>; 3], String> {
    let expected = "times, such as 10ms or 1ms,10ms (a plain number: microseconds)";
    value.each_direction(expected, |part| units::time(part, MICROSECOND))
}

fn write_hint(value: &Value<'_>) -> Result<u16, String> {
    const HINTS: [&str; 5] = ["none", "short", "medium", "long", "extreme"];
    match value.text {
        Some("not-set") => Ok(0),
        given => {
            let hint = HINTS.iter().position(|hint| Some(*hint) == given);
            hint.map(|hint| hint as u16).ok_or_else(|| HINTS.join(", ") + " or not-set")
        }
    }
}

/// Names of files, separated by colons that no backslash stands before.
fn files(value: &Value<'_>) -> Result<Vec<String>, String> {
    let expected = "names of files, separated by colons";
    let mut names = vec![String::new()];
    let mut escaped = false;
    for c in value.text(expected)?.chars() {
        match c {
            '\\' if !escaped => escaped = true,
            ':' if !escaped => names.push(String::new()),
            c => {
                names.last_mut().into_iter().for_each(|name| name.push(c));
                escaped = false;
            }
        }
    }
    if names.iter().any(String::is_empty) { Err(expected.into()) } else { Ok(names) }
}

fn power_of_two(value: &Value<'_>) -> Result<u64, String> {
    let number = value.count(0, u64::MAX)?;
    let fits = number == 0 || number.is_power_of_two();
    if fits { Ok(number) } else { Err("a power of two, such as 4k".into()) }
}

fn replay_skip(job: &mut JobSpec, value: &Value<'_>) -> Set {
    let expected = "some of read, write, trim and sync, separated by commas";
    for name in value.text(expected)?.split(',').map(str::trim) {
        match Direction::ALL.into_iter().find(|direction| direction.name() == name) {
            Some(direction) => job.replay.skip[direction as usize] = true,
            None if name == "sync" => job.replay.skip_sync = true,
            None => return Err(expected.into()),
        }
    }
    Ok(None)
}

fn generator(value: &Value<'_>) -> Result<bool, String> {
    match value.text {
        Some("tausworthe" | "tausworthe64") => Ok(false),
        Some("lfsr") => Ok(true),
        _ => Err("tausworthe, tausworthe64 or lfsr".into()),
    }
}

fn all_repeat(_: &mut JobSpec, value: &Value<'_>) -> Set {
    let remark = "ignored: all draws derive from the run's seed, and whether passes repeat is up to randrepeat";
    value.flag()?;
    Ok(Some(Why::Always(remark)))
}

fn sync(value: &Value<'_>) -> Result<SyncWrites, String> {
    match value.text {
        None | Some("1" | "sync") => Ok(SyncWrites::Whole),
        Some("dsync") => Ok(SyncWrites::Data),
        Some("0" | "none") => Ok(SyncWrites::No),
        Some(_) => Err("none, sync, dsync, 0 or 1".into()),
    }
}

fn byte_rates(value: &Value<'_>) -> Result<[Option<u64>; 3], String> {
    value.per_direction("bytes a second, such as 10m or 10m,5m")
}

fn io_rates(value: &Value<'_>) -> Result<[Option<u64>; 3], String> {
    value.per_direction("I/Os a second, such as 1000 or 1000,500")
}

/// A limit; 0 is none.
fn unless_zero<T: Default + PartialEq>(limit: T) -> Option<T> {
    Some(limit).filter(|limit| *limit != T::default())
}

/// fio's checks differ in their arithmetic; here any of them compares the whole content.
fn verify(job: &mut JobSpec, value: &Value<'_>) -> Set {
    const METHODS: &[&str] = &[
        "md5",
        "crc64",
        "crc32c",
        "crc32c-intel",
        "crc32",
        "crc16",
        "crc7",
        "xxhash",
        "sha512",
        "sha256",
        "sha1",
        "sha3-224",
        "sha3-256",
        "sha3-384",
        "sha3-512",
        "meta",
        "pattern",
        "pattern_hdr",
    ];
    let text = value.text("a verification method")?;
    job.unchecked = text == "null";
    job.verify = job.unchecked || METHODS.contains(&text);
    match text {
        "0" | "none" => Ok(None),
        "null" => Ok(Some(Why::Always("written data is read again, but not compared"))),
        _ if job.verify => Ok(None),
        _ => Err(format!("0, null, or a method of fio: {}", METHODS.join(", "))),
    }
}

fn exit_what(value: &Value<'_>) -> Result<ExitWhat, String> {
    match value.text {
        Some("group") => Ok(ExitWhat::Group),
        Some("stonewall") => Ok(ExitWhat::Stage),
        Some("all") => Ok(ExitWhat::All),
        _ => Err("group, stonewall or all".into()),
    }
}

/// Errors that do not end a job: lists for reads, for writes and for verification. Failed I/O here is what
/// Linux returns as EIO (or ENOSPC, of files), and content that differs as EILSEQ.
fn ignore_error(job: &mut JobSpec, value: &Value<'_>) -> Set {
    let expected = "errors, separated by colons, for reads, writes and verification, separated by commas, such as \
                    EIO:ENOSPC,EIO,EILSEQ";
    let lists: Vec<&str> = value.text(expected)?.split(',').map(str::trim).collect();
    let is_error = |name: &str| {
        let symbol = name.strip_prefix('E').is_some_and(|rest| !rest.is_empty());
        symbol || name.parse::<u16>().is_ok_and(|number| number > 0)
    };
    let names = || lists.iter().flat_map(|list| list.split(':')).filter(|name| !name.is_empty());
    if lists.len() > 3 || !names().all(is_error) {
        return Err(expected.into());
    }
    let lists = [0, 1, 2].map(|at| lists.get(at).copied().unwrap_or_default());
    let has = |list: &str, errors: [&str; 2]| list.split(':').any(|name| errors.contains(&name));
    job.tolerated.io[0] |= has(lists[0], ["EIO", "5"]);
    let writes = has(lists[1], ["EIO", "5"]) || has(lists[1], ["ENOSPC", "28"]);
    job.tolerated.io[1] |= writes;
    job.tolerated.io[2] |= writes;
    job.tolerated.verify |= has(lists[2], ["EILSEQ", "84"]);
    Ok(None)
}

fn tolerated(value: &Value<'_>) -> Result<Tolerated, String> {
    let writes = [false, true, true];
    let (io, verify) = match value.text {
        Some("none" | "0") => ([false; 3], false),
        Some("read") => ([true, false, false], false),
        Some("write") => (writes, false),
        Some("io") => ([true; 3], false),
        Some("verify") => ([false; 3], true),
        None | Some("all" | "1") => ([true; 3], true),
        Some(_) => return Err("none, read, write, io, verify, all, 0 or 1".into()),
    };
    Ok(Tolerated { io, verify })
}
