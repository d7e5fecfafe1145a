//! Structures as text to read: what is on disk, interpreted and not judged. Field names are those of
//! docs/formats/ext4.md, numbers decimal but for bits and checksums.

mod journal;
mod tree;

use super::format::*;
use super::raw::{Ext4Image, RawError};
use nandscape_block::AsyncDevice;
use nandscape_rt::BoxFuture;
use std::fmt::{self, Display, Write};
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
pub fn dump(device: &AsyncDevice, what: DumpTarget) -> BoxFuture<'_, Result<String, RawError>> {
    Box::pin(text_of(device, what))
}

async fn text_of(device: &AsyncDevice, what: DumpTarget) -> Result<String, RawError> {
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

/// Lines of text; writing to a string cannot fail.
#[derive(Default)]
struct Lines(String);

impl Lines {
    fn add(&mut self, line: fmt::Arguments<'_>) {
        let _ = self.0.write_fmt(line);
        self.0.push('\n');
    }

    fn field(&mut self, name: &str, value: impl Display) {
        self.add(format_args!("{name:<22} {value}"));
    }
}

/// Sixteen bytes in the usual groups.
fn uuid(bytes: &[u8; 16]) -> String {
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

/// Text that a zero may end.
fn label(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    format!("\"{}\"", bytes[..end].escape_ascii())
}

fn superblock(sb: &Superblock) -> String {
    let mut lines = Lines::default();
    let seed: Vec<u8> = sb.hash_seed.iter().flat_map(|word| word.to_le_bytes()).collect();
    lines.field("volume_name", label(&sb.volume_name));
    lines.field("uuid", uuid(&sb.uuid));
    lines.field("features", sb.features().names().join(" "));
    let refused = sb.features().check(true);
    lines.field("supported", refused.map_or_else(|error| error.to_string(), |()| "yes".into()));
    lines.field("state", state(sb.state));
    lines.field("blocks_count", sb.blocks_count);
    lines.field("free_blocks_count", sb.free_blocks_count);
    lines.field("r_blocks_count", sb.r_blocks_count);
    lines.field("overhead_clusters", sb.overhead_clusters);
    lines.field("inodes_count", sb.inodes_count);
    lines.field("free_inodes_count", sb.free_inodes_count);
    lines.field("groups", sb.groups());
    lines.field("blocks_per_group", sb.blocks_per_group);
    lines.field("inodes_per_group", sb.inodes_per_group);
    lines.field("flex_groups", sb.flex_groups());
    lines.field("desc_size", sb.desc_bytes());
    lines.field("reserved_gdt_blocks", sb.reserved_gdt_blocks);
    lines.field("inode_size", sb.inode_size);
    lines.field("want_extra_isize", sb.want_extra_isize);
    lines.field("first_ino", sb.first_ino);
    lines.field("journal_inum", sb.journal_inum);
    lines.field("last_orphan", sb.last_orphan);
    lines.field("orphan_file_inum", sb.orphan_file_inum);
    lines.field("def_hash_version", hash_name(sb.hash_version()));
    lines.field("hash_seed", uuid(&std::array::from_fn(|i| seed[i])));
    lines.field("mkfs_time", seconds(sb.mkfs_time, sb.mkfs_time_hi));
    lines.field("mtime", seconds(sb.mtime, sb.mtime_hi));
    lines.field("wtime", seconds(sb.wtime, sb.wtime_hi));
    lines.field("lastcheck", seconds(sb.lastcheck, sb.lastcheck_hi));
    lines.field("mnt_count", sb.mnt_count);
    lines.field("last_mounted", label(&sb.last_mounted));
    lines.field("kbytes_written", sb.kbytes_written);
    lines.field("error_count", sb.error_count);
    lines.field("checksum", format_args!("{:#010x}", sb.checksum));
    lines.0
}

fn seconds(low: u32, high: u8) -> u64 {
    u64::from(high) << 32 | u64::from(low)
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

async fn groups(raw: &Ext4Image) -> Result<String, RawError> {
    let mut lines = Lines::default();
    let sb = &raw.sb;
    lines.add(format_args!(
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
        lines.add(format_args!(
            "{group:>7} {:>12} {:>12} {:>12} {:>12} {:>8} {:>8} {:>8} {:>8}  {}",
            sb.group_first_block(group),
            d.block_bitmap,
            d.inode_bitmap,
            d.inode_table,
            d.free_blocks_count,
            d.free_inodes_count,
            d.itable_unused,
            d.used_dirs_count,
            flags.join(" ")
        ));
    }
    lines.add(format_args!("blocks and inodes are free ones; unused inodes were never used"));
    Ok(lines.0)
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

async fn inode(raw: &Ext4Image, number: u32) -> Result<String, RawError> {
    let (inode, bytes) = raw.inode(number).await?;
    let mut lines = Lines::default();
    lines.field("inode", number);
    lines.field("type", type_name(inode.mode));
    lines.field("mode", format_args!("{:04o}", inode.mode & !mode::TYPE));
    lines.field("uid", inode.uid);
    lines.field("gid", inode.gid);
    lines.field("size", inode.size);
    lines.field("links_count", inode.links_count);
    lines.field("blocks", format_args!("{} of 4 KiB", inode.blocks_4k()));
    lines.field("flags", format_args!("{:#x}{}", inode.flags, flag_names(&inode)));
    lines.field("generation", inode.generation);
    let times = [
        ("atime", inode.atime()),
        ("mtime", inode.mtime()),
        ("ctime", inode.ctime()),
        ("crtime", inode.crtime()),
    ];
    for (name, time) in times {
        lines.field(name, format_args!("{}.{:09}", time.seconds, time.nanos));
    }
    lines.field("dtime", inode.dtime);
    lines.field("extra_isize", inode.extra_isize);
    lines.field("checksum", format_args!("{:#010x}", inode.checksum));
    match inode.file_type() {
        mode::CHAR | mode::BLOCK => lines.field("device", format_args!("{:?}", inode.device())),
        _ => {
            if let Some(target) = inode.fast_symlink() {
                lines.field("target", label(target));
            }
        }
    }
    let mut xattrs = parse_inode_xattrs(&bytes, inode.extra_isize, Place::Inode(number))?;
    if inode.file_acl != 0 {
        lines.field("file_acl", inode.file_acl);
        let place = Place::InodeBlock { inode: number, block: inode.file_acl };
        xattrs.extend(parse_xattr_block(&raw.reader().block(inode.file_acl).await?[..], place)?.1);
    }
    for xattr in xattrs {
        let (name, value) = (xattr.whole_name(), &xattr.value);
        lines.field("xattr", format_args!("{} = {}", name.escape_ascii(), shown(value)));
    }
    Ok(lines.0)
}

/// Bytes as text between quotation marks.
fn shown(bytes: &[u8]) -> String {
    format!("\"{}\"", bytes.escape_ascii())
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
