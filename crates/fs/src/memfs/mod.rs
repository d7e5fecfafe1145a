//! A file system in memory: the contract and nothing else, with neither a format nor a device. It is the
//! shortest answer to what a file system must do, and it passes the tests of docs/semantics/posix.md
//! beside ext4, except those about power cuts.
//!
//! A call takes effect at once, since none waits; space and inodes are a budget, so that they run out as
//! on a device. Blocks are pages of files: directories, links and attributes take none.

mod calls;
mod node;

use crate::contract::{Attr, Caller, Data, FsError, Ino, Io, Kind, Result, Timestamp};
use crate::counts::FsMemory;
use crate::kind::{FsCounts, MountedFs};
use nandscape_block::{SECTOR_BYTES, SectorData, Tag};
use nandscape_rt::{Handle, Nanos};
use node::{Body, Directory, Node, ROOT, State, check_name};
use std::cell::{Ref, RefCell, RefMut};
use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes of a page.
const PAGE: u64 = SECTOR_BYTES;
/// The longest file.
const SIZE_MAX: u64 = i64::MAX as u64;
/// Times of files are as coarse as in ext4.
const TICK: u64 = 4_000_000;

/// What a file system in memory has room for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// Pages of all files.
    pub blocks: u64,
    /// Inodes, the root included.
    pub inodes: u64,
    /// Seconds after 1970 at which the run began, for the times of files.
    pub epoch_s: i64,
}

/// A file system in memory.
pub struct MemFs {
    rt: Handle,
    config: Config,
    state: RefCell<State>,
}

impl MemFs {
    /// An empty file system; its clock is the executor's.
    #[must_use]
    pub fn new(rt: &Handle, config: Config) -> Self {
        let state =
            State { nodes: BTreeMap::new(), next: ROOT.0, used_blocks: 0, unmounted: false };
        let fs = Self { rt: rt.clone(), config, state: RefCell::new(state) };
        let directory = Body::Directory(Directory::new(ROOT));
        let root = Node::new(ROOT, directory, 0o755, Caller::default(), fs.now());
        {
            let mut state = fs.state.borrow_mut();
            state.nodes.insert(ROOT, root);
            state.next += 1;
        }
        fs
    }

    fn now(&self) -> Timestamp {
        let now = self.rt.now().0;
        Timestamp::at(self.config.epoch_s, Nanos(now - now % TICK))
    }

    fn look(&self) -> Result<Ref<'_, State>> {
        let state = self.state.borrow();
        if state.unmounted { Err(FsError::ReadOnly) } else { Ok(state) }
    }

    fn change(&self) -> Result<RefMut<'_, State>> {
        let state = self.state.borrow_mut();
        if state.unmounted { Err(FsError::ReadOnly) } else { Ok(state) }
    }

    fn make(&self, caller: Caller, dir: Ino, name: &[u8], body: Body, mode: u16) -> Result<Attr> {
        let (mut state, now) = (self.change()?, self.now());
        if state.living_directory(dir)?.get(name).is_some() {
            return Err(FsError::Exists);
        }
        check_name(name)?;
        if state.nodes.len() as u64 >= self.config.inodes {
            return Err(FsError::NoSpace);
        }
        let ino = Ino(state.next);
        state.next += 1;
        let mut node = Node::new(ino, body, mode, caller, now);
        node.inherit_group(&state.node(dir)?.attr);
        let (attr, subdirs) = (node.attr, i32::from(node.attr.kind == Kind::Directory));
        state.nodes.insert(ino, node);
        state.change_directory(dir, now, subdirs, |directory| directory.insert(name, ino))?;
        Ok(attr)
    }

    fn take_name(&self, dir: Ino, name: &[u8], of_directory: bool) -> Result<()> {
        let (mut state, now) = (self.change()?, self.now());
        check_name(name)?;
        let ino = state.named(dir, name)?;
        match (&state.node(ino)?.body, of_directory) {
            (Body::Directory(_), false) => return Err(FsError::IsDirectory),
            (Body::Directory(found), true) if !found.names.is_empty() => {
                return Err(FsError::NotEmpty);
            }
            (Body::Directory(_), true) | (_, false) => {}
            (_, true) => return Err(FsError::NotDirectory),
        }
        state.change_directory(dir, now, -i32::from(of_directory), |directory| {
            directory.remove(name)
        })?;
        state.unlink(ino, now)
    }

    /// Writes to `offset`, or to the end of the file. Returns where, and how many bytes.
    fn write_at(&self, ino: Ino, offset: Option<u64>, data: &Data, io: Io) -> Result<(u64, u64)> {
        let (mut state, now) = (self.change()?, self.now());
        let node = state.node(ino)?;
        node.pages()?;
        let offset = offset.unwrap_or(node.attr.size);
        let end = offset.checked_add(data.len()).filter(|end| *end <= SIZE_MAX);
        let end = end.ok_or(FsError::FileTooBig)?;
        if data.is_empty() {
            return Ok((offset, 0));
        }
        if !data.fits(offset) {
            return Err(FsError::Invalid(
                "sectors, and parts of them, go to their place in a page",
            ));
        }
        let aligned = offset.is_multiple_of(PAGE) && data.len().is_multiple_of(PAGE);
        if io == Io::Direct && !aligned {
            return Err(FsError::Invalid("direct I/O goes by multiples of 4,096"));
        }
        let mut at = offset;
        while at < end {
            let page = at / PAGE;
            let part = at..end.min((page + 1) * PAGE);
            match self.write_page(&mut state, ino, page, (offset, data), &part) {
                Ok(()) => at = part.end,
                Err(error) if at == offset => return Err(error),
                Err(_) => break,
            }
        }
        let node = state.node_mut(ino)?;
        node.attr.size = node.attr.size.max(at);
        node.touch(now, true);
        Ok((offset, at - offset))
    }

    /// Writes what of the data goes to `part` of a page.
    fn write_page(
        &self,
        state: &mut State,
        ino: Ino,
        page: u64,
        (offset, data): (u64, &Data),
        part: &Range<u64>,
    ) -> Result<()> {
        let old = state.node(ino)?.page(page)?;
        let in_data = (part.start - offset) as usize;
        let new = match data {
            Data::Sectors(payload, _) => Some(payload.sector((in_data as u64 / PAGE) as u32)),
            Data::Part(content, part) => old.overlaid(part.clone(), content),
            Data::Bytes(bytes) => {
                let bytes = &bytes[in_data..in_data + (part.end - part.start) as usize];
                old.patched((part.start % PAGE) as usize, bytes)
            }
        };
        let new = new.ok_or(FsError::Unsupported("a device that keeps no content"))?;
        self.put_page(state, ino, page, new)
    }

    /// Gives a page a block, if it has none, and content.
    fn put_page(&self, state: &mut State, ino: Ino, page: u64, new: SectorData) -> Result<()> {
        let is_hole = !state.node(ino)?.pages()?.contains_key(&page);
        if is_hole && state.used_blocks >= self.config.blocks {
            return Err(FsError::NoSpace);
        }
        state.used_blocks += u64::from(is_hole);
        let node = state.node_mut(ino)?;
        node.pages_mut()?.insert(page, new);
        node.attr.blocks += if is_hole { PAGE / 512 } else { 0 };
        Ok(())
    }

    /// Takes the blocks of pages.
    fn free_pages(state: &mut State, ino: Ino, pages: Range<u64>) -> Result<()> {
        let node = state.node_mut(ino)?;
        let held = node.pages_mut()?;
        let gone: Vec<u64> =
            held.range(pages.start..pages.end.max(pages.start)).map(|(page, _)| *page).collect();
        gone.iter().for_each(|page| drop(held.remove(page)));
        node.attr.blocks -= gone.len() as u64 * (PAGE / 512);
        state.used_blocks -= gone.len() as u64;
        Ok(())
    }

    /// Makes zeroes of a range: whole pages lose their blocks, and parts of pages that have one are
    /// overwritten.
    fn punch(state: &mut State, ino: Ino, range: Range<u64>) -> Result<()> {
        let (first, last) = (range.start.div_ceil(PAGE), range.end / PAGE);
        let mut zero = |from: u64, to: u64| -> Result<()> {
            let node = state.node_mut(ino)?;
            if from < to
                && let Some(page) = node.pages_mut()?.get_mut(&(from / PAGE))
            {
                let part = (from % PAGE) as usize..((to - 1) % PAGE + 1) as usize;
                *page = page.overlaid(part, &SectorData::Tag(Tag::ZERO)).unwrap_or_default();
            }
            Ok(())
        };
        if range.start / PAGE == range.end / PAGE {
            return zero(range.start, range.end);
        }
        zero(range.start, first * PAGE)?;
        zero(last * PAGE, range.end)?;
        Self::free_pages(state, ino, first..last)
    }

    fn set_length(state: &mut State, ino: Ino, size: u64) -> Result<()> {
        let old = state.node(ino)?.attr.size;
        state.node(ino)?.pages()?;
        if size > SIZE_MAX {
            return Err(FsError::FileTooBig);
        }
        if size < old {
            Self::punch(state, ino, size..old.next_multiple_of(PAGE))?;
            Self::free_pages(state, ino, size.div_ceil(PAGE)..u64::MAX)?;
        }
        state.node_mut(ino)?.attr.size = size;
        Ok(())
    }
}

impl MountedFs for MemFs {
    fn counts(&self) -> FsCounts {
        FsCounts::default()
    }

    fn memory(&self) -> FsMemory {
        let state = self.state.borrow();
        FsMemory {
            cached_pages: state.used_blocks,
            metadata_bytes: 0,
            inodes: state.nodes.len() as u64,
        }
    }
}
