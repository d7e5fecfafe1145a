//! Replay of a GC journal that a test writes itself, over volumes that were cut: each scene is one that a rule of
//! docs/semantics/f2fs.md is for, and is shown to go wrong without it where a mount can leave the rule out.

use crate::common::image::{Content, content};
use crate::common::volume::{Device, assert_sound, loaded, memory, mounted, run};
use nandscape_block::{AsyncDevice, Payload, SectorBytes, SectorData, Tag};
use nandscape_fs::contract::{Caller, Data, FileSystem, Ino, Io};
use nandscape_fs::f2fs::check::check;
use nandscape_fs::f2fs::format::GcJournalFormat::{Paper, Safe};
use nandscape_fs::f2fs::format::*;
use nandscape_fs::f2fs::mkfs::{MkfsOptions, mkfs};
use nandscape_fs::f2fs::raw::{F2fsImage, RawInode};
use nandscape_fs::f2fs::{F2fs, MountOptions, OmittedRule, ZoneGeometry};
use std::collections::BTreeMap;
use std::sync::Arc;

const ME: Caller = Caller { thread: 0, core: 0, uid: 0, gid: 0 };
const SECTORS: u64 = 64 << 8;
/// Pages of each file: too many to be inline.
const PAGES: u32 = 8;
/// What stands where something was reused.
const REUSED: u64 = 0xdead_0000;
/// Pages of a file whose inode names its largest extent.
const LONG: u32 = 100;

/// A volume after a cut, whose journal and blocks a test changes.
struct Scene {
    content: Content,
    area: GcJournalArea,
    version: u64,
    /// The main area's last two segments, where nothing lies: of data, of nodes.
    free: u32,
    free_node: u32,
    /// Where the warm node log of the checkpoint goes on.
    chain: BlockAddr,
    inos: BTreeMap<&'static str, Nid>,
    /// Where inodes lie.
    nodes: BTreeMap<&'static str, BlockAddr>,
}

fn tags(tag: u64) -> Data {
    Data::Sectors(Payload::Run(Tag::new(tag)), PAGES)
}

/// A volume with files "f" (tags from 1,000) and "g" (from 2,000), and a checkpoint; then `after` runs, and power fails.
fn scene(after: impl AsyncFnOnce(&F2fs, Ino) + 'static) -> Scene {
    scene_on(None, after)
}

/// The same with the layout of a device with zones, if some are given.
fn scene_on(zones: Option<ZoneGeometry>, after: impl AsyncFnOnce(&F2fs, Ino) + 'static) -> Scene {
    run(async move |rt| {
        let device = memory(&rt, SECTORS);
        let options = MkfsOptions { gc_journal: true, fresh: true, zones, ..MkfsOptions::new(1) };
        mkfs(&device.erased(), &options).await.expect("mkfs");
        let fs = mounted(&rt, &device, &MountOptions::default()).await;
        let mut inos = BTreeMap::new();
        for (name, tag) in [("f", 1_000), ("g", 2_000)] {
            let ino = fs.create(ME, fs.root(), name.as_bytes(), 0o644).await.expect("a file").ino;
            fs.write_all(ME, ino, 0, tags(tag), Io::Buffered).await.expect("a write");
            inos.insert(name, Nid(ino.0 as u32));
        }
        fs.syncfs(ME).await.expect("a checkpoint");
        after(&fs, Ino(inos["f"].0.into())).await;
        let content = content(&device);
        let image = F2fsImage::open(&loaded(&rt, SECTORS, &content).await.erased()).await;
        let image = image.expect("a volume");
        let mut nodes = BTreeMap::new();
        for (name, ino) in &inos {
            nodes.insert(*name, image.nat_entry(*ino).await.expect("an entry").block_addr);
        }
        let log = image.checkpoint.log(SegmentType::WarmNode);
        Scene {
            content,
            area: image.sb.gc_journal().expect("an area"),
            version: image.checkpoint.checkpoint_ver,
            free: image.layout.area(Area::Main).end.0 - 512,
            free_node: image.layout.area(Area::Main).end.0 - 1_024,
            chain: image.layout.block(log.segno, log.blkoff.into()).expect("a block"),
            inos,
            nodes,
        }
    })
}

/// Nothing after the checkpoint.
fn quiet() -> Scene {
    scene(async |_, _| ())
}

impl Scene {
    /// Where the sector with a tag lies.
    fn place_of(&self, tag: u64) -> BlockAddr {
        let found = self.content.iter().find(|(_, data)| **data == SectorData::Tag(Tag::new(tag)));
        BlockAddr(*found.expect("the tag").0 as u32)
    }

    /// An inode below the root, and its pages, each with its place.
    fn blocks_of(&self, name: &'static str) -> (RawInode, Vec<(u32, BlockAddr)>) {
        let content = self.content.clone();
        run(async move |rt| {
            let device = loaded(&rt, SECTORS, &content).await;
            let image = F2fsImage::open(&device.erased()).await.expect("a volume");
            let root = image.inode(image.sb.root_ino).await.expect("the root");
            let names = image.names(&root).await.expect("names");
            let found = names.iter().find(|found| found.name == name.as_bytes());
            let inode = image.inode(found.expect("the name").ino).await.expect("an inode");
            let node = image.file_nodes(&inode).next().await.expect("a node").expect("sound");
            let pages = (0..).zip(node.slots.iter(&node.node.bytes));
            (inode, pages.filter(|(_, at)| at.is_block()).collect())
        })
    }

    /// Moves a block of data to its free segment, and something else takes its place. Returns both places.
    fn move_block(&mut self, old: BlockAddr, index: u32) -> (BlockAddr, BlockAddr) {
        self.move_to(old, BlockAddr(self.free + index))
    }

    /// The same of a node.
    fn move_node(&mut self, old: BlockAddr, index: u32) -> (BlockAddr, BlockAddr) {
        self.move_to(old, BlockAddr(self.free_node + index))
    }

    fn move_to(&mut self, old: BlockAddr, new: BlockAddr) -> (BlockAddr, BlockAddr) {
        let moved = self.content.remove(&old.0.into()).expect("a block");
        self.content.insert(new.0.into(), moved);
        let reused = SectorData::Tag(Tag::new(REUSED + u64::from(old.0)));
        self.content.insert(old.0.into(), reused);
        (old, new)
    }

    fn page(&self, file: &str, page: u32, (old, new): (BlockAddr, BlockAddr)) -> SafeEntry {
        SafeEntry { old, new, moved: MovedBlock::Data { ino: self.inos[file], page } }
    }

    fn node(&self, file: &str, (old, new): (BlockAddr, BlockAddr)) -> SafeEntry {
        SafeEntry { old, new, moved: MovedBlock::Node(self.inos[file]) }
    }

    fn put(&mut self, at: BlockAddr, bytes: SectorBytes) {
        self.content.insert(at.0.into(), SectorData::Bytes(Arc::new(bytes)));
    }

    /// Writes block `index` of the journal, at the start of its area.
    fn journal(
        &mut self,
        format: GcJournalFormat,
        (index, checkpoint_ver): (u32, u64),
        chain: BlockAddr,
        entries: &[SafeEntry],
    ) {
        self.journal_at(index, format, (index, checkpoint_ver), (chain, entries));
    }

    /// Writes a block of the journal to a place of its area.
    fn journal_at(
        &mut self,
        place: u32,
        format: GcJournalFormat,
        (index, checkpoint_ver): (u32, u64),
        (chain, entries): (BlockAddr, &[SafeEntry]),
    ) {
        let mut bytes = [0; BLOCK_BYTES];
        let entries = entries.to_vec();
        match format {
            Safe => SafeBlock { checkpoint_ver, index, chain, entries }.encode(&mut bytes),
            Paper => {
                let bare = |entry: SafeEntry| PaperEntry { old: entry.old, new: entry.new };
                let entries = entries.into_iter().map(bare).collect();
                PaperBlock { checkpoint_ver, entries }.encode(&mut bytes);
            }
        }
        self.put(self.area.block(place).expect("a place"), bytes);
    }

    fn mark(&mut self, format: GcJournalFormat) {
        for copy in 0..2 {
            let mut bytes = *self.content[&copy].expand().expect("a superblock");
            mark(&mut bytes[SUPERBLOCK_AT..], copy as u32, format).expect("a mark");
            self.put(BlockAddr(copy as u32), bytes);
        }
    }

    /// Mounts what is there, without a rule if one is named, and says what both files hold. What is unmounted then is
    /// sound, unless a rule was left out, and so is what a second mount shows.
    fn mounted(self, omit: Option<OmittedRule>) -> Result<[Vec<u8>; 2], String> {
        let Self { content, area, .. } = self;
        let (shown, device) = run(async move |rt| {
            let device = loaded(&rt, SECTORS, &content).await;
            let shown = shown(&rt, &device.erased(), omit).await;
            if omit.is_none() {
                let again = self::shown(&rt, &device.erased(), None).await;
                assert_eq!(again, shown, "a second mount shows the same");
                assert_clean(&device).await;
            }
            (shown, device)
        });
        // fsck.f2fs takes no volume for zones on a device without any.
        if omit.is_none() && area.zone_blocks().is_none() {
            assert_sound(&device);
        }
        shown
    }

    /// The same with the rule; then both files are what they were.
    fn assert_whole(self) {
        assert!(self.mounted(None) == Ok(whole()), "files are what they were");
    }
}

/// What "f" and "g" hold.
fn whole() -> [Vec<u8>; 2] {
    [1_000, 2_000].map(|tag| tags(tag).to_bytes())
}

/// Our check finds nothing.
async fn assert_clean(device: &Device) {
    let report = check(&device.erased()).await.expect("a report");
    assert!(report.is_clean(), "{:?}", report.findings);
}

async fn shown(
    rt: &nandscape_rt::Handle,
    device: &AsyncDevice,
    omit: Option<OmittedRule>,
) -> Result<[Vec<u8>; 2], String> {
    let options = MountOptions { omit, ..MountOptions::default() };
    let mounted = F2fs::mount(rt, device.clone(), options).await;
    let (fs, _) = mounted.map_err(|error| error.to_string())?;
    let mut files = [Vec::new(), Vec::new()];
    for (file, name) in files.iter_mut().zip(["f", "g"]) {
        let ino = fs.lookup(ME, fs.root(), name.as_bytes()).await.map_err(|e| e.to_string())?.ino;
        let read = fs.read(ME, ino, 0, 1 << 20, Io::Buffered).await;
        *file = read.map_err(|error| error.to_string())?.to_bytes();
    }
    fs.unmount().await.map_err(|error| error.to_string())?;
    Ok(files)
}

/// Pages and nodes are where the journal says, although something else lies where the checkpoint has them; also where
/// they were moved twice. Without a mark they are not.
#[test]
fn what_was_moved_is_found() {
    for format in [Safe, Paper] {
        let moved = |with_mark: bool| {
            let mut scene = quiet();
            let (chain, version) = (scene.chain, scene.version);
            let first = scene.move_block(scene.place_of(1_003), 0);
            let second = scene.move_block(first.1, 1);
            let node = scene.move_node(scene.nodes["g"], 0);
            let entries = [scene.page("f", 3, first), scene.node("g", node)];
            scene.journal(format, (0, version), chain, &entries);
            let entry = scene.page("f", 3, second);
            scene.journal(format, (1, version), chain, &[entry]);
            if with_mark {
                scene.mark(format);
            }
            scene
        };
        moved(true).assert_whole();
        assert!(moved(false).mounted(Some(OmittedRule::GcMark)) != Ok(whole()), "without a mark");
    }
}

/// An address that another file got meanwhile moves nothing of it that the checkpoint has.
#[test]
fn reused_addresses_move_nothing_else() {
    for format in [Safe, Paper] {
        let reused = || {
            let mut scene = quiet();
            let (chain, version) = (scene.chain, scene.version);
            let (old, new) = scene.move_block(scene.place_of(1_000), 0);
            // Page 5 of "g", written after the checkpoint and not synced, took the place and was moved.
            let other = scene.move_block(old, 1);
            let entries = [scene.page("f", 0, (old, new)), scene.page("g", 5, other)];
            scene.journal(format, (0, version), chain, &entries);
            scene.mark(format);
            scene
        };
        reused().assert_whole();
        if format == Safe {
            let shown = reused().mounted(Some(OmittedRule::GcLocation));
            assert!(shown.is_ok() && shown != Ok(whole()), "by the owner alone");
        }
    }
}

/// What an fsync made durable and cleaning moved after it is found: entries come after the node of the fsync.
#[test]
fn replay_passes_through_roll_forward() {
    let moved = || {
        let mut scene = scene(async |fs, file| {
            fs.write_all(ME, file, 0, tags(3_000), Io::Buffered).await.expect("a write");
            fs.fsync(ME, file).await.expect("a sync");
        });
        let bytes = scene.content[&u64::from(scene.chain.0)].expand().expect("a node");
        let after = BlockAddr(NodeFooter::parse(&bytes).next_blkaddr);
        let places = scene.move_block(scene.place_of(3_004), 0);
        let entry = scene.page("f", 4, places);
        let version = scene.version;
        scene.journal(Safe, (0, version), after, &[entry]);
        scene.mark(Safe);
        scene
    };
    let expected = [3_000, 2_000].map(|tag| tags(tag).to_bytes());
    assert!(moved().mounted(None) == Ok(expected.clone()), "the newest content");
    assert!(
        moved().mounted(Some(OmittedRule::GcChain)) != Ok(expected),
        "entries before all nodes"
    );
}

/// A page is found by its inode, which was moved later, and whose place holds something else by now.
#[test]
fn nodes_are_read_from_their_last_copies() {
    for format in [Safe, Paper] {
        let moved = || {
            let mut scene = quiet();
            let (chain, version) = (scene.chain, scene.version);
            let page = scene.move_block(scene.place_of(1_002), 0);
            let node = scene.move_node(scene.nodes["f"], 0);
            let again = scene.move_node(node.1, 1);
            let entries = [scene.page("f", 2, page), scene.node("f", node), scene.node("f", again)];
            scene.journal(format, (0, version), chain, &entries);
            scene.mark(format);
            scene
        };
        moved().assert_whole();
        let shown = moved().mounted(Some(OmittedRule::GcLastCopies));
        assert!(shown != Ok(whole()), "nodes are read where the checkpoint has them");
    }
}

/// Blocks of an earlier checkpoint are none, and those after a gap or a torn block are not applied.
#[test]
fn the_first_block_that_does_not_count_ends_the_journal() {
    let stale = || {
        let mut scene = quiet();
        let (chain, version) = (scene.chain, scene.version);
        let places = (scene.place_of(1_000), BlockAddr(scene.free));
        let entry = scene.page("f", 0, places);
        scene.journal(Safe, (0, version - 1), chain, &[entry]);
        scene.mark(Safe);
        scene
    };
    stale().assert_whole();
    assert!(stale().mounted(Some(OmittedRule::GcVersion)) != Ok(whole()), "of any version");
    for is_torn in [false, true] {
        let mut scene = quiet();
        let (chain, version) = (scene.chain, scene.version);
        let entry = |scene: &Scene, page: u32| {
            let old = scene.place_of(1_000 + u64::from(page));
            scene.page("f", page, (old, BlockAddr(scene.free + page)))
        };
        if is_torn {
            let entries = [entry(&scene, 0)];
            scene.journal(Safe, (0, version), chain, &entries);
            let at = scene.area.block(0).expect("a place");
            let mut bytes = *scene.content[&u64::from(at.0)].expand().expect("a block");
            bytes[2_000] ^= 1;
            scene.put(at, bytes);
        }
        let entries = [entry(&scene, 1)];
        scene.journal(Safe, (1, version), chain, &entries);
        scene.mark(Safe);
        scene.assert_whole();
    }
}

/// Blocks of a version that begin in the second zone of the area, after older ones, and go on in the first, count in the
/// order in which they were written.
#[test]
fn a_journal_goes_on_in_its_first_zone() {
    let zones = ZoneGeometry { first: 12 * 512, blocks: 512, capacity: 512, max_active: 0 };
    for format in [Safe, Paper] {
        let mut scene = scene_on(Some(zones), async |_, _| ());
        let (chain, version) = (scene.chain, scene.version);
        let zone = scene.area.zone_blocks().expect("two zones");
        let first = scene.move_block(scene.place_of(1_003), 0);
        let second = scene.move_block(first.1, 1);
        let entries = [first, second].map(|places| scene.page("f", 3, places));
        for older in 0..zone - 1 {
            let entry = scene.page("g", 0, (scene.place_of(2_000), BlockAddr(scene.free + 2)));
            scene.journal_at(zone + older, format, (older, version - 1), (chain, &[entry]));
        }
        scene.journal_at(2 * zone - 1, format, (0, version), (chain, &entries[..1]));
        scene.journal_at(0, format, (1, version), (chain, &entries[1..]));
        scene.mark(format);
        scene.assert_whole();
    }
}

/// An inode names its largest extent on the device; after a replay that moved a page of it, it names it no more.
#[test]
fn an_extent_with_a_moved_page_is_forgotten() {
    for format in [Safe, Paper] {
        let long = || Data::Sectors(Payload::Run(Tag::new(4_000)), LONG);
        let mut scene = scene(async move |fs, _| {
            let ino = fs.create(ME, fs.root(), b"long", 0o644).await.expect("a file").ino;
            fs.write_all(ME, ino, 0, long(), Io::Buffered).await.expect("a write");
            fs.syncfs(ME).await.expect("a checkpoint");
        });
        let (inode, blocks) = scene.blocks_of("long");
        assert_eq!((inode.inode.ext_fofs, inode.inode.ext_len), (0, LONG), "one extent");
        let (page, at) = blocks[50];
        let (old, new) = scene.move_block(at, 0);
        let entry = SafeEntry { old, new, moved: MovedBlock::Data { ino: inode.node.nid, page } };
        let (chain, version) = (scene.chain, scene.version);
        scene.journal(format, (0, version), chain, &[entry]);
        scene.mark(format);
        let device = run(async move |rt| {
            let device = loaded(&rt, SECTORS, &scene.content).await;
            let fs = mounted(&rt, &device, &MountOptions::default()).await;
            let ino = fs.lookup(ME, fs.root(), b"long").await.expect("the file").ino;
            let read = fs.read(ME, ino, 0, 1 << 20, Io::Buffered).await.expect("content");
            assert!(read.to_bytes() == long().to_bytes());
            fs.unmount().await.expect("an unmount");
            assert_clean(&device).await;
            device
        });
        assert_sound(&device);
    }
}
