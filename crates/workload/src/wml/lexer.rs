//! Text into tokens, each with its place. White space and line ends only separate; `#` begins a
//! comment that ends with the line.
//!
//! After Filebench's lexer (parser_lex.l): a word begins with a letter, `/` or `-` and goes on with
//! letters, digits and `/ . _ : ; -`; a number may end in `k`, `m` or `g`; a variable is `$name`,
//! `${name}` or `$(name)`, and may stand within a text in quotes.

use super::error::{At, Source, WmlError};
use std::iter::Peekable;
use std::str::Chars;

/// A part of a text in quotes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Part {
    Plain(String),
    Variable(String),
}

/// What a file is made of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Token {
    Word(String),
    Number(i64),
    /// Without its `$`.
    Variable(String),
    Text(Vec<Part>),
    /// One of `{ } ( ) = ,`.
    Mark(char),
    /// One of `+ - * /`, standing alone.
    Operator(char),
    End,
}

impl Token {
    /// As an error shows it.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Word(word) => format!("\"{word}\""),
            Self::Number(number) => number.to_string(),
            Self::Variable(name) => format!("${name}"),
            Self::Text(_) => "a text in quotes".to_owned(),
            Self::Mark(c) | Self::Operator(c) => format!("\"{c}\""),
            Self::End => "the end of the file".to_owned(),
        }
    }
}

/// All tokens of a file; the last is [`Token::End`].
pub(super) fn tokens(source: &Source<'_>) -> Result<Vec<(At, Token)>, WmlError> {
    let rest = source.text().chars().peekable();
    let mut lexer = Lexer { source, rest, at: At { line: 1, column: 1 } };
    let mut tokens = Vec::new();
    loop {
        lexer.skip_blanks();
        let at = lexer.at;
        let token = lexer.token(at)?;
        let is_end = token == Token::End;
        tokens.push((at, token));
        if is_end {
            return Ok(tokens);
        }
    }
}

struct Lexer<'a> {
    source: &'a Source<'a>,
    rest: Peekable<Chars<'a>>,
    /// Place of the next character.
    at: At,
}

/// Whether a word goes on with this.
const fn is_in_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | ':' | ';' | '-')
}

const fn is_in_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

impl Lexer<'_> {
    fn next(&mut self) -> Option<char> {
        let c = self.rest.next()?;
        self.at = match c {
            '\n' => At { line: self.at.line + 1, column: 1 },
            _ => At { column: self.at.column + 1, ..self.at },
        };
        Some(c)
    }

    fn next_while(&mut self, wanted: impl Fn(char) -> bool) -> String {
        let mut taken = String::new();
        while let Some(c) = self.rest.peek().copied().filter(|c| wanted(*c)) {
            taken.push(c);
            self.next();
        }
        taken
    }

    fn skip_blanks(&mut self) {
        loop {
            self.next_while(char::is_whitespace);
            if self.rest.peek() != Some(&'#') {
                return;
            }
            self.next_while(|c| c != '\n');
        }
    }

    fn token(&mut self, at: At) -> Result<Token, WmlError> {
        let Some(&first) = self.rest.peek() else { return Ok(Token::End) };
        match first {
            '{' | '}' | '(' | ')' | '=' | ',' => {
                self.next();
                Ok(Token::Mark(first))
            }
            '"' => self.text(at),
            '$' => self.variable(at).map(Token::Variable),
            '0'..='9' => self.number(at, 1),
            '+' | '*' => {
                self.next();
                Ok(Token::Operator(first))
            }
            '/' | '-' | 'a'..='z' | 'A'..='Z' => self.word(at),
            other => {
                let advice = "names that need other characters go in quotes";
                Err(self.source.error(at, format!("\"{other}\" has no meaning here; {advice}")))
            }
        }
    }

    /// A word; or a number below zero, or an operator, which begin alike.
    fn word(&mut self, at: At) -> Result<Token, WmlError> {
        if self.rest.peek() == Some(&'-') {
            let behind = self.rest.clone().nth(1);
            if behind.is_some_and(|c| c.is_ascii_digit()) {
                self.next();
                return self.number(at, -1);
            }
        }
        let word = self.next_while(is_in_word);
        match word.as_str() {
            "/" | "-" if self.rest.peek().is_none_or(|c| c.is_whitespace() || *c == '$') => {
                Ok(Token::Operator(if word == "/" { '/' } else { '-' }))
            }
            _ => Ok(Token::Word(word)),
        }
    }

    fn number(&mut self, at: At, sign: i64) -> Result<Token, WmlError> {
        let written = self.next_while(is_in_word);
        let number = number(&written).and_then(|number| number.checked_mul(sign));
        number.map(Token::Number).ok_or_else(|| {
            let expected =
                "a whole number, with k, m or g (1024, 1024^2, 1024^3) behind it or nothing";
            self.source.error(at, format!("\"{written}\" is no number; expected {expected}"))
        })
    }

    /// The name behind a `$`.
    fn variable(&mut self, at: At) -> Result<String, WmlError> {
        self.next();
        let close = match self.rest.peek() {
            Some('{') => Some('}'),
            Some('(') => Some(')'),
            _ => None,
        };
        if close.is_some() {
            self.next();
        }
        let name = self.next_while(is_in_name);
        if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return Err(self
                .source
                .error(at, "a variable is a $ and a name that begins with a letter"));
        }
        match close {
            Some(close) if self.next() != Some(close) => {
                Err(self.source.error(at, format!("\"{close}\" is missing behind ${name}")))
            }
            _ => Ok(name),
        }
    }

    /// A text in quotes, in which `\n`, `\$`, `\"` and `\\` stand for what they do elsewhere.
    fn text(&mut self, at: At) -> Result<Token, WmlError> {
        self.next();
        let mut parts = Vec::new();
        let mut plain = String::new();
        loop {
            let here = self.at;
            match self.rest.peek().copied() {
                Some('$') => {
                    parts.push(Part::Plain(std::mem::take(&mut plain)));
                    parts.push(Part::Variable(self.variable(here)?));
                    continue;
                }
                Some('\\') => {
                    self.next();
                    plain.push(match self.rest.peek() {
                        Some('n') => '\n',
                        Some(&other) => other,
                        None => '\\',
                    });
                }
                Some('"') => {
                    self.next();
                    parts.push(Part::Plain(plain));
                    return Ok(Token::Text(parts));
                }
                Some(other) => plain.push(other),
                None => return Err(self.source.error(at, "this text has no closing quote")),
            }
            self.next();
        }
    }
}

/// A whole number, with or without its unit.
pub(super) fn number(written: &str) -> Option<i64> {
    let digits = written.trim_end_matches(['k', 'm', 'g']);
    let unit: i64 = match written.get(digits.len()..)? {
        "" => 1,
        "k" => 1 << 10,
        "m" => 1 << 20,
        "g" => 1 << 30,
        _ => return None,
    };
    let is_plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then(|| digits.parse::<i64>().ok()?.checked_mul(unit)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Token>, String> {
        let tokens = tokens(&Source::new("t.f", text)).map_err(|error| error.to_string())?;
        Ok(tokens.into_iter().map(|(_, token)| token).collect())
    }

    /// Everything that a file is made of, once.
    #[test]
    fn every_kind_of_token() {
        let word = |text: &str| Token::Word(text.to_owned());
        let read =
            read("set $a=/x.y-z # {\n,05 16k -2 {(${b1} * $(c)/ - 1)} mean:4;g:1.5\"\"").unwrap();
        let expected = [
            word("set"),
            Token::Variable("a".into()),
            Token::Mark('='),
            word("/x.y-z"),
            Token::Mark(','),
            Token::Number(5),
            Token::Number(16 << 10),
            Token::Number(-2),
            Token::Mark('{'),
            Token::Mark('('),
            Token::Variable("b1".into()),
            Token::Operator('*'),
            Token::Variable("c".into()),
            Token::Operator('/'),
            Token::Operator('-'),
            Token::Number(1),
            Token::Mark(')'),
            Token::Mark('}'),
            word("mean:4;g:1.5"),
            Token::Text(vec![Part::Plain(String::new())]),
            Token::End,
        ];
        assert_eq!(read, expected);
    }

    /// Variables in a text are its parts, unless they are escaped.
    #[test]
    fn texts_have_parts() {
        let plain = |text: &str| Part::Plain(text.to_owned());
        let parts = vec![plain("a "), Part::Variable("b".into()), plain(" \n$c\"")];
        assert_eq!(read("\"a $b \\n\\$c\\\"\"").unwrap()[0], Token::Text(parts));
    }

    /// Places count lines and characters.
    #[test]
    fn tokens_have_places() {
        let tokens = tokens(&Source::new("t.f", "\u{e9}")).unwrap_err();
        assert_eq!((tokens.place.line, tokens.place.column), (1, 1));
        let tokens = super::tokens(&Source::new("t.f", "run\n  # \u{e9}\n\t60")).unwrap();
        let places: Vec<_> = tokens.iter().map(|(at, _)| (at.line, at.column)).collect();
        assert_eq!(places, [(1, 1), (3, 2), (3, 4)]);
    }

    /// What is no token is said at its place.
    #[test]
    fn broken_tokens_are_errors() {
        for (text, expected) in [
            ("set ?", "t.f:1:5: \"?\" has no meaning"),
            ("run 16kb", "t.f:1:5: \"16kb\" is no number"),
            ("run 99999999999999999999", "t.f:1:5: \"99999999999999999999\" is no number"),
            ("echo \"abc", "t.f:1:6: this text has no closing quote"),
            ("run ${x", "t.f:1:5: \"}\" is missing"),
            ("run $1", "t.f:1:5: a variable is"),
        ] {
            let found = read(text).unwrap_err();
            assert!(found.starts_with(expected), "found {found}");
        }
    }
}
