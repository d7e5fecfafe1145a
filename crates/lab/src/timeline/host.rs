//! The host's tracks of a timeline: cores, the FTL's threads, and its locks.

use super::{CORES, LOCKS, Micros, THREADS, Timeline};
use nandscape_ftl::{CpuCounts, CpuSpan, CpuTrack, CpuWork};

/// The track of the collecting thread, and of the mapping's lock, after those of buffers; the next one is the
/// mapping thread's.
const COMMON: u32 = 1_000;

const fn name(work: CpuWork) -> &'static str {
    match work {
        CpuWork::Read => "read",
        CpuWork::Write => "write",
        CpuWork::Flush => "flush",
        CpuWork::Discard => "trim",
        CpuWork::Build => "build command",
        CpuWork::Copy => "copy",
        CpuWork::LoadMap => "load mapping blocks",
        CpuWork::WriteMap => "write mapping blocks",
    }
}

/// Group and track.
fn place(track: CpuTrack) -> (u32, u32) {
    match track {
        CpuTrack::Core(core) => (CORES, u32::from(core) + 1),
        CpuTrack::Writer(buffer) => (THREADS, u32::from(buffer) + 1),
        CpuTrack::Collector => (THREADS, COMMON),
        CpuTrack::Mapper => (THREADS, COMMON + 1),
        CpuTrack::Ring(buffer) => (LOCKS, u32::from(buffer) + 1),
        CpuTrack::Map => (LOCKS, COMMON),
    }
}

impl Timeline {
    /// Names the host's tracks, if its CPU costs anything.
    pub(crate) fn name_host(&mut self, counts: Option<&CpuCounts>) {
        let Some(counts) = counts else { return };
        self.name_group(CORES, "host cores");
        for core in 0..counts.cores_busy_ns.len() as u16 {
            self.name_host_track(CpuTrack::Core(core), &format!("core {core}"));
        }
        self.name_group(THREADS, "FTL threads");
        self.name_group(LOCKS, "FTL locks");
        for buffer in 0..counts.writers.len() as u8 {
            self.name_host_track(CpuTrack::Writer(buffer), &format!("writer of buffer {buffer}"));
            self.name_host_track(CpuTrack::Ring(buffer), &format!("lock of buffer {buffer}"));
        }
        self.name_host_track(CpuTrack::Collector, "garbage collection");
        self.name_host_track(CpuTrack::Mapper, "mapping blocks");
        self.name_host_track(CpuTrack::Map, "lock of the mapping");
    }

    fn name_host_track(&mut self, track: CpuTrack, name: &str) {
        let (pid, tid) = place(track);
        self.name_track(pid, tid, name);
    }

    /// Writes what the host did.
    pub(crate) fn write_host(&mut self, spans: Vec<CpuSpan>) {
        for span in spans {
            let Some((start, end)) = self.fit(span.start, span.end, 1) else { continue };
            let (pid, tid) = place(span.track);
            let (name, core) = (name(span.work), span.core);
            let (ts, dur) = (Micros(start), Micros(end - start));
            self.sink.push(format_args!(
                r#"{{"ph":"X","pid":{pid},"tid":{tid},"ts":{ts},"dur":{dur},"name":"{name}","cat":"host","args":{{"core":{core}}}}}"#
            ));
        }
    }
}
