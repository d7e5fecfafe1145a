//! The one key of ours in a result: what the FTL and the media did (docs/formats/result.md).

use super::{VERSION, curves, fs, host, wml};
use crate::run::course::criterion;
use crate::run::outcome::Outcome;
use crate::run::rounds::RoundsRun;
use nandscape_ftl::pblk::stats::BufferCounts;
use nandscape_workload::trace::TraceCounts;
use serde_json::{Map, Value, json};

impl Outcome {
    pub(super) fn ours(&self, commit: &str) -> Value {
        let mut ours = Map::new();
        let mut put = |key: &str, value: Value| ours.insert(key.into(), value);
        put("version", VERSION.into());
        put("commit", commit.into());
        put("stack", self.stack.name.clone().into());
        put("seed", self.seed.into());
        put("virtual_s", self.virtual_time.as_secs_f64().into());
        put("wall_s", self.wall.measured_s.into());
        if let Some(counts) = &self.trace {
            put("trace", trace(counts));
        }
        if let Some(report) = &self.flowops {
            put("wml", wml::wml(report));
        }
        put("capacity", self.capacity_json());
        put("geometry", curves::geometry(&self.stack.media.geometry));
        put("precondition", self.precondition_json());
        put("waf", self.waf_json());
        if let (Some(stack), Some(counts)) = (&self.stack.fs, &self.fs) {
            put("fs", fs::fs(stack, counts));
        }
        put("sectors", self.sectors_json());
        put("erases", self.ftl.erases.into());
        put("gc", self.gc_json());
        put("buffers", self.ftl.buffers.iter().map(buffer).collect());
        put("flush", self.flush_json());
        put("reads", self.reads_json());
        put("writes", self.writes_json());
        put("discards", json!({ "sectors": self.ftl.discarded }));
        put("lines", json!({ "valid_histogram": self.line_valid }));
        put("pad_units", self.ftl.pad_dist.clone().into());
        put("steady", self.steady.into());
        put("steady_criterion", criterion(self.rounds.is_some()).into());
        if let Some(run) = &self.rounds {
            put("until_steady", rounds(run));
        }
        if self.interrupted {
            put("interrupted", true.into());
        }
        put("warnings", self.warnings.clone().into());
        put("map", self.map_json());
        put("memory", self.memory_json());
        put("wear", self.wear_json());
        if let Some(counts) = &self.ftl.cpu {
            let cpu = host::host_cpu(counts, &self.ftl.flush, self.virtual_time);
            put("host_cpu", cpu);
        }
        put("utilisation", curves::utilisation(&self.utilisation, self.virtual_time));
        put("latency_cdf", curves::latency_cdf(&self.workload.jobs));
        put("series", self.series.iter().map(curves::point).collect());
        put("resolved_stack", self.stack.toml.clone().into());
        put("resolved_stack_hash", format!("{:016x}", self.stack.hash()).into());
        Value::Object(ours)
    }

    fn capacity_json(&self) -> Value {
        json!({
            "physical_sectors": self.size.physical_sectors,
            "logical_sectors": self.size.logical_sectors,
            "lines": self.size.lines,
            "line_sectors": self.size.line_sectors,
        })
    }

    fn precondition_json(&self) -> Value {
        let mut json = json!({
            "wall_s": self.wall.precondition_s,
            "fill_sectors": self.preconditioned.fill_sectors,
            "overwrite_sectors": self.preconditioned.overwrite_sectors,
            "steady": self.preconditioned.steady,
            "state": self.state.map(|state| state.to_string()),
        });
        if let Some(origin) = self.origin {
            json["origin"] = origin.key().into();
        }
        json
    }

    fn waf_json(&self) -> Value {
        let waf = self.write_amplification();
        json!({ "gc": waf.gc, "gc_pad": waf.gc_pad, "media": waf.media, "fs": self.fs_amplification() })
    }

    fn sectors_json(&self) -> Value {
        let sectors = &self.ftl.sectors;
        json!({
            "user": sectors.user,
            "gc": sectors.gc,
            "pad": sectors.pad,
            "line_meta": sectors.line_meta,
            "map": sectors.map,
            "trim": sectors.trim,
            "journal": sectors.journal,
        })
    }

    fn gc_json(&self) -> Value {
        json!({
            "victims": self.ftl.gc.victims,
            "valid_ratio_mean": self.victim_valid_ratio(),
            "in_use_sectors_mean": self.ftl.in_use_sectors_mean,
            "free_rides": self.ftl.gc.free_rides,
            "forced_drains": self.ftl.gc.forced_drains,
        })
    }

    fn flush_json(&self) -> Value {
        let flush = &self.ftl.flush;
        json!({
            "waited": flush.waited,
            "empty": flush.empty,
            "drained": flush.drained,
            "total_ns": flush.total_ns,
            "queue_ns": flush.queue_ns,
            "gc_ns": flush.gc_ns,
            "padding_ns": flush.padding_ns,
            "program_ns": flush.program_ns,
        })
    }

    fn reads_json(&self) -> Value {
        json!({
            "sectors": self.ftl.user_read,
            "ring_hits": self.ftl.ring_hits,
            "uncorrectable": self.ftl.uncorrectable,
            "mismatches": self.ftl.mismatches,
        })
    }

    fn writes_json(&self) -> Value {
        json!({
            "sectors": self.ftl.user_written,
            "stall_ns_max": self.ftl.stall_ns_max.0,
        })
    }

    /// The cached mapping table; the first four keys are there for a resident one, too.
    fn map_json(&self) -> Value {
        let counts = self.ftl.map.unwrap_or_default();
        let mut map = json!({
            "bytes": self.memory.map_bytes, "hit_ratio": counts.hit_ratio(),
            "loads": counts.loads, "writebacks": counts.write_backs,
        });
        let (Some(counts), Value::Object(fields)) = (self.ftl.map, &mut map) else { return map };
        let memory = &self.memory.map;
        let more = json!({
            "host_lookups": {
                "hits": counts.host.hits, "joined": counts.host.joined,
                "misses": counts.host.misses,
            },
            "internal_lookups": {
                "hits": counts.internal.hits, "joined": counts.internal.joined,
                "misses": counts.internal.misses,
            },
            "zero_fills": counts.zero_fills,
            "merge_reads": counts.merge_reads,
            "entries_written": counts.entries_written,
            "evictions_clean": counts.evictions_clean,
            "evictions_dirty": counts.evictions_dirty,
            "no_slot": counts.no_slot,
            "read_sectors": counts.read_sectors,
            "pad_sectors": counts.pad_sectors,
            "copied_sectors": counts.copied_sectors,
            "victims": counts.victims,
            "cache_bytes": memory.cache_bytes,
            "directory_bytes": memory.directory_bytes,
            "slot_bytes": memory.slot_bytes,
            "staging_bytes": memory.staging_bytes,
            "paper_directory_bytes": memory.paper_directory_bytes,
            "paper_bitmap_bytes": memory.paper_bitmap_bytes,
            "index_bytes": memory.index_bytes,
        });
        if let Value::Object(more) = more {
            fields.extend(more);
        }
        map
    }

    fn memory_json(&self) -> Value {
        json!({
            "ftl_bytes": self.memory.total(),
            "buffers_bytes": self.memory.buffers_bytes,
            "bitmap_bytes": self.memory.bitmap_bytes,
            "line_bytes": self.memory.line_bytes,
            "media_bytes": self.media_bytes,
        })
    }

    fn wear_json(&self) -> Value {
        json!({
            "chunks": self.wear.chunks,
            "offline": self.wear.offline,
            "erases_total": self.wear.erases,
            "erases_min": self.wear.erases_min,
            "erases_max": self.wear.erases_max,
            "erases_histogram": {
                "first": self.erase_counts.first,
                "step": self.erase_counts.step,
                "chunks": self.erase_counts.chunks,
            },
            "program_failures": self.ftl.program_failures,
            "erase_failures": self.ftl.erase_failures,
        })
    }
}

fn trace(counts: &TraceCounts) -> Value {
    json!({
        "requests": counts.read.requests,
        "devices": counts.devices,
        "bad_lines": counts.read.bad_lines,
        "disordered": counts.read.disordered,
        "widened": counts.fit.widened,
        "widened_bytes": counts.fit.widened_bytes,
        "trims_narrowed": counts.fit.narrowed,
        "trims_dropped": counts.fit.dropped,
        "folded": counts.fit.folded,
        "late": counts.late,
        "late_max_ns": counts.late_max.0,
    })
}

fn rounds(run: &RoundsRun) -> Value {
    json!({
        "round": run.asked.round.to_string(),
        "rounds_max": run.asked.rounds_max,
        "rounds": run.rounds,
    })
}

fn buffer(counts: &BufferCounts) -> Value {
    json!({
        "role": counts.role.name(),
        "user": counts.user,
        "gc": counts.gc,
        "pad": counts.pad,
        "victims": counts.victims,
        "victim_valid": counts.victim_valid,
        "free_rides": counts.free_rides,
    })
}
