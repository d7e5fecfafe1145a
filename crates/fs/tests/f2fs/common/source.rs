//! Folders to be loaded to a volume, and what a manifest has to say of them.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

/// Content that differs from block to block and from file to file.
pub(crate) fn content(seed: u64, bytes: usize) -> Vec<u8> {
    let word = |at: u64| (at ^ seed.rotate_left(17)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24;
    (0..bytes as u64).map(|at| word(at / 3) as u8 ^ at as u8).collect()
}

/// A folder with files of unlike sizes, directories of one and of many blocks, links of both kinds, and names
/// of all lengths. `names` are those of its largest directory; `large` says whether a file is larger than an
/// inode has addresses for.
pub(crate) fn fill(at: &Path, names: u32, large: bool) {
    let write = |name: &str, bytes: usize| {
        fs::write(at.join(name), content(bytes as u64, bytes)).expect("a file");
    };
    let mkdir = |name: &str| fs::create_dir_all(at.join(name)).expect("a folder");
    for dir in ["small", "many", "deep/er/and/deeper", "empty"] {
        mkdir(dir);
    }
    for (number, bytes) in
        [0, 1, 100, 3_400, 3_600, 4_095, 4_096, 4_097, 100_000].iter().enumerate()
    {
        write(&format!("small/file{number}"), *bytes);
    }
    if large {
        write("small/direct", 3_000 * 4096 + 5);
    }
    write("deep/er/and/deeper/below", 20_000);
    for number in 0..names {
        let length = 1 + number as usize % 200;
        write(&format!("many/{number:0>length$}"), number as usize % 50);
    }
    write(&"n".repeat(255), 10);
    fs::set_permissions(at.join("small/file2"), fs::Permissions::from_mode(0o4751))
        .expect("a mode");
    symlink("small/file1", at.join("link")).expect("a link");
    symlink("x".repeat(1_000), at.join("long")).expect("a link");
}

/// Of each path the fields that loading keeps: type, mode, size, times, content.
pub(crate) fn expected(at: &Path) -> BTreeMap<Vec<u8>, String> {
    let mut lines = BTreeMap::new();
    let mut waiting = vec![(Vec::new(), at.to_owned())];
    while let Some((path, from)) = waiting.pop() {
        let metadata = fs::symlink_metadata(&from).expect("an inode");
        let mut line = String::new();
        let kind = metadata.file_type();
        let letter = if kind.is_dir() {
            'd'
        } else if kind.is_symlink() {
            'l'
        } else {
            'f'
        };
        let _ = write!(line, "type={letter}");
        if letter != 'l' {
            let _ = write!(line, " mode={:04o}", metadata.mode() & 0o7777);
        }
        if letter == 'f' {
            let bytes = fs::read(&from).expect("a file");
            let _ = write!(line, " size={} crc={:08x}", metadata.size(), crc32c::crc32c(&bytes));
        }
        if letter == 'l' {
            let target = fs::read_link(&from).expect("a link");
            let _ = write!(line, " target={}", target.to_str().expect("text"));
        }
        if letter == 'd' {
            for below in fs::read_dir(&from).expect("a folder") {
                let below = below.expect("a name");
                let path = [&path[..], b"/", below.file_name().as_bytes()].concat();
                waiting.push((path, below.path()));
            }
        }
        let path = if path.is_empty() { b"/".to_vec() } else { path };
        lines.insert(path, line);
    }
    lines
}
