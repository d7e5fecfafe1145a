//! Keys, values and stacks of earlier versions are answered with their names of today.

use crate::common::complete;

use complete::{MEDIA, error};
use nandscape_lab::stack::{DEFAULT, Stack};

fn refused(name: &str, set: &str) -> String {
    Stack::load(name, &[set]).unwrap_err().to_string()
}

/// A key that moved is answered with its new name, at its place in the file.
#[test]
fn keys_that_moved_are_answered_with_their_new_names() {
    let table =
        MEDIA.replace("\"none\"", "{ preset = \"nvmevirt-970pro\", firmware_small_ns = 3 }");
    assert_eq!(
        error(&table),
        "my.toml:9:40: media.timing.firmware_small_ns: is link.read_small_ns now"
    );
    let moved = [
        ("command_ns", "command_ns"),
        ("firmware_large_ns", "read_large_ns"),
        ("firmware_small_bytes", "read_small_bytes"),
        ("pcie_bytes_per_s", "bytes_per_s"),
        ("buffer_base_ns", "buffer_base_ns"),
        ("buffer_sector_ns", "buffer_sector_ns"),
    ];
    for (old, new) in moved {
        let expected = format!("--set media.timing.{old}: is link.{new} now");
        assert_eq!(refused(DEFAULT, &format!("media.timing.{old}=1")), expected);
    }
}

/// The same for keys of pblk and of file systems, for values, and for stacks.
#[test]
fn names_of_earlier_versions_are_answered_with_those_of_today() {
    let cases = [
        ("fs.make=false", "--set fs.make: is fs.format now"),
        ("fs.records=1MiB", "--set fs.records: is fs.ijournal_area now"),
        ("ftl.special_ring=1024", "--set ftl.special_ring: is ftl.special_buffer now"),
        (
            "ftl.gc.journal_lines=left-to-die",
            "--set ftl.gc.journal_lines: \"left-to-die\" is \"exempt\" now",
        ),
    ];
    for (set, expected) in cases {
        assert_eq!(refused("ext4-js-pblk", set), expected);
    }
    let renamed = ["full-house", "ext4-full-house"].map(|name| refused(name, "name=x"));
    assert!(renamed[0].ends_with("stack \"full-house\" is \"combined\" now"), "{renamed:?}");
    assert!(renamed[1].ends_with("stack \"ext4-full-house\" is \"ext4-combined\" now"));
}
