//! A job's figures on a certain device: percentages resolved, limits checked.

use super::draw::{Order, Range};
use super::error::EngineError;
use super::shadow;
use crate::fio::{Amount, Direction, Distribution, JobSpec, Mix};
use nandscape_block::{DeviceCaps, Fua, SECTOR_BYTES};
use nandscape_rt::Nanos;

/// What a job does on this device.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) range: Range,
    pub(super) order: Order,
    /// What a loop transfers.
    pub(super) loop_bytes: u64,
    /// I/Os of a loop at most.
    pub(super) loop_ios: u64,
    /// Time from one I/O to the next at the allowed rate, by direction.
    pub(super) pace: Option<[Pace; 3]>,
    /// How `sync` is carried out.
    pub(super) durability: Durability,
    /// Largest bio; 0 is any.
    pub(super) bio_sectors: u32,
    /// Whether writes carry tags.
    pub(super) tagged: bool,
}

/// How a completed write is made durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Durability {
    /// Not at all, it was not asked for.
    None,
    /// By the flag.
    Fua,
    /// By a flush behind it, as kernels do for devices without the flag.
    Flush,
}

/// A rate in units a second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    units_per_s: Option<u64>,
    units_per_io: u64,
}

impl Pace {
    /// When the I/O behind `issued` others may start, from the job's start; a job that fell behind
    /// catches up, as in fio.
    pub(super) fn due(&self, issued: u64) -> Nanos {
        let Some(rate) = self.units_per_s else { return Nanos::ZERO };
        let units = u128::from(issued) * u128::from(self.units_per_io);
        let ns = units * u128::from(Nanos::from_secs(1).0) / u128::from(rate);
        Nanos(ns.try_into().unwrap_or(u64::MAX))
    }
}

impl Plan {
    /// The plan of `spec` on a device with these capabilities.
    pub(super) fn new(spec: &JobSpec, caps: &DeviceCaps) -> Result<Self, EngineError> {
        let fail = |problem| refuse(spec, problem);
        supported(spec, caps).map_err(|problem| fail(problem.into()))?;
        let (base, bytes) = extent(spec, caps).map_err(fail)?;
        let used = Direction::ALL.into_iter().filter(|d| spec.pattern.mix.has(*d));
        let blocks = used.map(|direction| spec.block_bytes[direction as usize]);
        let smallest = blocks.min().unwrap_or(SECTOR_BYTES);
        let whole = bytes - bytes % smallest;
        Ok(Self {
            range: Range {
                base: base / SECTOR_BYTES,
                sectors: bytes / SECTOR_BYTES,
                block_sectors: spec.block_bytes.map(|bytes| (bytes / SECTOR_BYTES) as u32),
            },
            order: order(spec),
            loop_bytes: spec
                .io_size
                .map(|amount| amount.of(bytes))
                .filter(|bytes| *bytes > 0)
                .unwrap_or(whole),
            loop_ios: spec.number_ios.unwrap_or(u64::MAX),
            pace: pace(spec),
            durability: match (spec.sync, caps.fua) {
                (false, _) => Durability::None,
                (true, Fua::Honoured) => Durability::Fua,
                (true, Fua::Refused) => Durability::Flush,
            },
            bio_sectors: caps.max_sectors,
            tagged: caps.keeps_content && caps.sectors <= shadow::SECTORS_MAX,
        })
    }
}

/// The error that this job does not fit the device.
pub(super) fn refuse(spec: &JobSpec, problem: String) -> EngineError {
    EngineError::Job { job: spec.name.clone(), place: spec.place.clone(), problem }
}

/// Refuses what the device lacks.
fn supported(spec: &JobSpec, caps: &DeviceCaps) -> Result<(), &'static str> {
    if spec.pattern.mix.has(Direction::Trim) && caps.discard_sectors == 0 {
        return Err("the device does not support trims");
    }
    if spec.verify && !caps.keeps_content {
        return Err("verify needs a device that keeps content (payload = \"tags\" or \"bytes\")");
    }
    if spec.verify && caps.sectors > shadow::SECTORS_MAX {
        return Err("verify works on devices up to 64 TiB");
    }
    Ok(())
}

/// Start and length of a job's range in bytes.
fn extent(spec: &JobSpec, caps: &DeviceCaps) -> Result<(u64, u64), String> {
    let device = caps.sectors.saturating_mul(SECTOR_BYTES);
    let used = Direction::ALL.into_iter().filter(|d| spec.pattern.mix.has(*d));
    let largest = used.map(|d| spec.block_bytes[d as usize]).max().unwrap_or(SECTOR_BYTES);
    let mut offset = spec.offset.of(device);
    if matches!(spec.offset, Amount::Percent(_)) {
        offset -= offset % largest;
    }
    let rest = device.saturating_sub(offset);
    let bytes = match spec.size {
        None => rest,
        Some(Amount::Bytes(bytes)) if bytes <= rest => bytes,
        Some(Amount::Bytes(bytes)) => {
            return Err(format!(
                "offset {offset} and size {bytes} reach beyond the device's {device} bytes"
            ));
        }
        Some(percent) => percent.of(device).min(rest),
    };
    if bytes < largest {
        return Err(format!("its {bytes} bytes hold no block of {largest}"));
    }
    Ok((offset, bytes))
}

fn order(spec: &JobSpec) -> Order {
    match (spec.pattern.random, spec.distribution) {
        (false, _) => Order::Sequential,
        (true, Distribution::Uniform) if spec.random_map => Order::RandomMap,
        (true, distribution) => Order::Independent(distribution),
    }
}

fn pace(spec: &JobSpec) -> Option<[Pace; 3]> {
    let limited = spec.rate.iter().chain(&spec.rate_iops).any(Option::is_some);
    limited.then(|| {
        Direction::ALL.map(|direction| {
            let index = direction as usize;
            match (spec.rate_iops[index], spec.rate[index]) {
                (Some(iops), _) => Pace { units_per_s: Some(iops), units_per_io: 1 },
                (None, rate) => Pace { units_per_s: rate, units_per_io: spec.block_bytes[index] },
            }
        })
    })
}

/// Whether a job's writes are read again behind them.
pub(super) fn rereads(spec: &JobSpec) -> bool {
    let writes = !matches!(spec.pattern.mix, Mix::Only(Direction::Read | Direction::Trim));
    spec.verify && spec.do_verify && writes
}
