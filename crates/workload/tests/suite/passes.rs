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

/// I/Os up to the one that begins a direction's sequence again.
fn first_pass(ios: &[Io]) -> &[Io] {
    let again =
        ios.iter().enumerate().position(|(at, io)| ios[..at].iter().any(|earlier| earlier == io));
    &ios[..again.unwrap_or(ios.len())]
}

/// A synchronous mix of two sequences goes on until one of them is at its end, and all loops transfer what they are to; an
/// asynchronous one begins again when it has transferred `size`.
#[test]
fn passes_end_where_those_of_fio_do() {
    for (engine, at_once) in [("psync", true), ("libaio", false), ("null", true)] {
        let ios = ios(&format!("rw=rw\nioengine={engine}\nsize=256k\nloops=3"));
        assert_eq!(ios.len(), 192, "{engine}");
        let pass = first_pass(&ios);
        assert_eq!(pass.len() > 64, at_once, "{engine}: {}", pass.len());
        let most = ['r', 'w'].map(|what| pass.iter().filter(|io| io.0 == what).count());
        assert_eq!(most.contains(&64), at_once, "{engine}: {most:?}");
    }
}

/// Independent draws of a synchronous job have one pass, which nothing repeats.
#[test]
fn independent_draws_have_no_end() {
    let passes = passes("rw=randread\nnorandommap\nioengine=psync\nsize=256k\nloops=3", 3);
    assert_ne!(passes[0], passes[1]);
}

/// A register repeats its order in every pass, without a map and whatever else is asked for.
#[test]
fn a_shift_register_repeats_its_order() {
    for keys in ["randrepeat=0", "norandommap", "randseed=3"] {
        let keys = format!("rw=randread\nrandom_generator=lfsr\nsize=256k\nloops=3\n{keys}");
        let passes = passes(&keys, 3);
        assert!(passes.iter().all(|pass| *pass == passes[0]), "{keys}");
        let mut sectors: Vec<u64> = passes[0].iter().map(|io| io.1).collect();
        sectors.sort_unstable();
        assert_eq!(sectors, (0..64).collect::<Vec<_>>(), "{keys}");
    }
}

/// Of a mix, each read behind the write that a flush follows has a flush in front of it, up to the next write.
#[test]
fn flushes_of_a_mix_come_again() {
    let ios = ios("rw=randrw\nsize=1m\nfsync=4\nrwmixread=60");
    let (mut writes, mut flushed) = (0, false);
    for (what, ..) in ios {
        match what {
            's' => {
                assert!(writes > 0 && writes % 4 == 0 && !flushed, "after {writes} writes");
                flushed = true;
            }
            _ => {
                assert!(writes == 0 || writes % 4 != 0 || flushed, "after {writes} writes");
                flushed = false;
                writes += u64::from(what == 'w');
            }
        }
    }
    assert!(writes > 50);
}

/// Sizes of shares are multiples of the least.
#[test]
fn drawn_sizes_are_multiples_of_the_least() {
    let sizes = ios("rw=randread\nbssplit=8k/50:12k/25:20k/25\nsize=2m").into_iter().map(|io| io.2);
    let sizes: std::collections::BTreeSet<u32> = sizes.collect();
    assert_eq!(sizes.into_iter().collect::<Vec<_>>(), [2, 4]);
}
