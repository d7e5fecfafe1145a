//! Regions of the address space, by how they are mapped. A conventional SSD is one region of pages.

pub(super) mod pages;
