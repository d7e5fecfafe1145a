//! File systems in their real on-disk formats, over the block contract and nothing below it.

pub mod ext4;
