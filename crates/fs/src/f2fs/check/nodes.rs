//! Nodes: what leads to one, what the NAT says of it, and what it says itself (`sanity_check_nid` of
//! fsck.f2fs).

use super::checker::Checker;
use crate::f2fs::format::*;
use crate::f2fs::raw::RawNode;
use nandscape_block::BlockError;

impl Checker {
    /// Enters a node for the first time: `from` leads to it, as the node at `offset` of the tree of `ino`.
    /// `None` if it is no such node, or was entered before.
    pub(super) async fn enter(
        &mut self,
        nid: Nid,
        ino: Nid,
        offset: u32,
        from: Place,
    ) -> Result<Option<RawNode>, BlockError> {
        let place = Place::Node(nid);
        let Some(entry) = self.nat.get(&nid).copied() else {
            self.report.find(from, format!("refers to node {}, which does not exist", nid.0));
            return Ok(None);
        };
        if self.reached.contains(&nid) {
            self.report.find(from, format!("refers to node {}, which already has a place", nid.0));
            return Ok(None);
        }
        if !self.image.layout.is_main(entry.block_addr) {
            let what = format!("is in block {}, outside the main area", entry.block_addr.0);
            self.report.find(Place::NatEntry(nid), what);
            return Ok(None);
        }
        let bytes = self.image.reader().block(entry.block_addr.0.into()).await?;
        let footer = NodeFooter::parse(&bytes);
        if footer.nid != nid.0 {
            self.report.find(place, format!("has node number {} in its footer", footer.nid));
            return Ok(None);
        }
        if footer.ino != entry.ino.0 {
            let [says, nat] = [footer.ino, entry.ino.0];
            self.report.find(place, format!("is of inode {says}, but of {nat} in the NAT"));
            return Ok(None);
        }
        if footer.ino != ino.0 {
            let what = format!("is of inode {}, but inode {} refers to it", footer.ino, ino.0);
            self.report.find(place, what);
            return Ok(None);
        }
        if footer.offset() != offset {
            let what = format!("has offset {} in its footer, expected {offset}", footer.offset());
            self.report.find(place, what);
        }
        self.reached.insert(nid);
        let summary = SummaryEntry { nid, ..SummaryEntry::default() };
        self.check_summary(entry.block_addr, summary, SummaryKind::Node, place).await?;
        self.claim(entry.block_addr, true, place);
        Ok(Some(RawNode { nid, entry, footer, bytes }))
    }
}
