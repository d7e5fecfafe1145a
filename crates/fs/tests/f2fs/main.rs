//! F2FS as a whole and its parts against reference models and f2fs-tools.
//!
//! One test program of many modules: each further one would compile the whole file system once more.

mod images;
