//! Nodes and inodes.

use super::{Lines, flag_names};
use crate::f2fs::format::*;
use crate::f2fs::raw::{F2fsImage, RawError, RawInode, RawNode};

/// Names of inline flags.
const INLINE: [(u32, &str); 8] = [
    (inline::XATTR as u32, "xattr"),
    (inline::DATA as u32, "data"),
    (inline::DENTRY as u32, "dentry"),
    (inline::DATA_EXIST as u32, "data_exist"),
    (inline::DOTS as u32, "dots"),
    (inline::EXTRA_ATTR as u32, "extra_attr"),
    (inline::PIN_FILE as u32, "pin_file"),
    (inline::COMPRESS_RELEASED as u32, "compress_released"),
];
/// Names of advice.
const ADVISE: [(u32, &str); 7] = [
    (advise::COLD as u32, "cold"),
    (advise::LOST_PINO as u32, "lost_pino"),
    (advise::ENCRYPT as u32, "encrypt"),
    (advise::ENC_NAME as u32, "enc_name"),
    (advise::KEEP_SIZE as u32, "keep_size"),
    (advise::HOT as u32, "hot"),
    (advise::VERITY as u32, "verity"),
];

fn add_footer(lines: &mut Lines, node: &RawNode) {
    let footer = &node.footer;
    let marks =
        [(node_flag::COLD, "cold"), (node_flag::FSYNC, "fsync"), (node_flag::DENTRY, "dentry")];
    lines.field("block", node.entry.block_addr.0);
    lines.field("NAT version", node.entry.version);
    lines.field("nid", footer.nid);
    lines.field("ino", footer.ino);
    lines.field("flag", flag_names(footer.flag & 7, &marks));
    let role = footer.role().map_or_else(|| "none".into(), |role| format!("{role:?}"));
    lines.field("offset", format_args!("{} ({role})", footer.offset()));
    lines.field("cp_ver", format_args!("{:#x}", footer.cp_ver));
    lines.field("next_blkaddr", footer.next_blkaddr);
}

/// Runs of slots that lead somewhere: consecutive addresses are one line.
fn add_addrs(lines: &mut Lines, first: u64, addrs: impl Iterator<Item = BlockAddr>) {
    let mut run: Option<(u64, u32, u32)> = None;
    let mut put = |run: Option<(u64, u32, u32)>| match run {
        Some((page, at, 1)) => lines.add(format_args!("  {page} at {}", shown(at))),
        Some((page, at, blocks)) => {
            let end = page + u64::from(blocks);
            lines.add(format_args!("  {page}..{end} at {}", shown(at)));
        }
        None => {}
    };
    for (page, addr) in (first..).zip(addrs) {
        match &mut run {
            Some((_, at, blocks)) if addr.is_block() && at.checked_add(*blocks) == Some(addr.0) => {
                *blocks += 1;
            }
            _ => {
                put(run.take());
                run = (addr != BlockAddr::NULL).then_some((page, addr.0, 1));
            }
        }
    }
    put(run);
}

fn shown(addr: u32) -> String {
    match BlockAddr(addr) {
        BlockAddr::NEW => "no block yet".into(),
        BlockAddr::COMPRESS => "the start of a compressed cluster".into(),
        _ => addr.to_string(),
    }
}

pub(super) async fn node(image: &F2fsImage, nid: Nid) -> Result<String, RawError> {
    let node = image.node(nid).await?;
    let mut lines = Lines::default();
    add_footer(&mut lines, &node);
    match node.footer.role() {
        Some(NodeRole::Inode) => {
            let layout = InodeLayout::of(&node.bytes, image.inode_features());
            add_addrs(&mut lines, 0, layout.addrs().iter(&node.bytes));
        }
        Some(NodeRole::Direct) => add_addrs(&mut lines, 0, AddrSlots::DIRECT.iter(&node.bytes)),
        Some(NodeRole::Indirect | NodeRole::DoubleIndirect) => {
            for slot in 0..NIDS_PER_BLOCK {
                let below = indirect_nid(&node.bytes, slot);
                if below.0 != 0 {
                    lines.add(format_args!("  {slot} node {}", below.0));
                }
            }
        }
        Some(NodeRole::Xattr) | None => {}
    }
    Ok(lines.0)
}

pub(super) async fn inode(image: &F2fsImage, ino: Nid) -> Result<String, RawError> {
    let node = image.node(ino).await?;
    let layout = InodeLayout::of(&node.bytes, image.inode_features());
    let raw = RawInode { inode: Inode::parse(&node.bytes), layout, node };
    let mut lines = Lines::default();
    add_fields(&mut lines, &raw, image);
    let sound = check_inode(&raw.node.bytes, image.inode_features(), |a| image.layout.is_main(a));
    if let Err(error) = sound {
        lines.field("unsound", error);
    }
    let mut nodes = image.file_nodes(&raw);
    while let Some(dnode) = nodes.next().await {
        match dnode {
            Ok(dnode) => {
                lines.field("node", dnode.node.nid.0);
                add_addrs(&mut lines, dnode.first_page, dnode.slots.iter(&dnode.node.bytes));
            }
            Err(RawError::Device(error)) => return Err(error.into()),
            Err(error) => lines.field("unsound", error),
        }
    }
    add_names(&mut lines, image, &raw).await?;
    match image.xattrs(&raw).await {
        Ok(area) => {
            for entry in area.iter() {
                match entry {
                    Ok(xattr) => {
                        let name = whole_xattr_name(xattr.index, xattr.name);
                        let value = xattr.value.escape_ascii();
                        lines.field("xattr", format_args!("{} = \"{value}\"", name.escape_ascii()));
                    }
                    Err(error) => lines.field("unsound", error),
                }
            }
        }
        Err(RawError::Device(error)) => return Err(error.into()),
        Err(error) => lines.field("unsound", error),
    }
    Ok(lines.0)
}

async fn add_names(lines: &mut Lines, image: &F2fsImage, raw: &RawInode) -> Result<(), RawError> {
    if !raw.inode.is_dir() {
        return Ok(());
    }
    match image.names(raw).await {
        Ok(names) => {
            for name in names {
                lines.add(format_args!(
                    "  page {} slot {} hash {:#010x} inode {} type {} \"{}\"",
                    name.page,
                    name.slot,
                    name.hash,
                    name.ino.0,
                    name.file_type,
                    name.name.escape_ascii()
                ));
            }
        }
        Err(RawError::Device(error)) => return Err(error.into()),
        Err(error) => lines.field("unsound", error),
    }
    Ok(())
}

fn add_fields(lines: &mut Lines, raw: &RawInode, image: &F2fsImage) {
    let inode = &raw.inode;
    add_footer(lines, &raw.node);
    lines.field("mode", format_args!("{:#o}", inode.mode));
    lines.field("advise", flag_names(inode.advise.into(), &ADVISE));
    lines.field("inline", flag_names(inode.inline.into(), &INLINE));
    lines.field("uid", inode.uid);
    lines.field("gid", inode.gid);
    lines.field("links", inode.links);
    lines.field("size", inode.size);
    lines.field("blocks", inode.blocks);
    lines.field("atime", format_args!("{}.{:09}", inode.atime as i64, inode.atime_nsec));
    lines.field("ctime", format_args!("{}.{:09}", inode.ctime as i64, inode.ctime_nsec));
    lines.field("mtime", format_args!("{}.{:09}", inode.mtime as i64, inode.mtime_nsec));
    lines.field("generation", inode.generation);
    lines.field("current_depth", inode.current_depth);
    lines.field("xattr_nid", inode.xattr_nid);
    lines.field("flags", format_args!("{:#x}", inode.flags));
    lines.field("pino", inode.pino);
    lines.field("name", format_args!("\"{}\"", inode.name().escape_ascii()));
    lines.field("dir_level", inode.dir_level);
    let (page, at, blocks) = (inode.ext_fofs, inode.ext_blk, inode.ext_len);
    lines.field("extent", format_args!("{blocks} blocks from page {page} on at {at}"));
    if inode.has_inline(inline::EXTRA_ATTR) {
        let extra = ExtraAttrs::parse(&raw.node.bytes, raw.layout);
        lines.field("extra_isize", extra.extra_isize);
        lines.field("inline_xattr_size", extra.inline_xattr_size);
        lines.field("projid", extra.projid);
        lines.field("crtime", format_args!("{}.{:09}", extra.crtime as i64, extra.crtime_nsec));
    }
    if let Some((stored, computed)) = inode_checksums(
        &raw.node.bytes,
        image.inode_features(),
        image.checksum_seed().unwrap_or_default(),
    ) {
        let sound = if stored == computed { "" } else { ", wrong" };
        lines.field("inode_checksum", format_args!("{stored:#010x}{sound}"));
    }
}
