//! File systems that are on a device before a run: which keys go with them.

use crate::common::complete;

use complete::{MEDIA, NONE, error};
use nandscape_lab::run::{NoObserver, RunOptions, run};
use nandscape_lab::stack::Stack;
use nandscape_lab::sweep::Sweep;
use nandscape_lab::workload::fio::{HostEnvironment, parse};

/// A file system that is on the device is mounted and not made: keys that say how one is made are
/// refused, and without a state there is none.
#[test]
fn a_file_system_may_be_on_the_device() {
    let text = format!("{MEDIA}\n[fs]\nformat = false\ndata = \"journal\"\n");
    let stack = Stack::parse("my.toml", &text, &NONE).unwrap();
    let section = stack.toml.split("[fs]\n").nth(1).unwrap().split("\n\n").next().unwrap();
    assert!(section.contains("format = false") && !section.contains("discard"), "{section}");
    let again = Stack::parse("resolved", &stack.toml, &NONE).unwrap();
    assert_eq!((&again.fs, &again.toml), (&stack.fs, &stack.toml));
    assert!(!stack.fs.unwrap().config.makes());
    let made = Stack::parse("my.toml", &text, &["fs.format=true"]).unwrap();
    assert!(made.fs.unwrap().config.makes() && !made.toml.contains("format = false"));
    let keys = [
        ("features", "[]"),
        ("journal", "\"32MiB\""),
        ("inode_ratio", "\"64KiB\""),
        ("reserved_percent", "5"),
        ("discard", "true"),
    ];
    for (key, value) in keys {
        let found = error(&format!("{text}{key} = {value}\n"));
        let expected = format!("my.toml:14:{}: fs.{key}: goes with format = true", key.len() + 4);
        assert!(found.starts_with(&expected), "found    {found}\nexpected {expected}");
    }
    let load = |set: &[&str]| Stack::load("ext4-pblk", set).unwrap();
    let job = parse("[w]\nrw=write\nsize=1m\n", "w.fio", &HostEnvironment).unwrap();
    let alone = run(&load(&["fs.format=false"]), &job, 1, RunOptions::default(), &mut NoObserver)
        .unwrap_err();
    assert!(alone.is_bad_input() && alone.to_string().contains("fs.format: false needs a device"));
    let grid = "stacks = [\"ext4-pblk\"]\nseeds = 1\n[jobs]\nw = \"[w]\\nrw=write\\nsize=1m\\n\"\n\
                [set]\nfs.format = false\n";
    let found = Sweep::parse("grid.toml", grid, &HostEnvironment).unwrap_err().to_string();
    let advice = "fs.format: false needs a device with a file system: `nandscape run --state FILE` takes one";
    assert!(found.contains(advice), "{found}");
}

/// The reader says which keys were chosen: given, and not what they are without that.
#[test]
fn keys_that_were_chosen_are_known() {
    let check = |lines: &str| {
        let text = format!("{MEDIA}\n[fs]\n{lines}");
        let stack = Stack::parse("my.toml", &text, &NONE).unwrap();
        let again = Stack::parse("my.toml", &stack.toml, &NONE).unwrap();
        let found =
            |stack: Stack| stack.check_fs_keys(&["data"], "no").err().map(|e| e.to_string());
        let key = |found: Option<String>| Some(found?.split(' ').nth(1)?.to_owned());
        let (found, resolved) = (key(found(stack)), key(found(again)));
        assert_eq!(found, resolved, "{lines}");
        found
    };
    assert_eq!(check("kind = \"ext4\"\ndiscard = true\nformat = true\n"), None);
    assert_eq!(check("data = \"journal\"\ncommit = \"jbd2\"\nread_ahead = \"128k\"\n"), None);
    let chosen = [
        ("commit = \"ijournal\"", "commit"),
        ("features = [\"^64bit\"]", "features"),
        ("journal = \"32MiB\"", "journal"),
        ("discard = false", "discard"),
        ("format = false", "format"),
        ("dirty_percent = 30", "dirty_percent"),
    ];
    for (line, key) in chosen {
        assert_eq!(check(&format!("{line}\n")), Some(format!("fs.{key}:")), "{line}");
    }
}
