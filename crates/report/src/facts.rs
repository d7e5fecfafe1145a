//! What a reader needs to believe a figure: stack, job, seed, program, geometry, preconditioning, the
//! steady-state criterion, warnings; and the headline figures of a run.

use crate::Report;
use crate::case::Run;
use crate::path::look_up;
use crate::point::each_once;
use crate::units::{bytes, grouped, number, time};
use serde_json::Value;

const SECTOR_BYTES: f64 = 4096.0;

/// Different values of a fact that are shown: names, and phrases.
const NAMES_MAX: usize = 8;
const PHRASES_MAX: usize = 2;

/// A fact: what, and its value.
pub(crate) type Fact = (&'static str, String);

/// What holds for all runs, or what they range over.
pub(crate) fn facts(report: &Report) -> Vec<Fact> {
    type Of<'a> = &'a dyn Fn(&Run) -> Option<String>;
    let facts: [(&'static str, usize, Of<'_>); 9] = [
        ("Stack", NAMES_MAX, &|run| Some(run.stack.clone())),
        ("Job", NAMES_MAX, &|run| Some(run.job.clone())),
        ("Seed", NAMES_MAX, &|run| Some(run.seed.to_string())),
        ("Program", NAMES_MAX, &program),
        ("Geometry", PHRASES_MAX, &geometry),
        ("Capacity", PHRASES_MAX, &capacity),
        ("File system", PHRASES_MAX, &file_system),
        ("Preconditioning", PHRASES_MAX, &precondition),
        ("Measured", PHRASES_MAX, &measured),
    ];
    let facts = facts
        .into_iter()
        .map(|(name, shown, of)| (name, distinct(report.cases.runs().filter_map(of), shown)));
    let facts = facts.chain([("Steady state", steady(report))]);
    facts.filter(|(_, value)| !value.is_empty()).collect()
}

/// The values that come, each once; many are counted instead.
fn distinct(values: impl Iterator<Item = String>, shown: usize) -> String {
    let mut all = each_once(values);
    let more = all.len().saturating_sub(shown);
    all.truncate(shown);
    if more > 0 {
        all.push(format!("and {more} more"));
    }
    all.join(" · ")
}

fn measured(run: &Run) -> Option<String> {
    let seconds = run.ours()["virtual_s"].as_f64()?;
    Some(format!("{} (virtual time)", time(seconds * 1e9)))
}

fn geometry(run: &Run) -> Option<String> {
    let geometry = &run.ours()["geometry"];
    let of = |key: &str| geometry[key].as_u64();
    Some(format!(
        "{} channels × {} units × {} chunks × {} sectors; write unit {} sectors",
        of("groups")?,
        of("units")?,
        of("chunks")?,
        of("sectors")?,
        of("ws_opt")?
    ))
}

fn sectors(value: &Value) -> Option<String> {
    Some(bytes(value.as_f64()? * SECTOR_BYTES))
}

fn capacity(run: &Run) -> Option<String> {
    let capacity = &run.ours()["capacity"];
    // Results of earlier versions have addresses alone.
    let host = capacity.get("usable_sectors").unwrap_or(&capacity["logical_sectors"]);
    let media = sectors(&capacity["physical_sectors"])?;
    let percent = |key: &str| capacity[key].as_f64().map(number);
    let nominal = percent("op_usable_percent").map(|percent| format!(", OP {percent} %"));
    let effective =
        percent("op_effective_percent").map(|percent| format!(", {percent} % effective"));
    let op = [nominal, effective].into_iter().flatten().collect::<String>();
    Some(format!("{media} on media, {} for the host{op}", sectors(host)?))
}

/// Of runs on files only.
fn file_system(run: &Run) -> Option<String> {
    let fs = &run.ours()["fs"];
    let of = |key: &str| fs[key].as_str();
    Some(format!("{}, data={}, commit={}", of("kind")?, of("data")?, of("commit")?))
}

fn precondition(run: &Run) -> Option<String> {
    let written = &run.ours()["precondition"];
    let (filled, over) =
        (sectors(&written["fill_sectors"])?, sectors(&written["overwrite_sectors"])?);
    Some(match written["origin"].as_str() {
        Some("image") => format!("{filled} of an image"),
        Some(_) => format!("{filled}, as another run left it"),
        None if is_fresh(written) => "none (fresh device)".to_owned(),
        None => format!("{filled} written in order, then {over} overwritten at random, untimed"),
    })
}

/// Whether nothing was written before the measured phase.
fn is_fresh(written: &Value) -> bool {
    ["fill_sectors", "overwrite_sectors"].iter().all(|key| written[key].as_u64() == Some(0))
}

fn program(run: &Run) -> Option<String> {
    let (version, commit) = (run.ours()["version"].as_str()?, run.ours()["commit"].as_str()?);
    Some(format!("nandscape {version} ({commit})"))
}

/// The criterion, and how many runs met it.
fn steady(report: &Report) -> String {
    let judged: Vec<bool> =
        report.cases.runs().filter_map(|run| run.ours()["steady"].as_bool()).collect();
    let met = judged.iter().filter(|met| **met).count();
    let verdict = match (met, judged.len()) {
        (_, 0) => return String::new(),
        (1, 1) => "reached".to_owned(),
        (0, 1) => "not reached".to_owned(),
        (met, runs) => format!("reached by {met} of {runs} runs"),
    };
    let criterion = report.cases.runs().find_map(|run| run.ours()["steady_criterion"].as_str());
    criterion.map_or(verdict.clone(), |criterion| format!("{verdict}. Criterion: {criterion}"))
}

/// The figures of a run that are asked for first: what, value, and what it is made of.
pub(crate) fn headlines(run: &Run) -> Vec<(String, String, String)> {
    let requests = ["read", "write", "trim"].into_iter().filter_map(|key| request(run, key));
    requests.chain(flushes(run)).chain(own(run)).collect()
}

fn jobs(run: &Run) -> impl Iterator<Item = &Value> {
    run.result["jobs"].as_array().into_iter().flatten()
}

fn tile(name: &str, value: String, detail: String) -> (String, String, String) {
    (name.to_owned(), value, detail)
}

/// Requests of all jobs together.
fn request(run: &Run, key: &str) -> Option<(String, String, String)> {
    let rate = |of: &str| look_up(&run.result, &format!("all.{key}.{of}")).flatten();
    look_up(&run.result, &format!("all.{key}.total_ios")).flatten().filter(|ios| *ios > 0.0)?;
    let tail =
        tail(run, key, "clat_ns").map_or_else(String::new, |tail| format!(", p99 {}", time(tail)));
    let name = format!("{}{} IOPS", key[..1].to_uppercase(), &key[1..]);
    let shown = |rate: Option<String>| rate.unwrap_or_else(|| "n/a".to_owned());
    let value = shown(rate("iops").map(number));
    let bandwidth = shown(rate("bw_bytes").map(|rate| format!("{}/s", bytes(rate))));
    Some(tile(&name, value, format!("{bandwidth}{tail}")))
}

fn flushes(run: &Run) -> Option<(String, String, String)> {
    let count: f64 = jobs(run).filter_map(|job| job["sync"]["total_ios"].as_f64()).sum();
    let count_of = format!("{} fsyncs", grouped(count as u64));
    match tail(run, "sync", "lat_ns") {
        Some(tail) => Some(tile("fsync p99", time(tail), count_of)),
        None => {
            let mean = look_up(&run.result, "all.sync.lat_ns.mean").flatten()?;
            Some(tile("fsync mean", time(mean), count_of))
        }
    }
}

/// The 99th percentile over all jobs, if there are enough requests for it.
fn tail(run: &Run, key: &str, latency: &str) -> Option<f64> {
    look_up(&run.result, &format!("all.{key}.{latency}.p99")).flatten()
}

fn own(run: &Run) -> Vec<(String, String, String)> {
    let ours = run.ours();
    let mut tiles = Vec::new();
    tiles.extend(amplification(&ours["waf"]));
    if let (Some(erases), Some(valid)) =
        (ours["erases"].as_u64(), ours["gc"]["valid_ratio_mean"].as_f64())
    {
        let detail = format!("victims {} % valid on average", number(100.0 * valid));
        tiles.push(tile("Chunks erased", grouped(erases), detail));
    }
    if let Some(ftl) = ours["memory"]["ftl_bytes"].as_f64() {
        let map = ours["map"]["bytes"]
            .as_f64()
            .map_or_else(String::new, |map| format!("mapping table {}", bytes(map)));
        tiles.push(tile("FTL memory", bytes(ftl), map));
    }
    tiles.extend(map_cache(&ours["map"]));
    tiles.extend(journal(ours));
    tiles.extend(page_cache(&ours["fs"]["cache"]));
    tiles
}

/// Bytes that media wrote for each that the application wrote, and what they are made of; of results of earlier versions, for
/// each that the device took.
fn amplification(waf: &Value) -> Option<(String, String, String)> {
    let part = |key: &str, name: &str| {
        waf[key].as_f64().map(|factor| format!("{name} {}", number(factor)))
    };
    let (factor, of) = match waf["total"].as_f64() {
        Some(total) => (total, "media writes per byte that jobs wrote"),
        None => (waf["media"].as_f64()?, "media writes per sector that the host wrote"),
    };
    let parts = [part("fs", "FS"), part("media", "device"), part("gc", "GC alone")];
    let parts = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
    Some(tile("Write amplification", number(factor), format!("{of}; {parts}")))
}

/// What a file system made of what jobs wrote to files.
fn journal(ours: &Value) -> Option<(String, String, String)> {
    let (factor, journal) = (ours["waf"]["fs"].as_f64()?, &ours["fs"]["journal"]);
    let of = |key: &str| journal[key].as_u64().map(grouped);
    let detail = format!("{} commits, {} blocks to the journal", of("commits")?, of("blocks")?);
    Some(tile("FS write amplification", number(factor), detail))
}

fn page_cache(cache: &Value) -> Option<(String, String, String)> {
    let (hits, misses) = (cache["hits"].as_u64()?, cache["misses"].as_u64()?);
    let pages = hits + misses;
    let share = || format!("{} %", number(100.0 * hits as f64 / pages as f64));
    (pages > 0).then(|| tile("Page cache hits", share(), format!("{} pages read", grouped(pages))))
}

/// Only a map that is not all in memory has misses.
fn map_cache(map: &Value) -> Option<(String, String, String)> {
    let (hits, loads) = (map["hit_ratio"].as_f64()?, map["loads"].as_u64()?);
    let shown = hits < 1.0 || loads > 0;
    let writebacks = map["writebacks"].as_u64().unwrap_or(0);
    let detail = format!("{} loads, {} written back", grouped(loads), grouped(writebacks));
    shown.then(|| tile("Map cache hits", format!("{} %", number(100.0 * hits)), detail))
}
