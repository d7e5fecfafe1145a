//! A result as JSON: fio's own keys (`fio --output-format=json`, fio 3.36), in which a run looks like
//! fio's, and one key of ours (DESIGN, "JSON of a run").
//!
//! The order of keys is fixed, and everything but `wall_s` and `commit` is the same for the same
//! stack, job and seed.

mod fio;
mod sections;

use super::counts::ZoneReport;
use super::criterion::criterion;
use super::load::RoundsRun;
use super::outcome::Outcome;
use fio::LatencyDetail;
use nandscape_ftl::coupled::CoupledCounts;
use nandscape_ftl::{Detail, MapCounts};
use nandscape_workload::Direction;
use nandscape_workload::engine::JobResult;
use nandscape_workload::replay::TraceCounts;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// The version of this program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

impl Outcome {
    /// The whole result; `commit` is what the program was built from.
    #[must_use]
    pub fn to_json(&self, commit: &str) -> Value {
        self.with_detail(commit, LatencyDetail::Percentiles)
    }

    /// The same, and latencies by bin: what fio calls json+.
    #[must_use]
    pub fn to_json_plus(&self, commit: &str) -> Value {
        self.with_detail(commit, LatencyDetail::Bins)
    }

    fn with_detail(&self, commit: &str, detail: LatencyDetail) -> Value {
        let mut json = self.fio(detail);
        json["nandscape"] = self.ours(commit);
        json
    }
}

/// What a coupled SSD counts, with the time of collection per victim, per page moved and per sector reclaimed.
fn coupled(counts: &CoupledCounts) -> Value {
    let mut out = json!(counts);
    let mean = |ns: u64, count: u64| (count > 0).then(|| ns as f64 / count as f64);
    out["collect_ns_mean"] = json!(mean(counts.collect_ns, counts.collected));
    out["collect_media_ns_mean"] = json!(mean(counts.collect_media_ns, counts.collected));
    out["moved_page_ns_mean"] = json!(mean(counts.collect_ns, counts.moved));
    out["reclaimed_sector_ns_mean"] = json!(mean(counts.collect_ns, counts.reclaimed));
    out
}

impl Outcome {
    /// What only the kind of FTL counts, and what the core of its firmware does; their keys.
    fn detail_json(&self) -> impl Iterator<Item = (&'static str, Value)> {
        let own = match &self.ftl_detail {
            Detail::Pblk(detail) => ("pad_units", detail.pad_units.clone().into()),
            Detail::Device(detail) => ("device", json!(detail)),
            Detail::Zoned(counts) => ("zones", zones(counts, self.zones.as_ref())),
            Detail::Interval(counts) => ("interval", json!(counts)),
            Detail::Coupled(counts) => ("coupled", coupled(counts)),
        };
        let firmware = self.ftl.firmware.as_ref().map(|counts| ("firmware", json!(counts)));
        std::iter::once(own).chain(firmware)
    }

    fn ours(&self, commit: &str) -> Value {
        let pblk = match &self.ftl_detail {
            Detail::Pblk(detail) => Some(detail),
            _ => None,
        };
        let mut ours = Map::new();
        let mut put = |key: &str, value: Value| ours.insert(key.into(), value);
        for (key, value) in self.what_ran(commit) {
            put(key, value);
        }
        if let Some(counts) = &self.trace {
            put("trace", trace(counts));
        }
        if let Some(report) = &self.flowops {
            put("wml", sections::wml(report));
        }
        put("totals", sections::totals(&self.workload.totals()));
        for (key, value) in self.device_json() {
            put(key, value);
        }
        put("waf", self.waf_json());
        for (key, value) in self.cache_json() {
            put(key, value);
        }
        put("sectors", json!(self.ftl.sectors));
        put("erases", self.ftl.erases.into());
        put("gc", self.gc_json());
        if let Some(detail) = pblk {
            put("buffers", json!(detail.buffers));
        }
        put("flush", json!(self.ftl.flush));
        put("reads", self.reads_json());
        put("writes", self.writes_json());
        put("discards", json!({ "sectors": self.ftl.host.discarded }));
        put("lines", json!({ "valid_histogram": self.line_valid }));
        self.detail_json().for_each(|(key, value)| drop(put(key, value)));
        put("steady", self.not_steady.is_none().into());
        put("steady_reason", self.not_steady.clone().into());
        put("steady_criterion", criterion(self.rounds.is_some()).into());
        if let Some(run) = &self.rounds {
            put("until_steady", rounds(run));
        }
        if self.interrupted {
            put("interrupted", true.into());
        }
        put("warnings", self.warnings.clone().into());
        put("map", self.map_json(pblk.and_then(|detail| detail.map.as_ref())));
        put("memory", self.memory_json());
        put("wear", self.wear_json());
        if let Some(counts) = pblk.and_then(|detail| detail.cpu.as_ref()) {
            let cpu = sections::host_cpu(counts, &self.ftl.flush, self.virtual_time);
            put("host_cpu", cpu);
        }
        if self.fs.is_some() || self.stack.ftl.charges_host() {
            put("host", sections::host_cores(&self.cores));
        }
        let busy = sections::utilisation(&self.utilisation, &self.link, self.virtual_time);
        put("utilisation", busy);
        put("queue", sections::queue(&self.queue, self.virtual_time));
        if let Some(law) = &self.law {
            put("theory", json!({ "law": law.name, "waf": law.waf, "spare": law.spare }));
        }
        put("link", sections::link(&self.link, self.virtual_time));
        put("latency_cdf", sections::latency_cdf(&self.workload.jobs));
        put("series", self.series.iter().map(sections::point).collect());
        put("resolved_stack", self.stack.toml.clone().into());
        put("resolved_stack_hash", format!("{:016x}", self.stack.hash()).into());
        Value::Object(ours)
    }

    /// What was between jobs and the device, and which way their I/O went.
    fn cache_json(&self) -> Vec<(&'static str, Value)> {
        let mut all = Vec::new();
        match (&self.stack.fs, &self.fs) {
            (Some(stack), Some(counts)) => all.push(("fs", sections::fs(stack, counts))),
            (None, Some(counts)) => all.push(("page_cache", sections::page_cache(counts))),
            _ => {}
        }
        if self.flowops.is_none() {
            let path = |job: &JobResult| self.io_path(job).json(&job.name);
            all.push(("io", self.workload.jobs.iter().map(path).collect()));
        }
        all
    }

    /// The program, what it ran, and for how long.
    fn what_ran(&self, commit: &str) -> [(&'static str, Value); 7] {
        [
            ("version", VERSION.into()),
            ("commit", commit.into()),
            ("stack", self.stack.name.clone().into()),
            ("set", self.stack.set.clone().into()),
            ("seed", self.seed.into()),
            ("virtual_s", self.virtual_time.as_secs_f64().into()),
            ("wall_s", self.wall.measured_s.into()),
        ]
    }

    fn precondition_json(&self) -> Value {
        let mut json = json!({
            "wall_s": self.wall.precondition_s,
            "fill_sectors": self.preconditioned.fill_sectors,
            "overwrite_sectors": self.preconditioned.overwrite_sectors,
            "steady": self.preconditioned.steady,
            "state": self.state.map(|state| state.to_string()),
        });
        if self.trace.is_some() {
            json["prefill_sectors"] = self.prefilled.into();
        }
        if let Some(origin) = self.origin {
            json["origin"] = origin.key().into();
        }
        json
    }

    /// Sizes, and the overprovisioning by both definitions.
    fn capacity_json(&self) -> Value {
        let mut json = json!(self.size);
        json["op_raw_percent"] = self.size.op_percent_of_raw().into();
        json["op_usable_percent"] = self.size.op_percent_of_usable().into();
        json["op_effective_percent"] = self.effective_op_percent().into();
        json
    }

    /// The device: what it holds, its keys (null where the FTL leaves nothing of one), and what was written to it.
    fn device_json(&self) -> [(&'static str, Value); 5] {
        let keys = self.stack.device_keys().map(|(key, value)| (key, value.into()));
        [
            ("capacity", self.capacity_json()),
            ("device_label", self.stack.device_label().into()),
            ("device_keys", Value::Object(keys.collect())),
            ("geometry", sections::geometry(&self.stack.media.geometry)),
            ("precondition", self.precondition_json()),
        ]
    }

    /// Factors, and the parts that add up to that of all media writes.
    fn waf_json(&self) -> Value {
        let waf = self.write_amplification();
        let parts = waf.media.map(|_| self.amplification_parts());
        let parts =
            parts.map(|parts| Map::from_iter(parts.map(|(key, part)| (key.into(), part.into()))));
        json!({
            "gc": waf.gc,
            "gc_pad": waf.gc_pad,
            "media": waf.media,
            "fs": self.fs_amplification(),
            "total": self.total_amplification(),
            "parts": parts,
        })
    }

    fn gc_json(&self) -> Value {
        json!({
            "victims": self.ftl.gc.victims,
            "valid_ratio_mean": self.victim_valid_ratio(),
            "in_use_sectors_mean":
                (self.ftl.host.written > 0).then_some(self.ftl.in_use_sectors_mean),
            "empty_victims": self.ftl.gc.empty_victims,
            "forced_flushes": self.ftl.gc.forced_flushes,
        })
    }

    fn reads_json(&self) -> Value {
        json!({
            "sectors": self.ftl.host.read,
            "write_buffer_hits": self.ftl.host.buffer_hits,
            "unwritten": self.ftl.host.unwritten,
            "uncorrectable": self.ftl.media_errors.uncorrectable,
            "mismatches": self.ftl.media_errors.mismatches,
        })
    }

    fn writes_json(&self) -> Value {
        json!({
            "sectors": self.ftl.host.written,
            "stall_ns_max": self.ftl.host.stall_ns_max.0,
        })
    }

    /// The mapping table; the first four keys are there for a resident one, too.
    fn map_json(&self, cached: Option<&MapCounts>) -> Value {
        let counts = cached.copied().unwrap_or_default();
        let mut map = json!({
            "bytes": self.memory.part("map"), "hit_ratio": counts.hit_ratio(),
            "loads": counts.loads, "writebacks": counts.write_backs,
        });
        if let Value::Object(fields) = &mut map {
            if let Some(counts) = cached {
                fields.extend(json!(counts).as_object().cloned().unwrap_or_default());
            }
            fields.extend(self.memory.map.iter().map(part));
        }
        map
    }

    /// Parts of the FTL's RAM, but for the mapping table, which has a section.
    fn memory_json(&self) -> Value {
        let mut memory = Map::from_iter([("ftl_bytes".to_owned(), self.memory.total().into())]);
        let parts = self.memory.parts.iter().filter(|(name, _)| *name != "map");
        memory.extend(parts.map(part));
        memory.insert("media_bytes".to_owned(), self.media_bytes.into());
        if !self.fs_memory.is_empty() {
            let part = |(name, bytes): &(&str, u64)| ((*name).to_owned(), Value::from(*bytes));
            let parts: Map<_, _> = self.fs_memory.iter().map(part).collect();
            memory.insert("fs".to_owned(), parts.into());
        }
        memory.insert("dropped_sectors".to_owned(), self.ftl.dropped_sectors.into());
        if self.fs.is_some() {
            let limit = self.stack.host.memory_or_default();
            let host = sections::host_memory(Some(limit), &self.host_memory);
            memory.insert("host".to_owned(), host);
        }
        Value::Object(memory)
    }

    fn wear_json(&self) -> Value {
        json!({
            "chunks": self.wear.chunks,
            "offline": self.wear.offline,
            "erases_total": self.wear.erases,
            "erases_min": self.wear.erases_min,
            "erases_max": self.wear.erases_max,
            "erases_histogram": self.erase_counts,
            "program_failures": self.ftl.media_errors.program_failures,
            "erase_failures": self.ftl.media_errors.erase_failures,
        })
    }
}

fn trace(counts: &TraceCounts) -> Value {
    json!({
        "requests": counts.read.requests,
        "devices": counts.devices,
        "merged": counts.merged,
        "malformed_lines": counts.read.malformed_lines,
        "out_of_order": counts.read.disordered,
        "widened": counts.fit.widened,
        "widened_bytes": counts.fit.widened_bytes,
        "issued_bytes": {
            "read": counts.issued_bytes[Direction::Read as usize],
            "write": counts.issued_bytes[Direction::Write as usize],
            "trim": counts.issued_bytes[Direction::Trim as usize],
        },
        "rmw_reads": counts.rmw_reads,
        "trims_narrowed": counts.fit.narrowed,
        "trims_dropped": counts.fit.dropped,
        "wrapped": counts.fit.folded,
        "issued_late": counts.late,
        "issued_late_max_ns": counts.late_max.0,
    })
}

fn rounds(run: &RoundsRun) -> Value {
    json!({
        "round": run.asked.round.to_string(),
        "rounds_max": run.asked.rounds_max,
        "rounds": run.rounds,
    })
}

/// A part of RAM as key and value.
fn part((name, bytes): &(&'static str, u64)) -> (String, Value) {
    (format!("{name}_bytes"), (*bytes).into())
}

/// What a zoned device counted, and its zones at the end.
fn zones(counts: &impl Serialize, report: Option<&ZoneReport>) -> Value {
    let mut json = json!(counts);
    for (key, value) in report.into_iter().flat_map(ZoneReport::json) {
        json[key] = value;
    }
    json
}
