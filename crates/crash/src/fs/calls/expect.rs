//! Holds what a power cut left against what a case expects.

use crate::calls::What;
use crate::fs::tree::{FileSnapshot, PAGE, Tree, bytes_of, pages_in};
use nandscape_fs::contract::Kind;

/// Whether the tree of a directory shows this.
///
/// # Errors
/// What it shows.
pub(super) fn check(tree: &Tree, root: &str, what: &What) -> Result<(), String> {
    let at = |path: &str| match path {
        "." => tree.get(root),
        path => tree.get(&format!("{root}/{path}")),
    };
    let there = |path: &str| at(path).ok_or_else(|| format!("{path} is missing"));
    match what {
        What::Has(path, kind) => {
            let seen = there(path)?;
            match kind.is_none_or(|kind| kind == seen.kind) {
                true => Ok(()),
                false => Err(format!("{path} is of another kind: {:?}", seen.kind)),
            }
        }
        What::Not(path) => match at(path) {
            None => Ok(()),
            Some(_) => Err(format!("{path} is there")),
        },
        What::Size(path, size) => {
            let seen = file(path, there(path)?)?;
            match seen.size == *size {
                true => Ok(()),
                false => Err(format!("{path} has {} bytes", seen.size)),
            }
        }
        What::Data(path, offset, length, content) => {
            let (seen, end) = (file(path, there(path)?)?, offset + length);
            if seen.size < end {
                return Err(format!("{path} has {} bytes", seen.size));
            }
            for (page, part) in pages_in(*offset..end) {
                let shown = &seen.pages[page as usize];
                let expected = bytes_of(&content.page(page));
                let shown = bytes_of(shown);
                if let Some(first) = part.clone().find(|byte| shown[*byte] != expected[*byte]) {
                    let are_zeroes = shown[part].iter().all(|byte| *byte == 0);
                    let what = if are_zeroes { "zeroes" } else { "another content" };
                    let at = page * PAGE + first as u64;
                    return Err(format!("{path} has {what} at byte {at}"));
                }
            }
            Ok(())
        }
        What::Xattr(path, name, value) => match there(path)?.xattrs.get(name.as_bytes()) {
            Some(shown) if *shown == value.bytes() => Ok(()),
            Some(shown) => Err(format!("{path}: {name} has another value, {} bytes", shown.len())),
            None => Err(format!("{path} has no attribute {name}")),
        },
        What::Same(one, other) => match there(one)?.identity == there(other)?.identity {
            true => Ok(()),
            false => Err(format!("{one} and {other} are two files")),
        },
    }
}

fn file<'a>(path: &str, seen: &'a FileSnapshot) -> Result<&'a FileSnapshot, String> {
    match seen.kind {
        Kind::File => Ok(seen),
        _ => Err(format!("{path} is no regular file")),
    }
}
