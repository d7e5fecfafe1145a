//! Counts what a tree has lost as the kernel loses it ([`KernelLoss`]).
//!
//! Every loss is one of a tree that [`Model::verify`] accepts: it is no violation, and a campaign that counts none of a
//! class has not been where the class shows.

use super::names::{Names, Node, State};
use super::{Body, Model, Stale};
use crate::fs::tree::Tree;
use crate::kernel_loss::KernelLoss;
use std::collections::{BTreeMap, BTreeSet};

/// Nodes that were synced by themselves, each with the operation up to which its names are durable.
#[derive(Clone, Default, Debug)]
pub(super) struct Synced(BTreeMap<Node, SyncedAt>);

#[derive(Clone, Copy, Debug)]
struct SyncedAt {
    /// Of the last fsync or fdatasync.
    content: State,
    /// Of the last fsync.
    whole: Option<State>,
}

impl Synced {
    /// A sync of a node has ended, which began after operation `newest`.
    pub(super) fn note(&mut self, node: Node, newest: State, whole: bool) {
        let before = self.0.get(&node).and_then(|at| at.whole);
        let at = SyncedAt { content: newest, whole: if whole { Some(newest) } else { before } };
        self.0.insert(node, at);
    }
}

impl Model {
    /// What this tree, which [`Model::verify`] accepted, has lost: files or pages by class, no class without any.
    pub(crate) fn losses(&self, tree: &Tree) -> BTreeMap<KernelLoss, u64> {
        let below = self.shown(tree);
        let shown: Vec<(&str, Node)> =
            below.iter().filter_map(|(path, seen)| Some((*path, self.node_of(seen)?))).collect();
        let mut losses = BTreeMap::from([
            (KernelLoss::Replaced, self.replaced(&shown)),
            (KernelLoss::FormerPath, self.at_former_paths(&shown)),
        ]);
        if self.stale != Stale::Never {
            let pages = below.values().filter_map(|seen| {
                let Some(Body::File(file)) = self.bodies.get(&self.node_of(seen)?) else {
                    return None;
                };
                Some(file.former_blocks(seen))
            });
            losses.insert(KernelLoss::FormerBlock, pages.sum());
        }
        losses.retain(|_, count| *count > 0);
        losses
    }

    /// Durable nodes that had a name at any time since, and have none.
    fn replaced(&self, shown: &[(&str, Node)]) -> u64 {
        let first = self.history.first();
        let shown: BTreeSet<Node> = shown.iter().map(|(_, node)| *node).collect();
        let of_syncs = self.synced.0.iter().map(|(node, at)| (*node, at.content.max(first)));
        let mut durable: BTreeMap<Node, State> = of_syncs.collect();
        durable.extend(self.history.oldest().values().map(|node| (*node, first)));
        durable.retain(|node, _| !shown.contains(node));
        if durable.is_empty() {
            return 0;
        }
        self.history.walk(|state, names| {
            let named: BTreeSet<Node> = names.values().copied().collect();
            durable.retain(|node, since| state < *since || named.contains(node));
        });
        durable.len() as u64
    }

    /// Files that were synced and have a name that they had before that, and not since.
    fn at_former_paths(&self, shown: &[(&str, Node)]) -> u64 {
        let first = self.history.first();
        let mut strangers: Vec<(&str, Node, State)> = shown
            .iter()
            .filter_map(|(path, node)| {
                let since = self.synced.0.get(node)?.whole?.max(first);
                Some((*path, *node, since))
            })
            .collect();
        if strangers.is_empty() {
            return 0;
        }
        self.history.walk(|state, names: &Names| {
            strangers
                .retain(|(path, node, since)| state < *since || names.get(*path) != Some(node));
        });
        strangers.len() as u64
    }
}
