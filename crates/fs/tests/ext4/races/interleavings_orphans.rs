//! Interleavings in words: a file without a name that is still open stays on the list of orphans until
//! it is freed, whatever is done to it meanwhile, so that a power cut does not lose its blocks.

use super::*;
use nandscape_fs::contract::RenameMode;
use nandscape_rt::combine::join2;

/// What may be done to an open file.
#[derive(Clone, Copy)]
enum Doing {
    Nothing,
    Cutting,
    Growing,
}

impl Doing {
    async fn to(self, fs: &Ext4, file: Ino) {
        match self {
            Self::Nothing => {}
            Self::Cutting => drop(fs.setattr(ME, file, resized(PAGE)).await.expect("a length")),
            Self::Growing => put(fs, file, 200, 2, 4, Io::Direct).await,
        }
    }
}

/// Mounts what a power cut left, unmounts it, and finds nothing wrong.
fn assert_recovered(left: MemDevice, options: MountOptions) {
    on_quick(left, async move |stand| {
        let mounted = Ext4::mount(&stand.rt, stand.device.erased(), options).await;
        let (fs, report) = mounted.expect("a mount");
        assert_eq!(report.orphans, 1);
        fs.unmount().await.expect("an unmount");
        stand.assert_sound().await;
    });
}

/// A file that lost its name first.
fn unnamed(doing: Doing) -> MemDevice {
    on(formatted(ROOMY), 1, 20_000, async move |stand| {
        let fs = stand.mount(&MountOptions::default()).await;
        let file = create(&fs, fs.root(), "f").await;
        put(&fs, file, 0, 1, 10, Io::Buffered).await;
        fs.open(ME, file, OpenFlags::default()).await.expect("a file");
        fs.unlink(ME, fs.root(), b"f").await.expect("a name less");
        doing.to(&fs, file).await;
        fs.syncfs(ME).await.expect("power is on");
        stand.cut()
    })
}

/// A file of many extents that loses its name meanwhile.
fn losing_its_name(doing: Doing, after: Nanos) -> MemDevice {
    on(formatted(ROOMY), 1, 20_000, async move |stand| {
        let fs = stand.mount(&MountOptions::default()).await;
        let root = fs.root();
        let file = create(&fs, root, "f").await;
        create(&fs, root, "g").await;
        for page in 0..60 {
            put(&fs, file, page * 3, 1, 1, Io::Buffered).await;
            fs.fsync(ME, file).await.expect("a sync");
        }
        fs.open(ME, file, OpenFlags::default()).await.expect("a file");
        let rename = async {
            stand.rt.sleep(after).await;
            fs.rename(ME, (root, b"g"), (root, b"f"), RenameMode::Replace).await
        };
        let ((), renamed) = join2(doing.to(&fs, file), rename).await;
        assert_eq!(renamed, Ok(()));
        assert_eq!(fs.getattr(ME, file).await.map(|attr| attr.links), Ok(0));
        fs.syncfs(ME).await.expect("power is on");
        stand.cut()
    })
}

#[test]
fn an_unnamed_file_stays_an_orphan() {
    assert_recovered(unnamed(Doing::Nothing), MountOptions::default());
}

#[test]
fn an_unnamed_file_that_is_cut_stays_an_orphan() {
    assert_recovered(unnamed(Doing::Cutting), MountOptions::default());
}

#[test]
fn an_unnamed_file_that_grows_stays_an_orphan() {
    assert_recovered(unnamed(Doing::Growing), MountOptions::default());
}

#[test]
fn a_file_that_loses_its_name_while_it_is_cut_stays_an_orphan() {
    let left = losing_its_name(Doing::Cutting, Nanos(0));
    assert_recovered(left, MountOptions::default());
}

#[test]
fn a_file_that_loses_its_name_while_it_grows_stays_an_orphan() {
    let left = losing_its_name(Doing::Growing, Nanos(500));
    assert_recovered(left, MountOptions::default());
}

/// Orphans that one kind of commit left do not keep the other out.
#[test]
fn orphans_do_not_keep_file_records_out() {
    let options = MountOptions { commit: IJOURNAL, ..MountOptions::default() };
    assert_recovered(unnamed(Doing::Nothing), options);
}
