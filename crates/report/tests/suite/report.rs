//! Reports of results made up for the purpose: all that a result can have, and results that lack it.

use nandscape_report::{Figure, Line, Plot, Report, Run};
use serde_json::{Value, json};

/// A page stays below this size, libraries included.
const BYTES_MAX: usize = 3_000_000;

/// A result with everything that reports draw, and `points` intervals.
fn result(stack: &str, seed: u64, points: u64) -> Value {
    let latency = |ns: u64| {
        json!({
            "ios": 100, "mean_ns": ns, "p50_ns": ns, "p99_ns": 3 * ns, "max_ns": 9 * ns, "bytes_per_s": 409_600_000,
            "histogram": { "first_ns": 1024, "ios": [90, 0, 10] },
        })
    };
    let interval = |at: u64| {
        json!({
            "t_s": 0.001 * (at + 1) as f64, "iops": 20_000.0, "waf": 1.5, "waf_gc_pad": 1.6,
            "waf_media": 1.7, "map_hit_ratio": 0.9, "read": latency(70_000 + at),
            "write": latency(20_000 + at), "trim": latency(1_000), "sync": latency(900_000),
            "sectors": { "user": 100, "gc": 50 + at, "stale": 1, "pad": 1, "meta": 2, "map": 3 },
            "free_lines": 7, "in_flight": 32,
        })
    };
    let cdf = |ns: u64| json!({ "ns": [ns, 2 * ns, 5 * ns], "share": [0.1, 0.5, 1.0] });
    let direction = |ns: u64| {
        json!({
            "iops": 20_000.0 + seed as f64, "bw_bytes": 80_000_000, "total_ios": 100,
            "clat_ns": { "stddev": 1.0, "percentile": { "50.000000": ns, "99.000000": 3 * ns } },
        })
    };
    json!({
        "jobs": [{
            "jobname": "job", "error": 0, "read": direction(70_000), "write": direction(20_000),
            "trim": direction(1_000), "sync": { "total_ios": 9, "lat_ns": { "stddev": 1.0 } },
        }],
        "nandscape": {
            "version": "0.1.0", "commit": "abc", "stack": stack, "seed": seed, "virtual_s": 0.5,
            "geometry": { "groups": 2, "units": 4, "chunks": 60, "sectors": 4096, "ws_opt": 8 },
            "capacity": { "physical_sectors": 1_000, "logical_sectors": 900 },
            "precondition": { "fill_sectors": 900, "overwrite_sectors": 1_800 },
            "waf": { "gc": 1.5 + 0.01 * seed as f64, "gc_pad": 1.6, "media": 1.7, "fs": null },
            "sectors": { "user": 1_000, "gc": 500, "pad": 10, "line_meta": 5, "map": 2, "trim": 1 },
            "erases": 7, "gc": { "victims": 5, "valid_ratio_mean": 0.4 },
            "flush": { "waited": 4, "total_ns": 10, "queue_ns": 1, "gc_ns": 2, "padding_ns": 3, "program_ns": 4 },
            "lines": { "valid_histogram": [0, 3, 5, 2] },
            "steady": seed == 1, "steady_criterion": "as usual",
            "warnings": if seed == 1 { json!([]) } else { json!(["not steady: <never>"]) },
            "map": { "bytes": 4_096, "hit_ratio": 0.9, "loads": 5, "writebacks": 1 },
            "memory": { "ftl_bytes": 9_000, "buffers_bytes": 900, "bitmap_bytes": 90, "line_bytes": 9 },
            "wear": { "erases_histogram": { "first": 3, "step": 1, "chunks": [4, 5] } },
            "utilisation": { "units": [0.5, 0.6], "channels": [0.3], "pcie": 0.1 },
            "latency_cdf": { "read": cdf(70_000), "write": cdf(20_000), "trim": cdf(1_000), "sync": cdf(900_000) },
            "series": (0..points).map(interval).collect::<Vec<_>>(),
            "command": "nandscape run --stack '<pblk>'",
            "resolved_stack": "name = \"pblk\"\n",
        },
    })
}

fn run(stack: &str, keys: &[(&str, Value)], seed: u64, points: u64) -> Run {
    Run {
        source: "file".into(),
        stack: stack.into(),
        job: "job".into(),
        keys: keys.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect(),
        seed,
        result: result(stack, seed, points),
    }
}

fn one() -> Report {
    Report::new("one", vec![run("pblk", &[], 1, 40)])
}

fn comparison(cases: usize, points: u64) -> Report {
    let names: Vec<String> = (0..cases).map(|at| format!("stack-{at}")).collect();
    let runs = names.iter().flat_map(|name| [1, 2].map(|seed| run(name, &[], seed, points)));
    Report::new("both", runs.collect())
}

/// Two axes of numbers and two of names, three seeds.
fn sweep() -> Report {
    let mut runs = Vec::new();
    for (stack, op, victim) in [("a", 10, "x"), ("a", 20, "x"), ("a", 10, "y"), ("b", 20, "y")] {
        let keys = [("ftl.op_percent", json!(op)), ("ftl.gc.victim", json!(victim))];
        runs.extend((1..=3).map(|seed| run(stack, &keys, seed, 1)));
    }
    Report::new("sweep", runs)
}

fn figure(text: &str) -> Figure {
    text.parse().unwrap()
}

fn with(report: Report, figures: &[&str]) -> Report {
    report.with_figures(figures.iter().map(|text| figure(text))).unwrap()
}

/// Every channel of a specification and of its layers.
fn encodings(spec: &Value) -> Vec<&Value> {
    let layers = spec["layer"].as_array().into_iter().flatten();
    let all = layers.chain([spec]).filter_map(|layer| layer["encoding"].as_object());
    all.flat_map(|encoding| encoding.values()).collect()
}

fn check(plot: &Plot) {
    let (id, spec) = (&plot.id, plot.standalone());
    assert!(spec["$schema"].as_str().unwrap().contains("vega-lite"), "{id}");
    assert!(!spec["title"][0].as_str().unwrap().is_empty() && spec["width"].is_u64(), "{id}");
    assert!(id.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'), "{id}");
    let rows = spec["data"]["values"].as_array().unwrap();
    assert!(!rows.is_empty(), "{id} has no data");
    for row in rows {
        let drawn = row.as_object().unwrap().iter().filter(|(key, _)| *key != "y");
        assert!(drawn.into_iter().all(|(_, value)| !value.is_null()), "{id}: {row}");
    }
    for encoding in encodings(&spec) {
        let title = encoding.get("axis").map(|axis| axis["title"].to_string());
        let quantitative = encoding["type"] == "quantitative" && title.is_some();
        assert!(!quantitative || title.unwrap().contains('('), "{id}: {encoding} has no unit");
        if let Some(field) = encoding["field"].as_str() {
            assert!(
                rows.iter().all(|row| row.get(field).is_some()),
                "{id}: no {field} in the data"
            );
        }
    }
}

fn ids(report: &Report) -> Vec<String> {
    report.plots().into_iter().map(|plot| plot.id).collect()
}

/// Every plot is a specification by itself: it has data for each channel, titles, and units at each
/// axis of numbers; and no two have the same name.
#[test]
fn plots_can_be_drawn() {
    for report in [one(), comparison(3, 40), sweep()] {
        report.plots().iter().for_each(check);
        let mut ids = ids(&report);
        ids.sort_unstable();
        assert!(ids.windows(2).all(|pair| pair[0] != pair[1]), "{ids:?}");
    }
}

/// Each kind of report draws what it is there for.
#[test]
fn reports_draw_what_they_are_there_for() {
    let of_run = [
        "iops",
        "bandwidth",
        "media-bandwidth",
        "waf",
        "free-lines",
        "in-flight",
        "latency-read",
        "latency-write",
        "latency-trim",
        "latency-sync",
        "heat-read",
        "heat-write",
        "heat-trim",
        "heat-sync",
        "map-hits",
        "cdf",
        "percentiles",
        "flush",
        "sectors",
        "memory",
        "valid-counts",
        "wear",
        "utilisation",
    ];
    assert_eq!(ids(&one()), of_run);
    let compared = ids(&comparison(2, 40));
    let of_comparison = [
        "figure-waf-gc",
        "iops-write",
        "bandwidth-write",
        "media-bandwidth",
        "waf",
        "free-lines",
        "latency-write-p99",
        "cdf-write",
        "flush",
        "memory",
    ];
    assert!(
        of_comparison.iter().all(|id| compared.iter().any(|other| other == id)),
        "{compared:?}"
    );
    let swept = ids(&with(sweep(), &["waf.gc"]));
    assert_eq!(swept, ["figure-waf-gc-victim-x", "figure-waf-gc-victim-y"]);
}

/// Where nothing completed a line breaks, instead of leading across as if something had.
#[test]
fn lines_break_where_nothing_happened() {
    let mut run = run("pblk", &[], 1, 9);
    run.result["nandscape"]["series"][4]["write"] = Value::Null;
    let plots = Report::new("gap", vec![run]).plots();
    let latency = plots.iter().find(|plot| plot.id == "latency-write").unwrap().standalone();
    let rows = latency["data"]["values"].as_array().unwrap();
    assert_eq!(rows.iter().filter(|row| row["y"].is_null()).count(), 4, "one of each line");
}

/// A point of a sweep is the mean over its seeds, in the middle of its confidence interval.
#[test]
fn sweeps_have_confidence_bands() {
    let plots = with(sweep(), &["waf.gc"]).plots();
    let spec = plots[0].standalone();
    let first = &spec["data"]["values"][0];
    let of = |key: &str| first[key].as_f64().unwrap();
    assert!((of("mean") - 1.52).abs() < 1e-12, "{first}");
    assert!(of("low") < of("mean") && ((of("low") + of("high")) / 2.0 - of("mean")).abs() < 1e-12);
    assert_eq!(spec["layer"][0]["mark"]["type"], "area");
}

/// A relative figure says at its axis what it is relative to, and is one where it is relative to itself.
#[test]
fn relative_figures_are_ratios() {
    let report = with(sweep(), &["write.iops / ftl.op_percent=10", "sectors.user / sectors.gc"]);
    let plots = report.plots();
    plots.iter().for_each(check);
    let spec = plots[0].standalone();
    assert_eq!(spec["title"], json!(["Write IOPS, victim x"]));
    let title = &spec["layer"][0]["encoding"]["y"]["axis"]["title"];
    assert_eq!(title, "Relative to op_percent 10 (ratio)");
    let means: Vec<_> =
        spec["data"]["values"].as_array().unwrap().iter().map(|row| &row["mean"]).collect();
    assert_eq!(means, [1.0, 1.0]);
    assert_eq!(plots.last().unwrap().standalone()["data"]["values"][0]["mean"], 2.0);
    let stray = sweep().with_figures([figure("waf.gc / ftl.op_percent=30")]).unwrap_err();
    assert_eq!(stray.to_string(), "no point has ftl.op_percent=30; there are 10, 20");
}

/// A line is a rule with its label in every plot of its figure, in the plot's unit, and nowhere else;
/// caption and table have the label, too.
#[test]
fn lines_are_labelled_rules() {
    let label = "the paper <1>";
    for (report, across) in [(sweep(), "y"), (comparison(2, 9), "x")] {
        let line =
            Line { figure: figure("write.clat_ns.p99"), value: 90_000.0, label: label.into() };
        let report = with(report, &["waf.gc", "write.clat_ns.p99"]).with_lines(vec![line]);
        let plots = report.plots();
        plots.iter().for_each(check);
        let of = |id: &str| plots.iter().filter(|plot| plot.id.starts_with(id)).collect::<Vec<_>>();
        for plot in of("figure-write-clat-ns-p99") {
            let spec = plot.standalone();
            assert_eq!(spec["layer"][0]["mark"]["type"], "rule");
            assert_eq!(spec["layer"][0]["encoding"][across]["datum"], 90.0, "in µs");
            assert_eq!(spec["layer"][1]["mark"]["text"], label);
            assert!(plot.caption.ends_with("Line at 90.00 µs: the paper <1>."), "{}", plot.caption);
        }
        assert!(
            of("figure-waf-gc").iter().all(|plot| !plot.standalone().to_string().contains(label))
        );
        assert!(
            report.html().contains(
                "<p class=\"note\">write.clat_ns.p99 = 90.00 µs: the paper &lt;1&gt;</p>"
            )
        );
    }
}

/// A page needs nothing but itself, and forbids itself to ask for more.
#[test]
fn pages_are_self_contained() {
    for report in [one(), comparison(3, 40), sweep()] {
        let html = report.html();
        assert!(html.contains("content=\"default-src 'none'"));
        let markup = html.split("<script").next().unwrap();
        assert!(!markup.contains(" src=") && !markup.contains("<link") && !markup.contains("url("));
        assert!(!html.contains("sourceMappingURL"));
        assert_eq!(html.matches("<script").count(), html.matches("</script>").count());
    }
}

/// What users name is text, never markup; warnings are said, and so is how to make it again.
#[test]
fn what_comes_from_outside_stays_text() {
    let html = Report::new("<b>&", vec![run("<i>", &[], 2, 3)]).html();
    assert!(html.contains("<h1>&lt;b&gt;&amp;</h1>") && !html.contains("<i>"));
    assert!(html.contains("not steady: &lt;never&gt;") && !html.contains("<never>"));
    assert!(html.contains("nandscape run --stack '&lt;pblk&gt;'"));
    assert!(html.contains("name = &quot;pblk&quot;"));
}

/// The largest comparison stays below the bound, and so does a sweep of thousands of points.
#[test]
fn pages_are_small() {
    let largest = comparison(8, 256).html().len();
    assert!(largest < BYTES_MAX, "{largest}");
    let point = |at: u64| run("pblk", &[("ftl.op_percent", at.into())], 1, 0);
    let sweep = Report::new("many", (0..3_000).map(point).collect()).html().len();
    assert!(sweep < BYTES_MAX, "{sweep}");
}

/// A result from another program, or from an older version of this one, lacks plots and nothing else.
#[test]
fn what_a_result_lacks_is_left_out() {
    let mut bare = run("pblk", &[], 1, 0);
    bare.result =
        json!({ "nandscape": { "stack": "pblk", "series": [{ "t_s": 1.0, "waf": null }] } });
    let report = Report::new("bare", vec![bare]);
    assert!(ids(&report).is_empty(), "{:?}", ids(&report));
    assert!(report.html().contains("<dt>Stack</dt><dd>pblk</dd>"));
    assert!(Report::new("nothing", Vec::new()).html().contains("<h1>nothing</h1>"));
}

/// The table of a run has each direction of each job, those of all jobs first, and the flowops of a workload.
#[test]
fn runs_have_tables() {
    let mut run = run("pblk", &[], 1, 3);
    let mut second = run.result["jobs"][0].clone();
    second["jobname"] = json!("<second>");
    second["write"]["total_ios"] = json!(300);
    run.result["jobs"].as_array_mut().unwrap().push(second);
    run.result["nandscape"]["wml"] = json!({ "flowops": [{
        "name": "open-old", "type": "openfile", "ops": 1_234, "ops_per_s": 617.0, "bytes_per_s": 0.0,
        "latency_ns": { "mean": 4_500.0, "max": 9_000, "percentile": { "50": 4_000, "99": 8_000 } },
    }] });
    let html = Report::new("tables", vec![run]).html();
    let row = |cells: &[&str]| {
        let cells = cells.iter().map(|cell| format!("<td>{cell}</td>"));
        cells.collect::<String>()
    };
    let of =
        |job: &str, way: &str| format!("<th scope=\"row\">{job}</th><th scope=\"row\">{way}</th>");
    assert!(html.contains(&(of("all jobs", "write") + &row(&["400", "800.0"]))), "over 0.5 s");
    assert!(
        html.contains(&(of("&lt;second&gt;", "write") + &row(&["300", "20,001", "76.29 MiB/s"])))
    );
    assert!(html.contains(&of("job", "fsync")) && html.contains("60.00 µs"));
    let flowop = ["1,234", "617.0", "–", "4.500 µs", "4.000 µs", "8.000 µs", "9.000 µs"];
    assert!(html.contains(&(of("open-old", "openfile") + &row(&flowop))));
}

/// The headline of writes is per byte of the application: what collection alone adds is a detail. Results of earlier versions
/// have all media writes.
#[test]
fn the_headline_of_writes_is_of_all_of_them() {
    let tile = |waf: Value| {
        let mut run = run("f2fs-zns", &[], 1, 3);
        run.result["nandscape"]["waf"] = waf;
        let html = Report::new("tile", vec![run]).html();
        let tile = html.split_once("Write amplification</span><strong>").unwrap().1;
        tile.split_once("</div>").unwrap().0.to_owned()
    };
    let waf = json!({ "gc": 1.0, "gc_pad": 7.4, "media": 7.47, "fs": 1.852, "total": 13.84 });
    let tiles = tile(waf);
    assert!(tiles.starts_with("13.84</strong>"), "{tiles}");
    assert!(
        tiles.contains("per byte that jobs wrote; FS 1.852, device 7.470, GC alone 1.000"),
        "{tiles}"
    );
    assert!(tile(json!({ "gc": 1.0, "media": 7.47 })).starts_with("7.470</strong>"));
}

/// A comparison has the device of each line, and the warnings that its text has: differences of devices, and those of the runs.
#[test]
fn comparisons_have_devices_and_warnings() {
    let on = |stack: &str, groups: &str| {
        let mut run = run(stack, &[], 1, 3);
        let ours = &mut run.result["nandscape"];
        ours["device_label"] = format!("the device of {stack}").into();
        ours["device_keys"] = json!({ "media.groups": groups });
        ours["warnings"] = json!(["only 0 B of 1.00 GiB reached the device"]);
        run
    };
    let report = Report::new("both", vec![on("a", "2"), on("b", "4")]);
    let (html, warnings) = (report.html(), report.warnings());
    assert!(
        warnings[0].starts_with("the stacks differ in their devices (media.groups)"),
        "{warnings:?}"
    );
    assert_eq!(warnings[1], "all runs: only 0 B of 1.00 GiB reached the device");
    for text in [
        "<th scope=\"col\" class=\"words\">device</th>",
        "the device of a</th>",
        "the device of b</th>",
        "(media.groups)",
    ] {
        assert!(html.contains(text), "{text}");
    }
    let same = Report::new("both", vec![on("a", "2"), on("b", "2")]);
    assert!(same.html().contains("the device of a</th>") && same.warnings().len() == 1);
    let mut old = vec![on("a", "2"), on("b", "4")];
    for run in &mut old {
        run.result["nandscape"]
            .as_object_mut()
            .unwrap()
            .retain(|key, _| !key.starts_with("device_"));
    }
    let old = Report::new("old", old);
    assert!(
        !old.html().contains(">device</th>") && old.warnings().len() == 1,
        "nothing is made up"
    );
}

/// A percentile of which there are too few requests is left out of tables, tiles and figures.
#[test]
fn percentiles_need_requests() {
    let of = |ios: u64| {
        let mut run = run("pblk", &[], 1, 3);
        for way in ["read", "write", "trim"] {
            run.result["jobs"][0][way]["total_ios"] = ios.into();
            run.result["jobs"][0][way]["clat_ns"]["N"] = ios.into();
        }
        let paths = [
            "write.clat_ns.p99",
            "write.clat_ns.percentile.99.000000",
            "all.write.clat_ns.p99",
            "all.write.clat_ns.p50",
        ];
        let report = with(Report::new("few", vec![run]), &paths);
        report.html()
    };
    let row = |html: &str| {
        let row = html.split_once("<th scope=\"row\">write</th>").unwrap().1;
        row.split_once("</tr>").unwrap().0.matches("<td>–</td>").count()
    };
    let (few, enough) = (of(20), of(100));
    assert!(row(&few) > row(&enough), "{} {}", row(&few), row(&enough));
    let markup = |html: &str| html.split("<script").next().unwrap().contains(", p99 ");
    assert!(!markup(&few) && markup(&enough), "tiles");
}

/// Every section of a page can be reached by a link that stays in sight.
#[test]
fn sections_are_linked() {
    for report in [one(), comparison(2, 9), sweep()] {
        let html = report.html();
        let ids = html.split("<section id=\"").skip(1).filter_map(|rest| rest.split('"').next());
        let ids: Vec<&str> = ids.collect();
        assert!(
            ids.len() > 2 && ids.iter().all(|id| html.contains(&format!("<a href=\"#{id}\">")))
        );
    }
}

/// Write amplification is that of a window of writes, so a stall of users is no peak of it; and causes are stacked in
/// the colours of their meanings.
#[test]
fn amplification_is_over_writes() {
    let mut stalled = run("pblk", &[], 1, 40);
    let sectors = &mut stalled.result["nandscape"]["series"][20]["sectors"];
    *sectors = json!({ "user": 1, "gc": 500, "stale": 0, "pad": 0, "meta": 0, "map": 0 });
    let plots = Report::new("stall", vec![stalled]).plots();
    let spec = |id: &str| plots.iter().find(|plot| plot.id == id).unwrap().standalone();
    let highest = |spec: &Value| {
        let rows = spec["data"]["values"].as_array().unwrap();
        rows.iter().filter_map(|row| row["y"].as_f64()).fold(0.0, f64::max)
    };
    let waf = highest(&spec("waf"));
    assert!((3.0..6.0).contains(&waf), "{waf} and not 501");
    let areas = spec("media-bandwidth");
    let domain = &areas["encoding"]["color"]["scale"]["domain"];
    assert_eq!(
        (&domain[0], &domain[1], &domain[4]),
        (&json!("user data"), &json!("GC copies"), &json!("padding"))
    );
    assert_eq!(areas["encoding"]["y"]["stack"], "zero");
}

/// A run on files tells of its file system, and of what became of writes and reads in it.
#[test]
fn file_systems_are_described() {
    let mut on_files = run("ext4-pblk", &[], 1, 3);
    let ours = &mut on_files.result["nandscape"];
    ours["waf"]["fs"] = json!(1.25);
    ours["fs"] = json!({
        "kind": "ext4", "data": "ordered", "commit": "jbd2",
        "journal": { "commits": 12, "blocks": 3_456 }, "cache": { "hits": 3, "misses": 1 },
    });
    let html = Report::new("files", vec![on_files]).html();
    assert!(html.contains("<dt>File system</dt><dd>ext4, data=ordered, commit=jbd2</dd>"));
    assert!(
        html.contains("1.25")
            && html.contains("FS write amplification")
            && html.contains("12 commits, 3,456 blocks to the journal")
    );
    assert!(html.contains("Page cache hits") && html.contains("75.00 %"));
    assert!(!one().html().contains("File system"));
}
