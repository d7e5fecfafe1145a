//! Write amplification against theory: uniform random 4 KiB writes, one stream, no timing, victims started at once
//! (the laws: crates/theory).

use nandscape_lab::run::{NoObserver, Outcome, RunOptions, run};
use nandscape_lab::stack::Stack;
use nandscape_lab::workload::fio::{HostEnvironment, parse};
use nandscape_theory::{TOLERANCE, assert_near, fifo_amplification, greedy_amplification};

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
         pacing = \"immediate\"\n\
         [precondition]\nfill = 1.0\nrandom_overwrite = 2.0\n"
    );
    let stack = Stack::parse("theory", &text, &[] as &[&str]).unwrap();
    let job = "[w]\nrw=randwrite\ndirect=1\nbs=4k\nnorandommap\niodepth=1\nloops=2\n";
    let job = parse(job, "theory.fio", &HostEnvironment).unwrap();
    run(&stack, &job, 1, RunOptions::default(), &mut NoObserver).unwrap()
}

fn measured_amplification(outcome: &Outcome) -> f64 {
    outcome.write_amplification().gc.unwrap()
}

fn alpha(outcome: &Outcome) -> f64 {
    outcome.ftl.in_use_sectors_mean / outcome.size.logical_sectors as f64
}

/// What a result says beside its write amplification agrees with that: effective overprovisioning is what is in use beyond the
/// logical sectors; the law that is named has the write amplification that was measured; and in a steady state the user
/// fills what victims did not hold, which makes A = 1 / (1 - valid share).
fn check_figures(what: &str, outcome: &Outcome) {
    let effective = outcome.effective_op_percent().unwrap();
    assert_near(&format!("{what}, in use"), 1.0 + effective / 100.0, alpha(outcome));
    let law = outcome.law.unwrap();
    assert_near(&format!("{what}, law"), measured_amplification(outcome), law.waf);
    let valid = outcome.victim_valid_ratio().unwrap();
    assert_near(&format!("{what}, victims"), measured_amplification(outcome), 1.0 / (1.0 - valid));
}

fn check_fifo(limiter: &str) {
    for op_percent in [8, 12, 20, 28] {
        let outcome = measure(64, 640, "fifo", limiter, op_percent);
        check_figures(&format!("fifo, {limiter}, {op_percent} %"), &outcome);
        let expected = fifo_amplification(alpha(&outcome));
        assert_near(
            &format!("fifo, {limiter}, {op_percent} %"),
            measured_amplification(&outcome),
            expected,
        );
    }
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
        assert!(fifo_amplification(alpha) / expected - 1.0 > TOLERANCE, "FIFO would be recognized");
    }
}

/// The shipped conventional SSD: each instance is a separate log, with separate data.
#[test]
fn the_shipped_ssd() {
    let job = "[w]\nrw=randwrite\ndirect=1\nbs=4k\nnorandommap\niodepth=1\n";
    let job = parse(job, "theory.fio", &HostEnvironment).unwrap();
    for (victim, op_percent) in
        ["fifo", "greedy"].iter().flat_map(|v| [7, 11, 20].map(|op| (v, op)))
    {
        let set = [
            "media.timing=none".to_owned(),
            "media.payload=none".to_owned(),
            format!("ftl.op_percent={op_percent}"),
            format!("ftl.gc.victim={victim}"),
        ];
        let stack = Stack::load("ssd", &set).unwrap();
        let outcome = run(&stack, &job, 1, RunOptions::default(), &mut NoObserver).unwrap();
        let (alpha, line) = (alpha(&outcome), outcome.size.erase_unit_sectors);
        let expected = match *victim {
            "fifo" => fifo_amplification(alpha),
            _ => greedy_amplification(line, 1.0 / alpha),
        };
        let what = format!("ssd, {victim}, {op_percent} %");
        assert_near(&what, measured_amplification(&outcome), expected);
    }
}
