//! Filebench workloads on a real ext4 in memory: what each flowop does to the file system, what is
//! counted, and that a run repeats.

mod again;
mod counted;
mod effects;
mod stand;
mod together;
