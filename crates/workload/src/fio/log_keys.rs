//! The keys that ask for logs. Names and meanings are those of fio's manual ("Measurements and
//! reporting"); docs of [`Logs`](super::spec::Logs) say what each does here.

use super::value::{Setter, Value};
use nandscape_rt::Nanos;

/// fio's coarsest histograms have 1,856 bins / 2^6.
const COARSENESS_MAX: u64 = 6;

/// Stores a parsed value, without remark.
macro_rules! store {
    ($field:ident, $parse:expr) => {
        |job, value| {
            let parse: fn(&Value<'_>) -> Result<_, String> = $parse;
            job.logs.$field = parse(value)?;
            Ok(None)
        }
    };
}

/// Every key of logs.
pub(super) const KEYS: &[(&[&str], Setter)] = &[
    (&["write_bw_log"], store!(bandwidth, |v| Ok(Some(prefix(v))))),
    (&["write_lat_log"], store!(latency, |v| Ok(Some(prefix(v))))),
    (&["write_iops_log"], store!(iops, |v| Ok(Some(prefix(v))))),
    (&["write_hist_log"], store!(histogram, |v| Ok(Some(prefix(v))))),
    (&["log_avg_msec"], store!(average, milliseconds)),
    (&["log_hist_msec"], store!(histogram_interval, milliseconds)),
    (
        &["log_hist_coarseness"],
        store!(histogram_coarseness, |v| v.count(0, COARSENESS_MAX).map(|n| n as u32)),
    ),
    (&["log_max_value", "log_window_value"], store!(max_value, window_value)),
    (&["log_offset"], store!(offset, |v| v.flag())),
    (&["per_job_logs"], store!(per_job, |v| v.flag())),
];

fn prefix(value: &Value<'_>) -> String {
    value.text.unwrap_or_default().into()
}

fn milliseconds(value: &Value<'_>) -> Result<Nanos, String> {
    let most = Nanos::MAX.0 / 1_000_000;
    value.count(0, most).map(Nanos::from_ms)
}

/// The largest value of a window rather than the mean; newer versions of fio have names for both.
fn window_value(value: &Value<'_>) -> Result<bool, String> {
    match value.text {
        Some("avg") => Ok(false),
        Some("max") => Ok(true),
        _ => value.flag().map_err(|_| "avg, max, 0 or 1".into()),
    }
}
