//! What a workload file says, before anything is looked up: commands in order, with their places.

use super::error::At;
use super::lexer::Part;

/// A name and where it stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Word {
    pub(super) at: At,
    pub(super) text: String,
}

/// A value and where it stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Value {
    pub(super) at: At,
    pub(super) kind: ValueKind,
}

/// What stands for a value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum ValueKind {
    Number(i64),
    Flag(bool),
    Word(String),
    Text(Vec<Part>),
    Variable(String),
    /// `{{share, from, to}, …}`
    Table(Vec<[Value; 3]>),
}

/// `name=value`, or a name alone, which means true. Names of a composite flowop's own variables
/// begin with `$`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Attribute {
    pub(super) name: Word,
    pub(super) value: Option<Value>,
}

/// Attributes of something, and where its name or its keyword stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Attributes {
    pub(super) at: At,
    pub(super) list: Vec<Attribute>,
}

/// `flowop kind attributes`
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct FlowopSyntax {
    pub(super) kind: Word,
    pub(super) attributes: Attributes,
}

/// `thread attributes { flowops }`
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ThreadSyntax {
    pub(super) attributes: Attributes,
    pub(super) flowops: Vec<FlowopSyntax>,
}

/// What a variable is set to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum SetValue {
    /// A value, or several with operators between them, from left to right.
    Plain(Value, Vec<(char, Value)>),
    /// `randvar(…)`
    Random(Attributes),
    /// `cvar(…)`
    Custom(Attributes),
}

/// One command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Command {
    Set(Word, SetValue),
    /// `set mode …`: the words behind it.
    Mode(Vec<Word>),
    Fileset(Attributes),
    File(Attributes),
    Process(Attributes, Vec<ThreadSyntax>),
    Flowop(Attributes, Vec<FlowopSyntax>),
    Randvar(Attributes),
    Eventgen(Attributes),
    /// `run [seconds]`
    Run(Option<Value>),
    /// `psrun [period [seconds]]`
    Psrun(Option<Value>, Option<Value>),
    Sleep(Value),
    Echo(Value),
    /// `enable lathist`
    LatencyHistograms,
    /// `quit`
    Quit,
    /// Accepted, and says nothing: `create …`, `debug …`, `list …`, `version`, and `usage`.
    Nothing,
}

impl Command {
    /// The variable, without its `$`, that it gives a value.
    pub(super) fn variable(&self) -> Option<&str> {
        match self {
            Self::Set(name, _) => Some(&name.text),
            Self::Randvar(attributes) => {
                let mut names = attributes.list.iter().filter(|one| one.name.text == "name");
                match &names.next()?.value.as_ref()?.kind {
                    ValueKind::Variable(name) => Some(name),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

/// A command and where its first word stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Statement {
    pub(super) at: At,
    pub(super) command: Command,
}
