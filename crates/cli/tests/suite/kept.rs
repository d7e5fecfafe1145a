//! What a run leaves is kept, and run on again: the way of files from mke2fs through runs to e2fsck.

use crate::common;
use crate::common::e2fs;
use crate::common::parts;

use common::{Folder, err, out};
use parts::parts;

/// A stack with a file system that is on the device; what is said behind it is of a run.
const STACK: [&str; 6] =
    ["--stack", "small.toml", "--set", "host.memory=16MiB", "--set", "fs.format=false"];

/// Overwrites a file in part, reads one, makes one below a new folder, and one in the place of another
/// that is too short.
const JOB: &str = "[global]\nbs=4k\n[over]\nfilename=old/over\nrw=randwrite\nsize=1m\nnumber_ios=40\n\
                   fsync=8\n[read]\nfilename=old/read\nrw=read\nsize=1m\n\
                   [new]\nfilename=new/file\nrw=write\nsize=512k\nend_fsync=1\n\
                   [short]\nfilename=short\nrw=write\nsize=64k\ndirect=1\n";

fn succeed(folder: &Folder, args: &[&str]) -> String {
    let output = folder.run(args);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", err(&output));
    out(&output)
}

fn refused(folder: &Folder, args: &[&str], expected: &str) {
    let output = folder.run(args);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {}", err(&output));
    assert!(err(&output).contains(expected), "{expected}\nis not in\n{}", err(&output));
}

/// Bytes that are not the same anywhere.
fn bytes(length: u32) -> Vec<u8> {
    (0..length / 4).flat_map(|word| word.wrapping_mul(2_654_435_761).to_le_bytes()).collect()
}

/// An image of mke2fs's with files in it, and its state.
fn import(folder: &Folder, payload: &str) {
    std::fs::create_dir_all(folder.0.join("files/old")).unwrap();
    let put = |name: &str, bytes: &[u8]| {
        std::fs::write(folder.0.join("files").join(name), bytes).unwrap();
    };
    put("old/over", &bytes(1 << 20));
    put("old/read", &bytes(1 << 20));
    put("old/words", b"as it was\n");
    put("short", b"too short\n");
    #[cfg(unix)]
    std::os::unix::fs::symlink("short", folder.0.join("files/link")).unwrap();
    folder.write("files.fio", JOB);
    let make = ["-q", "-F", "-t", "ext4", "-b", "4096", "-d", "files", "a.img", "48M"];
    e2fs::tool(folder, "mke2fs", &make);
    let to = ["image", "import", "a.img", "--output", "a.state", "--set", payload];
    succeed(folder, &[&to, &STACK[..]].concat());
}

/// What mke2fs made goes through a run and comes out sound: what the job overwrote is new, what it made is
/// there, all else is as it was. The result is that of a run that leaves nothing.
#[test]
fn files_go_through_a_run() {
    if !e2fs::installed() {
        return;
    }
    for payload in ["media.payload=bytes", "media.payload=tags"] {
        let folder = Folder::new(&format!("kept-{}", &payload[14..]));
        import(&folder, payload);
        let run = ["run", "files.fio", "--state", "a.state", "--set", payload];
        let json = ["--output-format", "json"];
        let result = |more: &[&str]| {
            let text = succeed(&folder, &[&run, &STACK[..], &json, more].concat());
            let timed = |line: &&str| !line.contains("\"wall_s\"");
            text.lines().filter(timed).collect::<Vec<_>>().join("\n")
        };
        let kept = result(&["--save-state", "b.state"]);
        assert_eq!(kept, result(&[]));
        assert!(!kept.contains("the state holds"), "nothing to warn of");
        let shown = succeed(&folder, &["state", "show", "b.state"]);
        assert!(shown.contains("left by a run") && shown.contains("\n    run = "), "{shown}");

        let export = ["image", "export", "b.state", "b.img", "--set", payload];
        succeed(&folder, &[&export, &STACK[..]].concat());
        e2fs::tool(&folder, "e2fsck", &["-fn", "b.img"]);
        let of = |file: &str| e2fs::content(&folder, "b.img", file);
        assert_eq!(of("old/words"), b"as it was\n");
        assert_eq!(of("old/read"), bytes(1 << 20));
        let (before, after) = (bytes(1 << 20), of("old/over"));
        assert_eq!(after.len(), before.len());
        let changed = before.chunks(4096).zip(after.chunks(4096)).filter(|(a, b)| a != b).count();
        assert!((30..=40).contains(&changed), "{changed} of 40 writes");
        for (file, length) in [("new/file", 512 << 10), ("short", 64 << 10)] {
            let found = of(file);
            assert_eq!(found.len(), length, "{file}");
            assert!(found.chunks(4096).all(|block| block.iter().any(|&b| b != 0)), "{file}");
        }
    }
}

/// One run goes on where the other stopped, on every kind of FTL and commit, and the volume stays sound.
#[test]
fn runs_follow_each_other() {
    let folder = Folder::new("kept-on");
    folder.write("files.fio", JOB);
    folder.write("mail.f", include_str!("../../../../examples/varmail.f"));
    let small = ["media.chunks=48", "media.sectors=128", "ftl.op_percent=35", "host.memory=16MiB"];
    let small: Vec<&str> = small.iter().flat_map(|key| ["--set", key]).collect();
    let mail = ["--set", "$messages=100", "--set", "$threads=2", "--set", "$seconds=1"];
    let kinds = [
        ("ext4-pblk", "ordered"),
        ("ext4-js-pblk", "journal"),
        ("ext4-fa-ftl", "ordered"),
        ("ext4-combined", "writeback"),
    ];
    for (name, data) in kinds {
        let data = format!("fs.data={data}");
        let map: &[&str] =
            if name == "ext4-combined" { &["--set", "ftl.map.cache=100%"] } else { &[] };
        let stack = [&["--stack", name, "--set", &data], &small[..], map].concat();
        let on = ["--set", "fs.format=false", "--state"];
        let first = ["run", "files.fio", "--save-state", "1.state"];
        succeed(&folder, &[&first, &stack[..]].concat());
        let second = ["run", "mail.f", "--save-state", "2.state"];
        succeed(&folder, &[&second, &stack[..], &on, &["1.state"], &mail].concat());
        let third = ["run", "files.fio", "--save-state", "3.state", "--seed", "2"];
        succeed(&folder, &[&third, &stack[..], &on, &["2.state"]].concat());
        let fourth = ["run", "mail.f", "--save-state", "4.state"];
        succeed(&folder, &[&fourth, &stack[..], &on, &["3.state"], &mail].concat());
        succeed(&folder, &[&["image", "export", "4.state", "4.img"], &stack[..]].concat());
        let said = succeed(&folder, &["fsck", "4.img"]);
        assert!(said.contains("0 orphans"), "{name}: {said}");
        if e2fs::installed() {
            e2fs::tool(&folder, "e2fsck", &["-fn", "4.img"]);
        }
    }
}

/// A run that has no result leaves no state, and what was there stays; so does what is read.
#[test]
fn only_a_result_leaves_a_state() {
    let folder = Folder::new("kept-not");
    folder.write("job.fio", "[w]\nrw=write\nsize=1t\n");
    folder.write("old.state", "old");
    let run = ["run", "job.fio", "--stack", "small.toml", "--save-state"];
    for file in ["old.state", "new.state"] {
        assert_ne!(folder.run(&[&run[..], &[file]].concat()).status.code(), Some(0));
    }
    assert_eq!(std::fs::read_to_string(folder.0.join("old.state")).unwrap(), "old");
    assert!(!folder.0.join("new.state").exists() && parts(&folder).is_empty());
    for file in ["job.fio", "small.toml"] {
        refused(&folder, &[&run[..], &[file]].concat(), "it is also an input");
    }
    let again = ["--state", "old.state"];
    refused(&folder, &[&run[..], &["old.state"], &again].concat(), "it is also an input");
}

/// A run on a device that wears out has a result, but its file system cannot be unmounted: it leaves no
/// state, and what was there stays.
#[test]
fn what_cannot_be_unmounted_leaves_no_state() {
    let folder = Folder::new("kept-worn");
    folder.write("wear.fio", "[w]\nrw=randwrite\nbs=4k\nsize=48m\nio_size=1g\nfsync=32\n");
    folder.write("old.state", "old");
    let worn = ["media.endurance_erases=1", "precondition.recipe=none", "fs.kind=ext4"];
    let worn = worn.iter().flat_map(|key| ["--set", key]).collect::<Vec<_>>();
    let run = [&["run", "wear.fio"], &STACK[..4], &worn].concat();
    for file in ["old.state", "new.state"] {
        let output = folder.run(&[&run[..], &["--save-state", file]].concat());
        assert_eq!(output.status.code(), Some(1), "{}", err(&output));
        let why = format!("no state is saved to {file}: the file system was not unmounted: ");
        assert!(err(&output).contains(&why), "{}", err(&output));
        assert!(out(&output).contains("FAILED w: "), "{}", out(&output));
    }
    assert_eq!(std::fs::read_to_string(folder.0.join("old.state")).unwrap(), "old");
    assert!(!folder.0.join("new.state").exists() && parts(&folder).is_empty());
}

/// A volume that cannot be used is refused with what is wrong with it, and so is what does not go with one.
#[test]
fn volumes_that_are_not_used() {
    if !e2fs::installed() {
        return;
    }
    let folder = Folder::new("kept-refused");
    import(&folder, "media.payload=bytes");
    let stack = [&STACK[..], &["--set", "media.payload=bytes"]].concat();
    let run = [&["run", "files.fio"], &stack[..]].concat();
    let on_a = [&run[..], &["--state", "a.state"]].concat();
    refused(
        &folder,
        &run,
        "fs.format: false needs a device with a file system: --state FILE names one",
    );
    refused(
        &folder,
        &[&on_a[..], &["--set", "fs.discard=true"]].concat(),
        "fs.discard: goes with format",
    );
    let (commit, records) = ("fs.commit=ijournal", "fs.ijournal_area=1GiB");
    let too_long = ["--set", commit, "--set", records];
    refused(
        &folder,
        &[&on_a[..], &too_long].concat(),
        "fs.ijournal_area: no room for file records",
    );

    let make = ["-q", "-F", "-t", "ext4", "-b", "4096"];
    let inline = [&make[..], &["-O", "inline_data", "inline.img", "16M"]].concat();
    e2fs::tool(&folder, "mke2fs", &inline);
    e2fs::tool(&folder, "mke2fs", &[&make[..], &["marked.img", "16M"]].concat());
    e2fs::tool(&folder, "debugfs", &["-w", "-R", "set_super_value state 3", "marked.img"]);
    std::fs::write(folder.0.join("zeroes.img"), vec![0; 1 << 20]).unwrap();
    let cases = [
        ("zeroes", "zeroes.state: superblock, byte 56: bad magic number: not an ext4 file system"),
        ("inline", "inline_data"),
        ("marked", "marked.state: the volume is marked as one with errors"),
    ];
    for (name, expected) in cases {
        let (image, state) = (format!("{name}.img"), format!("{name}.state"));
        let to = ["image", "import", &image, "--output", &state];
        succeed(&folder, &[&to, &stack[..]].concat());
        refused(&folder, &[&run[..], &["--state", &state]].concat(), expected);
    }
    #[cfg(unix)]
    {
        folder.write("files.fio", "[w]\nfilename=link\nrw=write\nsize=1m\n");
        let link = "its file link of 1.0 MiB cannot be made beside what is on the volume: a link, a device \
                    or a pipe is where a file should be; links are not followed";
        refused(&folder, &on_a, link);
    }
    folder.write("files.fio", "[w]\nfilename=short/below\nrw=write\nsize=1m\n");
    let expected =
        "files.fio:1:1: job w: its file short/below of 1.0 MiB cannot be made beside what";
    refused(&folder, &on_a, expected);
    folder.write("files.fio", "[w]\nfilename=old\nrw=write\nsize=1m\n");
    refused(&folder, &on_a, "is on the volume: a directory is where a file should be\n");
}
