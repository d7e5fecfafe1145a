//! Numbers of a result by their path, such as `waf.gc`, `write.iops`, `jobs.1.read.clat_ns.p99`.

use serde_json::{Map, Value};

/// The number at `path` of a result: a path below `nandscape`, or of the first job, or from the top.
/// A number in a path counts list entries from 0, `pN` is the N-th percentile; true is 1, false 0.
///
/// `None` if there is nothing at all under this path; `Some(None)` if there is, and it is no number.
pub(crate) fn look_up(result: &Value, path: &str) -> Option<Option<f64>> {
    let first_job = result.get("jobs").and_then(|jobs| jobs.get(0));
    let roots = [result.get("nandscape"), first_job, Some(result)];
    roots.into_iter().flatten().find_map(|root| below(root, path)).map(number)
}

/// Keys may hold dots themselves, so a step may end at any of them.
fn below<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    let deeper = |at: usize| below(step(value, &path[..at])?, &path[at + 1..]);
    step(value, path).or_else(|| path.match_indices('.').find_map(|(at, _)| deeper(at)))
}

fn step<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    match value {
        Value::Object(keys) => keys.get(key).or_else(|| percentile(keys, key)),
        Value::Array(entries) => entries.get(key.parse::<usize>().ok()?),
        _ => None,
    }
}

/// Without I/Os there are no percentiles, and yet asking for one is no mistake.
fn percentile<'a>(latency: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    let rank: f64 = key.strip_prefix('p')?.parse().ok()?;
    let Some(ranks) = latency.get("percentile") else {
        return latency.contains_key("stddev").then_some(&Value::Null);
    };
    ranks.get(format!("{rank:.6}"))
}

fn number(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_bool().map(|truth| if truth { 1.0 } else { 0.0 }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A path finds what a reader of the JSON would point at, and tells "no number" from "no such key".
    #[test]
    fn paths_find_numbers() {
        let result = json!({
            "jobs": [
                { "write": { "iops": 10.5, "clat_ns": { "stddev": 0.0, "percentile": { "99.900000": 7 } } },
                  "read": { "clat_ns": { "stddev": 0.0 } } },
                { "write": { "iops": 20.5 } },
            ],
            "nandscape": { "waf": { "gc": 1.5, "fs": null }, "steady": true, "series": [{ "t_s": 2 }] },
        });
        let cases = [
            ("waf.gc", Some(Some(1.5))),
            ("nandscape.waf.gc", Some(Some(1.5))),
            ("waf.fs", Some(None)),
            ("waf.gv", None),
            ("steady", Some(Some(1.0))),
            ("series.0.t_s", Some(Some(2.0))),
            ("write.iops", Some(Some(10.5))),
            ("jobs.1.write.iops", Some(Some(20.5))),
            ("jobs.2.write.iops", None),
            ("write.clat_ns.p99.9", Some(Some(7.0))),
            ("write.clat_ns.percentile.99.900000", Some(Some(7.0))),
            ("write.clat_ns.p98", None),
            ("read.clat_ns.p99", Some(None)),
            ("", None),
            ("..", None),
        ];
        for (path, expected) in cases {
            assert_eq!(look_up(&result, path), expected, "{path}");
        }
    }
}
