//! `steadystate`: the criterion by which a job has reached steady state.

use super::rules::SteadyCriterion;
use super::value::Value;

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
