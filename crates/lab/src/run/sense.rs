//! Whether figures make physical sense: what limited a run, Little's law, and the write amplification that theory has for
//! its load.

use super::counts::Counts;
use super::load::Measurement;
use super::queue::share;
use crate::stack::Stack;
use nandscape_block::SECTOR_BYTES;
use nandscape_ftl::{DeviceSize, FtlReport, VictimLaw};
use nandscape_media::Utilisation;
use nandscape_rt::Nanos;
use nandscape_rt::host::CoreTimes;
use nandscape_theory::{fifo_amplification, greedy_amplification};
use nandscape_workload::engine::{DirectionResult, JobResult};

/// Share of a resource's time from which on it limits a run.
const LIMITS: f64 = 0.85;
/// Share of the time of parallel units below which requests wait for something else.
const IDLE: f64 = 0.7;
/// How far the requests of closed jobs may be above their depth, in parts of it.
const LITTLE: f64 = 0.02;

/// Shares of time in which parallel units were busy.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Busy {
    /// Of all.
    pub mean: f64,
    /// Of the one that was busy least.
    pub least: f64,
    /// Of the one that was busy most.
    pub most: f64,
}

impl Busy {
    /// Of units during `length`. What was in progress at the end counts whole, so shares are cut off at one.
    #[must_use]
    pub fn of(utilisation: &Utilisation, length: Nanos) -> Self {
        let shares = || utilisation.units.iter().map(|busy| share(*busy, length));
        if utilisation.units.is_empty() {
            return Self::default();
        }
        Self {
            mean: shares().sum::<f64>() / utilisation.units.len() as f64,
            least: shares().fold(1.0, f64::min),
            most: shares().fold(0.0, f64::max),
        }
    }
}

/// The overprovisioning that collection works with, in percent of what the device holds: sectors in use beyond that. `None`
/// where nothing is collected, where the device is not full, and where addresses are more than it holds.
pub(super) fn effective_op_percent(size: &DeviceSize, ftl: &FtlReport) -> Option<f64> {
    let (in_use, holds) = (ftl.in_use_sectors_mean, size.live_sectors as f64);
    let works = ftl.gc.victims > 0 && ftl.host.written > 0;
    let says = works && size.live_sectors == size.logical_sectors && in_use > holds;
    says.then(|| 100.0 * (in_use / holds - 1.0))
}

/// The write amplification of uniform random writes of a mapping unit, as theory has it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Law {
    /// "greedy" or "fifo".
    pub name: &'static str,
    /// The write amplification.
    pub waf: f64,
    /// Sectors that were in use beyond the logical ones, in parts of those: effective overprovisioning.
    pub spare: f64,
}

impl Law {
    /// That of a load that writes uniformly, if theory has one for the FTL's victims.
    pub(super) fn of(stack: &Stack, size: &DeviceSize, measured: &Measurement) -> Option<Self> {
        // A file system or a page cache sends something else to the device.
        let unit = measured.uniform_bytes.filter(|_| measured.counts.fs.is_none())?;
        let ftl = &measured.counts.ftl;
        let (law, map_unit) = stack.ftl.victim_law()?;
        if unit != map_unit || ftl.sectors.gc == 0 {
            return None;
        }
        let alpha = ftl.in_use_sectors_mean / size.logical_sectors as f64;
        let units = u64::from(size.erase_unit_data_sectors) * SECTOR_BYTES / unit;
        let (name, waf) = match law {
            VictimLaw::Greedy => ("greedy", greedy_amplification(units as u32, 1.0 / alpha)),
            VictimLaw::Fifo => ("fifo", fifo_amplification(alpha)),
        };
        (alpha > 1.0).then_some(Self { name, waf, spare: alpha - 1.0 })
    }
}

/// What a reader should know before believing the figures of a run.
pub(super) fn warnings(measured: &Measurement) -> impl Iterator<Item = String> {
    limit(&measured.counts, measured.length).into_iter().chain(little(measured))
}

/// On requests that waited while nothing in the model was busy: the FTL makes them wait.
fn limit(counts: &Counts, length: Nanos) -> Option<String> {
    let Counts { utilisation, link, queue, cores, .. } = counts;
    let busy = Busy::of(utilisation, length);
    let crossing = share(link.to_device_busy.saturating_add(link.to_host_busy), length);
    let used = |core: &CoreTimes| share(core.threads.saturating_add(core.ftl), length);
    let core = cores.iter().map(used).fold(0.0, f64::max);
    // As many requests as units may wait for one of these each.
    let waits = queue.mean(length) >= utilisation.units.len().max(1) as f64;
    let idle = busy.mean < IDLE && crossing < LIMITS && core < LIMITS;
    (waits && idle && queue.occupied_share(length) > LIMITS).then(|| {
        format!(
            "the FTL, not the media, limits this run: units {:.0} % busy ({:.0} to {:.0} %) while {:.0} requests were in the \
             device on average, and at least one for {:.0} % of the time",
            100.0 * busy.mean,
            100.0 * busy.least,
            100.0 * busy.most,
            queue.mean(length),
            100.0 * queue.occupied_share(length)
        )
    })
}

/// Little's law: jobs that keep a number of requests in flight cannot have more of them, on average, than that.
fn little(measured: &Measurement) -> Option<String> {
    // Of a trace the time in its own queue counts; of flowops a thread's.
    if measured.trace.is_some() || measured.flowops.is_some() {
        return None;
    }
    let exceeds = |job: &&JobResult| {
        let time_ns =
            |direction: &DirectionResult| direction.ios as f64 * direction.latency.mean_ns();
        let all_ns = job.directions.iter().map(time_ns).sum::<f64>();
        let longest = job.directions.iter().map(|direction| direction.latency.max()).max();
        // Requests that were in flight when counting began count whole.
        let counted = job.runtime.max(job.ended.saturating_sub(job.began)).0 as f64;
        let most_ns = counted * (1.0 + LITTLE) + longest.unwrap_or_default().0 as f64;
        all_ns > f64::from(job.depth) * f64::from(job.jobs) * most_ns
    };
    measured.results.jobs.iter().find(exceeds).map(|job| {
        format!(
            "a defect of the program: by Little's law job {} had more requests in flight than its depth of {} permits",
            job.name, job.depth
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::queue::DeviceQueue;
    use nandscape_block::{Done, Submit};

    fn counts(units_ns: &[u64], queued: u64) -> Counts {
        let units = units_ns.iter().map(|&ns| Nanos(ns)).collect();
        let utilisation = Utilisation { units, ..Utilisation::default() };
        let mut queue = DeviceQueue::default();
        for _ in 0..queued {
            queue.submitted(Nanos(0), &Submit::Done(Done::ok(Nanos(100))));
        }
        Counts { utilisation, queue: queue.counts(Nanos(100)), ..Counts::default() }
    }

    /// Units that are idle while requests wait are said to be; a device with less to do than it has units is not.
    #[test]
    fn idle_units_are_noticed_while_requests_wait() {
        let said = |units: &[u64], queued| limit(&counts(units, queued), Nanos(100));
        let expected = "the FTL, not the media, limits this run: units 20 % busy (10 to 30 %) while 4 requests were in \
                        the device on average, and at least one for 100 % of the time";
        assert_eq!(said(&[10, 30], 4).as_deref(), Some(expected));
        assert_eq!(said(&[90, 80], 4), None, "busy units");
        assert_eq!(said(&[10, 30], 1), None, "too few requests for all units");
    }

    /// Shares of units are cut off at one.
    #[test]
    fn shares_of_units() {
        let busy = Busy::of(&counts(&[50, 130, 0], 0).utilisation, Nanos(100));
        assert_eq!(busy, Busy { mean: 0.5, least: 0.0, most: 1.0 });
        assert_eq!(Busy::of(&Utilisation::default(), Nanos(100)), Busy::default());
    }
}
