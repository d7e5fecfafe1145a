//! Little-endian records: a table of fields and places makes a plain struct, its reading and its
//! writing.
//!
//! - Writing touches the bytes of the fields and no others: what a record does not know survives when
//!   it is written over the bytes that it was read from.
//! - A field beyond the end of the bytes reads as 0 and is not written. So one table serves records
//!   that grew, such as group descriptors of 32 and of 64 bytes.
//! - The table stays at hand as `FIELDS`, for those who list a record, and for the byte tables of
//!   docs/formats, which are checked against it.

/// Where a field of a record lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Field {
    /// The field's name.
    pub name: &'static str,
    /// Its first byte.
    pub at: usize,
    /// How many bytes lie there.
    pub bytes: usize,
    /// Place and length of the upper bytes of a field that is split in two.
    pub upper: Option<(usize, usize)>,
}

/// Where the last of these fields ends.
pub(crate) const fn end(fields: &[Field]) -> usize {
    let (mut rest, mut end) = (fields, 0);
    while let [field, more @ ..] = rest {
        let (at, bytes) = match field.upper {
            Some((at, bytes)) if at + bytes > field.at + field.bytes => (at, bytes),
            _ => (field.at, field.bytes),
        };
        end = if at + bytes > end { at + bytes } else { end };
        rest = more;
    }
    end
}

/// What a field holds: an integer, or an array of them.
pub(crate) trait Wire: Sized {
    /// Its length.
    const BYTES: usize;
    /// Reads it from the beginning of `bytes`.
    fn get(bytes: &[u8]) -> Self;
    /// Writes it to the beginning of `bytes`.
    fn put(&self, bytes: &mut [u8]);
}

macro_rules! integers {
    ($($int:ty),*) => {$(
        impl Wire for $int {
            const BYTES: usize = size_of::<Self>();
            #[inline]
            fn get(bytes: &[u8]) -> Self {
                bytes.first_chunk().map_or(0, |bytes| Self::from_le_bytes(*bytes))
            }
            #[inline]
            fn put(&self, bytes: &mut [u8]) {
                if let Some(place) = bytes.first_chunk_mut() {
                    *place = self.to_le_bytes();
                }
            }
        }
    )*};
}
integers!(u8, u16, u32, u64);

impl<T: Wire, const N: usize> Wire for [T; N] {
    const BYTES: usize = N * T::BYTES;
    fn get(bytes: &[u8]) -> Self {
        std::array::from_fn(|i| T::get(bytes.get(i * T::BYTES..).unwrap_or_default()))
    }
    fn put(&self, bytes: &mut [u8]) {
        for (i, item) in self.iter().enumerate() {
            item.put(bytes.get_mut(i * T::BYTES..).unwrap_or_default());
        }
    }
}

/// The `len` bytes at `at`, or 0 if they are not all there.
pub(crate) fn uint(bytes: &[u8], at: usize, len: usize) -> u64 {
    let place = bytes.get(at..at + len).unwrap_or_default();
    place.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

/// Writes the low `len` bytes of `value` at `at`, if there is room for all of them.
#[inline]
pub(crate) fn put_uint(bytes: &mut [u8], at: usize, len: usize, value: u64) {
    if let Some(place) = bytes.get_mut(at..at + len) {
        place.copy_from_slice(&value.to_le_bytes()[..len]);
    }
}

/// The 16-bit integer at `at`.
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::get(bytes.get(at..).unwrap_or_default())
}

/// The 32-bit integer at `at`.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::get(bytes.get(at..).unwrap_or_default())
}

/// Writes a 16-bit integer at `at`.
pub(crate) fn put_u16(bytes: &mut [u8], at: usize, value: u16) {
    put_uint(bytes, at, 2, u64::from(value));
}

/// Writes a 32-bit integer at `at`.
pub(crate) fn put_u32(bytes: &mut [u8], at: usize, value: u32) {
    put_uint(bytes, at, 4, u64::from(value));
}

/// A record from its table. `name: type = offset` is a field in one piece; in
/// `name: type = low[n] + high[m]`, `n` bytes lie at `low` and the `m` above them at `high`.
macro_rules! record {
    (
        $(#[$about:meta])*
        pub struct $record:ident {
            $( $(#[$doc:meta])* $name:ident : $type:ty =
                $at:literal $([$low:literal] + $high_at:literal [$high:literal])?, )*
        }
    ) => {
        $(#[$about])*
        pub struct $record {
            $( $(#[$doc])* pub $name: $type, )*
        }

        impl $record {
            /// Where each field lies.
            pub const FIELDS: &'static [$crate::wire::Field] = &[
                $( record!(@field $name, $type, $at $(, $low, $high_at, $high)?), )*
            ];

            /// The fields as they stand in `bytes`, unchecked.
            pub(crate) fn read(bytes: &[u8]) -> Self {
                Self { $( $name: record!(@get bytes, $type, $at $(, $low, $high_at, $high)?), )* }
            }

            /// Writes the fields over `bytes`.
            pub(crate) fn write(&self, bytes: &mut [u8]) {
                // Where all fields have room, whether each has need not be asked.
                match bytes.first_chunk_mut::<{ $crate::wire::end(Self::FIELDS) }>() {
                    Some(all) => self.put(all),
                    None => self.put(bytes),
                }
            }

            #[inline(always)]
            fn put(&self, bytes: &mut [u8]) {
                $( record!(@put bytes, self.$name, $at $(, $low, $high_at, $high)?); )*
            }
        }
    };
    (@field $name:ident, $type:ty, $at:literal) => {
        $crate::wire::Field {
            name: stringify!($name),
            at: $at,
            bytes: <$type as $crate::wire::Wire>::BYTES,
            upper: None,
        }
    };
    (@field $name:ident, $type:ty, $at:literal, $low:literal, $high_at:literal, $high:literal) => {
        $crate::wire::Field {
            name: stringify!($name),
            at: $at,
            bytes: $low,
            upper: Some(($high_at, $high)),
        }
    };
    (@get $bytes:ident, $type:ty, $at:literal) => {
        <$type as $crate::wire::Wire>::get($bytes.get($at..).unwrap_or_default())
    };
    (@get $bytes:ident, $type:ty, $at:literal, $low:literal, $high_at:literal, $high:literal) => {{
        use $crate::wire::uint;
        (uint($bytes, $at, $low) | uint($bytes, $high_at, $high) << (8 * $low)) as $type
    }};
    (@put $bytes:ident, $value:expr, $at:literal) => {
        $crate::wire::Wire::put(
            &$value,
            $bytes.get_mut($at..).unwrap_or_default(),
        )
    };
    (@put $bytes:ident, $value:expr, $at:literal, $low:literal, $high_at:literal, $high:literal) => {{
        use $crate::wire::put_uint;
        put_uint($bytes, $at, $low, u64::from($value));
        put_uint($bytes, $high_at, $high, u64::from($value) >> (8 * $low));
    }};
}
pub(crate) use record;
