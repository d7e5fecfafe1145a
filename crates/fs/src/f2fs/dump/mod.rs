//! Structures to read, as text and JSON: what is on disk, interpreted and not judged. Field names are those of
//! docs/formats/f2fs.md; numbers in text are decimal but for bits and checksums.

mod gc_journal;
mod manifest;
mod nodes;
mod tables;
mod tree;

pub use manifest::{ContentSum, ManifestLine};

use super::raw::{F2fsImage, RawError};
use crate::dump::Dump;
use nandscape_block::AsyncDevice;
use nandscape_rt::BoxFuture;
use std::str::FromStr;

/// What to show.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DumpTarget {
    /// The superblock.
    Superblock,
    /// The checkpoint.
    Checkpoint,
    /// An inode, with its blocks, names and attributes.
    Inode(u32),
    /// A node's entry in the NAT.
    Nat(u32),
    /// A segment's entry in the SIT.
    Sit(u32),
    /// A segment's summary.
    Ssa(u32),
    /// A node.
    Node(u32),
    /// The blocks of the GC journal.
    GcJournal,
    /// Every path, as a manifest.
    Tree,
}

impl FromStr for DumpTarget {
    type Err = String;

    /// Reads `super`, `checkpoint`, `gc-journal`, `tree`, `inode N`, `nat N`, `sit SEGMENT`, `ssa SEGMENT` or `node N`.
    fn from_str(text: &str) -> Result<Self, String> {
        let unknown = || {
            format!(
                "F2FS has no {text:?}: expected super, checkpoint, gc-journal, tree, inode N, nat N, \
                 sit SEGMENT, ssa SEGMENT or node N"
            )
        };
        let number = |text: &str| text.parse().map_err(|_| unknown());
        match text.split_once(' ') {
            None if text == "super" => Ok(Self::Superblock),
            None if text == "checkpoint" => Ok(Self::Checkpoint),
            None if text == "gc-journal" => Ok(Self::GcJournal),
            None if text == "tree" => Ok(Self::Tree),
            Some(("inode", ino)) => Ok(Self::Inode(number(ino)?)),
            Some(("nat", nid)) => Ok(Self::Nat(number(nid)?)),
            Some(("sit", segno)) => Ok(Self::Sit(number(segno)?)),
            Some(("ssa", segno)) => Ok(Self::Ssa(number(segno)?)),
            Some(("node", nid)) => Ok(Self::Node(number(nid)?)),
            _ => Err(unknown()),
        }
    }
}

/// Shows a part of a volume that no other task changes.
///
/// # Errors
/// What cannot be read or is no such thing.
pub fn dump(device: &AsyncDevice, what: DumpTarget) -> BoxFuture<'_, Result<Dump, RawError>> {
    Box::pin(shown_of(device, what))
}

async fn shown_of(device: &AsyncDevice, what: DumpTarget) -> Result<Dump, RawError> {
    use super::format::{Nid, SegNo};
    let image = F2fsImage::open(device).await?;
    match what {
        DumpTarget::Superblock => Ok(tables::superblock(&image)),
        DumpTarget::Checkpoint => tables::checkpoint(&image).await,
        DumpTarget::Inode(ino) => nodes::inode(&image, Nid(ino)).await,
        DumpTarget::Nat(nid) => tables::nat(&image, Nid(nid)).await,
        DumpTarget::Sit(segno) => tables::sit(&image, SegNo(segno)).await,
        DumpTarget::Ssa(segno) => tables::ssa(&image, SegNo(segno)).await,
        DumpTarget::Node(nid) => nodes::node(&image, Nid(nid)).await,
        DumpTarget::GcJournal => gc_journal::blocks(&image).await,
        DumpTarget::Tree => tree::manifest(&image).await,
    }
}

/// Columns of a field's name.
const NAME_WIDTH: usize = 26;

/// A field of flags: the names of the bits that are set, and other bits as a number.
fn flags(dump: &mut Dump, name: &str, flags: u32, names: &[(u32, &str)]) {
    let set = names.iter().filter(|(bit, _)| flags & bit != 0);
    let known = names.iter().fold(0, |known, (bit, _)| known | bit);
    let rest = (flags & !known != 0).then(|| format!("{:#x}", flags & !known));
    let all: Vec<String> = set.map(|(_, name)| (*name).to_owned()).chain(rest).collect();
    let text = if all.is_empty() { "none".into() } else { all.join(" ") };
    dump.shown(name, text, all);
}
