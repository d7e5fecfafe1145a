//! The choices that make a conventional SSD, and the sizes that follow from them.
//!
//! Defaults are those of NVMeVirt's 970 Pro (`ssd_config.h`, `SAMSUNG_970PRO`): four FTL instances of two
//! channels each, a write buffer of 1 MiB with early completion, collection at two free lines, greedy
//! victims, and its overprovisioning: its 7 % are of the logical size, so 6.54 % of the physical one.
//! Its schedule of collection is a choice, and not the default: see [`Schedule`].
//!
//! Sizes guarantee that collection always ends with more space than it began with: of the erase units of
//! an instance, `Config::lines_apart` hold no data in the long run (two open ones, the reserve, one that waits
//! for its erase, one for saving the buffer), and the data fit the others with a program unit each to spare, so that there is always a
//! victim that holds less than a full erase unit even after padding. Bad chunks make erase units smaller, but at least
//! `SPARES_MIN` of an instance hold what is saved of a power-safe buffer, so that a mount can collect one for that.

use crate::common::layout::{Layout, UnitSet};
use crate::common::trims::TRIMS_PER_SECTOR;
pub use crate::common::victims::Victim;
use crate::error::FtlError;
use crate::face::DeviceSize;
use nandscape_block::SECTOR_BYTES;
use nandscape_media::{Geometry, KEY_MAX};

/// Largest program unit, in sectors.
pub(super) const PAGE_MAX: usize = 64;
/// All, in hundredths of a percent.
pub(crate) const WHOLE: u32 = 10_000;
/// Erase units by which the host is held back before it would have to wait for one: as much as may be in the open ones, in
/// victims, and on the way to be erased.
const HELD_LINES: u64 = 2;
/// Erase units by which collection begins before the host is held back.
const LINES_AHEAD: u64 = 1;
/// Erase units that collection leaves for what is superseded, so that victims gain something.
const LINES_TO_COMPACT: u64 = 3;
/// Most FTL instances.
const INSTANCES_MAX: u32 = 64;
/// Fewest erase units of an instance into which a power-safe buffer can be saved. Two may be open at a mount, and
/// another one can be collected then.
const SPARES_MIN: usize = 3;

/// What a flush of the host waits for; a bio with PREFLUSH, and a write with FUA, wait for the same.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Flush {
    /// Everything that was admitted: pages that are being filled are padded and programmed, and the flush completes when
    /// all of it is durable.
    #[default]
    Program,
    /// As NVMeVirt has it (`conv_ftl.c`, `conv_flush`): until all parallel units have ended what they were sent. Nothing
    /// is programmed for it, so a power cut loses what was flushed and is in the buffer: for comparisons with figures
    /// that were measured so. In force after [`crate::Ftl::keep_flushed`] was called with `false`.
    Nvmevirt,
}

/// The write buffer, in the device's DRAM.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BufferConfig {
    /// Bytes.
    pub size_bytes: u64,
    /// Whether its content survives a power cut.
    pub power_safe: bool,
    /// Whether a write completes when the buffer has it; otherwise when it is programmed.
    pub early_completion: bool,
    /// What a flush waits for, where the content does not survive.
    pub flush: Flush,
}

impl BufferConfig {
    /// Refuses choices that exclude each other.
    pub(crate) fn check(&self) -> Result<(), FtlError> {
        if self.power_safe && self.flush != Flush::Program {
            let why = "\"nvmevirt\" and ftl.buffer.power_safe = true exclude each other: the buffer of a flush that \
                       programs nothing is lost when power fails, and one that is power-safe needs no such flush; \
                       leave one of them out";
            return refuse("ftl.buffer.flush", why.into());
        }
        Ok(())
    }

    /// What a flush is now; one that has everything programmed where what was flushed has to be kept.
    pub(crate) const fn flush_now(&self, keeps: bool) -> Flush {
        if keeps { Flush::Program } else { self.flush }
    }
}

/// How the commands of a collection are sent to the NAND.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Schedule {
    /// As a controller does: pages of a victim are read a row ahead, and copied when their read has ended; several victims
    /// may be in flight. Collection keeps ahead of the host, and slows its writes down in proportion when it cannot. The
    /// order of commands is MQSim's, where a GC write waits for its read.
    #[default]
    Pipelined,
    /// As NVMeVirt does (`conv_ftl.c`, `do_gc`): all commands of a victim are sent at once when the host has used up its
    /// write credits, and no program waits for its read.
    Nvmevirt,
    /// As FEMU does (`ftl.c`, `ssd_write`; `ftl-line-gc.c`, `do_gc`), but in each instance: all commands of a victim are
    /// sent at once after a write that leaves a quarter of the erase units free at most, if an eighth of the victim is
    /// not valid; and before a write of victim after victim, until more than a twentieth are free.
    Femu,
}

/// All choices of a conventional SSD.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// Overprovisioning: what the host cannot address of the physical sectors, in hundredths of a percent.
    pub op_hundredths: u32,
    /// Which closed erase unit is collected next.
    pub victim: Victim,
    /// FTL instances. Mapping units go to them in turn; each has its own channels. A power of two that
    /// divides the channels.
    pub instances: u32,
    /// Bytes of a mapping unit: a power of two from 4 KiB to 64 KiB. A write of a part of one reads the rest.
    pub map_unit_bytes: u32,
    /// The write buffer.
    pub buffer: BufferConfig,
    /// An instance collects when it has so few free erase units.
    pub gc_lines: u32,
    /// How the commands of a collection are sent to the NAND.
    pub schedule: Schedule,
    /// What an access of the firmware to a node or an entry of a map takes, in a run; 0: no time.
    pub map_access_ns: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            op_hundredths: 654,
            victim: Victim::Greedy,
            instances: 4,
            map_unit_bytes: 4096,
            buffer: BufferConfig {
                size_bytes: 1 << 20,
                power_safe: false,
                early_completion: true,
                flush: Flush::default(),
            },
            gc_lines: 2,
            schedule: Schedule::default(),
            map_access_ns: 0,
        }
    }
}

/// Sizes, in sectors of 4 KiB unless they say otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sizes {
    /// The whole device.
    pub physical_sectors: u64,
    /// What may hold data of the host at once.
    pub logical_sectors: u64,
    /// What the host can address.
    pub address_sectors: u64,
    /// What instances must have room for together, so that each has room for its part of the host's data.
    pub data_sectors: u64,
    /// Sectors of trim records that runs of discarded sectors may need for which no space is left by what was discarded.
    pub run_units: u64,
    /// Erase units of the whole device.
    pub lines: u32,
    /// An erase unit without bad chunks.
    pub line_sectors: u32,
    /// What is programmed together: a one-shot page, or a mapping unit where that is larger.
    pub page: u32,
    /// A mapping unit.
    pub unit: u32,
    /// The write buffer.
    pub buffer: u32,
}

/// Levels of an instance's space, in sectors, between which collection is paced (`gc.rs`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Levels {
    /// Below it an instance collects.
    pub(super) begin: u32,
    /// Below it the host opens a page only when copies have made room for it.
    pub(super) hold: u32,
}

impl Sizes {
    /// What the erase unit for saving a power-safe buffer must hold: the buffer, a page of copies, one of trim
    /// records, and padding.
    pub(super) const fn saved_sectors(&self) -> u32 {
        self.buffer + 3 * self.page
    }

    /// Units of trim records between two compactions, beside what the first of them left: few, but enough that
    /// looking at the whole table costs little for each.
    pub(super) fn trim_slack_units(&self) -> u64 {
        let runs = self.logical_sectors / u64::from(self.unit) / 2 + 1;
        2 + runs.div_ceil(TRIMS_PER_SECTOR as u64) / 8
    }

    /// Mapping units that trim records may take, on media or on their way. Compaction leaves at most one unit of
    /// records for [`TRIMS_PER_SECTOR`] unmapped runs. Where that is more than provided for here, so much is
    /// unmapped that the space is there.
    pub(super) fn trim_units(&self) -> u64 {
        4 * self.trim_slack_units() + 3 * self.run_units
    }

    /// As every FTL reports them.
    pub(crate) const fn device(&self) -> DeviceSize {
        DeviceSize {
            physical_sectors: self.physical_sectors,
            logical_sectors: self.address_sectors,
            live_sectors: self.logical_sectors,
            erase_units: self.lines,
            erase_unit_sectors: self.line_sectors,
            erase_unit_data_sectors: self.line_sectors,
        }
    }
}

fn refuse<T>(key: &'static str, why: String) -> Result<T, FtlError> {
    Err(FtlError::Config { key, why })
}

impl Config {
    /// How erase units lie: an instance is a stripe of neighbouring channels.
    pub(super) fn layout(&self, geometry: &Geometry) -> Result<Layout, FtlError> {
        let key = "ftl.instances";
        let Self { instances, .. } = *self;
        if !instances.is_power_of_two() || instances > INSTANCES_MAX {
            return refuse(key, format!("must be a power of two up to {INSTANCES_MAX}"));
        }
        if !geometry.groups.is_multiple_of(instances) {
            let why = format!("{} channels do not divide into {instances}", geometry.groups);
            return refuse(key, why);
        }
        let set = match instances {
            1 => UnitSet::All,
            _ => UnitSet::Channels(geometry.groups / instances),
        };
        Layout::of(geometry, set).map_err(|why| FtlError::Config { key, why })
    }

    /// The sizes of a device of this shape.
    ///
    /// # Errors
    /// The key of the choice that does not fit, and why.
    pub fn sizes(&self, geometry: &Geometry) -> Result<Sizes, FtlError> {
        let sizes = self.sizes_unchecked(geometry)?;
        self.check_whole(&sizes, geometry)?;
        Ok(sizes)
    }

    /// The same, whether or not there is space for what must stay free.
    pub(super) fn sizes_unchecked(&self, geometry: &Geometry) -> Result<Sizes, FtlError> {
        let layout = self.layout(geometry)?;
        check_media(geometry)?;
        self.buffer.check()?;
        let unit = self.unit_sectors()?;
        let page = self.page_sectors(geometry, unit)?;
        let physical_sectors = geometry.total_sectors();
        if self.op_hundredths == 0 || self.op_hundredths >= WHOLE {
            return refuse("ftl.op_percent", "must be 0.01 to 99.99".into());
        }
        let share = u64::from(WHOLE - self.op_hundredths);
        let step = u64::from(unit * self.instances);
        let logical_sectors = physical_sectors * share / u64::from(WHOLE) / step * step;
        if logical_sectors == 0 || logical_sectors > u64::from(KEY_MAX) + 1 {
            let why = format!("{logical_sectors} logical sectors: must be 1 to {}", KEY_MAX);
            return refuse("ftl.op_percent", why);
        }
        let line_sectors = layout.width * geometry.sectors;
        let lines = geometry.chunks * layout.stripes();
        let buffer = self.buffer_sectors(page)?;
        Ok(Sizes {
            physical_sectors,
            logical_sectors,
            address_sectors: logical_sectors,
            data_sectors: logical_sectors,
            run_units: 0,
            lines,
            line_sectors,
            page,
            unit,
            buffer,
        })
    }

    /// Whether the data of an instance fit a device of this shape all of whose chunks are good.
    pub(super) fn check_whole(&self, sizes: &Sizes, geometry: &Geometry) -> Result<(), FtlError> {
        self.check_space(sizes, u64::from(geometry.chunks) * u64::from(sizes.line_sectors))
    }

    /// Whether what is in the buffer survives power cuts, and so is durable. What a flush does is another matter.
    pub(super) const fn keeps_buffer(&self) -> bool {
        self.buffer.power_safe
    }

    /// Free erase units of an instance that user writes leave alone: one into which any victim fits, one that
    /// power cuts may use up, and one in place of that into which they saved a power-safe buffer.
    pub(super) const fn reserve_lines(&self) -> u32 {
        2 + self.keeps_buffer() as u32
    }

    /// An instance that has fewer erase units free or about to be collects.
    pub(super) fn lines_to_collect(&self) -> u32 {
        self.gc_lines.max(self.reserve_lines()) + 1
    }

    /// Levels at which an instance is paced: above what it must have free, by as much as is in its open erase units, in
    /// victims and on its way to be erased; but no more than is there beside the data.
    pub(super) fn levels(&self, sizes: &Sizes) -> Levels {
        let line = u64::from(sizes.line_sectors);
        let all = u64::from(sizes.lines / self.instances) * line;
        let spare = all.saturating_sub(self.instance_data(sizes)) / line;
        let most = |lines: u64, apart: u64| lines.min(spare.saturating_sub(apart));
        let least = u64::from(self.reserve_lines()) + 1;
        let hold = u64::from(self.lines_to_collect()) + HELD_LINES;
        let hold = most(hold, LINES_TO_COMPACT).max(least);
        let begin = most(hold + LINES_AHEAD, LINES_TO_COMPACT - 1).max(hold);
        let sectors = |lines: u64| u32::try_from(lines * line).unwrap_or(u32::MAX);
        Levels { begin: sectors(begin), hold: sectors(hold) }
    }

    /// Most sectors of an instance's data, trim records among them, which are all in one instance.
    fn instance_data(&self, sizes: &Sizes) -> u64 {
        sizes.data_sectors / u64::from(self.instances) + sizes.trim_units() * u64::from(sizes.unit)
    }

    /// Erase units of an instance that hold no data in the long run: open for the host, open for collection, the
    /// reserve, one that waits for its erase, and one for saving a power-safe buffer.
    const fn lines_apart(&self) -> u32 {
        3 + self.reserve_lines() + self.keeps_buffer() as u32
    }

    /// Whether the data of an instance fit `sectors` good sectors beside what must stay free.
    pub(super) fn check_space(&self, sizes: &Sizes, sectors: u64) -> Result<(), FtlError> {
        let line = u64::from(sizes.line_sectors);
        let usable = sectors.saturating_sub(u64::from(self.lines_apart()) * line);
        let spared = usable / line * u64::from(sizes.page);
        let data = self.instance_data(sizes);
        if data > usable.saturating_sub(spared) {
            let why = format!(
                "{data} sectors of an instance, {} of trim records among them, do not fit beside the {} \
                 erase units of {line} sectors that stay free: more overprovisioning or smaller chunks help",
                sizes.trim_units() * u64::from(sizes.unit),
                self.lines_apart()
            );
            return refuse("ftl.op_percent", why);
        }
        if self.keeps_buffer() && sizes.saved_sectors() > sizes.line_sectors {
            let why = format!(
                "{} sectors do not fit the erase unit of {line} sectors that saves them when power fails",
                sizes.buffer
            );
            return refuse("ftl.buffer.size", why);
        }
        Ok(())
    }

    /// Whether enough of an instance's erase units, which hold so many good sectors each, can save a power-safe buffer.
    pub(super) fn check_spares(&self, sizes: &Sizes, capacities: &[u32]) -> Result<(), FtlError> {
        let needed = sizes.saved_sectors();
        let able = capacities.iter().filter(|&&capacity| capacity >= needed).count();
        if self.keeps_buffer() && able < SPARES_MIN {
            let why = format!(
                "{able} erase units of an instance hold the {needed} sectors to be saved when power fails, and \
                 {SPARES_MIN} must: others have too many bad chunks"
            );
            return refuse("ftl.buffer.size", why);
        }
        Ok(())
    }

    fn unit_sectors(&self) -> Result<u32, FtlError> {
        let unit = self.map_unit_bytes / SECTOR_BYTES as u32;
        if !self.map_unit_bytes.is_power_of_two() || unit == 0 || unit > 16 {
            return refuse("ftl.map_unit", "must be a power of two from 4 KiB to 64 KiB".into());
        }
        Ok(unit)
    }

    fn page_sectors(&self, geometry: &Geometry, unit: u32) -> Result<u32, FtlError> {
        let Geometry { ws_opt, sectors, .. } = *geometry;
        let page = ws_opt.max(unit);
        if !page.is_multiple_of(ws_opt) || !page.is_multiple_of(unit) {
            let why =
                format!("{unit} sectors and one-shot pages of {ws_opt} do not divide each other");
            return refuse("ftl.map_unit", why);
        }
        if !sectors.is_multiple_of(page) {
            let why = format!("chunks of {sectors} sectors are no multiple of {page}");
            return refuse("ftl.map_unit", why);
        }
        Ok(page)
    }

    fn buffer_sectors(&self, page: u32) -> Result<u32, FtlError> {
        let least = 2 * page * self.instances;
        let sectors = self.buffer.size_bytes / SECTOR_BYTES;
        match u32::try_from(sectors).ok().filter(|size| (least..=1 << 24).contains(size)) {
            Some(size) => Ok(size),
            None => refuse(
                "ftl.buffer.size",
                format!(
                    "{sectors} sectors: must be {least} (two pages an instance) to {}",
                    1 << 24
                ),
            ),
        }
    }
}

/// What firmware is built for: NAND of which every written sector can be read, without limits on open
/// chunks. Those are rules of open-channel devices, for hosts.
pub(crate) fn check_media(geometry: &Geometry) -> Result<(), FtlError> {
    if geometry.mw_cunits != 0 {
        let why = "must be 0 below a device FTL, which can read whatever it has written";
        return refuse("media.mw_cunits", why.into());
    }
    if geometry.limits_open_chunks() {
        let why = "must be unlimited below a device FTL, which chooses the chunks that it opens";
        return refuse("media.maxoc", why.into());
    }
    Ok(())
}
