//! The GC journal: its area, and its blocks with their moves.

use super::NAME_WIDTH;
use crate::dump::{Dump, inclusive};
use crate::f2fs::format::*;
use crate::f2fs::raw::{F2fsImage, GcJournalBlock, RawError};
use serde_json::{Value, json};

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
    let blocks = area.blocks().start.0.into()..area.blocks().end.0.into();
    format!("blocks {}, {state}", inclusive(blocks))
}

/// Every block that is not zeroes.
pub(super) async fn blocks(image: &F2fsImage) -> Result<Dump, RawError> {
    let mut dump = Dump::new(NAME_WIDTH);
    dump.field("gc_journal", area_text(image));
    let version = image.checkpoint.checkpoint_ver;
    dump.shown("checkpoint_ver", format_args!("{version:#x}"), version);
    dump.list("blocks");
    let live = image.gc_journal_blocks().await?.len();
    dump.field("blocks that count", live);
    for (index, block) in image.gc_journal_all().await? {
        match block {
            Ok(block) => add_block(&mut dump, index, &block, (index as usize) < live),
            Err(error) => dump.problem(error),
        }
    }
    Ok(dump)
}

fn add_block(dump: &mut Dump, index: u32, block: &GcJournalBlock, counts: bool) {
    let (version, entries) = (block.checkpoint_ver(), block.entries());
    let does = if counts { "counts" } else { "does not count" };
    let (format, chain) = match block {
        GcJournalBlock::Paper(_) => (GcJournalFormat::Paper.name(), None),
        GcJournalBlock::Safe(block) => (GcJournalFormat::Safe.name(), Some(block.chain.0)),
    };
    let chained = chain.map(|chain| format!(", chain at block {chain}")).unwrap_or_default();
    dump.note(format_args!(
        "block {index}: {format}{chained}, version {version:#x}, {entries} entries, {does}"
    ));
    let moves: Vec<Value> = match block {
        GcJournalBlock::Paper(block) => {
            let moves = block.entries.iter().map(|PaperEntry { old, new }| {
                dump.note(format_args!("  {} -> {}", old.0, new.0));
                json!({"old": old.0, "new": new.0})
            });
            moves.collect()
        }
        GcJournalBlock::Safe(block) => {
            let moves = block.entries.iter().map(|SafeEntry { old, new, moved }| {
                let (text, mut element) = match moved {
                    MovedBlock::Node(nid) => (format!("node {}", nid.0), json!({"nid": nid.0})),
                    MovedBlock::Data { ino, page } => (
                        format!("inode {}, page {page}", ino.0),
                        json!({"ino": ino.0, "page": page}),
                    ),
                };
                dump.note(format_args!("  {} -> {}: {text}", old.0, new.0));
                element["old"] = old.0.into();
                element["new"] = new.0.into();
                element
            });
            moves.collect()
        }
    };
    let element = json!({
        "index": index, "format": format, "chain": chain, "checkpoint_ver": version,
        "counts": counts, "moves": moves,
    });
    dump.element("blocks", element);
}
