//! F2FS as a whole and its parts against reference models, f2fs-tools and volumes that a kernel filled.
//!
//! One test program of many modules: each further one would compile the whole file system once more.

mod adaptive;
mod appended;
mod beside;
mod beside_cleaning;
mod bios;
mod check;
mod churn;
mod common;
mod cores;
mod damaged;
mod fsx;
mod gc_journal;
mod growth;
mod images;
mod journal_order;
mod journalled;
mod judged;
mod kernel;
#[path = "../ext4/races/late.rs"]
mod late;
mod low_space;
mod mark_cuts;
mod mkfs;
mod names;
mod nat_bits;
mod read;
mod replayed;
mod rolled;
mod zoned;
mod zoned_chain;
mod zoned_resets;
mod zoned_room;
