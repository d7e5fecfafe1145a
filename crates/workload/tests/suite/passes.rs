//! Which passes of a job repeat one another: as in fio, those of its next loop, unless `randrepeat=0` or `randseed` says
//! otherwise; the passes of a job that time ends go on with other draws.

use crate::common::{TestDevice, run};
use nandscape_block::{Bio, Op};

/// What an I/O is: letter, first sector, sectors.
type Io = (char, u64, u32);

fn ios(keys: &str) -> Vec<Io> {
    let mut device = TestDevice::new(1 << 10);
    assert!(!run(&format!("[j]\n{keys}\n"), &mut device).failed(), "{keys}");
    let io = |bio: &Bio| match bio.op {
        Op::Read => ('r', bio.lba.0, bio.sectors),
        Op::Write => ('w', bio.lba.0, bio.sectors),
        Op::Discard => ('t', bio.lba.0, bio.sectors),
        _ => ('s', 0, 0),
    };
    device.log.iter().map(|(_, bio)| io(bio)).collect()
}

/// The I/Os of each of so many passes, all of as many I/Os.
fn passes(keys: &str, count: usize) -> Vec<Vec<Io>> {
    let ios = ios(keys);
    assert!(ios.len().is_multiple_of(count) && ios.len() > count, "{keys}: {}", ios.len());
    ios.chunks(ios.len() / count).map(<[Io]>::to_vec).collect()
}

/// The order of a pass, its sizes and its directions come again in the next.
#[test]
fn loops_repeat_one_another() {
    for (keys, count) in [
        ("rw=randwrite\nsize=256k\nloops=4", 4),
        ("rw=randread\nsize=256k\nio_size=512k", 2),
        ("rw=randtrim\nsize=256k\nloops=2", 2),
        ("rw=randrw\nrwmixread=70\nsize=1m\nloops=3", 3),
        ("rw=randtrimwrite\nsize=256k\nloops=2", 2),
        ("rw=randwrite\nbssplit=4k/30:16k/70\nsize=1m\nloops=3", 3),
        ("rw=randread\nnorandommap\nioengine=libaio\nsize=256k\nloops=3", 3),
        ("rw=randwrite\npercentage_random=50\nnorandommap\nioengine=libaio\nsize=256k\nloops=3", 3),
        ("rw=randwrite\nsize=256k\niodepth=16\nloops=4\nallrandrepeat=1", 4),
        ("rw=randwrite\nsize=256k\nloops=2\nrandrepeat=1\nend_fsync=1", 2),
    ] {
        let passes = passes(keys, count);
        assert!(passes.iter().all(|pass| *pass == passes[0]), "{keys}: {passes:?}");
    }
}

/// Other draws follow where repeating is turned off, or a seed is given; the run itself is repeatable.
#[test]
fn other_draws_follow_without_randrepeat() {
    for keys in ["randrepeat=0", "randseed=7", "randrepeat=0\nallrandrepeat=1"] {
        let keys = format!("rw=randwrite\nsize=256k\nloops=4\n{keys}");
        let all = passes(&keys, 4);
        for (index, pass) in all.iter().enumerate() {
            assert!(all[..index].iter().all(|earlier| earlier != pass), "{keys}");
            let mut sectors: Vec<u64> = pass.iter().map(|io| io.1).collect();
            sectors.sort_unstable();
            assert_eq!(sectors, (0..64).collect::<Vec<_>>(), "{keys}");
        }
        assert_eq!(ios(&keys), ios(&keys));
    }
}

/// A job that time ends goes on with other draws.
#[test]
fn passes_of_time_differ() {
    let ios = ios("rw=randwrite\nsize=256k\ntime_based\nruntime=5ms");
    assert!(ios.len() > 128, "{}", ios.len());
    assert_ne!(ios[..64], ios[64..128]);
}

/// Popular blocks stay popular, but their order is not repeated: fio seeds them once.
#[test]
fn skewed_draws_go_on() {
    let passes = passes("rw=randread\nrandom_distribution=zipf:1.2\nsize=256k\nloops=2", 2);
    assert_ne!(passes[0], passes[1]);
}
