//! Calls on content and attributes of files.

use super::{Ended, PAGES, Target, Writer};
use crate::calls::{self, Call, Repeated};
use crate::device::drive::CheckFailure;
use crate::fs::model::Scope;
use crate::fs::tree::{PAGE, bytes_of, into_pages, pages_in};
use nandscape_block::{Payload, SectorData};
use nandscape_fs::contract::{Allocate, Data, FsError, Io, SetAttr, Whence, WriteHint, XattrMode};
use std::ops::Range;

/// Pages of a write.
const WRITE_PAGES: u64 = 4;
/// Names of extended attributes, and bytes of noise after which a value begins again.
const XATTRS: u64 = 3;
const VALUE_NOISE: usize = 16;

/// What a write writes: each part of a page with the page whose content it gets there.
struct Content {
    data: Data,
    /// What the event log calls it.
    name: calls::Content,
    pages: Vec<(u64, Range<usize>, SectorData)>,
}

impl Writer {
    /// Writes whole pages anywhere, at the end, or over what is there.
    pub(super) async fn write(&mut self) -> Ended {
        let Some(target) = self.file_to_write().await? else { return Ok(()) };
        let end = self.model.borrow().size(target.node).div_ceil(PAGE);
        let first = match self.rng.below(3) {
            0 => end.min(PAGES - 1),
            1 if end > 0 => self.rng.below(end),
            _ => self.rng.below(PAGES),
        };
        let count = (1 + self.rng.below(WRITE_PAGES)).min(PAGES.saturating_sub(first).max(1));
        let io = if self.rng.chance(0.2) { Io::Direct } else { Io::Buffered };
        self.write_pages(&target, first, count, io).await
    }

    async fn file_to_write(&mut self) -> Ended<Option<Target>> {
        if self.rng.chance(0.3) {
            return self.any_file().await;
        }
        let path = self.any_path();
        self.file(&path).await
    }

    pub(super) async fn write_pages(
        &mut self,
        target: &Target,
        first: u64,
        count: u64,
        io: Io,
    ) -> Ended {
        let content = self.content(first * PAGE, count * PAGE);
        self.write_content(target, first * PAGE, content, io).await
    }

    /// Writes some bytes that are no whole pages.
    pub(super) async fn write_part(&mut self) -> Ended {
        let Some(target) = self.file_to_write().await? else { return Ok(()) };
        let size = self.model.borrow().size(target.node);
        let offset = match self.rng.below(3) {
            0 => size.min(PAGES * PAGE),
            1 if size > 0 => self.rng.below(size),
            _ => self.rng.below(PAGES * PAGE),
        };
        let most = if self.rng.chance(0.7) { 600 } else { 2 * PAGE };
        let len = 1 + self.rng.below(most);
        self.write_bytes(&target, offset, len).await
    }

    pub(super) async fn write_bytes(&mut self, target: &Target, offset: u64, len: u64) -> Ended {
        self.reached("write of a part of a page");
        let content = self.content(offset, len);
        self.write_content(target, offset, content, Io::Buffered).await
    }

    /// New content for a range.
    fn content(&mut self, offset: u64, len: u64) -> Content {
        // Contents of call sequences are those of whole files: the page at `offset` has the next tag.
        let base = self.next_tag.wrapping_sub(offset / PAGE) & u64::MAX >> 1;
        let magic = len.is_multiple_of(PAGE) && self.rng.chance(0.05);
        let name = if magic { calls::Content::Magic(base) } else { calls::Content::Tag(base) };
        let parts: Vec<(u64, Range<usize>, SectorData)> = pages_in(offset..offset + len)
            .map(|(page, part)| (page, part, name.page(page)))
            .collect();
        self.next_tag += parts.len() as u64;
        if magic {
            self.reached("page of JBD2's magic written");
        }
        let data = match &parts[..] {
            _ if offset.is_multiple_of(PAGE) && len.is_multiple_of(PAGE) => {
                let contents = parts.iter().map(|(.., content)| content.clone()).collect();
                Data::Sectors(Payload::collect(contents), parts.len() as u32)
            }
            [(_, part, content)] if self.rng.chance(0.5) => {
                Data::Part(content.clone(), part.clone())
            }
            parts => {
                let bytes = parts
                    .iter()
                    .flat_map(|(_, part, content)| bytes_of(content)[part.clone()].to_vec());
                Data::Bytes(bytes.collect())
            }
        };
        Content { data, name, pages: parts }
    }

    fn model_writes(&self, target: &Target, content: &Content) {
        for (page, part, with) in &content.pages {
            self.model.borrow_mut().write(target.node, *page, part.clone(), with);
        }
    }

    async fn write_content(
        &mut self,
        target: &Target,
        mut offset: u64,
        content: Content,
        io: Io,
    ) -> Ended {
        self.model_writes(target, &content);
        self.log(Call::Write {
            file: target.name.clone(),
            offset,
            length: content.data.len(),
            content: content.name,
            direct: io == Io::Direct,
        });
        self.called(if io == Io::Direct { "write, direct" } else { "write" });
        self.mixes(target, io);
        let mut data = content.data;
        while !data.is_empty() {
            match self.fs.write(self.caller, target.ino, offset, data.clone(), io).await {
                Ok(written) => {
                    data = data.behind(written);
                    offset += written;
                }
                Err(FsError::NoSpace) => return self.refused(target, "write: no space").await,
                Err(other) => return Err(other.into()),
            }
        }
        self.call_ended();
        Ok(())
    }

    /// Notes whether a file is written in both ways.
    fn mixes(&mut self, target: &Target, io: Io) {
        if self.last_io.insert(target.node, io).is_some_and(|last| last != io) {
            self.reached("direct and buffered writes of a file mixed");
        }
    }

    /// Appends, also directly.
    pub(super) async fn append(&mut self) -> Ended {
        let Some(target) = self.file_to_write().await? else { return Ok(()) };
        let size = self.model.borrow().size(target.node);
        let direct = size.is_multiple_of(PAGE) && self.rng.chance(0.5);
        let io = if direct { Io::Direct } else { Io::Buffered };
        let len = match direct || self.rng.chance(0.3) {
            true => PAGE * (1 + self.rng.below(2)),
            false => 1 + self.rng.below(PAGE),
        };
        if size + len > 2 * PAGES * PAGE {
            return Ok(());
        }
        let content = self.content(size, len);
        self.model_writes(&target, &content);
        let (file, name) = (target.name.clone(), content.name);
        self.log(Call::Append { file, length: len, content: name, direct });
        self.called("write, append");
        self.mixes(&target, io);
        match self.fs.write_at_end(self.caller, target.ino, content.data, io).await {
            Ok(written) if written == (size, len) => Ok(()),
            Ok((at, _)) if at != size => {
                Err(CheckFailure::new(format!("{} grew at {at} from {size}", target.name)))
            }
            Ok(_) | Err(FsError::NoSpace) => self.refused(&target, "write: no space").await,
            Err(other) => Err(other.into()),
        }
    }

    /// Writes to an open file as its flags say.
    pub(super) async fn use_open(&mut self) -> Ended {
        if self.open.is_empty() {
            return Ok(());
        }
        let opened = self.open[self.rng.below(self.open.len() as u64) as usize];
        let (target, flags) = (self.opened(opened), opened.fh.flags);
        let size = self.model.borrow().size(target.node);
        let offset = if flags.append { size } else { self.rng.below(PAGES) * PAGE };
        let len = if flags.direct { PAGE } else { 1 + self.rng.below(PAGE) };
        if flags.direct && !offset.is_multiple_of(PAGE) || offset + len > 2 * PAGES * PAGE {
            return Ok(());
        }
        let content = self.content(offset, len);
        self.model_writes(&target, &content);
        let (file, name) = (target.name.clone(), content.name);
        self.log(Call::Write { file, offset, length: len, content: name, direct: flags.direct });
        let scope = match (flags.sync, flags.dsync) {
            (true, _) => Some(Scope::Whole(target.node)),
            (_, true) => Some(Scope::Content(target.node)),
            _ => None,
        };
        self.called(if scope.is_some() { "write, O_SYNC or O_DSYNC" } else { "write" });
        let sync = scope.map(|scope| self.model.borrow_mut().sync_of_call(scope));
        match self.fs.write_open(self.caller, opened.fh, offset, content.data).await {
            Ok((at, written)) if (at, written) == (offset, len) => {
                sync.into_iter().for_each(|sync| self.model.borrow_mut().synced(&sync));
                Ok(())
            }
            Ok(_) | Err(FsError::NoSpace) => self.refused(&target, "write: no space").await,
            Err(other) => Err(other.into()),
        }
    }

    /// Reads pages, in both ways, and asks where data are.
    pub(super) async fn read(&mut self) -> Ended {
        let Some(target) = self.any_file().await? else { return Ok(()) };
        let size = self.model.borrow().size(target.node);
        if size == 0 {
            return Ok(());
        }
        let first = self.rng.below(size.div_ceil(PAGE));
        let most = (1 + self.rng.below(WRITE_PAGES)) * PAGE;
        self.read_pages(&target, first, most).await?;
        self.seek(&target).await
    }

    /// Reads at most so many bytes from a page on, up to the end of the file.
    pub(super) async fn read_pages(&mut self, target: &Target, first: u64, most: u64) -> Ended {
        let size = self.model.borrow().size(target.node);
        let len = size.saturating_sub(first * PAGE).min(most);
        let direct = target.opened.is_some_and(|fh| fh.flags.direct) || self.rng.chance(0.3);
        let io = if direct { Io::Direct } else { Io::Buffered };
        self.called(if direct { "read, direct" } else { "read" });
        let data = match target.opened {
            Some(fh) if fh.flags.direct == direct => {
                self.fs.read_open(self.caller, fh, first * PAGE, len).await?
            }
            _ => self.fs.read(self.caller, target.ino, first * PAGE, len, io).await?,
        };
        if data.len() != len {
            let what = format!("{} of {len} bytes of {} were read", data.len(), target.name);
            return Err(CheckFailure::new(what));
        }
        for (page, content) in (first..).zip(into_pages(data, len)) {
            if !self.model.borrow().may_show(target.node, page, &content) {
                let what = format!("page {page} of {} is read as {content:x?}", target.name);
                return Err(CheckFailure::new(what));
            }
        }
        Ok(())
    }

    async fn seek(&mut self, target: &Target) -> Ended {
        self.called("seek");
        let data = self.model.borrow().first_data(target.node);
        let found = self.fs.seek(self.caller, target.ino, 0, Whence::Data).await;
        match (found, data) {
            (Ok(found), Some(data)) if found <= data * PAGE => Ok(()),
            (Ok(_) | Err(FsError::BeyondEnd), None) => Ok(()),
            (found, data) => {
                let found = match found {
                    Ok(offset) => format!("offset {offset}"),
                    Err(error) => error.to_string(),
                };
                let page = data.map_or("none".to_owned(), |page| format!("page {page}"));
                let what = format!("first data of {}: {found}; expected {page}", target.name);
                Err(CheckFailure::new(what))
            }
        }
    }

    pub(super) async fn truncate(&mut self) -> Ended {
        let Some(target) = self.any_file().await? else { return Ok(()) };
        let pages = self.rng.below(PAGES);
        let size = pages * PAGE + if self.rng.chance(0.5) { self.rng.below(PAGE) } else { 0 };
        self.truncate_to(&target, size).await?;
        self.maybe_fsync(&target).await
    }

    pub(super) async fn truncate_to(&mut self, target: &Target, size: u64) -> Ended {
        let shorter = size < self.model.borrow().size(target.node);
        self.model.borrow_mut().truncate(target.node, size);
        self.log(Call::Truncate(target.name.clone(), size));
        self.called(if shorter { "setattr: shorter" } else { "setattr: longer" });
        if !self.is_named(target.node) {
            self.reached("truncate of an unlinked file");
        }
        let change = SetAttr { size: Some(size), ..SetAttr::default() };
        match self.fs.setattr(self.caller, target.ino, change).await {
            Err(FsError::NoSpace) => self.refused(target, "write: no space").await,
            other => other.map(|_| ()).map_err(Into::into),
        }
    }

    /// fallocate with every flag.
    pub(super) async fn allocate(&mut self) -> Ended {
        let Some(target) = self.file_to_write().await? else { return Ok(()) };
        let keep_size = self.rng.chance(0.5);
        let what = match self.rng.below(4) {
            0 => Allocate::PunchHole,
            1 => Allocate::ZeroRange { keep_size },
            _ => Allocate::Reserve { keep_size },
        };
        let (mut offset, mut len) = (self.rng.below(PAGES * PAGE), 1 + self.rng.below(6 * PAGE));
        if self.rng.chance(0.5) {
            (offset, len) = (offset / PAGE * PAGE, len.div_ceil(PAGE) * PAGE);
        }
        self.allocate_range(&target, what, offset, len).await?;
        self.maybe_fsync(&target).await
    }

    pub(super) async fn allocate_range(
        &mut self,
        target: &Target,
        what: Allocate,
        offset: u64,
        len: u64,
    ) -> Ended {
        let range = offset..offset + len;
        let (call, zeroes, grows) = match what {
            Allocate::Reserve { keep_size: false } => ("fallocate: reserve", false, true),
            Allocate::Reserve { .. } => ("fallocate: reserve, length kept", false, false),
            Allocate::PunchHole => ("fallocate: punch hole", true, false),
            Allocate::ZeroRange { keep_size: false } => ("fallocate: zero range", true, true),
            Allocate::ZeroRange { .. } => ("fallocate: zero range, length kept", true, false),
        };
        {
            let mut model = self.model.borrow_mut();
            if zeroes {
                model.zero(target.node, &range);
            }
            if grows {
                model.grow(target.node, range.end);
            }
        }
        self.log(Call::Allocate(target.name.clone(), what, offset, len));
        self.called(call);
        match self.fs.fallocate(self.caller, target.ino, what, offset, len).await {
            Err(FsError::NoSpace) => self.refused(target, "fallocate: no space").await,
            other => Ok(other?),
        }
    }

    /// Sets permission bits, the owner, or how long data will live.
    pub(super) async fn set_owner(&mut self) -> Ended {
        let Some(target) = self.any_file().await? else { return Ok(()) };
        if self.rng.chance(0.2) {
            self.called("set_write_hint");
            let hint = [WriteHint::Short, WriteHint::Extreme][self.rng.below(2) as usize];
            return Ok(self.fs.set_write_hint(self.caller, target.ino, hint).await?);
        }
        let mode = self.rng.chance(0.7).then(|| 0o600 + self.rng.below(0o100) as u16);
        let uid = self.rng.chance(0.5).then(|| self.rng.below(1 << 20) as u32);
        self.model.borrow_mut().set_owner(target.node, mode, uid);
        mode.into_iter().for_each(|mode| self.log(Call::Chmod(target.name.clone(), mode)));
        uid.into_iter().for_each(|uid| self.log(Call::Chown(target.name.clone(), uid)));
        self.called("setattr: mode or owner");
        let change = SetAttr { mode, uid, ..SetAttr::default() };
        self.fs.setattr(self.caller, target.ino, change).await?;
        self.maybe_fsync(&target).await
    }

    /// A value of an attribute, of so many bytes.
    pub(super) fn any_value(&mut self, len: u64) -> Repeated {
        let noise: Vec<u8> = (0..len).map(|_| self.rng.bits() as u8).collect();
        let digits = noise.iter().take(VALUE_NOISE).map(|byte| format!("{byte:02x}"));
        Repeated::new(digits.collect(), len as usize)
    }

    /// Sets or removes an extended attribute, and looks at all of them.
    pub(super) async fn change_xattr(&mut self) -> Ended {
        let Some(target) = self.any_file().await? else { return Ok(()) };
        let word = format!("user.x{}", self.rng.below(XATTRS));
        let name = word.clone().into_bytes();
        let known = self.model.borrow().xattrs(target.node);
        if known.contains_key(&name) && self.rng.chance(0.3) {
            self.model.borrow_mut().set_xattr(target.node, &name, None);
            self.log(Call::Removexattr(target.name.clone(), word));
            self.called("removexattr");
            self.fs.removexattr(self.caller, target.ino, &name).await?;
            return self.maybe_fsync(&target).await;
        }
        let large = self.rng.chance(0.5);
        let len = if large { 300 + self.rng.below(700) } else { self.rng.below(20) };
        let repeated = self.any_value(len);
        let value = repeated.bytes();
        let mode = match known.contains_key(&name) {
            true => XattrMode::Replace,
            false => XattrMode::Set,
        };
        self.model.borrow_mut().set_xattr(target.node, &name, Some(&value));
        self.log(Call::Setxattr(target.name.clone(), word, repeated));
        self.called(if large { "setxattr in a block" } else { "setxattr in the inode" });
        match self.fs.setxattr(self.caller, target.ino, &name, &value, mode).await {
            Err(FsError::NoSpace) => self.attribute_refused(&target, &known, len).await?,
            other => other?,
        }
        self.look_at_xattrs(&target).await?;
        self.maybe_fsync(&target).await
    }

    async fn look_at_xattrs(&mut self, target: &Target) -> Ended {
        let known = self.model.borrow().xattrs(target.node);
        self.called("listxattr");
        let names = self.fs.listxattr(self.caller, target.ino).await?;
        for (name, value) in &known {
            self.called("getxattr");
            let shown = self.fs.getxattr(self.caller, target.ino, name).await?;
            if shown != *value || !names.contains(name) {
                return Err(CheckFailure::new(format!("{}: a wrong xattr", target.name)));
            }
        }
        match names.len() == known.len() {
            true => Ok(()),
            false => Err(CheckFailure::new(format!("{}: {} xattrs", target.name, names.len()))),
        }
    }
}
