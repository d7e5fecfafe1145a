//! `nandscape crash`: where findings go, and that no option is left aside in silence.

use crate::common;

use common::{Folder, err, out};
use serde_json::Value;

/// A matrix small enough for a test: three compositions.
const MATRIX: [&str; 7] =
    ["crash", "--matrix", "all", "--composition", "single/*/device/data/resident", "--cuts", "2"];

/// Without the lines on program, wall time and command.
fn without_foot(text: &str) -> String {
    let foot = |line: &&str| line.starts_with("  nandscape ") || line.starts_with("  Reproduce: ");
    text.lines().filter(|line| !foot(line)).map(|line| format!("{line}\n")).collect()
}

/// A matrix has the forms of a campaign, and goes where the option says, whatever the number of threads.
#[test]
fn a_matrix_is_json_too_and_goes_to_a_file() {
    let folder = Folder::new("crash-matrix");
    let plain = folder.run(&MATRIX);
    assert_eq!(plain.status.code(), Some(0), "{}", err(&plain));
    let args = ["--output", "matrix.txt", "--jobs", "2"];
    let written = folder.command(&MATRIX).args(args).output().unwrap();
    assert_eq!((written.status.code(), out(&written)), (Some(0), String::new()));
    let text = std::fs::read_to_string(folder.0.join("matrix.txt")).unwrap();
    assert_eq!(without_foot(&text), without_foot(&out(&plain)));

    let args = ["--output-format", "json", "--first", "7"];
    let report: Value =
        serde_json::from_str(&out(&folder.command(&MATRIX).args(args).output().unwrap())).unwrap();
    assert_eq!((&report["first_seed"], &report["cuts"]), (&7.into(), &2.into()));
    assert_eq!(report["passed"], true);
    let compositions = report["compositions"].as_array().unwrap();
    assert!(compositions.len() > 1, "{report}");
    for one in compositions {
        let name = one["composition"].as_str().unwrap();
        assert!(name.starts_with("single/") && name.ends_with("/device/data/resident"), "{name}");
        assert!(one["seeds"].as_u64() >= Some(1) && one["counts"]["cuts"].as_u64() >= Some(2));
        assert_eq!(one["violations"], Value::Array(Vec::new()));
    }
    assert!(report["refused"].as_array().is_some());
}

/// What a matrix finds is exit code 1, with composition and seed in the JSON.
#[test]
fn violations_of_a_matrix_are_json() {
    let folder = Folder::new("crash-matrix-broken");
    let args = ["--omit", "lost-trims", "--output-format", "json", "--cuts", "200"];
    let output = folder.command(&MATRIX[..5]).args(args).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", err(&output));
    let report: Value = serde_json::from_str(&out(&output)).unwrap();
    assert_eq!(report["passed"], false);
    let compositions = report["compositions"].as_array().unwrap();
    let mut violations = compositions.iter().flat_map(|one| one["violations"].as_array().unwrap());
    assert!(violations.next().unwrap()["seed"].is_u64(), "{report}");
}

/// Edge cases are other devices than those that the same seeds draw, and keep their promises, too. The
/// option's former name is understood.
#[test]
fn edge_cases_are_drawn() {
    let folder = Folder::new("crash-edge-cases");
    let options: [&[&str]; 3] = [&[], &["--edge-cases"], &["--odd"]];
    let [plain, edges, former] = options.map(|option| {
        let said = folder.run(&[&["crash", "--seeds", "3"], option].concat());
        assert_eq!(said.status.code(), Some(0), "{}", err(&said));
        without_foot(&out(&said))
    });
    assert_ne!(plain, edges);
    assert_eq!(edges, former);
}

/// Rules are those of the kinds involved, and an error lists them. The option's former name is understood.
#[test]
fn rules_of_other_kinds_are_refused() {
    let folder = Folder::new("crash-omit");
    for option in ["--omit", "--broken"] {
        let said = folder.run(&["crash", option, "missing-revoke", "--seeds", "1"]);
        assert_eq!(said.status.code(), Some(2), "{}", err(&said));
        let listed = "no rule of pblk: expected one of sequence, erase-rule";
        assert!(err(&said).contains(listed), "{}", err(&said));
    }
    let said = folder.run(&["crash", "--fs", "ext4", "--omit", "gcj-mark"]);
    assert_eq!(said.status.code(), Some(2), "{}", err(&said));
    assert!(err(&said).contains("commit-before-data"), "{}", err(&said));
    assert!(!err(&said).contains("checkpoint-fua"), "{}", err(&said));
    let on_fs = ["crash", "--fs", "ext4", "--cuts", "1", "--omit"];
    for rule in ["erase-rule", "missing-revoke"] {
        let said = folder.run(&[&on_fs[..], &[rule]].concat());
        assert!(matches!(said.status.code(), Some(0 | 1)), "{rule}: {}", err(&said));
    }
}

/// `--rules` lists each rule once with a sentence; with a stack or a file system, those that may apply there.
#[test]
fn rules_are_listed() {
    let folder = Folder::new("crash-rules");
    let rows = |args: &[&str]| {
        let said = folder.run(&[&["crash", "--rules=json"], args].concat());
        assert_eq!(said.status.code(), Some(0), "{}", err(&said));
        let rows: Vec<Value> = serde_json::from_str(&out(&said)).unwrap();
        assert!(rows.iter().all(|row| row["without"].as_str().unwrap().len() > 10), "{rows:?}");
        rows.iter().map(|row| row["rule"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let all = rows(&[]);
    for (args, has, lacks) in [
        (&["--stack", "ssd"][..], "torn-units", "gcj-mark"),
        (&["--fs", "ext4"], "missing-revoke", "torn-units"),
        (&["--fs", "f2fs", "--stack", "zns"], "zone-finish", "upcall-reads"),
        (&["--fs", "f2fs", "--base", "adversary"], "growth-tail", "erase-rule"),
        (&["--ftl", "coupled"], "record-journal", "stale-map"),
    ] {
        let some = rows(args);
        assert!(some.iter().any(|rule| rule == has), "{args:?}: {has}");
        assert!(!some.iter().any(|rule| rule == lacks), "{args:?}: {lacks}");
        assert!(all.iter().any(|rule| rule == lacks) && some.len() < all.len());
    }
    let text = out(&folder.run(&["crash", "--rules", "--stack", "ssd"]));
    assert_eq!(text.lines().count(), rows(&["--stack", "ssd"]).len());
    let csv = out(&folder.run(&["crash", "--rules=csv"]));
    assert!(csv.starts_with("rule,without,applies\n") && csv.lines().count() > all.len());
}

/// The policies of a stack are those of every seed, and the report says what is drawn.
#[test]
fn a_stack_keeps_its_policies() {
    let folder = Folder::new("crash-policies");
    let set = ["--set", "ftl.gc.victim=cost-benefit", "--omit", "erase-rule"];
    let args =
        ["--seeds", "40", "--max-violations", "40", "--no-shrink", "--output-format", "json"];
    let said = folder.command(&["crash", "--stack", "ssd"]).args(set).args(args).output().unwrap();
    let report: Value = serde_json::from_str(&out(&said)).unwrap();
    let violations = report["violations"].as_array().unwrap();
    assert!(violations.len() > 4, "{report}");
    for violation in violations {
        let ftl = &violation["scenario"]["ftl"];
        assert_eq!(ftl["victim"], "cost-benefit");
        assert_eq!(ftl["map_unit_bytes"], 4096);
    }
    let named = |list: &str, key: &str| {
        report["stack"][list].as_array().unwrap().iter().any(|named| named == key)
    };
    assert!(named("as_given", "gc.victim") && named("drawn", "op_percent"), "{report}");
    let text = out(&folder.run(&["crash", "--stack", "ssd", "--seeds", "2"]));
    assert!(text.contains("  stack, as given in all seeds: timing, gc.victim"), "{text}");
}

/// The command that reproduces a violation, run as it is printed, shows the same violation and no other: of a campaign on
/// devices, on a file system, and of a matrix.
#[test]
fn violations_are_reproduced_by_the_command_that_names_them() {
    let folder = Folder::new("crash-reproduce");
    let cases: [&[&str]; 3] = [
        &["--stack", "ssd", "--set", "ftl.op_percent=40", "--omit", "trim-gate"],
        &["--fs", "ext4", "--base", "adversary", "--omit", "missing-revoke"],
        &[
            "--matrix",
            "all",
            "--composition",
            "single/*/device/data/resident",
            "--omit",
            "lost-trims",
        ],
    ];
    for args in cases {
        let said = folder.run(&[&["crash"], args].concat());
        assert_eq!(said.status.code(), Some(1), "{args:?}: {}{}", out(&said), err(&said));
        let story = |text: &str| {
            let (_, from) = text.split_once("\n\n").unwrap();
            let (story, _) = from.split_once("  reproduce: ").unwrap();
            story[story.find("seed ").unwrap()..].to_owned()
        };
        let text = out(&said);
        let text = &text[text.find("FAIL: ").unwrap()..];
        let command = text.lines().find_map(|line| line.strip_prefix("  reproduce: nandscape "));
        let words: Vec<&str> =
            command.unwrap().split(' ').map(|word| word.trim_matches('\'')).collect();
        let again = out(&folder.run(&words));
        assert!(again.contains("FAIL: violations in 1 of 1 seed"), "{words:?}: {again}");
        let again = &again[again.find("FAIL: ").unwrap()..];
        assert_eq!(story(again), story(text), "{words:?}");
    }
}

/// The part of a run to which a violation is minimised shows the same violation with the same events when the command that
/// names it runs, and does not depend on the number of threads: of a campaign on devices, on a file system, and of a matrix.
#[test]
fn minimised_violations_are_reproduced_by_the_command_that_names_them() {
    let folder = Folder::new("crash-minimised");
    let json = |args: &[&str]| -> Value {
        let said = folder.run(&[args, &["--output-format", "json"]].concat());
        assert_eq!(said.status.code(), Some(1), "{args:?}: {}", err(&said));
        serde_json::from_str(&out(&said)).unwrap()
    };
    let on_fs = ["--fs", "ext4", "--base", "adversary", "--omit", "commit-fua"];
    let composition = "single/*/device/data/resident";
    let of_matrix =
        ["--matrix", "all", "--composition", composition, "--omit", "lost-trims", "--cuts", "40"];
    for args in [&["--omit", "lost-trims"][..], &on_fs, &of_matrix] {
        let violations = |jobs| {
            let report = json(&[&["crash"], args, &["--jobs", jobs]].concat());
            let parts = report["compositions"].as_array().cloned().unwrap_or(vec![report]);
            let all = parts.iter().flat_map(|part| part["violations"].as_array().unwrap().clone());
            all.collect::<Vec<Value>>()
        };
        let all = violations("3");
        assert_eq!(all, violations("1"), "{args:?}");
        let minimised = &all[0]["minimised"];
        let count = |key: &str| minimised[key].as_u64().unwrap();
        assert!(count("operations") * 2 < count("operations_before"), "{minimised}");
        assert!(all.iter().skip(1).all(|other| other["minimised"].is_null()), "{all:?}");
        let command = minimised["reproduce"].as_str().unwrap();
        assert!(command.contains(minimised["only"].as_str().unwrap()), "{minimised}");
        let words: Vec<&str> =
            command.split(' ').skip(1).map(|word| word.trim_matches('\'')).collect();
        let again = &json(&words)["violations"][0];
        for key in ["message", "lba", "expected", "actual", "event_log"] {
            assert_eq!(again[key], minimised[key], "{key}: {command}");
        }
        assert_eq!(again["reproduce"], minimised["reproduce"]);
        assert!(again["minimised"].is_null(), "{again}");
    }
}

/// The first violation is printed in full and the others on a line each; --verbose prints all in full. Words are those
/// of people, and the scenario is keys and values.
#[test]
fn violations_are_told_in_words() {
    let folder = Folder::new("crash-words");
    let crash = ["crash", "--omit", "erase-rule", "--max-violations", "3"];
    let text = out(&folder.run(&[&crash[..], &["--jobs", "3"]].concat()));
    assert!(text.contains("; stopped after 3 failing seeds (--max-violations)\n"), "{text}");
    assert!(text.contains("\n2 other failing seeds (--verbose prints each in full):\n"), "{text}");
    assert_eq!(text.matches("  reproduce: nandscape crash ").count(), 2, "{text}");
    assert_eq!(text.matches(" minimised to ").count(), 1, "{text}");
    let whole = out(&folder.run(&[&crash[..], &["--no-shrink"]].concat()));
    assert_eq!(whole.matches("  reproduce: nandscape crash ").count(), 1, "{whole}");
    assert!(text.contains("\n    t="), "{text}");
    for debug in ["Some(", "None", "Ok(", "Tag(", "Lba(", "Flags(", " { owner", "=No"] {
        assert!(!text.contains(debug), "{debug}: {text}");
    }
    let (_, scenario) = text.split_once("  scenario:\n").unwrap();
    let scenario: Vec<&str> =
        scenario.lines().map_while(|line| line.strip_prefix("    ")).collect();
    assert!(scenario.iter().any(|line| line.starts_with("media = { groups = ")), "{scenario:?}");
    let full = out(&folder.run(&[&crash[..], &["-v", "--jobs", "1"]].concat()));
    let (first, _) = text.split_once("2 other failing seeds").unwrap();
    assert!(full.starts_with(first), "the number of threads changes nothing: {full}");
    assert_eq!(full.matches("  reproduce: nandscape crash ").count(), 6, "{full}");
    let json = folder.run(&[&crash[..], &["--output-format", "json"]].concat());
    let json: Value = serde_json::from_str(&out(&json)).unwrap();
    assert_eq!((&json["stopped"], &json["interrupted"]), (&true.into(), &false.into()));
    let violation = &json["violations"][0];
    assert_eq!(violation["scenario"]["seed"], violation["seed"]);
    let first = violation["event_log"][0].as_str().unwrap();
    assert!(text.contains(first), "{first}");
    assert!(text.contains(violation["reproduce"].as_str().unwrap()), "{violation}");
}

/// Lost sectors are counted in the findings, and left out of recovery they break a promise.
#[test]
fn sectors_are_lost_as_often_as_configured() {
    let folder = Folder::new("crash-unreadable");
    let findings = |args: &[&str]| -> Value {
        let crash = ["crash", "--seeds", "20", "--output-format", "json"];
        serde_json::from_str(&out(&folder.run(&[&crash, args].concat()))).unwrap()
    };
    let none = findings(&["--unreadable", "0"]);
    assert_eq!((&none["passed"], &none["counts"]["unreadable"]), (&true.into(), &0.into()));
    let some = findings(&["--unreadable", "100"]);
    assert_eq!(some["passed"], true);
    assert!(some["counts"]["unreadable"].as_u64() > Some(100), "{some}");
    assert_eq!(findings(&["--unreadable", "100", "--omit", "unreadable"])["passed"], false);
}

/// An option that a campaign has no use for is refused, also beside one that conflicts with what it
/// needs.
#[test]
fn options_without_effect_are_refused() {
    let folder = Folder::new("crash-options");
    let cases: [(&[&str], &str); 23] = [
        (&["--oracle-every", "5"], "--fs"),
        (&["--data", "journal"], "--fs"),
        (&["--commit", "ijournal"], "--fs"),
        (&["--oracle-every", "5", "--seeds", "2"], "--oracle-every"),
        (&["--data", "journal", "--seeds", "2"], "--fs"),
        (&["--data", "ordered", "--faults", "9"], "--data"),
        (&["--commit", "ijournal", "--matrix", "pairs"], "--commit"),
        (&["--oracle-every", "5", "--composition", "*"], "--oracle-every"),
        (&["--set", "ftl.op_percent=30"], "--stack"),
        (&["--set", "ftl.op_percent=30", "--matrix", "pairs"], "--set"),
        (&["--cuts", "3"], "--cuts"),
        (&["--seeds", "0"], "--seeds"),
        (&["--fs", "ext4", "--seeds", "2", "--cuts", "3"], "--seeds"),
        (&["--fs", "ext4", "--edge-cases"], "--edge-cases"),
        (&["--fs", "ext4", "--unreadable", "9"], "--unreadable"),
        (&["--faults", "9", "--edge-cases"], "--edge-cases"),
        (&["--only", "0:ops=1"], "--seeds"),
        (&["--only", "0:ops=1", "--seeds", "2"], "--only: a part of one seed"),
        (&["--only", "0:ops=x", "--seeds", "1"], "round 0: ops: 'x'"),
        (&["--only", "99:ops=1", "--seeds", "1"], "--only: round 99: the last one of this seed is"),
        (&["--only", "0:w0=1", "--seeds", "1"], "--only: round 0: w0: expected ops"),
        (&["--fs", "ext4", "--only", "0:ops=1", "--seeds", "1"], "round 0: ops: expected w0"),
        (&["--fs", "ext4", "--only", "faults/0:w0=1", "--seeds", "1"], "--only: a campaign on a"),
    ];
    for (args, named) in cases {
        let output = folder.command(&["crash"]).args(args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", err(&output));
        assert!(err(&output).contains(named), "{args:?}: {}", err(&output));
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}

/// A campaign on a file system mounts it as the stack's `[fs]` says unless the command line does, and its
/// report says how.
#[test]
fn the_stack_says_how_its_file_system_is_mounted() {
    let folder = Folder::new("crash-mounted");
    let set = ["--set", "fs.data=journal", "--set", "fs.commit=ijournal"];
    let cases: [(&str, &[&str], [&str; 2]); 5] = [
        ("pblk", &[], ["ordered", "jbd2"]),
        ("pblk", &set, ["journal", "ijournal"]),
        ("ext4-fa-ftl", &[], ["ordered", "ijournal"]),
        ("ext4-pblk", &set, ["journal", "ijournal"]),
        ("ext4-selective", &["--data", "writeback"], ["writeback", "jbd2"]),
    ];
    for (stack, args, [data, commit]) in cases {
        let crash = ["crash", "--fs", "ext4", "--cuts", "1", "--stack", stack];
        let said = folder.run(&[&crash, args].concat());
        assert_eq!(said.status.code(), Some(0), "{stack} {args:?}: {}", err(&said));
        let expected = format!("ext4, data={data}, commit={commit}, base=flash\n");
        assert!(out(&said).starts_with(&expected), "{expected}{}", out(&said));
        let json = folder.run(&[&crash, args, &["--output-format", "json"]].concat());
        let report: Value = serde_json::from_str(&out(&json)).unwrap();
        let mounted = serde_json::json!({ "kind": "ext4", "base": "flash", "data": data,
            "commit": commit, "full": false });
        assert_eq!(report["fs"], mounted, "{stack} {args:?}");
    }
}

/// A campaign on F2FS needs no stack; its report says which modes were given and which each seed drew.
#[test]
fn a_campaign_says_which_modes_of_f2fs_are_drawn() {
    let folder = Folder::new("crash-f2fs");
    let cases: [(&[&str], [&str; 6]); 4] = [
        (&[], ["lfs", "drawn", "drawn", "drawn", "drawn", "flash"]),
        (
            &["--set", "fs.allocation=adaptive", "--set", "fs.small_volume=off"],
            ["adaptive", "off", "drawn", "drawn", "drawn", "flash"],
        ),
        (
            &["--set", "fs.data_order=ordered", "--base", "adversary"],
            ["lfs", "drawn", "drawn", "drawn", "ordered", "adversary"],
        ),
        (&["--stack", "f2fs-lfs-ssd"], ["lfs", "kernel", "posix", "6", "kernel", "flash"]),
    ];
    for (args, [allocation, small, fsync, logs, order, base]) in cases {
        let said = folder.run(&[&["crash", "--fs", "f2fs", "--cuts", "1"], args].concat());
        assert_eq!(said.status.code(), Some(0), "{args:?}: {}{}", out(&said), err(&said));
        let expected = format!(
            "f2fs, allocation={allocation}, small_volume={small}, alloc_mode=default, \
             reclaim=checkpoint, \
             gc_journal=safe, fsync_mode={fsync}, \
             active_logs={logs}, data_order={order}, victim=cost-benefit, base={base}\n"
        );
        assert!(out(&said).starts_with(&expected), "{expected}{}", out(&said));
    }
    let refused = folder.run(&["crash", "--fs", "f2fs", "--set", "fs.inline_data=false"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(err(&refused).contains("--set fs.inline_data: "), "{}", err(&refused));
}

/// What a stack's `[fs]` asks for and a campaign does not do is refused where it stands.
#[test]
fn keys_of_a_file_system_without_effect_are_refused() {
    let folder = Folder::new("crash-fs-keys");
    folder.write(
        "mine.toml",
        "extends = \"ext4-pblk\"\n[fs]\ndata = \"journal\"\njournal = \"8MiB\"\n",
    );
    let features = ["--stack", "ext4-pblk", "--set", "fs.features=[\"^extent\"]"];
    let records = ["--stack", "ext4-fa-ftl", "--set", "fs.ijournal_area=64KiB"];
    let data = ["--stack", "ext4-pblk", "--set", "fs.data=journal"];
    let cases: [(&[&str], &[&str], &str); 5] = [
        (&["--fs", "ext4"], &features, "--set fs.features: "),
        (&["--fs", "ext4"], &records, "--set fs.ijournal_area: "),
        (&["--fs", "ext4"], &["--stack", "mine.toml"], "mine.toml:4:11: fs.journal: "),
        (&["--seeds", "1"], &data, "--set fs.data: "),
        (&["--seeds", "1"], &features, "--fs ext4"),
    ];
    for (on, args, named) in cases {
        let output = folder.run(&[&["crash"], on, args].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", err(&output));
        assert!(err(&output).contains(named), "{args:?}: {}", err(&output));
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}

/// A file that is renamed, and whose former name goes to another.
const LOG: &str = "\
case a log is rotated
mkdir v; write v/log 0 64k old; fsync v/log; sync
rename v/log v/log.1; write v/log 0 100 new; fsync v/log
CUT
data v/log 0 100 new
data v/log.1 0 64k old
";

/// Call sequences from a file or standard input: what does not hold has its place and class, what is named is counted, and
/// a wrong line is bad input.
#[test]
fn call_sequences_are_judged() {
    let folder = Folder::new("crash-calls");
    let run = |text: &str, args: &[&str]| {
        folder.write("log.calls", text);
        folder.run(&[&["crash", "--calls", "log.calls"], args].concat())
    };
    let kept = run(LOG, &["--fs", "ext4"]);
    assert_eq!(kept.status.code(), Some(0), "{}", err(&kept));
    let said = out(&kept);
    assert!(said.contains("base=adversary\nlog.calls: 1 case, "), "{said}");
    assert!(said.contains("PASS: no violations") && !said.contains("K1"), "{said}");

    let lost = run(LOG, &["--fs", "f2fs"]);
    assert_eq!(lost.status.code(), Some(1), "{}", err(&lost));
    let said = out(&lost);
    for line in [
        "FAIL: violations in 1 of 1 case",
        "case a log is rotated: after the cut at its end, `data v/log.1 0 65536 old` does not hold: v/log.1 is \
         missing (K1: as the kernel, not as POSIX)",
        "    fsync v/log\n    CUT\n    data v/log.1 0 65536 old\n",
    ] {
        assert!(said.contains(line), "{line}\n{said}");
    }
    assert!(err(&lost).contains("violations in 1 of 1 case"), "{}", err(&lost));

    let named = LOG.replace("64k old\n", "64k old unless K1\n");
    let json = run(&named, &["--fs", "f2fs", "--output-format", "json"]);
    assert_eq!(json.status.code(), Some(0), "{}", err(&json));
    let report: Value = serde_json::from_str(&out(&json)).unwrap();
    assert_eq!(report["losses"]["K1"]["sequences"], 1);
    assert_eq!(report["cases"][0]["losses"][0], "K1");
    assert_eq!(report["cases"][0]["line"], 2);
    assert_eq!(report["sequences"], 1);

    for (text, place) in [
        ("mkdir a\nmkdri b\n", "log.calls:2: `mkdri`: no call; expected one of create,"),
        ("mkdir a\nrename b c\n", "log.calls:2: rename b c: b: no such file or directory"),
        ("", "log.calls:1: no call"),
    ] {
        let refused = run(text, &["--fs", "ext4"]);
        assert_eq!(refused.status.code(), Some(2), "{}", out(&refused));
        assert!(err(&refused).contains(place), "{}", err(&refused));
    }
    let stack = run(LOG, &["--fs", "ext4", "--stack", "ssd", "--cuts", "2"]);
    assert_eq!(stack.status.code(), Some(0), "{}", err(&stack));
    assert!(out(&stack).contains("base=flash\nlog.calls: 1 case, 3 power cuts"), "{}", out(&stack));
}

/// Sequences are enumerated, all or as many as are asked for; what is found does not depend on the number of threads.
#[test]
fn sequences_are_enumerated() {
    let folder = Folder::new("crash-enumerate");
    let run = |jobs| {
        let args = ["crash", "--fs", "f2fs", "--enumerate", "2", "--seeds", "150", "--jobs", jobs];
        let ran = folder.run(&args);
        assert_eq!(ran.status.code(), Some(0), "{}", err(&ran));
        without_foot(&out(&ran))
    };
    let one = run("1");
    assert!(one.contains("sequences of 2 calls: 150 sequences, 1,800 power cuts"), "{one}");
    assert_eq!(one, run("2"));
    let broken =
        folder.run(&["crash", "--fs", "f2fs", "--omit", "fsync-rename", "--enumerate", "2"]);
    assert_eq!(broken.status.code(), Some(1), "{}", err(&broken));
    assert!(out(&broken).contains("\n  calls:\n    mkdir A\n"), "{}", out(&broken));
    for (option, why) in
        [(["--oracle-every", "3"], "--oracle-every"), (["--damage-every", "3"], "--damage-every")]
    {
        let said =
            folder.command(&["crash", "--fs", "ext4", "--enumerate", "1"]).args(option).output();
        let said = said.unwrap();
        assert_eq!(said.status.code(), Some(2));
        assert!(err(&said).contains(why), "{}", err(&said));
    }
}
