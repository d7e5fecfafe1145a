//! Bitmaps in F2FS's order: bit 0 is the most significant bit of byte 0 (`f2fs_test_bit` in
//! fs/f2fs/f2fs.h). The version bitmaps say which of the two copies of each SIT or NAT block is current.

/// The place of a bit: its byte, and the mask in it.
const fn place(bit: u32) -> (usize, u8) {
    (bit as usize / 8, 0x80 >> (bit % 8))
}

/// A bit for each block of the SIT or of the NAT: whether the second copy is current. Bits beyond its
/// end read as clear, and are not changed.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct VersionBitmap(Vec<u8>);

impl VersionBitmap {
    /// From the bytes of a checkpoint pack.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }

    /// Its bytes, as they stand in a checkpoint pack.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether the second copy of a block is current.
    #[must_use]
    pub fn is_second(&self, block: u32) -> bool {
        let (byte, mask) = place(block);
        self.0.get(byte).is_some_and(|byte| byte & mask != 0)
    }

    /// Makes the other copy of a block the current one (`f2fs_change_bit`).
    pub fn flip(&mut self, block: u32) {
        let (byte, mask) = place(block);
        if let Some(byte) = self.0.get_mut(byte) {
            *byte ^= mask;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bits are counted from the most significant one; a flip changes that bit alone; beyond the end
    /// there is nothing.
    #[test]
    fn bits_begin_at_the_top_of_a_byte() {
        let mut bitmap = VersionBitmap::from_bytes(&[0, 0]);
        bitmap.flip(0);
        bitmap.flip(14);
        assert_eq!(bitmap.as_bytes(), [0x80, 0x02]);
        assert!(bitmap.is_second(0) && bitmap.is_second(14) && !bitmap.is_second(1));
        bitmap.flip(0);
        bitmap.flip(16);
        assert_eq!(bitmap.as_bytes(), [0, 0x02]);
        assert!(!bitmap.is_second(16) && !bitmap.is_second(u32::MAX));
    }
}
