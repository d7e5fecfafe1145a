//! CPU time of programs that this process waited for: what limits and budgets are stated in, as seconds of a busy machine
//! say nothing.

/// Ticks of `/proc` per second: fixed on Linux for every architecture that runs this.
const TICKS_PER_S: f64 = 100.0;

/// CPU seconds, user and system, of all children that ended, with theirs.
///
/// # Errors
/// `/proc/self/stat` cannot be read.
pub(crate) fn of_children() -> Result<f64, String> {
    let file = "/proc/self/stat";
    let stat = std::fs::read_to_string(file).map_err(|e| format!("{file}: {e}"))?;
    children_ticks(&stat)
        .map(|ticks| ticks as f64 / TICKS_PER_S)
        .ok_or_else(|| format!("{file}: {stat}"))
}

/// `cutime` and `cstime` of proc(5): fields 16 and 17, where the program's name, the second, may have spaces.
fn children_ticks(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(13);
    Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_counted_after_the_name() {
        let stat = "7 (a b) c) S 1 2 3 4 5 6 7 8 9 10 11 12 130 40 20 0 1 0";
        assert_eq!(children_ticks(stat), Some(170));
        assert_eq!(children_ticks("7 (a) S 1"), None);
    }
}
