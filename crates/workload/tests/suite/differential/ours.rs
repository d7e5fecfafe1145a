//! A job in our engine, on a test device.

use super::case::Case;
use super::fio::{Io, parse_log};
use super::plant::Plant;
use crate::common::{FakeEnvironment, TestDevice};
use nandscape_block::BlockDevice;
use nandscape_workload::engine::{Engine, NoProbe, Options};
use nandscape_workload::fio::{JobFile, parse};

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
    let options = Options::default();
    let mut engine =
        Engine::new(&file, device.caps(), &options).map_err(|error| error.to_string())?;
    let run = engine.run_until(&mut device, &mut NoProbe, None);
    run.map_err(|error| error.to_string())?;
    let results = engine.finish();
    let mut log = Vec::new();
    results.iologs[0].write_to(&mut log).map_err(|error| error.to_string())?;
    Ok(parse_log(&String::from_utf8_lossy(&log)))
}

/// The job file `text`.
pub(super) fn read(text: &str) -> Result<JobFile, String> {
    parse(text, "job", &FakeEnvironment::default()).map_err(|error| error.to_string())
}
