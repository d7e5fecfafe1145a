//! What a seed chooses about a conventional SSD: its instances, mapping unit, space and buffer.

use crate::draw::draws::{Draws, KindDraw};
use crate::draw::sample::{between, pick};
use crate::draw::words::{schedule_name, victim_name};
use crate::settings::Settings;
use nandscape_block::SECTOR_BYTES;
use nandscape_ftl::device::Config;
use nandscape_ftl::device::config::{BufferConfig, Victim};
use nandscape_ftl::{FtlConfig, FtlKind};
use nandscape_media::Geometry;
use nandscape_rt::Stream;

/// The kind.
pub(crate) const KIND: FtlKind = FtlKind::PageMap;
/// The most overprovisioning that is drawn, in hundredths of a percent.
const MOST_OP: u32 = 8_000;
/// Sectors of the largest mapping unit.
const UNIT_SECTORS_MAX: u32 = 16;

/// The choices, if they are a conventional SSD's.
pub(crate) const fn of(config: &FtlConfig) -> Option<&Config> {
    if let FtlConfig::Device(config) = config { Some(config) } else { None }
}

/// Keys of a stack that every seed has as they are given, and those that it scales down or draws.
pub(crate) const KEPT: &[&str] =
    &["gc.victim", "gc.schedule", "buffer.power_safe", "buffer.early_completion"];
/// That of devices which have no zones.
pub(crate) const KEPT_UNZONED: &[&str] = &["map_access_ns"];
pub(crate) const SIZED: &[&str] =
    &["op_percent", "instances", "map_unit", "buffer.size", "gc_lines"];

/// The draw of a conventional SSD.
pub(crate) struct ConfigDraw {
    given: Config,
    /// Whether choices are a stack's, which every seed keeps.
    is_given: bool,
}

impl ConfigDraw {
    /// That of a stack's choices, else of the kind's defaults.
    pub(crate) fn begin(given: Option<&FtlConfig>) -> Self {
        let given = given.and_then(of).cloned();
        Self::of(given.is_some(), given.unwrap_or_default())
    }

    /// That of these choices, of a stack or not.
    pub(crate) const fn of(is_given: bool, given: Config) -> Self {
        Self { given, is_given }
    }
}

impl KindDraw for ConfigDraw {
    /// Device FTLs are refused on NAND with rules for hosts. Every instance has channels, and enough erase
    /// units for its reserve.
    fn fit(&self, shape: Geometry, _sectors_max: u32, _draws: &mut Draws<'_>) -> Geometry {
        let groups = 1 << shape.groups.ilog2();
        let chunks = shape.chunks.max(14);
        Geometry { groups, chunks, mw_cunits: 0, maxoc: 0, maxocpu: 0, ..shape }
    }

    fn config(&self, geometry: &Geometry, draws: &mut Draws<'_>) -> FtlConfig {
        let Config { victim, instances, map_unit_bytes, buffer, gc_lines, .. } = self.given;
        let most = instances.min(geometry.groups).ilog2();
        let drawn = between(draws.streams, 0, most);
        let instances = 1 << if self.is_given { most } else { drawn };
        let unit = map_unit(map_unit_bytes, self.is_given, geometry, draws.streams);
        let page = unit.max(geometry.ws_opt);
        let least = 2 * page * instances;
        let size = least << between(draws.streams, 0, 2);
        let victims = [victim, Victim::Greedy, Victim::Fifo, Victim::Random, Victim::DChoices(3)];
        let late = draws.streams.chance(0.1) && !self.is_given;
        let early_completion = buffer.early_completion && !late;
        let drawn_victim = victims[pick(draws.rng, &[4, 1, 1, 1, 1])];
        let buffer =
            BufferConfig { size_bytes: u64::from(size) * SECTOR_BYTES, early_completion, ..buffer };
        let drawn = Config {
            op_hundredths: MOST_OP,
            victim: if self.is_given { victim } else { drawn_victim },
            instances,
            map_unit_bytes: unit * SECTOR_BYTES as u32,
            buffer,
            gc_lines: between(draws.rng, gc_lines, gc_lines + 2),
            schedule: self.given.schedule,
            map_access_ns: self.given.map_access_ns,
        };
        let least = least_op(&drawn, geometry);
        let op_hundredths = match pick(draws.rng, &[1, 1]) {
            0 => between(draws.rng, least, least + 500).min(MOST_OP),
            _ => between(draws.rng, least, MOST_OP),
        };
        FtlConfig::Device(Config { op_hundredths, ..drawn })
    }

    fn with_edge_cases(&self, config: FtlConfig, rng: &mut Stream) -> FtlConfig {
        let FtlConfig::Device(drawn) = config else { return config };
        let gc_lines = if rng.chance(0.3) { between(rng, 0, 64) } else { drawn.gc_lines };
        let power_safe = drawn.buffer.power_safe || rng.chance(0.3) && !self.is_given;
        let buffer = BufferConfig { power_safe, ..drawn.buffer };
        FtlConfig::Device(Config { gc_lines, buffer, ..drawn })
    }
}

/// The least overprovisioning that leaves a device of this shape what it must keep free.
fn least_op(config: &Config, geometry: &Geometry) -> u32 {
    let fits =
        |&op_hundredths: &u32| Config { op_hundredths, ..config.clone() }.sizes(geometry).is_ok();
    (100..MOST_OP).step_by(25).find(fits).unwrap_or(MOST_OP)
}

/// Sectors of a mapping unit that divides one-shot pages and chunks, or is divided by one-shot pages: of a stack's, or of
/// the largest below it that does; else of the kind's, or another one.
fn map_unit(given_bytes: u32, is_given: bool, geometry: &Geometry, rng: &mut Stream) -> u32 {
    let given = given_bytes / SECTOR_BYTES as u32;
    let drawn =
        if rng.chance(0.5) { given } else { 1 << between(rng, 0, UNIT_SECTORS_MAX.ilog2()) };
    let Geometry { ws_opt, sectors, .. } = *geometry;
    let fits = |unit: u32| {
        let page = ws_opt.max(unit);
        page.is_multiple_of(ws_opt) && page.is_multiple_of(unit) && sectors.is_multiple_of(page)
    };
    match is_given {
        true => {
            (0..=given.ilog2()).rev().map(|bits| 1 << bits).find(|unit| fits(*unit)).unwrap_or(1)
        }
        false if fits(drawn) => drawn,
        false => 1,
    }
}

/// The choices on one line, with a space before each.
pub(crate) fn describe(config: &Config) -> Settings {
    let Config { op_hundredths, victim, instances, map_unit_bytes, buffer, .. } = config;
    let Config { gc_lines, schedule, map_access_ns, .. } = config;
    let choices = Settings::default()
        .with("op_hundredths", *op_hundredths)
        .with("victim", victim_name(*victim))
        .with("instances", *instances)
        .with("map_unit_bytes", *map_unit_bytes)
        .with("buffer_bytes", buffer.size_bytes)
        .with("power_safe", buffer.power_safe)
        .with("early_completion", buffer.early_completion)
        .with("gc_lines", *gc_lines)
        .with("schedule", schedule_name(*schedule));
    // Only a stack sets it.
    match map_access_ns {
        0 => choices,
        ns => choices.with("map_access_ns", *ns),
    }
}
