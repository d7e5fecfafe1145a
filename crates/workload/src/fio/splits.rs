//! Values that divide something among parts: `bsrange`, `bssplit`, and the zones of
//! `random_distribution`. Written and completed as in fio (options.c): percentages that are left out
//! share what the others leave.

use super::rules::AccessZone;
use super::units::{self, Amount};
use super::value::Value;
use nandscape_block::SECTOR_BYTES;

/// Sizes with their percentages.
type Shares = Vec<(u64, u64)>;

/// Sizes that a direction may have, as fio's.
const SIZES_MAX: usize = 64;
/// Zones that a direction may have, as fio's.
const ZONES_MAX: usize = 256;
/// Largest I/O.
const BLOCK_BYTES_MAX: u64 = 1 << 30;

/// Whether I/Os can have this size.
pub(super) fn is_block(bytes: u64) -> bool {
    bytes > 0 && bytes.is_multiple_of(units::UNIT_BYTES) && bytes <= BLOCK_BYTES_MAX
}

/// `MIN-MAX` by direction.
pub(super) fn ranges(value: &Value<'_>) -> Result<[Option<(u64, u64)>; 3], String> {
    let expected = "two multiples of 512 bytes, such as 4k-64k or 4k-16k,8k-32k";
    let range = |part: &str| {
        let (a, b) = part.split_once(['-', ':'])?;
        let bytes = |text: &str| units::bytes(text.trim(), value.kb_base).filter(|n| is_block(*n));
        let (a, b) = (bytes(a)?, bytes(b)?);
        Some((a.min(b), a.max(b)))
    };
    value.each_direction(expected, range)
}

/// `SIZE/PERCENT:...` by direction.
pub(super) fn sizes(value: &Value<'_>) -> Result<[Option<Shares>; 3], String> {
    let expected = "sizes (multiples of 512 bytes) with percentages that add up to at most 100, \
                    such as 4k/50:64k/50 or 4k/10:16k/,64k";
    let split = |part: &str| {
        let pairs: Option<Vec<_>> = part.split(':').map(|pair| size(value, pair)).collect();
        let pairs = pairs.filter(|pairs| pairs.len() <= SIZES_MAX)?;
        let percents = complete(pairs.iter().map(|(_, percent)| *percent).collect())?;
        let sizes = pairs.iter().map(|(bytes, _)| *bytes).zip(whole(percents));
        Some(sizes.filter(|(_, percent)| *percent > 0).collect())
    };
    value.each_direction(expected, split)
}

fn size(value: &Value<'_>, pair: &str) -> Option<(u64, u64)> {
    let (bytes, percent) = pair.split_once('/').unwrap_or((pair, ""));
    let bytes = units::bytes(bytes.trim(), value.kb_base).filter(|n| is_block(*n))?;
    Some((bytes, percentage(percent)?))
}

/// `ACCESSES/SIZE:...` by direction; sizes in percent, or `absolute`.
pub(super) fn zones(value: &Value<'_>, absolute: bool) -> Result<[Vec<AccessZone>; 3], String> {
    let expected = if absolute {
        "percentages of the accesses, 100 in all, with the sizes (multiples of 4096 bytes) of the \
         zones that they go to, such as zoned_abs:60/1g:40/4g"
    } else {
        "percentages of the accesses, 100 in all, with the percentages of the range that they go \
         to, at most 100 in all, such as zoned:60/10:30/20:10/70"
    };
    let split = |part: &str| {
        let pairs: Vec<(&str, &str)> =
            part.split(':').map(|pair| pair.split_once('/')).collect::<Option<_>>()?;
        if pairs.len() > ZONES_MAX {
            return None;
        }
        let accesses = pairs.iter().map(|(accesses, _)| percentage(accesses));
        let accesses = complete(accesses.collect::<Option<_>>()?)?;
        let sizes = pairs.iter().map(|(_, size)| *size);
        let sizes = if absolute { zone_bytes(value, sizes)? } else { zone_percents(sizes)? };
        let zones = accesses.iter().zip(sizes);
        let zones = zones.map(|(&accesses, size)| AccessZone { accesses, size });
        Some(zones.collect()).filter(|_| accesses.iter().sum::<u64>() == 100)
    };
    Ok(value.each_direction(expected, split)?.map(Option::unwrap_or_default))
}

fn zone_bytes<'a>(value: &Value<'_>, sizes: impl Iterator<Item = &'a str>) -> Option<Vec<Amount>> {
    let bytes = sizes.map(|size| units::bytes(size.trim(), value.kb_base));
    let whole = |n: &u64| *n > 0 && n.is_multiple_of(SECTOR_BYTES);
    bytes.map(|bytes| bytes.filter(whole).map(Amount::Bytes)).collect()
}

fn zone_percents<'a>(sizes: impl Iterator<Item = &'a str>) -> Option<Vec<Amount>> {
    let percents = complete(sizes.map(percentage).collect::<Option<_>>()?)?;
    Some(percents.into_iter().map(Amount::Percent).collect())
}

/// A percentage; 0 and nothing stand for a share of what the others leave.
fn percentage(text: &str) -> Option<u64> {
    match text.trim() {
        "" => Some(0),
        text => text.parse().ok().filter(|percent| *percent <= 100),
    }
}

/// Percentages with those that were left out, unless they add up to more than 100.
fn complete(percents: Vec<u64>) -> Option<Vec<u64>> {
    let left = 100_u64.checked_sub(percents.iter().sum())?;
    let missing = percents.iter().filter(|percent| **percent == 0).count() as u64;
    let share = left.checked_div(missing).unwrap_or(0);
    Some(percents.iter().map(|&percent| if percent == 0 { share } else { percent }).collect())
}

/// Percentages that add up to 100: what is left over goes to the last of the largest, as in fio,
/// which looks sizes up in order of their percentages and ends at the last.
fn whole(mut percents: Vec<u64>) -> Vec<u64> {
    let left = 100 - percents.iter().sum::<u64>();
    if let Some(largest) = percents.iter_mut().max() {
        *largest += left;
    }
    percents
}
