//! The metrics of a result: path, unit, meaning, and the results that have each.
//!
//! This is the only description of the numbers of a result. `nandscape metrics` prints it, the tables of
//! docs/formats/result.md are made from it, and a path that a user asks for is checked with it before anything runs
//! ([`check`]). A test of the command line compares it with the numbers of real results: each is described exactly once.
//!
//! Paths have placeholders: `<n>` is a number of a list entry, from 0, `<direction>` is read, write or trim, `<percent>` a
//! percentile such as 99.9. What begins with `jobs.<n>.` may leave that out for the first job.

mod derived;
mod fs;
mod ftl;
mod host;
mod job;
mod pattern;
mod run;
mod workload;

use std::fmt::Write;

/// Metrics that are described together, in one table of docs/formats/result.md.
#[derive(Debug)]
pub struct Group {
    /// What the table is called there.
    pub name: &'static str,
    /// What each path begins with, without the dot after it.
    pub prefix: &'static str,
    /// The results that have them, as Markdown.
    pub when: &'static str,
    /// Whether they are computed when a path is looked up: the JSON does not have them.
    pub derived: bool,
    /// The metrics.
    pub metrics: &'static [Metric],
}

/// A metric.
#[derive(Debug)]
pub struct Metric {
    /// Its path below the prefix of its group.
    pub name: &'static str,
    /// Its unit; `share` is from 0 to 1.
    pub unit: &'static str,
    /// What it means, as Markdown whose links begin at docs/formats.
    pub meaning: &'static str,
}

const fn metric(name: &'static str, unit: &'static str, meaning: &'static str) -> Metric {
    Metric { name, unit, meaning }
}

/// All metrics, those that most readers look for first.
pub static GROUPS: [&Group; 60] = [
    &ftl::WAF,
    &derived::ALL,
    &derived::ALL_SYNC,
    &job::DIRECTION,
    &job::CLAT,
    &job::LAT,
    &job::SLAT,
    &job::SYNC,
    &job::SYNC_LAT,
    &derived::PERCENTILES,
    &job::JOB,
    &job::JOB_ZONES,
    &job::TOP,
    &run::TOTALS,
    &run::SERIES,
    &run::SERIES_FS,
    &run::SERIES_COUPLED,
    &derived::ENDS,
    &run::RUN,
    &run::GEOMETRY,
    &run::CAPACITY,
    &run::PRECONDITION,
    &run::UNTIL_STEADY,
    &ftl::SECTORS,
    &ftl::GC,
    &ftl::BUFFERS,
    &ftl::FLUSH,
    &ftl::READS,
    &ftl::WRITES,
    &ftl::PAD_UNITS,
    &ftl::DEVICE,
    &ftl::ZONES,
    &ftl::INTERVAL,
    &ftl::COUPLED,
    &ftl::FIRMWARE,
    &ftl::MAP,
    &ftl::MAP_CACHED,
    &ftl::MAP_SSD,
    &run::WEAR,
    &run::UTILISATION,
    &run::QUEUE,
    &run::THEORY,
    &run::LINK,
    &run::CDF,
    &run::MEMORY,
    &run::MEMORY_HOST,
    &run::MEMORY_FS,
    &host::HOST,
    &host::HOST_CPU,
    &host::PAGE_CACHE,
    &host::PAGE_CACHE_CALLS,
    &host::IO,
    &fs::FS,
    &fs::FS_CALLS,
    &fs::EXT4,
    &fs::F2FS,
    &fs::APPEND,
    &fs::FS_CPU,
    &workload::TRACE,
    &workload::WML,
];

/// A metric and the group that it is in.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its group.
    pub group: &'static Group,
    /// The metric.
    pub metric: &'static Metric,
}

impl Entry {
    /// Its path, with placeholders.
    #[must_use]
    pub fn path(&self) -> String {
        match self.group.prefix {
            "" => self.metric.name.to_owned(),
            prefix => format!("{prefix}.{}", self.metric.name),
        }
    }

    /// Whether `path` is one of its paths.
    #[must_use]
    pub fn is_at(&self, path: &str) -> bool {
        let path = path.strip_prefix("nandscape.").unwrap_or(path);
        let pattern = self.path();
        let of_first = pattern.strip_prefix(FIRST_JOB);
        pattern::fits(&pattern, path) || of_first.is_some_and(|rest| pattern::fits(rest, path))
    }
}

/// What may be left out of a path: then it is of the first job.
const FIRST_JOB: &str = "jobs.<n>.";

/// All metrics.
pub fn entries() -> impl Iterator<Item = Entry> {
    let of =
        |group: &'static Group| group.metrics.iter().map(move |metric| Entry { group, metric });
    GROUPS.into_iter().flat_map(of)
}

/// Whether some result may have a number at `path`.
///
/// # Errors
/// No result has; the message suggests a path.
pub fn check(path: &str) -> Result<(), String> {
    if entries().any(|entry| entry.is_at(path)) {
        return Ok(());
    }
    let hint = nearest(path).map_or_else(String::new, |near| format!("; did you mean \"{near}\"?"));
    Err(format!("no result has a metric \"{path}\" (`nandscape metrics` lists them){hint}"))
}

/// The metrics at the path `text`; else those whose path contains it; else those whose description does.
///
/// # Errors
/// No metric has it; the message suggests a path.
pub fn find(text: &str) -> Result<Vec<Entry>, String> {
    let lower = text.trim().to_lowercase();
    let describes = |entry: &Entry| entry.metric.meaning.to_lowercase().contains(&lower);
    let ways: [&dyn Fn(&Entry) -> bool; 3] = [
        &|entry| entry.is_at(text.trim()),
        &|entry| entry.path().to_lowercase().contains(&lower),
        &describes,
    ];
    let found = ways.iter().map(|way| entries().filter(|entry| way(entry)).collect::<Vec<_>>());
    found.into_iter().find(|found| !found.is_empty()).ok_or_else(|| {
        let hint =
            nearest(text).map_or_else(String::new, |near| format!("; did you mean \"{near}\"?"));
        format!("no metric and no description of one contains \"{text}\"{hint}")
    })
}

/// The path that looks most like `path`, if one is near enough.
fn nearest(path: &str) -> Option<String> {
    let short = |pattern: String| {
        let of_first = pattern.strip_prefix(FIRST_JOB).map(str::to_owned);
        [Some(pattern), of_first].into_iter().flatten()
    };
    let all = entries()
        .map(|entry| entry.path())
        .flat_map(short)
        .flat_map(|pattern| pattern::examples(&pattern));
    let near = all.map(|known| (strsim::damerau_levenshtein(path, &known), known));
    let near = near.filter(|(edits, known)| *edits <= 1 + known.len() / 4).min();
    near.map(|(_, known)| known)
}

/// The metrics of these groups as tables, each after a line that says which results have them.
#[must_use]
pub fn table(groups: &[&'static Group]) -> String {
    let mut text = String::new();
    for group in groups {
        let from = if group.derived {
            " Computed by the program: the JSON does not hold them."
        } else {
            ""
        };
        let gap = if text.is_empty() { "" } else { "\n" };
        _ = write!(
            text,
            "{gap}Present: {}.{from}\n\n| Metric | Unit | Meaning |\n|---|---|---|\n",
            group.when
        );
        for metric in group.metrics {
            let path = Entry { group, metric }.path();
            _ = writeln!(text, "| `{path}` | {} | {} |", metric.unit, metric.meaning);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::COURSES;
    use serde_json::json;

    /// Paths are those that results are looked up by: below our key, of the first job, by percentile.
    #[test]
    fn paths_are_checked() {
        for path in [
            "waf.gc",
            "nandscape.waf.gc",
            "write.iops",
            "jobs.3.write.clat_ns.p99.9",
            "read.clat_ns.percentile.99.000000",
            "all.trim.clat_ns.p50",
            "all.sync.lat_ns.p99",
            "iodepth_level.>=64",
            "zones.states.EXP_OPENED",
            "second_half.write.bytes_per_s",
        ] {
            assert_eq!(check(path), Ok(()), "{path}");
        }
        let suggestion = |path: &str| {
            check(path).unwrap_err().rsplit_once("; ").map(|(_, hint)| hint.to_owned())
        };
        assert_eq!(suggestion("waf.gv").as_deref(), Some("did you mean \"waf.gc\"?"));
        assert_eq!(
            suggestion("all.write.ios").as_deref(),
            Some("did you mean \"all.write.iops\"?")
        );
        assert_eq!(
            suggestion("write.clat.p99").as_deref(),
            Some("did you mean \"write.clat_ns.p99\"?")
        );
        assert_eq!(suggestion("zebra"), None);
        for path in
            ["", "waf", "jobs.x.write.iops", "all.write.clat_ns.max", "write.clat_ns.p", "waf.gc.x"]
        {
            assert!(check(path).is_err(), "{path}");
        }
    }

    /// What is computed is found by its path, in a result that has what it is computed from.
    #[test]
    fn derived_metrics_are_computed() {
        let latency = || json!({ "mean": 1.0, "stddev": 1.0, "percentile": { "99.000000": 5 } });
        let direction = || json!({ "iops": 1.0, "bw_bytes": 1, "io_bytes": 1, "total_ios": 100_000, "clat_ns": latency(), "lat_ns": latency() });
        let sync = json!({ "total_ios": 100_000, "lat_ns": latency() });
        let cdf = || json!({ "ns": [5], "share": [1.0] });
        let result = json!({
            "jobs": [{ "read": direction(), "write": direction(), "trim": direction(), "sync": sync, "zone_reset_lat_ns": latency() }],
            "nandscape": {
                "virtual_s": 1.0,
                "latency_cdf": { "read": cdf(), "write": cdf(), "trim": cdf(), "sync": cdf() },
                "series": [{ "t_s": 1.0, "iops": 1.0 }],
            },
        });
        for entry in entries().filter(|entry| entry.group.derived) {
            for path in pattern::examples(&entry.path()) {
                let number = crate::path::look_up(&result, &path).flatten();
                assert!(number.is_some(), "{path}");
            }
        }
    }

    /// No path is described twice.
    #[test]
    fn paths_are_described_once() {
        let mut paths: Vec<String> = entries().map(|entry| entry.path()).collect();
        let all = paths.len();
        paths.sort();
        paths.dedup();
        assert_eq!(paths.len(), all);
    }

    /// Every number of a point of the series that is drawn over time is described.
    #[test]
    fn courses_are_described() {
        // Only results of earlier versions have a hit ratio over time.
        for course in COURSES.into_iter().filter(|course| *course != "map_hit_ratio") {
            assert_eq!(check(&format!("series.0.{course}")), Ok(()), "{course}");
        }
    }

    /// A text selects metrics by path, by a part of it, or by description.
    #[test]
    fn metrics_are_found() {
        let paths =
            |text: &str| -> Vec<String> { find(text).unwrap().iter().map(Entry::path).collect() };
        assert_eq!(paths("all.write.iops"), ["all.<direction>.iops"]);
        assert_eq!(paths("waf.g"), ["waf.gc", "waf.gc_pad"]);
        assert!(paths("mapping blocks").contains(&"waf.media".to_owned()));
        assert!(find("no such thing at all").is_err());
    }
}
