//! Hashes of names, by which htree directories are ordered: legacy, half MD4 and TEA, each with
//! characters taken as signed or unsigned. Golden values come from debugfs (`dx_hash`).
//! Sources: Documentation/filesystems/ext4/directory.rst; RFC 1320 for MD4's functions; Wheeler and Needham, "TEA".

/// Which hash, by its number on disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HashVersion {
    /// 0 and 3.
    Legacy {
        /// Characters are unsigned.
        unsigned: bool,
    },
    /// 1 and 4.
    HalfMd4 {
        /// Characters are unsigned.
        unsigned: bool,
    },
    /// 2 and 5.
    Tea {
        /// Characters are unsigned.
        unsigned: bool,
    },
}

/// Hash and tie-breaker of a name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct NameHash {
    /// The hash; its lowest bit is always 0.
    pub hash: u32,
    /// Orders names of one hash for those who read a directory in order.
    pub minor: u32,
}

/// No name has this hash: it marks the end of a directory.
const END: u32 = 0x7fff_ffff << 1;

impl HashVersion {
    /// The version of a number on disk; `unsigned` is the file system's flag and counts for 0, 1, 2.
    #[must_use]
    pub const fn of(number: u8, unsigned: bool) -> Option<Self> {
        Some(match number {
            0 => Self::Legacy { unsigned },
            1 => Self::HalfMd4 { unsigned },
            2 => Self::Tea { unsigned },
            3 => Self::Legacy { unsigned: true },
            4 => Self::HalfMd4 { unsigned: true },
            5 => Self::Tea { unsigned: true },
            _ => return None,
        })
    }

    /// The number in a directory's root, which leaves signedness to the file system.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Legacy { .. } => 0,
            Self::HalfMd4 { .. } => 1,
            Self::Tea { .. } => 2,
        }
    }

    /// Hashes a name.
    #[must_use]
    pub fn hash(self, name: &[u8], seed: &[u32; 4]) -> NameHash {
        let begin = if *seed == [0; 4] { INITIAL } else { *seed };
        let NameHash { hash, minor } = match self {
            Self::Legacy { unsigned } => NameHash { hash: legacy(name, unsigned), minor: 0 },
            Self::HalfMd4 { unsigned } => {
                let state = chunks::<8>(name, unsigned).fold(begin, half_md4);
                NameHash { hash: state[1], minor: state[2] }
            }
            Self::Tea { unsigned } => {
                let state = chunks::<4>(name, unsigned).fold(begin, tea);
                NameHash { hash: state[0], minor: state[1] }
            }
        };
        let even = hash & !1;
        NameHash { hash: if even == END { END - 2 } else { even }, minor }
    }
}

/// MD4's initial state.
const INITIAL: [u32; 4] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];

/// A character as the integer that C makes of it.
const fn widened(byte: u8, unsigned: bool) -> u32 {
    if unsigned { byte as u32 } else { byte as i8 as u32 }
}

fn legacy(name: &[u8], unsigned: bool) -> u32 {
    let (last, _) =
        name.iter().fold((0x12a3_fe2d_u32, 0x37ab_e8f9_u32), |(last, before), &byte| {
            let mixed = last ^ widened(byte, unsigned).wrapping_mul(7_152_373);
            let next = before.wrapping_add(mixed);
            let next = if next >> 31 == 1 { next.wrapping_sub(0x7fff_ffff) } else { next };
            (next, last)
        });
    last << 1
}

/// The words that a name is mixed in by, `N` at a time. What a name leaves of the last is filled with
/// the length of what is left of the name.
fn chunks<const N: usize>(name: &[u8], unsigned: bool) -> impl Iterator<Item = [u32; N]> {
    (0..name.len()).step_by(4 * N).map(move |at| words(&name[at..], unsigned))
}

fn words<const N: usize>(left: &[u8], unsigned: bool) -> [u32; N] {
    let fill = (left.len() as u32 & 0xff) * 0x0101_0101;
    std::array::from_fn(|word| {
        let bytes = left.iter().skip(4 * word).take(4);
        bytes.fold(fill, |value, &byte| (value << 8).wrapping_add(widened(byte, unsigned)))
    })
}

fn half_md4(state: [u32; 4], x: [u32; 8]) -> [u32; 4] {
    /// Order of the words, rotations, and constant of each round.
    const ROUNDS: [([usize; 8], [u32; 4], u32); 3] = [
        ([0, 1, 2, 3, 4, 5, 6, 7], [3, 7, 11, 19], 0),
        ([1, 3, 5, 7, 0, 2, 4, 6], [3, 5, 9, 13], 0x5a82_7999),
        ([3, 7, 2, 6, 1, 5, 0, 4], [3, 9, 11, 15], 0x6ed9_eba1),
    ];
    let mut registers = state;
    for (round, (order, rotations, constant)) in ROUNDS.iter().enumerate() {
        for (step, &word) in order.iter().enumerate() {
            let [a, b, c, d] = registers;
            let mixed = match round {
                0 => d ^ (b & (c ^ d)),
                1 => (b & c).wrapping_add((b ^ c) & d),
                _ => b ^ c ^ d,
            };
            let sum = a.wrapping_add(mixed).wrapping_add(x[word]).wrapping_add(*constant);
            registers = [d, sum.rotate_left(rotations[step % 4]), b, c];
        }
    }
    std::array::from_fn(|i| state[i].wrapping_add(registers[i]))
}

fn tea(state: [u32; 4], key: [u32; 4]) -> [u32; 4] {
    const DELTA: u32 = 0x9e37_79b9;
    let (mut left, mut right) = (state[0], state[1]);
    for round in 1..=16 {
        let sum = DELTA.wrapping_mul(round);
        let half = |of: u32, a: u32, b: u32| {
            (of << 4).wrapping_add(a) ^ of.wrapping_add(sum) ^ (of >> 5).wrapping_add(b)
        };
        left = left.wrapping_add(half(right, key[0], key[1]));
        right = right.wrapping_add(half(left, key[2], key[3]));
    }
    [state[0].wrapping_add(left), state[1].wrapping_add(right), state[2], state[3]]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// No name is taken for the end of a directory, and no hash is odd.
        #[test]
        fn hashes_are_even_and_below_the_end(
            name in proptest::collection::vec(any::<u8>(), 1..256),
            number in 0..6_u8,
            seed in any::<[u32; 4]>(),
        ) {
            let version = HashVersion::of(number, false).unwrap();
            let hash = version.hash(&name, &seed).hash;
            prop_assert!(hash & 1 == 0 && hash < END);
        }

        /// Signedness counts only for characters beyond ASCII.
        #[test]
        fn ascii_has_no_sign(name in "[ -~]{1,80}", number in 0..3_u8) {
            let hash = |unsigned| HashVersion::of(number, unsigned).unwrap().hash(name.as_bytes(), &[7; 4]);
            prop_assert_eq!(hash(false), hash(true));
        }
    }
}
