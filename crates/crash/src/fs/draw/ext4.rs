//! ext4 as small as campaigns need it: the smallest journal and little beside it, so that logs wrap and
//! blocks are used again in a few hundred operations.

use super::Mounted;
use crate::settings::Settings;
use nandscape_fs::ext4::mkfs::MkfsOptions;
use nandscape_fs::ext4::{Commit, Config, MountOptions, OmittedRule};
use nandscape_rt::Stream;
use std::ops::Range;

/// Sectors of a volume. Little beside a journal of the smallest size.
pub(super) const VOLUME_SECTORS: u64 = 2_560;
/// Sectors of the largest media below it.
pub(super) const DEVICE_SECTORS: u32 = 16_384;
/// The same below a volume that fills its device.
pub(super) const FULL_DEVICE_SECTORS: u32 = 8_192;
/// log2 of the bytes for each of which a volume has an inode, and the range of it where inodes are to run out.
const INODE_RATIO_BITS: u32 = 14;
const FEW_INODES_BITS: Range<u64> = 14..18;
/// Blocks of a journal: from the smallest up to the largest that such a volume may have, half of it.
const JOURNAL_BLOCKS: Range<u64> = 1_024..VOLUME_SECTORS / 2 + 1;
/// Rings of file records and their blocks: little, so that they fill.
const IJOURNAL: Commit = Commit::Ijournal { slots: 2, slot_blocks: 24 };

/// The modes that are given, with the sizes of a campaign.
pub(super) fn in_small(config: Config) -> Config {
    match config.mount.commit {
        Commit::Jbd2 => config,
        Commit::Ijournal { .. } => {
            Config { mount: MountOptions { commit: IJOURNAL, ..config.mount }, ..config }
        }
    }
}

/// How a seed makes and mounts its volume.
pub(super) fn config(given: &Config, mounted: &Mounted<'_>) -> Config {
    let Mounted { seed, mount, filled, full, .. } = *mounted;
    let journal = Stream::new(seed, "journal-blocks").within(JOURNAL_BLOCKS);
    let ratio_bits = match full {
        true => Stream::new(seed, "full-inodes").within(FEW_INODES_BITS) as u32,
        false => INODE_RATIO_BITS,
    };
    let format = MkfsOptions {
        blocks: Some(filled.unwrap_or(VOLUME_SECTORS)),
        journal_blocks: Some(journal as u32),
        inode_ratio: Some(1 << ratio_bits),
        fresh: true,
        ..MkfsOptions::new(seed)
    };
    let mount = MountOptions {
        data: given.mount.data,
        commit: given.mount.commit,
        // Generations must not come again: they tell files apart.
        seed: seed.wrapping_mul(1_000).wrapping_add(mount),
        omit: given.mount.omit,
        ..MountOptions::default()
    };
    Config { format: Some(format), mount }
}

/// Whether e2fsck and the kernel can recover such a volume: they know nothing of file-level records.
pub(super) fn oracle_recovers(given: &Config) -> bool {
    given.mount.commit == Commit::Jbd2
}

/// What is no choice, as keys and values.
pub(super) fn describe(given: &Config) -> Settings {
    Settings::default().with_some("omit", given.mount.omit.map(OmittedRule::name))
}
