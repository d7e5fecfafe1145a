//! What inodes lead to: extents, and the names of directories.

use super::{Lines, hash_name, shown};
use crate::ext4::format::*;
use crate::ext4::raw::{Ext4Image, RawError};

/// The nodes of a file's extent tree.
pub(super) async fn extents(raw: &Ext4Image, number: u32) -> Result<String, RawError> {
    let (inode, _) = raw.inode(number).await?;
    let mut lines = Lines::default();
    for (place, node) in raw.extent_nodes(number, &inode).await? {
        lines.add(format_args!("{place}: depth {}, room for {}", node.depth(), node.max));
        match &node.entries {
            ExtentEntries::Index { entries, .. } => {
                for entry in entries {
                    lines.add(format_args!("  {:>10}.. below block {}", entry.logical, entry.node));
                }
            }
            ExtentEntries::Leaf(extents) => extents.iter().for_each(|e| add_extent(&mut lines, e)),
        }
    }
    Ok(lines.0)
}

fn add_extent(lines: &mut Lines, extent: &Extent) {
    let unwritten = if extent.unwritten { ", unwritten" } else { "" };
    lines.add(format_args!(
        "  {:>10}..{:<10} at {}..{}{unwritten}",
        extent.logical,
        extent.logical_end(),
        extent.start,
        extent.end()
    ));
}

/// A directory's index, if it has one, and the names in each of its blocks.
pub(super) async fn directory(raw: &Ext4Image, number: u32) -> Result<String, RawError> {
    let (inode, _) = raw.inode(number).await?;
    if !inode.is_dir() {
        let what = "is not a directory".to_owned();
        return Err(FormatError::Incompatible { place: Place::Inode(number), what }.into());
    }
    let extents = raw.extents(number, &inode).await?;
    let blocks: Vec<u64> = extents.iter().flat_map(|e| e.start..e.end()).collect();
    let has_tail = raw.sb.has(Feature::METADATA_CSUM);
    let mut lines = Lines::default();
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
            add_node(&mut lines, index, block, &node);
            continue;
        }
        lines.add(format_args!("block {index} at {block}: names"));
        for entry in dir_entries(&bytes[..], has_tail, place) {
            add_entry(&mut lines, &entry?);
        }
    }
    lines.add(format_args!("{} blocks, {nodes} of them index", blocks.len()));
    Ok(lines.0)
}

fn add_node(lines: &mut Lines, index: usize, block: u64, node: &IndexNode) {
    let count = node.entries.len();
    match node.root {
        Some(root) => {
            let hash = hash_name(HashVersion::of(root.hash_version, false));
            let levels = root.levels;
            lines.add(format_args!(
                "block {index} at {block}: root of the index, {hash}, {levels} levels below, {count} of {} pairs",
                node.limit
            ));
        }
        None => lines
            .add(format_args!("block {index} at {block}: index, {count} of {} pairs", node.limit)),
    }
    for entry in &node.entries {
        lines.add(format_args!("  {:#010x}.. in block {}", entry.hash, entry.block));
    }
}

fn add_entry(lines: &mut Lines, entry: &DirEntry<'_>) {
    let DirEntry { at, record_bytes, inode, file_type, name } = entry;
    if *inode == 0 {
        lines.add(format_args!("  {at:>5} {record_bytes:>5} free"));
    } else {
        let name = shown(name);
        lines
            .add(format_args!("  {at:>5} {record_bytes:>5} inode {inode} type {file_type} {name}"));
    }
}
