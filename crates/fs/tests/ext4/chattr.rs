//! What chattr's flags `i` and `a` forbid: each call on files and directories with them ends as the
//! running kernel ends it on a copy of the same image.

use crate::common::mount::LoopMount;
use crate::common::{Scratch, assert_clean, e2fsprogs, output, run, text};
use crate::foreign::{ME, through};
use crate::tree::stand;
use nandscape_fs::contract::{
    Allocate, Data, FileSystem, FsError, Io, RenameMode, SetAttr, Timestamp, XattrMode,
};
use nandscape_fs::ext4::Ext4;
use std::cell::RefCell;
use std::fs::{self, File, FileTimes, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// What is done to a file, or to what is in a directory, in this order.
#[derive(Clone, Copy, Debug)]
enum Call {
    Overwrite,
    OverwriteDirect,
    Append,
    LeaveGap,
    Cut,
    Mode,
    Times,
    Reserve,
    Punch,
    Attribute,
    Link,
    MoveOver,
    MoveAway,
    Remove,
    Make,
    MakeDir,
    RemoveChild,
    MoveChildOut,
    MoveIn,
    SwapChild,
    RemoveDir,
}

const ON_FILES: [Call; 14] = [
    Call::Overwrite,
    Call::OverwriteDirect,
    Call::Append,
    Call::LeaveGap,
    Call::Cut,
    Call::Mode,
    Call::Times,
    Call::Reserve,
    Call::Punch,
    Call::Attribute,
    Call::Link,
    Call::MoveOver,
    Call::MoveAway,
    Call::Remove,
];
const ON_DIRS: [Call; 10] = [
    Call::Mode,
    Call::Times,
    Call::Attribute,
    Call::Make,
    Call::MakeDir,
    Call::SwapChild,
    Call::RemoveChild,
    Call::MoveChildOut,
    Call::MoveIn,
    Call::RemoveDir,
];

/// Files and directories with the flags that their names tell; `none` has none.
const FLAGS: [&str; 3] = ["none", "a", "i"];

/// Every call with what it is done to.
fn calls() -> impl Iterator<Item = (Call, String)> {
    let on = |kind: &'static str, calls: &'static [Call]| {
        let targets = FLAGS.into_iter().map(move |flag| format!("{kind}-{flag}"));
        targets.flat_map(|target| calls.iter().map(move |call| (*call, target.clone())))
    };
    on("file", &ON_FILES).chain(on("dir", &ON_DIRS))
}

/// An image with them; `None` where the machine cannot mount images.
fn image(scratch: &Scratch) -> Option<PathBuf> {
    let path = stand::image(scratch, 64, &[]);
    let mount = LoopMount::new(scratch, &path, "rw")?;
    let at = |name: &str| mount.path().join(name);
    for flag in FLAGS {
        fs::write(at(&format!("file-{flag}")), vec![b'f'; 10_000]).expect("a file");
        for over in ["file", "dir"] {
            fs::write(at(&format!("spare-{over}-{flag}")), b"spare").expect("a file");
        }
        let dir = at(&format!("dir-{flag}"));
        fs::create_dir(&dir).expect("a directory");
        for child in ["first", "second", "third"] {
            fs::write(dir.join(child), b"child").expect("a file");
        }
        if flag != "none" {
            let set = format!("+{flag}");
            output("chattr", &[&set, text(&at(&format!("file-{flag}"))), text(&dir)]);
        }
    }
    drop(mount);
    assert_clean(&path);
    Some(path)
}

/// The errors of util-linux's and Python's commands are returned as text.
fn run_ok(status: std::process::Output) -> io::Result<()> {
    if status.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&status.stderr).into_owned();
    assert!(said.contains("Operation not permitted"), "{said}");
    Err(io::Error::from_raw_os_error(1))
}

fn by_kernel(root: &Path, call: Call, target: &str) -> io::Result<()> {
    let (at, spare) = (root.join(target), root.join(format!("spare-{target}")));
    let beside = |what: &str| root.join(format!("{what}-{target}"));
    match call {
        Call::Overwrite => OpenOptions::new().write(true).open(at)?.write_all_at(b"new", 5_000),
        Call::OverwriteDirect => {
            OpenOptions::new().write(true).open(at)?.write_all_at(&[b'd'; 4096], 0)
        }
        Call::Append => OpenOptions::new().append(true).open(at)?.write_all(b"more"),
        Call::LeaveGap => OpenOptions::new().write(true).open(at)?.write_all_at(b"far", 15_000),
        Call::Cut => OpenOptions::new().write(true).open(at)?.set_len(9_000),
        Call::Mode => fs::set_permissions(at, fs::Permissions::from_mode(0o700)),
        Call::Times => {
            let others = fs::metadata(root)?.modified()?;
            File::open(at)?.set_times(FileTimes::new().set_modified(others))
        }
        // By a file that is open for appending, as an append-only file can be.
        Call::Reserve => run_ok(run("python3", &["-c", RESERVE, text(&at)])),
        Call::Punch => run_ok(run("fallocate", &["-p", "-o", "0", "-l", "4096", text(&at)])),
        Call::Attribute => run_ok(run("python3", &["-c", SET_ATTRIBUTE, text(&at)])),
        Call::Link => fs::hard_link(at, beside("link")),
        Call::MoveOver => fs::rename(spare, at),
        Call::MoveAway => fs::rename(at, beside("moved")),
        Call::Remove => fs::remove_file(at),
        Call::Make => File::create_new(at.join("new")).map(drop),
        Call::MakeDir => fs::create_dir(at.join("below")),
        Call::SwapChild => fs::rename(at.join("second"), at.join("third")),
        Call::RemoveChild => fs::remove_file(at.join("first")),
        Call::MoveChildOut => fs::rename(at.join("third"), beside("out")),
        Call::MoveIn => fs::rename(spare, at.join("spare")),
        Call::RemoveDir => fs::remove_dir(at),
    }
}

const RESERVE: &str = "import os, sys
try: os.posix_fallocate(os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND), 20000, 5000)
except OSError as e: sys.exit(e.strerror)";
const SET_ATTRIBUTE: &str = "import os, sys
try: os.setxattr(sys.argv[1], 'user.a', b'A')
except OSError as e: sys.exit(e.strerror)";

async fn by_us(fs: &Ext4, call: Call, target: &str) -> Result<(), FsError> {
    let (root, name) = (fs.root(), target.as_bytes());
    let attr = fs.lookup(ME, root, name).await?;
    let (ino, spare) = (attr.ino, format!("spare-{target}"));
    let beside = |what: &str| format!("{what}-{target}").into_bytes();
    let write = async |offset, bytes: &[u8], io| {
        fs.write(ME, ino, offset, Data::Bytes(bytes.to_vec()), io).await.map(drop)
    };
    let set = async |change| fs.setattr(ME, ino, change).await.map(drop);
    let mv = async |from, to| fs.rename(ME, from, to, RenameMode::Replace).await;
    let none = SetAttr::default();
    match call {
        Call::Overwrite => write(5_000, b"new", Io::Buffered).await,
        Call::OverwriteDirect => write(0, &[b'd'; 4096], Io::Direct).await,
        Call::Append => write(attr.size, b"more", Io::Buffered).await,
        Call::LeaveGap => write(15_000, b"far", Io::Buffered).await,
        Call::Cut => set(SetAttr { size: Some(9_000), ..none }).await,
        Call::Mode => set(SetAttr { mode: Some(0o700), ..none }).await,
        Call::Times => {
            set(SetAttr { mtime: Some(Timestamp { seconds: 0, nanos: 0 }), ..none }).await
        }
        Call::Reserve => {
            let what = Allocate::Reserve { keep_size: false };
            fs.fallocate(ME, ino, what, 20_000, 5_000).await
        }
        Call::Punch => fs.fallocate(ME, ino, Allocate::PunchHole, 0, 4096).await,
        Call::Attribute => fs.setxattr(ME, ino, b"user.a", b"A", XattrMode::Set).await,
        Call::Link => fs.link(ME, ino, root, &beside("link")).await.map(drop),
        Call::MoveOver => mv((root, spare.as_bytes()), (root, name)).await,
        Call::MoveAway => mv((root, name), (root, &beside("moved"))).await,
        Call::Remove => fs.unlink(ME, root, name).await,
        Call::Make => fs.create(ME, ino, b"new", 0o644).await.map(drop),
        Call::MakeDir => fs.mkdir(ME, ino, b"below", 0o755).await.map(drop),
        Call::SwapChild => mv((ino, b"second"), (ino, b"third")).await,
        Call::RemoveChild => fs.unlink(ME, ino, b"first").await,
        Call::MoveChildOut => mv((ino, b"third"), (root, &beside("out"))).await,
        Call::MoveIn => mv((root, spare.as_bytes()), (ino, b"spare")).await,
        Call::RemoveDir => fs.rmdir(ME, root, name).await,
    }
}

/// 30: what is immutable or append-only stays as it was, or grows.
#[test]
fn flags_forbid_what_the_kernel_forbids() {
    if !e2fsprogs() {
        return;
    }
    let scratch = Scratch::new();
    let Some(path) = image(&scratch) else { return };
    let ended = Rc::new(RefCell::new(Vec::new()));
    let ours = Rc::clone(&ended);
    let result = through(&scratch, &path, async move |fs| {
        for (call, target) in calls() {
            let error = by_us(fs, call, &target).await.err();
            ours.borrow_mut().push((call, target, error.map(|error| error.errno())));
        }
    });
    assert_clean(&result.expect("a mount"));
    let mount = LoopMount::new(&scratch, &path, "rw").expect("a mount");
    for (call, target, ours) in &*ended.borrow() {
        let kernels = by_kernel(mount.path(), *call, target).err();
        let kernels = kernels.map(|error| error.raw_os_error().expect("an error of the kernel"));
        assert_eq!(*ours, kernels, "{call:?} of {target}");
    }
}
