//! Which way the I/O of jobs went: through a page cache, or past it.

use super::Outcome;
use nandscape_workload::engine::JobResult;
use serde_json::{Value, json};
use std::fmt;

/// The way of the I/O of a job, or of the jobs that report together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IoPath {
    /// Jobs that bypassed the page cache.
    pub direct: u32,
    /// Jobs that went through it.
    pub buffered: u32,
    /// Its limit in bytes.
    pub cache_bytes: u64,
}

impl Outcome {
    /// The way of a job's I/O. Without a page cache, and for traces, it is direct.
    #[must_use]
    pub fn io_path(&self, job: &JobResult) -> IoPath {
        let cache = self.host_memory.iter().find(|(name, _)| *name == "page_cache");
        let cache_bytes = cache.map_or(0, |(_, bytes)| *bytes);
        // With data=journal, direct I/O goes through the cache, too.
        let bypasses =
            |fs: &crate::stack::FsStack| !fs.config.choices().contains(&("data", "journal"));
        let direct = match self.stack.fs.as_ref().map(bypasses) {
            _ if cache_bytes == 0 => job.jobs,
            Some(false) => 0,
            _ => job.direct_jobs.min(job.jobs),
        };
        IoPath { direct, buffered: job.jobs - direct, cache_bytes }
    }
}

impl IoPath {
    /// As part of a result (docs/formats/result.md).
    pub(super) fn json(self, job: &str) -> Value {
        let word = match (self.direct, self.buffered) {
            (_, 0) => "direct",
            (0, _) => "buffered",
            _ => "direct and buffered",
        };
        let cache = (self.buffered > 0).then_some(self.cache_bytes);
        json!({ "job": job, "io": word, "page_cache_bytes": cache })
    }
}

impl fmt::Display for IoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { direct, buffered, cache_bytes } = *self;
        let cache = format!("page cache of {} MiB", cache_bytes >> 20);
        match (direct, buffered) {
            (_, 0) => f.write_str("direct"),
            (0, _) => write!(f, "buffered ({cache})"),
            _ => write!(f, "{direct} direct, {buffered} buffered ({cache})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A group of jobs says how many went which way.
    #[test]
    fn paths_are_named() {
        let path =
            |direct, buffered| IoPath { direct, buffered, cache_bytes: 64 << 20 }.to_string();
        assert_eq!(path(2, 0), "direct");
        assert_eq!(path(0, 2), "buffered (page cache of 64 MiB)");
        assert_eq!(path(1, 3), "1 direct, 3 buffered (page cache of 64 MiB)");
    }
}
