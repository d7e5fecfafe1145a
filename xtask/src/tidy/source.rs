//! Rust source without its comments and literals: [`blank`] replaces them by spaces, so that what
//! is left can be searched for words and matched for braces. Offsets and lines stay as they were.
//!
//! Follows the lexical structure of the Rust Reference: nested block comments, escapes, raw, byte
//! and C strings; a quote begins a character only where no lifetime can be meant.

/// `text` with every comment, string and character literal overwritten by spaces.
pub(super) fn blank(text: &str) -> String {
    let mut blanker = Blanker { text: text.as_bytes(), code: Vec::with_capacity(text.len()) };
    while blanker.code.len() < blanker.text.len() {
        let end = blanker.item_end();
        blanker.take(end);
    }
    // Only whole characters are blanked, so what is left is UTF-8.
    String::from_utf8_lossy(&blanker.code).into_owned()
}

/// What the next bytes are: code to keep, or something to blank; up to an offset.
enum Item {
    Code(usize),
    Blank(usize),
}

struct Blanker<'a> {
    text: &'a [u8],
    code: Vec<u8>,
}

impl Blanker<'_> {
    /// Copies or blanks the next item.
    fn take(&mut self, item: Item) {
        let at = self.code.len();
        match item {
            Item::Code(end) => self.code.extend_from_slice(&self.text[at..end]),
            Item::Blank(end) => self.code.extend(
                self.text[at..end].iter().map(|&byte| if byte == b'\n' { b'\n' } else { b' ' }),
            ),
        }
    }

    fn item_end(&self) -> Item {
        let at = self.code.len();
        let rest = &self.text[at..];
        match rest {
            [b'/', b'/', ..] => Item::Blank(self.find(at, b"\n")),
            [b'/', b'*', ..] => Item::Blank(self.block_comment_end(at + 2)),
            [b'"', ..] => Item::Blank(self.string_end(at + 1)),
            [b'\'', ..] => self.quote(at),
            [b'r' | b'b' | b'c', ..] | [b'_' | b'a'..=b'z' | b'A'..=b'Z', ..] => self.word(at),
            _ => Item::Code(at + 1),
        }
    }

    /// Offset of `needle` from `at` on, or the end of the text.
    fn find(&self, at: usize, needle: &[u8]) -> usize {
        let mut windows = self.text[at..].windows(needle.len());
        windows.position(|window| window == needle).map_or(self.text.len(), |found| at + found)
    }

    fn block_comment_end(&self, mut at: usize) -> usize {
        let mut depth = 1;
        while depth > 0 && at < self.text.len() {
            match &self.text[at..] {
                [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
                [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
                _ => at += 1,
            }
        }
        at
    }

    /// The end of a string whose content begins at `at`.
    fn string_end(&self, mut at: usize) -> usize {
        while let Some(&byte) = self.text.get(at) {
            match byte {
                b'\\' => at += 2,
                b'"' => return at + 1,
                _ => at += 1,
            }
        }
        self.text.len()
    }

    /// A quote: a character literal, or the tick of a lifetime.
    fn quote(&self, at: usize) -> Item {
        if self.text.get(at + 1) == Some(&b'\\') {
            return Item::Blank(self.find(at + 3, b"'").saturating_add(1).min(self.text.len()));
        }
        let first = self.text.get(at + 1).copied().unwrap_or(0);
        let end = at + 1 + utf8_bytes(first);
        if self.text.get(end) == Some(&b'\'') { Item::Blank(end + 1) } else { Item::Code(at + 1) }
    }

    /// A word, with the string or character that it prefixes (`r#"`, `b'`, `c"`) if it does.
    fn word(&self, at: usize) -> Item {
        let word = self.text[at..].iter().take_while(|&&byte| is_word(byte)).count();
        let (prefix, end) = (&self.text[at..at + word], at + word);
        let hashes = self.text[end..].iter().take_while(|&&byte| byte == b'#').count();
        let opened = self.text.get(end + hashes) == Some(&b'"');
        match prefix {
            b"r" | b"br" | b"cr" if opened => {
                let close = [b"\"".as_slice(), &vec![b'#'; hashes]].concat();
                let found = self.find(end + hashes + 1, &close);
                Item::Blank((found + close.len()).min(self.text.len()))
            }
            b"b" | b"c" if opened && hashes == 0 => Item::Blank(self.string_end(end + 1)),
            _ => Item::Code(end),
        }
    }
}

/// Whether no word continues on either side.
pub(super) fn is_whole(text: &str, at: usize, len: usize) -> bool {
    let bytes = text.as_bytes();
    let before = at.checked_sub(1).and_then(|i| bytes.get(i));
    !before.into_iter().chain(bytes.get(at + len)).any(|&byte| is_word(byte))
}

/// Length of the UTF-8 character that begins with this byte.
const fn utf8_bytes(first: u8) -> usize {
    match first {
        0xf0.. => 4,
        0xe0.. => 3,
        0xc0.. => 2,
        _ => 1,
    }
}

/// Whether a byte can be part of an identifier.
pub(super) const fn is_word(byte: u8) -> bool {
    byte == b'_' || byte.is_ascii_alphanumeric()
}

/// The words of `code` with their offsets.
pub(super) fn words(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let bytes = code.as_bytes();
    let starts =
        (0..bytes.len()).filter(|&at| is_word(bytes[at]) && (at == 0 || !is_word(bytes[at - 1])));
    starts.map(|at| {
        let len = bytes[at..].iter().take_while(|&&byte| is_word(byte)).count();
        (at, &code[at..at + len])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is left of `text`, runs of spaces joined.
    fn left(text: &str) -> String {
        let code = blank(text);
        assert_eq!(code.len(), text.len());
        assert_eq!(code.matches('\n').count(), text.matches('\n').count());
        code.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn comments_go() {
        assert_eq!(left("a // { b\nc /* { /* { */ d */ e"), "a c e");
        assert_eq!(left("a //! é{"), "a");
        assert_eq!(left("a /* never closed"), "a");
    }

    #[test]
    fn strings_go() {
        assert_eq!(left(r#"a("{ \" {", b"\\", c"{") b"#), "a( , , ) b");
        assert_eq!(left(r###"a(r"\", r#"" {"#, br##""# {"##) b"###), "a( , , ) b");
        assert_eq!(left("a(\"over\ntwo {\") b"), "a( ) b");
    }

    #[test]
    fn characters_go_and_lifetimes_stay() {
        assert_eq!(left(r"m('{', '\'', '\u{7b}', b'{', 'é') x"), "m( , , , b , ) x");
        assert_eq!(
            left("fn f<'a>(x: &'a str, y: &'static T)"),
            "fn f<'a>(x: &'a str, y: &'static T)"
        );
        assert_eq!(left("r#type + 'outer: loop { b }"), "r#type + 'outer: loop { b }");
    }

    #[test]
    fn words_are_whole() {
        let found: Vec<_> = words("a.b_1(HashMap<x>)").map(|(_, word)| word).collect();
        assert_eq!(found, ["a", "b_1", "HashMap", "x"]);
    }
}
