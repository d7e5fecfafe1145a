//! File name extensions that mkfs.f2fs 1.15 puts on the superblock's list by default: files whose data
//! are cold since they are written once, and files whose data are hot.

use crate::f2fs::format::Superblock;

/// Media, archives and programs.
const COLD: &str = "mp wm og jp avi m4v m4p mkv mov webm wav m4a 3gp opus flac gif png svg webp jar deb \
                    iso gz xz zst pdf pyc ttc ttf exe apk cnt exo odex vdex so";
/// Databases and disks of virtual machines.
const HOT: &str = "db vmdk vdi qcow2";

/// Puts the extensions on the list.
pub(super) fn list(sb: &mut Superblock) {
    sb.extension_count = COLD.split_whitespace().count() as u32;
    sb.hot_ext_count = HOT.split_whitespace().count() as u8;
    let words = COLD.split_whitespace().chain(HOT.split_whitespace());
    for (place, word) in sb.extension_list.iter_mut().zip(words) {
        for (byte, letter) in place.iter_mut().zip(word.bytes()) {
            *byte = letter;
        }
    }
}
