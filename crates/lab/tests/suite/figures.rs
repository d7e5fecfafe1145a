//! Figures of a result against each other, where another part of the program counts each of them.

use nandscape_lab::run::{NoObserver, RunOptions, run};
use nandscape_lab::stack::Stack;
use nandscape_lab::workload::fio::{HostEnvironment, parse};
use serde_json::Value;

const SMALL: [&str; 4] =
    ["media.chunks=48", "media.sectors=128", "ftl.op_percent=35", "host.memory=64MiB"];

fn result(stack: &str, job: &str) -> Value {
    let stack = Stack::load(stack, &SMALL).unwrap();
    let job = parse(job, "figures.fio", &HostEnvironment).unwrap();
    run(&stack, &job, 1, RunOptions::default(), &mut NoObserver).unwrap().to_json("figures")
}

fn count(result: &Value, pointer: &str) -> f64 {
    result.pointer(pointer).and_then(Value::as_u64).unwrap() as f64
}

fn is_near(result: &Value, pointer: &str, expected: f64) {
    let figure = result.pointer(pointer).and_then(Value::as_f64).unwrap();
    assert!((figure / expected - 1.0).abs() < 1e-9, "{pointer} is {figure}, not {expected}");
}

/// What a file system makes of a job's sectors is what the device accepted of it, not what the FTL has placed by the end.
#[test]
fn a_file_system_amplifies_what_the_device_accepts() {
    let result =
        result("ext4-pblk", "[w]\nrw=randwrite\nbs=4k\nsize=4m\ndirect=1\nnumber_ios=1001\n");
    let accepted = count(&result, "/nandscape/writes/sectors");
    let of_job = count(&result, "/jobs/0/write/io_bytes") / 4096.0;
    assert_eq!((accepted, of_job), (1_001.0, 1_001.0), "overwrites of a file that is there");
    assert!(count(&result, "/nandscape/sectors/user") < accepted, "some are in the buffer");
    is_near(&result, "/nandscape/waf/fs", 1.0);
}

/// All that media programmed, as they count it, by what the job wrote: padding, copies and metadata are in it.
#[test]
fn the_whole_amplification_is_what_media_programmed() {
    let job = "[w]\nrw=randwrite\nbs=4k\nio_size=32m\nfsync=25\n";
    let result = result("pblk", job);
    let programmed = count(&result, "/nandscape/utilisation/programmed_sectors") * 4096.0;
    for cause in ["gc", "pad", "line_meta"] {
        assert!(count(&result, &format!("/nandscape/sectors/{cause}")) > 0.0, "{cause}");
    }
    is_near(&result, "/nandscape/waf/total", programmed / count(&result, "/jobs/0/write/io_bytes"));
}
