//! The GC journal: its area, and its blocks with their moves.

use super::Lines;
use crate::f2fs::format::*;
use crate::f2fs::raw::{F2fsImage, GcJournalBlock, RawError};

/// Where the area lies, and whether blocks in it may count.
pub(super) fn area_text(image: &F2fsImage) -> String {
    let area = match image.sb.check_gc_journal(image.sb_copy) {
        Ok(None) => return "none".to_owned(),
        Ok(Some(area)) => area,
        Err(error) => return format!("unsound: {error}"),
    };
    let state = match (image.gc_journal_live, image.sb.is_marked()) {
        (Some(format), _) => format!("marked: blocks in the {} format may count", format.name()),
        (None, true) => "no block counts: one copy of the superblock is not marked".to_owned(),
        (None, false) => "no block counts".to_owned(),
    };
    format!("blocks {}..{}, {state}", area.blocks().start.0, area.blocks().end.0)
}

/// Every block that is not zeroes.
pub(super) async fn blocks(image: &F2fsImage) -> Result<String, RawError> {
    let mut lines = Lines::default();
    lines.field("gc_journal", area_text(image));
    lines.field("checkpoint_ver", format_args!("{:#x}", image.checkpoint.checkpoint_ver));
    let live = image.gc_journal_blocks().await?.len();
    lines.field("blocks that count", live);
    for (index, block) in image.gc_journal_all().await? {
        match block {
            Ok(block) => add_block(&mut lines, index, &block, (index as usize) < live),
            Err(error) => lines.add(format_args!("unsound: {error}")),
        }
    }
    Ok(lines.0)
}

fn add_block(lines: &mut Lines, index: u32, block: &GcJournalBlock, counts: bool) {
    let (version, entries) = (block.checkpoint_ver(), block.entries());
    let counts = if counts { "counts" } else { "does not count" };
    let format = match block {
        GcJournalBlock::Paper(_) => GcJournalFormat::Paper.name().to_owned(),
        GcJournalBlock::Safe(block) => {
            format!("{}, chain at block {}", GcJournalFormat::Safe.name(), block.chain.0)
        }
    };
    lines.add(format_args!(
        "block {index}: {format}, version {version:#x}, {entries} entries, {counts}"
    ));
    match block {
        GcJournalBlock::Paper(block) => {
            for PaperEntry { old, new } in &block.entries {
                lines.add(format_args!("  {} -> {}", old.0, new.0));
            }
        }
        GcJournalBlock::Safe(block) => {
            for SafeEntry { old, new, moved } in &block.entries {
                let moved = match moved {
                    MovedBlock::Node(nid) => format!("node {}", nid.0),
                    MovedBlock::Data { ino, page } => format!("inode {}, page {page}", ino.0),
                };
                lines.add(format_args!("  {} -> {}: {moved}", old.0, new.0));
            }
        }
    }
}
