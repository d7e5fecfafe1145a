//! CPU time of programs: what limits and budgets are stated in, as seconds of a busy machine say nothing.

/// Ticks of `/proc` per second: fixed on Linux for every architecture that runs this.
const TICKS_PER_S: f64 = 100.0;

/// CPU seconds, user and system, of all children that ended, with theirs.
///
/// # Errors
/// `/proc/self/stat` cannot be read.
pub(crate) fn of_children() -> Result<f64, String> {
    seconds("self", CHILDREN)
}

/// CPU seconds, user and system, of a process so far, also of one that ended and was not waited for.
///
/// # Errors
/// There is no such process.
pub(crate) fn of_process(pid: u32) -> Result<f64, String> {
    seconds(&pid.to_string(), ITSELF)
}

/// Where proc_pid_stat(5) has `utime` and `stime`, and `cutime` and `cstime`, behind the program's name.
const ITSELF: usize = 11;
const CHILDREN: usize = 13;

fn seconds(process: &str, first: usize) -> Result<f64, String> {
    let file = format!("/proc/{process}/stat");
    let stat = std::fs::read_to_string(&file).map_err(|e| format!("{file}: {e}"))?;
    let ticks = ticks(&stat, first).ok_or_else(|| format!("{file}: no times in {stat}"))?;
    Ok(ticks as f64 / TICKS_PER_S)
}

/// The sum of two fields behind the program's name, which may hold anything.
fn ticks(stat: &str, first: usize) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(first);
    Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_counted_after_the_name() {
        let stat = "7 (a b) c) S 1 7 7 0 -1 4194304 1 2 3 4 500 60 130 40 20 0 1 0";
        assert_eq!([ITSELF, CHILDREN].map(|first| ticks(stat, first)), [Some(560), Some(170)]);
        assert_eq!(ticks("7 (a) S 1", ITSELF), None);
        assert!(of_process(std::process::id()).is_ok());
    }
}
