//! F2FS on a coupled SSD: while the device collects, upcalls reach the file system in whichever way it learns of them, and
//! what both of them count makes sense.

use nandscape_lab::SECTOR_BYTES;
use nandscape_lab::run::{NoObserver, RunOptions, run};
use nandscape_lab::stack::Stack;
use nandscape_lab::workload::fio::{HostEnvironment, parse};
use serde_json::Value;

/// 512 MiB of NAND in place of 16 GiB, with a page cache that is as much smaller.
const SMALL: [&str; 6] = [
    "media.chunks=256",
    "ftl.op_percent=15",
    "ftl.random.size=32MiB",
    "ftl.random.op_percent=60",
    "ftl.superblock.spare_chunks=32",
    "host.memory=16MiB",
];
/// Records of an upcall at most, and upcalls that the file system fetches before it applies the first of them.
const UPCALL_RECORDS: u64 = 256;
const TOGETHER: u64 = 8;
/// RAM that a record takes at least: two addresses of 32 bits.
const RECORD_BYTES_MIN: u64 = 8;

/// The stack with this value of `ftl.upcall`.
fn stack(upcall: &str) -> Stack {
    let upcall = format!("ftl.upcall={upcall}");
    Stack::load("d2fs-16g", &[&SMALL[..], &[&upcall]].concat()).unwrap()
}

/// The result of so many MiB of random writes to a file of 70 % of what data may fill: first to each block once, then over
/// them.
fn measure(stack: &Stack, mib: u32, options: RunOptions<'_>) -> Value {
    let text = format!(
        "[over]\nsize=240m\nio_size={mib}m\nrw=randwrite\nrandrepeat=0\nbs=4k\nioengine=psync\n"
    );
    let job = parse(&text, "coupled.fio", &HostEnvironment).unwrap();
    let outcome = run(stack, &job, 1, options, &mut NoObserver).unwrap();
    outcome.to_json("coupled")["nandscape"].clone()
}

fn count(result: &Value, pointer: &str) -> u64 {
    let found = result.pointer(pointer);
    found.and_then(Value::as_u64).unwrap_or_else(|| panic!("{pointer}: {found:?}"))
}

/// Every move has a record, and every record that was there ended or is open; open ones take memory.
fn records_make_sense(result: &Value) {
    let of = |key: &str| count(result, &format!("/coupled/{key}"));
    assert_eq!(of("moved"), of("opened") + of("merged"));
    let ended = of("completed") + of("deleted");
    assert_eq!(of("moved") + of("carried"), ended + of("merged") + of("open"));
    assert!((of("upcalls")..=of("upcalls") * UPCALL_RECORDS).contains(&of("sent")));
    let bytes = count(result, "/map/records_bytes");
    assert!(bytes >= of("open") * RECORD_BYTES_MIN, "{bytes} bytes");
}

/// The file system has got what the device sent, and moved nothing.
fn file_system_makes_sense(result: &Value) {
    let of = |key: &str| count(result, &format!("/fs/append/{key}"));
    assert_eq!(of("upcalls_fetched"), count(result, "/coupled/upcalls"));
    let moved = of("moved_data_blocks") + of("moved_node_blocks");
    let (applied, sent) = (moved + of("stale_records"), count(result, "/coupled/sent"));
    assert!(applied.abs_diff(sent) <= TOGETHER * UPCALL_RECORDS, "{applied} of {sent} applied");
    assert_eq!(count(result, "/fs/gc/blocks_moved"), 0);
}

/// Cells program what users wrote with all that was written for it, and the link carries what they sent.
fn rates_make_sense(stack: &Stack, result: &Value) {
    let number = |pointer: &str| result.pointer(pointer).and_then(Value::as_f64).unwrap();
    let (geometry, nand) = (&stack.media.geometry, &stack.media.timing.nand);
    let units = f64::from(geometry.groups * geometry.units);
    let unit_bytes_per_s = nand.one_shot_bytes as f64 / (nand.program_ns as f64 * 1e-9);
    let user = (count(result, "/sectors/user") * SECTOR_BYTES) as f64 / number("/virtual_s");
    let written = user * number("/waf/media");
    assert!(written < units * unit_bytes_per_s, "{written} bytes a second");
    let crossed = count(result, "/link/to_device_bytes") + count(result, "/link/to_host_bytes");
    let crossed = crossed as f64 / number("/virtual_s");
    assert!(crossed < stack.link.bytes_per_s as f64, "{crossed} bytes a second");
}

fn makes_sense(stack: &Stack, result: &Value) {
    records_make_sense(result);
    file_system_makes_sense(result);
    rates_make_sense(stack, result);
}

/// Records that wait to be fetched, where none was open when counting began.
fn waiting(result: &Value) -> u64 {
    let of = |key: &str| count(result, &format!("/coupled/{key}"));
    assert_eq!(of("carried"), 0);
    of("opened") - of("deleted") - of("sent")
}

/// While the device collects, upcalls reach the file system between its checkpoints, whichever way it learns of them: no more
/// records wait than those for which the device does not ask yet, and those of the line that was moved last. A file system
/// that hears nothing of the device fetches records with checkpoints alone, and at this end of the run thousands would wait.
#[test]
fn upcalls_reach_the_file_system() {
    for upcall in ["piggyback", "interrupt", "poll-100us"] {
        let stack = stack(upcall);
        let result = measure(&stack, 480, RunOptions::default());
        makes_sense(&stack, &result);
        assert!(count(&result, "/gc/victims") > 0, "{upcall}");
        assert!(count(&result, "/fs/append/moved_data_blocks") > 0, "{upcall}");
        let (waiting, line) = (waiting(&result), count(&result, "/capacity/line_sectors"));
        assert!(waiting < UPCALL_RECORDS + line, "{upcall}: {waiting} wait");
    }
}

/// Of rounds that follow each other, records are carried into the first that counts, and open after the last one.
#[test]
fn records_are_carried_into_rounds() {
    let until_steady = Some("round=48MiB,rounds=14".parse().unwrap());
    let stack = stack("piggyback");
    let result = measure(&stack, 480, RunOptions { until_steady, ..RunOptions::default() });
    assert!(count(&result, "/until_steady/rounds") > 5);
    assert!(count(&result, "/coupled/carried") > 0 && count(&result, "/coupled/open") > 0);
    makes_sense(&stack, &result);
}
