//! Whatever the binary writes is under its name only when it is whole: not before, and not if it fails.

#![cfg(unix)]

use crate::common;
use crate::common::parts;

use common::{Folder, err, out};
use parts::parts;
use std::fs::{File, metadata};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output, Stdio};

const RUN: [&str; 4] = ["run", "job.fio", "--stack", "small.toml"];

/// The binary where no file may have more than a KiB, as on a disk that is full.
fn on_a_full_disk(folder: &Folder, args: &[&str]) -> Output {
    let binary = folder.command(args);
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' XFSZ; ulimit -f 2; exec \"$0\" \"$@\""]);
    shell.arg(binary.get_program()).args(args).current_dir(&folder.0);
    shell.env("XDG_CACHE_HOME", folder.0.join("cache")).output().unwrap()
}

fn read(folder: &Folder, name: &str) -> Option<String> {
    std::fs::read_to_string(folder.0.join(name)).ok()
}

/// What cannot be written to its end leaves nothing, and what was there stays; the error names the file.
#[test]
fn a_full_disk_leaves_what_was_there() {
    let folder = Folder::new("whole-full");
    let job = "[w]\nrw=randwrite\ndirect=1\nnumber_ios=2000\n";
    folder.write("logs.fio", &format!("{job}write_lat_log=log\n"));
    folder.write("iolog.fio", &format!("{job}write_iolog=iolog\n"));
    folder.write("t.trace", &"1000 0 0 8 0\n".repeat(200));
    let json = ["--output-format", "json", "--output", "result.json"];
    assert_eq!(folder.run(&[&RUN[..], &json].concat()).status.code(), Some(0));
    std::fs::copy(folder.0.join("result.json"), folder.0.join("kept.json")).unwrap();
    let stack = &RUN[2..];
    let cases: [(&[&str], &[&str], &str); 12] = [
        (&RUN, &json, "result.json"),
        (&RUN, &["--report", "run.html"], "run.html"),
        (&RUN, &["--hdr-interval", "1", "--hdr-log", "run.hlog"], "run.hlog"),
        (&RUN, &["--trace", "run.trace"], "run.trace"),
        (&RUN, &["--save-state", "run.state"], "run.state"),
        (&["run", "logs.fio"], stack, "log_clat.1.log"),
        (&["run", "iolog.fio"], stack, "iolog"),
        (&["trace", "run", "t.trace", "--trace", "replay.trace"], stack, "replay.trace"),
        (&["compare", "small.toml", "--job", "job.fio"], &["--report", "c.html"], "c.html"),
        (&["report", "kept.json"], &["--output", "r.html"], "r.html"),
        (&["man", "--output"], &["."], "nandscape-run.1"),
        (&["mkfs", "--fs", "ext4", "--force", "--size", "1MiB"], &["disk.img"], "disk.img"),
    ];
    for (command, more, name) in cases {
        for old in [None, Some("old")] {
            let _ = std::fs::remove_file(folder.0.join(name));
            old.inspect(|text| folder.write(name, text));
            let output = on_a_full_disk(&folder, &[command, more].concat());
            let message = err(&output);
            assert_eq!(output.status.code(), Some(1), "{name}: {message}");
            assert!(
                message.contains("cannot write ") && message.contains(name),
                "{name}: {message}"
            );
            assert_eq!((read(&folder, name).as_deref(), parts(&folder).len()), (old, 0), "{name}");
        }
    }
}

/// A run whose input turns out to be wrong leaves logs and timelines as they were, as it does results.
#[test]
fn wrong_input_costs_no_log() {
    let folder = Folder::new("whole-wrong");
    folder.write("long.fio", "[w]\nrw=write\ndirect=1\nsize=1t\nwrite_lat_log=log\n");
    let files = ["run.trace", "run.hlog", "log_slat.1.log"];
    let beside = ["--trace", files[0], "--hdr-log", files[1]];
    files.iter().for_each(|name| folder.write(name, "old"));
    let job = folder.run(&[&["run", "long.fio"], &RUN[2..], &beside].concat());
    assert_eq!(job.status.code(), Some(2), "{}", err(&job));
    // Standard input is read once, so its last line is met at the end of the replay.
    let mut trace = folder.command(&[&["trace", "run", "-"], &RUN[2..], &beside].concat());
    let mut trace = trace.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = "1000 0 0 8 0\n".repeat(500) + "nonsense\n";
    trace.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let trace = trace.wait_with_output().unwrap();
    assert_eq!(trace.status.code(), Some(2), "{}", err(&trace));
    files.iter().for_each(|name| assert_eq!(read(&folder, name).as_deref(), Some("old"), "{name}"));
    assert!(parts(&folder).is_empty());
}

/// Who had a file still has it: its permissions stay, and links lead to it, also one that led nowhere.
#[test]
fn a_new_file_is_what_the_old_one_was() {
    let folder = Folder::new("whole-kept");
    let at = |name: &str| folder.0.join(name);
    for name in ["result", "trace", "hlog", "html"] {
        folder.write(name, "old");
        std::fs::set_permissions(at(name), PermissionsExt::from_mode(0o600)).unwrap();
        symlink(name, at(&format!("{name}.link"))).unwrap();
    }
    std::fs::create_dir(at("sub")).unwrap();
    symlink("sub/nowhere", at("first.link")).unwrap();
    symlink("first.link", at("iolog.link")).unwrap();
    folder
        .write("job.fio", "[w]\nrw=randwrite\ndirect=1\nnumber_ios=100\nwrite_iolog=iolog.link\n");
    let beside = ["--trace", "trace.link", "--hdr-log", "hlog.link", "--report", "html.link"];
    let output = folder.run(&[&RUN[..], &["--output", "result.link"], &beside].concat());
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    for name in ["result", "trace", "hlog", "html"] {
        assert!(at(&format!("{name}.link")).is_symlink(), "{name}");
        assert_ne!(read(&folder, name).as_deref(), Some("old"), "{name}");
        assert_eq!(metadata(at(name)).unwrap().permissions().mode() & 0o777, 0o600, "{name}");
    }
    assert!(at("iolog.link").is_symlink() && at("first.link").is_symlink());
    assert!(read(&folder, "sub/nowhere").unwrap().starts_with("fio version 3 iolog"));
    assert!(parts(&folder).is_empty());
}

/// Where standard output goes is written to directly, behind what is there, and so is what is no file.
#[test]
fn standard_output_is_not_replaced() {
    let folder = Folder::new("whole-stdout");
    folder.write("all", "before\n");
    let all = File::options().append(true).open(folder.0.join("all")).unwrap();
    let mut run = folder.command(&[&RUN[..], &["--output", "/dev/stdout"]].concat());
    let run = run.args(["--report", "/dev/null"]).stdout(all).stderr(Stdio::piped());
    let run = run.output().unwrap();
    assert_eq!(run.status.code(), Some(0), "{}", err(&run));
    let text = read(&folder, "all").unwrap();
    assert!(text.starts_with("before\njob.fio on small, seed 1\n"), "{text}");
    let piped = folder.run(&[&RUN[..], &["--output", "/dev/stdout"]].concat());
    assert!(out(&piped).starts_with("job.fio on small, seed 1\n"), "{}", err(&piped));
    assert!(!Path::new("/dev/null").is_file());
}

/// A path that can only be a folder's is no file's.
#[test]
fn a_folder_by_name_is_refused() {
    let folder = Folder::new("whole-folder");
    let output = folder.run(&[&RUN[..], &["--output", "new/"]].concat());
    assert_eq!(output.status.code(), Some(2), "{}", err(&output));
    assert!(err(&output).starts_with("nandscape: cannot write new/: "), "{}", err(&output));
    assert!(read(&folder, "new").is_none());
}
