//! Power cuts at random instants, life after life.

use super::devices::{assert_exact, coupled_with, device, interval, is_exact, made};
use super::life::{Model, live_on};
use crate::common::oracle::asked;
use crate::common::slow::Slow;
use nandscape_block::{DeviceCaps, UpcallSignal};
use nandscape_fs::cache::CacheConfig;
use nandscape_fs::f2fs::{MountOptions, OmittedRule};
use nandscape_rt::{Nanos, Stream};

/// Lives of a volume, all but the last of which end with a cut; what went wrong.
pub(super) fn lives(
    fresh: Slow,
    seed: u64,
    omit: Option<OmittedRule>,
) -> Result<Slow, Vec<String>> {
    let mut rng = Stream::new(seed, "lives");
    let mut device = made(fresh, seed);
    let mut model = Model::default();
    let lives = 2 + rng.below(4);
    for life in 0..lives {
        let cache = CacheConfig { pages: 256 + rng.below(2_000), ..CacheConfig::default() };
        let options = MountOptions {
            cache,
            ordered_data: true,
            checkpoint_interval: Nanos::from_ms(20 + rng.below(400)),
            nat_entries: rng.below(300) as usize,
            inodes: 1 + rng.below(20) as usize,
            seed,
            omit,
            ..MountOptions::default()
        };
        let cut = (life + 1 < lives).then(|| Nanos::from_us(rng.below(900_000)));
        let calls = if cut.is_some() { u64::MAX } else { 300 };
        let (left, known, problems) =
            live_on(device, model, options, (seed ^ life << 32, calls, cut));
        if !problems.is_empty() {
            return Err(problems.into_iter().map(|one| format!("life {life}: {one}")).collect());
        }
        (device, model) = (left, known);
        if cut.is_some() {
            device.fake.cut_power(&mut rng);
        }
    }
    Ok(device)
}

/// Whatever a cut takes, what a sync covered is there, the volume is sound, and the device holds nothing that the volume has
/// not.
fn assert_lives(fresh: impl Fn(u64) -> Slow) {
    let from = asked("NANDSCAPE_F2FS_LIVES_FROM", 0);
    for seed in from..from + asked("NANDSCAPE_F2FS_LIVES", 12) {
        match lives(fresh(seed), seed, None) {
            Ok(device) => drop(assert_exact(device)),
            Err(problems) => panic!("seed {seed}: {problems:#?}"),
        }
    }
}

#[test]
fn interval_lives_keep_what_was_synced() {
    assert_lives(|_| device(interval(), 0));
}

#[test]
fn coupled_lives_keep_what_was_synced() {
    assert_lives(moving);
}

/// A cut in the midst of a mount after a cut, several times, takes nothing that a sync covered.
#[test]
fn mounts_that_are_cut_short_take_nothing() {
    for (coupled, seeds) in [(false, 8), (true, 3)] {
        for seed in 0..seeds {
            let mut fresh = if coupled { moving(seed) } else { device(interval(), 0) };
            fresh.late = 0.0;
            let mut rng = Stream::new(seed, "short lives");
            let (mut device, mut model) = (made(fresh, seed), Model::default());
            for life in 0..6 {
                let longest = if life == 0 { 200_000 } else { 3_000 };
                let (calls, cut) = match life {
                    5 => (1, None),
                    _ => (u64::MAX, Some(Nanos::from_us(rng.below(longest)))),
                };
                let options = MountOptions { ordered_data: true, seed, ..MountOptions::default() };
                let (left, known, problems) =
                    live_on(device, model, options, (seed ^ life << 32, calls, cut));
                assert!(problems.is_empty(), "seed {seed}, life {life}: {problems:#?}");
                (device, model) = (left, known);
                if cut.is_some() {
                    device.fake.cut_power(&mut rng);
                }
            }
            drop(assert_exact(device));
        }
    }
}

/// A device that moves few or many blocks, and says so in one of three ways.
fn moving(seed: u64) -> Slow {
    let upcall_signal = match seed / 3 % 3 {
        0 => UpcallSignal::Piggyback,
        1 => UpcallSignal::Interrupt,
        _ => UpcallSignal::Poll(Nanos::from_us(300)),
    };
    // In few superblocks the logs come round soon.
    let superblocks = [64, 22][(seed / 9 % 2) as usize];
    let caps = DeviceCaps { upcall_signal, ..coupled_with(superblocks) };
    device(caps, [2, 8, 24][(seed % 3) as usize])
}

/// Each rule of the mode can be seen to be needed: without it some life ends badly.
#[test]
fn interval_rules_are_needed() {
    use OmittedRule::{
        DiscardJournal, DiscardReplay, EarlyDiscard, LogInPlace, MountDiscard, SlotMap,
    };
    for rule in [DiscardJournal, DiscardReplay, EarlyDiscard, LogInPlace, MountDiscard, SlotMap] {
        assert_needed(rule, |_| device(interval(), 0));
    }
}

#[test]
fn coupled_rules_are_needed() {
    use OmittedRule::{
        EarlyDiscard, KnownDiscard, LogInPlace, MountDiscard, SectionReuse, SlotMap,
        UpcallCheckpoint, UpcallDiscards, UpcallStale,
    };
    for rule in [
        EarlyDiscard,
        LogInPlace,
        MountDiscard,
        SlotMap,
        UpcallCheckpoint,
        UpcallDiscards,
        UpcallStale,
        KnownDiscard,
    ] {
        assert_needed(rule, moving);
    }
    // Few superblocks are written again soon.
    assert_needed(SectionReuse, |seed| moving(9 + seed % 9));
}

/// Some life ends badly without the rule.
fn assert_needed(rule: OmittedRule, fresh: impl Fn(u64) -> Slow) {
    let is_caught = |seed: u64| {
        let ended = lives(fresh(seed), seed, Some(rule));
        ended.map_or(true, |device| !is_exact(device))
    };
    let caught = (0..40).find(|seed| is_caught(*seed));
    eprintln!("{}: seed {caught:?}", rule.name());
    assert!(caught.is_some(), "nothing notices the lack of {}", rule.name());
}
