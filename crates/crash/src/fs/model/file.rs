//! What a file may hold after a power cut: pages, length, attributes.
//!
//! - A page holds what it held when a sync covered it, or anything it was meant to hold since. Zeroes
//!   are what a hole holds, and what was cut off.
//! - A length is one that the file had since a sync covered it, or the beginning of what a write made
//!   longer: write-back moves the length page by page.
//! - Where promises say so, a page may hold what its block held before: one that may have got its block since a
//!   sync covered it ([`Stale::NewBlocks`]), or any that was written since ([`Stale::Written`]).

use super::versions::{Moment, Versions};
use crate::fs::tree::{FileSnapshot, PAGE, Xattrs, cut_page};
use nandscape_block::{SectorData, Tag};
use nandscape_fs::Promises;
use std::collections::BTreeMap;
use std::ops::Range;

const ZERO: SectorData = SectorData::Tag(Tag::ZERO);
/// Bytes of a page.
const BYTES: usize = PAGE as usize;

/// Which pages may show what their blocks held before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stale {
    /// None.
    Never,
    /// Those that may have got their block since a sync covered them.
    NewBlocks,
    /// Those that were written since: whatever is written gets a block.
    Written,
}

impl Stale {
    /// What a file system permits by its promises.
    pub(crate) const fn permitted_by(promises: Promises) -> Self {
        match (promises.may_show_stale_blocks, promises.overwrites_in_place) {
            (false, _) => Self::Never,
            (true, true) => Self::NewBlocks,
            (true, false) => Self::Written,
        }
    }
}

/// What a page may hold.
#[derive(Clone, Debug)]
struct Page {
    versions: Versions<SectorData>,
    /// Parts that were changed, as long as no sync covers that.
    changed: Vec<(Moment, Range<usize>)>,
    /// What a cut may have left behind the end of the file: it may show there when the file grows.
    behind: Vec<SectorData>,
    /// Where the end of the file was, in this page.
    end: usize,
    /// A cut left what the block held before the file had it: so may the bytes behind the end be.
    stale: bool,
}

impl Default for Page {
    fn default() -> Self {
        Self::of(ZERO)
    }
}

impl Page {
    fn of(covered: SectorData) -> Self {
        let (changed, behind) = (Vec::new(), Vec::new());
        Self { versions: Versions::of(covered), changed, behind, end: BYTES, stale: false }
    }

    /// Whether it may show what its block held before.
    fn may_be_stale(&self, stale: Stale) -> bool {
        let may_be_new = match stale {
            Stale::Never => return false,
            Stale::NewBlocks => self.versions.all().any(|value| *value == ZERO),
            Stale::Written => true,
        };
        self.stale || self.versions.has_later() && may_be_new
    }

    /// A part of its content is changed to that of `with`.
    fn change(&mut self, at: Moment, part: Range<usize>, with: &SectorData) {
        let content = match part.len() {
            BYTES => with.clone(),
            _ => self.versions.newest().overlaid(part.clone(), with).unwrap_or_default(),
        };
        self.versions.push(at, content);
        if !self.behind.is_empty() || self.stale {
            self.changed.push((at, part));
        }
    }

    fn cover(&mut self, until: Moment) {
        if !self.versions.cover(until) {
            return;
        }
        let count = self.changed.partition_point(|(at, _)| *at <= until);
        for (_, part) in self.changed.drain(..count) {
            if part.len() == BYTES {
                self.behind.clear();
                self.stale = false;
            }
            for behind in &mut self.behind {
                let covered = behind.overlaid(part.clone(), self.versions.covered());
                *behind = covered.unwrap_or_default();
            }
        }
    }

    /// Whether the first `len` bytes are those of a version, or behind the old end what a cut may have left.
    fn shows(&self, version: &SectorData, content: &SectorData, len: u64) -> bool {
        same(version, content, len) || self.shows_behind(version, content, len as usize)
    }

    /// Whether the first `len` bytes are those of any version.
    fn is_known(&self, content: &SectorData, len: u64) -> bool {
        self.versions.all().any(|value| self.shows(value, content, len))
    }

    fn shows_behind(&self, version: &SectorData, content: &SectorData, len: usize) -> bool {
        if self.behind.is_empty() || len <= self.end {
            return false;
        }
        let (Some(version), Some(content)) = (version.expand(), content.expand()) else {
            return false;
        };
        let behind: Vec<_> = self.behind.iter().filter_map(SectorData::expand).collect();
        (0..len).all(|at| {
            let shown = content[at];
            shown == version[at] || at >= self.end && behind.iter().any(|old| old[at] == shown)
        })
    }
}

/// Attributes that calls set.
#[derive(Clone, Default, Debug)]
struct Attributes {
    /// Permission bits and owner.
    owner: Versions<(u16, u32)>,
    xattrs: BTreeMap<Vec<u8>, Versions<Option<Vec<u8>>>>,
}

/// What a file may be.
#[derive(Clone, Default, Debug)]
pub(crate) struct File {
    size: Versions<u64>,
    pages: BTreeMap<u64, Page>,
    attributes: Attributes,
}

impl File {
    /// A new file.
    pub(super) fn new(mode: u16) -> Self {
        let owner = Versions::of((mode, 0));
        Self { attributes: Attributes { owner, ..Attributes::default() }, ..Self::default() }
    }

    pub(super) fn size(&self) -> u64 {
        *self.size.newest()
    }

    /// Part of a page is written with what `with` holds there; `with` is a whole page.
    pub(super) fn write(&mut self, at: Moment, page: u64, part: Range<usize>, with: &SectorData) {
        self.grow(at, page * PAGE + part.end as u64);
        self.pages.entry(page).or_default().change(at, part, with);
    }

    /// The length is at least this now.
    pub(super) fn grow(&mut self, at: Moment, end: u64) {
        if end > self.size() {
            self.size.push(at, end);
        }
    }

    /// The length is set.
    pub(super) fn truncate(&mut self, at: Moment, size: u64) {
        self.size.push(at, size);
        for (index, page) in self.pages.range_mut(size / PAGE..) {
            let kept = size.saturating_sub(index * PAGE) as usize;
            page.change(at, kept..BYTES, &ZERO);
        }
    }

    /// A range becomes zeroes.
    pub(super) fn zero(&mut self, at: Moment, range: &Range<u64>) {
        for (index, page) in self.pages.range_mut(range.start / PAGE..range.end.div_ceil(PAGE)) {
            let from = range.start.saturating_sub(index * PAGE).min(PAGE) as usize;
            let to = (range.end - index * PAGE).min(PAGE) as usize;
            page.change(at, from..to, &ZERO);
        }
    }

    pub(super) fn set_owner(&mut self, at: Moment, mode: Option<u16>, uid: Option<u32>) {
        let (old_mode, old_uid) = *self.attributes.owner.newest();
        self.attributes.owner.push(at, (mode.unwrap_or(old_mode), uid.unwrap_or(old_uid)));
    }

    pub(super) fn set_xattr(&mut self, at: Moment, name: &[u8], value: Option<&[u8]>) {
        let versions = self.attributes.xattrs.entry(name.to_vec()).or_default();
        versions.push(at, value.map(<[u8]>::to_vec));
    }

    /// The first page that is no zeroes.
    pub(super) fn first_data(&self) -> Option<u64> {
        let end = self.size().div_ceil(PAGE);
        let mut pages = self.pages.range(..end);
        pages.find(|(_, page)| *page.versions.newest() != ZERO).map(|(index, _)| *index)
    }

    /// Extended attributes as they were set last.
    pub(super) fn xattrs(&self) -> Xattrs {
        let newest = |(name, value): (&Vec<u8>, &Versions<Option<Vec<u8>>>)| {
            Some((name.clone(), value.newest().clone()?))
        };
        self.attributes.xattrs.iter().filter_map(newest).collect()
    }

    /// Content that was there at a moment is covered, the length with it.
    pub(super) fn cover_content(&mut self, until: Moment) {
        self.size.cover(until);
        self.pages.values_mut().for_each(|page| page.cover(until));
    }

    /// Everything that was there at a moment is covered.
    pub(super) fn cover(&mut self, until: Moment) {
        self.cover_content(until);
        self.attributes.owner.cover(until);
        for value in self.attributes.xattrs.values_mut() {
            value.cover(until);
        }
    }

    fn may_have(&self, size: u64) -> bool {
        let all = || self.size.all().copied();
        let (least, most) = (all().min().unwrap_or(0), all().max().unwrap_or(0));
        all().any(|known| known == size)
            || (least..=most).contains(&size) && size.is_multiple_of(PAGE)
    }

    /// Whether a power cut may have left this.
    ///
    /// # Errors
    /// What is wrong.
    pub(super) fn judge(&self, seen: &FileSnapshot, stale: Stale) -> Result<(), String> {
        if !self.may_have(seen.size) {
            let later = or_later(self.size.later().map(ToString::to_string));
            return Err(format!(
                "length {}; expected {} (synced){later}",
                seen.size,
                self.size.covered()
            ));
        }
        let unknown = Page::default();
        for (index, content) in (0..).zip(&seen.pages) {
            let page = self.pages.get(&index).unwrap_or(&unknown);
            let len = (seen.size - index * PAGE).min(PAGE);
            if !page.is_known(content, len) && !page.may_be_stale(stale) {
                let (shown, covered) = (describe(content), describe(page.versions.covered()));
                let later = or_later(page.versions.later().map(describe));
                let differs = where_differs(content, page.versions.newest());
                return Err(format!(
                    "page {index}: {shown}; expected {covered} (synced){later}{differs}"
                ));
            }
        }
        self.attributes.judge(seen)
    }

    /// Pages that show neither what was covered nor anything that was written since. Asked of what
    /// [`File::judge`] accepted.
    pub(super) fn former_blocks(&self, seen: &FileSnapshot) -> u64 {
        let unknown = Page::default();
        let is_former = |(index, content): &(u64, &SectorData)| {
            let page = self.pages.get(index).unwrap_or(&unknown);
            !page.is_known(content, (seen.size - index * PAGE).min(PAGE))
        };
        (0..).zip(&seen.pages).filter(is_former).count() as u64
    }

    /// Whether a read in operation may show this content of a page, up to the end of the file.
    pub(super) fn may_show(&self, index: u64, content: &SectorData) -> bool {
        let len = self.size().saturating_sub(index * PAGE).min(PAGE);
        let Some(page) = self.pages.get(&index) else { return *content == ZERO };
        page.stale || page.shows(page.versions.newest(), content, len)
    }

    /// What a cut left is what was covered. What may lie behind the end stays possible.
    pub(super) fn settle(&mut self, seen: &FileSnapshot, stale: Stale) {
        let pages = (0..).zip(&seen.pages).map(|(index, content)| {
            let settled = Page::of(content.clone());
            let len = seen.size - index * PAGE;
            let Some(known) = self.pages.get(&index).filter(|_| len < PAGE) else {
                return (index, settled);
            };
            let same = known.versions.all().filter(|value| same(value, content, len));
            // What was behind the end before may be there still, whatever was written before it.
            let behind: Vec<_> = same.chain(&known.behind).cloned().collect();
            let is_stale = known.may_be_stale(stale) || stale != Stale::Never && behind.is_empty();
            (index, Page { behind, stale: is_stale, end: len as usize, ..settled })
        });
        let pages = pages.collect();
        let xattrs = seen.xattrs.iter();
        let xattrs =
            xattrs.map(|(name, value)| (name.clone(), Versions::of(Some(value.clone())))).collect();
        let owner = Versions::of((seen.mode, seen.uid));
        *self =
            Self { size: Versions::of(seen.size), pages, attributes: Attributes { owner, xattrs } };
    }

    /// A call after `since` was refused, and may have done a part of its work: the newest content is what the
    /// file shows. What the call was to write over may lie behind the end of the file still.
    ///
    /// # Errors
    /// It shows what the call was not to leave.
    pub(super) fn relearn(
        &mut self,
        since: Moment,
        at: Moment,
        seen: &FileSnapshot,
        stale: Stale,
    ) -> Result<(), String> {
        self.judge(seen, stale)?;
        for page in self.pages.values_mut() {
            page.changed.retain(|(changed, _)| *changed <= since);
        }
        self.size.push(at, seen.size);
        for (index, content) in (0..).zip(&seen.pages) {
            let page = self.pages.entry(index).or_default();
            page.versions.push(at, content.clone());
        }
        for (_, page) in self.pages.range_mut(seen.pages.len() as u64..) {
            page.versions.push(at, ZERO);
        }
        self.attributes.relearn(at, &seen.xattrs, (seen.mode, seen.uid));
        Ok(())
    }
}

impl Attributes {
    fn judge(&self, seen: &FileSnapshot) -> Result<(), String> {
        let (mode, uid) = (seen.mode, seen.uid);
        if !self.owner.all().any(|known| *known == (mode, uid)) {
            let show = |(mode, uid): &(u16, u32)| format!("mode {mode:o}, owner {uid}");
            let known: Vec<_> = self.owner.all().map(show).collect();
            return Err(format!("{}; expected {}", show(&(mode, uid)), known.join(" or ")));
        }
        let unknown = Versions::default();
        for name in self.xattrs.keys().chain(seen.xattrs.keys()) {
            let known = self.xattrs.get(name).unwrap_or(&unknown);
            let value = seen.xattrs.get(name);
            if !known.all().any(|known| known.as_ref() == value) {
                let name = String::from_utf8_lossy(name);
                let size = |value: Option<&Vec<u8>>| {
                    value.map_or("absent".to_owned(), |value| format!("{} bytes", value.len()))
                };
                let known: Vec<_> = known.all().map(|value| size(value.as_ref())).collect();
                let shown = size(value);
                return Err(format!("xattr {name}: {shown}; expected {}", known.join(" or ")));
            }
        }
        Ok(())
    }

    fn relearn(&mut self, at: Moment, xattrs: &Xattrs, owner: (u16, u32)) {
        self.owner.push(at, owner);
        for (name, versions) in &mut self.xattrs {
            versions.push(at, xattrs.get(name).cloned());
        }
    }
}

/// Whether a content is what a page shows whose first `len` bytes are in the file.
fn same(value: &SectorData, shown: &SectorData, len: u64) -> bool {
    if len >= PAGE { value == shown } else { cut_page(value, len) == *shown }
}

/// The bytes in which two contents differ, as the first and the last.
fn where_differs(one: &SectorData, other: &SectorData) -> String {
    let (Some(one), Some(other)) = (one.expand(), other.expand()) else { return String::new() };
    let mut differ = (0..one.len()).filter(|at| one[*at] != other[*at]);
    let (first, last) = (differ.next(), differ.next_back());
    let Some(first) = first else { return String::new() };
    let last = last.unwrap_or(first);
    format!("; differs from the newest in bytes {first} to {last}")
}

/// What may be there in place of what was synced.
fn or_later(later: impl Iterator<Item = String>) -> String {
    let later: Vec<_> = later.map(|later| format!(" or {later} (later)")).collect();
    later.concat()
}

/// A content in few words.
pub(crate) fn describe(content: &SectorData) -> String {
    match content {
        SectorData::Absent => "nothing that was kept".to_owned(),
        SectorData::Tag(Tag::ZERO) => "zeroes".to_owned(),
        SectorData::Tag(tag) => format!("tag {:x}", tag.bits()),
        bytes => bytes.bytes().map_or_else(String::new, |bytes| {
            let first: String = bytes[..16].iter().map(|byte| format!("{byte:02x}")).collect();
            format!("bytes {first}...")
        }),
    }
}
