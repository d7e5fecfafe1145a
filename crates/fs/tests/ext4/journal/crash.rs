//! Power cuts at every bio, also during recovery: what comes back is a prefix of the transactions with
//! all that were promised; and each broken variant of the journal is caught by the same campaign.

use super::history::History;
use super::load::{BLOCKS, Plan, run, version};
use crate::common::device::{Device, medium, on_device};
use nandscape_block::{Fua, Lba, MemDevice, Payload};
use nandscape_fs::ext4::OmittedRule;
use nandscape_fs::ext4::journal::disk::{Features, Superblock};
use nandscape_fs::ext4::journal::{Counts, JournalError, recover_omitting};
use nandscape_rt::Stream;
use std::collections::BTreeMap;

/// A device with an empty journal.
fn formatted(plan: &Plan) -> MemDevice {
    let fua = if plan.seed % 5 == 4 { Fua::Refused } else { Fua::Honoured };
    let superblock = Superblock::fresh(plan.log_blocks as u32, [7; 16]);
    let bytes = Payload::from_bytes(superblock.bytes()).expect("a sector");
    let at = plan.log().locate(0).expect("a log").0;
    let write = move |_, device: Device| async move {
        device.write(at, 1, bytes).await.expect("power is on");
        device.flush().await.expect("power is on");
    };
    on_device(medium(plan.sectors(), fua), None, 0, write).1
}

/// Recovers, losing power after so many bios; says whether it came to its end, or refused the log.
fn recovered(
    plan: &Plan,
    medium: MemDevice,
    cut: Option<u64>,
) -> (Result<bool, JournalError>, MemDevice) {
    let (log, omit) = (plan.log(), plan.omit);
    let work = move |_, device: Device| async move {
        match recover_omitting(&device, &log, omit).await {
            Ok(_) => Ok(true),
            Err(JournalError::Io(_)) => Ok(false),
            Err(other) => Err(other),
        }
    };
    let (ended, medium, _) = on_device(medium, cut, plan.seed ^ cut.unwrap_or(0) << 32, work);
    (ended, medium)
}

/// The version that each block holds, or the block that holds none.
fn versions(medium: &MemDevice) -> Result<BTreeMap<u64, u64>, String> {
    let of = |block| {
        let bytes = medium.current(Lba(block)).expand().expect("content is kept");
        let version = version(block, &bytes).ok_or(format!("block {block} is no version of it"))?;
        Ok((block, version))
    };
    (0..BLOCKS).map(of).collect()
}

/// How a life went.
struct Life {
    result: Result<(), String>,
    medium: MemDevice,
    bios: u64,
    counts: Counts,
}

/// One life of a device: a load that loses power, and a recovery that may lose it too.
fn life(plan: &Plan, medium: MemDevice, cut: Option<u64>, recovery_cut: Option<u64>) -> Life {
    let before = versions(&medium).expect("checked when it was made");
    let load = |rt, device| run(rt, device, plan.clone(), before.clone());
    let (history, medium, bios) = on_device(medium, cut, plan.seed, load);
    let (history, counts) = history
        .unwrap_or_else(|_| (History::after(Default::default(), &before), Counts::default()));
    let (mut ended, mut medium) = recovered(plan, medium, recovery_cut);
    if ended == Ok(false) {
        (ended, medium) = recovered(plan, medium, None);
    }
    let result = match ended {
        Ok(true) => versions(&medium).and_then(|found| history.check(&found)),
        other => Err(format!("recovery ends with {other:?}")),
    };
    Life { result, medium, bios, counts }
}

/// What is wrong after cutting a load's power at each of its bios; of a sound journal nothing, and
/// what the load without a cut did.
fn cut_everywhere(plan: &Plan) -> Result<(u64, Counts), String> {
    let whole = life(plan, formatted(plan), None, None);
    whole.result.map_err(|wrong| format!("{plan:?}, no cut: {wrong}"))?;
    let mut rng = Stream::new(plan.seed, "recovery");
    for cut in 0..whole.bios {
        let recovery_cut = rng.chance(0.5).then(|| rng.below(12));
        let life = life(plan, formatted(plan), Some(cut), recovery_cut);
        life.result.map_err(|wrong| format!("{plan:?}, cut {cut}: {wrong}"))?;
    }
    Ok((whole.bios, whole.counts))
}

/// Atomic, in order, and nothing promised is lost, wherever the power goes. The loads do everything
/// that a journal does.
#[test]
fn every_cut_leaves_a_prefix_of_the_transactions() {
    let (mut cuts, mut wraps, mut revokes, mut forced, mut frozen) = (0, 0, 0, 0, 0);
    for seed in 0..40 {
        let plan = Plan::of(seed);
        let (bios, counts) = cut_everywhere(&plan).unwrap_or_else(|wrong| panic!("{wrong}"));
        cuts += bios;
        wraps += counts.log_blocks / plan.log_blocks;
        revokes += counts.revoke_blocks;
        forced += counts.forced_checkpoints;
        frozen += counts.frozen;
    }
    assert!(cuts > 2_000, "{cuts} cuts are few");
    assert!(wraps > 20 && revokes > 50 && forced > 20, "{wraps}, {revokes}, {forced}");
    assert!(frozen > 0, "no copy was frozen");
}

/// The same over several lives of one device: what an earlier life left in the log harms no later one.
#[test]
fn leftovers_of_earlier_lives_do_no_harm() {
    for seed in 100..400 {
        let mut rng = Stream::new(seed, "lives");
        let plan = Plan::of(seed);
        let mut medium = formatted(&plan);
        for index in 0..4 {
            let plan = Plan { seed: seed + index * 1_000, ..plan.clone() };
            let (cut, recovery_cut) = (rng.below(80), rng.chance(0.3).then(|| rng.below(12)));
            let life = life(&plan, medium, Some(cut), recovery_cut);
            life.result.unwrap_or_else(|wrong| panic!("{plan:?}, cut {cut}: {wrong}"));
            medium = life.medium;
        }
    }
}

/// Flips a bit of the first block number in each descriptor of a log; how many there were.
fn flip_descriptors(plan: &Plan, medium: MemDevice) -> (usize, MemDevice) {
    const DESCRIPTOR: [u8; 8] = [0xc0, 0x3b, 0x39, 0x98, 0, 0, 0, 1];
    let mut flipped = Vec::new();
    for block in 0..plan.log_blocks {
        let at = plan.log().locate(block as u32).expect("a log").0;
        let mut bytes = medium.current(at).expand().expect("content is kept").to_vec();
        if bytes.starts_with(&DESCRIPTOR) {
            bytes[15] ^= 1;
            flipped.push((at, Payload::from_bytes(&bytes).expect("a sector")));
        }
    }
    let descriptors = flipped.len();
    let write = move |_, device: Device| async move {
        for (at, payload) in flipped {
            device.write(at, 1, payload).await.expect("power is on");
        }
        device.flush().await.expect("power is on");
    };
    (descriptors, on_device(medium, None, 0, write).1)
}

/// A descriptor with a wrong checksum leads no copy to another block.
#[test]
fn a_wrong_descriptor_is_not_followed() {
    let (mut descriptors, mut refused) = (0, 0);
    for seed in 0..30 {
        let features = Features::of_file_system(true, true);
        let plan = Plan { features, ..Plan::of(seed) };
        let before = versions(&formatted(&plan)).expect("an empty log");
        let load = |rt, device| run(rt, device, plan.clone(), before.clone());
        let (_, medium, _) = on_device(formatted(&plan), Some(40), plan.seed, load);
        let (found, medium) = flip_descriptors(&plan, medium);
        let (ended, medium) = recovered(&plan, medium, None);
        versions(&medium).unwrap_or_else(|wrong| panic!("{plan:?}: {wrong}"));
        descriptors += found;
        refused += u32::from(matches!(ended, Err(JournalError::Corrupt { .. })));
    }
    assert!(descriptors > 0 && refused > 10, "{descriptors} descriptors, {refused} logs refused");
}

/// Each rule that a journal may break is one whose breach the campaign sees, with checksums and
/// without.
#[test]
fn broken_journals_are_caught() {
    let rules = [
        OmittedRule::MissingBarrier,
        OmittedRule::CommitBeforeData,
        OmittedRule::TailBeforeCheckpoint,
        OmittedRule::MissingRevoke,
    ];
    for rule in rules {
        for checksums in [false, true] {
            let features = Features::of_file_system(checksums, true);
            let broken = |seed| Plan { omit: Some(rule), features, ..Plan::of(seed) };
            let caught = (0..60).find_map(|seed| cut_everywhere(&broken(seed)).err());
            assert!(caught.is_some(), "{} is not caught", rule.name());
        }
    }
}
