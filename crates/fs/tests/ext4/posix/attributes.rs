//! Promises about attributes.

use super::*;

/// 21, 22: attributes are what they were set to, and times move with changes.
#[test]
fn attributes_are_kept() {
    on_each(16, async |fs, handle| {
        let root = fs.root();
        let file = create(fs, root, "f").await;
        let time = Timestamp { seconds: 4_000_000_000, nanos: 123_456_789 };
        let change = SetAttr {
            mode: Some(0o4751),
            uid: Some(70_000),
            gid: Some(80_000),
            size: Some(10),
            atime: Some(time),
            mtime: Some(time),
        };
        let attr = fs.setattr(ME, file, change).await.expect("new attributes");
        assert_eq!((attr.mode, attr.uid, attr.gid, attr.size), (0o4751, 70_000, 80_000, 10));
        assert_eq!((attr.atime, attr.mtime), (time, time));
        handle.sleep(Nanos::from_secs(1)).await;
        let change = SetAttr { mode: Some(0o640), ..SetAttr::default() };
        let changed = fs.setattr(ME, file, change).await.expect("a new mode");
        assert!(changed.mtime == time && changed.ctime > attr.ctime);
        write(fs, file, 0, b"x").await;
        let written = fs.getattr(ME, file).await.unwrap();
        assert!(written.mtime != time && written.ctime > attr.ctime);
        let ahead = Timestamp { seconds: written.ctime.seconds + 10, ..written.ctime };
        let change = SetAttr { mtime: Some(ahead), ..SetAttr::default() };
        fs.setattr(ME, file, change).await.expect("a time to come");
        handle.sleep(Nanos::from_secs(10)).await;
        write(fs, file, 0, b"y").await;
        let written = fs.getattr(ME, file).await.unwrap();
        assert_eq!((written.mtime, written.ctime), (ahead, ahead));
        let dir = fs.getattr(ME, root).await.unwrap();
        handle.sleep(Nanos::from_secs(1)).await;
        create(fs, root, "g").await;
        assert!(fs.getattr(ME, root).await.unwrap().mtime > dir.mtime);
    });
}

/// 21: a file has the blocks that were promised to it.
#[test]
fn blocks_count_when_they_are_promised() {
    on_each(16, async |fs, _| {
        let file = create(fs, fs.root(), "f").await;
        let blocks = async || fs.getattr(ME, file).await.unwrap().blocks;
        write(fs, file, 4096, &[7; 40_960]).await;
        assert_eq!(blocks().await, 80);
        fs.fsync(ME, file).await.expect("blocks");
        assert_eq!(blocks().await, 80);
        write(fs, file, 0, &[7; 100_000]).await;
        resize(fs, file, 6).await;
        assert_eq!(blocks().await, 8);
    });
}

/// 23: extended attributes.
#[test]
fn extended_attributes_are_kept() {
    on_each(16, async |fs, _| {
        let file = create(fs, fs.root(), "f").await;
        let set = async |name: &[u8], len, mode| {
            fs.setxattr(ME, file, name, &vec![b'v'; len], mode).await
        };
        assert_eq!(fs.getxattr(ME, file, b"user.a").await, Err(FsError::NoData));
        assert_eq!(set(b"user.a", 3, XattrMode::Replace).await, Err(FsError::NoData));
        for (name, len) in [(&b"user.a"[..], 3), (b"user.b", 2_000), (b"security.c", 0)] {
            set(name, len, XattrMode::Create).await.expect("a new attribute");
            assert_eq!(fs.getxattr(ME, file, name).await.unwrap().len(), len);
        }
        assert_eq!(set(b"user.a", 9, XattrMode::Create).await, Err(FsError::Exists));
        assert_eq!(fs.listxattr(ME, file).await.unwrap().len(), 3);
        set(b"security.a", 5, XattrMode::Create).await.expect("another prefix");
        assert_eq!(fs.getxattr(ME, file, b"user.a").await, Ok(vec![b'v'; 3]));
        fs.removexattr(ME, file, b"security.a").await.expect("one less");
        assert_eq!(fs.getxattr(ME, file, b"user.a").await, Ok(vec![b'v'; 3]));
        fs.removexattr(ME, file, b"user.b").await.expect("one less");
        assert_eq!(fs.getxattr(ME, file, b"user.b").await, Err(FsError::NoData));
        assert!(set(b"user.big", 5_000, XattrMode::Set).await.is_err());
        let unknown = set(b"other.x", 1, XattrMode::Set).await;
        assert!(matches!(unknown, Err(FsError::Unsupported(_))));
        let long = |len: usize| [&b"user."[..], &vec![0xff; len - 5]].concat();
        set(&long(255), 1, XattrMode::Set).await.expect("any bytes");
        assert_eq!(fs.getxattr(ME, file, &long(255)).await.unwrap(), b"v");
        fs.removexattr(ME, file, &long(255)).await.expect("one less");
        for (name, errno) in [(&long(256)[..], 34), (b"", 34), (b"user.", 22), (b"user.a\0", 22)] {
            let refused = set(name, 1, XattrMode::Set).await.expect_err("no name");
            assert_eq!(refused.errno(), errno, "{name:?}");
        }
    });
}
