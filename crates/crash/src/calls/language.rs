//! Calls on files and what must hold after a power cut, as typed values and as lines.
//!
//! Every value prints as the line that reads as it: campaigns print their violations in this language, and enumerated
//! sequences can be saved as cases.

use crate::kernel_loss::KernelLoss;
use nandscape_block::{SectorData, Tag};
use nandscape_fs::contract::{Allocate, Kind, OpenFlags};
use nandscape_rt::Nanos;
use std::fmt::{self, Display, Formatter};

/// What blocks of JBD2's log begin with: content that does is escaped there.
const JBD2_MAGIC: [u8; 4] = [0xc0, 0x3b, 0x39, 0x98];

/// What a range of a file holds: every page of a content has its own 4 KiB, by its place in the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Content {
    /// Zeroes.
    Zeroes,
    /// The pattern of a word.
    Word(String),
    /// Page `n` is the tag `n` further on.
    Tag(u64),
    /// The same, the first four bytes of each page being JBD2's magic number.
    Magic(u64),
}

impl Content {
    /// The content of a page of a file.
    #[must_use]
    pub fn page(&self, index: u64) -> SectorData {
        let tag = |base: u64| SectorData::Tag(Tag::new(base).plus(index));
        match self {
            Self::Zeroes => SectorData::Tag(Tag::ZERO),
            Self::Word(word) => tag(hash(word)),
            Self::Tag(base) => tag(*base),
            Self::Magic(base) => {
                let patched = tag(*base).patched(0, &JBD2_MAGIC);
                #[expect(clippy::expect_used, reason = "four bytes fit into a page")]
                patched.expect("a page takes four bytes")
            }
        }
    }
}

/// FNV-1a, with room for the pages of a file in the low bits.
fn hash(word: &str) -> u64 {
    let fnv = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    word.bytes().fold(0xcbf2_9ce4_8422_2325, fnv) & !0xffff_ffff
}

impl Display for Content {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zeroes => f.write_str("0"),
            Self::Word(word) => f.write_str(word),
            Self::Tag(base) => write!(f, "tag:{base:x}"),
            Self::Magic(base) => write!(f, "jbd2:{base:x}"),
        }
    }
}

/// A file: by a path, or by the handle of an open.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FileRef {
    /// From the root of the volume; the root itself is `.`.
    Path(String),
    /// Of an open file, which may have lost its names.
    Handle(String),
}

impl Display for FileRef {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => f.write_str(path),
            Self::Handle(handle) => write!(f, "@{handle}"),
        }
    }
}

/// Bytes of a value: a word that is repeated up to a length.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Repeated {
    /// The word.
    pub word: String,
    /// Bytes in all.
    pub length: usize,
}

impl Repeated {
    /// A word up to a length; a value without bytes needs a word to be printed.
    #[must_use]
    pub fn new(word: String, length: usize) -> Self {
        Self { word: if word.is_empty() { "-".to_owned() } else { word }, length }
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        self.word.bytes().cycle().take(self.length).collect()
    }
}

impl Display for Repeated {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.length == self.word.len() {
            true => f.write_str(&self.word),
            false => write!(f, "{} {}", self.word, self.length),
        }
    }
}

/// A call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Call {
    /// A new file.
    Create(String),
    /// A new directory.
    Mkdir(String),
    /// A symbolic link, and its target.
    Symlink(String, Repeated),
    /// A file, and its further name.
    Link(String, String),
    /// A name, and the one that it becomes.
    Rename(String, String),
    /// Two names that change places.
    Exchange(String, String),
    /// A name of a file or symbolic link.
    Unlink(String),
    /// An empty directory.
    Rmdir(String),
    /// Bytes of a file; a path without a file makes one.
    Write {
        /// The file.
        file: FileRef,
        /// First byte.
        offset: u64,
        /// Bytes.
        length: u64,
        /// What they are.
        content: Content,
        /// Whether the write bypasses the page cache.
        direct: bool,
    },
    /// Bytes at the end of a file.
    Append {
        /// The file.
        file: FileRef,
        /// Bytes.
        length: u64,
        /// What they are.
        content: Content,
        /// Whether the write bypasses the page cache.
        direct: bool,
    },
    /// A file's length.
    Truncate(FileRef, u64),
    /// fallocate of a range.
    Allocate(FileRef, Allocate, u64, u64),
    /// A file's permission bits.
    Chmod(FileRef, u16),
    /// A file's owner.
    Chown(FileRef, u32),
    /// An extended attribute and its value.
    Setxattr(FileRef, String, Repeated),
    /// An extended attribute that goes.
    Removexattr(FileRef, String),
    /// A file is opened; the handle's name.
    Open(String, String, OpenFlags),
    /// A handle is closed.
    Close(String),
    /// fsync of a file or directory.
    Fsync(FileRef),
    /// fdatasync of a file.
    Fdatasync(FileRef),
    /// syncfs.
    Sync,
    /// Nothing for a while: timers run.
    Sleep(Nanos),
}

impl Call {
    /// Whether it makes something durable.
    #[must_use]
    pub const fn is_sync(&self) -> bool {
        matches!(self, Self::Fsync(_) | Self::Fdatasync(_) | Self::Sync)
    }

    /// The same call on a volume where all paths and handles are those of a directory.
    pub(crate) fn within(self, dir: &str) -> Self {
        let path = |path: String| match &*path {
            "." => dir.to_owned(),
            _ => format!("{dir}/{path}"),
        };
        let handle = |handle: String| format!("{dir}-{handle}");
        let file = |file| match file {
            FileRef::Path(at) => FileRef::Path(path(at)),
            FileRef::Handle(at) => FileRef::Handle(handle(at)),
        };
        match self {
            Self::Create(at) => Self::Create(path(at)),
            Self::Mkdir(at) => Self::Mkdir(path(at)),
            Self::Symlink(at, target) => Self::Symlink(path(at), target),
            Self::Link(from, to) => Self::Link(path(from), path(to)),
            Self::Rename(from, to) => Self::Rename(path(from), path(to)),
            Self::Exchange(one, other) => Self::Exchange(path(one), path(other)),
            Self::Unlink(at) => Self::Unlink(path(at)),
            Self::Rmdir(at) => Self::Rmdir(path(at)),
            Self::Write { file: of, offset, length, content, direct } => {
                Self::Write { file: file(of), offset, length, content, direct }
            }
            Self::Append { file: of, length, content, direct } => {
                Self::Append { file: file(of), length, content, direct }
            }
            Self::Truncate(of, size) => Self::Truncate(file(of), size),
            Self::Allocate(of, what, offset, length) => {
                Self::Allocate(file(of), what, offset, length)
            }
            Self::Chmod(of, mode) => Self::Chmod(file(of), mode),
            Self::Chown(of, uid) => Self::Chown(file(of), uid),
            Self::Setxattr(of, name, value) => Self::Setxattr(file(of), name, value),
            Self::Removexattr(of, name) => Self::Removexattr(file(of), name),
            Self::Open(at, name, flags) => Self::Open(path(at), handle(name), flags),
            Self::Close(name) => Self::Close(handle(name)),
            Self::Fsync(of) => Self::Fsync(file(of)),
            Self::Fdatasync(of) => Self::Fdatasync(file(of)),
            Self::Sync => Self::Sync,
            Self::Sleep(time) => Self::Sleep(time),
        }
    }
}

/// Flags of an open file as words of the language.
pub(super) const OPEN_WORDS: [&str; 4] = ["append", "sync", "dsync", "direct"];

fn open_words(flags: OpenFlags) -> impl Iterator<Item = &'static str> {
    let OpenFlags { append, sync, dsync, direct } = flags;
    let set = OPEN_WORDS.into_iter().zip([append, sync, dsync, direct]);
    set.filter_map(|(word, is_set)| is_set.then_some(word))
}

const fn direct_word(direct: bool) -> &'static str {
    if direct { " direct" } else { "" }
}

impl Display for Call {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create(path) => write!(f, "create {path}"),
            Self::Mkdir(path) => write!(f, "mkdir {path}"),
            Self::Symlink(path, target) => write!(f, "symlink {path} {target}"),
            Self::Link(from, to) => write!(f, "link {from} {to}"),
            Self::Rename(from, to) => write!(f, "rename {from} {to}"),
            Self::Exchange(one, other) => write!(f, "exchange {one} {other}"),
            Self::Unlink(path) => write!(f, "unlink {path}"),
            Self::Rmdir(path) => write!(f, "rmdir {path}"),
            Self::Write { file, offset, length, content, direct } => {
                write!(f, "write {file} {offset} {length} {content}{}", direct_word(*direct))
            }
            Self::Append { file, length, content, direct } => {
                write!(f, "append {file} {length} {content}{}", direct_word(*direct))
            }
            Self::Truncate(file, size) => write!(f, "truncate {file} {size}"),
            Self::Allocate(file, what, offset, length) => {
                let (word, keep) = match what {
                    Allocate::Reserve { keep_size } => ("fallocate", *keep_size),
                    Allocate::ZeroRange { keep_size } => ("zero", *keep_size),
                    Allocate::PunchHole => ("punch", false),
                };
                let keep = if keep { " keep-size" } else { "" };
                write!(f, "{word} {file} {offset} {length}{keep}")
            }
            Self::Chmod(file, mode) => write!(f, "chmod {file} {mode:o}"),
            Self::Chown(file, uid) => write!(f, "chown {file} {uid}"),
            Self::Setxattr(file, name, value) => write!(f, "setxattr {file} {name} {value}"),
            Self::Removexattr(file, name) => write!(f, "removexattr {file} {name}"),
            Self::Open(path, handle, flags) => {
                write!(f, "open {path} @{handle}")?;
                open_words(*flags).try_for_each(|word| write!(f, " {word}"))
            }
            Self::Close(handle) => write!(f, "close @{handle}"),
            Self::Fsync(file) => write!(f, "fsync {file}"),
            Self::Fdatasync(file) => write!(f, "fdatasync {file}"),
            Self::Sync => f.write_str("sync"),
            Self::Sleep(time) => write!(f, "sleep {}ns", time.0),
        }
    }
}

/// What must hold after the power cut at the end of a case.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum What {
    /// A path leads to something, of this kind if one is given.
    Has(String, Option<Kind>),
    /// A path leads to nothing.
    Not(String),
    /// A range of a file holds this.
    Data(String, u64, u64, Content),
    /// A file has this length.
    Size(String, u64),
    /// A file has an extended attribute with this value.
    Xattr(String, String, Repeated),
    /// Two paths lead to the same file.
    Same(String, String),
}

/// Kinds by the words of the language.
pub(super) const KINDS: [(&str, Kind); 3] =
    [("file", Kind::File), ("directory", Kind::Directory), ("symlink", Kind::Symlink)];

impl Display for What {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Has(path, kind) => {
                write!(f, "has {path}")?;
                let word = KINDS.iter().find(|(_, known)| Some(*known) == *kind);
                word.map_or(Ok(()), |(word, _)| write!(f, " {word}"))
            }
            Self::Not(path) => write!(f, "not {path}"),
            Self::Data(path, offset, length, content) => {
                write!(f, "data {path} {offset} {length} {content}")
            }
            Self::Size(path, size) => write!(f, "size {path} {size}"),
            Self::Xattr(path, name, value) => write!(f, "xattr {path} {name} {value}"),
            Self::Same(one, other) => write!(f, "same {one} {other}"),
        }
    }
}

/// Something that must hold, or be lost in a class that is named.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Expectation {
    /// What.
    pub what: What,
    /// The classes in which the kernel may lose it.
    pub unless: Vec<KernelLoss>,
}

impl Display for Expectation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.what)?;
        if self.unless.is_empty() {
            return Ok(());
        }
        f.write_str(" unless")?;
        self.unless.iter().try_for_each(|loss| write!(f, " {loss}"))
    }
}

/// Something with the line of the file on which it stands, counted from 1.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Line<T> {
    /// The line.
    pub line: usize,
    /// What stands there.
    pub is: T,
}

/// A sequence of calls, a power cut, and what must hold then.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Case {
    /// Its name; empty if it has none.
    pub name: String,
    /// The calls.
    pub calls: Vec<Line<Call>>,
    /// What must hold, beyond what the guarantees of the file system say.
    pub expectations: Vec<Line<Expectation>>,
}

/// As lines that read as it.
impl Display for Case {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if !self.name.is_empty() {
            writeln!(f, "case {}", self.name)?;
        }
        self.calls.iter().try_for_each(|call| writeln!(f, "{}", call.is))?;
        writeln!(f, "CUT")?;
        self.expectations.iter().try_for_each(|expected| writeln!(f, "{}", expected.is))
    }
}
