//! `steadystate` and its relatives: when a job has reached steady state, and ends.

use super::value::Value;
use nandscape_rt::Nanos;

/// `steadystate`: what is measured, how, and within which limit it must stay.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SteadyCriterion {
    /// Bandwidth rather than I/Os per second.
    pub bandwidth: bool,
    /// The slope of the least-squares line rather than the largest deviation from the mean.
    pub slope: bool,
    /// The limit is a percentage of the mean rather than a rate.
    pub percent: bool,
    /// The limit.
    pub limit: f64,
}

impl SteadyCriterion {
    /// Its name in fio's results.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match (self.bandwidth, self.slope) {
            (false, false) => "iops",
            (false, true) => "iops_slope",
            (true, false) => "bw",
            (true, true) => "bw_slope",
        }
    }
}

/// `steadystate`, `steadystate_duration`, `steadystate_ramp_time` and `steadystate_check_interval`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SteadyRule {
    /// `steadystate`.
    pub criterion: Option<SteadyCriterion>,
    /// `steadystate_duration`: the window that is judged; zero: none is.
    pub duration: Nanos,
    /// `steadystate_ramp_time`: time before the first interval that is judged.
    pub ramp: Nanos,
    /// `steadystate_check_interval`: length of an interval.
    pub interval: Nanos,
}

impl SteadyRule {
    pub(super) const NONE: Self = Self {
        criterion: None,
        duration: Nanos::ZERO,
        ramp: Nanos::ZERO,
        interval: Nanos::from_secs(1),
    };

    /// Intervals of the window, where a job is judged.
    #[must_use]
    pub fn window(&self) -> Option<u64> {
        self.criterion?;
        (self.duration > Nanos::ZERO).then(|| self.duration.0 / self.interval.0.max(1))
    }
}

/// `KIND:LIMIT` or `KIND:LIMIT%`.
pub(super) fn criterion(value: &Value<'_>) -> Result<SteadyCriterion, String> {
    let expected =
        "iops, iops_slope, bw or bw_slope with a limit, such as iops:5% or bw_slope:100k";
    let (name, limit) = value.named(expected)?;
    let (bandwidth, slope) = match name {
        "iops" => (false, false),
        "iops_slope" => (false, true),
        "bw" => (true, false),
        "bw_slope" => (true, true),
        _ => return Err(expected.into()),
    };
    let limit = limit.ok_or(expected)?.trim();
    let percent = limit.strip_suffix('%');
    let number = match percent {
        Some(number) => number.parse().ok(),
        None if bandwidth => super::units::bytes(limit, value.kb_base).map(|bytes| bytes as f64),
        None => limit.parse().ok(),
    };
    let limit = number.filter(|n: &f64| n.is_finite() && *n >= 0.0).ok_or(expected)?;
    Ok(SteadyCriterion { bandwidth, slope, percent: percent.is_some(), limit })
}
