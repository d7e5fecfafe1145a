//! What does not go together is refused before anything runs, with its place.

use crate::common::{FakeEnvironment, TestDevice, jobs};
use crate::zbd::device::{ZonedDevice, caps};
use nandscape_block::zone::ZoneLimits;
use nandscape_block::{BlockDevice, DeviceCaps};
use nandscape_workload::engine::{Engine, Options};
use nandscape_workload::fio::parse;

/// The error of this section, where it is wrong by itself.
fn parsed(keys: &str) -> String {
    parse(&format!("[j]\n{keys}\n"), "a.fio", &FakeEnvironment::default()).unwrap_err().to_string()
}

const LIMITS: ZoneLimits = ZoneLimits {
    zone_sectors: 16,
    capacity: 12,
    max_open: 3,
    max_active: 4,
    append: false,
    write_sectors: 2,
};

/// The error of these jobs on a device with zones behind 64 KiB, if there is one.
fn on_zones(text: &str) -> Option<String> {
    let device = ZonedDevice::new(caps(16, 6, LIMITS));
    let engine = Engine::<()>::new(&jobs(text), device.caps(), &Options::default());
    engine.err().map(|error| error.to_string())
}

fn on_plain(text: &str) -> Option<String> {
    let device = TestDevice::new(1_000);
    let engine = Engine::<()>::new(&jobs(text), device.caps(), &Options::default());
    engine.err().map(|error| error.to_string())
}

/// Values and pairs of keys, with file, line and key.
#[test]
fn keys_are_refused_with_their_place() {
    for (keys, expected) in [
        ("zonemode=zoned", "a.fio:2:1: zonemode: cannot be `zoned`; expected none, strided or zbd"),
        (
            "max_open_zones=4097",
            "a.fio:2:1: max_open_zones: cannot be `4097`; expected a number from 0 to 4096",
        ),
        (
            "zone_reset_threshold=1.5",
            "a.fio:2:1: zone_reset_threshold: cannot be `1.5`; expected a ratio from 0 to 1, such as 0.5",
        ),
        ("zonemode=zbd\nzoneskip=1m", "a.fio:3:1: zoneskip: must be 0 with zonemode=zbd"),
        (
            "zonemode=zbd\nzonesize=1m\nzonecapacity=2m",
            "a.fio:4:1: zonecapacity: is larger than zonesize",
        ),
        (
            "zonemode=zbd\nrw=randtrim\nbs=1m\nbssplit=4k/50:8k",
            "a.fio:5:1: bsrange: trims of zonemode=zbd are whole zones, of one size (bs)",
        ),
        (
            "zonemode=zbd\nrw=trimwrite",
            "a.fio:3:1: rw: trimwrite is not supported with zonemode=zbd",
        ),
        (
            "zonemode=zbd\nrw=randwrite\npercentage_random=50",
            "a.fio:4:1: percentage_random: is not supported with zonemode=zbd",
        ),
        (
            "zonemode=zbd\nread_beyond_wp=2",
            "a.fio:3:1: read_beyond_wp: cannot be `2`; expected 0 or 1",
        ),
    ] {
        let error = parsed(keys);
        assert!(error.starts_with(expected), "{keys}: {error}");
    }
}

/// A key that this zonemode has no use for gets a notice, with its place.
#[test]
fn idle_keys_are_reported() {
    let notices = |keys: &str| {
        let file = jobs(&format!("[j]\n{keys}\n"));
        file.notices.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let idle = "test.fio:3:1: zonerange: has no effect with zonemode=zbd, as in fio";
    assert_eq!(notices("zonemode=zbd\nzonerange=1m"), [idle]);
    let idle = "test.fio:2:1: max_open_zones: has no effect without zonemode=zbd";
    assert_eq!(notices("max_open_zones=4"), [idle]);
    assert_eq!(notices("max_open_zones=4\nzonemode=zbd"), [] as [&str; 0]);
}

/// Writes to zones without zonemode=zbd are refused before the run; reads and the random region are not.
#[test]
fn writes_to_zones_need_the_zonemode() {
    let needs = "test.fio:1:1: job j: the device has zones from byte 65536 on, which are written at their write \
                 pointers: writes and trims there need zonemode=zbd";
    for keys in
        ["rw=write", "rw=randrw", "rw=trim", "rw=write\nsize=68k", "rw=write\noffset=64k\nsize=8k"]
    {
        assert_eq!(on_zones(&format!("[j]\n{keys}\n")), Some(needs.into()), "{keys}");
    }
    for keys in
        ["rw=read", "rw=randread\noffset=128k", "rw=randwrite\nsize=64k", "rw=trim\nsize=4k"]
    {
        assert_eq!(on_zones(&format!("[j]\n{keys}\n")), None, "{keys}");
    }
}

/// What the zones of the device rule out.
#[test]
fn jobs_that_do_not_fit_the_zones_are_refused() {
    let zbd = |keys: &str| on_zones(&format!("[j]\ndirect=1\nzonemode=zbd\nbs=8k\n{keys}\n"));
    assert_eq!(zbd("rw=write"), None);
    for (keys, expected) in [
        ("rw=write\nzonesize=1m", "zonesize 1048576 is not that of the zones, 65536"),
        (
            "rw=write\nzonesize=64k\nzonecapacity=64k",
            "zonecapacity 65536 is not that of the zones, 49152",
        ),
        (
            "rw=write\nmax_open_zones=4",
            "max_open_zones 4 is more than the 3 that the device can have open",
        ),
        ("rw=write\nbs=4k", "bs of writes is not a multiple of 8192"),
        ("rw=write\nbs=128k", "bs of writes is larger than a zone of 65536"),
        ("rw=trim\nbs=4k", "bs of trims is not the size of a zone, 65536"),
        ("rw=write\noffset=68k\nsize=64k", "its range holds no whole zone of 65536 bytes"),
        ("rw=write\ndirect=0", "writes to zones need direct=1, as in fio"),
        (
            "rw=write\nbs=24k\nverify=md5",
            "with verify, bs of writes must divide the size of a zone",
        ),
    ] {
        let error = zbd(keys).unwrap_or_default();
        assert!(
            error.starts_with("test.fio:1:1: job j: ") && error.contains(expected),
            "{keys}: {error}"
        );
    }
    assert_eq!(zbd("rw=write\nmax_open_zones=4\nignore_zone_limits=1"), None);
    let two = "[global]\ndirect=1\nzonemode=zbd\nbs=8k\nrw=write\n[a]\nmax_open_zones=2\n[b]\nmax_open_zones=3\n";
    assert!(
        on_zones(two).unwrap().contains("job b: max_open_zones 3 differs"),
        "{:?}",
        on_zones(two)
    );
}

/// A device without zones needs their size in the job, as in fio.
#[test]
fn thought_zones_need_a_size() {
    let zbd = |keys: &str| on_plain(&format!("[j]\nzonemode=zbd\nrw=write\n{keys}\n"));
    assert_eq!(zbd("zonesize=64k"), None);
    assert!(zbd("").unwrap().contains("zonemode=zbd needs a zonesize on a device without zones"));
    assert!(zbd("zonesize=64m").unwrap().contains("is larger than the device"));
    assert!(zbd("zonesize=64k\njob_max_open_zones=1").unwrap().contains("needs max_open_zones"));
}

/// Trims of a device that has zones alone, and no discards, are refused with the same words.
#[test]
fn trims_of_zones_alone_need_the_zonemode() {
    let caps = DeviceCaps { discard_sectors: 0, ..caps(0, 6, LIMITS) };
    let refused = |keys: &str| {
        let engine = Engine::<()>::new(
            &jobs(&format!("[j]\nrw=trim\n{keys}\n")),
            &caps,
            &Options::default(),
        );
        engine.err().map_or_else(String::new, |error| error.to_string())
    };
    assert!(refused("bs=64k").contains("from byte 0 on"), "{}", refused("bs=64k"));
    assert!(refused("bs=64k").ends_with("need zonemode=zbd"));
    assert_eq!(refused("bs=64k\nzonemode=zbd"), "");
}
