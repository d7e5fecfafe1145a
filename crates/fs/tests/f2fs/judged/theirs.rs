//! Volumes that a kernel filled: read, rolled forward where they were cut off, and changed. The file `theirs`
//! names them, one per line. For each there are then `NAME.read`, the tree as of the last checkpoint;
//! `NAME.manifest`, the tree as a mount shows it; and `NAME-changed`, an image with its manifest, after calls on top of that.

use super::{folder, manifest, recover, sectors_of, unmount, write_image, write_text};
use crate::churn::{Churn, Shape};
use crate::common::examine::assert_sound;
use crate::common::image::{content, content_of};
use crate::common::volume::{loaded, run};
use crate::common::{assert_clean, f2fs_tools};
use nandscape_fs::f2fs::MountReport;
use nandscape_rt::Handle;

async fn use_volume(rt: Handle, number: u64, name: String) -> MountReport {
    let path = folder().join(format!("{name}.img"));
    let (sectors, left) = (sectors_of(&path), content_of(&path));
    let device = loaded(&rt, sectors, &left).await;
    write_text(&format!("{name}.read"), &manifest(&device.erased()).await);
    let options = Shape::drawn(number).mount;
    let (report, tree) = recover(&device.erased(), &rt, &options).await;
    write_text(&format!("{name}.manifest"), &tree);
    let mut churn = Churn::go_on(&rt, device.erased(), number, options).await;
    churn.run(250).await;
    churn.compare().await;
    let changed = unmount(&device.erased(), &churn.fs).await;
    let image = write_image(&format!("{name}-changed"), sectors, &content(&device));
    write_text(&format!("{name}-changed.manifest"), &changed);
    assert_ne!(changed, tree, "{name}: was changed");
    assert_clean(&image);
    assert_sound(&image);
    report
}

#[test]
#[ignore = "uses volumes of tests/kernel-f2fs/check.py"]
fn use_them() {
    assert!(f2fs_tools(), "f2fs-tools are needed");
    let list = std::fs::read_to_string(folder().join("theirs")).expect("a list of volumes");
    assert!(!list.is_empty());
    for (number, name) in (0..).zip(list.lines()) {
        let of_volume = name.to_owned();
        let report = run(async move |rt| use_volume(rt, number, of_volume).await);
        eprintln!("{name}: {report:?}");
        // With `fsync_mode=strict` the last fsync may have written a checkpoint.
        if !name.ends_with("strict") {
            assert_eq!(report.files > 0, name.starts_with("theirs-cut"), "{name}: {report:?}");
        }
    }
}
