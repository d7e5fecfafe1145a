//! The key `ftl.buffer.flush`: where it stands, and what it does not go with.

use crate::common::complete::NONE;
use nandscape_ftl::FtlConfig;
use nandscape_ftl::device::Flush;
use nandscape_lab::stack::Stack;

/// Each kind of SSD has NVMeVirt's flush, by name and never by default; it is refused with a buffer that needs no flush,
/// and by pblk.
#[test]
fn flushes_of_nvmevirt_are_named() {
    for name in ["ssd", "zns", "iplfs-ssd", "d2fs-ssd"] {
        let flush = |set: &[&str]| {
            let stack = Stack::load(name, set).unwrap();
            assert_eq!(stack.toml.contains("\nflush = "), !set.is_empty(), "{name}");
            let again = Stack::parse("resolved", &stack.toml, &NONE).unwrap();
            assert_eq!((&again.ftl, &again.toml), (&stack.ftl, &stack.toml));
            let buffer = match stack.ftl {
                FtlConfig::Device(config) => config.buffer,
                FtlConfig::Zoned(config) => config.pages.buffer,
                FtlConfig::Interval(config) => config.pages.buffer,
                FtlConfig::Coupled(config) => config.pages.buffer,
                FtlConfig::Pblk(_) => panic!("{name} is no SSD"),
            };
            buffer.flush
        };
        let nvmevirt = "ftl.buffer.flush=nvmevirt";
        assert_eq!(flush(&[]), Flush::Program);
        assert_eq!(flush(&["ftl.buffer.flush=program"]), Flush::Program);
        assert_eq!(flush(&[nvmevirt]), Flush::Nvmevirt);
        let both = Stack::load(name, &[nvmevirt, "ftl.buffer.power_safe=true"]).unwrap();
        let refused = both.check_device().unwrap_err().to_string();
        let key = "--set ftl.buffer.flush: \"nvmevirt\" and ftl.buffer.power_safe = true exclude";
        assert!(refused.starts_with(key) && refused.contains("leave one"), "{name}: {refused}");
        let word = Stack::load(name, &["ftl.buffer.flush=nvme"]).unwrap_err().to_string();
        assert!(word.contains("ftl.buffer.flush: expected program | nvmevirt"), "{word}");
    }
    let pblk = Stack::load("pblk", &["ftl.buffer.flush=nvmevirt"]).unwrap_err().to_string();
    assert!(pblk.contains("goes with ftl.kind = "), "{pblk}");
}
