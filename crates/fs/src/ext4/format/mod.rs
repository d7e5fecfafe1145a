//! The on-disk structures of ext4: parsing, encoding, checksums.
