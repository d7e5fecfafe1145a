//! How much of the device is for data: line metadata, overprovisioning, the limiter's thresholds and
//! the ring, by the rules of three kernels (pblk-init.c, pblk-core.c `pblk_calc_emeta_len`, pblk-rl.c).

use super::layout::{line_layout, padded_out};
use super::mapcache::{CopyPadding, Size};
use super::mapshape::quota;
use super::plan::Plan;
use crate::common::l2p::entry_bytes;
use crate::common::layout::Layout;
use crate::error::FtlError;
use crate::pblk::config::{CapacityRules, Config, Limiter, MapKind};
use nandscape_block::SECTOR_BYTES;
use nandscape_media::{Geometry, KEY_MAX};
use std::ops::Range;

/// Data units of the smallest useful line: padding one unit must not outweigh what collecting a line
/// gains.
const LINE_UNITS_MIN: u32 = 8;
/// Largest ring: 4 GiB of data.
const RING_MAX: u32 = 1 << 20;
/// Lines that have open chunks at once (`PBLK_DATA_LINES`).
const OPEN_LINES: u32 = 4;
/// Valid sectors that garbage collection reads in a request (`NVM_MAX_VLBA`).
pub(super) const REQUEST_SECTORS: usize = 64;
/// Lines whose end metadata may be missing while another line opens.
pub(super) const CLOSING_LINES: usize = 2;

/// Sizes that follow from geometry and choices. Sectors are 4 KiB; chunks are erase units.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capacity {
    /// Sectors of good chunks.
    pub physical_sectors: u64,
    /// Sectors that the host can address.
    pub logical_sectors: u64,
    /// Lines of the device, bad ones included.
    pub lines: u32,
    /// Sectors of a line without bad chunks.
    pub line_sectors: u32,
    /// Data sectors of a line without bad chunks.
    pub line_data_sectors: u32,
    /// Start metadata of a line.
    pub smeta_sectors: u32,
    /// End metadata of a line.
    pub emeta_sectors: u32,
    /// The limiter collects garbage while fewer chunks than this are free.
    pub high_chunks: u32,
    /// User writes stop while no more chunks than this are free.
    pub reserved_chunks: u32,
    /// Entries of the write buffer, a power of two.
    pub ring_sectors: u32,
    /// Lines kept for mapping blocks.
    pub map_lines: u32,
    /// Padding that copies take where the mapping cache is very small.
    pub(super) copy_padding: CopyPadding,
}

impl Capacity {
    /// The sizes of a device with `good_chunks` usable chunks, on which an FTL of this configuration can
    /// always make progress. The geometry must make sense.
    ///
    /// # Errors
    /// The key of the choice that does not fit, and why.
    pub fn of(geometry: &Geometry, config: &Config, good_chunks: u64) -> Result<Self, FtlError> {
        let capacity = Self::new(geometry, config, good_chunks)?;
        capacity.check(geometry, config)?;
        Ok(capacity)
    }

    /// Whether a fresh device that this configuration makes so large would be taken: what a device that comes
    /// from elsewhere has to stand, too. Chunks that went bad since it was formatted are no matter.
    ///
    /// # Errors
    /// As [`Capacity::of`].
    pub(super) fn check_formatted(
        geometry: &Geometry,
        config: &Config,
        logical_sectors: u64,
    ) -> Result<(), FtlError> {
        let all = u64::from(geometry.chunks) * u64::from(geometry.total_units());
        let Self { smeta_sectors, emeta_sectors, lines, .. } = Self::new(geometry, config, all)?;
        let meta_sectors = u64::from(smeta_sectors + emeta_sectors) * u64::from(lines);
        let fits = |chunks| {
            Overprovisioning::new(geometry, config, chunks, meta_sectors)
                .is_ok_and(|op| op.logical_chunks * u64::from(geometry.sectors) <= logical_sectors)
        };
        Self::of(geometry, config, last_that(0..all + 1, fits)).map(|_| ())
    }

    /// Computes the sizes for `good_chunks` usable chunks.
    ///
    /// # Errors
    /// The key of the choice that does not fit, and why.
    pub(super) fn new(
        geometry: &Geometry,
        config: &Config,
        good_chunks: u64,
    ) -> Result<Self, FtlError> {
        Self::sized(geometry, config, good_chunks, None)
    }

    /// The same for a device whose logical size was fixed when it had more good chunks.
    ///
    /// # Errors
    /// As [`Capacity::new`].
    pub(super) fn sized(
        geometry: &Geometry,
        config: &Config,
        good_chunks: u64,
        fixed_sectors: Option<u64>,
    ) -> Result<Self, FtlError> {
        let layout = line_layout(geometry, config.line_set)?;
        let lines = geometry.chunks * layout.stripes();
        let line_sectors = line_sectors(geometry, &layout)?;
        let smeta_sectors = geometry.ws_opt;
        let emeta_sectors = emeta_sectors(geometry, lines, line_sectors);
        let Some(line_data_sectors) = line_sectors
            .checked_sub(smeta_sectors + emeta_sectors)
            .filter(|&data| data >= LINE_UNITS_MIN * geometry.ws_opt)
        else {
            return Err(FtlError::Config {
                key: "media.sectors",
                why: format!(
                    "a line of {line_sectors} sectors holds fewer than {LINE_UNITS_MIN} write units \
                     beside its metadata ({smeta_sectors} + {emeta_sectors} sectors)"
                ),
            });
        };
        let meta_sectors = u64::from(smeta_sectors + emeta_sectors) * u64::from(lines);
        let op = Overprovisioning::new(geometry, config, good_chunks, meta_sectors)?;
        let computed = op.logical_chunks * u64::from(geometry.sectors);
        let logical_sectors = fixed_sectors.unwrap_or(computed);
        let map_lines = map_lines(geometry, config, logical_sectors, line_data_sectors);
        let buffers = Plan::new(config, &layout)?.len();
        Ok(Self {
            physical_sectors: good_chunks * u64::from(geometry.sectors),
            logical_sectors,
            map_lines,
            lines,
            line_sectors,
            line_data_sectors,
            smeta_sectors,
            emeta_sectors,
            high_chunks: op.high_chunks.saturating_sub(map_lines * layout.width),
            reserved_chunks: op.reserved_chunks,
            ring_sectors: ring_sectors(geometry, config)?,
            copy_padding: copy_padding(geometry, config, logical_sectors, buffers)?,
        })
    }

    /// Whether the device can always make progress with its frontiers: logical space, the
    /// reserve, the open lines, a victim and one line lost to a power cut must fit at once, and the
    /// line that a single frontier always prepares.
    ///
    /// # Errors
    /// The key of the choice that does not fit, and why.
    fn check(&self, geometry: &Geometry, config: &Config) -> Result<(), FtlError> {
        if self.logical_sectors > u64::from(KEY_MAX) + 1 {
            let why = format!("{} logical sectors do not fit 32-bit keys", self.logical_sectors);
            return Err(FtlError::Config { key: "media.chunks", why });
        }
        let layout = line_layout(geometry, config.line_set)?;
        let kept_lines = match config.limiter {
            Limiter::Kernel => self.reserved_chunks.div_ceil(layout.width) + layout.stripes(),
            Limiter::Reserve(lines) => lines,
        };
        let plan = Plan::new(config, &layout)?;
        let moving_lines = match plan.frontiers() {
            1 => 4,
            // A stream's frontiers share copies, so that many lines of theirs are open at once.
            frontiers => frontiers + 2 + padded_out(geometry, plan.widest()),
        };
        let data_lines = self.physical_sectors / u64::from(self.line_sectors);
        let others = [kept_lines, moving_lines, self.map_lines].map(u64::from).iter().sum::<u64>();
        let needed = self.logical_sectors.div_ceil(self.line_data_sectors.into()) + others;
        if needed > data_lines {
            let why = format!(
                "not enough lines: need {needed} ({} user, {kept_lines} reserved, {moving_lines} open or collected, \
                 {} mapping), have {data_lines}; raise the overprovisioning or use more, smaller chunks",
                needed - others,
                self.map_lines
            );
            return Err(FtlError::Config { key: "ftl.op_percent", why });
        }
        self.check_copies(data_lines - others)?;
        check_open_chunks(geometry, plan.frontiers() + u32::from(self.map_lines > 0))?;
        self.check_limiter(config)
    }

    /// When the device is full a line can be copied into less than it holds, whatever a small mapping
    /// cache pads.
    fn check_copies(&self, lines: u64) -> Result<(), FtlError> {
        let valid = self.logical_sectors.div_ceil(lines.max(1)) as u32;
        let padding = self.copy_padding.of(valid);
        if padding == 0 || valid + padding < self.line_data_sectors {
            return Ok(());
        }
        let why = format!(
            "with so few mapping blocks in RAM, copying a line's {valid} valid sectors out may take \
             {padding} sectors of padding, but a line has only {}: enlarge the cache, or raise the \
             overprovisioning",
            self.line_data_sectors
        );
        Err(FtlError::Config { key: "ftl.map.cache", why })
    }

    fn check_limiter(&self, config: &Config) -> Result<(), FtlError> {
        match config.limiter {
            Limiter::Reserve(0) => Err(FtlError::Config {
                key: "ftl.limiter",
                why: "reserve-0 leaves garbage collection no line to copy into".into(),
            }),
            Limiter::Kernel if self.high_chunks <= self.reserved_chunks => {
                let why = format!(
                    "collection would start at {} free chunks, but user writes already stop at {}: \
                     they would stall for good; use more chunks a unit or the 4.16 rules",
                    self.high_chunks, self.reserved_chunks
                );
                Err(FtlError::Config { key: "ftl.capacity_rules", why })
            }
            _ => Ok(()),
        }
    }
}

/// The last number that `fits`, given that the first does and none behind one that does not: fewer good
/// chunks never make a larger device.
fn last_that(numbers: Range<u64>, fits: impl Fn(u64) -> bool) -> u64 {
    let Range { start: mut last, mut end } = numbers;
    while last + 1 < end {
        let middle = last.midpoint(end);
        if fits(middle) {
            last = middle;
        } else {
            end = middle;
        }
    }
    last
}

/// See [`Capacity::copy_padding`].
fn copy_padding(
    geometry: &Geometry,
    config: &Config,
    logical: u64,
    buffers: u8,
) -> Result<CopyPadding, FtlError> {
    let MapKind::Cached(map) = &config.map else { return Ok(CopyPadding::NONE) };
    let size = Size::new(map, logical, entry_bytes(geometry.ppa_end()))?;
    Ok(size.copy_padding(REQUEST_SECTORS as u32, geometry.ws_opt, buffers))
}

/// Sectors of a whole line, few enough for every sum of a few lines to fit 32 bits.
fn line_sectors(geometry: &Geometry, layout: &Layout) -> Result<u32, FtlError> {
    let sectors = u64::from(layout.width) * u64::from(geometry.sectors);
    u32::try_from(sectors).ok().filter(|&sectors| sectors < 1 << 30).ok_or_else(|| {
        let why = format!("a line of {sectors} sectors is too long; use fewer sectors a chunk");
        FtlError::Config { key: "media.sectors", why }
    })
}

/// Lines kept for mapping blocks; none where the table is in RAM.
fn map_lines(geometry: &Geometry, config: &Config, logical: u64, line_sectors: u32) -> u32 {
    let MapKind::Cached(map) = &config.map else { return 0 };
    quota(map, geometry, logical, entry_bytes(geometry.ppa_end()), line_sectors)
}

/// Each frontier has a line open, one prepared and up to two closing.
fn check_open_chunks(geometry: &Geometry, frontiers: u32) -> Result<(), FtlError> {
    let lines = OPEN_LINES * frontiers;
    let limits = [
        ("media.maxoc", geometry.maxoc, lines * geometry.total_units()),
        ("media.maxocpu", geometry.maxocpu, lines),
    ];
    match limits.into_iter().find(|&(_, limit, needed)| limit != 0 && limit < needed) {
        None => Ok(()),
        Some((key, limit, needed)) => {
            let why = format!("pblk needs {needed} open chunks, the device allows {limit}");
            Err(FtlError::Config { key, why })
        }
    }
}

/// End metadata: header and bitmap, one 8-byte address a data sector, one 4-byte valid count a line;
/// each part begins on a sector, the whole is rounded up to `ws_opt`.
fn emeta_sectors(geometry: &Geometry, lines: u32, line_sectors: u32) -> u32 {
    let valid_counts = (u64::from(lines) * 4).div_ceil(SECTOR_BYTES);
    let listed = line_sectors.saturating_sub(geometry.ws_opt);
    let addresses = (u64::from(listed) * 8).div_ceil(SECTOR_BYTES);
    (1 + (addresses + valid_counts) as u32).next_multiple_of(geometry.ws_opt)
}

struct Overprovisioning {
    logical_chunks: u64,
    high_chunks: u32,
    reserved_chunks: u32,
}

impl Overprovisioning {
    fn new(
        geometry: &Geometry,
        config: &Config,
        good_chunks: u64,
        meta_sectors: u64,
    ) -> Result<Self, FtlError> {
        let rules = config.capacity_rules;
        let default_op = if rules == CapacityRules::V4_13 { 20 } else { 11 };
        let op = config.op_percent.unwrap_or(default_op);
        if !(3..=80).contains(&op) {
            let why = format!("{op} is outside pblk's 3 to 80 percent");
            return Err(FtlError::Config { key: "ftl.op_percent", why });
        }
        let units = u64::from(geometry.total_units());
        let least_reserve = if rules == CapacityRules::V5_11 {
            u64::from(100u32.div_ceil(op)) * units
        } else {
            units
        };
        let mut op_chunks = good_chunks - good_chunks * u64::from(100 - op) / 100;
        if rules == CapacityRules::V5_11 && config.op_percent.is_none() {
            op_chunks = op_chunks.max(least_reserve);
        }
        let meta_chunks = meta_sectors.div_ceil(u64::from(geometry.sectors));
        let high_chunks = match rules {
            CapacityRules::V4_13 => good_chunks / 8,
            _ => op_chunks.saturating_sub(meta_chunks + units),
        };
        Ok(Self {
            logical_chunks: good_chunks.saturating_sub(op_chunks + meta_chunks),
            high_chunks: high_chunks as u32,
            reserved_chunks: least_reserve as u32,
        })
    }
}

/// Ring entries. Beyond the kernels' sizes the ring always keeps two write units a parallel unit
/// beside the `mw_cunits` tail that the device may refuse to serve (in Linux 5.11 a doubled ring
/// ensures the same; 4.16 reads what the device should refuse).
fn ring_sectors(geometry: &Geometry, config: &Config) -> Result<u32, FtlError> {
    let least = ring_sectors_min(geometry)?;
    if let Some(asked) = config.ring_sectors {
        return check_ring("ftl.ring", asked, least);
    }
    let units = geometry.total_units();
    let kernel = match config.capacity_rules {
        CapacityRules::V4_13 => 8 * geometry.ws_opt * units,
        CapacityRules::V4_16 => geometry.mw_cunits * units,
        CapacityRules::V5_11 => (geometry.mw_cunits.max(geometry.ws_opt) + geometry.ws_opt) * units,
    };
    Ok(kernel.max(least).next_power_of_two().min(RING_MAX))
}

/// Entries of a ring for the journal or for fsynced files.
pub(super) fn special_ring_sectors(
    geometry: &Geometry,
    config: &Config,
    normal: u32,
) -> Result<u32, FtlError> {
    let least = ring_sectors_min(geometry)?;
    config
        .special_ring_sectors
        .map_or(Ok(normal), |asked| check_ring("ftl.special_buffer", asked, least))
}

fn check_ring(key: &'static str, asked: u32, least: u32) -> Result<u32, FtlError> {
    if (least..=RING_MAX).contains(&asked) && asked.is_power_of_two() {
        return Ok(asked);
    }
    let why = format!(
        "{asked} must be a power of two from {} to {RING_MAX} sectors: it holds two write units per parallel unit, \
         and a copy with its trim records, beside what media may refuse to read",
        least.next_power_of_two()
    );
    Err(FtlError::Config { key, why })
}

/// Two write units a parallel unit, and without fail the slots of a copy, beside the tails of open chunks.
fn ring_sectors_min(geometry: &Geometry) -> Result<u32, FtlError> {
    let units = geometry.total_units();
    let unreadable =
        u64::from(geometry.mw_cunits.next_multiple_of(geometry.ws_opt)) * u64::from(units);
    let least = unreadable + u64::from(geometry.ws_opt * units * 2).max(super::SLOTS_NEEDED.into());
    if least > u64::from(RING_MAX) {
        let why = format!("{least} sectors would have to be buffered, at most {RING_MAX} can be");
        return Err(FtlError::Config { key: "media.mw_cunits", why });
    }
    Ok(least as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pblk::config::MapConfig;

    /// The open-channel SSD of the JS-Pblk paper (table 1): 7.5 GiB on 8 parallel units.
    const JS_PBLK: Geometry = Geometry {
        groups: 2,
        units: 4,
        chunks: 60,
        sectors: 4_096,
        ws_min: 4,
        ws_opt: 8,
        mw_cunits: 24,
        maxoc: 0,
        maxocpu: 0,
    };

    fn all_chunks(geometry: &Geometry) -> u64 {
        u64::from(geometry.total_units() * geometry.chunks)
    }

    fn sizes(geometry: &Geometry, config: &Config) -> Result<Capacity, FtlError> {
        let capacity = Capacity::new(geometry, config, all_chunks(geometry))?;
        capacity.check(geometry, config).map(|()| capacity)
    }

    fn rules(capacity_rules: CapacityRules) -> Config {
        Config { capacity_rules, ..Config::default() }
    }

    /// The key at fault; its sentence must explain itself.
    fn refused(geometry: &Geometry, config: &Config) -> &'static str {
        match sizes(geometry, config) {
            Err(FtlError::Config { key, why }) => {
                assert!(why.split_whitespace().count() > 5, "{key}: {why} explains nothing");
                key
            }
            other => panic!("not refused: {other:?}"),
        }
    }

    /// Linux 4.16 on JS-Pblk's device, worked by hand: 480 chunks, 427 provisioned, 2 of metadata.
    #[test]
    fn linux_4_16_gives_js_pblks_device_1_740_800_sectors() {
        let expected = Capacity {
            physical_sectors: 480 * 4_096,
            logical_sectors: 1_740_800,
            lines: 60,
            line_sectors: 32_768,
            line_data_sectors: 32_768 - 8 - 72,
            smeta_sectors: 8,
            emeta_sectors: 72,
            high_chunks: 43,
            reserved_chunks: 8,
            ring_sectors: 512,
            map_lines: 0,
            copy_padding: CopyPadding::NONE,
        };
        assert_eq!(sizes(&JS_PBLK, &rules(CapacityRules::V4_16)), Ok(expected));
    }

    /// Linux 4.13 keeps 20 percent back and collects below an eighth of all chunks.
    #[test]
    fn linux_4_13_collects_below_an_eighth() {
        let sizes = sizes(&JS_PBLK, &rules(CapacityRules::V4_13)).expect("fits");
        assert_eq!(sizes.logical_sectors, (384 - 2) * 4_096);
        assert_eq!((sizes.high_chunks, sizes.reserved_chunks), (60, 8));
        assert_eq!(sizes.ring_sectors, 512);
    }

    /// Linux 5.11 raises the overprovisioning to its reserve of 10 lines; on so small a device
    /// nothing is left to write and collect with, and users would stall for good.
    #[test]
    fn linux_5_11_does_not_fit_a_device_of_60_lines() {
        let config = rules(CapacityRules::V5_11);
        let sizes = Capacity::new(&JS_PBLK, &config, 480).expect("can be computed");
        assert_eq!(sizes.logical_sectors, 1_630_208);
        assert_eq!((sizes.high_chunks, sizes.reserved_chunks), (70, 80));
        assert_eq!(sizes.ring_sectors, 512);
        assert_eq!(refused(&JS_PBLK, &config), "ftl.op_percent");
    }

    /// What the refusal advises helps: more overprovisioning, or smaller chunks and more of them.
    #[test]
    fn linux_5_11_fits_with_what_the_refusal_advises() {
        let config = Config { op_percent: Some(50), ..rules(CapacityRules::V5_11) };
        let generous = sizes(&JS_PBLK, &config).expect("fits");
        assert_eq!(generous.reserved_chunks, 2 * 8);
        let finer = Geometry { chunks: 960, sectors: 256, ..JS_PBLK };
        let sizes = sizes(&finer, &rules(CapacityRules::V5_11)).expect("fits");
        assert!(sizes.high_chunks > sizes.reserved_chunks);
    }

    /// Collection that would start only after user writes have stopped is refused.
    #[test]
    fn a_threshold_at_the_reserve_is_refused() {
        let geometry = Geometry { chunks: 8, ..JS_PBLK };
        let config = Config { op_percent: Some(80), ..rules(CapacityRules::V4_13) };
        assert_eq!(refused(&geometry, &config), "ftl.capacity_rules");
    }

    /// Bad chunks take from what the host gets, in proportion.
    #[test]
    fn bad_chunks_shrink_the_device() {
        let sizes = Capacity::new(&JS_PBLK, &Config::default(), 470).expect("can be computed");
        assert_eq!(sizes.physical_sectors, 470 * 4_096);
        assert_eq!(sizes.logical_sectors, (470 * 89 / 100 - 2) * 4_096);
    }

    /// pblk takes 3 to 80 percent, ends included, whether or not the rest fits then.
    #[test]
    fn overprovisioning_is_3_to_80_percent() {
        let with = |op| Config { op_percent: Some(op), ..Config::default() };
        for op in [0, 2, 81, 100, u32::MAX] {
            assert_eq!(refused(&JS_PBLK, &with(op)), "ftl.op_percent");
        }
        for op in [3, 80] {
            assert!(Capacity::new(&JS_PBLK, &with(op), 480).is_ok());
        }
        assert_eq!(refused(&JS_PBLK, &with(3)), "ftl.op_percent");
    }

    /// The ring is a power of two that holds what media refuse to read and two units a parallel unit.
    #[test]
    fn an_odd_or_small_ring_is_refused() {
        let with = |ring| Config { ring_sectors: Some(ring), ..Config::default() };
        for ring in [0, 1, 256, 319, 320, 768, u32::MAX] {
            assert_eq!(refused(&JS_PBLK, &with(ring)), "ftl.ring");
        }
        assert_eq!(sizes(&JS_PBLK, &with(1_024)).map(|sizes| sizes.ring_sectors), Ok(1_024));
    }

    /// Where the kernel's own size suffices it is the kernel's: 4.16 takes `mw_cunits` a unit,
    /// rounded up; 5.11 has a write unit more.
    #[test]
    fn large_rings_have_the_kernels_size() {
        let geometry = Geometry { ws_opt: 4, mw_cunits: 24, ..JS_PBLK };
        let ring = |rule| ring_sectors(&geometry, &rules(rule));
        assert_eq!(ring(CapacityRules::V4_16), Ok(256));
        assert_eq!(ring(CapacityRules::V5_11), Ok(256));
        assert_eq!(ring(CapacityRules::V4_13), Ok(256));
    }

    /// Chunks that went bad change nothing about what a device's table takes.
    #[test]
    fn a_fixed_size_keeps_its_mapping_lines() {
        let geometry =
            Geometry { groups: 1, units: 1, chunks: 1_000, sectors: 128, mw_cunits: 0, ..JS_PBLK };
        let map = MapConfig { block_bytes: 4_096, ..MapConfig::default() };
        let config = Config { map: MapKind::Cached(map), ..Config::default() };
        let fresh = Capacity::new(&geometry, &config, 1_000).expect("fits");
        let mut good = 1_000;
        let computed = |good| Capacity::new(&geometry, &config, good).expect("fits").map_lines;
        while computed(good) == fresh.map_lines {
            good -= 10;
        }
        let worn = Capacity::sized(&geometry, &config, good, Some(fresh.logical_sectors));
        let sizes = |c: Capacity| (c.logical_sectors, c.map_lines);
        assert_eq!(worn.map(sizes), Ok(sizes(fresh)));
    }

    /// By every rule a good chunk more never makes the device smaller, so the number of chunks that a device was
    /// formatted with is found by halving: the same as by looking at each.
    #[test]
    fn good_chunks_are_found_by_halving() {
        let all_rules = [CapacityRules::V4_13, CapacityRules::V4_16, CapacityRules::V5_11];
        let ops = [None, Some(3), Some(11), Some(80)];
        for (rule, op_percent) in all_rules.into_iter().flat_map(|rule| ops.map(|op| (rule, op))) {
            let config = Config { op_percent, ..rules(rule) };
            let op = |good| Overprovisioning::new(&JS_PBLK, &config, good, 4_800).expect("3 to 80");
            let sizes: Vec<u64> = (0..=480).map(|good| op(good).logical_chunks).collect();
            assert!(sizes.is_sorted(), "{config:?}");
            for size in 0..=sizes[480] + 1 {
                let fits = |chunks: u64| sizes[chunks as usize] <= size;
                let linear = (0..=480).rev().find(|&chunks| fits(chunks));
                assert_eq!(Some(last_that(0..481, fits)), linear, "{size} of {config:?}");
            }
        }
    }

    #[test]
    fn a_reserve_of_no_line_is_refused() {
        let config = Config { limiter: Limiter::Reserve(0), ..Config::default() };
        assert_eq!(refused(&JS_PBLK, &config), "ftl.limiter");
    }

    #[test]
    fn a_line_that_is_mostly_metadata_is_refused() {
        let geometry = Geometry { groups: 1, units: 1, sectors: 72, ..JS_PBLK };
        assert_eq!(refused(&geometry, &Config::default()), "media.sectors");
        let enough = Geometry { sectors: 80, ..geometry };
        let sizes = Capacity::new(&enough, &Config::default(), 60).expect("can be computed");
        assert_eq!(sizes.line_data_sectors, 8 * 8);
    }

    /// A device that could not make progress when full is refused before anything is written.
    #[test]
    fn too_few_lines_are_refused() {
        let geometry = Geometry { chunks: 20, ..JS_PBLK };
        assert_eq!(refused(&geometry, &Config::default()), "ftl.op_percent");
        let config = Config { limiter: Limiter::Reserve(10), ..Config::default() };
        assert_eq!(refused(&JS_PBLK, &config), "ftl.op_percent");
    }

    /// Out-of-band keys have 32 bits.
    #[test]
    fn more_sectors_than_keys_are_refused() {
        let geometry = Geometry { chunks: 16_384, sectors: 65_536, ..JS_PBLK };
        assert_eq!(refused(&geometry, &Config::default()), "media.chunks");
    }
}
