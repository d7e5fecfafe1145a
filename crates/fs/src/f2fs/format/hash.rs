//! The hash of a name in a directory: the Tiny Encryption Algorithm over 16 bytes at a time.
//! Follows `f2fs_dentry_hash` in Linux's `fs/f2fs/hash.c`, for directories that are neither encrypted
//! nor without regard to case.
//!
//! The names "." and ".." hash to 0.

/// Bytes of a name that one round takes.
const CHUNK_BYTES: usize = 16;
/// Where the two words of the sum begin.
const SEED: [u32; 2] = [0x6745_2301, 0xefcd_ab89];
/// What the round's constant grows by.
const DELTA: u32 = 0x9e37_79b9;

/// The hash of a name.
#[must_use]
pub fn name_hash(name: &[u8]) -> u32 {
    if matches!(name, b"." | b"..") {
        return 0;
    }
    let mut sum = SEED;
    let mut rest = name;
    loop {
        mix(&mut sum, words(rest));
        match rest.get(CHUNK_BYTES..) {
            Some(more) if !more.is_empty() => rest = more,
            _ => return sum[0],
        }
    }
}

/// The first 16 bytes as four words, first byte on top; what is missing is filled with the length.
fn words(rest: &[u8]) -> [u32; 4] {
    let length = rest.len() as u32;
    let pad = length | length << 8;
    let pad = pad | pad << 16;
    std::array::from_fn(|word| {
        let bytes = rest.iter().skip(4 * word).take(4);
        bytes.fold(pad, |value, byte| value << 8 | u32::from(*byte))
    })
}

/// Sixteen rounds of the cipher with `key`; its result is added to the sum.
fn mix(sum: &mut [u32; 2], key: [u32; 4]) {
    let [mut left, mut right] = *sum;
    let mut constant = 0_u32;
    let half = |other: u32, constant: u32, a: u32, b: u32| {
        (other << 4).wrapping_add(a) ^ other.wrapping_add(constant) ^ (other >> 5).wrapping_add(b)
    };
    for _ in 0..16 {
        constant = constant.wrapping_add(DELTA);
        left = left.wrapping_add(half(right, constant, key[0], key[1]));
        right = right.wrapping_add(half(left, constant, key[2], key[3]));
    }
    *sum = [sum[0].wrapping_add(left), sum[1].wrapping_add(right)];
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hashes as sload.f2fs 1.15 wrote them to a directory; the one of 255 bytes by a separate evaluation
    /// of the kernel's algorithm.
    #[test]
    fn hashes_are_those_of_f2fs_tools() {
        let golden: [(&[u8], u32); 9] = [
            (b"a", 0x6d0e_a4c1),
            (b"file", 0x53fc_f74e),
            (b"lost+found", 0x2dbf_9e80),
            (b"exactly-16-bytes", 0x783b_90b6),
            (b"seventeen-bytes-x", 0x19a3_229e),
            ("é".as_bytes(), 0x6daf_7c01),
            (b"averyveryveryverylongnamethatspansmorethanonechunk.txt", 0x154a_b3f1),
            (&[b'x'; 255], 0x6c4c_00ee),
            (b"..", 0),
        ];
        for (name, hash) in golden {
            assert_eq!(name_hash(name), hash, "{}", name.escape_ascii());
        }
        assert_eq!(name_hash(b"."), 0);
        assert_ne!(name_hash(b"..."), 0);
    }
}
