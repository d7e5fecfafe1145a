//! File systems and images as users meet them: made, checked, shown, brought to a device and back.

use crate::common;
use crate::common::parts;

use common::{Folder, err, out};
use parts::parts;
use serde_json::Value;

fn succeed(folder: &Folder, args: &[&str]) -> String {
    let output = folder.run(args);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", err(&output));
    assert_eq!(err(&output), "", "{args:?}");
    out(&output)
}

/// What `dump` prints as JSON.
fn as_json(folder: &Folder, what: &[&str]) -> Value {
    let command = ["dump", "a.img", "--output-format", "json"];
    serde_json::from_str(&succeed(folder, &[&command, what].concat())).unwrap()
}

/// An image is made, is sound, is shown, survives a device, and is the same when made again.
#[test]
fn an_image_is_made_and_brought_to_a_device() {
    let folder = Folder::new("images");
    let make =
        ["mkfs", "--fs", "ext4", "a.img", "--size", "48MiB", "--label", "hello", "--time", "1000"];
    let said = succeed(&folder, &make);
    assert!(said.contains("a.img: ext4 of 48.00 MiB"), "{said}");
    assert!(succeed(&folder, &["fsck", "a.img"]).contains("2 directories, 0 orphans"));
    let shown = succeed(&folder, &["dump", "a.img"]);
    assert!(shown.contains("\"hello\"") && shown.contains("has_journal"), "{shown}");
    let names = succeed(&folder, &["dump", "a.img", "--directory", "2"]);
    assert!(names.contains("\"lost+found\""), "{names}");
    for what in [&["--groups"][..], &["--inode", "8"], &["--extents", "8"], &["--journal"]] {
        succeed(&folder, &[&["dump", "a.img"], what].concat());
        assert_ne!(as_json(&folder, what), Value::Null);
    }
    let shown = as_json(&folder, &[]);
    assert_eq!(shown["volume_name"], "hello");
    assert_eq!(shown["mkfs_time"], "1970-01-01T00:16:40Z");
    let names = as_json(&folder, &["--directory", "2"]);
    assert_eq!(names["blocks"][0]["entries"][2]["name"], "lost+found");
    let journal = as_json(&folder, &["--extents", "8"]);
    let first = &journal["nodes"][0]["entries"][0];
    assert_eq!(first["logical"], 0);
    let last = first["start"].as_u64().unwrap() + first["blocks"].as_u64().unwrap() - 1;
    let text = succeed(&folder, &["dump", "a.img", "--extents", "8"]);
    assert!(text.contains(&format!("):{}-{last}\n", first["start"])), "{text}");

    let stack = ["--stack", "small.toml", "--set", "media.payload=bytes"];
    succeed(
        &folder,
        &[&["image", "import", "a.img"], &stack[..], &["--output", "a.state"]].concat(),
    );
    succeed(&folder, &[&["image", "export", "a.state", "b.img"], &stack[..]].concat());
    let read = |name: &str| std::fs::read(folder.0.join(name)).unwrap();
    let (a, b) = (read("a.img"), read("b.img"));
    assert!(b.len() > a.len(), "the device is larger than the image");
    assert_eq!(a, b[..a.len()]);
    succeed(&folder, &["fsck", "b.img"]);

    succeed(&folder, &[&make[..3], &["c.img"], &make[4..]].concat());
    assert_eq!(read("c.img"), a);
}

/// The same of F2FS, whose options are mkfs.f2fs's, and whose structures are its own.
#[test]
fn an_f2fs_image_is_made_checked_and_shown() {
    let folder = Folder::new("images-f2fs");
    let make = ["mkfs", "--fs", "f2fs", "a.img", "--size", "256MiB", "--time", "1000"];
    let options =
        ["-l", "hello", "-s", "2", "-z", "1", "-O", "extra_attr,inode_checksum", "-o", "20"];
    let options = [&options[..], &["--gc-journal-area"]].concat();
    let said = succeed(&folder, &[&make[..], &options].concat());
    assert!(said.contains("a.img: f2fs of 256.0 MiB"), "{said}");
    assert!(said.contains("extra_attr inode_checksum"), "{said}");
    assert!(succeed(&folder, &["fsck", "a.img"]).contains("1 directory, 0 orphans"));
    let shown = succeed(&folder, &["dump", "a.img"]);
    assert!(shown.contains("hello") && shown.contains("segs_per_sec               2"), "{shown}");
    for (what, word) in [
        (&["--checkpoint"][..], "checkpoint_ver"),
        (&["--gc-journal"], "blocks 64512-65023, no block counts"),
        (&["--inode", "3"], "mode"),
        (&["--nat", "3"], "3"),
        (&["--sit", "0"], "valid"),
        (&["--ssa", "0"], "3"),
        (&["--node", "3"], "3"),
        (&["--tree"], "/"),
    ] {
        let shown = succeed(&folder, &[&["dump", "a.img"], what].concat());
        assert!(shown.contains(word), "{what:?}: {shown}");
        assert_ne!(as_json(&folder, what), Value::Null);
    }
    assert_eq!(as_json(&folder, &[])["segs_per_sec"], 2);
    assert_eq!(as_json(&folder, &["--tree"])["paths"][0]["path"], "/");
    let read = |name: &str| std::fs::read(folder.0.join(name)).unwrap();
    succeed(&folder, &[&make[..3], &["b.img"], &make[4..], &options].concat());
    assert_eq!(read("b.img"), read("a.img"));

    let refused = |args: &[&str], expected: &str| {
        let output = folder.run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", err(&output));
        assert!(err(&output).contains(expected), "{expected} in {}", err(&output));
    };
    for (option, expected) in [
        (["--size", "20MiB"], "--size: the volume is too small"),
        (["-s", "64"], "--segments-per-section: the volume is too small"),
        (["-o", "100"], "--overprovision: "),
        (["-O", "quota"], "--features: quota is not supported"),
        (["--inode-size", "256"], "--inode-size: F2FS has no such choice"),
        (["--journal-size", "1MiB"], "--journal-size: F2FS has no such choice"),
    ] {
        let size: &[&str] = if option[0] == "--size" { &[] } else { &["--size", "256MiB"] };
        refused(&[&["mkfs", "--fs", "f2fs", "c.img"], size, &option].concat(), expected);
    }
    let ext4 = ["mkfs", "--fs", "ext4", "c.img", "--size", "64MiB", "-s", "2"];
    refused(&ext4, "--segments-per-section: ext4 has no such choice");
    let ext4 = ["mkfs", "--fs", "ext4", "c.img", "--size", "64MiB", "--gc-journal-area"];
    refused(&ext4, "--gc-journal-area: ext4 has no such choice");
    let least = ["mkfs", "--fs", "f2fs", "c.img", "--size", "52MiB", "--gc-journal-area"];
    refused(&least, "--gc-journal-area: the volume is too small");
    refused(&["dump", "a.img", "--groups"], "a.img: F2FS has no \"groups\"");
    assert!(!folder.0.join("c.img").exists());
}

/// A run on the state of an image makes a new file system unless an option says not to, and says so.
#[test]
fn a_run_uses_the_files_of_an_image_only_on_request() {
    let folder = Folder::new("images-run");
    folder.write("files.fio", "[w]\nrw=write\nsize=1m\n");
    let stack = ["--stack", "small.toml", "--set", "media.payload=bytes"];
    let image = ["image", "import", "a.img", "--output", "a.state"];
    succeed(&folder, &["mkfs", "--fs", "ext4", "a.img", "--size", "16MiB"]);
    succeed(&folder, &[&image, &stack[..]].concat());
    let warnings = |job: &str, set: &[&str]| {
        let run = ["run", job, "--state", "a.state", "--output-format", "json"];
        let output = folder.run(&[&run, &stack[..], set].concat());
        let report: serde_json::Value = serde_json::from_str(&out(&output)).unwrap();
        report["nandscape"]["warnings"].to_string()
    };
    let made = "the state holds an image; the run makes a new file system over it";
    let found = warnings("files.fio", &["--set", "fs.kind=ext4"]);
    assert!(found.contains(made), "{found}");
    let found = warnings("files.fio", &["--set", "fs.format=false"]);
    assert!(!found.contains("image"), "{found}");
    let found = warnings("job.fio", &[]);
    assert!(found.contains("the state holds an image") && !found.contains(made), "{found}");
}

/// Damage is exit code 1, with its place.
#[test]
fn damage_is_found() {
    let folder = Folder::new("images-damaged");
    succeed(&folder, &["mkfs", "--fs", "ext4", "a.img", "--size", "16MiB"]);
    let path = folder.0.join("a.img");
    let mut bytes = std::fs::read(&path).unwrap();
    // The last byte of a group's flags, behind the superblock.
    bytes[4096 + 0x13] ^= 0x80;
    std::fs::write(&path, bytes).unwrap();
    let output = folder.run(&["fsck", "a.img"]);
    assert_eq!(output.status.code(), Some(1), "{}", err(&output));
    let said = out(&output);
    assert!(said.contains("a.img: descriptor of group 0: checksum"), "{said}");
}

/// Wrong input is exit code 2, says what and where, and touches nothing.
#[test]
fn wrong_input_is_refused() {
    let folder = Folder::new("images-wrong");
    folder.write("notes", "my notes");
    let refused = |args: &[&str], expected: &str| {
        let output = folder.run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", err(&output));
        assert!(err(&output).contains(expected), "{expected} in {}", err(&output));
    };
    let mkfs = ["mkfs", "--fs", "ext4"];
    refused(&[&mkfs[..], &["none.img"]].concat(), "use --size to create it");
    refused(&["fsck", "."], ".: is a directory");
    let options = [
        (["--size", "20KiB"], "--size: 5 blocks are too few"),
        (["--size", "1PiB"], "--size: 274877906944 blocks: up to"),
        (["--inode-size", "333"], "--inode-size: inodes of 333 bytes"),
        (["--inode-ratio", "5"], "--inode-ratio: an inode for each"),
        (["--reserved-percent", "51"], "--reserved-percent: 51 % reserved"),
        (["--journal-size", "2GiB"], "--journal-size: a journal of 524288 blocks"),
        (["--label", "seventeen letters"], "--label: label"),
        (["--features", "uninit_bg"], "--features: metadata_csum and uninit_bg"),
    ];
    for (option, expected) in options {
        let size: &[&str] = if option[0] == "--size" { &[] } else { &["--size", "1GiB"] };
        let expected = format!("nandscape: a.img: {expected}");
        refused(&[&mkfs[..], &["a.img"], size, &option].concat(), &expected);
    }
    refused(
        &[&mkfs[..], &["/dev/null", "--size", "16MiB"]].concat(),
        "/dev/null: not a regular file",
    );
    refused(
        &[&mkfs[..], &["notes", "--size", "16MiB"]].concat(),
        "notes: not empty; use --force to overwrite",
    );
    refused(&[&mkfs[..], &["a.img", "--size", "20KiB"]].concat(), "too few");
    refused(
        &[&mkfs[..], &["a.img", "--size", "1GiB", "--features", "bigalloc"]].concat(),
        "bigalloc",
    );
    refused(
        &[&mkfs[..], &["a.img", "--size", "1GiB", "--features", "nonsense"]].concat(),
        "nonsense",
    );
    assert!(!folder.0.join("a.img").exists());
    assert_eq!(std::fs::read_to_string(folder.0.join("notes")).unwrap(), "my notes");
    refused(&["fsck", "notes"], "notes: ");
    refused(&["fsck", "gone.img"], "gone.img");
    folder.write("zeroes", &"\0".repeat(16384));
    refused(&["dump", "zeroes"], "no ext4 or f2fs file system found");
    let import =
        ["image", "import", "notes", "--stack", "small.toml", "--set", "media.payload=none"];
    refused(&[&import[..], &["--output", "x"]].concat(), "media.payload");
    std::fs::File::create(folder.0.join("large")).unwrap().set_len(1 << 30).unwrap();
    let large = ["image", "import", "large", "--stack", "small.toml", "--output", "x"];
    let expected =
        "large: the image of 1073741824 bytes is larger than the device, which has 127401984";
    refused(&large, expected);
}

/// An image takes the place of an older one only when it is whole; what the older one was to others
/// stays: its permissions, and links to it.
#[test]
#[cfg(unix)]
fn an_image_is_replaced_as_a_whole() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    let folder = Folder::new("images-replaced");
    let at = |name: &str| folder.0.join(name);
    succeed(&folder, &["mkfs", "--fs", "ext4", "a.img", "--size", "48MiB"]);
    let stack = ["--stack", "small.toml", "--set", "media.payload=bytes"];
    let export = |state: &str, image: &str| {
        folder.command(&["image", "export", state, image]).args(stack).output().unwrap()
    };
    succeed(
        &folder,
        &[&["image", "import", "a.img"], &stack[..], &["--output", "a.state"]].concat(),
    );
    let state = std::fs::read(at("a.state")).unwrap();
    std::fs::write(at("cut.state"), &state[..state.len() - 100]).unwrap();

    folder.write("old.img", "old");
    folder.write("old.img.part", "another program's");
    std::fs::set_permissions(at("old.img"), PermissionsExt::from_mode(0o600)).unwrap();
    symlink("old.img", at("link.img")).unwrap();
    assert_ne!(export("cut.state", "old.img").status.code(), Some(0));
    assert_ne!(export("cut.state", "new.img").status.code(), Some(0));
    assert_eq!(std::fs::read_to_string(at("old.img")).unwrap(), "old");
    assert!(!at("new.img").exists() && parts(&folder).len() == 1);

    let output = export("a.state", "link.img");
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert!(at("link.img").is_symlink() && parts(&folder).len() == 1);
    assert_eq!(std::fs::read_to_string(at("old.img.part")).unwrap(), "another program's");
    let data = std::fs::metadata(at("old.img")).unwrap();
    assert_eq!(data.permissions().mode() & 0o777, 0o600);
    assert!(data.blocks() * 512 < data.len() / 2, "sparse: {} of {}", data.blocks(), data.len());
    succeed(&folder, &["fsck", "old.img"]);
}
