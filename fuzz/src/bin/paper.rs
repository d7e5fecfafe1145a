//! Papers: `paper.toml` and the other files of its folder, which is made of the input. The reader of papers knows the files
//! of the machine only, so the folder is a temporary one, and inputs that may name files elsewhere are left out.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nandscape_fuzz::grid::points;
use nandscape_fuzz::input::Files;
use nandscape_lab::stack::document::{Table, parse};
use nandscape_paper::{Files as PaperFiles, Paper, Size};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// What may lead to files without an end.
const OUTSIDE: [&str; 5] = ["/dev", "/proc", "/sys", "..", "\\"];
/// Points up to which a paper is read.
const POINTS_MAX: usize = 64;

static FOLDER: LazyLock<PathBuf> =
    LazyLock::new(|| std::env::temp_dir().join(format!("nandscape-fuzz-{}", std::process::id())));

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

fuzz_target!(|input: &[u8]| {
    let Some(files) = Files::of(input) else { return };
    let texts = || std::iter::once(("paper.toml", files.first)).chain(files.others());
    let leads_out = |text: &str| OUTSIDE.iter().any(|part| text.contains(part));
    let is_plain = |name: &str| !name.is_empty() && !name.contains(['/', '\0']) && name != "..";
    let names_are_plain = files.others().all(|(name, _)| is_plain(name));
    if !names_are_plain || texts().any(|(name, text)| leads_out(text) || !is_small(name, text)) {
        return;
    }
    if write(&FOLDER, &files).is_err() {
        return;
    }
    for size in [Size::Plain, Size::Quick, Size::Full] {
        drop(Paper::load(PaperFiles::Host, &FOLDER, size, &Table::new()));
    }
});
