//! What jobs do, I/O by I/O, beside what fio itself does with them: on a file that is longer than the
//! jobs reach, fio behaves as on a device.

mod common;

use common::TestDevice;
use nandscape_block::Op;
use std::path::PathBuf;

/// 4 MiB.
const SECTORS: u64 = 1 << 10;

/// An I/O: the first letter of what it is, first sector, sectors.
type Io = (char, u64, u64);

/// What ours does.
fn ours(keys: &str) -> Vec<Io> {
    let mut device = TestDevice::new(SECTORS);
    assert!(!common::run(keys, &mut device).failed(), "{keys}");
    let io = |bio: &nandscape_block::Bio| match bio.op {
        Op::Read => ('r', bio.lba.0, bio.sectors.into()),
        Op::Write => ('w', bio.lba.0, bio.sectors.into()),
        Op::Discard => ('t', bio.lba.0, bio.sectors.into()),
        _ => ('s', 0, 0),
    };
    device.log.iter().map(|(_, bio)| io(bio)).collect()
}

/// What fio does, from its log of it.
fn theirs(name: &str, keys: &str) -> Option<Vec<Io>> {
    let mut fio = common::fio()?;
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("oracle-{name}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let file = std::fs::File::create(folder.join("device")).unwrap();
    file.set_len(SECTORS * 4096).unwrap();
    let global = "[global]\nfilename=device\nioengine=psync\nwrite_iolog=log\n";
    std::fs::write(folder.join("job.fio"), format!("{global}{keys}")).unwrap();
    let output = fio.arg("job.fio").current_dir(&folder).output().unwrap();
    assert!(output.status.success(), "{keys}\n{}", String::from_utf8_lossy(&output.stderr));
    let log = std::fs::read_to_string(folder.join("log")).unwrap();
    let io = |line: &str| match line.split_whitespace().collect::<Vec<_>>()[..] {
        [_, _, "sync" | "datasync", ..] => Some(('s', 0, 0)),
        [_, _, what, offset, bytes] => {
            let [offset, bytes] = [offset, bytes].map(|text| text.parse::<u64>().unwrap());
            what.chars().next().map(|what| (what, offset / 4096, bytes / 4096))
        }
        _ => None,
    };
    Some(log.lines().skip(1).filter_map(io).collect())
}

/// Both do the same, where nothing is random.
fn agree(name: &str, jobs: &[&str]) {
    for (number, keys) in jobs.iter().enumerate() {
        let Some(theirs) = theirs(&format!("{name}-{number}"), keys) else { return };
        assert!(!theirs.is_empty(), "{keys}");
        assert_eq!(ours(&format!("[global]\n{keys}")), theirs, "{keys}");
    }
}

/// A value for some directions leaves those of `[global]` for the others.
#[test]
fn values_by_direction_leave_the_others() {
    agree(
        "directions",
        &[
            "bs=8k\n[j]\nrw=read\nsize=64k\nbs=,16k\n",
            "bs=8k\n[j]\nrw=write\nsize=64k\nbs=16k,\n",
            "bssplit=8k/100\n[j]\nrw=read\nsize=64k\nbssplit=,16k/100\n",
            "bsrange=8k-8k\n[j]\nrw=write\nsize=64k\nbsrange=16k-16k,\n",
            "percentage_random=0\n[j]\nrw=randread\nsize=64k\npercentage_random=,100\n",
        ],
    );
}
