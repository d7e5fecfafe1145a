//! Promises about the content of files, and the space for it.

use super::*;
use nandscape_rt::combine::join_all;

/// 12, 13, 14: what is read is what was written last; else zeroes; nothing behind the end.
#[test]
fn content_is_what_was_written() {
    on_each(16, async |fs, _| {
        let file = create(fs, fs.root(), "f").await;
        write(fs, file, 5_000, b"one").await;
        write(fs, file, 4_998, b"two").await;
        let mut expected = vec![0; 4_998];
        expected.extend_from_slice(b"twone");
        assert_eq!(read(fs, file).await, expected);
        let behind = fs.read(ME, file, 6_000, 10, Io::Buffered).await.unwrap();
        assert!(behind.is_empty());
        resize(fs, file, 4_999).await;
        resize(fs, file, 9_000).await;
        expected[4_999..].fill(0);
        expected.resize(9_000, 0);
        assert_eq!(read(fs, file).await, expected);
    });
}

/// 12, 13, 17: a file of more pieces than one block of an extent tree holds shows each of them, and zeroes between
/// them; blocks that come ahead come only where there are none.
#[test]
fn pieces_between_holes_are_found() {
    const PIECES: usize = 400;
    on_each(16, async |fs, _| {
        let file = create(fs, fs.root(), "f").await;
        let mut expected = vec![0; PIECES * 8_192];
        for (piece, place) in expected.chunks_mut(8_192).enumerate() {
            place[..4_096].fill(piece as u8 | 1);
            write(fs, file, piece as u64 * 8_192, &place[..4_096]).await;
        }
        resize(fs, file, expected.len() as u64).await;
        fs.fsync(ME, file).await.expect("a sync");
        let all = async || {
            let all = fs.read(ME, file, 0, expected.len() as u64, Io::Direct).await;
            all.expect("data").to_bytes()
        };
        assert!(all().await == expected, "after a sync");
        let before = free(fs).await;
        let ahead = Allocate::Reserve { keep_size: true };
        fs.fallocate(ME, file, ahead, 0, expected.len() as u64).await.expect("blocks");
        assert!(all().await == expected, "with blocks ahead");
        assert!(free(fs).await <= before - PIECES as u64, "a block for each hole");
    });
}

/// 15: a tag comes back as that tag, and a part written over it leaves the rest of its pattern.
#[test]
fn tags_are_content() {
    on_each(16, async |fs, _| {
        let file = create(fs, fs.root(), "f").await;
        let tags = Data::Sectors(Payload::Run(Tag::new(77)), 3);
        fs.write(ME, file, 0, tags.clone(), Io::Buffered).await.expect("a write");
        fs.fsync(ME, file).await.expect("a sync");
        assert_eq!(fs.read(ME, file, 0, 12_288, Io::Direct).await, Ok(tags));
        write(fs, file, 4_100, b"patch").await;
        let mut expected = Tag::new(78).expand();
        expected[4..9].copy_from_slice(b"patch");
        assert_eq!(read(fs, file).await[4096..8192], expected[..]);
    });
}

/// 15: parts of pages go to their place, in the cache, on the device and in the journal, and to no
/// other; what is read of a page is such a part.
#[test]
fn parts_of_pages_have_their_place() {
    on_each(16, async |fs, _| {
        let file = create(fs, fs.root(), "f").await;
        let part = |tag, part| Data::Part(SectorData::Tag(Tag::new(tag)), part);
        let mut expected = vec![0; 5000];
        for (tag, from, to) in [(1, 0, 3000), (2, 4096, 5000), (3, 100, 200), (4, 4096, 4097)] {
            let (first, offset) = (from - from % 4096, from as u64);
            let data = part(tag, from - first..to - first);
            assert_eq!(
                fs.write(ME, file, offset, data, Io::Buffered).await,
                Ok((to - from) as u64)
            );
            let pattern = &Tag::new(tag).expand()[from - first..to - first];
            expected[from..to].copy_from_slice(pattern);
            fs.fsync(ME, file).await.expect("a sync");
        }
        assert_eq!(read(fs, file).await, expected);
        let stored = fs.read(ME, file, 0, 8192, Io::Direct).await.expect("data");
        assert_eq!(stored.to_bytes(), expected);
        let tail = fs.read(ME, file, 4096, 4096, Io::Buffered).await.expect("data");
        assert!(matches!(tail, Data::Part(SectorData::Pieces(_), ref part) if *part == (0..904)));
        resize(fs, file, 150).await;
        resize(fs, file, 5000).await;
        expected[150..].fill(0);
        assert_eq!(read(fs, file).await, expected);
        for (offset, wrong) in [(1, part(9, 0..10)), (0, part(9, 1..10)), (0, part(9, 0..4097))] {
            let refused = fs.write(ME, file, offset, wrong, Io::Buffered).await;
            assert!(matches!(refused, Err(FsError::Invalid(_))), "{refused:?}");
        }
        assert_eq!(read(fs, file).await, expected);
    });
}

/// 16: buffered and direct I/O see each other.
#[test]
fn direct_and_buffered_agree() {
    on_each(16, async |fs, _| {
        let file = create(fs, fs.root(), "f").await;
        for round in 0..4_u8 {
            let (one, two) = (vec![round; 8192], vec![round + 100; 4096]);
            write(fs, file, 0, &one).await;
            let seen = fs.read(ME, file, 0, 8192, Io::Direct).await.expect("data");
            assert_eq!(seen.to_bytes(), one);
            let direct = Data::Bytes(two.clone());
            fs.write(ME, file, 4096, direct, Io::Direct).await.expect("a write");
            assert_eq!(read(fs, file).await, [&one[..4096], &two[..]].concat());
        }
        let odd = fs.write(ME, file, 1, Data::Bytes(vec![0; 4096]), Io::Direct).await;
        assert!(odd.is_err() || odd == Ok(4096));
    });
}

/// 17, 18: space ahead of data, and holes.
#[test]
fn blocks_come_ahead_and_go_again() {
    on_each(16, async |fs, _| {
        let file = create(fs, fs.root(), "f").await;
        let before = free(fs).await;
        let ahead = Allocate::Reserve { keep_size: true };
        fs.fallocate(ME, file, ahead, 0, MIB).await.expect("blocks");
        assert_eq!((fs.getattr(ME, file).await.unwrap().size, free(fs).await), (0, before - 256));
        fs.fallocate(ME, file, Allocate::Reserve { keep_size: false }, 0, MIB).await.unwrap();
        assert_eq!(read(fs, file).await, vec![0; MIB as usize]);
        write(fs, file, 0, &vec![7; MIB as usize]).await;
        fs.fsync(ME, file).await.expect("a sync");
        fs.fallocate(ME, file, Allocate::PunchHole, 1, 20_000).await.expect("a hole");
        let mut expected = vec![7; MIB as usize];
        expected[1..20_001].fill(0);
        assert_eq!(read(fs, file).await, expected);
        assert_eq!(free(fs).await, before - 256 + 3);
        let zero = Allocate::ZeroRange { keep_size: true };
        fs.fallocate(ME, file, zero, 8192, 8192).await.expect("zeroes");
        assert_eq!(read(fs, file).await, expected);
    });
}

/// 29: what is made and written is taken at once, and comes back when it goes.
#[test]
fn space_is_reported() {
    on_each(16, async |fs, _| {
        let counts = async || fs.statfs(ME).await.map(|stat| (stat.free, stat.files_free)).unwrap();
        let (blocks, inodes) = counts().await;
        write(fs, create(fs, fs.root(), "f").await, 0, &[7; 40_960]).await;
        // An inode of F2FS takes a block, and what has no block has no inode.
        let expected = match fs.counts().detail {
            FsDetail::F2fs(_) => (blocks - 11, inodes.min(blocks - 11)),
            _ => (blocks - 10, inodes - 1),
        };
        assert_eq!(counts().await, expected, "before a block was chosen");
        fs.unlink(ME, fs.root(), b"f").await.expect("no file");
        assert_eq!(counts().await, (blocks, inodes));
    });
}

/// 19: a write that cannot find space says so at once; what was taken stays good.
#[test]
fn no_space_is_reported_at_the_write() {
    on_each(16, async |fs, _| {
        let file = create(fs, fs.root(), "f").await;
        let mut taken = 0;
        loop {
            let data = Data::Sectors(Payload::Run(Tag::new(1 + taken / 4096)), 16);
            match fs.write(ME, file, taken, data, Io::Buffered).await {
                Ok(written) => taken += written,
                Err(error) => break assert_eq!(error, FsError::NoSpace),
            }
        }
        assert!(taken > 4 * MIB);
        fs.fsync(ME, file).await.expect("all that was taken has its place");
        for page in 0..taken / 4096 {
            let read = fs.read(ME, file, page * 4096, 4096, Io::Direct).await;
            assert_eq!(read, Ok(Data::Sectors(Payload::Run(Tag::new(1 + page)), 1)));
        }
        fs.unlink(ME, fs.root(), b"f").await.expect("no file");
        let again = create(fs, fs.root(), "g").await;
        write(fs, again, 0, &vec![1; 4 << 20]).await;
    });
}

/// 19: space that waits for a commit is there for a write that needs it, in its midst too.
#[test]
fn space_comes_back_in_the_midst_of_a_write() {
    on_each(16, async |fs, _| {
        let pages = free(fs).await * 3 / 4;
        let all = || Data::Sectors(Payload::Run(Tag::new(1)), pages as u32);
        let file = create(fs, fs.root(), "f").await;
        assert_eq!(fs.write(ME, file, 0, all(), Io::Buffered).await, Ok(pages * 4096));
        fs.syncfs(ME).await.expect("blocks");
        fs.unlink(ME, fs.root(), b"f").await.expect("no file");
        let again = create(fs, fs.root(), "g").await;
        assert_eq!(fs.write(ME, again, 0, all(), Io::Buffered).await, Ok(pages * 4096));
        assert_eq!(fs.read(ME, again, 0, pages * 4096, Io::Buffered).await, Ok(all()));
    });
}

/// 19: so is it for a block of attributes.
#[test]
fn space_comes_back_for_attributes() {
    on_each(16, async |fs, _| {
        let file = create(fs, fs.root(), "f").await;
        let large = create(fs, fs.root(), "g").await;
        let mut pages = 0;
        let data = Data::Sectors(Payload::Run(Tag::new(1)), 16);
        while let Ok(written) = fs.write(ME, large, pages * 4096, data.clone(), Io::Buffered).await
        {
            pages += written / 4096;
        }
        fs.syncfs(ME).await.expect("blocks");
        fs.unlink(ME, fs.root(), b"g").await.expect("no file");
        let set = fs.setxattr(ME, file, b"user.x", &[7; 2_000], XattrMode::Set).await;
        assert_eq!(set, Ok(()));
    });
}

/// 19: what has blocks is written again, however full the volume is.
#[test]
fn a_full_volume_is_written_over() {
    on_each(16, async |fs, _| {
        let file = create(fs, fs.root(), "f").await;
        let mut pages = 0;
        let data = |pages| Data::Sectors(Payload::Run(Tag::new(1)), pages);
        while let Ok(written) = fs.write(ME, file, pages * 4096, data(16), Io::Buffered).await {
            pages += written / 4096;
        }
        fs.syncfs(ME).await.expect("all that was taken has its place");
        assert_eq!(fs.write(ME, file, 0, data(pages as u32), Io::Buffered).await, Ok(pages * 4096));
        let behind = fs.write(ME, file, pages * 4096, data(1), Io::Buffered).await;
        assert_eq!(behind, Err(FsError::NoSpace), "every page was taken before");
    });
}

/// 19: a direct write takes nothing if it does not find all, and one through the cache what there is.
#[test]
fn what_does_not_fit_is_refused() {
    async fn body(fs: &Fs, _: &Handle) {
        let file = create(fs, fs.root(), "f").await;
        write(fs, file, 0, b"the beginning").await;
        fs.syncfs(ME).await.expect("a block");
        let pages = free(fs).await;
        let data = Data::Sectors(Payload::Run(Tag::new(1)), pages as u32);
        let io = Io::Direct;
        assert_eq!(fs.write(ME, file, 4096, data.clone(), io).await, Err(FsError::NoSpace));
        let attr = fs.getattr(ME, file).await.unwrap();
        assert_eq!((attr.size, attr.blocks), (13, 8));
        fs.syncfs(ME).await.expect("a commit");
        assert_eq!(free(fs).await, pages);
        let io = Io::Buffered;
        let short = fs.write(ME, file, 4096, data.clone(), io).await.expect("a part");
        assert!(short > 0 && short < data.len());
        let rest = fs.write_all(ME, file, 4096 + short, data.behind(short), io).await;
        assert_eq!(rest, Err(FsError::NoSpace));
    }
    for data in [DataMode::Ordered, DataMode::Writeback] {
        on_one(32, data, body);
    }
}

/// However much is read and written at once, memory holds what it has room for.
#[test]
fn memory_holds_what_it_has_room_for() {
    const ROOM: u64 = 256;
    let mut executor = Executor::on_virtual_clock();
    let handle = executor.handle();
    let ran = executor.block_on(async move {
        let device = device(&handle, 128 * MIB / 4096);
        let mut config = ext4(DataMode::Ordered);
        config.limit_page_cache(ROOM);
        config.format(&device.erased()).await.expect("mkfs");
        let (fs, _) = mount(&config, &handle, &device).await;
        let file = create(&fs, fs.root(), "f").await;
        let data = || Data::Sectors(Payload::Run(Tag::new(1)), 16 * ROOM as u32);
        fs.write_all(ME, file, 0, data(), Io::Buffered).await.expect("written");
        assert!(fs.memory().cached_pages <= ROOM, "{} after a write", fs.memory().cached_pages);
        let read = fs.read(ME, file, 0, data().len(), Io::Buffered).await;
        assert_eq!(read, Ok(data()));
        assert!(fs.memory().cached_pages <= ROOM, "{} after a read", fs.memory().cached_pages);
    });
    ran.expect("no deadlock");
}

/// 31: appends go to the end, one behind the other, whatever the offset that a call names; a handle's
/// flags make them durable.
#[test]
fn appends_go_to_the_end() {
    on_each(16, async |fs, _| {
        let file = create(fs, fs.root(), "f").await;
        let append = OpenFlags { append: true, dsync: true, ..OpenFlags::default() };
        let opened = fs.open(ME, file, append).await.expect("open");
        assert_eq!(opened, Fh { ino: file, flags: append });
        let mut expected = Vec::new();
        for (round, len) in [(1, 10), (2, 4_086), (3, 5_000), (4, 0)] {
            let bytes = vec![round; len];
            let (at, written) = (expected.len() as u64, len as u64);
            let done = fs.write_open(ME, opened, 3, Data::Bytes(bytes.clone())).await;
            assert_eq!(done, Ok((at, written)));
            expected.extend(bytes);
        }
        let both = [b'a', b'b']
            .map(|byte| fs.write_at_end(ME, file, vec![byte; 9_000].into(), Io::Buffered));
        let ends = join_all(both).await;
        assert_eq!(ends, [Ok((9_096, 9_000)), Ok((18_096, 9_000))]);
        expected.extend([[b'a'; 9_000], [b'b'; 9_000]].concat());
        assert_eq!(fs.read_open(ME, opened, 0, 1 << 20).await.expect("data").to_bytes(), expected);
        fs.close(ME, file).await.expect("closed");
        let odd =
            fs.write_at_end(ME, file, Data::Sectors(Payload::Run(Tag::new(1)), 1), Io::Direct);
        assert!(matches!(odd.await, Err(FsError::Invalid(_))), "the end is within a page");
        assert_eq!(read(fs, file).await, expected);
        resize(fs, file, 28_672).await;
        expected.resize(28_672, 0);
        let direct = OpenFlags { append: true, direct: true, ..OpenFlags::default() };
        let opened = fs.open(ME, file, direct).await.expect("open");
        let done = fs.write_open(ME, opened, 0, Data::Bytes(vec![b'd'; 4_096])).await;
        assert_eq!(done, Ok((28_672, 4_096)));
        expected.extend([b'd'; 4_096]);
        assert_eq!(read(fs, file).await, expected);
        fs.close(ME, file).await.expect("closed");
    });
}

/// 32: data and holes are found, whether data has reached the device or not.
#[test]
fn data_and_holes_are_found() {
    on_each(16, async |fs, _| {
        let file = create(fs, fs.root(), "f").await;
        let seek = async |offset, whence| fs.seek(ME, file, offset, whence).await;
        assert_eq!(seek(0, Whence::Hole).await, Err(FsError::BeyondEnd));
        write(fs, file, 8_192, &[1; 4_097]).await;
        resize(fs, file, 40_000).await;
        for synced in [false, true] {
            if synced {
                fs.fsync(ME, file).await.expect("a sync");
            }
            assert_eq!(seek(0, Whence::Hole).await, Ok(0));
            assert_eq!(seek(1, Whence::Data).await, Ok(8_192));
            assert_eq!(seek(9_000, Whence::Data).await, Ok(9_000));
            assert_eq!(seek(9_000, Whence::Hole).await, Ok(16_384), "whole pages");
            assert_eq!(seek(16_384, Whence::Data).await, Err(FsError::BeyondEnd));
            assert_eq!(seek(39_999, Whence::Hole).await, Ok(39_999));
            assert_eq!(seek(40_000, Whence::Hole).await, Err(FsError::BeyondEnd));
        }
        write(fs, file, 36_864, &[2; 3_136]).await;
        assert_eq!(seek(36_864, Whence::Hole).await, Ok(40_000), "the end is a hole");
        let hint = fs.set_write_hint(ME, file, WriteHint::Short).await;
        assert_eq!((hint, seek(20_000, Whence::Data).await), (Ok(()), Ok(36_864)));
        assert!(fs.set_write_hint(ME, fs.root(), WriteHint::Short).await.is_err());
    });
}

/// 20: an open file outlives its last name; its space comes back with the last close.
#[test]
fn open_files_outlive_their_names() {
    on_each(16, async |fs, _| {
        let before = free(fs).await;
        let file = create(fs, fs.root(), "f").await;
        write(fs, file, 0, &vec![9; 100_000]).await;
        fs.open(ME, file, OpenFlags::default()).await.expect("open");
        fs.unlink(ME, fs.root(), b"f").await.expect("no name");
        write(fs, file, 100_000, b"more").await;
        fs.fsync(ME, file).await.expect("a sync");
        assert_eq!(read(fs, file).await.len(), 100_004);
        assert!(free(fs).await <= before - 25);
        fs.close(ME, file).await.expect("closed");
        assert_eq!(fs.getattr(ME, file).await, Err(FsError::NoEntry));
        assert_eq!(free(fs).await, before);
    });
}
