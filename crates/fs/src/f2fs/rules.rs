//! Rules that a mount can leave out, each of them one promise of F2FS broken as a plausible bug would break it. For
//! campaigns, which must notice ([`MountOptions::omit`](super::MountOptions::omit)).
//!
//! A rule is asked for once a checkpoint, a sync, a call or a bio, never for each page or block.

use crate::rules::omitted_rules;

omitted_rules! {
    documented in "../../../../docs/semantics/f2fs.md";

    // Checkpoint.
    /// The last block of a checkpoint pack has no PREFLUSH: what it vouches for may be lost.
    CheckpointPreflush = "checkpoint-preflush",
    /// The last block of a checkpoint pack is not FUA: it may be lost itself, after it was said to be durable.
    CheckpointFua = "checkpoint-fua",
    /// Prefree segments are reused before a checkpoint.
    PrefreeReuse = "prefree-reuse",
    /// Freed segments are discarded before the checkpoint.
    EarlyDiscard = "early-discard",
    /// NAT blocks are written over the copy that the last checkpoint uses.
    NatInPlace = "nat-in-place",
    /// A log writes into holes that the last checkpoint, or an fsync after it, still leads to.
    KeptBlocks = "kept-blocks",
    /// SIT blocks are written over the copy that the last checkpoint uses.
    SitInPlace = "sit-in-place",
    /// The flag of NAT bits stays although a checkpoint did not write them, and a mount believes those of another one.
    StaleNatBits = "stale-nat-bits",
    /// A checkpoint does not wait for directory blocks that are dirty.
    CheckpointDentries = "checkpoint-dentries",
    /// A checkpoint does not wait for node blocks in flight.
    CheckpointWait = "checkpoint-wait",
    /// Orphans are not written into the checkpoint.
    CheckpointOrphans = "checkpoint-orphans",
    // fsync and roll-forward.
    /// The last node of an fsync has no fsync mark.
    FsyncMark = "fsync-mark",
    /// The inode of a new file has no dentry mark.
    DentryMark = "dentry-mark",
    /// An fsync does not flush the device.
    FsyncFlush = "fsync-flush",
    /// An fsync of a file whose data were all written back before it does not flush the device.
    AppendedFlush = "appended-flush",
    /// An fsync of a file whose data were written in place does not flush the device.
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
    // Zones.
    /// Blocks are submitted as operations come to it, and not in the order of their logs.
    ZoneOrder = "zone-order",
    /// Zones of sections that cleaning emptied are reset before the checkpoint.
    ZoneEarlyReset = "zone-early-reset",
    /// A mount does not reset zones of free sections: a reset that was lost stays lost.
    ZoneLostReset = "zone-lost-reset",
    /// A mount lets logs go on where the checkpoint has them, whatever their write pointers say.
    ZoneStaleLog = "zone-stale-log",
    /// A mount does not finish zones that logs have left.
    ZoneFinish = "zone-finish",
    // GC journal.
    /// Cleaned segments are reused before the journal block is durable that says where their blocks are.
    GcReuse = "gcj-reuse",
    /// A journal block has no PREFLUSH: what was moved may be lost.
    GcPreflush = "gcj-preflush",
    /// A journal block is not FUA: it may be lost after its segments were reused.
    GcFua = "gcj-fua",
    /// A journal block does not wait for moved blocks in flight.
    GcSettle = "gcj-settle",
    /// Cleaned segments are discarded before their journal block is durable.
    GcDiscard = "gcj-discard",
    /// Segments are reused although the last checkpoint leads to blocks in them that were invalid before they were moved.
    GcPinned = "gcj-pinned",
    /// The new place of a moved block is not kept until the next checkpoint.
    GcKeepNew = "gcj-keep-new",
    /// Moves before a checkpoint are journalled after it, although their places may be in use again.
    GcCheckpoint = "gcj-checkpoint",
    /// The journal begins again when it is full, without a checkpoint.
    GcFull = "gcj-full",
    /// Nodes are moved as memory has them, and not as the last checkpoint does.
    GcNodeContent = "gcj-node-content",
    /// Blocks of directories are moved as memory has them, and not as the last checkpoint does.
    GcDirContent = "gcj-dir-content",
    /// Places of nodes that roll-forward follows are reused.
    GcChainNodes = "gcj-chain-nodes",
    /// In the paper's format, moves of files that were fsynced since the checkpoint are journalled.
    GcFsynced = "gcj-fsynced",
    /// The volume is not marked while blocks of the journal may count.
    GcMark = "gcj-mark",
    /// The mark is taken off before the checkpoint of an unmount.
    GcUnmark = "gcj-unmark",
    /// Replay believes blocks of earlier checkpoints.
    GcVersion = "gcj-version",
    /// Replay moves a page although it lies elsewhere than the entry says.
    GcLocation = "gcj-location",
    /// Replay applies all entries before the nodes that roll-forward finds.
    GcChain = "gcj-chain",
    /// Replay reads nodes where they lay before they were moved.
    GcLastCopies = "gcj-last-copies",
    // Append-only address spaces.
    /// The discard journal is not written: discards that a power cut lost stay lost.
    DiscardJournal = "discard-journal",
    /// A mount does not send what the discard journal has.
    DiscardReplay = "discard-replay",
    /// A mount does not discard what logs wrote after the last checkpoint, nor what the SIT calls invalid.
    MountDiscard = "mount-discard",
    /// Logs go on where the last checkpoint has them, after a power cut, too.
    LogInPlace = "log-in-place",
    /// Checkpoints do not have the addresses of slots.
    SlotMap = "slot-map",
    // Upcalls.
    /// A batch is completed before a checkpoint has it.
    UpcallCheckpoint = "upcall-checkpoint",
    /// A batch is completed before what was to be discarded was.
    UpcallDiscards = "upcall-discards",
    /// A batch is completed while reads are on their way that began before.
    UpcallReads = "upcall-reads",
    /// A record is applied although its block is not valid any more.
    UpcallStale = "upcall-stale",
    /// Whether a block is what was moved is not asked again after its node was read.
    UpcallRecheck = "upcall-recheck",
    /// Sections are written again as soon as they lost their slots, whatever migrations name them.
    SectionReuse = "section-reuse",
    /// A mount discards old addresses of migrations that are in effect, and with them the moved blocks.
    KnownDiscard = "known-discard",
    // Content.
    /// Blocks that a power cut left after the end of a file show when it grows.
    GrowthTail = "growth-tail",
}
