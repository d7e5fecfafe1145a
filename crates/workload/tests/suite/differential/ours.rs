//! A job in our engine, on a test device.

use super::case::{Case, FILE_DISTANCE};
use super::fio::{Io, parse_log};
use super::plant::Plant;
use crate::common::{FakeEnvironment, TestDevice};
use nandscape_block::BlockDevice;
use nandscape_workload::engine::{Engine, NoProbe, Options};
use nandscape_workload::fio::{Amount, JobFile, JobSpec, parse};
use std::ops::Range;

/// Time of service: fast enough for all rates that are asked for.
const SERVICE_NS: u64 = 5_000;

/// The I/Os of a job, or why it does not run.
pub(super) fn run(case: &Case, plant: Option<&Plant>) -> Result<Vec<Io>, String> {
    let mut text = "[j]\nwrite_iolog=log\n".to_owned();
    for (key, value) in case.keys() {
        let value = plant.map_or_else(|| value.to_owned(), |plant| plant.value(key, value));
        text += &format!("{key}={value}\n");
    }
    let file = read(&text)?;
    let mut device = TestDevice::new(case.device_bytes() / 4_096);
    (device.base_ns, device.spread_ns) = (SERVICE_NS, 0);
    let files = case.value("nrfiles").map(|_| vec![files(&file.jobs[0])]);
    let options = Options { files: files.unwrap_or_default(), ..Options::default() };
    let mut engine =
        Engine::new(&file, device.caps(), &options).map_err(|error| error.to_string())?;
    let run = engine.run_until(&mut device, &mut NoProbe, None);
    run.map_err(|error| error.to_string())?;
    let results = engine.finish();
    let mut log = Vec::new();
    results.iologs[0].write_to(&mut log).map_err(|error| error.to_string())?;
    Ok(parse_log(&String::from_utf8_lossy(&log)))
}

/// The sectors of a job's files.
fn files(spec: &JobSpec) -> Vec<Range<u64>> {
    let count = u64::from(spec.files.count);
    let range = |file: u64| {
        let bytes = match (spec.files.bytes, spec.size_of_file(file, count)) {
            (Some((bytes, _)), _) | (None, Some(Amount::Bytes(bytes))) => bytes,
            (None, _) => 0,
        };
        let first = file * FILE_DISTANCE / 4_096;
        first..first + bytes.div_ceil(4_096)
    };
    (0..count).map(range).collect()
}

/// The job file `text`.
pub(super) fn read(text: &str) -> Result<JobFile, String> {
    parse(text, "job", &FakeEnvironment::default()).map_err(|error| error.to_string())
}
