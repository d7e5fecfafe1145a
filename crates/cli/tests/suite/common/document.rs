//! Marked blocks of a Markdown document, and what of an output lasts.

/// What a block is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mark<'a> {
    /// The content of this file.
    File(&'a str),
    /// Commands.
    Run,
    /// What this command prints, or those of the block before.
    Output(Option<&'a str>),
}

/// A marked block.
#[derive(Debug)]
pub(crate) struct Block<'a> {
    pub(crate) mark: Mark<'a>,
    /// Line of its mark, from 1.
    pub(crate) line: usize,
    /// What is between the fences, as a part of the document.
    pub(crate) text: &'a str,
    /// Where it begins there.
    start: usize,
}

/// The marked blocks of a document.
///
/// # Errors
/// Line and reason, if a mark is unknown or no block follows it.
pub(crate) fn blocks(document: &str) -> Result<Vec<Block<'_>>, String> {
    let mut blocks: Vec<Block<'_>> = Vec::new();
    let mut at = 0;
    for (index, line) in document.split_inclusive('\n').enumerate() {
        at += line.len();
        let wrong = |why: &str| Err(format!("{}: {why}: {}", index + 1, line.trim_end()));
        let Some(mark) = mark(line.trim_end()) else { continue };
        let Some(mark) = mark else { return wrong("no such mark") };
        let Some((text, start)) = fenced(document, at) else {
            return wrong("no fenced block follows");
        };
        let follows = blocks.last().is_some_and(|block| block.mark == Mark::Run);
        if mark == Mark::Output(None) && !follows {
            return wrong("no commands before it");
        }
        blocks.push(Block { mark, line: index + 1, text, start });
    }
    Ok(blocks)
}

/// The mark in a line: none if it is another line, and nothing in it if it is an unknown mark.
fn mark(line: &str) -> Option<Option<Mark<'_>>> {
    let words = line.strip_prefix("<!-- ")?.strip_suffix(" -->")?;
    let (name, rest) = words.split_once(' ').unwrap_or((words, ""));
    Some(match (name, rest) {
        ("run", "") => Some(Mark::Run),
        ("output", "") => Some(Mark::Output(None)),
        ("output", rest) => rest.strip_prefix("of ").map(|command| Mark::Output(Some(command))),
        ("file", name) if !name.is_empty() => Some(Mark::File(name)),
        ("run" | "file", _) => None,
        // `ci: run` is a mark of `.ci/run`.
        _ => return None,
    })
}

/// The text between fences that begin here, and where it begins.
fn fenced(document: &str, at: usize) -> Option<(&str, usize)> {
    let rest = document[at..].strip_prefix("```")?;
    let start = document.len() - rest.len() + rest.find('\n')? + 1;
    let text = &document[start..];
    let end = if text.starts_with("```") { 0 } else { text.find("\n```")? + 1 };
    Some((&text[..end], start))
}

/// The document with outputs in place of those that differ in what lasts.
pub(crate) fn replaced(document: &str, outputs: &[(&Block<'_>, String)]) -> String {
    let mut text = String::new();
    let mut from = 0;
    for (block, printed) in outputs {
        if lasting(block.text) == lasting(printed) {
            continue;
        }
        text += &document[from..block.start];
        text += printed;
        from = block.start + block.text.len();
    }
    text + &document[from..]
}

/// An output without what is of the machine and the commit: of a line with the program's version, only the words.
pub(crate) fn lasting(text: &str) -> String {
    let version = concat!("nandscape ", env!("CARGO_PKG_VERSION"), " (");
    text.lines()
        .map(|line| if line.contains(version) { words(line) } else { line.to_owned() } + "\n")
        .collect()
}

/// A line without its commit, which is in parentheses, its numbers, and their units.
fn words(line: &str) -> String {
    let is_word = |word: &&str| {
        let has_digit = word.chars().any(|c| c.is_ascii_digit());
        let is_unit = ["s", "ms", "us"].contains(&word.trim_end_matches([',', ')']));
        !word.starts_with('(') && !has_digit && !is_unit
    };
    line.split_whitespace().filter(is_word).collect::<Vec<_>>().join(" ")
}

#[test]
fn blocks_are_found_in_order() {
    let text = "# T\n<!-- file a.fio -->\n```ini\n[a]\n```\n\n<!-- run -->\n```sh\nnandscape run a.fio\n```\n\
                <!-- output -->\n```text\nold\n```\n<!-- output of true -->\n```text\n```\n";
    let blocks = blocks(text).unwrap();
    let found: Vec<_> = blocks.iter().map(|block| (block.mark, block.line, block.text)).collect();
    let expected = [
        (Mark::File("a.fio"), 2, "[a]\n"),
        (Mark::Run, 7, "nandscape run a.fio\n"),
        (Mark::Output(None), 11, "old\n"),
        (Mark::Output(Some("true")), 15, ""),
    ];
    assert_eq!(found, expected);
    let new =
        replaced(text, &[(&blocks[2], "new\n".to_owned()), (&blocks[3], "more\n".to_owned())]);
    assert_eq!(new, text.replace("old", "new").replace("```text\n```", "```text\nmore\n```"));
}

#[test]
fn marks_without_blocks_are_errors() {
    for (text, expected) in [
        ("<!-- run -->\n\n```sh\ntrue\n```\n", "1: no fenced block follows"),
        ("a\n<!-- run twice -->\n```sh\ntrue\n```\n", "2: no such mark"),
        ("<!-- file -->\n```sh\ntrue\n```\n", "1: no such mark"),
        ("<!-- output -->\n```text\n```\n", "1: no commands before it"),
    ] {
        assert!(blocks(text).is_err_and(|error| error.starts_with(expected)), "{text}");
    }
}

#[test]
fn commits_and_times_do_not_last() {
    let line = |commit: &str, wall: &str| {
        let version = env!("CARGO_PKG_VERSION");
        format!(
            "a 1\n  nandscape {version} ({commit}): 60.03 s of virtual time in {wall} of the machine"
        )
    };
    assert_eq!(
        lasting(&line("540f4a3fe1b9", "2.06 s")),
        lasting(&line("abcdefabcdef-dirty", "960 ms"))
    );
    assert_ne!(lasting("a 1"), lasting("a 2"));
}
