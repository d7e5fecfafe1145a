//! Our own check and dump on image files.

use nandscape_block::{AsyncDevice, ImageDevice};
use nandscape_fs::CheckReport;
use nandscape_fs::f2fs::check::check;
use nandscape_fs::f2fs::dump::{DumpTarget, dump};
use nandscape_fs::f2fs::format::BLOCK_BYTES;
use nandscape_fs::f2fs::raw::RawError;
use nandscape_rt::Executor;
use std::fs::File;
use std::future::Future;
use std::path::Path;

/// Does something with the device of an image file.
pub(crate) fn on_image<T: 'static, F: Future<Output = T> + 'static>(
    path: &Path,
    work: impl FnOnce(AsyncDevice) -> F,
) -> T {
    let file = File::open(path).expect("an image");
    let sectors = file.metadata().expect("a size").len() / BLOCK_BYTES as u64;
    let mut executor = Executor::on_virtual_clock();
    let device = AsyncDevice::new(&executor.handle(), ImageDevice::new(file, sectors));
    executor.block_on(work(device.erased())).expect("reading ends")
}

/// What our check finds.
pub(crate) fn check_image(path: &Path) -> Result<CheckReport, RawError> {
    on_image(path, async |device| check(&device).await)
}

/// Nothing may be wrong with an image.
pub(crate) fn assert_sound(path: &Path) -> CheckReport {
    let report = check_image(path).expect("a volume that can be checked");
    assert!(report.is_clean(), "{}", shown(&report));
    report
}

/// Findings, one per line.
pub(crate) fn shown(report: &CheckReport) -> String {
    report.findings.iter().map(|finding| format!("{finding}\n")).collect()
}

/// What our dump shows, or why it refuses.
pub(crate) fn try_dump(path: &Path, what: DumpTarget) -> Result<String, RawError> {
    on_image(path, async move |device| Ok(dump(&device, what).await?.text))
}
