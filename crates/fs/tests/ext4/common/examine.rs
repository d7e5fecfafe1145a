//! Our own check and dump on image files.

use nandscape_block::{AsyncDevice, ImageDevice};
use nandscape_fs::CheckReport;
use nandscape_fs::ext4::check::check;
use nandscape_fs::ext4::dump::{DumpTarget, dump};
use nandscape_fs::ext4::format::BLOCK_BYTES;
use nandscape_fs::ext4::raw::RawError;
use nandscape_rt::Executor;
use std::fs::File;
use std::future::Future;
use std::path::Path;

/// Does something with the device of an image file.
fn on_image<T: 'static, F: Future<Output = T> + 'static>(
    path: &Path,
    work: impl FnOnce(AsyncDevice<ImageDevice<File>>) -> F,
) -> T {
    let file = File::open(path).expect("an image");
    let sectors = file.metadata().expect("a size").len() / BLOCK_BYTES as u64;
    let mut executor = Executor::on_virtual_clock();
    let device = AsyncDevice::new(&executor.handle(), ImageDevice::new(file, sectors));
    executor.block_on(work(device)).expect("reading ends")
}

/// What our check finds.
pub(crate) fn check_image(path: &Path) -> Result<CheckReport, RawError> {
    on_image(path, async |device| check(&device.erased()).await)
}

/// Nothing may be wrong with an image.
pub(crate) fn assert_sound(path: &Path) -> CheckReport {
    let report = check_image(path).expect("a file system that can be checked");
    assert!(report.is_clean(), "{}", shown(&report));
    report
}

/// Findings, one a line.
pub(crate) fn shown(report: &CheckReport) -> String {
    report.findings.iter().map(|finding| format!("{finding}\n")).collect()
}

/// Lets our dump show something, which it may refuse.
pub(crate) fn dumped_or_refused(path: &Path, what: DumpTarget) {
    drop(on_image(path, async move |device| dump(&device.erased(), what).await));
}

/// What our dump shows.
pub(crate) fn dumped(path: &Path, what: DumpTarget) -> String {
    let dump = on_image(path, async move |device| dump(&device.erased(), what).await);
    dump.expect("a dump").text
}
