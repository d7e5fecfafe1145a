//! Counts as people read them.

/// A number and what it counts, in the singular or the plural.
#[must_use]
pub fn counted(number: u64, [one, many]: [&str; 2]) -> String {
    format!("{} {}", grouped(number), if number == 1 { one } else { many })
}

/// With commas: `1,234,567`.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev();
    groups.map(String::from_utf8_lossy).collect::<Vec<_>>().join(",")
}

/// In the largest binary unit: `1.50 GiB`.
#[must_use]
pub fn bytes(bytes: f64) -> String {
    let units = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let of = |shift: u32| bytes / (1u64 << shift) as f64;
    match units.into_iter().find(|(_, shift)| of(*shift) >= 1.0) {
        Some((unit, shift)) => {
            format!("{:.*} {unit}", 1 + usize::from(of(shift) < 99.995), of(shift))
        }
        None => format!("{bytes:.0} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(bytes(512.0), "512 B");
        assert_eq!(bytes((3u64 << 29) as f64), "1.50 GiB");
        assert_eq!(bytes((423u64 << 20) as f64), "423.0 MiB");
    }

    #[test]
    fn counts_are_readable() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(counted(1, ["copy", "copies"]), "1 copy");
        assert_eq!(
            [0, 2_000].map(|n| counted(n, ["copy", "copies"])),
            ["0 copies", "2,000 copies"]
        );
    }
}
