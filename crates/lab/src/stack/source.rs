//! Finding stacks: shipped in the binary or a file, each laid over what it `extends`.

use super::document::{Node, Table, Value, merge, parse};
use super::place::{Place, StackError};
use super::units::did_you_mean;
use nandscape_workload::fio::{Environment, HostEnvironment};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The stacks that ship, by name, in the order in which they are listed.
pub const SHIPPED: &[(&str, &str)] = &[
    ("pblk", include_str!("../../stacks/pblk.toml")),
    ("pblk-4.13", include_str!("../../stacks/pblk-4.13.toml")),
    ("pblk-5.11", include_str!("../../stacks/pblk-5.11.toml")),
    ("js-pblk", include_str!("../../stacks/js-pblk.toml")),
    ("mt-ftl", include_str!("../../stacks/mt-ftl.toml")),
    ("qblk", include_str!("../../stacks/qblk.toml")),
    ("rflush", include_str!("../../stacks/rflush.toml")),
    ("fa-ftl", include_str!("../../stacks/fa-ftl.toml")),
    ("fa-ftl-per-file", include_str!("../../stacks/fa-ftl-per-file.toml")),
    ("selective-lru", include_str!("../../stacks/selective-lru.toml")),
    ("selective-hotness", include_str!("../../stacks/selective-hotness.toml")),
    ("selective-journal", include_str!("../../stacks/selective-journal.toml")),
    ("dftl", include_str!("../../stacks/dftl.toml")),
    ("combined", include_str!("../../stacks/combined.toml")),
    ("ext4-pblk", include_str!("../../stacks/ext4-pblk.toml")),
    ("ext4-js-pblk", include_str!("../../stacks/ext4-js-pblk.toml")),
    ("ext4-fa-ftl", include_str!("../../stacks/ext4-fa-ftl.toml")),
    ("ext4-selective", include_str!("../../stacks/ext4-selective.toml")),
    ("ext4-combined", include_str!("../../stacks/ext4-combined.toml")),
    ("ssd", include_str!("../../stacks/ssd.toml")),
    ("ssd-970pro", include_str!("../../stacks/ssd-970pro.toml")),
    ("iplfs-ssd", include_str!("../../stacks/iplfs-ssd.toml")),
    ("zns", include_str!("../../stacks/zns.toml")),
    ("zn540", include_str!("../../stacks/zn540.toml")),
    ("zns-prototype", include_str!("../../stacks/zns-prototype.toml")),
    ("ext4-ssd", include_str!("../../stacks/ext4-ssd.toml")),
    ("f2fs-lfs-ssd", include_str!("../../stacks/f2fs-lfs-ssd.toml")),
    ("f2fs-ssd", include_str!("../../stacks/f2fs-ssd.toml")),
    ("f2fs-gcj-ssd", include_str!("../../stacks/f2fs-gcj-ssd.toml")),
    ("f2fs-zns", include_str!("../../stacks/f2fs-zns.toml")),
    ("f2fs-gcj-zns", include_str!("../../stacks/f2fs-gcj-zns.toml")),
    ("f2fs-970pro", include_str!("../../stacks/f2fs-970pro.toml")),
    ("f2fs-vanilla-970pro", include_str!("../../stacks/f2fs-vanilla-970pro.toml")),
    ("zf2fs-970pro", include_str!("../../stacks/zf2fs-970pro.toml")),
    ("zf2fs-16g", include_str!("../../stacks/zf2fs-16g.toml")),
    ("d2fs-ssd", include_str!("../../stacks/d2fs-ssd.toml")),
    ("f2fs-16g", include_str!("../../stacks/f2fs-16g.toml")),
    ("iplfs-970pro", include_str!("../../stacks/iplfs-970pro.toml")),
    ("iplfs-16g", include_str!("../../stacks/iplfs-16g.toml")),
    ("d2fs-970pro", include_str!("../../stacks/d2fs-970pro.toml")),
    ("d2fs-16g", include_str!("../../stacks/d2fs-16g.toml")),
    ("bench-8g", include_str!("../../stacks/bench-8g.toml")),
];

/// Shipped stacks that had another name in earlier versions, and their names now.
const RENAMED: &[(&str, &str)] =
    &[("full-house", "combined"), ("ext4-full-house", "ext4-combined")];

/// What stands after the name of a built-in stack where a file's path would be.
pub(super) const BUILT_IN: &str = "(built in)";

/// The TOML of a shipped stack.
#[must_use]
pub fn shipped(name: &str) -> Option<&'static str> {
    SHIPPED.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// The first `#` line of a shipped stack: what it is.
#[must_use]
pub fn summary(text: &str) -> &str {
    text.lines().next().unwrap_or_default().trim_start_matches('#').trim()
}

/// One text that a stack is made of.
struct Found {
    /// What error messages call it.
    file: Arc<str>,
    text: String,
    /// Where its own `extends` looks for files.
    folder: PathBuf,
}

/// A stack named on the command line, merged over all that it extends, and where its file begins.
pub(super) fn load(name: &str) -> Result<(Table, Place), StackError> {
    load_named(name, Path::new(""), &HostEnvironment, &Place::Argument("stack"), "")
}

/// A stack named by `key` at `place` of some file in `folder`, in the same way; `files` has the files.
pub(crate) fn load_named(
    name: &str,
    folder: &Path,
    files: &dyn Environment,
    place: &Place,
    key: &str,
) -> Result<(Table, Place), StackError> {
    let found = find(name, folder, files, place, key)?;
    let place = Place::of(&found.file, "", 0);
    Ok((lay_over_bases(found, files, &mut Vec::new())?, place))
}

/// A stack given as text, merged over all that it extends.
pub(super) fn load_text(file: &str, text: &str) -> Result<(Table, Place), StackError> {
    let found = Found { file: file.into(), text: text.to_owned(), folder: PathBuf::new() };
    let place = Place::of(&found.file, "", 0);
    Ok((lay_over_bases(found, &HostEnvironment, &mut Vec::new())?, place))
}

fn find(
    name: &str,
    folder: &Path,
    files: &dyn Environment,
    place: &Place,
    key: &str,
) -> Result<Found, StackError> {
    if let Some(text) = shipped(name) {
        let file = format!("{name} {BUILT_IN}").into();
        return Ok(Found { file, text: text.to_owned(), folder: PathBuf::new() });
    }
    let path = folder.join(name);
    let text = files.read(&path).map_err(|error| {
        if error.kind() != ErrorKind::NotFound {
            return StackError::new(place, key, format!("cannot read {}: {error}", path.display()));
        }
        if let Some((_, now)) = RENAMED.iter().find(|(old, _)| *old == name) {
            return StackError::new(place, key, format!("stack \"{name}\" is \"{now}\" now"));
        }
        let names = || SHIPPED.iter().map(|(name, _)| *name);
        let shipped = names().collect::<Vec<_>>().join(", ");
        let hint = did_you_mean(name, names());
        let message = format!(
            "unknown stack \"{name}\", and no file of this name (built in: {shipped}){hint}"
        );
        StackError::new(place, key, message)
    })?;
    let folder = path.parent().unwrap_or(Path::new("")).to_owned();
    Ok(Found { file: path.to_string_lossy().into(), text, folder })
}

/// Parses `found` and lays it over the stacks that it extends; `above` are those that extend it.
fn lay_over_bases(
    found: Found,
    files: &dyn Environment,
    above: &mut Vec<Arc<str>>,
) -> Result<Table, StackError> {
    let mut table = parse(&found.file, &found.text)?;
    above.push(found.file.clone());
    let Some(extends) = table.remove("extends") else { return Ok(table) };
    let base = find_base(&extends, &found.folder, files)?;
    if above.contains(&base.file) {
        let message = format!("circular extends: {} -> {}", above.join(" -> "), base.file);
        return Err(StackError::new(&extends.place, "extends", message));
    }
    let mut merged = lay_over_bases(base, files, above)?;
    merge(&mut merged, table);
    Ok(merged)
}

fn find_base(extends: &Node, folder: &Path, files: &dyn Environment) -> Result<Found, StackError> {
    match &extends.value {
        Value::String(name) => find(name, folder, files, &extends.place, "extends"),
        other => {
            let message =
                format!("expected a built-in stack or a file, found {}", other.describe());
            Err(StackError::new(&extends.place, "extends", message))
        }
    }
}
