//! Papers: `paper.toml` and the other files of its folder, which is made of the input. The reader of papers knows the files
//! of the machine only, so the folder is a temporary one of each thread, and inputs that may name files elsewhere are left
//! out.

use crate::grid::points;
use crate::input::Files;
use nandscape_lab::stack::document::{Table, parse};
use nandscape_paper::{Files as PaperFiles, Paper, Size};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// What may lead to files without an end.
const OUTSIDE: [&str; 5] = ["/dev", "/proc", "/sys", "..", "\\"];
/// Points up to which a paper is read.
const POINTS_MAX: usize = 64;

static THREADS: AtomicU32 = AtomicU32::new(0);

thread_local! {
    static FOLDER: Folder = Folder::new();
}

/// A folder that is removed at the end of its thread.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let thread = THREADS.fetch_add(1, Ordering::Relaxed);
        let name = format!("nandscape-inputs-{}-{thread}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Whether no sweep of this text has too many points; what is no TOML has none.
fn is_small(name: &str, text: &str) -> bool {
    parse(&name.into(), text).map_or(true, |table| points(&table) <= POINTS_MAX)
}

fn write(folder: &Path, files: &Files<'_>) -> std::io::Result<()> {
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder)?;
    let first = std::iter::once(("paper.toml", files.first));
    first.chain(files.others()).try_for_each(|(name, text)| std::fs::write(folder.join(name), text))
}

/// Reads a paper in each of its sizes.
pub fn paper(input: &[u8]) {
    let Some(files) = Files::of(input) else { return };
    let texts = || std::iter::once(("paper.toml", files.first)).chain(files.others());
    let leads_out = |text: &str| OUTSIDE.iter().any(|part| text.contains(part));
    let is_plain = |name: &str| !name.is_empty() && !name.contains(['/', '\0']) && name != "..";
    let names_are_plain = files.others().all(|(name, _)| is_plain(name));
    if !names_are_plain || texts().any(|(name, text)| leads_out(text) || !is_small(name, text)) {
        return;
    }
    FOLDER.with(|Folder(folder)| {
        if write(folder, &files).is_err() {
            return;
        }
        for size in [Size::Plain, Size::Quick, Size::Full] {
            drop(Paper::load(PaperFiles::Host, folder, size, &Table::new()));
        }
    });
}
