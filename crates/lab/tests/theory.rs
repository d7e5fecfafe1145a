//! Write amplification against theory: uniform random 4 KiB writes, one stream, no timing.
//!
//! FIFO: a sector is still valid when its line is collected if none of the user writes in between
//! hit it, which gives 1 - 1/A = exp(-alpha/A), with alpha = sectors in use / logical sectors
//! (Desnoyers, "Analytic Models of SSD Write Performance", 2014).
//!
//! Greedy: the mean-field limit of d-choices as d grows (Van Houdt, "A Mean Field Model for a Class
//! of Garbage Collection Algorithms in Flash-based Solid State Drives", 2013), for the line size at
//! hand. Lines lose valid sectors one by one from b down and are collected at the lowest level that
//! is reached at all.

use nandscape_lab::run::{Manner, Outcome, Unobserved, run};
use nandscape_lab::stack::Stack;
use nandscape_lab::workload::fio::{HostEnvironment, parse};

/// Largest relative distance from theory.
const TOLERANCE: f64 = 0.01;

/// A device of 8 units; a line has 8 times `chunk_sectors`.
fn measure(
    chunk_sectors: u32,
    lines: u32,
    victim: &str,
    limiter: &str,
    op_percent: u32,
) -> Outcome {
    // What sits in the ring is not yet in use, which the laws do not know: as small as it may be. The
    // kernel's limiter deals in windows of 64 entries and needs several.
    let ring = if limiter == "kernel" { 256 } else { 64 };
    let text = format!(
        "[media]\ngroups = 2\nunits = 4\nchunks = {lines}\nsectors = {chunk_sectors}\n\
         ws_min = 1\nws_opt = 1\nmw_cunits = 0\ntiming = \"none\"\npayload = \"none\"\n\
         [ftl]\nop_percent = {op_percent}\nlimiter = \"{limiter}\"\nring = {ring}\n[ftl.gc]\nvictim = \"{victim}\"\n\
         [precondition]\nfill = 1.0\nrandom_overwrite = 2.0\n"
    );
    let stack = Stack::parse("theory", &text, &[] as &[&str]).unwrap();
    let job = "[w]\nrw=randwrite\nbs=4k\nnorandommap\niodepth=1\nloops=2\n";
    let job = parse(job, "theory.fio", &HostEnvironment).unwrap();
    run(&stack, &job, 1, Manner::default(), &mut Unobserved).unwrap()
}

fn measured_amplification(outcome: &Outcome) -> f64 {
    outcome.write_amplification().gc.unwrap()
}

fn alpha(outcome: &Outcome) -> f64 {
    outcome.ftl.in_use_sectors_mean / outcome.size.logical_sectors as f64
}

/// The root of a decreasing function.
fn root(mut low: f64, mut high: f64, decreasing: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        if decreasing(middle) > 0.0 { low = middle } else { high = middle }
    }
    low
}

/// A of 1 - 1/A = exp(-alpha/A).
fn fifo_amplification(alpha: f64) -> f64 {
    root(1.0 + 1e-9, 1e3, |a| libm::exp(-alpha / a) - (1.0 - 1.0 / a))
}

/// A of greedy with `b` data sectors a line and a share `rho` of them valid.
///
/// With mean valid count x of a victim, level i above the lowest holds 1 / (u i) of the lines, where
/// u = (b - x) / (rho b) is how often a line is collected for each sector overwritten; the
/// lowest level holds what the fraction of x leaves. The shares of all levels sum to 1.
fn greedy_amplification(b: u32, rho: f64) -> f64 {
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

fn assert_near(what: &str, measured: f64, expected: f64) {
    let distance = measured / expected - 1.0;
    println!("{what}: measured {measured:.4}, theory {expected:.4}, {:+.2} %", distance * 100.0);
    assert!(
        distance.abs() <= TOLERANCE,
        "{what}: {measured:.4} is not within 1 % of {expected:.4}"
    );
}

fn check_fifo(limiter: &str) {
    for op_percent in [8, 12, 20, 28] {
        let outcome = measure(64, 640, "fifo", limiter, op_percent);
        let expected = fifo_amplification(alpha(&outcome));
        assert_near(
            &format!("fifo, {limiter}, {op_percent} %"),
            measured_amplification(&outcome),
            expected,
        );
    }
}

/// Formulas first: known points of both laws.
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
fn fifo_with_two_lines_in_reserve() {
    check_fifo("reserve-2");
}

#[test]
fn fifo_with_the_kernels_limiter() {
    check_fifo("kernel");
}

/// Greedy is as the mean field of its line size says, which is not what FIFO does.
#[test]
fn greedy_with_short_lines() {
    for op_percent in [8, 12] {
        let outcome = measure(32, 768, "greedy", "reserve-2", op_percent);
        let alpha = alpha(&outcome);
        let expected = greedy_amplification(outcome.size.erase_unit_data_sectors, 1.0 / alpha);
        let measured = measured_amplification(&outcome);
        assert_near(&format!("greedy, {op_percent} %"), measured, expected);
        assert!(fifo_amplification(alpha) / expected - 1.0 > TOLERANCE, "FIFO would be told apart");
    }
}
