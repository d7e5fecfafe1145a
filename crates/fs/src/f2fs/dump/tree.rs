//! The whole tree as a manifest: one line per path, sorted by the bytes of the path. A mounted volume can
//! be shown in the same form, and the two compared.
//!
//! A line is the path, and fields `key=value` in a fixed order: type, mode, links, uid, gid, size, blocks,
//! ino, mtime, ctime, btime where it is kept, rdev of devices, crc of regular files, target of symbolic
//! links, and extended attributes sorted by name. Bytes up to 0x20, from 0x7f on, and `\` are written
//! `\xHH`. What cannot be read stands in a line that begins with `#`.

use crate::f2fs::format::*;
use crate::f2fs::raw::{F2fsImage, RawError, RawInode};
use nandscape_block::BlockError;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Bytes of a unit of `blocks`.
const UNIT_BYTES: u64 = 512;
/// Units per block.
const UNITS_PER_BLOCK: u64 = BLOCK_BYTES as u64 / UNIT_BYTES;

/// What a walk over the tree collects.
struct Walk<'a> {
    image: &'a F2fsImage,
    lines: BTreeMap<Vec<u8>, String>,
    unsound: Vec<String>,
    /// Directories that wait, with their paths.
    waiting: Vec<(Vec<u8>, RawInode)>,
    entered: BTreeSet<Nid>,
}

pub(super) async fn manifest(image: &F2fsImage) -> Result<String, RawError> {
    let mut walk = Walk {
        image,
        lines: BTreeMap::new(),
        unsound: Vec::new(),
        waiting: Vec::new(),
        entered: BTreeSet::new(),
    };
    walk.visit(b"/".to_vec(), image.sb.root_ino).await?;
    while let Some((path, dir)) = walk.waiting.pop() {
        walk.enter(&path, &dir).await?;
    }
    let lines = walk.lines.into_values().chain(walk.unsound);
    Ok(lines.map(|line| line + "\n").collect())
}

impl Walk<'_> {
    fn note(&mut self, path: &[u8], error: RawError) -> Result<(), BlockError> {
        match error {
            RawError::Device(error) => Err(error),
            RawError::Format(error) => {
                self.unsound.push(format!("# {}: {error}", escaped(path, b"")));
                Ok(())
            }
        }
    }

    /// Shows what a path leads to; a directory waits to be entered.
    async fn visit(&mut self, path: Vec<u8>, ino: Nid) -> Result<(), RawError> {
        let inode = match self.image.inode(ino).await {
            Ok(inode) => inode,
            Err(error) => return Ok(self.note(&path, error)?),
        };
        match line(self.image, &path, &inode).await {
            Ok(line) => drop(self.lines.insert(path.clone(), line)),
            Err(error) => self.note(&path, error)?,
        }
        if inode.inode.is_dir() {
            match self.entered.insert(ino) {
                true => self.waiting.push((path, inode)),
                false => {
                    let what = "is a directory with two names";
                    self.note(&path, FormatError::corrupt(Place::Inode(ino), 0, what).into())?;
                }
            }
        }
        Ok(())
    }

    async fn enter(&mut self, path: &[u8], dir: &RawInode) -> Result<(), RawError> {
        let names = match self.image.names(dir).await {
            Ok(names) => names,
            Err(error) => return Ok(self.note(path, error)?),
        };
        for name in names.iter().filter(|name| !matches!(&name.name[..], b"." | b"..")) {
            let above = if path == b"/" { b"" } else { path };
            self.visit([above, b"/", &name.name].concat(), name.ino).await?;
        }
        Ok(())
    }
}

/// Text of bytes without blanks and what is no printable ASCII, nor any of `also`.
fn escaped(bytes: &[u8], also: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        match byte {
            0x21..=0x7e if *byte != b'\\' && !also.contains(byte) => text.push(char::from(*byte)),
            _ => {
                // Writing to a string cannot fail.
                let _ = write!(text, "\\x{byte:02x}");
            }
        }
    }
    text
}

async fn line(image: &F2fsImage, path: &[u8], raw: &RawInode) -> Result<String, RawError> {
    let inode = &raw.inode;
    let letter = match inode.file_type() {
        mode::REGULAR => 'f',
        mode::DIR => 'd',
        mode::SYMLINK => 'l',
        mode::BLOCK => 'b',
        mode::CHAR => 'c',
        mode::FIFO => 'p',
        _ => 's',
    };
    let mut text = escaped(path, b"");
    let mut put = |field: std::fmt::Arguments<'_>| {
        // Writing to a string cannot fail.
        let _ = text.write_fmt(field);
    };
    put(format_args!(" type={letter} mode={:04o} links={}", inode.mode & 0o7777, inode.links));
    put(format_args!(" uid={} gid={} size={}", inode.uid, inode.gid, inode.size));
    put(format_args!(" blocks={} ino={}", units(raw), raw.node.nid.0));
    put(format_args!(" mtime={}.{:09}", inode.mtime as i64, inode.mtime_nsec));
    put(format_args!(" ctime={}.{:09}", inode.ctime as i64, inode.ctime_nsec));
    let extra = ExtraAttrs::parse(&raw.node.bytes, raw.layout);
    if image.sb.features().has(Feature::INODE_CRTIME) && raw.layout.extra_bytes() >= 24 {
        put(format_args!(" btime={}.{:09}", extra.crtime as i64, extra.crtime_nsec));
    }
    match letter {
        'f' => put(format_args!(" crc={:08x}", checksum(image, raw).await?)),
        'l' => put(format_args!(" target={}", escaped(&target(image, raw).await?, b""))),
        'b' | 'c' => {
            let (major, minor) = device_number(&raw.node.bytes, raw.layout);
            put(format_args!(" rdev={major}:{minor}"));
        }
        _ => {}
    }
    let area = image.xattrs(raw).await?;
    let mut sorted = BTreeMap::new();
    for xattr in area.iter() {
        let xattr = xattr.map_err(|error| error.at(Place::Xattrs(raw.node.nid)))?;
        sorted.insert(whole_xattr_name(xattr.index, xattr.name), xattr.value.to_vec());
    }
    for (name, value) in sorted {
        put(format_args!(" xattr.{}=", escaped(&name, b"=")));
        value.iter().for_each(|byte| put(format_args!("{byte:02x}")));
    }
    Ok(text)
}

/// What `stat` reports as blocks, in units of 512 bytes (`f2fs_getattr`).
fn units(raw: &RawInode) -> u64 {
    let inode = &raw.inode;
    let inline = match inode.has_inline(inline::DATA) && inode.is_regular()
        || inode.has_inline(inline::DENTRY) && inode.is_dir()
    {
        true => inode.size.div_ceil(UNIT_BYTES),
        false => 0,
    };
    inode.blocks.saturating_sub(1).saturating_mul(UNITS_PER_BLOCK).saturating_add(inline)
}

/// crc32c of `count` zero bytes after `register`. Takes time by the bits of `count`, not by its size.
fn after_zeroes(register: u32, count: u64) -> u32 {
    let (mut sum, mut power, mut bytes) = (register, crc32c::crc32c(&[0]), 1_u64);
    let mut rest = count;
    while rest != 0 {
        if rest & 1 == 1 {
            sum = crc32c::crc32c_combine(sum, power, bytes as usize);
        }
        rest >>= 1;
        if rest != 0 {
            power = crc32c::crc32c_combine(power, power, bytes as usize);
            bytes *= 2;
        }
    }
    sum
}

/// crc32c of the content of a regular file; holes are zeroes.
async fn checksum(image: &F2fsImage, raw: &RawInode) -> Result<u32, RawError> {
    let (size, ino) = (raw.inode.size, raw.node.nid);
    if size > max_pages(ADDRS_PER_INODE) * BLOCK_BYTES as u64 {
        return Err(FormatError::corrupt(Place::Inode(ino), 0x10, "size is out of range").into());
    }
    if raw.inode.has_inline(inline::DATA) {
        return Ok(crc32c::crc32c(inline_bytes(raw)?));
    }
    let (mut sum, mut at) = (0, 0);
    let mut nodes = image.file_nodes(raw);
    while let Some(dnode) = nodes.next().await {
        let dnode = dnode?;
        for (page, addr) in (dnode.first_page..).zip(dnode.slots.iter(&dnode.node.bytes)) {
            let from = page * BLOCK_BYTES as u64;
            if !addr.is_block() || from >= size {
                continue;
            }
            sum = after_zeroes(sum, from.saturating_sub(at));
            let bytes = image.data(addr, ino).await?;
            let length = (size - from).min(BLOCK_BYTES as u64);
            sum = crc32c::crc32c_append(sum, &bytes[..length as usize]);
            at = from + length;
        }
    }
    Ok(after_zeroes(sum, size.saturating_sub(at)))
}

/// Inline content, as long as the size says.
fn inline_bytes(raw: &RawInode) -> Result<&[u8], FormatError> {
    let area = &raw.node.bytes[raw.layout.inline_data()];
    let what = "inline data are longer than their room";
    let error = FormatError::corrupt(Place::Inode(raw.node.nid), 0x10, what);
    usize::try_from(raw.inode.size).ok().and_then(|size| area.get(..size)).ok_or(error)
}

/// The target of a symbolic link.
async fn target(image: &F2fsImage, raw: &RawInode) -> Result<Vec<u8>, RawError> {
    if raw.inode.has_inline(inline::DATA) {
        return Ok(inline_bytes(raw)?.to_vec());
    }
    let ino = raw.node.nid;
    let what = "target of a symbolic link is longer than a page";
    let error = FormatError::corrupt(Place::Inode(ino), 0x10, what);
    let size = usize::try_from(raw.inode.size).ok().filter(|size| *size <= BLOCK_BYTES);
    let size = size.ok_or(error)?;
    let first = raw.layout.addrs().get(&raw.node.bytes, 0);
    Ok(image.data(first, ino).await?[..size].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Zeroes are counted as if each had been there.
    #[test]
    fn zeroes_are_summed_by_their_number() {
        for count in [0, 1, 2, 3, 4095, 4096, 100_001] {
            let sum = crc32c::crc32c(b"before");
            let expected = crc32c::crc32c_append(sum, &vec![0; count]);
            assert_eq!(after_zeroes(sum, count as u64), expected, "{count}");
        }
    }

    /// What would end a field or a line is written as its number.
    #[test]
    fn bytes_are_escaped() {
        assert_eq!(escaped("a b\\é=".as_bytes(), b""), "a\\x20b\\x5c\\xc3\\xa9=");
        assert_eq!(escaped(b"=\n", b"="), "\\x3d\\x0a");
    }
}
