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

#[cfg(test)]
mod tests {
    use super::*;

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
