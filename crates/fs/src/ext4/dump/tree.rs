//! What inodes lead to: extents, and the names of directories.

use super::{NAME_WIDTH, hash_name, quoted};
use crate::dump::{Dump, inclusive};
use crate::ext4::format::*;
use crate::ext4::raw::{Ext4Image, RawError};
use nandscape_rt::words::counted;
use serde_json::{Value, json};

/// The nodes of a file's extent tree.
pub(super) async fn extents(raw: &Ext4Image, number: u32) -> Result<Dump, RawError> {
    let (inode, _) = raw.inode(number).await?;
    let mut dump = Dump::new(NAME_WIDTH);
    for (place, node) in raw.extent_nodes(number, &inode).await? {
        dump.note(format_args!("{place}: depth {}, room for {}", node.depth(), node.max));
        let entries: Vec<Value> = match &node.entries {
            ExtentEntries::Index { entries, .. } => {
                let below = entries.iter().map(|entry| {
                    dump.note(format_args!("  ({}-):below block {}", entry.logical, entry.node));
                    json!({"logical": entry.logical, "node": entry.node})
                });
                below.collect()
            }
            ExtentEntries::Leaf(extents) => {
                extents.iter().map(|extent| add_extent(&mut dump, extent)).collect()
            }
        };
        let (place, depth) = (place.to_string(), node.depth());
        let element = json!({"place": place, "depth": depth, "max": node.max, "entries": entries});
        dump.element("nodes", element);
    }
    Ok(dump)
}

fn add_extent(dump: &mut Dump, extent: &Extent) -> Value {
    let file = inclusive(extent.logical.into()..extent.logical_end());
    let mark = if extent.unwritten { "[u]" } else { "" };
    dump.note(format_args!("  ({file}{mark}):{}", inclusive(extent.start..extent.end())));
    let blocks = extent.end() - extent.start;
    json!({
        "logical": extent.logical, "blocks": blocks, "start": extent.start,
        "unwritten": extent.unwritten,
    })
}

/// A directory's index, if it has one, and the names in each of its blocks.
pub(super) async fn directory(raw: &Ext4Image, number: u32) -> Result<Dump, RawError> {
    let (inode, _) = raw.inode(number).await?;
    if !inode.is_dir() {
        let what = "is not a directory".to_owned();
        return Err(FormatError::Incompatible { place: Place::Inode(number), what }.into());
    }
    let extents = raw.extents(number, &inode).await?;
    let blocks: Vec<u64> = extents.iter().flat_map(|e| e.start..e.end()).collect();
    let has_tail = raw.sb.has(Feature::METADATA_CSUM);
    let mut dump = Dump::new(NAME_WIDTH);
    let mut nodes = 0;
    for (index, &block) in blocks.iter().enumerate() {
        let place = Place::InodeBlock { inode: number, block };
        let bytes = raw.reader().block(block).await?;
        let is_root = inode.has(flag::INDEX) && index == 0;
        let node = match is_root {
            true => Some(IndexNode::parse_root(&bytes[..], has_tail, place)?),
            false if inode.has(flag::INDEX) => {
                IndexNode::parse_node(&bytes[..], has_tail, place).ok()
            }
            false => None,
        };
        if let Some(node) = node {
            nodes += 1;
            let element = add_node(&mut dump, index, block, &node);
            dump.element("blocks", element);
            continue;
        }
        dump.note(format_args!("block {index} at {block}: names"));
        let mut entries = Vec::new();
        for entry in dir_entries(&bytes[..], has_tail, place) {
            entries.push(add_entry(&mut dump, &entry?));
        }
        dump.element("blocks", json!({"index": index, "block": block, "entries": entries}));
    }
    let count = counted(blocks.len() as u64, ["block", "blocks"]);
    dump.note(format_args!("{count}, of which {nodes} index"));
    Ok(dump)
}

fn add_node(dump: &mut Dump, index: usize, block: u64, node: &IndexNode) -> Value {
    let count = node.entries.len();
    let mut element = json!({"index": index, "block": block, "limit": node.limit});
    match node.root {
        Some(root) => {
            let hash = hash_name(HashVersion::of(root.hash_version, false));
            let levels = root.levels;
            dump.note(format_args!(
                "block {index} at {block}: root of the index, {hash}, {levels} levels below, {count} of {} pairs",
                node.limit
            ));
            element["hash_version"] = hash.into();
            element["levels"] = levels.into();
        }
        None => dump
            .note(format_args!("block {index} at {block}: index, {count} of {} pairs", node.limit)),
    }
    let pairs = node.entries.iter().map(|entry| {
        dump.note(format_args!("  {:#010x}.. in block {}", entry.hash, entry.block));
        json!({"hash": entry.hash, "block": entry.block})
    });
    element["pairs"] = pairs.collect();
    element
}

fn add_entry(dump: &mut Dump, entry: &DirEntry<'_>) -> Value {
    let DirEntry { at, record_bytes, inode, file_type, name } = entry;
    if *inode == 0 {
        dump.note(format_args!("  {at:>5} {record_bytes:>5} free"));
        return json!({"at": at, "rec_len": record_bytes, "inode": 0});
    }
    let name = name.escape_ascii().to_string();
    let shown = quoted(&name);
    dump.note(format_args!("  {at:>5} {record_bytes:>5} inode {inode} type {file_type} {shown}"));
    json!({"at": at, "rec_len": record_bytes, "inode": inode, "file_type": file_type, "name": name})
}
