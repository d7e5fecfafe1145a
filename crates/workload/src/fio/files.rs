//! Which files the jobs of a job file have, and where each lies in the one address space that the
//! engine sees: one file behind the other.
//!
//! After fio (filesetup.c): a clone has `nrfiles` files, called `job.clone.file`, unless `filename` names
//! one for all. What several jobs name is one file, whichever way they came by the name. A file is
//! `filesize` long, or as long as `offset` and its share of `size` ask for; the longest wins where several
//! jobs name one file.

use super::spec::{JobFile, JobSpec, SyncWrites};
use super::units::Amount;
use crate::direction::Direction;
use nandscape_block::SECTOR_BYTES;
use nandscape_rt::Stream;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

/// Sectors that all files together may have.
const SECTORS_MAX: u64 = 1 << 34;
/// Files that all jobs together may have, one for each clone that uses it.
const FILES_MAX: usize = 1 << 20;

/// A file of jobs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LaidOutFile {
    /// The job that asks for so long a file, with its place.
    pub job: Rc<str>,
    /// Folders and name.
    pub path: Vec<String>,
    /// Its first sector in the engine's address space.
    pub base: u64,
    /// Its length.
    pub sectors: u64,
    /// Whether a job reads it before it was written.
    pub filled: bool,
}

/// A job, or a clone of one that has `numjobs`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobInstance {
    /// Its files.
    pub files: Vec<usize>,
    /// Its I/O bypasses the page cache.
    pub direct: bool,
    /// Its syncs leave out what reading does not need.
    pub data_only: bool,
    /// Its durable writes do (`sync=dsync`).
    pub writes_data_only: bool,
}

/// The files of all jobs.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct FileLayout {
    /// In order of address.
    pub files: Vec<LaidOutFile>,
    /// Clones of each job, in the order of the job file.
    pub instances: Vec<JobInstance>,
    /// Files of all clones.
    uses: usize,
}

impl FileLayout {
    /// The files that these jobs ask for; the seed draws sizes that are not fixed.
    ///
    /// # Errors
    /// What cannot be done on files, with its place.
    pub fn new(jobs: &JobFile, seed: u64) -> Result<Self, String> {
        if let Some(notice) = jobs.notices.iter().find(|notice| notice.is_refused_on_files()) {
            let (place, key) = (&notice.place, &notice.key);
            return Err(format!("{place}: {key}: not supported on files"));
        }
        let mut layout = Self::default();
        let mut known = BTreeMap::new();
        for (index, spec) in jobs.jobs.iter().enumerate() {
            let mut sizes = Stream::new(seed, &format!("files/{index}/{}", spec.name));
            for clone in 0..spec.numjobs {
                let added = layout.add(spec, clone, &mut known, &mut sizes);
                added.map_err(|problem| format!("{}: {problem}", named(spec)))?;
            }
        }
        layout.place()?;
        Ok(layout)
    }

    /// Adds the files of a clone.
    fn add(
        &mut self,
        spec: &JobSpec,
        clone: u32,
        known: &mut BTreeMap<Vec<String>, usize>,
        sizes: &mut Stream,
    ) -> Result<(), String> {
        if spec.replays() {
            return Err(
                "read_iolog goes to a block device, not to files: use a stack without [fs]"
                    .to_owned(),
            );
        }
        if spec.files.direct && spec.unit_bytes() < SECTOR_BYTES {
            return Err("direct=1 on files needs sizes, alignments and offsets in multiples of 4096 bytes (the \
                        device's sector), as in Linux"
                .to_owned());
        }
        let data_only = spec.fdatasync > 0 && spec.fsync == 0;
        let writes_data_only = spec.sync == SyncWrites::Data;
        let mut files = Vec::new();
        let job: Rc<str> = named(spec).into();
        let count = spec.files.name.as_ref().map_or(spec.files.count, |_| 1);
        self.uses += count as usize;
        if self.uses > FILES_MAX {
            return Err(format!(
                "with its files, all jobs have more than {FILES_MAX} (nrfiles times numjobs)"
            ));
        }
        for file in 0..count {
            let own = || format!("{}.{clone}.{file}", spec.name.replace('/', "_"));
            let name = spec.files.name.clone().unwrap_or_else(own);
            let path = path(&spec.files.directory, &name)?;
            let sectors = sectors(spec, clone, file, count, sizes)?;
            let mix = spec.pattern.mix;
            let filled = mix.has(Direction::Read) || mix.has(Direction::Trim);
            let file = LaidOutFile { job: Rc::clone(&job), path, base: 0, sectors, filled };
            files.push(self.file(file, known)?);
        }
        let direct = spec.files.direct;
        self.instances.push(JobInstance { files, direct, data_only, writes_data_only });
        Ok(())
    }

    /// Adds a file, or makes the one of its path as much as this one is.
    fn file(
        &mut self,
        file: LaidOutFile,
        known: &mut BTreeMap<Vec<String>, usize>,
    ) -> Result<usize, String> {
        let Some(at) = known.get(&file.path).copied() else {
            check_path(&file.path, known)?;
            known.insert(file.path.clone(), self.files.len());
            self.files.push(file);
            return Ok(self.files.len() - 1);
        };
        let known = &mut self.files[at];
        known.filled |= file.filled;
        if file.sectors > known.sectors {
            (known.sectors, known.job) = (file.sectors, file.job);
        }
        Ok(at)
    }

    /// Puts one file behind the other.
    fn place(&mut self) -> Result<(), String> {
        let mut base: u64 = 0;
        for file in &mut self.files {
            file.base = base;
            base = base.saturating_add(file.sectors);
            if base > SECTORS_MAX {
                let LaidOutFile { job, path, .. } = file;
                let why = "the files of all jobs have more than 64 TiB";
                return Err(format!("{job}: with its file {}, {why}", path.join("/")));
            }
        }
        Ok(())
    }

    /// Sectors of all files.
    #[must_use]
    pub fn sectors(&self) -> u64 {
        self.files.last().map_or(0, |file| file.base + file.sectors)
    }

    /// The parts of the address space that the files of each job instance are.
    #[must_use]
    pub fn ranges(&self) -> Vec<Vec<Range<u64>>> {
        let space = |file: &LaidOutFile| file.base..file.base + file.sectors;
        let files =
            |job: &JobInstance| job.files.iter().map(|at| space(&self.files[*at])).collect();
        self.instances.iter().map(files).collect()
    }

    /// The parts of files that a part of the address space is: index, first sector, sectors.
    pub fn parts(&self, first: u64, sectors: u64) -> impl Iterator<Item = (usize, u64, u64)> {
        let end = (first + sectors).min(self.sectors());
        let start = self.files.partition_point(|file| file.base + file.sectors <= first);
        let files = self.files.iter().enumerate().skip(start);
        files.take_while(move |(_, file)| file.base < end).map(move |(index, file)| {
            let from = first.max(file.base);
            let to = end.min(file.base + file.sectors);
            (index, from - file.base, to - from)
        })
    }
}

/// A job as errors name it.
fn named(spec: &JobSpec) -> String {
    format!("{}: job {}", spec.place, spec.name)
}

/// Sectors of a file: number `file` of the `count` that a clone has.
fn sectors(
    spec: &JobSpec,
    clone: u32,
    file: u32,
    count: u32,
    sizes: &mut Stream,
) -> Result<u64, String> {
    if let Some((least, most)) = spec.files.bytes {
        let block = spec.least_block();
        let blocks = if least < most { sizes.below((most - least) / block + 1) } else { 0 };
        return Ok((least + blocks * block).div_ceil(SECTOR_BYTES));
    }
    let needed = "a job on files needs a size in bytes (size=64m), or filesize";
    let size = spec.size_of_file(file.into(), count.into());
    let given = [Some(spec.offset), Some(spec.offset_increment), size];
    let [Some(Amount::Bytes(offset)), Some(Amount::Bytes(increment)), Some(Amount::Bytes(size))] =
        given
    else {
        return Err(needed.to_owned());
    };
    if size == 0 {
        return Err(format!("its size holds no block for each of its {count} files"));
    }
    let end = increment.checked_mul(clone.into()).and_then(|skipped| skipped.checked_add(offset));
    let end = end.and_then(|offset| offset.checked_add(size)).ok_or("its offset overflows")?;
    Ok(end.div_ceil(SECTOR_BYTES))
}

/// Folders and name; everything lies below the root.
fn path(directory: &str, name: &str) -> Result<Vec<String>, String> {
    let steps = directory.split('/').chain(name.split('/'));
    let steps = steps.filter(|step| !step.is_empty() && *step != ".");
    let path: Vec<String> = steps.map(str::to_owned).collect();
    let given = || match directory {
        "" => format!("\"{name}\""),
        _ => format!("\"{name}\" in \"{directory}\""),
    };
    if path.iter().any(|step| step == "..") || path.is_empty() {
        return Err(format!("{} names no file below the root", given()));
    }
    if name.contains(':') || directory.contains(':') {
        let several = "one filename and one directory for a job; nrfiles makes several files";
        return Err(format!("{}: {several}", given()));
    }
    if let Some(long) = path.iter().find(|step| step.len() > nandscape_fs::contract::NAME_MAX) {
        return Err(format!("the name \"{long}\" is longer than 255 bytes"));
    }
    Ok(path)
}

/// Refuses a path that is a folder already, or leads through a file.
fn check_path(path: &[String], known: &BTreeMap<Vec<String>, usize>) -> Result<(), String> {
    let below = known.range(path.to_vec()..).next().is_some_and(|(next, _)| next.starts_with(path));
    if below || path.iter().eq(["lost+found"]) {
        return Err(format!("\"{}\" is a folder", path.join("/")));
    }
    match (1..path.len()).map(|steps| &path[..steps]).find(|folder| known.contains_key(*folder)) {
        None => Ok(()),
        Some(file) => Err(format!("\"{}\" is a file", file.join("/"))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{HostEnvironment, parse};
    use super::*;

    fn layout(text: &str) -> Result<FileLayout, String> {
        let jobs = parse(text, "a.fio", &HostEnvironment).unwrap();
        FileLayout::new(&jobs, 1)
    }

    /// Clones have separate files in a row; jobs share a named file, which is as long as the longest
    /// asks for; ranges name where they are.
    #[test]
    fn files_lie_one_behind_the_other() {
        let text = "[a]\nrw=randwrite\nsize=1m\nnumjobs=2\nnrfiles=2\n[b]\nfilename=/x/y\nsize=64k\n\
                    [c]\nrw=write\nfilename=y\ndirectory=x\nsize=128k\noffset=64k\n";
        let layout = layout(text).unwrap();
        let files: Vec<_> =
            layout.files.iter().map(|f| (f.path.join("/"), f.base, f.sectors, f.filled)).collect();
        let own = |name: &str, base| (name.to_owned(), base, 128, false);
        let expected = [
            own("a.0.0", 0),
            own("a.0.1", 128),
            own("a.1.0", 256),
            own("a.1.1", 384),
            ("x/y".to_owned(), 512, 48, true),
        ];
        assert_eq!(files, expected);
        let shared: Vec<Range<u64>> = std::iter::once(512..560).collect();
        let own = [vec![0..128, 128..256], vec![256..384, 384..512]];
        let instances = [&own[..], &[shared.clone(), shared]].concat();
        assert_eq!(layout.ranges(), instances);
        assert_eq!(layout.parts(120, 16).collect::<Vec<_>>(), [(0, 120, 8), (1, 0, 8)]);
        assert_eq!(layout.parts(512, 4).collect::<Vec<_>>(), [(4, 0, 4)]);
    }

    /// One name is one file, whether it was given or made of the job's.
    #[test]
    fn one_name_is_one_file() {
        let text = "[a]\nrw=write\nsize=1m\nnrfiles=2\n[b]\nrw=read\nfilename=a.0.1\nsize=2m\n\
                    [a]\nrw=read\nsize=64k\nnrfiles=3\n";
        let layout = layout(text).unwrap();
        let files: Vec<_> =
            layout.files.iter().map(|f| (f.path.join("/"), f.sectors, f.filled)).collect();
        let expected = [("a.0.0", 128, true), ("a.0.1", 512, true), ("a.0.2", 5, true)];
        assert_eq!(
            files,
            expected.map(|(name, sectors, filled)| (name.to_owned(), sectors, filled))
        );
        let instances: Vec<_> = layout.instances.iter().map(|clone| clone.files.clone()).collect();
        assert_eq!(instances, [vec![0, 1], vec![1], vec![0, 1, 2]]);
    }

    /// `size` is that of all files of a clone, which the first ones take more of where it does not divide,
    /// each behind the offset; `filesize` is that of each, drawn where it is a range.
    #[test]
    fn sizes_are_of_all_files_or_of_each() {
        let sectors = |text: &str| {
            let files = layout(&format!("[a]\nrw=write\nnrfiles=3\n{text}")).unwrap().files;
            files.iter().map(|file| file.sectors).collect::<Vec<_>>()
        };
        assert_eq!(sectors("size=32k\n"), [3, 3, 2]);
        assert_eq!(sectors("size=160k\nbs=16k\noffset=8k\n"), [18, 14, 14]);
        assert_eq!(sectors("filesize=64k\nsize=1m\n"), [16; 3]);
        let drawn = sectors("filesize=64k-1m\nbs=16k\nnumjobs=8\n");
        assert!(drawn.iter().all(|n| (16..=256).contains(n) && n % 4 == 0), "{drawn:?}");
        assert!(drawn.iter().collect::<std::collections::BTreeSet<_>>().len() > 12, "{drawn:?}");
    }

    /// What cannot be done on files is said with its place.
    #[test]
    fn what_files_cannot_do_is_refused() {
        let cases = [
            ("[a]\nrw=write\n", "a.fio:1:1: job a: a job on files needs a size"),
            ("[a]\nrw=write\nsize=50%\n", "a.fio:1:1: job a: a job on files needs a size"),
            (
                "[a]\nsize=8k\nnrfiles=3\n",
                "a.fio:1:1: job a: its size holds no block for each of its 3",
            ),
            ("[a]\nsize=1m\nfile_append=1\n", "a.fio:3:1: file_append: not supported on files"),
            ("[a]\nsize=1m\nfilename=../x\n", "a.fio:1:1: job a: \"../x\" names no file"),
            ("[a]\nsize=1m\nfilename=lost+found\n", "a.fio:1:1: job a: \"lost+found\" is a folder"),
            (
                "[a]\nsize=1m\ndirectory=d/e\n[b]\nsize=1m\nfilename=d\n",
                "a.fio:4:1: job b: \"d\" is a folder",
            ),
            (
                "[b]\nsize=1m\nfilename=d\n[a]\nsize=1m\ndirectory=d/e\n",
                "a.fio:4:1: job a: \"d\" is a file",
            ),
            ("[a]\nsize=1m\nfilename=x:y\n", "a.fio:1:1: job a: \"x:y\": one filename"),
        ];
        let many = "[a]\nsize=1m\n[b]\nsize=8m\nnumjobs=65536\nnrfiles=1024\n";
        let too_many = "a.fio:3:1: job b: with its files, all jobs have more than 1048576";
        let more = "[b]\nsize=40t\n[c]\nsize=40t\ndirectory=d\n";
        let beyond = "a.fio:3:1: job c: with its file d/c.0.0, the files of all jobs have more";
        for (text, expected) in cases.into_iter().chain([(more, beyond), (many, too_many)]) {
            let found = layout(text).unwrap_err();
            assert!(found.starts_with(expected), "found    {found}\nexpected {expected}");
        }
    }
}
