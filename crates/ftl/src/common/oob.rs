//! Out-of-band keys: what a sector on media says that it is.

use nandscape_block::Lba;
use nandscape_media::{KEY_MAX, KEY_TRIM};

/// The logical address that a key stands for, if it is one.
#[inline]
pub(crate) const fn key_lba(key: u32) -> Option<Lba> {
    if key <= KEY_MAX { Some(Lba(key as u64)) } else { None }
}

/// Whether a sector with this key holds something that must be kept.
#[inline]
pub(crate) const fn key_is_live(key: u32) -> bool {
    key <= KEY_MAX || key == KEY_TRIM
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_media::KEY_EMPTY;

    #[test]
    fn keys_are_addresses_trim_records_or_nothing() {
        assert_eq!(key_lba(KEY_MAX), Some(Lba(u64::from(KEY_MAX))));
        assert_eq!((key_lba(KEY_TRIM), key_lba(KEY_EMPTY)), (None, None));
        assert!(key_is_live(0) && key_is_live(KEY_MAX) && key_is_live(KEY_TRIM));
        assert!(!key_is_live(KEY_EMPTY));
    }
}
