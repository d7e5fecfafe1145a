//! The index of a directory: every block of names is reached once, and holds the hashes that it
//! should.

use super::checker::Checker;
use super::dirs::DirCheck;
use crate::ext4::format::*;
use nandscape_block::BlockError;
use std::ops::RangeInclusive;

/// A block of the directory that an index leads to, with the hashes below it.
struct ChildNode {
    block: u32,
    hashes: RangeInclusive<u32>,
    levels: u8,
}

impl Checker {
    /// Follows a directory's index from its root, the first of its blocks.
    pub(super) async fn check_index(
        &mut self,
        looking: &mut DirCheck,
        blocks: &[u64],
    ) -> Result<(), BlockError> {
        let Some(&first) = blocks.first() else { return Ok(()) };
        let place = looking.place(first);
        let bytes = self.read(first).await?;
        let root = IndexNode::parse_root(&bytes[..], looking.has_tail, place);
        let Some(root) = self.report.sound(place, root) else { return Ok(()) };
        let sealed = root.check(&bytes[..], looking.seed, place);
        self.report.sound(place, sealed);
        for (index, entry) in (1..).zip(dir_entries(&bytes[..], false, place).take(2)) {
            let Some(entry) = self.report.sound(place, entry) else { return Ok(()) };
            self.check_dot(looking.number, index, &bytes, &entry, place);
        }
        let info = root.root.unwrap_or(IndexRoot { hash_version: 0, levels: 0 });
        let unsigned = self.sb.flags & FLAG_UNSIGNED_HASH != 0;
        let version = HashVersion::of(info.hash_version, unsigned);
        let Some(version) = version else { return Ok(()) };

        let mut reached = vec![false; blocks.len()];
        reached[0] = true;
        let mut waiting = below(&root, 0..=u32::MAX, info.levels);
        while let Some(next) = waiting.pop() {
            let index = next.block as usize;
            let fresh = reached.get_mut(index).filter(|reached| !**reached);
            let Some(fresh) = fresh else {
                let what =
                    format!("refers to block {index} of the directory, which does not exist");
                self.report.find(place, what);
                continue;
            };
            *fresh = true;
            self.check_below(looking, blocks[index], &next, version, &mut waiting).await?;
        }
        let missed = reached.iter().filter(|reached| !**reached).count();
        if missed > 0 {
            self.report.find(place, format!("does not refer to {missed} blocks of the directory"));
        }
        Ok(())
    }

    async fn check_below(
        &mut self,
        looking: &mut DirCheck,
        block: u64,
        next: &ChildNode,
        version: HashVersion,
        waiting: &mut Vec<ChildNode>,
    ) -> Result<(), BlockError> {
        let bytes = self.read(block).await?;
        if next.levels == 0 {
            let seed = self.sb.hash_seed;
            let belongs = |name: &[u8]| next.hashes.contains(&version.hash(name, &seed).hash);
            self.check_leaf(looking, block, &bytes, false, belongs);
            return Ok(());
        }
        let place = looking.place(block);
        let node = IndexNode::parse_node(&bytes[..], looking.has_tail, place);
        let Some(node) = self.report.sound(place, node) else { return Ok(()) };
        let sealed = node.check(&bytes[..], looking.seed, place);
        self.report.sound(place, sealed);
        waiting.extend(below(&node, next.hashes.clone(), next.levels - 1));
        Ok(())
    }
}

/// The blocks below a node that is itself responsible for `hashes`. Names of one hash may go on in
/// the next block, whose least hash is then odd.
fn below(node: &IndexNode, hashes: RangeInclusive<u32>, levels: u8) -> Vec<ChildNode> {
    let entries = node.entries.iter().enumerate();
    let ranges = entries.map(|(index, entry)| {
        let from = if index == 0 { *hashes.start() } else { entry.hash & !1 };
        let next = node.entries.get(index + 1);
        let to = next.map_or(*hashes.end(), |next| {
            if next.hash & 1 == 1 { next.hash } else { next.hash.saturating_sub(1) }
        });
        ChildNode { block: entry.block, hashes: from..=to, levels }
    });
    ranges.collect()
}
