//! The figure to stand beside a page map's: the maps' memory on 256 GiB of NAND, by part.

use super::*;
use nandscape_media::Ppa;
use nandscape_rt::Stream;

/// Pages of a file of 180 GB, and writes of 1200 s at 161,000 per second, with a checkpoint each minute: the FIO workload
/// of the D2FS paper (FAST '25) and what it measured of IPLFS.
const PAGES: u64 = 180_000_000_000 / 4096;
const SECONDS: u64 = 1_200;
const WRITES_PER_S: u64 = 161_000;
const CHECKPOINT_S: u64 = 60;

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

fn print(when: &str, map: &Partitions) {
    let parts = map.parts().into_iter().map(|(part, bytes)| format!("{part} {:.1}", mib(bytes)));
    let parts: Vec<_> = parts.collect();
    println!("{when}: {:.1} MiB: {}", mib(map.bytes()), parts.join(", "));
}

/// `cargo test --release -p nandscape-ftl --lib map_memory_at_256_gib -- --ignored --nocapture` prints it.
#[test]
#[ignore = "a measurement of minutes"]
fn map_memory_at_256_gib() {
    let physical = 1_u64 << 26;
    let division = Division {
        partition_bits: 29,
        random_sectors: physical / 32,
        live_max: physical / 10_000 * 9_346,
        record_sectors: 0,
        instances: 4,
        shape: MapShape::default(),
        period: Nanos(1_000_000_000),
        bytes_per_s: 1_000_000_000,
    };
    let mut map = Partitions::new(division, physical, Nanos::ZERO).expect("address space");
    let log = |at: u64| Lba((2 << 29) + at);
    let mut slots: Vec<u32> = Vec::new();
    for page in 0..PAGES {
        map.replace(log(page), MapEntry::Flash(Ppa(page)));
        slots.push(page as u32);
    }
    print("filled", &map);
    let mut rng = Stream::new(1, "overwrites");
    let (mut head, mut superseded, mut now) = (PAGES, Vec::new(), Nanos(1_000_000_000));
    for second in 1..=SECONDS {
        for _ in 0..WRITES_PER_S {
            let slot = &mut slots[rng.below(PAGES) as usize];
            map.replace(log(head), MapEntry::Flash(Ppa(head % physical)));
            superseded.push(std::mem::replace(slot, head as u32));
            head += 1;
        }
        now += Nanos(1_000_000_000);
        if second % CHECKPOINT_S == 0 {
            for at in superseded.drain(..) {
                map.replace(log(at.into()), MapEntry::Unmapped);
            }
            print(&format!("{second} s"), &map);
        }
        map.tick(now, &mut Firmware::new(0));
    }
    print("compacted", &map);
    let counts = map.counts;
    println!("{counts:?}");
    assert!(counts.compacted > 0 && map.bytes() > 4 * PAGES);
}
