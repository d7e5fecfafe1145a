//! What a result says beside its figures, so that none is taken for what it is not: parts of a device, page caches that
//! kept everything, devices that were fresh, overprovisioning that is kept free, and writes in all.

use nandscape_lab::run::{NoObserver, Outcome, RunOptions, run, run_workload};
use nandscape_lab::stack::Stack;
use nandscape_lab::workload::fio::{HostEnvironment, parse};
use nandscape_lab::workload::wml;
use serde_json::Value;

const SMALL: [&str; 3] = ["media.chunks=48", "media.sectors=128", "ftl.op_percent=35"];

fn outcome(stack: &Stack, text: &str) -> Outcome {
    let job = parse(text, "cautions.fio", &HostEnvironment).unwrap();
    run(stack, &job, 1, RunOptions::default(), &mut NoObserver).unwrap()
}

fn small(name: &str, set: &[&str]) -> Stack {
    Stack::load(name, &[&SMALL, set].concat()).unwrap()
}

fn warning(outcome: &Outcome, words: &str) -> Option<String> {
    outcome.warnings.iter().find(|warning| warning.contains(words)).cloned()
}

fn ours(outcome: &Outcome, pointer: &str) -> Value {
    outcome.to_json("test")["nandscape"].pointer(pointer).cloned().unwrap_or(Value::Null)
}

/// A job that covers a corner of a device says so with numbers, whether the device offers no more or the job asks for no
/// more; one that covers the device, or reads in order, does not.
#[test]
fn corners_of_a_device_are_named() {
    let random = "[w]\nrw=randwrite\ndirect=1\nbs=4k\nnumber_ios=500\n";
    for name in ["iplfs-ssd", "d2fs-ssd"] {
        let stack = Stack::load(name, &[] as &[&str]).unwrap();
        let offered = warning(&outcome(&stack, random), "the jobs cover").unwrap();
        assert!(
            offered.contains("of a device that holds") && offered.contains("at random"),
            "{offered}"
        );
        assert!(offered.contains("MiB"), "{offered}");
    }
    let of = |job: &str| warning(&outcome(&small("pblk", &[]), job), "the jobs cover");
    assert_eq!(of(random), None);
    let asked = of(&format!("{random}size=4m\n")).unwrap();
    assert!(asked.starts_with("the jobs cover 4.00 MiB of a device that holds 1"), "{asked}");
    assert!(asked.contains("size="), "{asked}");
    assert_eq!(of("[w]\nrw=write\ndirect=1\nbs=64k\nsize=4m\n"), None, "in order, once");
    let two = format!("{random}size=4m\n[v]\nrw=randwrite\ndirect=1\nbs=4k\nnumber_ios=10\n");
    assert_eq!(of(&two), None, "the jobs cover it together");
}

/// What the page cache kept from the device is said with numbers; then there is no steady state and no amplification.
#[test]
fn page_caches_are_not_measured_unnoticed() {
    let job = "[b]\nrw=randwrite\nbs=4k\nsize=4m\ntime_based\nruntime=300ms\n";
    let kept = outcome(&small("pblk", &["precondition.recipe=random"]), job);
    let said = warning(&kept, "this measures the page cache").unwrap();
    assert!(said.starts_with("only 0 B of the ") && said.contains("that jobs wrote"), "{said}");
    assert_eq!(kept.not_steady.as_deref(), Some("not at steady state: nothing reached the device"));
    for factor in ["/waf/fs", "/waf/total", "/waf/media"] {
        assert!(ours(&kept, factor).is_null(), "{factor}");
    }
    let synced =
        outcome(&small("pblk", &["precondition.recipe=random"]), &format!("{job}fsync=1\n"));
    assert_eq!(warning(&synced, "this measures the page cache"), None);
    let direct = outcome(&small("pblk", &[]), &format!("{job}direct=1\n"));
    assert_eq!(warning(&direct, "this measures the page cache"), None);
}

/// Whether GC began on a device that was fresh is said as it is.
#[test]
fn fresh_devices_may_have_collected() {
    let job = |size: &str| {
        format!("[w]\nrw=randwrite\ndirect=1\nbs=4k\nnorandommap\niodepth=8\nio_size={size}\n")
    };
    let stack = small("pblk", &["precondition.recipe=none"]);
    let none = outcome(&stack, &job("8m"));
    assert_eq!(none.ftl.gc.victims, 0);
    assert!(warning(&none, "the device was fresh").unwrap().contains("(no GC yet)"));
    let some = outcome(&stack, &job("100%\nloops=3\nrandrepeat=0"));
    assert!(some.ftl.gc.victims > 0);
    let said = warning(&some, "the device was fresh").unwrap();
    assert!(
        said.contains("(GC began within the run, and collected ") && !said.contains("no GC"),
        "{said}"
    );
}

/// Effective overprovisioning is that of theory; where lines that are kept free take a large part of the nominal one, a
/// warning says so.
#[test]
fn reserved_lines_take_overprovisioning() {
    let job = "[w]\nrw=randwrite\ndirect=1\nbs=4k\nnorandommap\niodepth=32\nio_size=100%\n";
    let of = |name: &str, set: &[&str]| outcome(&Stack::load(name, set).unwrap(), job);
    let few = of("ssd", &["media.chunks=128"]);
    let effective = few.effective_op_percent().unwrap();
    assert!((effective - 100.0 * few.law.unwrap().spare).abs() < 1e-9);
    assert_eq!(ours(&few, "/capacity/op_effective_percent"), effective);
    let said = warning(&few, "of overprovisioning").unwrap();
    assert!(
        said.starts_with(&format!(
            "GC works with {effective:.1} % of overprovisioning, not with 7.0 %"
        )),
        "{said}"
    );
    let many = of("pblk", &["media.sectors=256"]);
    let (effective, nominal) =
        (many.effective_op_percent().unwrap(), many.size.op_percent_of_usable());
    assert!(effective > 0.7 * nominal, "{effective} of {nominal}");
    assert_eq!(warning(&many, "of overprovisioning"), None);
}

/// Writes in all are bytes that media wrote per byte that the application wrote: of direct jobs the amplification of the
/// device, below a file system that of both.
#[test]
fn writes_in_all_are_per_byte_of_the_application() {
    let number = |outcome: &Outcome, pointer: &str| ours(outcome, pointer).as_f64().unwrap();
    let near = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 0.01, "{a} {b}");
    let direct = "[w]\nrw=randwrite\ndirect=1\nbs=4k\niodepth=8\nio_size=64m\nend_fsync=1\n";
    let device = outcome(&small("pblk", &[]), direct);
    near(number(&device, "/waf/total"), number(&device, "/waf/media"));
    let logs = "[l]\nrw=write\nbs=4k\nsize=1m\nfsync=1\n";
    let files = outcome(&small("ext4-pblk", &["host.memory=64MiB"]), logs);
    let total = number(&files, "/waf/total");
    near(total, number(&files, "/waf/fs") * number(&files, "/waf/media"));
    assert!(total > 5.0, "a journal, and padding: {total}");
    assert!(number(&files, "/waf/gc") == 1.0);
    let text = "define fileset name=a,path=/,entries=4,dirwidth=20,size=64k,prealloc\n\
                define process name=p { thread name=t {\n\
                flowop openfile name=o,filesetname=a,fd=1\n flowop write name=w,iosize=16k,fd=1\n\
                flowop fsync name=s,fd=1\n flowop closefile name=c,fd=1 } }\nrun 1\n";
    let workload = wml::parse(text, "w.f", &[]).unwrap();
    let stack = small("ext4-pblk", &["host.memory=64MiB"]);
    let ran = run_workload(&stack, &workload, 1, RunOptions::default(), &mut NoObserver).unwrap();
    let written = ran.flowops.as_ref().unwrap().sums().written_bytes as f64;
    let media = 4096.0 * number(&ran, "/utilisation/programmed_sectors");
    near(number(&ran, "/waf/total"), media / written);
}

/// Rates of all jobs are of the time in which a job of the direction ran, as in fio's lines: a job of another direction that
/// ran for longer, or before, does not lower them.
#[test]
fn rates_of_all_jobs_are_of_their_direction() {
    let job = "[w]\nrw=write\ndirect=1\nbs=64k\nsize=8m\n[r]\nstonewall\nrw=read\ndirect=1\nbs=4k\nsize=8m\nrate_iops=4000\n";
    let both = outcome(&small("pblk", &["precondition.recipe=fill"]), job);
    let [writer, reader] = both.workload.jobs.as_slice() else { panic!("two jobs") };
    assert!(
        reader.runtime > writer.runtime.saturating_add(writer.runtime),
        "the reader takes long"
    );
    for (job, key) in [(writer, "write"), (reader, "read")] {
        let seconds = ours(&both, &format!("/totals/{key}/seconds"));
        assert_eq!(seconds, job.runtime.as_secs_f64(), "{key}");
    }
    let rate = ours(&both, "/totals/write/bw_bytes").as_f64().unwrap();
    let own = writer.bytes_per_s(nandscape_lab::workload::Direction::Write);
    assert!((rate / own - 1.0).abs() < 1e-9, "{rate} {own}");
}

/// The limiter's warning has the whole sum: what is wanted, what stale sectors need, and what can be free.
#[test]
fn the_limiter_s_sum_is_whole() {
    let job = "[w]\nrw=randwrite\ndirect=1\nbs=4k\niodepth=8\nio_size=16m\n";
    let stack = Stack::load("pblk", &["media.chunks=96", "media.sectors=256"]).unwrap();
    let said = warning(&outcome(&stack, job), "GC cannot rest").unwrap();
    let numbers: Vec<u64> = said
        .split(|c: char| !c.is_ascii_digit() && c != ',' && c != '.')
        .filter_map(|word| word.replace(',', "").parse().ok())
        .collect();
    let (wanted, stale) = (numbers[0], numbers[1]);
    assert!(said.contains(&format!(": {} in all; ", wanted + stale)), "{said}");
    let free = said.split("at most ").nth(1).unwrap().split(' ').next().unwrap();
    assert!(free.parse::<u64>().unwrap() < wanted + stale, "{said}");
}

/// The JSON names the device, and percentiles of too few requests are null in the parts that are ours.
#[test]
fn few_requests_have_no_percentiles() {
    let stack = small("pblk", &[]);
    let few =
        outcome(&stack, "[w]\nrw=randwrite\ndirect=1\nbs=4k\nnumber_ios=20\n").to_json("test");
    assert!(
        few["jobs"][0]["write"]["clat_ns"]["percentile"]["99.000000"].is_number(),
        "fio's form"
    );
    let point = &few["nandscape"]["series"][0]["write"];
    assert!(point["ios"].as_u64().unwrap() < 100 && point["p99_ns"].is_null(), "{point}");
    assert_eq!(few["nandscape"]["device_label"], stack.device_label());
    assert_eq!(few["nandscape"]["device_keys"]["media.chunks"], "48");
}
