//! The keys that mean something in virtual time, and how each changes a job. Names and meanings are
//! those of fio's manual; docs of [`JobSpec`] say what each does here.

use super::log_keys;
use super::spec::{Direction, Distribution, JobSpec, Mix, Pattern, Tolerated};
use super::value::{Set, Value};
use nandscape_block::SECTOR_BYTES;
use nandscape_rt::Nanos;

/// A key's effect on a job.
pub(super) type Setter = fn(&mut JobSpec, &Value<'_>) -> Set;

/// More requests in flight than any device has use for.
const DEPTH_MAX: u64 = 65_536;
const SECOND: Nanos = Nanos::from_secs(1);

/// Stores a parsed value, without remark.
macro_rules! store {
    ($field:ident, $parse:expr) => {
        |job, value| {
            let parse: fn(&Value<'_>) -> Result<_, String> = $parse;
            job.$field = parse(value)?;
            Ok(None)
        }
    };
}

/// Every supported key with its aliases.
pub(super) const KEYS: &[(&[&str], Setter)] = &[
    (&["name"], store!(name, |v| Ok(v.text("a name")?.into()))),
    (&["description"], store!(description, |v| Ok(v.text.unwrap_or_default().into()))),
    (&["rw", "readwrite"], store!(pattern, pattern)),
    (&["bs", "blocksize"], block_size),
    (&["size"], store!(size, |v| v.amount().map(Some))),
    (&["io_size", "io_limit"], store!(io_size, |v| v.amount().map(Some))),
    (&["offset"], store!(offset, |v| v.amount())),
    (&["number_ios"], store!(number_ios, |v| v.count(0, u64::MAX).map(|n| (n > 0).then_some(n)))),
    (&["loops"], store!(loops, |v| v.count(1, u64::MAX))),
    (&["iodepth"], store!(iodepth, |v| v.count(1, DEPTH_MAX).map(|n| n as u32))),
    (&["ioengine"], io_engine),
    (&["numjobs"], store!(numjobs, |v| v.count(1, DEPTH_MAX).map(|n| n as u32))),
    (&["runtime", "timeout"], store!(runtime, |v| Ok(Some(v.time(SECOND)?).filter(|t| t.0 > 0)))),
    (&["time_based"], store!(time_based, |v| v.flag())),
    (&["ramp_time"], store!(ramp_time, |v| v.time(SECOND))),
    (&["startdelay", "start_delay"], store!(start_delay, |v| v.time(SECOND))),
    (&["rwmixread"], store!(rwmixread, |v| v.count(0, 100))),
    (&["random_distribution"], store!(distribution, distribution)),
    (&["norandommap"], store!(random_map, |v| v.flag().map(|on| !on))),
    (&["randrepeat", "allrandrepeat"], random_repeat),
    (&["randseed"], store!(randseed, |v| v.count(0, u64::MAX).map(Some))),
    (&["fsync"], store!(fsync, |v| v.count(0, u64::MAX))),
    (&["fdatasync"], store!(fdatasync, |v| v.count(0, u64::MAX))),
    (&["end_fsync"], store!(end_fsync, |v| v.flag())),
    (&["sync"], store!(sync, sync)),
    (&["direct"], |_, value| Ok((!value.flag()?).then_some(NO_PAGE_CACHE))),
    (&["buffered"], |_, value| Ok(value.flag()?.then_some(NO_PAGE_CACHE))),
    (&["rate"], store!(rate, |v| rates(v, "bytes a second, such as 10m or 10m,5m"))),
    (&["rate_iops"], store!(rate_iops, |v| rates(v, "I/Os a second, such as 1000 or 1000,500"))),
    (&["thinktime"], store!(thinktime, |v| v.time(Nanos::from_us(1)))),
    (&["verify"], verify),
    (&["do_verify"], store!(do_verify, |v| v.flag())),
    (&["continue_on_error"], store!(tolerated, tolerated)),
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

const NO_PAGE_CACHE: &str = "jobs run on the block device itself, without a page cache";

/// `kb_base`, which the reader of the file applies before all other keys of a section.
pub(super) fn kb_base(value: &Value<'_>) -> Result<u64, String> {
    match value.text {
        Some("1024") => Ok(1024),
        Some("1000") => Ok(1000),
        _ => Err("1024 or 1000".into()),
    }
}

fn pattern(value: &Value<'_>) -> Result<Pattern, String> {
    let expected = "read, write, trim, randread, randwrite, randtrim, rw, randrw, trimwrite or \
                    randtrimwrite";
    let (name, modifier) = value.named(expected)?;
    if modifier.is_some() {
        return Err(format!("{expected}, without a `:` modifier (not supported yet)"));
    }
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
    Ok(Pattern { mix, random })
}

fn block_size(job: &mut JobSpec, value: &Value<'_>) -> Set {
    let expected = "multiples of 4096 bytes (the device's sector), such as 4k or 4k,16k; note that \
                    fio's `kib` is 1000 unless kb_base=1000";
    let fits = |bytes: &u64| *bytes > 0 && bytes.is_multiple_of(SECTOR_BYTES) && *bytes <= 1 << 30;
    for (block, given) in job.block_bytes.iter_mut().zip(value.per_direction(expected)?) {
        let given = given.unwrap_or(SECTOR_BYTES);
        *block = Some(given).filter(fits).ok_or(expected)?;
    }
    Ok(None)
}

/// fio's synchronous engines have one request in flight, whatever `iodepth` says.
fn io_engine(job: &mut JobSpec, value: &Value<'_>) -> Set {
    let name = value.text("the name of an engine")?;
    job.synchronous = ["sync", "psync", "vsync", "pvsync", "pvsync2", "mmap"].contains(&name);
    Ok(Some(if job.synchronous {
        "I/O is issued in virtual time; as with fio's synchronous engines, one request at a time"
    } else {
        "I/O is issued in virtual time, by an engine of its own"
    }))
}

fn distribution(value: &Value<'_>) -> Result<Distribution, String> {
    let expected = "random, zipf:THETA (above 0, not 1), pareto:POWER (between 0 and 1) or \
                    normal:DEVIATION (percent, up to 100)";
    let (name, parameter) = value.named(expected)?;
    let number = |default: f64, fits: fn(f64) -> bool| {
        let number = parameter.map_or(Some(default), |text| text.parse().ok());
        number.filter(|n| n.is_finite() && fits(*n)).ok_or_else(|| expected.to_owned())
    };
    match name {
        "random" if parameter.is_none() => Ok(Distribution::Uniform),
        "zipf" => number(1.1, |n| n > 0.0 && n != 1.0 && n <= 10.0).map(Distribution::Zipf),
        "pareto" => number(0.2, |n| n > 0.0 && n < 1.0).map(Distribution::Pareto),
        "normal" if parameter.is_some() => {
            number(0.0, |n| n > 0.0 && n <= 100.0).map(Distribution::Normal)
        }
        _ => Err(expected.into()),
    }
}

fn random_repeat(_: &mut JobSpec, value: &Value<'_>) -> Set {
    let remark = "every run is repeatable: all randomness comes from the run's seed";
    Ok((!value.flag()?).then_some(remark))
}

fn sync(value: &Value<'_>) -> Result<bool, String> {
    match value.text {
        None | Some("1" | "sync" | "dsync") => Ok(true),
        Some("0" | "none") => Ok(false),
        Some(_) => Err("none, sync, dsync, 0 or 1".into()),
    }
}

/// Rates by direction; 0 is no limit.
fn rates(value: &Value<'_>, expected: &str) -> Result<[Option<u64>; 3], String> {
    Ok(value.per_direction(expected)?.map(|rate| rate.filter(|rate| *rate > 0)))
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
    job.verify = METHODS.contains(&text);
    match text {
        "0" | "none" => Ok(None),
        "null" => Ok(Some("this method checks nothing")),
        _ if job.verify => Ok(None),
        _ => Err(format!("0, null, or a method of fio: {}", METHODS.join(", "))),
    }
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
