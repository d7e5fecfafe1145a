//! The keys for how many parallel units each stream of pblk writes to at once: what they mean, and where what no
//! device has is refused.

use nandscape_ftl::FtlConfig;
use nandscape_ftl::pblk::config::StreamUnits;
use nandscape_lab::stack::Stack;

const MEDIA: &str = "[media]\ngroups = 2\nunits = 4\nchunks = 160\nsectors = 512\nws_min = 4\n\
                     ws_opt = 8\nmw_cunits = 24\ntiming = \"none\"\n";
const NONE: [&str; 0] = [];

fn parse(lines: &str) -> Stack {
    Stack::parse("my.toml", &format!("{MEDIA}[ftl]\n{lines}\n"), &NONE).expect("sound keys")
}

fn stream_units(stack: &Stack) -> StreamUnits {
    let FtlConfig::Pblk(config) = &stack.ftl else { panic!("a pblk") };
    config.stream_units
}

/// Each stream has a key, the resolved stack has those that are set, and a device with them is taken.
#[test]
fn each_stream_has_a_width() {
    let all = "routing = [\"journal\", \"fsync-aware\"]\nline_set = \"units-2\"\nnormal_units = 4\n\
               fsync_units = 2\njournal_units = 8\ngc_units = 4\ngc.stream = \"own\"";
    let stack = parse(&format!("{all}\nop_percent = 40"));
    let widths = StreamUnits { normal: Some(4), fsync: Some(2), journal: Some(8), gc: Some(4) };
    assert_eq!(stream_units(&stack), widths);
    stack.check_device().expect("fits");
    let again = Stack::parse("resolved", &stack.toml, &NONE).unwrap();
    assert_eq!((&again.ftl, &again.toml), (&stack.ftl, &stack.toml));
    let plain = parse("line_set = \"units-2\"");
    assert_eq!(stream_units(&plain), StreamUnits::default());
    assert!(!plain.toml.contains("_units = "), "{}", plain.toml);
}

/// Widths that no stream or no lines have are refused where they stand.
#[test]
fn widths_that_the_device_does_not_have_are_refused() {
    let cases = [
        (
            "gc_units = 4\nline_set = \"units-2\"",
            "my.toml:11:12: ftl.gc_units: there is no such stream",
        ),
        ("journal_units = 4", "my.toml:11:17: ftl.journal_units: there is no such stream"),
        (
            "fsync_units = 4\nrouting = \"journal\"",
            "my.toml:11:15: ftl.fsync_units: there is no such",
        ),
        (
            "journal_units = 3\nrouting = \"journal\"",
            "my.toml:11:17: ftl.journal_units: with lines of 8",
        ),
        ("normal_units = 0", "my.toml:11:16: ftl.normal_units: with lines of 8"),
        (
            "normal_units = 6\nline_set = \"channel\"",
            "my.toml:11:16: ftl.normal_units: with lines of 4",
        ),
    ];
    for (lines, expected) in cases {
        let found = parse(lines).check_device().unwrap_err().to_string();
        assert!(found.starts_with(expected), "found    {found}\nexpected {expected}");
    }
}
