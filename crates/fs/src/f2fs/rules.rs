//! Rules that a mount can leave out, each of them one promise of F2FS broken as a plausible bug would break it. For
//! campaigns, which must notice ([`MountOptions::omit`](super::MountOptions::omit)).
//!
//! A rule is asked for once a checkpoint, a sync, a call or a bio, never for each page or block.

/// The rules, from one list: variant, name, and, as its documentation, what goes wrong without it.
macro_rules! rules {
    ($($(#[doc = $about:literal])+ $rule:ident = $name:literal,)+) => {
        /// A rule that is left out.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum OmittedRule {
            $($(#[doc = $about])+ $rule,)+
        }

        impl OmittedRule {
            /// All of them.
            pub const ALL: [Self; [$(Self::$rule),+].len()] = [$(Self::$rule),+];

            /// Its name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$rule => $name,)+
                }
            }
        }
    };
}

rules! {
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
    /// SIT blocks are written over the copy that the last checkpoint uses.
    SitInPlace = "sit-in-place",
    /// The flag of NAT bits stays although this checkpoint did not write them.
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

/// Names of all rules.
pub(crate) const NAMES: [&str; OmittedRule::ALL.len()] = {
    let mut names = [""; OmittedRule::ALL.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = OmittedRule::ALL[at].name();
        at += 1;
    }
    names
};

impl OmittedRule {
    /// The rule of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|rule| rule.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// What the manual says of power cuts.
    const DOCUMENT: &str = include_str!("../../../../docs/semantics/f2fs.md");

    /// A name is one rule's, and leads back to it.
    #[test]
    fn names_are_unique() {
        let names: BTreeSet<&str> = NAMES.into_iter().collect();
        assert_eq!(names.len(), OmittedRule::ALL.len());
        for rule in OmittedRule::ALL {
            assert_eq!(OmittedRule::named(rule.name()), Some(rule));
        }
        assert_eq!(OmittedRule::named("no-such-rule"), None);
    }

    /// The manual names each rule once in its table.
    #[test]
    fn rules_are_documented() {
        for name in NAMES {
            let rows = DOCUMENT.matches(&format!("| `{name}` |")).count();
            assert_eq!(rows, 1, "{name}");
        }
    }
}
