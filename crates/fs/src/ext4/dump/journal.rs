//! The journal: its superblock, and the transactions that its log holds, as recovery would find them.

use super::{Lines, uuid};
use crate::ext4::format::{FormatError, JOURNAL_INODE, Place};
use crate::ext4::journal::Tid;
use crate::ext4::journal::disk::{
    Codec, Commit, Header, Kind, Revokes, Superblock as LogSuperblock, Tags,
};
use crate::ext4::raw::{Ext4Image, RawError};
use crate::image::BlockBytes;

/// Home blocks that a line of text names.
const BLOCKS_A_LINE: usize = 8;

/// The journal.
pub(super) async fn log(raw: &Ext4Image) -> Result<String, RawError> {
    let place = Place::Inode(JOURNAL_INODE);
    let refuse = |what: String| FormatError::Incompatible { place, what };
    let (inode, _) = raw.inode(JOURNAL_INODE).await?;
    if inode.links_count == 0 {
        return Err(refuse("there is no journal".into()).into());
    }
    let extents = raw.extents(JOURNAL_INODE, &inode).await?;
    let blocks: Vec<u64> = extents.iter().flat_map(|e| e.start..e.end()).collect();
    let first = *blocks.first().ok_or_else(|| refuse("the journal has no blocks".into()))?;
    let superblock = LogSuperblock::parse(raw.reader().block(first).await?, blocks.len() as u64);
    let superblock = superblock.map_err(|error| refuse(error.to_string()))?;
    let mut lines = Lines::default();
    add_superblock(&mut lines, &superblock);
    let codec = superblock.codec();
    let (mut at, mut tid) = (superblock.start().block, superblock.start().tid);
    // No more than the log has, whatever it says.
    let mut left = superblock.blocks();
    while at != 0 && left > 0 {
        let block = raw.reader().block(blocks[at as usize]).await?;
        let Some(header) = Header::parse(&block).filter(|header| header.tid == tid) else { break };
        let passed = add_block(&mut lines, &codec, at, header, &block);
        left = left.saturating_sub(passed);
        for _ in 0..passed {
            at = if at + 1 < superblock.blocks() { at + 1 } else { superblock.first() };
        }
        if header.kind == Kind::Commit {
            tid = Tid(tid.0.wrapping_add(1));
        }
    }
    lines.add(format_args!("the log ends before transaction {}", tid.0));
    Ok(lines.0)
}

fn add_superblock(lines: &mut Lines, superblock: &LogSuperblock) {
    let features = superblock.features();
    lines.field("blocks", superblock.blocks());
    lines.field("first", superblock.first());
    lines.field("sequence", superblock.start().tid.0);
    lines.field("start", superblock.start().block);
    lines.field("errno", superblock.errno());
    lines.field("checksums", format_args!("{:?}", features.checksums()));
    lines.field("64bit", features.is_wide());
    lines.field("uuid", uuid(&superblock.uuid()));
}

/// Shows a block of the log. How many blocks it and the copies behind it take.
fn add_block(lines: &mut Lines, codec: &Codec, at: u32, header: Header, block: &BlockBytes) -> u32 {
    let tid = header.tid.0;
    match header.kind {
        Kind::Descriptor => {
            let tags = Tags::parse(codec, block);
            let sound = sound(tags.checksum_holds());
            let homes: Vec<String> = tags
                .map(|tag| format!("{}{}", tag.block, if tag.escaped { " escaped" } else { "" }))
                .collect();
            let count = homes.len();
            lines.add(format_args!(
                "{at:>8} transaction {tid}: descriptor of {count} copies{sound}"
            ));
            add_list(lines, &homes);
            1 + count as u32
        }
        Kind::Revoke => {
            let revokes = Revokes::parse(codec, block);
            let holds = revokes.as_ref().is_some_and(Revokes::checksum_holds);
            let revoked: Vec<String> =
                revokes.into_iter().flatten().map(|block| block.to_string()).collect();
            let count = revoked.len();
            lines.add(format_args!("{at:>8} transaction {tid}: {count} revokes{}", sound(holds)));
            add_list(lines, &revoked);
            1
        }
        Kind::Commit => {
            let Commit { seconds, nanoseconds } = Commit::parse(block);
            let sound = sound(Commit::checksum_holds(codec, block));
            lines.add(format_args!(
                "{at:>8} transaction {tid}: commit at {seconds}.{nanoseconds:09}{sound}"
            ));
            1
        }
        Kind::SuperblockV1 | Kind::SuperblockV2 => 1,
    }
}

const fn sound(holds: bool) -> &'static str {
    if holds { "" } else { ", wrong checksum" }
}

fn add_list(lines: &mut Lines, items: &[String]) {
    for row in items.chunks(BLOCKS_A_LINE) {
        lines.add(format_args!("           {}", row.join(", ")));
    }
}
