//! Rules that a mount can leave out, each of them one promise of F2FS broken as a plausible bug would break it. For
//! campaigns, which must notice ([`MountOptions::omit`](super::MountOptions::omit)).
//!
//! A rule is asked for once a checkpoint, a sync, a call or a bio, never for each page or block.

use crate::rules::{Where, omitted_rules};

omitted_rules! {
    documented in "../../docs/semantics/f2fs.md";

    "Checkpoint", Where::Always => {
        /// The last block of a checkpoint pack has no PREFLUSH: the rest of the checkpoint may be lost.
        CheckpointPreflush = "checkpoint-preflush",
        /// The last block of a checkpoint pack is not FUA: it may be lost itself, although the checkpoint counts as
        /// written.
        CheckpointFua = "checkpoint-fua",
        /// Prefree segments are reused before a checkpoint.
        PrefreeReuse = "prefree-reuse",
        /// Freed segments are discarded before the checkpoint.
        EarlyDiscard = "early-discard",
        /// NAT blocks overwrite the copy that the last checkpoint uses.
        NatInPlace = "nat-in-place",
        /// A log writes into holes that the last checkpoint, or an fsync after it, still refers to (adaptive logging).
        KeptBlocks = "kept-blocks",
        /// SIT blocks overwrite the copy that the last checkpoint uses.
        SitInPlace = "sit-in-place",
        /// The flag of NAT bits stays although a checkpoint did not write them, and a mount uses those of another one.
        StaleNatBits = "stale-nat-bits",
        /// A checkpoint does not wait for directory blocks that are dirty.
        CheckpointDentries = "checkpoint-dentries",
        /// A checkpoint does not wait for node blocks in flight.
        CheckpointWait = "checkpoint-wait",
        /// Orphans are not written into the checkpoint.
        CheckpointOrphans = "checkpoint-orphans",
    }

    "fsync and roll-forward", Where::Always => {
        /// The last node of an fsync has no fsync mark.
        FsyncMark = "fsync-mark",
        /// The inode of a new file has no dentry mark.
        DentryMark = "dentry-mark",
        /// An fsync does not flush the device.
        FsyncFlush = "fsync-flush",
        /// An fsync of a file whose data were all written back before it does not flush the device.
        AppendedFlush = "appended-flush",
        /// An fsync of a file whose data were written in place does not flush the device (adaptive logging).
        UpdatedFlush = "updated-flush",
        /// The nodes of an fsync may be durable before a page of the file that cleaning moved, or that left its inode.
        MovedFlush = "moved-flush",
        /// An fsync does not wait for its nodes before the flush.
        FsyncNodeWait = "fsync-node-wait",
        /// An fsync of a renamed file writes no checkpoint.
        FsyncRename = "fsync-rename",
        /// An fsync of a file with several links writes no checkpoint.
        FsyncLink = "fsync-link",
        /// An fsync of a file whose directory is not in the checkpoint writes none.
        FsyncParent = "fsync-parent",
        /// Roll-forward follows nodes of other checkpoint versions.
        RollVersion = "roll-version",
        /// Roll-forward is not followed by a checkpoint.
        RollCheckpoint = "roll-checkpoint",
    }

    "Zones", Where::Zones => {
        /// Blocks are submitted in the order of operations, and not of their logs.
        ZoneOrder = "zone-order",
        /// Zones of sections that cleaning emptied are reset before the checkpoint.
        ZoneEarlyReset = "zone-early-reset",
        /// A mount does not reset zones of free sections: a lost reset stays lost.
        ZoneLostReset = "zone-lost-reset",
        /// A mount continues logs where the checkpoint has them, whatever their write pointers are.
        ZoneStaleLog = "zone-stale-log",
        /// A mount does not finish zones that logs have left.
        ZoneFinish = "zone-finish",
    }

    "GC journal", Where::Mode("reclaim", "gc-journal") => {
        /// Cleaned segments are reused before the journal block with the new addresses of their blocks is durable.
        GcReuse = "gcj-reuse",
        /// A journal block has no PREFLUSH: what was moved may be lost.
        GcPreflush = "gcj-preflush",
        /// A journal block is not FUA: it may be lost after its segments were reused.
        GcFua = "gcj-fua",
        /// A journal block does not wait for moved blocks in flight.
        GcSettle = "gcj-settle",
        /// Cleaned segments are discarded before their journal block is durable.
        GcDiscard = "gcj-discard",
        /// Segments are reused although the last checkpoint refers to blocks in them that were invalid before they
        /// were moved.
        GcPinned = "gcj-pinned",
        /// The new address of a moved block is not kept until the next checkpoint.
        GcKeepNew = "gcj-keep-new",
        /// Moves before a checkpoint are journalled after it, although their addresses may be in use again.
        GcCheckpoint = "gcj-checkpoint",
        /// The journal begins again when it is full, without a checkpoint.
        GcFull = "gcj-full",
        /// Nodes are moved with their content in memory, and not that of the last checkpoint.
        GcNodeContent = "gcj-node-content",
        /// Blocks of directories are moved with their content in memory, and not that of the last checkpoint.
        GcDirContent = "gcj-dir-content",
        /// Addresses of nodes that roll-forward follows are reused.
        GcChainNodes = "gcj-chain-nodes",
        /// In the paper's format, moves of files that were fsynced since the checkpoint are journalled.
        GcFsynced = "gcj-fsynced",
        /// The volume is not marked while blocks of the journal may be valid.
        GcMark = "gcj-mark",
        /// The mark is removed before the checkpoint of an unmount.
        GcUnmark = "gcj-unmark",
        /// Replay uses blocks of earlier checkpoints.
        GcVersion = "gcj-version",
        /// Replay moves a page although it is not at the old address of the entry.
        GcLocation = "gcj-location",
        /// Replay applies all entries before the nodes that roll-forward finds.
        GcChain = "gcj-chain",
        /// Replay reads nodes at their addresses before the move.
        GcLastCopies = "gcj-last-copies",
    }

    "Append-only address spaces", Where::AppendOnly => {
        /// The discard journal is not written: discards that a power cut lost stay lost.
        DiscardJournal = "discard-journal",
        /// A mount does not submit the discards of the discard journal.
        DiscardReplay = "discard-replay",
        /// A mount does not discard what logs wrote after the last checkpoint, nor what is invalid in the SIT.
        MountDiscard = "mount-discard",
        /// Logs continue where the last checkpoint has them, also after a power cut.
        LogInPlace = "log-in-place",
        /// Checkpoints do not have the addresses of slots.
        SlotMap = "slot-map",
    }

    "Upcalls", Where::Upcalls => {
        /// A batch is completed before a checkpoint contains it.
        UpcallCheckpoint = "upcall-checkpoint",
        /// A batch is completed before what was to be discarded was.
        UpcallDiscards = "upcall-discards",
        /// A batch is completed while reads that began before are in flight.
        UpcallReads = "upcall-reads",
        /// A record is applied although its block is not valid any more.
        UpcallStale = "upcall-stale",
        /// Whether a record is stale is not checked again after its node was read.
        UpcallRecheck = "upcall-recheck",
        /// Sections are written again as soon as they lost their slots, although migrations refer to them.
        SectionReuse = "section-reuse",
        /// A mount discards old addresses of migrations that are in effect, and with them the moved blocks.
        KnownDiscard = "known-discard",
    }

    "Space", Where::Always => {
        /// A new inode that finds no space for its content is not freed.
        RefusedInode = "refused-inode",
    }

    "Content", Where::Always => {
        /// Blocks that a power cut left after the end of a file show when it grows.
        GrowthTail = "growth-tail",
    }
}
