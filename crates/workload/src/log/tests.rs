//! LogValue stands in the files, for I/Os that are known.

use super::*;
use crate::direction::Direction;
use crate::fio::{HostEnvironment, parse};
use std::cell::RefCell;
use std::rc::Rc;

/// Keeps lines by file.
#[derive(Clone, Default, Debug)]
struct Kept(Rc<RefCell<Vec<(usize, String)>>>);

impl LogSink for Kept {
    fn line(&mut self, file: usize, line: &str) {
        self.0.borrow_mut().push((file, line.to_owned()));
    }
}

/// The content of each file after these I/Os of the first job: direction, time in us, latency in ns.
fn logs(keys: &str, ios: &[(Direction, u64, u64)]) -> Vec<(String, String)> {
    let file = parse(&format!("[w]\nrw=randrw\n{keys}\n"), "test.fio", &HostEnvironment).unwrap();
    let logs = FioLogs::new(&file);
    let mut files: Vec<_> = logs.files().iter().map(|name| (name.clone(), String::new())).collect();
    let kept = Kept::default();
    let mut recorder = logs.recorder(kept.clone());
    for (direction, us, ns) in ios {
        recorder.completed(&Completed {
            job: 0,
            direction: Some(*direction),
            began: Nanos::from_ms(1_000),
            at: Nanos::from_ms(1_000).saturating_add(Nanos::from_us(*us)),
            latency: Nanos(*ns),
            offset: 3 * 4096,
            bytes: 4096,
        });
    }
    recorder.finish(Nanos::from_ms(9_000));
    kept.0.borrow().iter().for_each(|(file, line)| files[*file].1.push_str(line));
    files
}

const IOS: [(Direction, u64, u64); 4] = [
    (Direction::Write, 500, 50_000),
    (Direction::Read, 99_000, 10_000),
    (Direction::Write, 99_999, 25_001),
    (Direction::Write, 250_000, 80_000),
];

/// Without averaging each I/O is a line, in fio's units and under fio's names.
#[test]
fn each_io_is_a_line() {
    let files = logs("write_lat_log=a\nwrite_bw_log\nwrite_iops_log=b\nlog_offset=1", &IOS);
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    let expected = ["a_slat.1.log", "a_clat.1.log", "a_lat.1.log", "w_bw.1.log", "b_iops.1.log"];
    assert_eq!(names, expected);
    let clat = "0, 50000, 1, 4096, 12288, 0\n99, 10000, 0, 4096, 12288, 0\n\
                99, 25001, 1, 4096, 12288, 0\n250, 80000, 1, 4096, 12288, 0\n";
    assert_eq!(files[1].1, clat);
    assert_eq!(files[2].1, clat);
    assert!(files[3].1.starts_with("0, 81920, 1, 4096, 12288, 0\n"), "{}", files[3].1);
    assert!(files[4].1.starts_with("0, 1, 1, 4096, 12288, 0\n"), "{}", files[4].1);
}

/// With averaging a window is a line a direction: the rounded mean, or the largest.
#[test]
fn a_window_is_a_line() {
    let averaged = "write_lat_log=a\nlog_avg_msec=100";
    let files = logs(averaged, &IOS);
    assert_eq!(files[1].1, "100, 10000, 0, 0, 0\n100, 37501, 1, 0, 0\n250, 80000, 1, 0, 0\n");
    let files = logs(&format!("{averaged}\nlog_max_value=1"), &IOS);
    assert_eq!(files[1].1, "100, 10000, 0, 0, 0\n100, 50000, 1, 0, 0\n250, 80000, 1, 0, 0\n");
}

/// Rates are of whole windows; a job shorter than one has its mean.
#[test]
fn rates_are_of_windows() {
    let rates =
        |ms: u32| logs(&format!("write_bw_log=a\nwrite_iops_log=a\nlog_avg_msec={ms}"), &IOS);
    assert_eq!(rates(100)[0].1, "100, 40, 0, 4096, 0\n100, 80, 1, 4096, 0\n");
    assert_eq!(rates(100)[1].1, "100, 10, 0, 4096, 0\n100, 20, 1, 4096, 0\n");
    assert_eq!(rates(500)[1].1, "250, 4, 0, 4096, 0\n250, 12, 1, 4096, 0\n");
}

/// Histograms lose no I/O, and are as coarse as was asked for.
#[test]
fn histograms_are_complete() {
    for (coarseness, bins) in [(0, BINS), (3, BINS / 8)] {
        let keys = format!("write_hist_log=h\nlog_hist_msec=100\nlog_hist_coarseness={coarseness}");
        let files = logs(&keys, &IOS);
        assert_eq!(files[0].0, "h_clat_hist.1.log");
        let sums = files[0].1.lines().map(|line| {
            let fields: Vec<u64> = line.split(", ").map(|field| field.parse().unwrap()).collect();
            assert_eq!(fields.len(), 3 + bins);
            (fields[0], fields[1], fields[3..].iter().sum::<u64>())
        });
        assert_eq!(sums.collect::<Vec<_>>(), [(100, 0, 1), (100, 1, 2), (250, 1, 1)]);
    }
}

/// Jobs are numbered through, and share files without `per_job_logs`.
#[test]
fn jobs_share_files_on_request() {
    let names = |keys: &str| {
        let text = format!("[global]\nwrite_iops_log=x\n{keys}\n[a]\nnumjobs=2\n[b]\n");
        FioLogs::new(&parse(&text, "test.fio", &HostEnvironment).unwrap()).files().to_vec()
    };
    assert_eq!(names(""), ["x_iops.1.log", "x_iops.2.log", "x_iops.3.log"]);
    assert_eq!(names("per_job_logs=0"), ["x_iops.log"]);
}
