//! Jobs whose figures depend on what fio makes of keys in combination, on the shipped conventional SSD.

use nandscape_lab::run::{NoObserver, Outcome, RunOptions, run};
use nandscape_lab::stack::Stack;
use nandscape_lab::workload::Direction;
use nandscape_lab::workload::fio::{HostEnvironment, parse};

fn outcome(name: &str, set: &[&str], text: &str) -> Outcome {
    let stack = Stack::load(name, set).unwrap();
    let job = parse(text, "j.fio", &HostEnvironment).unwrap();
    run(&stack, &job, 1, RunOptions::default(), &mut NoObserver).unwrap()
}

/// Passes that overwrite in the order in which blocks were written leave whole erase units behind: nothing is copied. Those
/// in other orders are what a used device has.
#[test]
fn loops_overwrite_in_the_order_of_the_first() {
    let waf = |keys: &str| {
        let text = format!("[overwrite]\ndirect=1\nrw=randwrite\nbs=64k\niodepth=16\n{keys}\n");
        let fresh = ["precondition.recipe=none", "media.payload=none"];
        let json = outcome("ssd", &fresh, &text).to_json("");
        json["nandscape"]["waf"]["media"].as_f64().unwrap()
    };
    for keys in ["loops=1", "size=100%\nloops=2", "loops=4", "loops=4\nioengine=libaio"] {
        let waf = waf(keys);
        assert!((waf - 1.0).abs() < 0.005, "{keys}: {waf}");
    }
    for keys in ["loops=4\nrandrepeat=0", "loops=4\nrandseed=5"] {
        let waf = waf(keys);
        assert!(waf > 2.0, "{keys}: {waf}");
    }
}

/// Each direction of a mix keeps its rate on a device that collects garbage.
#[test]
fn rates_by_direction_hold_on_a_device() {
    for (rates, expected) in [("900,100", [900, 100]), ("100,900", [100, 900])] {
        let text = format!(
            "[mix]\ndirect=1\nrw=randrw\nbs=4k\niodepth=8\nnorandommap\ntime_based\nruntime=2s\nrate_iops={rates}\n"
        );
        let outcome = outcome("ssd", &["precondition.recipe=fill", "media.payload=none"], &text);
        let ios =
            [Direction::Read, Direction::Write].map(|d| outcome.workload.jobs[0].direction(d).ios);
        for (ios, expected) in ios.into_iter().zip(expected) {
            assert!(ios.abs_diff(2 * expected) <= expected / 50, "{rates}: {ios:?}");
        }
    }
}

/// A key that a device, or files, give no effect says so.
#[test]
fn hints_without_effect_are_reported() {
    let small = ["media.chunks=48", "media.sectors=128", "ftl.op_percent=35"];
    let text = "[w]\ndirect=1\nrw=write\nsize=1m\nwrite_hint=short\n";
    let hinted = |name: &str, text: &str| -> Vec<String> {
        let warnings = outcome(name, &small, text).warnings;
        warnings.into_iter().filter(|warning| warning.contains("write_hint")).collect()
    };
    assert_eq!(
        hinted("pblk", text),
        [
            "j.fio:1:1: job w: write_hint has no effect: the device has no placement handles (streams)"
        ]
    );
    let on_files = hinted("ext4-pblk", text);
    assert!(on_files[0].ends_with("write_hint has no effect: files of jobs have no hints"));
    assert_eq!(hinted("pblk", "[w]\ndirect=1\nrw=write\nsize=1m\n"), [] as [&str; 0]);
}
