//! e2fsprogs as the judge: a log that our journal wrote is replayed by e2fsck to the same blocks as by our
//! recovery, and read by debugfs; a log that debugfs wrote is recovered by both to the same blocks.

use crate::common::device::{Device, medium, on_device, store};
use crate::common::{
    Scratch, assert_clean, debugfs, debugfs_write, e2fsprogs, mke2fs, output, run, text,
};
use nandscape_block::{Fua, Lba, MemDevice, Owner, Payload, SectorData, Tag};
use nandscape_fs::ext4::journal::disk::Features;
use nandscape_fs::ext4::journal::{
    Buffers, Config, Journal, JournalError, LogExtents, Recovered, recover,
};
use nandscape_rt::{Nanos, Stream};
use std::ops::Range;
use std::path::Path;

/// Blocks of an image.
const BLOCKS: u64 = 8_192;
/// Blocks of the file whose blocks stand for metadata: e2fsck leaves them alone.
const FILE_BLOCKS: usize = 200;

/// Whose data some of the blocks are.
const OWNER: Owner = Owner { file: 12, generation: 0, thread: 0, core: 0 };

/// Options of mke2fs, and the features that the kernel would give to the journal of such a volume.
const VOLUMES: [(&str, u32); 4] = [
    ("metadata_csum,64bit", Features::REVOKE | Features::WIDE | Features::CSUM_V3),
    ("^metadata_csum,64bit", Features::REVOKE | Features::WIDE),
    ("^metadata_csum,^64bit", Features::REVOKE),
    ("metadata_csum,^64bit", Features::REVOKE | Features::CSUM_V3),
];

/// The content of an image.
fn load(image: &Path, fua: Fua) -> MemDevice {
    let bytes = std::fs::read(image).expect("an image");
    let (_, device, _) = on_device(medium(BLOCKS, fua), None, 0, |_, device| async move {
        for (at, block) in (0..).zip(bytes.chunks_exact(4_096)) {
            if block.iter().any(|&byte| byte != 0) {
                let payload = Payload::from_bytes(block).expect("a sector");
                device.write(Lba(at), 1, payload).await.expect("power is on");
            }
        }
        device.flush().await.expect("power is on");
    });
    device
}

/// The device blocks of a file, from what debugfs says.
fn blocks_of(image: &Path, file: &str) -> Vec<u64> {
    let said = debugfs(image, &format!("blocks {file}"));
    said.split_whitespace().map(|block| block.parse().expect("a number")).collect()
}

/// Where the log lies.
fn log_of(image: &Path) -> LogExtents {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for block in blocks_of(image, "<8>") {
        match ranges.last_mut() {
            Some(last) if last.end == block => last.end += 1,
            _ => ranges.push(block..block + 1),
        }
    }
    LogExtents::new(ranges).expect("a log")
}

/// A volume with one file, and that file's blocks.
fn volume(scratch: &Scratch, name: &str, features: &str) -> (std::path::PathBuf, Vec<u64>) {
    let image = scratch.image(name, BLOCKS * 4_096);
    mke2fs(&image, &["-O", features, "-J", "size=4"]);
    let source = scratch.path("source");
    std::fs::write(&source, vec![0x5a; FILE_BLOCKS * 4_096]).expect("a file");
    debugfs_write(&image, &format!("write {} file\n", text(&source)));
    let blocks = blocks_of(&image, "/file");
    assert_eq!(blocks.len(), FILE_BLOCKS);
    (image, blocks)
}

/// Recovers an image with our recovery, and a copy with e2fsck; both must find the same content in all
/// of `blocks`, and e2fsck a clean volume afterwards.
fn assert_recovered_alike(image: &Path, blocks: &[u64], context: &str) -> Recovered {
    debugfs_write(image, "feature needs_recovery\n");
    let (ours, theirs) = (image.with_extension("ours"), image.with_extension("theirs"));
    std::fs::copy(image, &theirs).expect("a copy");
    let log = log_of(image);
    let work = |_, device| async move { recover(&device, &log).await };
    let (recovered, device, _) = on_device(load(image, Fua::Honoured), None, 0, work);
    let recovered = recovered.unwrap_or_else(|error| panic!("{context}: {error}"));
    store(&device, &ours);
    let checked = run("e2fsck", &["-fy", text(&theirs)]);
    let said = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(checked.status.code().is_some_and(|code| code < 4), "{context}: {said}");
    let (a, b) = (std::fs::read(&ours).expect("ours"), std::fs::read(&theirs).expect("theirs"));
    for &block in blocks {
        let range = block as usize * 4_096..(block as usize + 1) * 4_096;
        assert!(a[range.clone()] == b[range], "{context}: block {block} differs\n{said}");
    }
    assert_clean(&theirs);
    debugfs_write(&ours, "feature -needs_recovery\n");
    assert_clean(&ours);
    recovered
}

/// Changes, frees and overwrites blocks of the file in transactions, until the power goes.
async fn write_log(
    rt: nandscape_rt::Handle,
    device: Device,
    log: LogExtents,
    config: Config,
    blocks: Vec<u64>,
    seed: u64,
) -> Result<(), JournalError> {
    let mut rng = Stream::new(seed, "oracle");
    let buffers = Buffers::new(&rt, device, 1_000);
    let journal = Journal::open(&rt, &buffers, log, config).await?;
    journal.start_commits(());
    for _ in 0..rng.within(5..25) {
        let handle = journal.start(journal.max_credits().min(400)).await?;
        for _ in 0..rng.within(1..350) {
            let block = blocks[rng.below(blocks.len() as u64) as usize];
            match rng.below(12) {
                0 => handle.forget(block)?,
                1 => drop(handle.fresh(block)?),
                2 => drop(handle.log_data(block, SectorData::Tag(Tag::new(rng.bits())), OWNER)?),
                draw => {
                    let buffer = buffers.get(block).await?;
                    let magic = (draw == 3).then_some(0xc03b_3998_u32);
                    let first = magic.unwrap_or(rng.bits() as u32);
                    handle.update(&buffer, |bytes| {
                        bytes[..4].copy_from_slice(&first.to_be_bytes());
                        bytes[4..].fill(rng.bits() as u8);
                    })?;
                }
            }
        }
        let tid = handle.stop();
        if rng.chance(0.7) {
            journal.commit(tid).await?;
        }
        if rng.chance(0.1) {
            journal.write_back(rt.now()).await?;
        }
    }
    journal.commit_all().await
}

/// debugfs finds as many commits in a log as our recovery, and no error.
fn assert_read_by_debugfs(image: &Path, recovered: &Recovered, context: &str) {
    let said = output("debugfs", &["-R", "logdump -a", text(image)]);
    let commits = said.lines().filter(|line| {
        line.starts_with("Found expected") && line.contains("type 2 (commit block)")
    });
    assert_eq!(commits.count(), recovered.transactions as usize, "{context}: {said}");
}

/// What we write, e2fsck replays as we do, wherever the power goes.
#[test]
fn our_log_is_replayed_by_e2fsck() {
    if !e2fsprogs() {
        return;
    }
    let scratch = Scratch::new();
    let (mut transactions, mut revoked) = (0, 0);
    for (index, (options, incompat)) in VOLUMES.iter().enumerate() {
        let (image, blocks) = volume(&scratch, "image", options);
        for round in 0..4 {
            let seed = index as u64 * 10 + round;
            let context = format!("{options}, seed {seed}");
            let features = Features { incompat: *incompat, ..Features::default() };
            let config = Config { features, ..Config::of_file_system(true, true) };
            let config = Config { commit_interval: Nanos::from_us(300), ..config };
            let work =
                |rt, device| write_log(rt, device, log_of(&image), config, blocks.clone(), seed);
            let cut = Stream::new(seed, "cut").within(40..600);
            let fua = if round == 3 { Fua::Refused } else { Fua::Honoured };
            let (_, device, _) = on_device(load(&image, fua), Some(cut), seed, work);
            let copy = image.with_extension("cut");
            store(&device, &copy);
            let recovered = assert_recovered_alike(&copy, &blocks, &context);
            assert_read_by_debugfs(&copy, &recovered, &context);
            transactions += recovered.transactions;
            revoked += recovered.revoked;
        }
    }
    assert!(transactions > 50 && revoked > 50, "{transactions} transactions, {revoked} revoked");
}

/// What debugfs writes, we recover as e2fsck does: three kinds of checksums, revokes, escaped blocks.
#[test]
fn the_log_of_debugfs_is_recovered() {
    if !e2fsprogs() {
        return;
    }
    let scratch = Scratch::new();
    let mut revoked = 0;
    for (options, _) in VOLUMES {
        // Without metadata_csum, debugfs has no checksums of these kinds.
        let kinds = if options.starts_with('^') { 1 } else { 3 };
        for open in &["jo", "jo -c -v 2", "jo -c -v 3"][..kinds] {
            let context = format!("{options}, {open}");
            let (image, blocks) = volume(&scratch, "image", options);
            let mut rng = Stream::new(options.len() as u64, open);
            let mut script = format!("{open}\n");
            for index in 0..12 {
                script += &transaction(&scratch, &blocks, &mut rng, index);
            }
            debugfs_write(&image, &(script + "jc\n"));
            let recovered = assert_recovered_alike(&image, &blocks, &context);
            assert_eq!(recovered.transactions, 12, "{context}");
            revoked += recovered.revoked;
        }
    }
    assert!(revoked > 20, "{revoked} revoked");
}

/// A command for debugfs that writes a transaction of random blocks, or of revokes.
fn transaction(scratch: &Scratch, blocks: &[u64], rng: &mut Stream, index: usize) -> String {
    let mut chosen = blocks.to_vec();
    rng.shuffle(&mut chosen);
    chosen.truncate(rng.within(1..100) as usize);
    let list: Vec<String> = chosen.iter().map(u64::to_string).collect();
    let list = list.join(",");
    if rng.chance(0.3) {
        return format!("jw -r {list}\n");
    }
    let source = scratch.path(&format!("transaction{index}"));
    let mut content: Vec<u8> =
        (0..chosen.len() * 512).flat_map(|_| rng.bits().to_le_bytes()).collect();
    for copy in content.chunks_exact_mut(4_096).step_by(3) {
        copy[..4].copy_from_slice(&0xc03b_3998_u32.to_be_bytes());
    }
    std::fs::write(&source, content).expect("a file");
    format!("jw -b {list} {}\n", text(&source))
}
