//! Numbers as people read them.

use crate::student::Mean;

/// A unit that fits, and how many of the base unit it is.
pub(crate) type Unit = (&'static str, f64);

/// The unit of time that shows so many nanoseconds best.
pub(crate) fn time_unit(ns: f64) -> Unit {
    let units = [("s", 1e9), ("ms", 1e6), ("µs", 1e3)];
    units.into_iter().find(|(_, scale)| ns.abs() >= *scale).unwrap_or(("ns", 1.0))
}

/// The unit that shows so many bytes best.
pub(crate) fn byte_unit(bytes: f64) -> Unit {
    let units = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let units = units.map(|(name, shift)| (name, (1_u64 << shift) as f64));
    units.into_iter().find(|(_, scale)| bytes >= *scale).unwrap_or(("B", 1.0))
}

/// So many bytes, as `1.50 GiB`.
pub(crate) fn bytes(bytes: f64) -> String {
    let (unit, scale) = byte_unit(bytes);
    if scale == 1.0 { format!("{bytes:.0} B") } else { format!("{:.2} {unit}", bytes / scale) }
}

/// So many nanoseconds, as `1.812 ms`.
pub(crate) fn time(ns: f64) -> String {
    let (unit, scale) = time_unit(ns);
    format!("{} {unit}", number(ns / scale))
}

/// To four digits.
pub(crate) fn number(number: f64) -> String {
    digits(number, decimals(number))
}

/// A mean to four digits, a time in the unit that fits: `8.818 ± 0.012`, `1.812 ± 0.021 ms`. Of two samples with their
/// range: `8.401 (8.395..8.407)`.
pub(crate) fn show(is_time: bool, mean: &Mean) -> String {
    let unit = Some(time_unit(mean.mean)).filter(|_| is_time && mean.mean != 0.0);
    let scale = unit.map_or(1.0, |(_, ns)| ns);
    let decimals = decimals(mean.mean / scale);
    let mut text = digits(mean.mean / scale, decimals);
    if mean.is_range() {
        let [low, high] = mean.ends.map(|end| digits(end / scale, decimals));
        text.push_str(&format!(" ({low}..{high})"));
    } else if let Some(half) = mean.half_width {
        text.push_str(&format!(" ± {}", digits(half / scale, decimals)));
    }
    unit.map_or(text.clone(), |(name, _)| format!("{text} {name}"))
}

const fn decimals(number: f64) -> usize {
    match number.abs() {
        n if n >= 1000.0 => 0,
        n if n >= 100.0 => 1,
        n if n >= 10.0 => 2,
        _ => 3,
    }
}

fn digits(number: f64, decimals: usize) -> String {
    let whole = decimals == 0 && (0.0..1e18).contains(&number);
    if whole { grouped(number.round() as u64) } else { format!("{number:.decimals$}") }
}

/// With commas: `1,234,567`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .filter_map(|group| std::str::from_utf8(group).ok())
        .collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Figures have four digits, and an interval has as many decimals as its mean.
    #[test]
    fn figures_are_readable() {
        let show = |is_time, mean, half_width| {
            show(is_time, &Mean { half_width, samples: 3, ..Mean::exactly(mean) })
        };
        assert_eq!(show(false, 8.8179, Some(0.0123)), "8.818 ± 0.012");
        assert_eq!(show(false, 8.8179, None), "8.818");
        assert_eq!(show(false, 17_812.3, Some(99.8)), "17,812 ± 100");
        assert_eq!(show(true, 1_812_345.0, Some(21_000.0)), "1.812 ± 0.021 ms");
        assert_eq!(show(true, 0.0, None), "0.000");
        let two = Mean::of(&[1_800_000.0, 1_900_000.0]).unwrap();
        assert_eq!(super::show(true, &two), "1.850 (1.800..1.900) ms");
    }

    /// Units fit what they show.
    #[test]
    fn units_fit() {
        assert_eq!(bytes(512.0), "512 B");
        assert_eq!(bytes((3_u64 << 29) as f64), "1.50 GiB");
        assert_eq!(time(12_345.0), "12.35 µs");
        assert_eq!(time(7.0), "7.000 ns");
        assert_eq!(grouped(1_234_567), "1,234,567");
    }
}
