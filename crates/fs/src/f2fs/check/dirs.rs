//! Names of directories (`__chk_dentries` of fsck.f2fs).

use super::checker::{Checker, Waiting};
use super::inodes::Named;
use crate::f2fs::format::*;
use crate::f2fs::raw::RawError;
use nandscape_block::BlockError;
use std::collections::BTreeSet;

/// What was seen of a directory.
#[derive(Default)]
struct Names {
    dots: u32,
    subdirectories: u32,
    names: BTreeSet<Vec<u8>>,
}

impl Checker {
    /// All names of a directory, and the inodes that they lead to.
    pub(super) async fn check_directory(&mut self, dir: Waiting) -> Result<(), BlockError> {
        let (inode, ino) = (&dir.inode.inode, dir.inode.node.nid);
        let mut names = Names::default();
        if inode.has_inline(inline::DENTRY) {
            let area = dir.inode.node.bytes.get(dir.inode.layout.inline_data());
            let area = area.unwrap_or_default().to_vec();
            self.check_names(&dir, &Dentries::inline(area), None, &mut names).await?;
        } else {
            self.check_blocks(&dir, &mut names).await?;
        }
        let place = Place::Inode(ino);
        let links = 2 + names.subdirectories;
        if inode.links != links {
            self.report.find(place, format!("link count is {}, counted {links}", inode.links));
        }
        if names.dots != 2 && !inode.has_inline(inline::DOTS) {
            self.report.find(place, "does not name itself and its parent once each");
        }
        Ok(())
    }

    async fn check_blocks(&mut self, dir: &Waiting, names: &mut Names) -> Result<(), BlockError> {
        let (inode, ino) = (&dir.inode.inode, dir.inode.node.nid);
        // The tree was checked; what is unsound there is not followed.
        let mut pages: Vec<(u64, BlockAddr)> = Vec::new();
        let mut nodes = self.image.file_nodes(&dir.inode);
        while let Some(dnode) = nodes.next().await {
            let dnode = match dnode {
                Ok(dnode) => dnode,
                Err(RawError::Device(error)) => return Err(error),
                Err(RawError::Format(_)) => continue,
            };
            let addrs = (dnode.first_page..).zip(dnode.slots.iter(&dnode.node.bytes));
            pages.extend(addrs.filter(|(_, addr)| self.image.layout.is_main(*addr)));
        }
        let mut beyond = 0;
        let mut read = BTreeSet::new();
        for (page, addr) in pages {
            beyond = beyond.max(page + 1);
            // A block that two pages share was found before.
            if !read.insert(addr) {
                continue;
            }
            let bytes = self.image.reader().block(addr.0.into()).await?;
            self.check_names(dir, &Dentries::block(&bytes[..]), Some(page), names).await?;
        }
        if inode.size < beyond * BLOCK_BYTES as u64 {
            let what = format!("size is {} bytes, but {beyond} blocks have names", inode.size);
            self.report.find(Place::Inode(ino), what);
        }
        Ok(())
    }

    /// The names of one block, or of the inode.
    async fn check_names<B: AsRef<[u8]>>(
        &mut self,
        dir: &Waiting,
        view: &Dentries<B>,
        page: Option<u64>,
        names: &mut Names,
    ) -> Result<(), BlockError> {
        let ino = dir.inode.node.nid;
        let place = Place::Directory { ino, block: page.unwrap_or_default() as u32 };
        for entry in view.iter() {
            match entry {
                Err(error) => self.report.unsound(&error.at(place)),
                Ok(entry) if is_dots(&entry) => self.check_dots(dir, &entry, place, names),
                Ok(entry) => self.check_name(dir, &entry, page, place, names).await?,
            }
        }
        Ok(())
    }

    fn check_dots(&mut self, dir: &Waiting, entry: &Dentry<'_>, place: Place, names: &mut Names) {
        let ino = dir.inode.node.nid;
        let is_root = ino == self.image.sb.root_ino;
        let expected = match entry.name {
            b"." => ino,
            _ if is_root => ino,
            _ => Nid(dir.inode.inode.pino),
        };
        names.dots += 1;
        let name = entry.name.escape_ascii();
        if entry.ino != expected {
            let what =
                format!("\"{name}\" refers to inode {}, expected {}", entry.ino.0, expected.0);
            self.report.find(place, what);
        }
        if entry.hash != 0 {
            self.report.find(place, format!("\"{name}\" has another hash than 0"));
        }
        if !names.names.insert(entry.name.to_vec()) {
            self.report.find(place, format!("\"{name}\" is a duplicate"));
        }
    }

    async fn check_name(
        &mut self,
        dir: &Waiting,
        entry: &Dentry<'_>,
        page: Option<u64>,
        place: Place,
        names: &mut Names,
    ) -> Result<(), BlockError> {
        let name = entry.name.escape_ascii();
        let mut find = |what: String| self.report.find(place, format!("\"{name}\" {what}"));
        if entry.hash != name_hash(entry.name) {
            find(format!(
                "has hash {:#010x}, and says {:#010x}",
                name_hash(entry.name),
                entry.hash
            ));
        }
        if !(file_type::REGULAR..=file_type::SYMLINK).contains(&entry.file_type) {
            find(format!("has unknown file type {}", entry.file_type));
            return Ok(());
        }
        if entry.name.iter().any(|byte| matches!(byte, 0 | b'/')) {
            find("has a byte that no name has".into());
        }
        if let Some(page) = page
            && !is_in_place(page, entry.hash, &dir.inode.inode)
        {
            find(format!("is in page {page}, where no search for it comes"));
        }
        if !names.names.insert(entry.name.to_vec()) {
            find("is a duplicate".into());
        }
        let (parent, file_type) = (dir.inode.node.nid, entry.file_type);
        names.subdirectories += u32::from(file_type == file_type::DIR && self.is_inode(entry.ino));
        self.check_inode(entry.ino, Named::Name { parent, file_type, place }).await
    }

    /// Whether a number is that of an inode that the NAT has.
    fn is_inode(&self, nid: Nid) -> bool {
        self.nat.get(&nid).is_some_and(|entry| entry.ino == nid)
    }
}

fn is_dots(entry: &Dentry<'_>) -> bool {
    entry.file_type == file_type::DIR && matches!(entry.name, b"." | b"..")
}

/// Whether a search for a name with this hash comes to a page of its directory.
fn is_in_place(page: u64, hash: u32, dir: &Inode) -> bool {
    let levels = dir.current_depth.min(DIR_LEVELS_MAX);
    (0..levels).any(|level| {
        let bucket = hash % dir_buckets(level, dir.dir_level);
        let first = dir_block_index(level, dir.dir_level, bucket);
        (first..first + u64::from(bucket_blocks(level))).contains(&page)
    })
}
