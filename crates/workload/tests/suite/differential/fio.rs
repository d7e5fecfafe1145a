//! Jobs in fio itself, several at a time, each with a file and a log of its own.

use super::case::{Case, FILE_DISTANCE, Side};
use crate::common;
use std::path::{Path, PathBuf};
use std::process::Command;

/// An I/O: the first letter of what it is (`s` of a flush), offset and length in bytes.
pub(super) type Io = (char, u64, u64);

/// A folder for jobs, its own, which goes with it.
pub(super) struct Folder(PathBuf);

impl Folder {
    /// A folder; None: there is no fio.
    pub(super) fn new(name: &str) -> Option<Self> {
        common::fio()?;
        let name = format!("differential-{}-{name}", std::process::id());
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&folder).unwrap();
        Some(Self(folder))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Seconds after which fio counts as hanging: jobs take less than one.
const PATIENCE_S: &str = "30";
/// Exit code of `timeout` when they are over.
const OUT_OF_TIME: i32 = 124;
/// What is said of a job that fio does not end.
pub(super) const HANGS: &str = "fio does not end";

/// What fio does with each job, or why it does not run it.
pub(super) fn run(Folder(folder): &Folder, cases: &[Case]) -> Vec<Result<Vec<Io>, String>> {
    if together(folder, cases).is_ok() {
        return (0..cases.len()).map(|index| Ok(log_of(folder, index))).collect();
    }
    let alone =
        |case: &Case| together(folder, std::slice::from_ref(case)).map(|()| log_of(folder, 0));
    cases.iter().map(alone).collect()
}

fn log_of(folder: &Path, index: usize) -> Vec<Io> {
    let log = std::fs::read_to_string(folder.join(format!("log{index}")));
    parse_log(&log.unwrap_or_default())
}

/// Runs these jobs at the same time.
fn together(folder: &Path, cases: &[Case]) -> Result<(), String> {
    let mut text = "[global]\nclocksource=clock_gettime\nfallocate=none\n".to_owned();
    for (index, case) in cases.iter().enumerate() {
        let _ = std::fs::remove_file(folder.join(format!("log{index}")));
        text += &format!("[j{index}]\nwrite_iolog=log{index}\n");
        text += &match case.side() {
            Side::Null => format!("filename=null{index}\n"),
            Side::File => {
                let file = std::fs::File::create(folder.join(format!("device{index}"))).unwrap();
                file.set_len(case.device_bytes()).unwrap();
                format!("filename=device{index}\n")
            }
            Side::Files => {
                let directory = folder.join(format!("files{index}"));
                let _ = std::fs::remove_dir_all(&directory);
                std::fs::create_dir_all(directory).unwrap();
                format!("directory=files{index}\n")
            }
        };
        case.keys().for_each(|(key, value)| text += &format!("{key}={value}\n"));
    }
    std::fs::write(folder.join("job.fio"), &text).unwrap();
    // Some jobs keep fio's threads busy for ever.
    let mut fio = Command::new("timeout");
    fio.args(["--kill-after=5", PATIENCE_S, "fio", "--output=report", "job.fio"]);
    let output = fio.current_dir(folder).output().unwrap();
    match output.status.code() {
        Some(0) => Ok(()),
        Some(OUT_OF_TIME) | None => Err(HANGS.to_owned()),
        _ => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// The I/Os of a log.
pub(super) fn parse_log(log: &str) -> Vec<Io> {
    let io = |line: &str| match line.split_whitespace().collect::<Vec<_>>()[..] {
        [_, _, "sync" | "datasync", ..] => Some(('s', 0, 0)),
        [_, name, what, offset, bytes] => {
            let [offset, bytes] = [offset, bytes].map(|text| text.parse::<u64>().unwrap());
            // fio's own files are called job.clone.file.
            let file = name.rsplit_once('.').and_then(|(_, file)| file.parse::<u64>().ok());
            let begin = file.unwrap_or(0) * FILE_DISTANCE;
            what.chars().next().map(|what| (what, begin + offset, bytes))
        }
        _ => None,
    };
    log.lines().skip(1).filter_map(io).collect()
}
