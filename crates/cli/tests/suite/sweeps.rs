//! Sweeps and comparisons as users meet them: rows, resuming, interruption, errors.

use crate::common;
#[cfg(unix)]
use crate::common::running;

use common::{Folder, err, out};
use std::io::{BufRead, BufReader, Read};

/// Two values of a key, and as many seeds as wanted, on the small stack.
fn grid(seeds: u32) -> String {
    format!(
        "stacks = \"small.toml\"\njobs = \"job.fio\"\nseeds = {seeds}\n\
         report = [\"waf.gc\", \"write.iops\", \"write.clat_ns.p99\"]\n\
         [grid]\nftl.gc.victim = [\"greedy\", \"fifo\"]\n"
    )
}

fn rows(folder: &Folder, name: &str) -> String {
    std::fs::read_to_string(folder.0.join(name)).unwrap()
}

fn sweep(folder: &Folder, args: &[&str]) -> (Option<i32>, String, String) {
    let output = folder.command(&["sweep"]).args(args).output().unwrap();
    (output.status.code(), out(&output), err(&output))
}

/// How many runs a finished sweep says it ran anew.
fn new_runs(text: &str) -> usize {
    let (before, _) = text.split_once(" executed").unwrap();
    before.rsplit('(').next().unwrap().parse().unwrap()
}

/// The rows of a sweep do not depend on how many runs go on at once, to the byte.
#[test]
fn parallel_rows_equal_serial_ones() {
    let folder = Folder::new("sweep-parallel");
    folder.write("grid.toml", &grid(4));
    for (jobs, output) in [("1", "serial.jsonl"), ("4", "parallel.jsonl")] {
        let (code, text, errors) =
            sweep(&folder, &["grid.toml", "--jobs", jobs, "--output", output]);
        assert_eq!(code, Some(0), "{errors}");
        assert_eq!(new_runs(&text), 8, "{text}");
        assert!(text.contains("2 configurations x 4 seeds; mean ± 95 % CI"), "{text}");
        assert!(text.contains(" ± "), "{text}");
    }
    let serial = rows(&folder, "serial.jsonl");
    assert_eq!(serial, rows(&folder, "parallel.jsonl"));
    assert_eq!(serial.lines().count(), 8);
    let seeds: Vec<_> = serial.lines().map(|line| json(line)["seed"].as_u64().unwrap()).collect();
    assert_eq!(seeds, [1, 2, 3, 4, 1, 2, 3, 4]);
}

fn json(line: &str) -> serde_json::Value {
    serde_json::from_str(line).unwrap()
}

/// However a file was cut, a sweep runs what is missing, no more, and ends with the same rows.
#[test]
fn a_cut_file_is_completed() {
    let folder = Folder::new("sweep-resume");
    folder.write("grid.toml", &grid(3));
    assert_eq!(sweep(&folder, &["grid.toml"]).0, Some(0));
    let whole = rows(&folder, "grid.jsonl");
    let third = whole.match_indices('\n').nth(2).unwrap().0 + 1;
    for (cut, missing) in [(0, 6), (third, 3), (third + 10, 3), (third - 1, 4), (whole.len(), 0)] {
        folder.write("grid.jsonl", &whole[..cut]);
        let (code, text, errors) = sweep(&folder, &["grid.toml", "--jobs", "2"]);
        assert_eq!(code, Some(0), "{errors}");
        assert_eq!(new_runs(&text), missing, "cut at {cut}");
        assert_eq!(rows(&folder, "grid.jsonl"), whole, "cut at {cut}");
    }
}

/// What a result follows from is what a row is recognised by: another job runs anew, another report
/// or a larger grid does not, and rows of other runs stay.
#[test]
fn rows_are_recognised_by_what_they_follow_from() {
    let folder = Folder::new("sweep-recognised");
    let new = |text: &str| {
        folder.write("grid.toml", text);
        let (code, text, errors) = sweep(&folder, &["grid.toml"]);
        assert_eq!(code, Some(0), "{errors}");
        new_runs(&text)
    };
    assert_eq!(new(&grid(1)), 2);
    assert_eq!(new(&grid(1).replace("\"waf.gc\", ", "")), 0);
    assert_eq!(new(&grid(2)), 2);
    assert_eq!(new(&grid(1).replace("\"fifo\"", "\"fifo\", \"random\"")), 1);
    assert_eq!(rows(&folder, "grid.jsonl").lines().count(), 5);
    folder.write("job.fio", "[w]\nrw=randwrite\ndirect=1\nbs=4k\nnumber_ios=500\n");
    assert_eq!(new(&grid(1)), 2);
    assert_eq!(rows(&folder, "grid.jsonl").lines().count(), 7);
}

/// Other metrics of finished rows take the place of the file's; nothing runs for them, and a wrong one is refused.
#[test]
fn metrics_of_finished_rows_are_chosen() {
    let folder = Folder::new("sweep-metrics");
    folder.write("grid.toml", &grid(2));
    assert_eq!(sweep(&folder, &["grid.toml"]).0, Some(0));
    let whole = rows(&folder, "grid.jsonl");
    let metrics = ["--metric", "sectors.user", "--metric", "sectors.gc / sectors.user"];
    let chosen = [&["grid.toml", "--output-format", "csv"][..], &metrics].concat();
    let (code, text, errors) = sweep(&folder, &chosen);
    assert_eq!(code, Some(0), "{errors}");
    let head = "sectors.user,sectors.user ci95,sectors.user n,sectors.gc / sectors.user,";
    assert!(text.lines().next().unwrap().contains(head) && !text.contains("iops"), "{text}");
    assert_eq!(text.lines().count(), 3, "{text}");
    assert_eq!(rows(&folder, "grid.jsonl"), whole);
    let (_, text, _) = sweep(&folder, &[&["grid.toml"][..], &metrics].concat());
    assert_eq!(new_runs(&text), 0, "{text}");
    let again = "--metric sectors.user --metric \"sectors.gc / sectors.user\" --output grid.jsonl";
    assert!(text.contains(again) || text.contains(&again.replace('"', "'")), "{text}");
    let (code, _, errors) = sweep(&folder, &["grid.toml", "--metric", "waf.gcc"]);
    assert_eq!(code, Some(2), "{errors}");
    assert!(errors.contains("waf.gcc"), "{errors}");
}

/// Ctrl-C leaves valid rows of the first runs, in order, prints their table, and the sweep goes on from there.
#[cfg(unix)]
#[test]
fn an_interrupted_sweep_goes_on() {
    let folder = Folder::new("sweep-interrupt");
    // Far more runs than anybody waits for: the signal surely arrives before the end.
    folder.write("grid.toml", &grid(50_000));
    let mut running = running::Running::start(&folder, &["sweep", "grid.toml", "--jobs", "2"]);
    let mut log = BufReader::new(running.child.stderr.take().unwrap());
    let mut first = String::new();
    log.read_line(&mut first).unwrap();
    assert!(first.contains("1 of 100000"), "{first}");
    running.interrupt();
    let mut rest = String::new();
    log.read_to_string(&mut rest).unwrap();
    assert_eq!(running.child.wait().unwrap().code(), Some(130), "{rest}");
    assert!(
        rest.contains("interrupted: waiting for the runs that have begun (Ctrl-C again "),
        "{rest}"
    );
    assert!(rest.contains("of 100000 runs are finished; results saved in grid.jsonl"), "{rest}");

    let kept = rows(&folder, "grid.jsonl");
    let table = std::fs::read_to_string(folder.0.join("stdout")).unwrap();
    let partial = format!("(partial: {} of 100000 runs)", kept.lines().count());
    assert!(table.contains(&partial) && table.contains("waf.gc"), "{partial} in:\n{table}");
    let seeds: Vec<_> = kept.lines().map(|line| json(line)["seed"].as_u64().unwrap()).collect();
    assert_eq!(seeds, (1..=seeds.len() as u64).collect::<Vec<_>>());
    let more = seeds.len() as u32 + 2;
    let greedy_only = grid(more).replace(", \"fifo\"", "");
    folder.write("grid.toml", &greedy_only);
    let (code, text, errors) = sweep(&folder, &["grid.toml"]);
    assert_eq!(code, Some(0), "{errors}");
    assert_eq!(new_runs(&text), 2);
    assert!(rows(&folder, "grid.jsonl").starts_with(&kept));
}

/// Wrong input is exit code 2 with its place, and writes no rows.
#[test]
fn wrong_sweeps_name_their_place() {
    let folder = Folder::new("sweep-wrong");
    folder.write("notes.txt", "my notes\n");
    folder.write("good.toml", &grid(1));
    folder.write("key.toml", &grid(1).replace("victim", "vicitm"));
    folder.write(
        "tight.toml",
        &grid(1).replace("gc.victim = [\"greedy\", \"fifo\"]", "op_percent = [35, 3]"),
    );
    folder.write("column.toml", &grid(1).replace("waf.gc", "waf.gv"));
    let line = "[[line]]\nfigure = \"erases\"\nvalue = 1\nlabel = \"x\"\n[grid]";
    folder.write("line.toml", &grid(1).replace("[grid]", line));
    folder.write("slash.toml", &grid(1).replace("waf.gc", "waf.gc /"));
    folder.write("axis.toml", &grid(1).replace("waf.gc", "waf.gc / victim=fifo"));
    folder.write("value.toml", &grid(1).replace("waf.gc", "waf.gc / ftl.gc.victim=lru"));
    folder.write("half.toml", &grid(1).replace("waf.gc", "erases / waf.gv"));
    let cases: [(&[&str], &str); 10] = [
        (&["none.toml"], "none.toml"),
        (&["key.toml"], "key.toml:6:8: ftl.gc.vicitm: unknown key; did you mean \"victim\"?"),
        (&["tight.toml"], "tight.toml:6:23: ftl.op_percent: "),
        (&["good.toml", "--output", "notes.txt"], "notes.txt: line 1: not a row of a sweep"),
        (&["column.toml"], "column.toml:4:11: report: no result has a metric \"waf.gv\""),
        (&["half.toml"], "half.toml:4:11: report: no result has a metric \"waf.gv\""),
        (&["line.toml"], "line.toml:6:10: line.figure: \"erases\" is not among the figures"),
        (&["slash.toml"], "slash.toml:4:11: report: \"waf.gc /\" is no figure; expected"),
        (
            &["axis.toml"],
            "axis.toml:4:11: report: \"victim\" is no axis of the results; they have stack, job, ftl.gc.victim",
        ),
        (
            &["value.toml"],
            "value.toml:4:11: report: no point has ftl.gc.victim=lru; there are greedy, fifo",
        ),
    ];
    for (args, expected) in cases {
        let (code, _, errors) = sweep(&folder, args);
        assert_eq!(code, Some(2), "{args:?}: {errors}");
        assert!(errors.contains(expected), "{args:?}: {errors}");
    }
    assert_eq!(rows(&folder, "notes.txt"), "my notes\n");
    for early in ["column", "half", "line", "slash", "axis", "value"] {
        assert!(!folder.0.join(format!("{early}.jsonl")).exists(), "{early}.toml ran");
    }
}

/// A figure relative to a point is the mean of the ratios of each seed; a line stands below the table
/// and in the JSON; and neither runs anything anew.
#[test]
fn figures_are_set_against_others() {
    let folder = Folder::new("sweep-relative");
    folder.write("grid.toml", &grid(2));
    assert_eq!(sweep(&folder, &["grid.toml"]).0, Some(0));
    let line = "[[line]]\nfigure = \"waf.gc/ftl.gc.victim=fifo\"\nvalue = 0.5\nlabel = \"a paper\"\n[grid]";
    let asked = grid(2).replace("write.iops", "sectors.gc / sectors.user");
    let asked = asked.replace("waf.gc", "waf.gc / ftl.gc.victim=fifo").replace("[grid]", line);
    folder.write("grid.toml", &asked);
    let (code, text, errors) = sweep(&folder, &["grid.toml"]);
    assert_eq!((code, new_runs(&text)), (Some(0), 0), "{errors}");
    assert!(text.contains("\n\n  line: waf.gc / ftl.gc.victim=fifo = 0.500: a paper\n"), "{text}");
    assert!(text.contains("1.000 (1.000..1.000)"), "{text}");

    let (_, table, _) = sweep(&folder, &["grid.toml", "--output-format", "json"]);
    let table = json(&table);
    assert_eq!(table["lines"][0]["label"], "a paper");
    let kept = rows(&folder, "grid.jsonl");
    let of = |line: &str, key: &str, part: &str| {
        json(line)["result"]["nandscape"][key][part].as_f64().unwrap()
    };
    let lines: Vec<&str> = kept.lines().collect();
    let waf = |at: usize| of(lines[at], "waf", "gc");
    let figures = &table["points"][0]["figures"];
    let relative = (waf(0) / waf(2) + waf(1) / waf(3)) / 2.0;
    assert_eq!(figures["waf.gc / ftl.gc.victim=fifo"]["mean"], relative);
    let ratio = |at: usize| of(lines[at], "sectors", "gc") / of(lines[at], "sectors", "user");
    assert_eq!(figures["sectors.gc / sectors.user"]["mean"], (ratio(0) + ratio(1)) / 2.0);
}

/// Points that set different keys stand in one table.
#[test]
fn points_may_lack_keys() {
    let folder = Folder::new("sweep-ragged");
    let ragged = "ftl = [{op_percent = 40, gc.victim = \"fifo\"}, {op_percent = 50}]";
    folder.write("grid.toml", &grid(1).replace("ftl.gc.victim = [\"greedy\", \"fifo\"]", ragged));
    let (code, text, errors) = sweep(&folder, &["grid.toml"]);
    assert_eq!(code, Some(0), "{errors}");
    assert!(text.contains("fifo") && text.contains("50              -"), "{text}");
}

/// A comparison sets stacks beside each other, each as a ratio to the first.
#[test]
fn stacks_are_compared() {
    let folder = Folder::new("compare");
    folder.write(
        "other.toml",
        "name = \"other\"\nextends = \"small.toml\"\n[ftl]\nop_percent = 50\n",
    );
    let args = ["compare", "small.toml", "other.toml", "--job", "job.fio", "--seeds", "2"];
    let output = folder.run(&args);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let text = out(&output);
    for expected in [
        "job.fio: 2 configurations x 2 seeds",
        "waf.gc",
        "all.write.iops",
        "(x1.000)",
        "..",
        "all.sync.lat_ns.mean",
        "all.sync.lat_ns.p50",
    ] {
        assert!(text.contains(expected), "{expected} in:\n{text}");
    }
    assert!(!text.contains("read.iops"), "nothing was read:\n{text}");
    let again = "Reproduce: nandscape compare small.toml other.toml --job job.fio --seeds 2\n";
    assert!(text.ends_with(again), "{text}");
    let relative = folder.run(&[&args[..], &["--metric", "waf.gc / stack=small.toml"]].concat());
    let text = out(&relative);
    assert!(text.contains("1.000 (1.000..1.000)") && !text.contains("(x"), "{text}");
    let again = "--seeds 2 --metric 'waf.gc / stack=small.toml'\n";
    assert!(text.ends_with(again), "{text}");
    let stray = folder.run(&[&args[..], &["--figure", "waf.gc / stack=pblk"]].concat());
    assert_eq!(stray.status.code(), Some(2));
    let expected = "--metric: no point has stack=pblk; there are small.toml, other.toml";
    assert!(err(&stray).contains(expected), "{}", err(&stray));
    let twice = folder.run(&["compare", "small.toml", "small.toml", "--job", "job.fio"]);
    assert_eq!(twice.status.code(), Some(2));
    assert!(err(&twice).contains("duplicate run"), "{}", err(&twice));
}

/// Figures by default are of all jobs, whichever comes first; a path that is named is of the first.
#[test]
fn usual_figures_are_of_all_jobs() {
    let folder = Folder::new("sweep-jobs");
    let load = |name: &str, rw: &str| format!("[{name}]\nrw={rw}\ndirect=1\nnumber_ios=300\n");
    let job =
        load("r", "randread") + &load("w", "randwrite") + "fsync=10\n" + &load("v", "randwrite");
    folder.write("job.fio", &job);
    let plain = "stacks = \"small.toml\"\njobs = \"job.fio\"\n";
    folder.write("plain.toml", plain);
    folder
        .write("named.toml", &format!("{plain}report = [\"write.iops\", \"jobs.1.write.iops\"]\n"));
    let figures = |file: &str| {
        let (code, table, errors) = sweep(&folder, &[file, "--output-format", "json"]);
        assert_eq!(code, Some(0), "{errors}");
        json(&table)["points"][0]["figures"].clone()
    };
    let (usual, named) = (figures("plain.toml"), figures("named.toml"));
    let row = json(&rows(&folder, "plain.jsonl"));
    let iops = |job: usize| row["result"]["jobs"][job]["write"]["iops"].as_f64().unwrap();
    assert!(iops(0) == 0.0 && iops(1) > 0.0 && iops(2) > 0.0);
    let totals = &row["result"]["nandscape"]["totals"]["write"];
    assert_eq!(totals["total_ios"], 600);
    let mean = usual["all.write.iops"]["mean"].as_f64().unwrap();
    assert!((mean / totals["iops"].as_f64().unwrap() - 1.0).abs() < 1e-9, "{mean}: {totals}");
    assert!(mean < iops(1) + iops(2), "the jobs end apart");
    for path in ["all.read.iops", "all.write.clat_ns.p99", "all.sync.lat_ns.mean"] {
        assert!(usual[path]["mean"].as_f64().unwrap() > 0.0, "{path}: {usual}");
    }
    assert_eq!(named["write.iops"]["mean"], iops(0));
    assert_eq!(named["jobs.1.write.iops"]["mean"], iops(1));
}

/// A workload that transfers nothing has operations nevertheless.
#[test]
fn usual_figures_are_of_operations() {
    let folder = Folder::new("sweep-operations");
    let workload = "define fileset name=a,path=/,entries=20,dirwidth=20,size=4k,prealloc\n\
                    define process name=p { thread name=t { flowop statfile name=s,filesetname=a } }\n\
                    run 1\n";
    folder.write("stat.f", workload);
    folder.write(
        "grid.toml",
        "stacks = \"small.toml\"\njobs = \"stat.f\"\n[set]\nfs.kind = \"ext4\"\n",
    );
    let (code, text, errors) = sweep(&folder, &["grid.toml"]);
    assert_eq!(code, Some(0), "{errors}");
    assert!(text.contains("wml.summary.ops_per_s  wml.summary.latency_mean_ns"), "{text}");
}

/// Stacks of other kinds hold what the device of `--device` holds, and are refused where they cannot; rules that only hosts
/// have are lifted.
#[test]
fn devices_are_kept_between_kinds() {
    let folder = Folder::new("compare-kinds");
    let capacity = |stacks: &[&str], more: &[&str]| {
        let args = ["--job", "job.fio", "--runtime", "20ms", "--output-format", "json"];
        let figures =
            ["--metric", "capacity.usable_sectors", "--metric", "capacity.op_usable_percent"];
        let output = folder.run(&[&["compare"], stacks, &args, &figures, more].concat());
        (output.status.code(), out(&output), err(&output))
    };
    let sizes = [
        "--set",
        "media.chunks=48",
        "--set",
        "media.sectors=96",
        "--set",
        "precondition.recipe=none",
    ];
    let on = |device: &str, stack: &str| {
        let (code, text, errors) =
            capacity(&[device, stack], &[&["--device", device], &sizes[..]].concat());
        assert_eq!(code, Some(0), "{errors}");
        let table = json(&text);
        let usable = |at: usize| {
            table["points"][at]["figures"]["capacity.usable_sectors"]["mean"].as_f64().unwrap()
        };
        (usable(1) / usable(0), table["warnings"].to_string())
    };
    let (ratio, _) = on("pblk-4.13", "pblk");
    assert!((ratio - 1.0).abs() < 0.05, "{ratio}");
    let (code, _, errors) = capacity(&["ssd", "f2fs-zns"], &["--device", "ssd"]);
    assert_eq!(code, Some(2));
    assert!(errors.contains("stack f2fs-zns"), "{errors}");
}

/// All warnings of runs are below the table, in its JSON and on its page, each with the run that it is of.
#[test]
fn warnings_of_runs_reach_every_form() {
    let folder = Folder::new("compare-warnings");
    folder.write("corner.fio", "[w]\nrw=randwrite\ndirect=1\nbs=4k\nsize=2m\nnumber_ios=100\n");
    let args = ["compare", "small.toml", "pblk", "--job", "corner.fio"];
    let text = out(&folder.run(&[&args[..], &["--report", "page.html"]].concat()));
    let table = json(&out(&folder.run(&[&args[..], &["--output-format", "json"]].concat())));
    let page = std::fs::read_to_string(folder.0.join("page.html")).unwrap();
    let warnings: Vec<&str> = table["warnings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|warning| warning.as_str().unwrap())
        .collect();
    assert!(
        warnings.iter().any(|warning| warning.contains("the jobs cover 2.00 MiB of a device")),
        "{warnings:?}"
    );
    assert!(
        warnings.iter().any(|warning| warning.starts_with("the stacks differ in their devices")),
        "{warnings:?}"
    );
    for warning in warnings {
        assert!(text.contains(&format!("  warning: {warning}\n")), "{warning} in:\n{text}");
        let escaped = warning
            .replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;")
            .replace('"', "&quot;");
        assert!(page.contains(&escaped), "{escaped}");
    }
    assert!(page.contains(">device</th>"));
    let (few, p99) = (&table["points"][0]["figures"], "all.write.clat_ns.p99");
    assert!(
        few["all.write.clat_ns.p50"]["mean"].is_f64() && few[p99]["mean"].is_f64(),
        "100 are enough"
    );
    assert!(text.contains("all.write.clat_ns.p99"));
}

/// FA-FTL's example as the README compares it: what the table has over all jobs is bytes over virtual time; devices
/// that differ are named by their keys, and one device for all is none that differs.
#[test]
fn comparisons_are_of_one_device() {
    let folder = Folder::new("compare-device");
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/fsync-threads.fio");
    let figures = ["all.write.bw_bytes", "all.write.io_bytes", "virtual_s"];
    let shown: Vec<&str> = figures.iter().flat_map(|figure| ["--figure", figure]).collect();
    let table = |stacks: &[&str], more: &[&str]| {
        let args = ["--job", example, "--runtime", "50ms"];
        let output = folder.run(&[&["compare"], stacks, &args, &shown[..], more].concat());
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        out(&output)
    };
    let result = json(&table(&["fa-ftl", "pblk-4.13"], &["--output-format", "json"]));
    let point = &result["points"][0]["figures"];
    let of = |figure: &str| point[figure]["mean"].as_f64().unwrap();
    let expected = of("all.write.io_bytes") / of("virtual_s");
    assert!((of("all.write.bw_bytes") / expected - 1.0).abs() < 0.01, "{point}");
    assert_eq!(result["device_differences"], serde_json::json!([]));
    let unlike = ["fa-ftl", "js-pblk"];
    let text = table(&unlike, &[]);
    assert!(
        text.contains("device") && text.contains("warning: the stacks differ in their devices")
    );
    assert!(text.contains("media.groups") && text.contains("; they hold 7.07 GiB to "), "{text}");
    let text = table(&unlike, &["--device", "fa-ftl"]);
    assert!(!text.contains("warning: the stacks differ"), "{text}");
    assert!(text.contains("--device fa-ftl"), "{text}");
}
