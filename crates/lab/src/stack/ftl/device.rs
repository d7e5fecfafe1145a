//! The keys of `[ftl]` where its kind is a conventional SSD: `pagemap`.

use super::read_victim;
use crate::stack::place::StackError;
use crate::stack::reader::{Section, Size, Words};
use crate::stack::resolved::{join, titled};
use nandscape_ftl::device::{BufferConfig, Config, Flush, Schedule};

/// Keys of `[ftl]`, in the order in which they are read.
pub(super) const KEYS: [&str; 7] =
    ["op_percent", "instances", "map_unit", "gc_lines", "buffer", "gc", "map_access_ns"];

/// The longest access of a map.
const MAP_ACCESS_NS_MAX: u64 = 1_000_000;

const SCHEDULE: Words<Schedule> = Words {
    here: &[
        ("pipelined", Schedule::Pipelined),
        ("nvmevirt", Schedule::Nvmevirt),
        ("femu", Schedule::Femu),
    ],
};

const FLUSH: Words<Flush> =
    Words { here: &[("program", Flush::Program), ("nvmevirt", Flush::Nvmevirt)] };

/// Reads the rest of the FTL's section. What does not fit the media is refused with them.
pub(super) fn read(mut ftl: Section<'_>) -> Result<(Config, String), StackError> {
    let (pages, text) = read_keys(&mut ftl, Config::default())?;
    let config = Config { map_access_ns: read_map_access(&mut ftl)?, ..pages };
    Ok((config, join([titled("ftl", ftl)?, text])))
}

/// What an access of the firmware to its maps takes.
pub(super) fn read_map_access(ftl: &mut Section<'_>) -> Result<u64, StackError> {
    let ns = ftl.or("map_access_ns", Config::default().map_access_ns)?;
    ftl.check("map_access_ns", ns <= MAP_ACCESS_NS_MAX, "must be at most 1000000")?;
    Ok(ns)
}

/// Reads the keys of the FTL's section, whose defaults are those of `plain`; and the resolved sections below it.
pub(super) fn read_keys(
    ftl: &mut Section<'_>,
    plain: Config,
) -> Result<(Config, String), StackError> {
    let op_percent: f64 = ftl.or("op_percent", f64::from(plain.op_hundredths) / 100.0)?;
    let instances = ftl.or("instances", plain.instances)?;
    let Size(map_unit) = ftl.or("map_unit", Size(plain.map_unit_bytes.into()))?;
    let gc_lines = ftl.or("gc_lines", plain.gc_lines)?;
    let (buffer, buffer_text) = read_buffer(ftl.section("buffer", "ftl.buffer")?, plain.buffer)?;
    let mut gc = ftl.section("gc", "ftl.gc")?;
    let victim = read_victim(&mut gc, "greedy")?;
    let schedule = gc.choice("schedule", "pipelined", &SCHEDULE)?;
    let map_unit_bytes = u32::try_from(map_unit).unwrap_or(u32::MAX);
    // What is out of range is refused with the media.
    let op_hundredths = (op_percent * 100.0).round() as u32;
    let config = Config {
        op_hundredths,
        victim,
        instances,
        map_unit_bytes,
        buffer,
        gc_lines,
        schedule,
        map_access_ns: plain.map_access_ns,
    };
    Ok((config, join([buffer_text, titled("ftl.gc", gc)?])))
}

pub(super) fn read_buffer(
    mut buffer: Section<'_>,
    plain: BufferConfig,
) -> Result<(BufferConfig, String), StackError> {
    let Size(size_bytes) = buffer.or("size", Size(plain.size_bytes))?;
    let power_safe = buffer.or("power_safe", plain.power_safe)?;
    let early_completion = buffer.or("early_completion", plain.early_completion)?;
    let flush = buffer.optional_choice("flush", &FLUSH)?.unwrap_or(plain.flush);
    let config = BufferConfig { size_bytes, power_safe, early_completion, flush };
    Ok((config, titled("ftl.buffer", buffer)?))
}
