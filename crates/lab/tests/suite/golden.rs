//! Determinism: the result of a run is a function of stack, job and seed, down to the last digit, on
//! every machine.

use nandscape_lab::run::{NoObserver, Outcome, RunOptions, run};
use nandscape_lab::stack::Stack;
use nandscape_lab::workload::fio::{HostEnvironment, parse};

const STACK: &str = "name = \"golden\"
[media]
groups = 2
units = 4
chunks = 48
sectors = 128
ws_min = 4
ws_opt = 8
mw_cunits = 24
timing = \"nvmevirt-970pro\"
[media.faults]
program_rate = 0.0005
[ftl]
op_percent = 35
[hints]
journal_range = [\"0\", \"1MiB\"]
[precondition]
fill = 0.9
random_overwrite = 1.0
";

const JOB: &str = "[global]
iodepth=8
time_based
runtime=50ms
[writer]
rw=randrw
direct=1
bs=4k
random_distribution=zipf:1.1
fsync=16
verify=crc32c
[trimmer]
rw=randtrim
direct=1
bs=16k
iodepth=1
rate_iops=2000
[late]
stonewall
rw=write
direct=1
bs=64k
sync=1
ramp_time=5ms
";

fn outcome(seed: u64) -> Outcome {
    let stack = Stack::parse("golden.toml", STACK, &[] as &[&str]).unwrap();
    let job = parse(JOB, "golden.fio", &HostEnvironment).unwrap();
    run(&stack, &job, seed, RunOptions::default(), &mut NoObserver).unwrap()
}

fn json(seed: u64) -> String {
    serde_json::to_string_pretty(&outcome(seed).to_json("golden")).unwrap()
}

/// Two runs agree to the last byte; another seed does not.
#[test]
fn same_input_same_result() {
    let once = json(1);
    assert_eq!(once, json(1));
    assert_ne!(once, json(2));
}

/// The whole result is what it was when this hash was written down. A commit that changes a result on
/// purpose writes down the new hash and states the reason.
#[test]
fn golden_hash() {
    let json = json(1);
    let hash = format!("{:016x}", xxhash_rust::xxh3::xxh3_64(json.as_bytes()));
    assert_eq!(hash, "3857caace92bae6b", "the result changed:\n{json}");
}

/// The golden run does what it is there for: everything that is counted is there.
#[test]
fn golden_run_covers_what_is_counted() {
    let outcome = outcome(1);
    assert!(outcome.workload.jobs.iter().all(|job| !job.failed()), "{:?}", outcome.workload.jobs);
    let ftl = &outcome.ftl;
    assert!(ftl.sectors.gc > 0 && ftl.sectors.pad > 0 && ftl.sectors.journal > 0);
    assert!(ftl.flush.waited > 0 && ftl.host.discarded > 0 && ftl.host.read > 0 && ftl.erases > 0);
    assert!(ftl.media_errors.mismatches == 0 && ftl.media_errors.uncorrectable == 0);
    let parts = ftl.flush.queue_ns + ftl.flush.gc_ns + ftl.flush.padding_ns + ftl.flush.program_ns;
    assert_eq!(parts, ftl.flush.total_ns, "where a flush's time went adds up");
    assert!(outcome.series.len() > 5 && outcome.series.windows(2).all(|p| p[0].t_s < p[1].t_s));
}

/// The keys that scripts rely on are where DESIGN says, and the figures agree with each other.
#[test]
fn json_has_the_promised_keys() {
    let json = outcome(1).to_json("golden");
    assert!(json["fio version"].as_str().unwrap().starts_with("fio-3"));
    let ours = &json["nandscape"];
    for path in [
        "/version",
        "/commit",
        "/stack",
        "/seed",
        "/virtual_s",
        "/wall_s",
        "/io/0/io",
        "/capacity/physical_sectors",
        "/precondition/wall_s",
        "/waf/gc",
        "/waf/gc_pad",
        "/waf/media",
        "/sectors/user",
        "/sectors/gc",
        "/sectors/pad",
        "/sectors/line_meta",
        "/sectors/map",
        "/sectors/journal",
        "/erases",
        "/gc/victims",
        "/gc/valid_ratio_mean",
        "/gc/in_use_sectors_mean",
        "/gc/empty_victims",
        "/gc/forced_flushes",
        "/flush/queue_ns",
        "/flush/gc_ns",
        "/flush/padding_ns",
        "/flush/program_ns",
        "/pad_units/0",
        "/reads/uncorrectable",
        "/writes/sectors",
        "/writes/stall_ns_max",
        "/discards/sectors",
        "/lines/valid_histogram/19",
        "/wear/erases_min",
        "/wear/erases_max",
        "/wear/program_failures",
        "/wear/erase_failures",
        "/steady",
        "/reads/unwritten",
        "/totals/write/iops",
        "/capacity/op_usable_percent",
        "/warnings",
        "/map/bytes",
        "/map/hit_ratio",
        "/map/loads",
        "/map/writebacks",
        "/memory/ftl_bytes",
        "/memory/buffers_bytes",
        "/series/0/t_s",
        "/series/0/iops",
    ] {
        assert!(ours.pointer(path).is_some_and(|value| !value.is_null()), "{path}");
    }
    assert!(ours["waf"]["fs"].is_null(), "there is no file system");
    assert!(ours["series"].as_array().unwrap().iter().any(|point| point["waf"].is_f64()));
    let write = &json["jobs"][0]["write"];
    let percentile = &write["clat_ns"]["percentile"];
    assert!(percentile["50.000000"].as_u64() <= percentile["99.000000"].as_u64());
    assert_eq!(write["clat_ns"]["N"], write["total_ios"]);
    assert_eq!(write["io_bytes"].as_u64().unwrap(), write["total_ios"].as_u64().unwrap() * 4096);
    let waf = &ours["waf"];
    assert!(waf["gc"].as_f64() <= waf["gc_pad"].as_f64());
    assert!(waf["gc_pad"].as_f64() < waf["media"].as_f64());
}
