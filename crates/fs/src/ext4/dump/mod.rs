//! Structures to read, as text and JSON: what is on disk, interpreted and not judged. Field names are those of
//! docs/formats/ext4.md; numbers in text are decimal but for bits and checksums.

mod journal;
mod tree;

use super::format::*;
use super::raw::{Ext4Image, RawError};
use crate::dump::{Dump, iso8601};
use nandscape_block::AsyncDevice;
use nandscape_rt::BoxFuture;
use serde_json::json;
use std::str::FromStr;

/// What to show.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DumpTarget {
    /// The superblock.
    Superblock,
    /// Every group.
    Groups,
    /// An inode, with its attributes.
    Inode(u32),
    /// The names of a directory, or its index and the names below it.
    Directory(u32),
    /// The nodes of a file's extent tree.
    Extents(u32),
    /// What the journal's log holds.
    Journal,
}

impl FromStr for DumpTarget {
    type Err = String;

    /// Reads `super`, `groups`, `journal`, `inode N`, `directory N` or `extents N`.
    fn from_str(text: &str) -> Result<Self, String> {
        let unknown = || {
            format!(
                "ext4 has no {text:?}: expected super, groups, journal, inode N, directory N or \
                 extents N"
            )
        };
        let number = |text: &str| text.parse().map_err(|_| unknown());
        match text.split_once(' ') {
            None if text == "super" => Ok(Self::Superblock),
            None if text == "groups" => Ok(Self::Groups),
            None if text == "journal" => Ok(Self::Journal),
            Some(("inode", inode)) => Ok(Self::Inode(number(inode)?)),
            Some(("directory", inode)) => Ok(Self::Directory(number(inode)?)),
            Some(("extents", inode)) => Ok(Self::Extents(number(inode)?)),
            _ => Err(unknown()),
        }
    }
}

/// Shows a part of a file system that does not change.
///
/// # Errors
/// What cannot be read or is no such thing.
pub fn dump(device: &AsyncDevice, what: DumpTarget) -> BoxFuture<'_, Result<Dump, RawError>> {
    Box::pin(shown_of(device, what))
}

async fn shown_of(device: &AsyncDevice, what: DumpTarget) -> Result<Dump, RawError> {
    let raw = Ext4Image::open(device).await?;
    match what {
        DumpTarget::Superblock => Ok(superblock(&raw.sb)),
        DumpTarget::Groups => groups(&raw).await,
        DumpTarget::Inode(number) => inode(&raw, number).await,
        DumpTarget::Directory(number) => tree::directory(&raw, number).await,
        DumpTarget::Extents(number) => tree::extents(&raw, number).await,
        DumpTarget::Journal => journal::log(&raw).await,
    }
}

/// Sixteen bytes in the usual groups.
fn uuid(bytes: &[u8; 16]) -> String {
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

/// Columns of a field's name.
const NAME_WIDTH: usize = 22;

/// Text that a zero may end.
fn label(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    bytes[..end].escape_ascii().to_string()
}

/// Bytes in text, between quotation marks.
fn quoted(bytes: &str) -> String {
    format!("\"{bytes}\"")
}

fn superblock(sb: &Superblock) -> Dump {
    let mut dump = Dump::new(NAME_WIDTH);
    let seed: Vec<u8> = sb.hash_seed.iter().flat_map(|word| word.to_le_bytes()).collect();
    let name = label(&sb.volume_name);
    dump.shown("volume_name", quoted(&name), name);
    dump.field("uuid", uuid(&sb.uuid));
    let features = sb.features().names();
    dump.shown("features", features.join(" "), features);
    let refused = sb.features().check(true);
    let text = refused.as_ref().err().map_or_else(|| "yes".to_owned(), ToString::to_string);
    dump.shown("supported", text, refused.is_ok());
    dump.field("state", state(sb.state));
    dump.field("blocks_count", sb.blocks_count);
    dump.field("free_blocks_count", sb.free_blocks_count);
    dump.field("r_blocks_count", sb.r_blocks_count);
    dump.field("overhead_clusters", sb.overhead_clusters);
    dump.field("inodes_count", sb.inodes_count);
    dump.field("free_inodes_count", sb.free_inodes_count);
    dump.field("groups", sb.groups());
    dump.field("blocks_per_group", sb.blocks_per_group);
    dump.field("inodes_per_group", sb.inodes_per_group);
    dump.field("flex_groups", sb.flex_groups());
    dump.field("desc_size", sb.desc_bytes());
    dump.field("reserved_gdt_blocks", sb.reserved_gdt_blocks);
    dump.field("inode_size", sb.inode_size);
    dump.field("want_extra_isize", sb.want_extra_isize);
    dump.field("first_ino", sb.first_ino);
    dump.field("journal_inum", sb.journal_inum);
    dump.field("last_orphan", sb.last_orphan);
    dump.field("orphan_file_inum", sb.orphan_file_inum);
    dump.field("def_hash_version", hash_name(sb.hash_version()));
    dump.field("hash_seed", uuid(&std::array::from_fn(|i| seed[i])));
    dump.field("mkfs_time", seconds(sb.mkfs_time, sb.mkfs_time_hi));
    dump.field("mtime", seconds(sb.mtime, sb.mtime_hi));
    dump.field("wtime", seconds(sb.wtime, sb.wtime_hi));
    dump.field("lastcheck", seconds(sb.lastcheck, sb.lastcheck_hi));
    dump.field("mnt_count", sb.mnt_count);
    let path = label(&sb.last_mounted);
    dump.shown("last_mounted", quoted(&path), path);
    dump.field("kbytes_written", sb.kbytes_written);
    dump.field("error_count", sb.error_count);
    dump.shown("checksum", format_args!("{:#010x}", sb.checksum), sb.checksum);
    dump
}

/// A time of the superblock.
fn seconds(low: u32, high: u8) -> String {
    let seconds = i64::from(high) << 32 | i64::from(low);
    iso8601(seconds, 0)
}

fn state(state: u16) -> String {
    let names = [(STATE_CLEAN, "clean"), (STATE_ERRORS, "errors"), (STATE_ORPHANS, "orphans")];
    let set = names.iter().filter(|(bit, _)| state & bit != 0).map(|(_, name)| *name);
    let names: Vec<&str> = set.collect();
    if names.is_empty() { "in use".into() } else { names.join(" ") }
}

fn hash_name(version: Option<HashVersion>) -> &'static str {
    match version {
        Some(HashVersion::Legacy { .. }) => "legacy",
        Some(HashVersion::HalfMd4 { .. }) => "half_md4",
        Some(HashVersion::Tea { .. }) => "tea",
        None => "unknown",
    }
}

async fn groups(raw: &Ext4Image) -> Result<Dump, RawError> {
    let mut dump = Dump::new(NAME_WIDTH);
    let sb = &raw.sb;
    dump.note(format_args!(
        "{:>7} {:>12} {:>12} {:>12} {:>12} {:>8} {:>8} {:>8} {:>8}  flags",
        "group",
        "first",
        "block_bitmap",
        "inode_bitmap",
        "inode_table",
        "blocks",
        "inodes",
        "unused",
        "dirs"
    ));
    for group in 0..sb.groups() {
        let d = raw.descriptor(group).await?;
        let flags = [
            (GROUP_INODE_UNINIT, "inode_uninit"),
            (GROUP_BLOCK_UNINIT, "block_uninit"),
            (GROUP_INODE_ZEROED, "inode_zeroed"),
        ];
        let flags = flags.iter().filter(|(flag, _)| d.has(*flag)).map(|(_, name)| *name);
        let mut flags: Vec<&str> = flags.collect();
        if sb.has_superblock(group) {
            flags.push(if group == 0 { "superblock" } else { "backup" });
        }
        let first = sb.group_first_block(group);
        let line = format!(
            "{group:>7} {first:>12} {:>12} {:>12} {:>12} {:>8} {:>8} {:>8} {:>8}  {}",
            d.block_bitmap,
            d.inode_bitmap,
            d.inode_table,
            d.free_blocks_count,
            d.free_inodes_count,
            d.itable_unused,
            d.used_dirs_count,
            flags.join(" ")
        );
        let element = json!({
            "group": group, "first_block": first, "block_bitmap": d.block_bitmap,
            "inode_bitmap": d.inode_bitmap, "inode_table": d.inode_table,
            "free_blocks_count": d.free_blocks_count, "free_inodes_count": d.free_inodes_count,
            "itable_unused": d.itable_unused, "used_dirs_count": d.used_dirs_count, "flags": flags,
        });
        dump.row("groups", format_args!("{line}"), element);
    }
    dump.note(format_args!("blocks and inodes: free; unused: inodes never initialized"));
    Ok(dump)
}

/// What the type bits of a mode mean.
const fn type_name(mode: u16) -> &'static str {
    match mode & mode::TYPE {
        mode::REGULAR => "regular",
        mode::DIR => "directory",
        mode::SYMLINK => "symlink",
        mode::CHAR => "character device",
        mode::BLOCK => "block device",
        mode::FIFO => "fifo",
        mode::SOCKET => "socket",
        _ => "none",
    }
}

async fn inode(raw: &Ext4Image, number: u32) -> Result<Dump, RawError> {
    let (inode, bytes) = raw.inode(number).await?;
    let mut dump = Dump::new(NAME_WIDTH);
    dump.field("inode", number);
    dump.field("type", type_name(inode.mode));
    let permissions = inode.mode & !mode::TYPE;
    dump.shown("mode", format_args!("{permissions:04o}"), permissions);
    dump.field("uid", inode.uid);
    dump.field("gid", inode.gid);
    dump.field("size", inode.size);
    dump.field("links_count", inode.links_count);
    dump.shown("blocks", format_args!("{} of 4 KiB", inode.blocks_4k()), inode.blocks_4k());
    dump.shown("flags", format_args!("{:#x}{}", inode.flags, flag_names(&inode)), inode.flags);
    dump.field("generation", inode.generation);
    let times = [
        ("atime", inode.atime()),
        ("mtime", inode.mtime()),
        ("ctime", inode.ctime()),
        ("crtime", inode.crtime()),
    ];
    for (name, time) in times {
        dump.field(name, iso8601(time.seconds, time.nanos));
    }
    dump.field("dtime", inode.dtime);
    dump.field("extra_isize", inode.extra_isize);
    dump.shown("checksum", format_args!("{:#010x}", inode.checksum), inode.checksum);
    match inode.file_type() {
        mode::CHAR | mode::BLOCK => dump.field("device", format!("{:?}", inode.device())),
        _ => {
            if let Some(target) = inode.fast_symlink() {
                let target = label(target);
                dump.shown("target", quoted(&target), target);
            }
        }
    }
    let mut xattrs = parse_inode_xattrs(&bytes, inode.extra_isize, Place::Inode(number))?;
    if inode.file_acl != 0 {
        dump.field("file_acl", inode.file_acl);
        let place = Place::InodeBlock { inode: number, block: inode.file_acl };
        xattrs.extend(parse_xattr_block(&raw.reader().block(inode.file_acl).await?[..], place)?.1);
    }
    for xattr in xattrs {
        let (name, value) = (xattr.whole_name(), &xattr.value);
        let (name, value) = (name.escape_ascii().to_string(), value.escape_ascii().to_string());
        let text = format!("{name} = {}", quoted(&value));
        dump.item("xattrs", "xattr", text, json!({"name": name, "value": value}));
    }
    Ok(dump)
}

fn flag_names(inode: &Inode) -> String {
    let names = [
        (flag::INDEX, "index"),
        (flag::HUGE_FILE, "huge_file"),
        (flag::EXTENTS, "extents"),
        (flag::IMMUTABLE, "immutable"),
        (flag::APPEND, "append"),
        (flag::INLINE_DATA, "inline_data"),
        (flag::EA_INODE, "ea_inode"),
    ];
    let set = names.iter().filter(|(flag, _)| inode.has(*flag));
    set.map(|(_, name)| format!(" {name}")).collect()
}
