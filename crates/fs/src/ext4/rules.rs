//! Rules that a mount can leave out, each of them one promise of ext4 or JBD2 broken as a plausible bug would
//! break it. For campaigns, which must notice ([`MountOptions::omit`](super::MountOptions::omit)).
//!
//! A rule is asked for once a transaction, a sync, a call on names or a bio, never for each page or sector.

use crate::rules::{Where, omitted_rules};

omitted_rules! {
    documented in "../../docs/semantics/posix.md";

    "Barriers of the log", Where::Always => {
        /// The journal flushes nothing, and none of its writes is FUA.
        MissingBarrier = "missing-barrier",
        /// The commit block is written, durably, before what it commits.
        CommitBeforeData = "commit-before-data",
        /// The commit block is FUA, but without PREFLUSH: what it commits may be lost.
        CommitPreflush = "commit-preflush",
        /// The commit block has PREFLUSH, but neither FUA nor a flush after it: it may be lost itself.
        CommitFua = "commit-fua",
        /// The commit block is submitted while copies to the log are in flight.
        CopiesWait = "copies-wait",
        /// The commit block is submitted while ordered data is in flight.
        OrderedWait = "ordered-wait",
        /// The tail moves without a flush of the home writes that it moves over.
        TailFlush = "tail-flush",
        /// The superblock with the new tail may be lost, although log space is used again.
        TailFua = "tail-fua",
        /// An fsync that finds nothing to commit does not flush the device.
        FsyncFlush = "fsync-flush",
        /// An fsync relies on a commit's barrier that was submitted before the fsync's data arrived.
        BarrierSent = "barrier-sent",
        /// A log is marked as empty without a flush of the home writes.
        EmptyFlush = "empty-flush",
        /// Recovery marks the log as empty without a flush of what it wrote home.
        RecoveryFlush = "recovery-flush",
    }

    "Home writes", Where::Always => {
        /// The tail moves over transactions whose blocks were not written home.
        TailBeforeCheckpoint = "tail-before-checkpoint",
        /// The tail moves over home writes that came after the barrier which should cover them.
        LateHome = "late-home",
        /// A block counts as home as soon as its write is submitted.
        HomeWait = "home-wait",
        /// A block that an uncommitted transaction has changed is written home with that change.
        ClaimedHome = "claimed-home",
        /// A freed block is still written home, over its new content.
        ForgottenHome = "forgotten-home",
        /// A freed block is reallocated while an older home write of it is in flight.
        HomeInFlight = "home-in-flight",
        /// The log gets a block with changes of the next transaction.
        FrozenCopies = "frozen-copies",
    }

    "Revokes and recovery", Where::Always => {
        /// Freed blocks are not revoked.
        MissingRevoke = "missing-revoke",
        /// A revoke also prevents the replay of copies of later transactions.
        RevokeOrder = "revoke-order",
        /// Recovery does not verify checksums of the log.
        LogChecksums = "log-checksums",
        /// Mount does not finish truncations.
        OrphanTruncate = "orphan-truncate",
        /// Mount does not free files that have lost their last name.
        OrphanUnlink = "orphan-unlink",
    }

    "Content of files", Where::Always => {
        /// Preallocated blocks count as written when their data is submitted.
        UnwrittenEarly = "unwritten-early",
        /// Blocks from fallocate count as written.
        FallocateWritten = "fallocate-written",
        /// Blocks for a direct write count as written before it.
        DirectWritten = "direct-written",
        /// A direct append publishes the length before the data is written.
        AppendSize = "append-size",
        /// A file is not an orphan while a direct append has no length yet.
        AppendOrphan = "append-orphan",
        /// A sync skips pages that were written to again while they were in flight.
        RedirtiedPage = "redirtied-page",
        /// A sync does not wait for the pages that it submits.
        SyncWait = "sync-wait",
        /// fdatasync does not commit a length that was set.
        FdatasyncSize = "fdatasync-size",
    }

    "Space", Where::Always => {
        /// Blocks reserved for pages in memory may be reserved, or allocated, again.
        Reservation = "reservation",
        /// Blocks reserved for pages in memory stay reserved when their file is removed.
        DroppedReservation = "dropped-reservation",
        /// Freed blocks are reallocated before the transaction that freed them is committed.
        ReuseBeforeCommit = "reuse-before-commit",
    }

    "Names and attributes", Where::Always => {
        /// A file that is open when it loses its last name is not an orphan.
        OpenUnlink = "open-unlink",
        /// A file over which another is renamed is not an orphan.
        RenameOrphan = "rename-orphan",
        /// A sync of a file does not commit a name from link.
        LinkSync = "link-sync",
        /// A sync of a file does not commit a name from rename.
        RenameSync = "rename-sync",
        /// link adds a name in a transaction that does not count it.
        LinkCount = "link-count",
        /// A changed block of attributes is written home without the log.
        XattrLogged = "xattr-logged",
        /// A sync of a file does not commit its attributes.
        XattrSync = "xattr-sync",
    }

    "Records of single files", Where::Mode("commit", "ijournal") => {
        /// A record is written without PREFLUSH: the data that it refers to may be lost.
        RecordPreflush = "record-preflush",
        /// A record is not durable when its sync ends.
        RecordFua = "record-fua",
        /// A record overwrites one that is still valid.
        RecordPlace = "record-place",
        /// Recovery applies records that a committed transaction has superseded.
        RecordCover = "record-cover",
        /// A sync of a file writes a record, although link has changed it.
        RecordLink = "record-link",
        /// A sync of a file writes a record, although it has lost a name.
        RecordUnlink = "record-unlink",
        /// A sync of a file writes a record, although it was renamed.
        RecordRename = "record-rename",
        /// A sync of a file writes a record, although its block of attributes has changed.
        RecordXattr = "record-xattr",
    }
}
