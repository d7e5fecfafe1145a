//! The journal: its superblock, and the transactions that its log holds, as recovery would find them.

use super::{NAME_WIDTH, uuid};
use crate::dump::{Dump, iso8601};
use crate::ext4::format::{FormatError, JOURNAL_INODE, Place};
use crate::ext4::journal::Tid;
use crate::ext4::journal::disk::{
    Codec, Commit, Header, Kind, Revokes, Superblock as LogSuperblock, Tags,
};
use crate::ext4::raw::{Ext4Image, RawError};
use crate::image::BlockBytes;
use serde_json::{Value, json};

/// Home blocks that a line of text names.
const BLOCKS_PER_LINE: usize = 8;

/// The journal.
pub(super) async fn log(raw: &Ext4Image) -> Result<Dump, RawError> {
    let place = Place::Inode(JOURNAL_INODE);
    let refuse = |what: String| FormatError::Incompatible { place, what };
    let (inode, _) = raw.inode(JOURNAL_INODE).await?;
    if inode.links_count == 0 {
        return Err(refuse("no journal".into()).into());
    }
    let extents = raw.extents(JOURNAL_INODE, &inode).await?;
    let blocks: Vec<u64> = extents.iter().flat_map(|e| e.start..e.end()).collect();
    let first = *blocks.first().ok_or_else(|| refuse("the journal has no blocks".into()))?;
    let superblock = LogSuperblock::parse(raw.reader().block(first).await?, blocks.len() as u64);
    let superblock = superblock.map_err(|error| refuse(error.to_string()))?;
    let mut dump = Dump::new(NAME_WIDTH);
    add_superblock(&mut dump, &superblock);
    let codec = superblock.codec();
    let (mut at, mut tid) = (superblock.start().block, superblock.start().tid);
    // No more than the log has, whatever it says.
    let mut left = superblock.blocks();
    while at != 0 && left > 0 {
        let block = raw.reader().block(blocks[at as usize]).await?;
        let Some(header) = Header::parse(&block).filter(|header| header.tid == tid) else { break };
        let passed = add_block(&mut dump, &codec, at, header, &block);
        left = left.saturating_sub(passed);
        for _ in 0..passed {
            at = if at + 1 < superblock.blocks() { at + 1 } else { superblock.first() };
        }
        if header.kind == Kind::Commit {
            tid = Tid(tid.0.wrapping_add(1));
        }
    }
    dump.shown("next_transaction", format_args!("{} (the log ends before it)", tid.0), tid.0);
    dump.list("log");
    Ok(dump)
}

fn add_superblock(dump: &mut Dump, superblock: &LogSuperblock) {
    let features = superblock.features();
    dump.field("blocks", superblock.blocks());
    dump.field("first", superblock.first());
    dump.field("sequence", superblock.start().tid.0);
    dump.field("start", superblock.start().block);
    dump.field("errno", superblock.errno());
    dump.field("checksums", format!("{:?}", features.checksums()));
    dump.field("64bit", features.is_wide());
    dump.field("uuid", uuid(&superblock.uuid()));
}

/// Shows a block of the log. How many blocks it and the copies behind it take.
fn add_block(dump: &mut Dump, codec: &Codec, at: u32, header: Header, block: &BlockBytes) -> u32 {
    let tid = header.tid.0;
    let element = |kind: &str, holds: bool, name: &str, value: Value| json!({"at": at, "transaction": tid, "kind": kind, "checksum_holds": holds, name: value});
    match header.kind {
        Kind::Descriptor => {
            let tags = Tags::parse(codec, block);
            let holds = tags.checksum_holds();
            let tags: Vec<_> = tags.collect();
            let count = tags.len();
            let line = format_args!(
                "{at:>8} transaction {tid}: descriptor of {count} copies{}",
                sound(holds)
            );
            let homes: Vec<Value> = tags
                .iter()
                .map(|tag| json!({"block": tag.block, "escaped": tag.escaped}))
                .collect();
            dump.row("log", line, element("descriptor", holds, "copies", homes.into()));
            add_list(
                dump,
                tags.iter().map(|tag| {
                    format!("{}{}", tag.block, if tag.escaped { " escaped" } else { "" })
                }),
            );
            1 + count as u32
        }
        Kind::Revoke => {
            let revokes = Revokes::parse(codec, block);
            let holds = revokes.as_ref().is_some_and(Revokes::checksum_holds);
            let revoked: Vec<u64> = revokes.into_iter().flatten().collect();
            let count = revoked.len();
            let line = format_args!("{at:>8} transaction {tid}: {count} revokes{}", sound(holds));
            dump.row("log", line, element("revoke", holds, "blocks", revoked.clone().into()));
            add_list(dump, revoked.iter().map(u64::to_string));
            1
        }
        Kind::Commit => {
            let Commit { seconds, nanoseconds } = Commit::parse(block);
            let holds = Commit::checksum_holds(codec, block);
            let time = iso8601(seconds.cast_signed(), nanoseconds);
            let line = format_args!("{at:>8} transaction {tid}: commit at {time}{}", sound(holds));
            dump.row("log", line, element("commit", holds, "time", time.clone().into()));
            1
        }
        Kind::SuperblockV1 | Kind::SuperblockV2 => 1,
    }
}

const fn sound(holds: bool) -> &'static str {
    if holds { "" } else { ", wrong checksum" }
}

fn add_list(dump: &mut Dump, items: impl Iterator<Item = String>) {
    for row in items.collect::<Vec<_>>().chunks(BLOCKS_PER_LINE) {
        dump.note(format_args!("           {}", row.join(", ")));
    }
}
