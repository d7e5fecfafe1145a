//! The keys of `[ftl]` where its kind is a coupled SSD: `coupled`.

use super::device;
use crate::stack::place::StackError;
use crate::stack::reader::{Section, Size};
use crate::stack::resolved::{join, titled};
use crate::stack::units::parse_time;
use nandscape_block::UpcallSignal;
use nandscape_ftl::coupled::Config;

/// Keys of `[ftl]`, in the order in which they are read.
pub(super) const KEYS: [&str; 9] = [
    "op_percent",
    "instances",
    "gc_lines",
    "rho",
    "upcall",
    "map_access_ns",
    "buffer",
    "random",
    "superblock",
];

/// Reads the rest of the FTL's section. What does not fit the media is refused with them.
pub(super) fn read(mut ftl: Section<'_>) -> Result<(Config, String), StackError> {
    let plain = Config::default();
    let op_percent: f64 = ftl.or("op_percent", f64::from(plain.op_hundredths) / 100.0)?;
    let instances = ftl.or("instances", plain.pages.instances)?;
    let gc_lines = ftl.or("gc_lines", plain.gc_lines)?;
    let rho: f64 = ftl.or("rho", f64::from(plain.rho_percent) / 100.0)?;
    ftl.check("rho", (1.0..=100.0).contains(&rho), "must be 1 to 100")?;
    let upcall = ftl.word("upcall", "piggyback", read_upcall, |_, word| word.to_owned())?;
    let map_access_ns = device::read_map_access(&mut ftl)?;
    let (buffer, buffer_text) =
        device::read_buffer(ftl.section("buffer", "ftl.buffer")?, plain.pages.buffer)?;
    let mut random = ftl.section("random", "ftl.random")?;
    let Size(random_bytes) = random.or("size", Size(plain.random_bytes))?;
    let pages_op: f64 = random.or("op_percent", f64::from(plain.pages.op_hundredths) / 100.0)?;
    let mut superblock = ftl.section("superblock", "ftl.superblock")?;
    let open_max = superblock.or("open_max", plain.open_max)?;
    let Size(buffer_bytes) = superblock.or("buffer", Size(plain.buffer_bytes))?;
    let spare_chunks = superblock.or("spare_chunks", plain.spare_chunks)?;
    let hundredths = |percent: f64| (percent * 100.0).round() as u32;
    let pages = nandscape_ftl::device::Config {
        op_hundredths: hundredths(pages_op),
        instances,
        buffer,
        map_access_ns,
        ..plain.pages
    };
    let config = Config {
        pages,
        random_bytes,
        rho_percent: hundredths(rho),
        op_hundredths: hundredths(op_percent),
        gc_lines,
        open_max,
        buffer_bytes,
        spare_chunks,
        upcall,
        ..plain
    };
    let text = join([
        titled("ftl", ftl)?,
        buffer_text,
        titled("ftl.random", random)?,
        titled("ftl.superblock", superblock)?,
    ]);
    Ok((config, text))
}

/// `piggyback`, `interrupt`, or `poll-N`: a time between two fetches.
fn read_upcall(word: &str) -> Result<UpcallSignal, String> {
    match word.strip_prefix("poll-") {
        Some(time) => match parse_time(time).filter(|time| time.0 > 0) {
            Some(time) => Ok(UpcallSignal::Poll(time)),
            None => Err(format!("\"{time}\" is not a time such as 100us")),
        },
        None => match word {
            "piggyback" => Ok(UpcallSignal::Piggyback),
            "interrupt" => Ok(UpcallSignal::Interrupt),
            _ => Err(format!("expected piggyback | interrupt | poll-N, found \"{word}\"")),
        },
    }
}
