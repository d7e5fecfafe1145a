//! Keys of a page cache: in `[fs]` of a file system's, in `[host]` of the block device's. Names and defaults are Linux's.

use super::place::StackError;
use super::reader::{Field, Section, Size, Span};
use nandscape_block::SECTOR_BYTES;
use nandscape_fs::cache::CacheConfig;
use nandscape_rt::Nanos;

/// All keys.
pub(super) const KEYS: [&str; 5] = [
    "dirty_background_percent",
    "dirty_percent",
    "writeback_period",
    "writeback_age",
    "read_ahead",
];

/// Whether the resolved text has keys that are not given.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Defaults {
    Written,
    Left,
}

impl Defaults {
    fn read<T: Field>(
        self,
        section: &mut Section<'_>,
        key: &'static str,
        default: T,
    ) -> Result<T, StackError> {
        match self {
            Self::Written => section.or(key, default),
            Self::Left => Ok(section.optional(key)?.unwrap_or(default)),
        }
    }
}

/// Reads the keys of a cache of so much memory.
pub(super) fn read(
    section: &mut Section<'_>,
    memory_bytes: u64,
    defaults: Defaults,
) -> Result<CacheConfig, StackError> {
    let default = CacheConfig::default();
    let mut percent = |key, default: u8| -> Result<u8, StackError> {
        let percent: u32 = defaults.read(section, key, default.into())?;
        let holds = (1..=100).contains(&percent);
        section.check(key, holds, "must be 1 to 100 percent of host.memory")?;
        Ok(percent as u8)
    };
    let background_percent = percent("dirty_background_percent", default.background_percent)?;
    let dirty_percent = percent("dirty_percent", default.dirty_percent)?;
    let ordered = background_percent < dirty_percent;
    section.check("dirty_percent", ordered, "must be more than dirty_background_percent")?;
    let Span(period) = defaults.read(section, "writeback_period", Span(default.period))?;
    section.check("writeback_period", period > Nanos::ZERO, "must be greater than 0")?;
    let Span(age) = defaults.read(section, "writeback_age", Span(default.age))?;
    let ahead = Size(u64::from(default.read_ahead_pages) * SECTOR_BYTES);
    let Size(ahead) = defaults.read(section, "read_ahead", ahead)?;
    section.check("read_ahead", ahead <= 1 << 30, "must be at most 1GiB")?;
    let pages = memory_bytes / SECTOR_BYTES;
    let read_ahead_pages = (ahead / SECTOR_BYTES) as u32;
    Ok(CacheConfig { pages, background_percent, dirty_percent, period, age, read_ahead_pages })
}
