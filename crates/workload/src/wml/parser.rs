//! Tokens into commands, after Filebench's grammar (parser_gram.y), with what stock files of 1.4 still
//! use: `define randvar name=$v,…`, and operators between the values of a `set`.

use super::error::{At, Source, WmlError};
use super::lexer::{Token, tokens};
use super::syntax::{
    Attribute, Attributes, Command, FlowopSyntax, SetValue, Statement, ThreadSyntax, Value,
    ValueKind, Word,
};

/// Words that begin a command.
const COMMANDS: [&str; 17] = [
    "create",
    "debug",
    "define",
    "domultisync",
    "echo",
    "enable",
    "eventgen",
    "list",
    "psrun",
    "quit",
    "run",
    "set",
    "sleep",
    "stats",
    "system",
    "usage",
    "version",
];
/// What may be defined.
const DEFINED: [&str; 5] = ["fileset", "file", "process", "flowop", "randvar"];
/// What `create` and `list` may name; they do nothing that `run` does not.
const LISTED: [&str; 6] = ["files", "fileset", "filesets", "process", "processes", "flowop"];

/// The commands of a file.
pub(super) fn parse(source: &Source<'_>) -> Result<Vec<Statement>, WmlError> {
    let mut parser = Parser { source, tokens: tokens(source)?, next: 0 };
    let mut statements = Vec::new();
    while *parser.peek() != Token::End {
        let at = parser.at();
        statements.push(Statement { at, command: parser.command()? });
    }
    Ok(statements)
}

struct Parser<'a> {
    source: &'a Source<'a>,
    /// The last is [`Token::End`].
    tokens: Vec<(At, Token)>,
    next: usize,
}

type Parsed<T> = Result<T, WmlError>;

impl Parser<'_> {
    fn entry(&self) -> &(At, Token) {
        &self.tokens[self.next.min(self.tokens.len() - 1)]
    }

    fn peek(&self) -> &Token {
        &self.entry().1
    }

    fn at(&self) -> At {
        self.entry().0
    }

    fn expected<T>(&self, what: &str) -> Parsed<T> {
        let found = self.peek().shown();
        Err(self.source.error(self.at(), format!("expected {what}, found {found}")))
    }

    fn has_mark(&mut self, mark: char) -> bool {
        let is_there = *self.peek() == Token::Mark(mark);
        self.next += usize::from(is_there);
        is_there
    }

    fn mark(&mut self, mark: char, why: &str) -> Parsed<()> {
        if self.has_mark(mark) { Ok(()) } else { self.expected(&format!("\"{mark}\"{why}")) }
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Token::Word(found) if found == word)
    }

    fn word(&mut self, what: &str) -> Parsed<Word> {
        let at = self.at();
        match self.peek() {
            Token::Word(text) => {
                let text = text.clone();
                self.next += 1;
                Ok(Word { at, text })
            }
            _ => self.expected(what),
        }
    }

    fn variable(&mut self) -> Parsed<Word> {
        let at = self.at();
        match self.peek() {
            Token::Variable(name) => {
                let text = name.clone();
                self.next += 1;
                Ok(Word { at, text })
            }
            _ => self.expected("a variable such as $dir"),
        }
    }

    fn command(&mut self) -> Parsed<Command> {
        let word = self.word("a command such as set, define or run")?;
        match word.text.as_str() {
            "set" => self.set(),
            "define" => self.define(),
            "eventgen" => self.attributes(word.at).map(Command::Eventgen),
            "run" => Ok(Command::Run(self.number_if_any()?)),
            "psrun" => Ok(Command::Psrun(self.number_if_any()?, self.number_if_any()?)),
            "sleep" => self.value("a number of seconds").map(Command::Sleep),
            "echo" => self.value("a text in quotes").map(Command::Echo),
            "enable" => self.enable(),
            "create" | "list" => self.listed(&word),
            "debug" | "usage" => self.value("a value").map(|_| Command::Nothing),
            "stats" => self.word("clear, snap or the like").map(|_| Command::Nothing),
            "version" => Ok(Command::Nothing),
            "quit" => Ok(Command::Quit),
            "system" => Err(self.refused(&word, "a workload file runs no programs of the host")),
            "domultisync" => Err(self.refused(&word, "there is one client")),
            other => {
                let known = COMMANDS.into_iter();
                Err(self.source.unknown(word.at, "no command", other, known))
            }
        }
    }

    fn refused(&self, word: &Word, why: &str) -> WmlError {
        self.source.error(word.at, format!("\"{}\" is not supported: {why}", word.text))
    }

    fn enable(&mut self) -> Parsed<Command> {
        let word = self.word("lathist")?;
        match word.text.as_str() {
            "lathist" => Ok(Command::LatencyHistograms),
            "multi" => Err(self.refused(&word, "there is one client")),
            other => {
                let known = ["lathist"].into_iter();
                Err(self.source.unknown(word.at, "nothing to enable", other, known))
            }
        }
    }

    fn listed(&mut self, command: &Word) -> Parsed<Command> {
        let what = self.word("what")?;
        if LISTED.contains(&what.text.as_str()) {
            return Ok(Command::Nothing);
        }
        let nothing = format!("nothing to {}", command.text);
        Err(self.source.unknown(what.at, &nothing, &what.text, LISTED.into_iter()))
    }

    fn set(&mut self) -> Parsed<Command> {
        if self.is_word("mode") {
            self.next += 1;
            let mut words = vec![self.word("quit or nousestats")?];
            if words[0].text == "quit" {
                words.push(self.word("timeout, alldone or firstdone")?);
            }
            return Ok(Command::Mode(words));
        }
        let name = self.variable()?;
        self.mark('=', " behind the variable")?;
        let value = self.set_value()?;
        Ok(Command::Set(name, value))
    }

    fn set_value(&mut self) -> Parsed<SetValue> {
        let at = self.at();
        for (word, made) in [
            ("randvar", SetValue::Random as fn(Attributes) -> SetValue),
            ("cvar", SetValue::Custom as fn(Attributes) -> SetValue),
        ] {
            if self.is_word(word)
                && self
                    .tokens
                    .get(self.next + 1)
                    .is_some_and(|(_, token)| *token == Token::Mark('('))
            {
                self.next += 2;
                let attributes = self.attributes(at)?;
                self.mark(')', " behind the attributes")?;
                return Ok(made(attributes));
            }
        }
        let first = self.value("a value")?;
        let mut rest = Vec::new();
        while let Token::Operator(operator) = *self.peek() {
            self.next += 1;
            rest.push((operator, self.value("a value")?));
        }
        Ok(SetValue::Plain(first, rest))
    }

    fn define(&mut self) -> Parsed<Command> {
        let what = self.word("fileset, file, process or flowop")?;
        match what.text.as_str() {
            "fileset" => self.attributes(what.at).map(Command::Fileset),
            "file" => self.attributes(what.at).map(Command::File),
            "randvar" => self.attributes(what.at).map(Command::Randvar),
            "process" => {
                let attributes = self.attributes(what.at)?;
                Ok(Command::Process(attributes, self.body(Self::thread)?))
            }
            "flowop" => {
                let attributes = self.attributes(what.at)?;
                Ok(Command::Flowop(attributes, self.body(Self::flowop)?))
            }
            other => {
                let known = DEFINED.into_iter();
                Err(self.source.unknown(what.at, "nothing to define", other, known))
            }
        }
    }

    /// `{ … }` with at least one item.
    fn body<T>(&mut self, item: impl Fn(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        self.mark('{', "")?;
        let mut items = vec![item(self)?];
        while !self.has_mark('}') {
            items.push(item(self)?);
        }
        Ok(items)
    }

    fn thread(&mut self) -> Parsed<ThreadSyntax> {
        let at = self.at();
        if !self.is_word("thread") {
            return self.expected("thread or \"}\"");
        }
        self.next += 1;
        let attributes = self.attributes(at)?;
        Ok(ThreadSyntax { attributes, flowops: self.body(Self::flowop)? })
    }

    fn flowop(&mut self) -> Parsed<FlowopSyntax> {
        if !self.is_word("flowop") {
            return self.expected("flowop or \"}\"");
        }
        self.next += 1;
        let kind = self.word("what the flowop does")?;
        let attributes = self.attributes(kind.at)?;
        Ok(FlowopSyntax { kind, attributes })
    }

    /// `name=value, name, …` of what stands at `at`.
    fn attributes(&mut self, at: At) -> Parsed<Attributes> {
        let mut list = vec![self.attribute()?];
        while self.has_mark(',') {
            list.push(self.attribute()?);
        }
        if *self.peek() == Token::Mark('=') {
            return self.expected("\",\" between attributes");
        }
        Ok(Attributes { at, list })
    }

    fn attribute(&mut self) -> Parsed<Attribute> {
        let name = match self.peek() {
            Token::Variable(_) => {
                let Word { at, text } = self.variable()?;
                Word { at, text: format!("${text}") }
            }
            _ => self.word("an attribute")?,
        };
        let value = match self.has_mark('=') {
            true => Some(self.value("a value")?),
            false => None,
        };
        Ok(Attribute { name, value })
    }

    fn number_if_any(&mut self) -> Parsed<Option<Value>> {
        match self.peek() {
            Token::Number(_) | Token::Variable(_) => self.value("a number").map(Some),
            _ => Ok(None),
        }
    }

    fn value(&mut self, what: &str) -> Parsed<Value> {
        let at = self.at();
        if self.has_mark('{') { self.table(at) } else { self.cell(what) }
    }

    /// A value that is no table: tables are not nested.
    fn cell(&mut self, what: &str) -> Parsed<Value> {
        let at = self.at();
        let kind = match self.peek().clone() {
            Token::Number(number) => ValueKind::Number(number),
            Token::Variable(name) => ValueKind::Variable(name),
            Token::Text(parts) => ValueKind::Text(parts),
            Token::Word(word) if word == "true" => ValueKind::Flag(true),
            Token::Word(word) if word == "false" => ValueKind::Flag(false),
            Token::Word(word) => ValueKind::Word(word),
            Token::Mark(_) | Token::Operator(_) | Token::End => return self.expected(what),
        };
        self.next += 1;
        Ok(Value { at, kind })
    }

    /// The rows of a table, whose opening `{` is taken.
    fn table(&mut self, at: At) -> Parsed<Value> {
        let mut rows = Vec::new();
        loop {
            self.mark('{', ", which begins {percent, from, to}")?;
            let share = self.cell("a percentage")?;
            self.mark(',', "")?;
            let from = self.cell("where the stretch begins")?;
            self.mark(',', "")?;
            let to = self.cell("where the stretch ends")?;
            self.mark('}', "")?;
            rows.push([share, from, to]);
            if !self.has_mark(',') {
                break;
            }
        }
        self.mark('}', ", which ends the table")?;
        Ok(Value { at, kind: ValueKind::Table(rows) })
    }
}
