//! A line of a manifest: what one path leads to, as text.
//!
//! A line is the path, and fields `key=value` in a fixed order: type, mode, links, uid, gid, size, blocks,
//! ino, mtime, ctime, btime where it is kept, rdev of devices, crc of regular files, target of symbolic
//! links, and extended attributes sorted by name. Bytes up to 0x20, from 0x7f on, and `\` are written
//! `\xHH`.

use crate::contract::Timestamp;
use crate::dump::iso8601;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt;

/// What a manifest says of a path. `Display` writes the line, without its end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ManifestLine {
    /// From the root of the volume on, `/` for the root itself.
    pub path: Vec<u8>,
    /// `f` regular, `d` directory, `l` symbolic link, `b`, `c` device, `p` named pipe, `s` socket.
    pub letter: char,
    /// The low 12 bits of the mode.
    pub mode: u16,
    /// Links.
    pub links: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Bytes.
    pub size: u64,
    /// Units of 512 bytes, as `stat` reports them.
    pub blocks: u64,
    /// Inode number.
    pub ino: u64,
    /// Last change of content.
    pub mtime: Timestamp,
    /// Last change of content or attributes.
    pub ctime: Timestamp,
    /// Creation, where the inode keeps it.
    pub btime: Option<Timestamp>,
    /// Major and minor number of a device.
    pub rdev: Option<(u32, u32)>,
    /// crc32c of a regular file's content.
    pub crc: Option<u32>,
    /// Target of a symbolic link.
    pub target: Option<Vec<u8>>,
    /// Extended attributes by their whole names.
    pub xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl ManifestLine {
    /// The line as JSON: the same keys, times in ISO 8601, attributes as an object.
    pub(super) fn json(&self) -> Value {
        let mut json = json!({
            "path": self.path.escape_ascii().to_string(), "type": self.letter.to_string(),
            "mode": self.mode, "links": self.links, "uid": self.uid, "gid": self.gid,
            "size": self.size, "blocks": self.blocks, "ino": self.ino,
            "mtime": iso8601(self.mtime.seconds, self.mtime.nanos), "ctime": iso8601(self.ctime.seconds, self.ctime.nanos),
        });
        let others = [
            ("btime", self.btime.map(|time| iso8601(time.seconds, time.nanos).into())),
            ("rdev", self.rdev.map(|(major, minor)| format!("{major}:{minor}").into())),
            ("crc", self.crc.map(Value::from)),
            ("target", self.target.as_ref().map(|to| to.escape_ascii().to_string().into())),
        ];
        for (key, value) in others {
            if let Some(value) = value {
                json[key] = value;
            }
        }
        let xattrs = self.xattrs.iter().map(|(name, value)| {
            (name.escape_ascii().to_string(), Value::from(value.escape_ascii().to_string()))
        });
        json["xattrs"] = xattrs.collect::<Map<_, _>>().into();
        json
    }
}

impl fmt::Display for ManifestLine {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { letter, mode, links, uid, gid, size, blocks, ino, .. } = self;
        write!(out, "{} type={letter} mode={mode:04o} links={links}", Escaped(&self.path, b""))?;
        write!(out, " uid={uid} gid={gid} size={size} blocks={blocks} ino={ino}")?;
        let times =
            [("mtime", Some(self.mtime)), ("ctime", Some(self.ctime)), ("btime", self.btime)];
        for (key, time) in times {
            if let Some(Timestamp { seconds, nanos }) = time {
                write!(out, " {key}={seconds}.{nanos:09}")?;
            }
        }
        if let Some((major, minor)) = self.rdev {
            write!(out, " rdev={major}:{minor}")?;
        }
        if let Some(crc) = self.crc {
            write!(out, " crc={crc:08x}")?;
        }
        if let Some(target) = &self.target {
            write!(out, " target={}", Escaped(target, b""))?;
        }
        for (name, value) in &self.xattrs {
            write!(out, " xattr.{}=", Escaped(name, b"="))?;
            value.iter().try_for_each(|byte| write!(out, "{byte:02x}"))?;
        }
        Ok(())
    }
}

/// Bytes as text without blanks and what is no printable ASCII, nor any of the second ones.
pub(super) struct Escaped<'a>(pub(super) &'a [u8], pub(super) &'a [u8]);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0 {
            match byte {
                0x21..=0x7e if *byte != b'\\' && !self.1.contains(byte) => {
                    write!(out, "{}", char::from(*byte))?;
                }
                _ => write!(out, "\\x{byte:02x}")?,
            }
        }
        Ok(())
    }
}

/// crc32c of a file's content whose holes are not read.
#[derive(Clone, Copy, Default, Debug)]
pub struct ContentSum {
    sum: u32,
    /// Where what is summed ends.
    end: u64,
}

impl ContentSum {
    /// Takes bytes at a place after those that were taken before; zeroes are between.
    pub fn add(&mut self, from: u64, bytes: &[u8]) {
        self.sum = after_zeroes(self.sum, from.saturating_sub(self.end));
        self.sum = crc32c::crc32c_append(self.sum, bytes);
        self.end = from.saturating_add(bytes.len() as u64);
    }

    /// The sum of `size` bytes: zeroes follow what was taken.
    #[must_use]
    pub fn of_size(self, size: u64) -> u32 {
        after_zeroes(self.sum, size.saturating_sub(self.end))
    }
}

/// Holes up to this size are summed, which takes less time than to combine sums.
static SHORT_HOLE: [u8; 1 << 14] = [0; 1 << 14];

/// crc32c of `count` zero bytes after `register`. Takes time by the bits of `count`, not by its size.
fn after_zeroes(register: u32, count: u64) -> u32 {
    let short = usize::try_from(count).ok().and_then(|count| SHORT_HOLE.get(..count));
    if let Some(zeroes) = short {
        return crc32c::crc32c_append(register, zeroes);
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Zeroes are counted as if each had been there.
    #[test]
    fn zeroes_are_summed_by_their_number() {
        for count in [0, 1, 2, 3, 4096, 16_383, 16_384, 100_001] {
            let mut content = b"before".to_vec();
            content.resize(6 + count, 0);
            content.extend(b"after");
            let mut sum = ContentSum::default();
            sum.add(0, b"before");
            sum.add(6 + count as u64, b"after");
            assert_eq!(sum.of_size(content.len() as u64), crc32c::crc32c(&content), "{count}");
            content.extend([0; 77]);
            assert_eq!(sum.of_size(content.len() as u64), crc32c::crc32c(&content), "{count}");
        }
    }

    /// What would end a field or a line is written as its number.
    #[test]
    fn bytes_are_escaped() {
        assert_eq!(Escaped("a b\\é=".as_bytes(), b"").to_string(), "a\\x20b\\x5c\\xc3\\xa9=");
        assert_eq!(Escaped(b"=\n", b"=").to_string(), "\\x3d\\x0a");
    }
}
