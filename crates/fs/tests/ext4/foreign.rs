//! Images that others made in unusual ways: what we do to them is sound to e2fsck and to the kernel, or is
//! refused and changes nothing.

use crate::common::mount::LoopMount;
use crate::common::{Scratch, assert_clean, debugfs, debugfs_write, e2fsprogs, output, run, text};
use crate::tree::stand;
use nandscape_fs::contract::{Caller, Data, FileSystem, FsError, Ino, Io, RenameMode, XattrMode};
use nandscape_fs::ext4::{Ext4, MountOptions};
use nandscape_rt::Executor;
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) const ME: Caller = Caller { thread: 0, core: 0, uid: 0, gid: 0 };

/// Mounts an image, does something, unmounts; the image that comes of it.
pub(crate) fn through(
    scratch: &Scratch,
    path: &Path,
    act: impl AsyncFnOnce(&Ext4) + 'static,
) -> Result<PathBuf, FsError> {
    let (path, result) = (path.to_owned(), scratch.path("result"));
    let mut executor = Executor::on_virtual_clock();
    let handle = executor.handle();
    let saved = result.clone();
    let done = executor.block_on(async move {
        let device = stand::load(&handle, &path).await;
        let (fs, _) = Ext4::mount(&handle, device.erased(), MountOptions::default()).await?;
        act(&fs).await;
        fs.unmount().await?;
        stand::save(&device, &saved);
        Ok(())
    });
    done.expect("no deadlock").map(|()| result)
}

async fn named(fs: &Ext4, name: &str) -> Ino {
    fs.lookup(ME, fs.root(), name.as_bytes()).await.expect("a name").ino
}

fn state(image: &Path) -> String {
    let shown = output("dumpe2fs", &["-h", text(image)]);
    shown.lines().find(|l| l.starts_with("Filesystem state")).expect("a state").to_owned()
}

/// An image of ext4's defaults with a file f of ten blocks mapped by pointers, and h by extents.
fn block_mapped(scratch: &Scratch) -> Option<PathBuf> {
    let path = stand::image(scratch, 64, &[]);
    let mount = LoopMount::new(scratch, &path, "rw")?;
    for name in ["f", "h"] {
        fs::write(mount.path().join(name), vec![b'x'; 40_000]).expect("a file");
    }
    let _ = run("sync", &[]);
    output("chattr", &["-e", text(&mount.path().join("f"))]);
    drop(mount);
    assert_clean(&path);
    Some(path)
}

/// What has no extents is not ours to take apart, and the volume is as before.
#[test]
fn files_without_extents_are_left_alone() {
    let scratch = Scratch::new();
    let Some(path) = block_mapped(&scratch) else { return };
    let result = through(&scratch, &path, async |fs| {
        let (root, refused) = (fs.root(), FsError::Unsupported("a file without extents"));
        assert_eq!(fs.lookup(ME, root, b"f").await, Err(refused.clone()));
        assert_eq!(fs.unlink(ME, root, b"f").await, Err(refused.clone()));
        let over = fs.rename(ME, (root, b"h"), (root, b"f"), RenameMode::Replace).await;
        assert_eq!(over, Err(refused));
    });
    let result = result.expect("a mount");
    assert_clean(&result);
    assert!(debugfs(&result, "stat f").contains("Size: 40000"));
}

/// The first attribute says so in the superblock.
#[test]
fn attributes_in_blocks_set_the_feature() {
    let scratch = Scratch::new();
    let path = stand::image(&scratch, 64, &["-O", "^ext_attr"]);
    let result = through(&scratch, &path, async |fs| {
        let f = fs.create(ME, fs.root(), b"f", 0o644).await.expect("a file").ino;
        let set = fs.setxattr(ME, f, b"user.a", &[b'v'; 800], XattrMode::Set).await;
        set.expect("room");
    });
    assert_clean(&result.expect("a mount"));
}

/// So does the first file of more than 2 GiB.
#[test]
fn large_files_set_the_feature() {
    let scratch = Scratch::new();
    let path = stand::image(&scratch, 64, &["-O", "^large_file,^resize_inode"]);
    let result = through(&scratch, &path, async |fs| {
        let f = fs.create(ME, fs.root(), b"f", 0o644).await.expect("a file").ino;
        let data = Data::Bytes(vec![1; 5000]);
        fs.write(ME, f, 3_000_000_000, data, Io::Buffered).await.expect("room");
    });
    assert_clean(&result.expect("a mount"));
}

/// Inodes that once had 128 bytes get extra fields with their first attribute.
#[test]
fn attributes_of_inodes_without_extra_fields_are_seen_by_the_kernel() {
    let scratch = Scratch::new();
    let path = stand::image(&scratch, 64, &["-I", "128", "-O", "^flex_bg,^metadata_csum"]);
    let Some(mount) = LoopMount::new(&scratch, &path, "rw") else { return };
    fs::write(mount.path().join("f"), b"f").expect("a file");
    drop(mount);
    output("tune2fs", &["-I", "256", text(&path)]);
    assert_clean(&path);
    let result = through(&scratch, &path, async |fs| {
        let f = named(fs, "f").await;
        fs.setxattr(ME, f, b"user.a", b"A", XattrMode::Set).await.expect("room");
    });
    let result = result.expect("a mount");
    let mount = LoopMount::new(&scratch, &result, "rw").expect("a mount");
    fs::set_permissions(
        mount.path().join("f"),
        std::os::unix::fs::PermissionsExt::from_mode(0o600),
    )
    .expect("a chmod");
    drop(mount);
    assert!(debugfs(&result, "ea_list f").contains("user.a"), "it survives the kernel's chmod");
}

/// An error that the journal knows of is not forgotten with it.
#[test]
fn errors_stay_known() {
    let scratch = Scratch::new();
    let path = stand::image(&scratch, 64, &[]);
    let block: u64 = debugfs(&path, "bmap <8> 0").trim().parse().expect("a block");
    let file = fs::OpenOptions::new().write(true).open(&path).expect("an image");
    let at = block * 4096 + 0x20;
    std::os::unix::fs::FileExt::write_all_at(&file, &(-5_i32).to_be_bytes(), at).expect("a write");
    let result = through(&scratch, &path, async |_| {}).expect("a mount");
    // The kernel says "clean with errors" after a mount of the same image.
    assert!(state(&result).contains("error"), "{}", state(&result));
}

/// A volume that was to be checked still is.
#[test]
fn unclean_stays_unclean() {
    let scratch = Scratch::new();
    let path = stand::image(&scratch, 64, &[]);
    debugfs_write(&path, "dirty\n");
    assert!(state(&path).contains("not clean"));
    let result = through(&scratch, &path, async |_| {}).expect("a mount");
    assert!(state(&result).contains("not clean"), "{}", state(&result));
}

fn free_blocks(image: &Path) -> u64 {
    let shown = output("dumpe2fs", &["-h", text(image)]);
    let free = shown.lines().find_map(|line| line.strip_prefix("Free blocks:"));
    free.and_then(|free| free.trim().parse().ok()).expect("a count")
}

/// Fills an image to its very last block.
fn fill(scratch: &Scratch, image: &Path) {
    let content = scratch.path("content");
    for number in 0.. {
        let free = free_blocks(image);
        if free == 0 {
            break;
        }
        // What a file needs beside its data is at most a block in 300.
        let blocks = if free > 8 { free - free / 200 - 4 } else { 1 };
        fs::write(&content, vec![b'f'; blocks as usize * 4096]).expect("a file");
        debugfs_write(image, &format!("write {} full{number}\n", text(&content)));
    }
}

/// An image with two files `a` and `b` that share a block of attributes; `None` where the machine cannot mount
/// images.
fn sharing_attributes(scratch: &Scratch) -> Option<PathBuf> {
    let path = stand::image(scratch, 64, &["-m", "0"]);
    debugfs_write(&path, "write /dev/null a\nwrite /dev/null b\n");
    let mount = LoopMount::new(scratch, &path, "rw")?;
    let set = "import os,sys\nfor f in 'ab':\n for x in 'KD': os.setxattr(sys.argv[1]+'/'+f,'user.'+x,x.encode()*1500)";
    output("python3", &["-c", set, text(mount.path())]);
    drop(mount);
    let block = |name| {
        let shown = debugfs(&path, &format!("stat {name}"));
        let line = shown.lines().find(|line| line.starts_with("File ACL:")).expect("a block");
        line.to_owned()
    };
    assert_eq!(block("a"), block("b"), "the kernel shares equal blocks");
    Some(path)
}

/// Attributes in a block that two inodes share change for one of them only.
#[test]
fn attributes_of_one_inode_change_for_no_other() {
    let scratch = Scratch::new();
    let Some(path) = sharing_attributes(&scratch) else { return };
    let result = through(&scratch, &path, async |fs| {
        let (a, b) = (named(fs, "a").await, named(fs, "b").await);
        let new = fs.setxattr(ME, a, b"user.D", &[b'N'; 1_500], XattrMode::Replace).await;
        new.expect("room");
        for (file, name, value) in [(a, "K", b'K'), (a, "D", b'N'), (b, "K", b'K'), (b, "D", b'D')]
        {
            let found = fs.getxattr(ME, file, format!("user.{name}").as_bytes()).await;
            assert!(found == Ok(vec![value; 1_500]), "{name} of {file:?}");
        }
    });
    assert_clean(&result.expect("a mount"));
}

/// Attributes in a block that two inodes share: without a block for a copy, none of them is lost.
#[test]
fn a_removal_that_finds_no_space_leaves_attributes() {
    let scratch = Scratch::new();
    let Some(path) = sharing_attributes(&scratch) else { return };
    fill(&scratch, &path);
    assert_clean(&path);
    let result = through(&scratch, &path, async |fs| {
        let a = named(fs, "a").await;
        assert_eq!(fs.removexattr(ME, a, b"user.D").await, Err(FsError::NoSpace));
        assert!(fs.getxattr(ME, a, b"user.K").await.is_ok(), "the other is gone");
    });
    assert_clean(&result.expect("a mount"));
}

/// What e2fsck finds sound, our check finds sound, or says that it cannot check it.
#[test]
fn sound_images_of_mke2fs_are_sound() {
    if !e2fsprogs() {
        return;
    }
    let scratch = Scratch::new();
    let mut wrong = Vec::new();
    let bad = scratch.path("bad");
    let blocks: String = (9_000..10_100).step_by(2).map(|block| format!("{block}\n")).collect();
    fs::write(&bad, blocks).expect("a list of bad blocks");
    let options: [&[&str]; 5] = [
        &["-O", "bigalloc", "-C", "16384"],
        &["-O", "quota,project"],
        &["-l", text(&bad)],
        &["-O", "^has_journal"],
        &["-O", "orphan_file"],
    ];
    for options in options {
        let path = stand::image(&scratch, 64, options);
        assert_clean(&path);
        match crate::common::examine::check_image(&path) {
            Ok(report) if !report.is_clean() => {
                wrong.push(format!("{options:?}: {}", report.findings[0]))
            }
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A journal on a separate device is nothing that we can judge.
#[test]
fn journals_elsewhere_are_not_judged() {
    if !e2fsprogs() {
        return;
    }
    let scratch = Scratch::new();
    let path = stand::image(&scratch, 64, &[]);
    debugfs_write(&path, "set_super_value journal_inum 0\n");
    let refused = crate::common::examine::check_image(&path).expect_err("a journal elsewhere");
    assert!(refused.to_string().contains("a journal on a separate device"), "{refused}");
}

/// What a kernel that was cut off left in the orphan file is finished, and the file is empty then.
#[test]
fn orphans_of_the_orphan_file_are_finished() {
    if !e2fsprogs() {
        return;
    }
    let scratch = Scratch::new();
    let path = stand::image(&scratch, 64, &["-O", "orphan_file"]);
    let free = free_blocks(&path);
    let marked = scratch.path("marked");
    fs::copy(&path, &marked).expect("a copy");
    debugfs_write(&marked, "feature orphan_present\n");
    assert_clean(&through(&scratch, &marked, async |_| ()).expect("a mark alone"));
    let Some(mount) = LoopMount::new(&scratch, &path, "rw") else { return };
    let files = ["f", "g"].map(|name| mount.path().join(name));
    let held = files.map(|path| {
        fs::write(&path, vec![b'x'; 50_000]).expect("a file");
        let file = fs::File::open(&path).expect("a file");
        fs::remove_file(&path).expect("a name");
        file
    });
    let _ = run("sync", &[]);
    let cut = scratch.path("cut");
    fs::copy(&path, &cut).expect("a copy");
    drop((held, mount));
    let result = through(&scratch, &cut, async |_| ()).expect("orphans");
    assert_clean(&result);
    assert_eq!(free_blocks(&result), free);
    // Without the file the mark says nothing that we know.
    let lone = stand::image(&scratch, 64, &["-O", "^orphan_file"]);
    debugfs_write(&lone, "feature orphan_present\n");
    let refused = through(&scratch, &lone, async |_| ()).expect_err("a mark of nothing");
    assert!(refused.to_string().contains("orphan_present"), "{refused}");
}

/// Without `huge_file` a file's blocks are counted in sectors, of which there are 2^32 - 1.
#[test]
fn files_are_as_long_as_their_blocks_can_be_counted() {
    if !e2fsprogs() {
        return;
    }
    let scratch = Scratch::new();
    for (options, longest) in [("^huge_file", (1 << 29) - 1), ("huge_file", (1_u64 << 32) - 1)] {
        let path = stand::image(&scratch, 64, &["-O", options]);
        let result = through(&scratch, &path, async move |fs| {
            let file = fs.create(ME, fs.root(), b"f", 0o644).await.expect("a file").ino;
            let write = async |page| {
                let data = Data::Bytes(vec![1; 4096]);
                fs.write(ME, file, page * 4096, data, Io::Buffered).await
            };
            assert_eq!(write(longest).await, Err(FsError::FileTooBig));
            assert_eq!(write(longest - 1).await, Ok(4096));
        });
        assert_clean(&result.expect("a mount"));
    }
}

/// Without checksums of descriptors, a mark that a group's bitmaps were never made says nothing.
#[test]
fn marks_without_checksums_do_not_count() {
    if !e2fsprogs() {
        return;
    }
    let scratch = Scratch::new();
    let path = stand::image(&scratch, 64, &["-O", "^metadata_csum"]);
    let content = scratch.path("content");
    fs::write(&content, vec![b'o'; 400_000]).expect("a file");
    let set = "set_bg 0 flags 3\nset_bg 0 itable_unused 8";
    debugfs_write(&path, &format!("write {} old\n{set}\n", text(&content)));
    let report = crate::common::examine::check_image(&path).expect("a file system");
    let said = crate::common::examine::shown(&report);
    assert!(said.contains("has marks that count with checksums only"), "{said}");
    let result = through(&scratch, &path, async |fs| {
        let file = fs.create(ME, fs.root(), b"new", 0o644).await.expect("a file").ino;
        let data = Data::Bytes(vec![b'n'; 400_000]);
        fs.write(ME, file, 0, data, Io::Buffered).await.expect("room");
    });
    assert_clean(&result.expect("a mount"));
}
