//! Promises about names.

use super::*;
use nandscape_fs::ext4::format::Feature as Ext4Feature;

/// 1, 2: a name leads to what was made under it, and a taken name is refused.
#[test]
fn names_lead_to_what_was_made() {
    on_each(16, async |fs, _| {
        let root = fs.root();
        assert_eq!(lookup(fs, root, "f").await, Err(FsError::NoEntry));
        let made = create(fs, root, "f").await;
        let found = lookup(fs, root, "f").await.expect("the file");
        assert_eq!((found.ino, found.kind, found.links), (made, Kind::File, 1));
        assert_eq!(fs.create(ME, root, b"f", 0o600).await, Err(FsError::Exists));
        assert_eq!(fs.mkdir(ME, root, b"f", 0o600).await, Err(FsError::Exists));
        assert_eq!(fs.symlink(ME, root, b"f", b"t").await, Err(FsError::Exists));
        assert_eq!(fs.link(ME, made, root, b"f").await, Err(FsError::Exists));
        assert_eq!(lookup(fs, root, "f").await, Ok(found));
        assert_eq!(lookup(fs, made, "x").await, Err(FsError::NotDirectory));
    });
}

/// 1, 2: so does each name of a directory of many blocks, with a hash tree and without.
#[test]
fn many_names_lead_to_what_was_made() {
    async fn body(fs: &Fs, _: &Handle) {
        let dir = mkdir(fs, fs.root(), "d").await;
        let name = |number| format!("{number:0>100}");
        let mut made = Vec::new();
        for number in 0..300 {
            made.push(create(fs, dir, &name(number)).await);
        }
        for (number, file) in made.iter().enumerate() {
            let found = lookup(fs, dir, &name(number)).await.map(|found| found.ino);
            assert_eq!(found, Ok(*file), "name {number}");
            let again = fs.create(ME, dir, name(number).as_bytes(), 0o644).await;
            assert_eq!(again, Err(FsError::Exists), "name {number}");
        }
        for number in (0..300).step_by(2) {
            fs.unlink(ME, dir, name(number).as_bytes()).await.expect("no file");
        }
        for (number, file) in made.into_iter().enumerate() {
            let found = lookup(fs, dir, &name(number)).await.map(|found| found.ino);
            let gone = number.is_multiple_of(2);
            assert_eq!(found, if gone { Err(FsError::NoEntry) } else { Ok(file) }, "name {number}");
        }
    }
    on_each(16, body);
    let mut without_trees = MkfsOptions { fresh: true, ..MkfsOptions::new(1) };
    without_trees.features.set(Ext4Feature::DIR_INDEX, false);
    let config = Config { format: Some(without_trees), mount: MountOptions::default() };
    on_new(16, FsConfig::Ext4(config), body);
}

/// 3: which names there can be.
#[test]
fn names_are_up_to_255_bytes() {
    on_each(16, async |fs, _| {
        let root = fs.root();
        for name in [vec![b'n'; 255], vec![1], vec![0xff, 0xfe, b' ']] {
            let made = fs.create(ME, root, &name, 0o644).await.expect("a file");
            assert_eq!(fs.lookup(ME, root, &name).await, Ok(made));
        }
        let long = fs.create(ME, root, &[b'n'; 256], 0o644).await;
        assert_eq!(long, Err(FsError::NameTooLong));
        for name in [&b"a/b"[..], b"a\0b", b".", b""] {
            assert!(fs.create(ME, root, name, 0o644).await.is_err());
        }
    });
}

/// 4: what is removed how.
#[test]
fn removal_knows_what_it_removes() {
    on_each(16, async |fs, _| {
        let root = fs.root();
        let dir = mkdir(fs, root, "d").await;
        let file = create(fs, dir, "f").await;
        assert_eq!(fs.unlink(ME, root, b"d").await, Err(FsError::IsDirectory));
        assert_eq!(fs.rmdir(ME, dir, b"f").await, Err(FsError::NotDirectory));
        assert_eq!(fs.rmdir(ME, root, b"d").await, Err(FsError::NotEmpty));
        fs.unlink(ME, dir, b"f").await.expect("no file");
        assert_eq!(fs.getattr(ME, file).await, Err(FsError::NoEntry));
        fs.open(ME, dir, OpenFlags::default()).await.expect("open");
        fs.rmdir(ME, root, b"d").await.expect("no directory");
        assert_eq!(lookup(fs, root, "d").await, Err(FsError::NoEntry));
        let file = create(fs, root, "f").await;
        assert_eq!(fs.create(ME, dir, b"f", 0o644).await, Err(FsError::NoEntry));
        assert_eq!(fs.link(ME, file, dir, b"f").await, Err(FsError::NoEntry));
        let mode = RenameMode::Replace;
        assert_eq!(fs.rename(ME, (root, b"f"), (dir, b"f"), mode).await, Err(FsError::NoEntry));
        fs.close(ME, dir).await.expect("closed");
        assert_eq!(lookup(fs, root, "f").await.map(|found| found.ino), Ok(file));
    });
}

/// 4: wherever in a directory of many blocks its only name is, it is not empty.
#[test]
fn one_name_in_the_last_block_stays() {
    on_each(16, async |fs, _| {
        let dir = mkdir(fs, fs.root(), "d").await;
        for number in 0..200 {
            create(fs, dir, &format!("{number:0>100}")).await;
        }
        let listed = fs.readdir(ME, dir, 0, 1_000).await.expect("names");
        let in_order = listed.into_iter().map(|entry| entry.name);
        let mut names: Vec<Vec<u8>> = in_order.filter(|name| name.len() == 100).collect();
        let last = names.pop().expect("a name");
        for name in names {
            fs.unlink(ME, dir, &name).await.expect("no file");
        }
        assert_eq!(fs.rmdir(ME, fs.root(), b"d").await, Err(FsError::NotEmpty));
        fs.unlink(ME, dir, &last).await.expect("no file");
        fs.rmdir(ME, fs.root(), b"d").await.expect("no directory");
    });
}

/// 5, 6, 7: renames.
#[test]
fn renames_move_names() {
    on_each(16, async |fs, _| {
        let root = fs.root();
        let (a, b) = (create(fs, root, "a").await, create(fs, root, "b").await);
        let dir = mkdir(fs, root, "d").await;
        let rename = async |from: (Ino, &str), to: (Ino, &str), mode| {
            fs.rename(ME, (from.0, from.1.as_bytes()), (to.0, to.1.as_bytes()), mode).await
        };
        let refused = rename((root, "a"), (root, "b"), RenameMode::NoReplace).await;
        assert_eq!(refused, Err(FsError::Exists));
        assert_eq!(rename((root, "a"), (root, "d"), RenameMode::Exchange).await, Ok(()));
        let kinds = (lookup(fs, root, "a").await, lookup(fs, root, "d").await);
        assert_eq!((kinds.0.unwrap().ino, kinds.1.unwrap().ino), (dir, a));
        assert_eq!(rename((root, "a"), (root, "d"), RenameMode::Exchange).await, Ok(()));
        assert_eq!(rename((root, "a"), (dir, "x"), RenameMode::NoReplace).await, Ok(()));
        assert_eq!(lookup(fs, root, "a").await, Err(FsError::NoEntry));
        assert_eq!(rename((root, "b"), (dir, "x"), RenameMode::Replace).await, Ok(()));
        assert_eq!(lookup(fs, dir, "x").await.unwrap().ino, b);
        assert_eq!(fs.getattr(ME, a).await, Err(FsError::NoEntry));
        let (full, empty) = (mkdir(fs, root, "full").await, mkdir(fs, root, "empty").await);
        create(fs, full, "f").await;
        let refused = rename((root, "d"), (root, "full"), RenameMode::Replace).await;
        assert_eq!(refused, Err(FsError::NotEmpty));
        let refused = rename((root, "d"), (root, "empty"), RenameMode::NoReplace).await;
        assert_eq!(refused, Err(FsError::Exists));
        assert_eq!(lookup(fs, root, "empty").await.unwrap().ino, empty);
        assert_eq!(rename((root, "full"), (root, "empty"), RenameMode::Replace).await, Ok(()));
        assert_eq!(lookup(fs, root, "empty").await.unwrap().ino, full);
        fs.link(ME, b, root, b"y").await.expect("a link");
        assert_eq!(rename((root, "y"), (dir, "x"), RenameMode::Replace).await, Ok(()));
        assert_eq!(lookup(fs, root, "y").await.unwrap().links, 2);
    });
}

/// 8: no directory moves below itself; one that moves knows its new parent.
#[test]
fn directories_move_with_their_tree() {
    on_each(16, async |fs, _| {
        let root = fs.root();
        let before = fs.getattr(ME, root).await.unwrap().links;
        let (a, c) = (mkdir(fs, root, "a").await, mkdir(fs, root, "c").await);
        let b = mkdir(fs, a, "b").await;
        let into = fs.rename(ME, (root, b"a"), (b, b"x"), RenameMode::Replace).await;
        assert!(matches!(into, Err(FsError::Invalid(_))));
        create(fs, b, "f").await;
        create(fs, c, "f").await;
        for (dir, refusal) in [(b, FsError::NotEmpty), (c, FsError::IsDirectory)] {
            let over = fs.rename(ME, (dir, b"f"), (root, b"a"), RenameMode::Replace).await;
            assert_eq!(over, Err(refusal), "a file over a directory");
        }
        let (above, below) = ((root, &b"a"[..]), (b, &b"f"[..]));
        for (from, to) in [(above, below), (below, above)] {
            let exchanged = fs.rename(ME, from, to, RenameMode::Exchange).await;
            assert!(matches!(exchanged, Err(FsError::Invalid(_))), "{exchanged:?}");
        }
        fs.rename(ME, (root, b"a"), (c, b"a"), RenameMode::Replace).await.expect("a move");
        assert_eq!(names(fs, a).await[&b".."[..]], c);
        for (dir, expected) in [(root, before + 1), (c, 3), (a, 3)] {
            assert_eq!(fs.getattr(ME, dir).await.unwrap().links, expected);
        }
    });
}

/// 9: links are counted, and only files have several.
#[test]
fn links_are_counted() {
    on_each(16, async |fs, _| {
        let root = fs.root();
        let (file, dir) = (create(fs, root, "f").await, mkdir(fs, root, "d").await);
        assert_eq!(fs.link(ME, dir, root, b"x").await, Err(FsError::NotPermitted));
        write(fs, file, 0, b"shared").await;
        assert_eq!(fs.link(ME, file, dir, b"g").await.unwrap().links, 2);
        fs.unlink(ME, root, b"f").await.expect("one name less");
        let found = lookup(fs, dir, "g").await.unwrap();
        assert_eq!((found.ino, found.links), (file, 1));
        assert_eq!(read(fs, file).await, b"shared");
    });
}

/// 10: a name that stays is listed once, whatever others do, through every growth of a directory.
#[test]
fn listing_shows_what_stays_once() {
    on_each(64, async |fs, _| {
        let dir = mkdir(fs, fs.root(), "d").await;
        for number in 0..60 {
            create(fs, dir, &format!("stays-{number:0>100}")).await;
        }
        let (mut cookie, mut seen, mut made) = (0, BTreeMap::new(), 0_u32);
        loop {
            let some = fs.readdir(ME, dir, cookie, 3).await.expect("names");
            let Some(last) = some.last() else { break };
            cookie = last.cookie;
            for entry in some {
                *seen.entry(entry.name).or_insert(0) += 1;
            }
            for _ in 0..40_u32.min(2_000 - made) {
                create(fs, dir, &format!("comes-{made:0>120}")).await;
                made += 1;
            }
            if seen.len().is_multiple_of(9) {
                let gone = format!("comes-{:0>120}", made - 1 - seen.len() as u32 / 9);
                let _ = fs.unlink(ME, dir, gone.as_bytes()).await;
            }
        }
        let stay = |name: &[u8]| name.starts_with(b"stays") || name.starts_with(b".");
        let stayed: Vec<_> = seen.iter().filter(|(name, _)| stay(name)).collect();
        assert_eq!(stayed.len(), 62);
        assert!(stayed.iter().all(|(_, count)| **count == 1));
    });
}

/// 10: the same where the names leave the inode meanwhile, as F2FS has few of them there.
#[test]
fn listing_goes_on_in_a_directory_that_grows() {
    on_each(16, async |fs, _| {
        for begun in 1..8 {
            let dir = mkdir(fs, fs.root(), &format!("d{begun}")).await;
            for number in 0..6 {
                create(fs, dir, &format!("stays{number}")).await;
            }
            fs.unlink(ME, dir, b"stays0").await.expect("no file");
            let some = fs.readdir(ME, dir, 0, begun).await.expect("names");
            let cookie = some.last().expect("a name").cookie;
            for number in 0..60 {
                create(fs, dir, &format!("comes{number:0>40}")).await;
            }
            let rest = fs.readdir(ME, dir, cookie, 1_000).await.expect("names");
            let all = some.into_iter().chain(rest).map(|entry| entry.name);
            let mut stayed: Vec<_> = all.filter(|name| name.starts_with(b"stays")).collect();
            stayed.sort_unstable();
            let expected: Vec<_> = (1..6).map(|n| format!("stays{n}").into_bytes()).collect();
            assert_eq!(stayed, expected, "{begun} names were listed before");
        }
    });
}

/// 11: symbolic links hold what they were given.
#[test]
fn symbolic_links_hold_their_target() {
    on_each(16, async |fs, _| {
        for len in [1, 59, 60, 4095] {
            let target = vec![b't'; len];
            let name = format!("link{len}");
            let link = fs.symlink(ME, fs.root(), name.as_bytes(), &target).await.expect("a link");
            assert_eq!((link.kind, link.size), (Kind::Symlink, len as u64));
            assert_eq!(fs.readlink(ME, link.ino).await, Ok(target));
        }
        let long = fs.symlink(ME, fs.root(), b"l", &[b't'; 4096]).await;
        assert_eq!(long, Err(FsError::NameTooLong));
        let nul = fs.symlink(ME, fs.root(), b"n", b"a\0b").await;
        assert!(matches!(nul, Err(FsError::Invalid(_))), "{nul:?}");
    });
}
