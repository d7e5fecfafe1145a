//! What calls alone do not bring about: blocks that others had shared, and records that say anything.

use super::check::check;
use super::format::*;
use super::journal::FileRecord;
use super::mkfs::{MkfsOptions, mkfs};
use super::volume::Volume;
use super::{Ext4, MountOptions};
use crate::contract::{Caller, Data, FileSystem, FsError, Ino, Io, WriteHint, XattrMode};
use nandscape_block::{
    AsyncDevice, Bio, BlockDevice, Completion, DeviceCaps, MemDevice, Op, Placement, SectorBytes,
    Submit, Token,
};
use nandscape_rt::combine::join2;
use nandscape_rt::{Executor, Handle, Nanos};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

const ME: Caller = Caller { thread: 0, core: 0, uid: 0, gid: 0 };

/// Does something with a new volume, whose device takes 100 us for each bio; it is sound afterwards.
fn on_volume(options: MountOptions, work: impl AsyncFnOnce(&Handle, &Ext4) + 'static) {
    let mut executor = Executor::on_virtual_clock();
    let rt = executor.handle();
    let ran = executor.block_on(async move {
        let medium = MemDevice::new(8_192).with_latency(Nanos::from_us(100));
        let device = AsyncDevice::new(&rt, medium).erased();
        let made = MkfsOptions { journal_blocks: Some(1_024), fresh: true, ..MkfsOptions::new(1) };
        mkfs(&device, &made).await.expect("a file system");
        let (fs, _) = Ext4::mount(&rt, device.clone(), options).await.expect("a mount");
        work(&rt, &fs).await;
        fs.unmount().await.expect("an unmount");
        let report = check(&device).await.expect("a file system");
        let findings: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
        assert_eq!(findings, Vec::<String>::new());
    });
    ran.expect("no deadlock");
}

async fn create(fs: &Ext4, name: &str) -> Ino {
    fs.create(ME, fs.root(), name.as_bytes(), 0o644).await.expect("room").ino
}

/// Has the others share the first file's block of attributes.
async fn share_attributes(volume: &Volume, files: &[Ino]) -> Result<(), FsError> {
    let block = volume.inode_of(files[0]).await?.raw.borrow().file_acl;
    let tx = volume.meta.begin(16, 0).await?;
    let buffer = volume.meta.read_block(block).await?;
    let edited = tx.edit(&buffer, |bytes| {
        let (_, xattrs) = parse_xattr_block(bytes, Place::Block(block))?;
        let mut shared = [0; BLOCK_BYTES];
        assert!(encode_xattr_block(&mut shared, files.len() as u32, &xattrs));
        seal_xattr_block(&mut shared, block, volume.meta.sb.borrow().csum_seed());
        bytes.copy_from_slice(&shared);
        Ok::<_, FormatError>(())
    });
    edited.await??;
    for other in &files[1..] {
        let inode = volume.inode_of(*other).await?;
        inode.raw.borrow_mut().file_acl = block;
        inode.add_blocks(1);
        volume.meta.write_inode(&tx, &inode, false).await?;
    }
    tx.stop();
    Ok(())
}

/// Removes shared attributes of all files: of one, and then of two while that is being committed.
async fn give_up(rt: &Handle, fs: &Ext4, after_us: u64) {
    let files = [create(fs, "a").await, create(fs, "b").await, create(fs, "c").await];
    let name = b"user.large";
    fs.setxattr(ME, files[0], name, &[7; 900], XattrMode::Set).await.expect("room");
    share_attributes(&fs.0, &files).await.expect("a shared block");
    let remove = |file| fs.removexattr(ME, file, name);
    assert_eq!(remove(files[0]).await, Ok(()));
    let syncing = fs.clone();
    let sync = rt.spawn("sync", async move { syncing.syncfs(ME).await });
    rt.sleep(Nanos::from_us(after_us)).await;
    assert_eq!(join2(remove(files[1]), remove(files[2])).await, (Ok(()), Ok(())));
    assert_eq!(sync.await, Ok(Ok(())));
}

/// Inodes that share a block of attributes give it up at the same time, while the journal copies it: each
/// is counted, and the last one frees it.
#[test]
fn a_shared_block_of_attributes_is_given_up_by_each() {
    for after_us in (0..600).step_by(50) {
        on_volume(MountOptions::default(), async move |rt, fs| give_up(rt, fs, after_us).await);
    }
}

/// Inodes that stay in memory until their transaction is done leave it then.
#[test]
fn deferred_inodes_leave_memory_with_their_transaction() {
    on_volume(MountOptions { inodes: 16, ..MountOptions::default() }, async |_, fs| {
        let known = || fs.0.inodes.len();
        for file in 0..400 {
            create(fs, &format!("file{file}")).await;
        }
        assert!(known() >= 400, "all are deferred");
        assert_eq!(fs.syncfs(ME).await, Ok(()));
        create(fs, "one more").await;
        assert!(known() <= 16, "{} inodes in memory", known());
    });
}

/// Remembers how the writes of file data that it was sent are to be placed.
struct Placements {
    below: MemDevice,
    caps: DeviceCaps,
    seen: Rc<RefCell<Vec<u16>>>,
}

impl BlockDevice for Placements {
    fn caps(&self) -> &DeviceCaps {
        &self.caps
    }

    fn submit(&mut self, now: Nanos, mut bio: Bio, token: Token) -> Submit {
        if bio.op == Op::Write && bio.owner.is_some() {
            self.seen.borrow_mut().push(bio.placement.0);
        }
        // The device below has no handles, and refuses bios that name one.
        bio.placement = Placement(0);
        self.below.submit(now, bio, token)
    }

    fn next_event(&self) -> Option<Nanos> {
        self.below.next_event()
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        self.below.advance(now, done);
    }
}

/// Placements of a file's writes, cached and direct, with each of these hints in turn.
fn placements(handles: u16, hints: &'static [WriteHint]) -> Vec<u16> {
    let seen = Rc::new(RefCell::new(Vec::new()));
    let mut executor = Executor::on_virtual_clock();
    let (rt, log) = (executor.handle(), Rc::clone(&seen));
    let ran = executor.block_on(async move {
        let below = MemDevice::new(8_192);
        let caps = DeviceCaps { placement_handles: handles, ..below.caps().clone() };
        let device = AsyncDevice::new(&rt, Placements { below, caps, seen: log }).erased();
        let made = MkfsOptions { journal_blocks: Some(1_024), fresh: true, ..MkfsOptions::new(1) };
        mkfs(&device, &made).await.expect("a file system");
        let (fs, _) = Ext4::mount(&rt, device, MountOptions::default()).await.expect("a mount");
        let file = create(&fs, "f").await;
        for hint in hints {
            fs.set_write_hint(ME, file, *hint).await.expect("a hint");
            for io in [Io::Buffered, Io::Direct] {
                let page = Data::Bytes(vec![1; BLOCK_BYTES]);
                fs.write(ME, file, 0, page, io).await.expect("room");
                fs.fdatasync(ME, file).await.expect("durable");
            }
        }
    });
    ran.expect("no deadlock");
    seen.take()
}

/// A write hint is the placement of each bio of the file's data, as far as the device has handles.
#[test]
fn write_hints_reach_the_device() {
    let hints = &[WriteHint::None, WriteHint::Short, WriteHint::Extreme];
    assert_eq!(placements(8, hints), [0, 0, 1, 1, 4, 4]);
    assert_eq!(placements(2, hints), [0, 0, 1, 1, 2, 2]);
    assert_eq!(placements(0, hints), [0; 6]);
}

/// A record of an inode.
fn record(volume: &Volume, number: u32, raw: &Inode, nodes: &[(u64, ExtentNode)]) -> FileRecord {
    let sb = volume.meta.sb.borrow();
    let mut image = vec![0; sb.inode_bytes()];
    raw.encode(&mut image, raw.seed(number, &sb));
    let block = |(at, node): &(u64, ExtentNode)| {
        let mut bytes: SectorBytes = [0; BLOCK_BYTES];
        node.encode(&mut bytes);
        (*at, Arc::new(bytes))
    };
    let nodes = nodes.iter().map(block).collect();
    FileRecord { inode: number, generation: raw.generation, image, names: Vec::new(), nodes }
}

/// What is wrong with a record, if anything.
async fn refusal(volume: &Volume, record: FileRecord) -> Option<&'static str> {
    match volume.apply_files(vec![record]).await {
        Ok(()) => None,
        Err(FsError::Corrupt { what, .. }) => Some(what),
        Err(error) => panic!("{error}"),
    }
}

/// Records are applied to files, and to nothing else, whatever they say.
#[test]
fn records_that_no_file_can_have_are_refused() {
    on_volume(MountOptions::default(), async |_, fs| {
        let volume = &fs.0;
        let file = create(fs, "f").await;
        let page = Data::Bytes(vec![1; BLOCK_BYTES]);
        fs.write(ME, file, 0, page, Io::Buffered).await.expect("room");
        fs.syncfs(ME).await.expect("power is on");
        let (number, sb) = (file.0 as u32, volume.meta.sb.borrow().clone());
        let raw = volume.inode_of(file).await.expect("a file").raw.borrow().clone();
        let sound = || record(volume, number, &raw, &[]);
        let wrong = "record of a file: inode";
        for number in [ROOT_INODE, JOURNAL_INODE, sb.inodes_count + 1] {
            let said = refusal(volume, record(volume, number, &raw, &[])).await;
            assert_eq!(said, Some(wrong), "inode {number}");
        }
        let other = FileRecord { generation: raw.generation ^ 1, ..sound() };
        assert_eq!(refusal(volume, other).await, Some(wrong));
        let mut longer = sound();
        longer.image.resize(sb.inode_bytes() * 2, 0);
        raw.encode(&mut longer.image, raw.seed(number, &sb));
        assert_eq!(refusal(volume, longer).await, Some(wrong));
        let empty = ExtentNode::block_of(ExtentEntries::Leaf(Vec::new()));
        let (own, anybodys) =
            (volume.meta.alloc.groups.borrow()[0].desc.inode_table, sb.blocks_count - 1);
        for block in [0, own, sb.blocks_count] {
            let said =
                refusal(volume, record(volume, number, &raw, &[(block, empty.clone())])).await;
            assert_eq!(said, Some("blocks that no file can have"), "block {block}");
        }
        let index = |depth| {
            let entries = vec![ExtentIndex { logical: 0, node: anybodys }];
            ExtentNode::block_of(ExtentEntries::Index { depth, entries })
        };
        let over = |depth, below: ExtentNode| {
            let mut raw = raw.clone();
            ExtentNode { max: 4, ..index(depth) }.encode(&mut raw.map);
            record(volume, number, &raw, &[(anybodys, below)])
        };
        assert_eq!(refusal(volume, over(DEPTH_MAX + 1, index(DEPTH_MAX))).await, Some("too deep"));
        let depth = Some("record of a file: depth of its tree");
        assert_eq!(refusal(volume, over(2, empty)).await, depth);
        assert_eq!(refusal(volume, over(2, index(1))).await, depth, "a node that leads to itself");
        assert_eq!(refusal(volume, sound()).await, None);
    });
}
