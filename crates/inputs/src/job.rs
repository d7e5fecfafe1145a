//! fio's job files, with the files that they include and the logs that they replay; then what follows from the jobs: their
//! files, and their sizes on a small device.

use crate::input::Files;
use nandscape_workload::fio::{FileLayout, parse_for};

/// Bytes of the device that sizes are scaled to.
const DEVICE_BYTES: u64 = 100 << 20;
/// Clones and files up to which files are laid out.
const FILES_MAX: u64 = 20_000;

/// Reads a job file, and lays out the files of its jobs.
pub fn job(input: &[u8]) {
    let Some(files) = Files::of(input) else { return };
    let runtime = files.others().find_map(|(name, text)| Some(text).filter(|_| name == "runtime"));
    let runtime = runtime.and_then(|text| text.trim().parse().ok());
    let Ok(jobs) = parse_for(files.first, "job.fio", &files, runtime) else { return };
    let count = |clones: u32, files: u32| u64::from(clones) * u64::from(files);
    if jobs.jobs.iter().map(|job| count(job.numjobs, job.files.count)).sum::<u64>() < FILES_MAX {
        drop(FileLayout::new(&jobs, 1));
    }
    if let Some((fitted, factor)) = jobs.fit().fitted(DEVICE_BYTES) {
        assert!(factor < 1.0 && !fitted.jobs.is_empty());
    }
}
