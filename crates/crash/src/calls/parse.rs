//! Reads cases. Words are separated by blanks, calls by lines or `;`; `#` begins a comment. An error names the line, what
//! is wrong, and what would be right.

use super::language::{
    Call, Case, Content, Expectation, FileRef, KINDS, Line, OPEN_WORDS, Repeated, What,
};
use crate::kernel_loss::KernelLoss;
use nandscape_fs::contract::{Allocate, NAME_MAX, OpenFlags};
use nandscape_rt::Nanos;
use thiserror::Error;

/// Calls with what follows them, as messages show them.
const CALLS: [(&str, &str); 24] = [
    ("create", "PATH"),
    ("mkdir", "PATH"),
    ("symlink", "PATH TARGET [LENGTH]"),
    ("link", "PATH NEW-PATH"),
    ("rename", "PATH NEW-PATH"),
    ("exchange", "PATH PATH"),
    ("unlink", "PATH"),
    ("rmdir", "PATH"),
    ("write", "FILE OFFSET LENGTH CONTENT [direct]"),
    ("append", "FILE LENGTH CONTENT [direct]"),
    ("truncate", "FILE SIZE"),
    ("fallocate", "FILE OFFSET LENGTH [keep-size]"),
    ("zero", "FILE OFFSET LENGTH [keep-size]"),
    ("punch", "FILE OFFSET LENGTH"),
    ("chmod", "FILE OCTAL-MODE"),
    ("chown", "FILE UID"),
    ("setxattr", "FILE NAME VALUE [LENGTH]"),
    ("removexattr", "FILE NAME"),
    ("open", "PATH @HANDLE [append] [sync] [dsync] [direct]"),
    ("close", "@HANDLE"),
    ("fsync", "FILE"),
    ("fdatasync", "FILE"),
    ("sync", ""),
    ("sleep", "TIME"),
];

/// The same of what must hold.
const EXPECTATIONS: [(&str, &str); 6] = [
    ("has", "PATH [file|directory|symlink]"),
    ("not", "PATH"),
    ("data", "PATH OFFSET LENGTH CONTENT"),
    ("size", "PATH SIZE"),
    ("xattr", "PATH NAME VALUE [LENGTH]"),
    ("same", "PATH PATH"),
];

/// Other names that people write.
const ALIASES: [(&str, &str); 9] = [
    ("creat", "create"),
    ("touch", "create"),
    ("ren", "rename"),
    ("xchg", "exchange"),
    ("falloc", "fallocate"),
    ("mv", "rename"),
    ("rm", "unlink"),
    ("ln", "link"),
    ("syncfs", "sync"),
];

/// What the power cut of a case is called.
const CUTS: [&str; 2] = ["CUT", "CRASH"];

/// The largest file of a case: what is compared with a file is kept in memory.
const BYTES_MAX: u64 = 1 << 30;
/// The longest value of an attribute and target of a symbolic link.
const VALUE_MAX: u64 = 1 << 16;

/// A line that is no call and nothing that could hold.
#[derive(Clone, PartialEq, Eq, Error, Debug)]
#[error("line {line}: {what}")]
pub struct ParseError {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong with it.
    pub what: String,
}

/// The cases of a text. One without `case` lines is one case.
///
/// # Errors
/// The first line that cannot be read.
pub fn parse(text: &str) -> Result<Vec<Case>, ParseError> {
    let mut cases = Cases::default();
    for (line, text) in (1..).zip(text.lines()) {
        let at = |what| ParseError { line, what };
        let text = text.split('#').next().unwrap_or_default();
        for statement in text.split(';') {
            let words: Vec<&str> = statement.split_whitespace().collect();
            if let Some((first, rest)) = words.split_first() {
                cases.take(line, first, rest).map_err(at)?;
            }
        }
    }
    cases.end()
}

/// What was read so far.
#[derive(Default)]
struct Cases {
    all: Vec<Case>,
    /// The line on which each begins.
    begins: Vec<usize>,
    /// Whether the last one has its power cut.
    is_cut: bool,
}

impl Cases {
    fn take(&mut self, line: usize, first: &str, rest: &[&str]) -> Result<(), String> {
        if first == "case" {
            if rest.is_empty() {
                return Err("case: expected a name".to_owned());
            }
            self.begin(line, rest.join(" "));
            return Ok(());
        }
        if self.all.is_empty() {
            self.begin(line, String::new());
        }
        let Some(case) = self.all.last_mut() else { unreachable!("a case has begun") };
        let first = ALIASES.iter().find(|(other, _)| *other == first).map_or(first, |(_, is)| is);
        let is_expectation = EXPECTATIONS.iter().any(|(word, _)| *word == first);
        if CUTS.iter().any(|cut| first.eq_ignore_ascii_case(cut)) {
            if std::mem::replace(&mut self.is_cut, true) {
                return Err("a second CUT: a case has one; `case NAME` begins another".to_owned());
            }
            return if rest.is_empty() { Ok(()) } else { Err("CUT: takes nothing".to_owned()) };
        }
        match (self.is_cut, is_expectation) {
            (true, true) => case.expectations.push(Line { line, is: expectation(first, rest)? }),
            (false, false) => case.calls.push(Line { line, is: call(first, rest)? }),
            (false, true) => {
                return Err(format!("{first}: what must hold stands behind CUT"));
            }
            (true, false) => {
                if !CALLS.iter().any(|(word, _)| *word == first) {
                    let known = all(&EXPECTATIONS);
                    return Err(format!(
                        "`{first}`: behind CUT expected one of {known}, or a call that begins another case"
                    ));
                }
                let is = call(first, rest)?;
                self.begin(line, String::new());
                if let Some(case) = self.all.last_mut() {
                    case.calls.push(Line { line, is });
                }
            }
        }
        Ok(())
    }

    fn begin(&mut self, line: usize, name: String) {
        self.all.push(Case { name, ..Case::default() });
        self.begins.push(line);
        self.is_cut = false;
    }

    fn end(self) -> Result<Vec<Case>, ParseError> {
        for (case, line) in self.all.iter().zip(self.begins) {
            if case.calls.is_empty() {
                let what = format!("case {}: no call", case.name);
                return Err(ParseError { line, what });
            }
        }
        match self.all.is_empty() {
            true => Err(ParseError { line: 1, what: "no call".to_owned() }),
            false => Ok(self.all),
        }
    }
}

/// The words behind the first one, taken one after the other.
struct Words<'a> {
    first: &'a str,
    usage: &'static str,
    rest: &'a [&'a str],
}

impl<'a> Words<'a> {
    fn next(&mut self) -> Result<&'a str, String> {
        let (word, rest) = self.rest.split_first().ok_or_else(|| self.misused())?;
        self.rest = rest;
        Ok(word)
    }

    fn misused(&self) -> String {
        format!("{}: expected `{} {}`", self.first, self.first, self.usage)
    }

    /// The next word, if it is this one.
    fn option(&mut self, word: &str) -> bool {
        let is = self.rest.first() == Some(&word);
        if is {
            self.rest = &self.rest[1..];
        }
        is
    }

    fn path(&mut self) -> Result<String, String> {
        path(self.next()?).map_err(|why| format!("{}: {why}", self.first))
    }

    fn file(&mut self) -> Result<FileRef, String> {
        let word = self.next()?;
        match word.strip_prefix('@') {
            Some(name) => Ok(FileRef::Handle(name.to_owned())),
            None => path(word).map(FileRef::Path).map_err(|why| format!("{}: {why}", self.first)),
        }
    }

    fn handle(&mut self) -> Result<String, String> {
        let word = self.next()?;
        match word.strip_prefix('@') {
            Some(name) if !name.is_empty() => Ok(name.to_owned()),
            _ => Err(format!("{}: `{word}`: a handle is `@NAME`", self.first)),
        }
    }

    fn bytes(&mut self, most: u64) -> Result<u64, String> {
        let word = self.next()?;
        let wrong = || {
            format!("{}: `{word}`: expected bytes up to {most}, such as 4096, 4k or 1m", self.first)
        };
        let (digits, unit) = match word.to_ascii_lowercase().chars().last() {
            Some('k') => (&word[..word.len() - 1], 1 << 10),
            Some('m') => (&word[..word.len() - 1], 1 << 20),
            _ => (word, 1),
        };
        let number: u64 = digits.parse().map_err(|_| wrong())?;
        number.checked_mul(unit).filter(|bytes| *bytes <= most).ok_or_else(wrong)
    }

    fn content(&mut self) -> Result<Content, String> {
        let word = self.next()?;
        let tag = |digits: &str| {
            let wrong = |_| format!("{}: `{word}`: expected up to 16 hex digits", self.first);
            u64::from_str_radix(digits, 16).map_err(wrong)
        };
        match word.split_once(':') {
            None if word == "0" => Ok(Content::Zeroes),
            None => Ok(Content::Word(word.to_owned())),
            Some(("tag", digits)) => Ok(Content::Tag(tag(digits)?)),
            Some(("jbd2", digits)) => Ok(Content::Magic(tag(digits)?)),
            Some(_) => Err(format!(
                "{}: `{word}`: a content is a word, 0, tag:HEX or jbd2:HEX",
                self.first
            )),
        }
    }

    fn repeated(&mut self) -> Result<Repeated, String> {
        let word = self.next()?.to_owned();
        let length = match self.rest.first().is_some_and(|next| *next != "unless") {
            true => self.bytes(VALUE_MAX)? as usize,
            false => word.len(),
        };
        Ok(Repeated { word, length })
    }

    fn xattr_name(&mut self) -> Result<String, String> {
        let name = self.next()?;
        let prefixes = ["user.", "trusted.", "security."];
        match prefixes.iter().any(|prefix| name.len() > prefix.len() && name.starts_with(prefix)) {
            true => Ok(name.to_owned()),
            false => Err(format!(
                "{}: `{name}`: a name begins with user., trusted. or security.",
                self.first
            )),
        }
    }

    fn allocate(&mut self) -> Result<Call, String> {
        let (file, offset) = (self.file()?, self.bytes(BYTES_MAX)?);
        let length = self.bytes(BYTES_MAX)?;
        if length == 0 {
            return Err(format!("{}: 0 bytes: a range has at least one", self.first));
        }
        let what = match self.first {
            "fallocate" => Allocate::Reserve { keep_size: self.option("keep-size") },
            "zero" => Allocate::ZeroRange { keep_size: self.option("keep-size") },
            _ => Allocate::PunchHole,
        };
        Ok(Call::Allocate(file, what, offset, length))
    }

    fn open_flags(&mut self) -> OpenFlags {
        let mut flags = OpenFlags::default();
        while let Some(word) = OPEN_WORDS.into_iter().find(|word| self.option(word)) {
            match word {
                "append" => flags.append = true,
                "sync" => flags.sync = true,
                "dsync" => flags.dsync = true,
                _ => flags.direct = true,
            }
        }
        flags
    }

    fn end<T>(&self, value: T) -> Result<T, String> {
        match self.rest.first() {
            None => Ok(value),
            Some(word) => Err(format!("`{word}` is too much; {}", self.misused())),
        }
    }
}

/// A path from the root, without a slash at its ends.
fn path(word: &str) -> Result<String, String> {
    let path = word.trim_matches('/');
    if path.is_empty() || path == "." {
        return Ok(".".to_owned());
    }
    for name in path.split('/') {
        if name.is_empty() || name == "." || name == ".." {
            return Err(format!("`{word}`: names of a path are not empty, `.` or `..`"));
        }
        if name.len() > NAME_MAX {
            return Err(format!("`{word}`: a name has at most {NAME_MAX} bytes"));
        }
    }
    Ok(path.to_owned())
}

/// The table's words for a message.
fn all(table: &[(&str, &str)]) -> String {
    table.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ")
}

fn call(first: &str, rest: &[&str]) -> Result<Call, String> {
    let Some((first, usage)) = CALLS.iter().find(|(word, _)| *word == first) else {
        return Err(format!("`{first}`: no call; expected one of {}, or CUT", all(&CALLS)));
    };
    let mut words = Words { first, usage, rest };
    let at = &mut words;
    let call = match *first {
        "create" => Call::Create(at.path()?),
        "mkdir" => Call::Mkdir(at.path()?),
        "symlink" => Call::Symlink(at.path()?, at.repeated()?),
        "link" => Call::Link(at.path()?, at.path()?),
        "rename" => Call::Rename(at.path()?, at.path()?),
        "exchange" => Call::Exchange(at.path()?, at.path()?),
        "unlink" => Call::Unlink(at.path()?),
        "rmdir" => Call::Rmdir(at.path()?),
        "write" => {
            let (file, offset) = (at.file()?, at.bytes(BYTES_MAX)?);
            let (length, content) = (at.bytes(BYTES_MAX)?, at.content()?);
            Call::Write { file, offset, length, content, direct: at.option("direct") }
        }
        "append" => {
            let (file, length) = (at.file()?, at.bytes(BYTES_MAX)?);
            let content = at.content()?;
            Call::Append { file, length, content, direct: at.option("direct") }
        }
        "truncate" => Call::Truncate(at.file()?, at.bytes(BYTES_MAX)?),
        "fallocate" | "zero" | "punch" => at.allocate()?,
        "chmod" => {
            let (file, word) = (at.file()?, at.next()?);
            let mode = u16::from_str_radix(word, 8).ok().filter(|mode| *mode <= 0o7777);
            Call::Chmod(file, mode.ok_or_else(|| format!("chmod: `{word}`: expected 0 to 7777"))?)
        }
        "chown" => {
            let (file, word) = (at.file()?, at.next()?);
            let uid = word.parse().map_err(|_| format!("chown: `{word}`: expected a number"))?;
            Call::Chown(file, uid)
        }
        "setxattr" => Call::Setxattr(at.file()?, at.xattr_name()?, at.repeated()?),
        "removexattr" => Call::Removexattr(at.file()?, at.xattr_name()?),
        "open" => Call::Open(at.path()?, at.handle()?, at.open_flags()),
        "close" => Call::Close(at.handle()?),
        "fsync" => Call::Fsync(at.file()?),
        "fdatasync" => Call::Fdatasync(at.file()?),
        "sync" => Call::Sync,
        "sleep" => Call::Sleep(time(at.next()?)?),
        other => unreachable!("{other} is listed and not read"),
    };
    words.end(call)
}

fn time(word: &str) -> Result<Nanos, String> {
    let wrong =
        || format!("sleep: `{word}`: expected a time up to 1000s, such as 10s, 5ms or 100us");
    let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &word[digits.len()..] {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return Err(wrong()),
    };
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    let time = number.checked_mul(unit).filter(|time| *time <= 1_000_000_000_000);
    time.map(Nanos).ok_or_else(wrong)
}

fn expectation(first: &str, rest: &[&str]) -> Result<Expectation, String> {
    let Some((first, usage)) = EXPECTATIONS.iter().find(|(word, _)| *word == first) else {
        return Err(format!("`{first}`: expected one of {}", all(&EXPECTATIONS)));
    };
    let mut words = Words { first, usage, rest };
    let at = &mut words;
    let what = match *first {
        "has" => {
            let path = at.path()?;
            let kind = KINDS.into_iter().find(|(word, _)| at.option(word)).map(|(_, kind)| kind);
            What::Has(path, kind)
        }
        "not" => What::Not(at.path()?),
        "data" => {
            let (path, offset) = (at.path()?, at.bytes(BYTES_MAX)?);
            What::Data(path, offset, at.bytes(BYTES_MAX)?, at.content()?)
        }
        "size" => What::Size(at.path()?, at.bytes(BYTES_MAX)?),
        "xattr" => What::Xattr(at.path()?, at.xattr_name()?, at.repeated()?),
        "same" => What::Same(at.path()?, at.path()?),
        other => unreachable!("{other} is listed and not read"),
    };
    let mut unless = Vec::new();
    if at.option("unless") {
        while !at.rest.is_empty() {
            let word = at.next()?;
            let loss = KernelLoss::ALL.into_iter().find(|loss| loss.number() == word);
            let known = || KernelLoss::ALL.map(KernelLoss::number).join(", ");
            unless.push(loss.ok_or_else(|| {
                format!("unless: `{word}`: expected classes of losses: {}", known())
            })?);
        }
        if unless.is_empty() {
            return Err("unless: expected classes of losses, such as K1".to_owned());
        }
    }
    words.end(Expectation { what, unless })
}
