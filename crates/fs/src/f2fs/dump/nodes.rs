//! Nodes and inodes.

use super::{NAME_WIDTH, flags};
use crate::dump::{Dump, inclusive, iso8601};
use crate::f2fs::format::*;
use crate::f2fs::raw::{F2fsImage, RawError, RawInode, RawNode};
use serde_json::json;

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

fn add_footer(dump: &mut Dump, node: &RawNode) {
    let footer = &node.footer;
    let marks =
        [(node_flag::COLD, "cold"), (node_flag::FSYNC, "fsync"), (node_flag::DENTRY, "dentry")];
    dump.field("block", node.entry.block_addr.0);
    dump.field("NAT version", node.entry.version);
    dump.field("nid", footer.nid);
    dump.field("ino", footer.ino);
    flags(dump, "flag", footer.flag & 7, &marks);
    let role = footer.role().map_or_else(|| "none".into(), |role| format!("{role:?}"));
    dump.shown("offset", format_args!("{} ({role})", footer.offset()), footer.offset());
    dump.shown("cp_ver", format_args!("{:#x}", footer.cp_ver), footer.cp_ver);
    dump.field("next_blkaddr", footer.next_blkaddr);
}

/// Runs of slots that lead somewhere: consecutive addresses are one line.
fn add_addrs(dump: &mut Dump, first: u64, addrs: impl Iterator<Item = BlockAddr>) {
    let mut run: Option<(u64, u32, u32)> = None;
    dump.list("mapping");
    let mut put = |run: Option<(u64, u32, u32)>| {
        let Some((page, at, blocks)) = run else { return };
        let pages = inclusive(page..page + u64::from(blocks));
        let element = json!({"page": page, "blocks": blocks, "block": at});
        dump.row("mapping", format_args!("  ({pages}):{}", place(at, blocks)), element);
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

fn place(addr: u32, blocks: u32) -> String {
    match BlockAddr(addr) {
        BlockAddr::NEW => "no block yet".into(),
        BlockAddr::COMPRESS => "the start of a compressed cluster".into(),
        _ => inclusive(addr.into()..u64::from(addr) + u64::from(blocks)),
    }
}

pub(super) async fn node(image: &F2fsImage, nid: Nid) -> Result<Dump, RawError> {
    let node = image.node(nid).await?;
    let mut dump = Dump::new(NAME_WIDTH);
    add_footer(&mut dump, &node);
    match node.footer.role() {
        Some(NodeRole::Inode) => {
            let layout = InodeLayout::of(&node.bytes, image.inode_features());
            add_addrs(&mut dump, 0, layout.addrs().iter(&node.bytes));
        }
        Some(NodeRole::Direct) => add_addrs(&mut dump, 0, AddrSlots::DIRECT.iter(&node.bytes)),
        Some(NodeRole::Indirect | NodeRole::DoubleIndirect) => {
            for slot in 0..NIDS_PER_BLOCK {
                let below = indirect_nid(&node.bytes, slot);
                if below.0 != 0 {
                    let element = json!({"slot": slot, "nid": below.0});
                    dump.row("nodes", format_args!("  {slot} node {}", below.0), element);
                }
            }
        }
        Some(NodeRole::Xattr) | None => {}
    }
    Ok(dump)
}

pub(super) async fn inode(image: &F2fsImage, ino: Nid) -> Result<Dump, RawError> {
    let node = image.node(ino).await?;
    let layout = InodeLayout::of(&node.bytes, image.inode_features());
    let raw = RawInode { inode: Inode::parse(&node.bytes), layout, node };
    let mut dump = Dump::new(NAME_WIDTH);
    add_fields(&mut dump, &raw, image);
    let sound = check_inode(&raw.node.bytes, image.inode_features(), |a| image.layout.is_main(a));
    if let Err(error) = sound {
        dump.problem(error);
    }
    let mut nodes = image.file_nodes(&raw);
    while let Some(dnode) = nodes.next().await {
        match dnode {
            Ok(dnode) => {
                let nid = dnode.node.nid.0;
                dump.item("nodes", "node", nid, nid);
                add_addrs(&mut dump, dnode.first_page, dnode.slots.iter(&dnode.node.bytes));
            }
            Err(RawError::Device(error)) => return Err(error.into()),
            Err(error) => dump.problem(error),
        }
    }
    add_names(&mut dump, image, &raw).await?;
    match image.xattrs(&raw).await {
        Ok(area) => {
            for entry in area.iter() {
                match entry {
                    Ok(xattr) => {
                        let name = whole_xattr_name(xattr.index, xattr.name);
                        let name = name.escape_ascii().to_string();
                        let value = xattr.value.escape_ascii().to_string();
                        let text = format!("{name} = \"{value}\"");
                        dump.item("xattrs", "xattr", text, json!({"name": name, "value": value}));
                    }
                    Err(error) => dump.problem(error),
                }
            }
        }
        Err(RawError::Device(error)) => return Err(error.into()),
        Err(error) => dump.problem(error),
    }
    Ok(dump)
}

async fn add_names(dump: &mut Dump, image: &F2fsImage, raw: &RawInode) -> Result<(), RawError> {
    if !raw.inode.is_dir() {
        return Ok(());
    }
    match image.names(raw).await {
        Ok(names) => {
            for name in names {
                let text = name.name.escape_ascii().to_string();
                let element = json!({
                    "page": name.page, "slot": name.slot, "hash": name.hash, "ino": name.ino.0,
                    "file_type": name.file_type, "name": text,
                });
                let line = format_args!(
                    "  page {} slot {} hash {:#010x} inode {} type {} \"{text}\"",
                    name.page, name.slot, name.hash, name.ino.0, name.file_type
                );
                dump.row("names", line, element);
            }
        }
        Err(RawError::Device(error)) => return Err(error.into()),
        Err(error) => dump.problem(error),
    }
    Ok(())
}

fn add_fields(dump: &mut Dump, raw: &RawInode, image: &F2fsImage) {
    let inode = &raw.inode;
    add_footer(dump, &raw.node);
    dump.shown("mode", format_args!("{:#o}", inode.mode), inode.mode);
    flags(dump, "advise", inode.advise.into(), &ADVISE);
    flags(dump, "inline", inode.inline.into(), &INLINE);
    dump.field("uid", inode.uid);
    dump.field("gid", inode.gid);
    dump.field("links", inode.links);
    dump.field("size", inode.size);
    dump.field("blocks", inode.blocks);
    dump.field("atime", time(inode.atime, inode.atime_nsec));
    dump.field("ctime", time(inode.ctime, inode.ctime_nsec));
    dump.field("mtime", time(inode.mtime, inode.mtime_nsec));
    dump.field("generation", inode.generation);
    dump.field("current_depth", inode.current_depth);
    dump.field("xattr_nid", inode.xattr_nid);
    dump.shown("flags", format_args!("{:#x}", inode.flags), inode.flags);
    dump.field("pino", inode.pino);
    let name = inode.name().escape_ascii().to_string();
    dump.shown("name", format_args!("\"{name}\""), name.clone());
    dump.field("dir_level", inode.dir_level);
    let (page, at, blocks) = (inode.ext_fofs, inode.ext_blk, inode.ext_len);
    let text = match blocks {
        0 => "none".to_owned(),
        _ => format!(
            "({}):{}",
            inclusive(page.into()..u64::from(page) + u64::from(blocks)),
            inclusive(at.into()..u64::from(at) + u64::from(blocks))
        ),
    };
    dump.shown("extent", text, json!({"page": page, "blocks": blocks, "block": at}));
    if inode.has_inline(inline::EXTRA_ATTR) {
        let extra = ExtraAttrs::parse(&raw.node.bytes, raw.layout);
        dump.field("extra_isize", extra.extra_isize);
        dump.field("inline_xattr_size", extra.inline_xattr_size);
        dump.field("projid", extra.projid);
        dump.field("crtime", time(extra.crtime, extra.crtime_nsec));
    }
    if let Some((stored, computed)) = inode_checksums(
        &raw.node.bytes,
        image.inode_features(),
        image.checksum_seed().unwrap_or_default(),
    ) {
        let sound = if stored == computed { "" } else { ", wrong" };
        dump.shown("inode_checksum", format_args!("{stored:#010x}{sound}"), stored);
    }
}

fn time(seconds: u64, nanos: u32) -> String {
    iso8601(seconds.cast_signed(), nanos)
}
