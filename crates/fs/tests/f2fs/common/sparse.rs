//! Sparse files: what they hold besides holes, so that images of terabytes are compared in a second.

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes of a block.
const BLOCK: usize = 4096;

/// The blocks of a file that are not zeroes, by number.
pub(crate) fn blocks(path: &Path) -> BTreeMap<u64, Box<[u8; BLOCK]>> {
    let file = File::open(path).expect("an image");
    let mut found = BTreeMap::new();
    let mut at = 0;
    while let Some(start) = next(&file, SeekFrom::Data(at)) {
        let end = next(&file, SeekFrom::Hole(start)).expect("a file ends with a hole");
        for block in start / BLOCK as u64..end.div_ceil(BLOCK as u64) {
            let mut bytes = Box::new([0; BLOCK]);
            let from = block * BLOCK as u64;
            let length = (end - from).min(BLOCK as u64) as usize;
            file.read_exact_at(&mut bytes[..length], from).expect("a readable image");
            if bytes.iter().any(|byte| *byte != 0) {
                found.insert(block, bytes);
            }
        }
        at = end;
    }
    found
}

/// Where data, or a hole, begins; `None` after the last.
fn next(file: &File, from: SeekFrom) -> Option<u64> {
    match seek(file, from) {
        Ok(at) => Some(at),
        Err(Errno::NXIO) => None,
        Err(error) => panic!("no search for data in an image: {error}"),
    }
}
