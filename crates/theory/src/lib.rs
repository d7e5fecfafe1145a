//! Write amplification A of uniform random writes of one sector, as theory has it, for tests that compare a
//! device with it. `alpha` is sectors in use / logical sectors.
//!
//! FIFO: a sector is still valid when its erase unit is collected if none of the user writes in between hit it,
//! which gives 1 - 1/A = exp(-alpha/A) (Desnoyers, "Analytic Models of SSD Write Performance", 2014).
//!
//! Greedy: the mean-field limit of d-choices as d grows (Van Houdt, "A Mean Field Model for a Class of Garbage
//! Collection Algorithms in Flash-based Solid State Drives", 2013), for the size of an erase unit at hand. Units
//! lose valid sectors one by one from b down and are collected at the lowest level that is reached at all.

/// Largest relative distance from theory.
pub const TOLERANCE: f64 = 0.01;

/// A of 1 - 1/A = exp(-alpha/A).
#[must_use]
pub fn fifo_amplification(alpha: f64) -> f64 {
    root(1.0 + 1e-9, 1e3, |a| libm::exp(-alpha / a) - (1.0 - 1.0 / a))
}

/// A of greedy with `b` data sectors an erase unit and a share `rho`, 1 / alpha, of them valid.
///
/// With mean valid count x of a victim, level i above the lowest holds 1 / (u i) of the units, where
/// u = (b - x) / (rho b) is how often a unit is collected for each sector overwritten; the lowest level
/// holds what the fraction of x leaves. The shares of all levels sum to 1.
#[must_use]
pub fn greedy_amplification(b: u32, rho: f64) -> f64 {
    let data = f64::from(b);
    let shares = |x: f64| {
        let lowest = x as u32;
        let above: f64 = (lowest + 2..=b).map(|i| 1.0 / f64::from(i)).sum();
        let at = (1.0 - (x - f64::from(lowest))) / f64::from(lowest + 1);
        (above + at) * rho * data / (data - x)
    };
    let x = root(0.0, data - 1.0, |x| shares(x) - 1.0);
    data / (data - x)
}

/// Prints both figures.
///
/// # Panics
/// They are further apart than [`TOLERANCE`].
pub fn assert_near(what: &str, measured: f64, expected: f64) {
    let distance = measured / expected - 1.0;
    println!("{what}: measured {measured:.4}, theory {expected:.4}, {:+.2} %", distance * 100.0);
    assert!(
        distance.abs() <= TOLERANCE,
        "{what}: {measured:.4} is not within 1 % of {expected:.4}"
    );
}

/// The root of a decreasing function.
fn root(mut low: f64, mut high: f64, decreasing: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if decreasing(middle) > 0.0 { low = middle } else { high = middle }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Known points of both laws.
    #[test]
    fn the_laws_themselves() {
        let a = fifo_amplification(1.2);
        assert!((1.0 - 1.0 / a - libm::exp(-1.2 / a)).abs() < 1e-9);
        assert!((greedy_amplification(256, 0.9) - 1.0).abs() > 1.0);
        assert!(greedy_amplification(1 << 16, 0.8) < fifo_amplification(1.25));
        assert!(
            greedy_amplification(64, 0.8) < greedy_amplification(4096, 0.8),
            "short lines vary more"
        );
    }

    #[test]
    #[should_panic(expected = "is not within 1 %")]
    fn what_is_further_away_is_noticed() {
        assert_near("within", 2.02, 2.0);
        assert_near("beyond", 2.03, 2.0);
    }
}
