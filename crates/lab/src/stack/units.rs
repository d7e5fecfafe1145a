//! Sizes and times as users write them, and what a misspelt word may have meant.

use nandscape_rt::Nanos;
use nandscape_workload::fio::edit_distance;

/// Bytes of a size such as `64MiB`, `4k`, `4096`; factors are powers of 1,024 (fio's `kb_base=1024`).
/// `None` when it is none or does not fit 64 bits.
pub(crate) fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let shift = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        "p" | "pb" | "pib" => 50,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// A size in the largest unit that divides it.
pub(super) fn show_size(bytes: u64) -> String {
    let units = [(50, "PiB"), (40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    let unit = units.iter().find(|(shift, _)| bytes > 0 && bytes.trailing_zeros() >= *shift);
    unit.map_or_else(|| bytes.to_string(), |(shift, name)| format!("{}{name}", bytes >> shift))
}

/// Units of time that a stack's values may have, the longest first.
const TIMES: [(&str, u64); 4] = [("ms", 1_000_000), ("us", 1_000), ("ns", 1), ("s", 1_000_000_000)];

/// A time such as `5s` or `500ms`. `None` when it is none or does not fit 64 bits of nanoseconds.
pub(crate) fn parse_time(text: &str) -> Option<Nanos> {
    TIMES.iter().find_map(|(unit, ns)| {
        let number: u64 = text.trim().strip_suffix(unit)?.trim().parse().ok()?;
        number.checked_mul(*ns).map(Nanos)
    })
}

/// A time in the largest unit that divides it.
pub(super) fn show_time(time: Nanos) -> String {
    let whole = TIMES.iter().filter(|(_, ns)| time.0.is_multiple_of(*ns));
    let (unit, ns) = whole.max_by_key(|(_, ns)| *ns).unwrap_or(&("ns", 1));
    format!("{}{unit}", time.0 / ns)
}

/// `; did you mean "x"?` for the nearest of `words` that is near enough, else nothing.
pub(super) fn did_you_mean<'a>(word: &str, words: impl IntoIterator<Item = &'a str>) -> String {
    let word: Vec<char> = word.chars().collect();
    let distance = |known: &str| edit_distance(&word, &known.chars().collect::<Vec<_>>());
    let distances = words.into_iter().map(|known| (distance(known), known));
    let near = distances.filter(|(edits, known)| *edits <= 1 + known.len() / 3);
    near.min().map_or_else(String::new, |(_, known)| format!("; did you mean \"{known}\"?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_1024_and_survive_a_round_trip() {
        let cases = [("4k", 4096), ("64MiB", 64 << 20), ("1gb", 1 << 30), ("4096", 4096), ("0", 0)];
        for (text, bytes) in cases {
            assert_eq!(parse_size(text), Some(bytes), "{text}");
            assert_eq!(parse_size(&show_size(bytes)), Some(bytes), "{text}");
        }
        for wrong in ["", "k", "-1", "1.5g", "4x", "99999999999999999999", "99999999p"] {
            assert_eq!(parse_size(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn times_have_a_unit_and_survive_a_round_trip() {
        for (text, ns) in
            [("5s", 5_000_000_000), ("500ms", 500_000_000), ("7us", 7_000), ("3ns", 3)]
        {
            assert_eq!(parse_time(text), Some(Nanos(ns)), "{text}");
            assert_eq!(show_time(Nanos(ns)), text);
        }
        for wrong in ["", "5", "s", "-1s", "1.5s", "99999999999999s"] {
            assert_eq!(parse_time(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn near_misses_are_suggested_and_strangers_are_not() {
        assert_eq!(did_you_mean("gredy", ["fifo", "greedy"]), "; did you mean \"greedy\"?");
        assert_eq!(did_you_mean("op_precent", ["op_percent"]), "; did you mean \"op_percent\"?");
        assert_eq!(did_you_mean("flt", ["fs", "ftl"]), "; did you mean \"ftl\"?");
        assert_eq!(did_you_mean("zebra", ["fifo", "greedy"]), "");
    }
}
