//! Columns: arrays of one value a sector, for devices of hundreds of gibibytes.
//!
//! - A fresh column is all zeroes and costs no memory: the operating system backs what is touched.
//! - It asks for huge pages, because tables that are looked up at random otherwise pay for address
//!   translation as much as for the data.
//! - [`Column::prefetch`] pulls an element towards the caches without waiting for it.
//!
//! This crate fences in unsafe code: viewing mapped bytes as elements, and the prefetch instruction.
//! Both rest on the invariant that `map` holds at least `len` elements.

pub use bytemuck::Pod;
use memmap2::MmapMut;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

/// A fixed-length array of plain values, zero at first.
pub struct Column<T> {
    map: MmapMut,
    len: usize,
    of: PhantomData<T>,
}

impl<T: Pod> Column<T> {
    /// A column of `len` zeroes; `None` when the process cannot have the address space.
    #[must_use]
    pub fn zeroed(len: u64) -> Option<Self> {
        let len = usize::try_from(len).ok()?;
        let bytes = len.checked_mul(size_of::<T>())?.max(1);
        let map = MmapMut::map_anon(bytes).ok()?;
        // Only a matter of speed: a system without huge pages serves as well.
        #[cfg(target_os = "linux")]
        let _ = map.advise(memmap2::Advice::HugePage);
        Some(Self { map, len, of: PhantomData })
    }

    /// Pulls the element towards the caches, if there is one.
    #[inline]
    pub fn prefetch(&self, index: usize) {
        #[cfg(target_arch = "x86_64")]
        if let Some(element) = self.get(index) {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            // SAFETY: a prefetch reads nothing and faults never; the address is an element's.
            unsafe { _mm_prefetch(std::ptr::from_ref(element).cast(), _MM_HINT_T0) }
        }
        #[cfg(not(target_arch = "x86_64"))]
        std::hint::black_box(self.get(index));
    }
}

impl<T: Pod> Deref for Column<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: the mapping is page-aligned, holds `len` elements, lives as long as `self`, and any
        // bytes are a valid `T`.
        unsafe { std::slice::from_raw_parts(self.map.as_ptr().cast(), self.len) }
    }
}

impl<T: Pod> DerefMut for Column<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.map.as_mut_ptr().cast(), self.len) }
    }
}

impl<T> fmt::Debug for Column<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Column of {}", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_zero_until_written() {
        let mut column = Column::<u32>::zeroed(1 << 30).expect("address space");
        assert_eq!((column.len(), column[0], column[(1 << 30) - 1]), (1 << 30, 0, 0));
        column[12_345] = 7;
        assert_eq!(&column[12_344..12_347], &[0, 7, 0]);
    }

    #[test]
    fn hints_beyond_the_end_are_harmless() {
        let column = Column::<u64>::zeroed(0).expect("address space");
        column.prefetch(0);
        column.prefetch(usize::MAX);
        assert!(column.is_empty());
    }

    #[test]
    fn what_cannot_be_had_is_refused() {
        assert!(Column::<u64>::zeroed(u64::MAX).is_none());
        assert!(Column::<u64>::zeroed(u64::MAX / 16).is_none());
    }
}
