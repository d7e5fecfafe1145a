//! Values of attributes: variables looked up, and checked for what they are to be.

use crate::wml::error::{At, Source, WmlError};
use crate::wml::lexer::Part;
use crate::wml::model::Number;
use crate::wml::random::Random;
use crate::wml::syntax::{Attribute, Attributes, Value, ValueKind};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes of a text at most, once its variables have their values: a path has no more.
const TEXT_BYTES_MAX: usize = 4096;

/// What a variable or an attribute holds.
#[derive(Clone, Debug)]
pub(super) enum Item {
    Number(i64),
    Flag(bool),
    Text(String),
    Random(Arc<Random>),
}

impl Item {
    /// As an error shows it.
    fn described(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Flag(flag) => flag.to_string(),
            Self::Text(text) => format!("\"{text}\""),
            Self::Random(_) => "a random variable".to_owned(),
        }
    }

    /// As a text shows it.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            other => other.described(),
        }
    }
}

pub(super) type Variables = BTreeMap<String, Item>;

/// Where variables are looked up: those of composite flowops first.
#[derive(Clone, Copy)]
pub(super) struct Scope<'a> {
    pub(super) source: &'a Source<'a>,
    pub(super) globals: &'a Variables,
    pub(super) locals: Option<&'a Variables>,
}

impl Scope<'_> {
    fn variable(&self, at: At, name: &str) -> Result<Item, WmlError> {
        let local = self.locals.and_then(|locals| locals.get(name));
        let found = local.or_else(|| self.globals.get(name));
        found.cloned().ok_or_else(|| {
            let known = self.locals.into_iter().flat_map(|locals| locals.keys());
            let known = known.chain(self.globals.keys()).map(String::as_str);
            self.source.unknown(at, "no variable", name, known)
        })
    }

    /// What a value stands for.
    pub(super) fn item(&self, value: &Value) -> Result<Item, WmlError> {
        Ok(match &value.kind {
            ValueKind::Number(number) => Item::Number(*number),
            ValueKind::Flag(flag) => Item::Flag(*flag),
            ValueKind::Word(word) => Item::Text(word.clone()),
            ValueKind::Variable(name) => self.variable(value.at, name)?,
            ValueKind::Text(parts) => Item::Text(self.text(value.at, parts)?),
            ValueKind::Table(_) => {
                return Err(self.source.error(value.at, "a table belongs to randtable only"));
            }
        })
    }

    fn text(&self, at: At, parts: &[Part]) -> Result<String, WmlError> {
        let shown = |part: &Part| match part {
            Part::Plain(text) => Ok(text.clone()),
            Part::Variable(name) => self.variable(at, name).map(|item| item.shown()),
        };
        let mut text = String::new();
        for part in parts {
            text += &shown(part)?;
            if text.len() > TEXT_BYTES_MAX {
                let problem = format!("this text is longer than {TEXT_BYTES_MAX} bytes");
                return Err(self.source.error(at, problem));
            }
        }
        Ok(text)
    }

    /// A number that is not drawn.
    pub(super) fn fixed(&self, value: &Value) -> Result<u64, WmlError> {
        match self.number(value)? {
            Number::Fixed(number) => Ok(number),
            Number::Drawn(_) => {
                Err(self.source.error(value.at, "a random variable cannot stand here"))
            }
        }
    }

    /// A number of at least 0.
    pub(super) fn number(&self, value: &Value) -> Result<Number, WmlError> {
        match self.item(value)? {
            Item::Number(number) => match u64::try_from(number) {
                Ok(number) => Ok(Number::Fixed(number)),
                Err(_) => Err(self.source.error(value.at, format!("{number} is below 0"))),
            },
            Item::Random(random) => Ok(Number::Drawn(random)),
            other => {
                let problem = format!("expected a number, found {}", other.described());
                Err(self.source.error(value.at, problem))
            }
        }
    }
}

/// The attributes of something, to be asked for by name.
pub(super) struct Given<'a> {
    pub(super) scope: Scope<'a>,
    attributes: &'a Attributes,
    what: &'static str,
}

impl<'a> Given<'a> {
    /// The attributes of a `what`, which may have those that are `known`, each once, and variables of
    /// its own if it `has_variables`.
    pub(super) fn new(
        scope: Scope<'a>,
        what: &'static str,
        attributes: &'a Attributes,
        known: &[&str],
        has_variables: bool,
    ) -> Result<Self, WmlError> {
        let mut seen: Vec<&str> = Vec::new();
        for Attribute { name, .. } in &attributes.list {
            let text = name.text.as_str();
            if text.starts_with('$') && !has_variables {
                let problem = format!("{what} has no variables of its own");
                return Err(scope.source.error(name.at, problem));
            }
            if !text.starts_with('$') && !known.contains(&text) {
                let what = format!("no attribute of {what}");
                return Err(scope.source.unknown(name.at, &what, text, known.iter().copied()));
            }
            if seen.contains(&text) {
                return Err(scope.source.error(name.at, format!("{text} is given twice")));
            }
            seen.push(text);
        }
        Ok(Self { scope, attributes, what })
    }

    pub(super) const fn at(&self) -> At {
        self.attributes.at
    }

    pub(super) fn error(&self, at: At, problem: impl Into<String>) -> WmlError {
        self.scope.source.error(at, problem)
    }

    /// All of them, as they stand.
    pub(super) fn list(&self) -> &'a [Attribute] {
        &self.attributes.list
    }

    pub(super) fn find(&self, name: &str) -> Option<&'a Attribute> {
        self.attributes.list.iter().find(|attribute| attribute.name.text == name)
    }

    /// Where an attribute's value stands, or the whole thing.
    pub(super) fn place(&self, name: &str) -> At {
        let value =
            self.find(name).map(|found| found.value.as_ref().map_or(found.name.at, |v| v.at));
        value.unwrap_or(self.attributes.at)
    }

    /// The value of an attribute, which must have one.
    pub(super) fn value(&self, name: &str) -> Result<Option<&'a Value>, WmlError> {
        let Some(attribute) = self.find(name) else { return Ok(None) };
        let problem = || self.error(attribute.name.at, format!("{name} needs a value: {name}=…"));
        attribute.value.as_ref().map(Some).ok_or_else(problem)
    }

    fn missing(&self, name: &str) -> WmlError {
        self.error(self.at(), format!("{} needs {name}=…", self.what))
    }

    pub(super) fn required(&self, name: &str) -> Result<&'a Value, WmlError> {
        self.value(name)?.ok_or_else(|| self.missing(name))
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<String>, WmlError> {
        let Some(value) = self.value(name)? else { return Ok(None) };
        match self.scope.item(value)? {
            Item::Random(_) => Err(self.error(value.at, "a random variable cannot stand here")),
            item => Ok(Some(item.shown())),
        }
    }

    pub(super) fn required_text(&self, name: &str) -> Result<String, WmlError> {
        self.text(name)?.ok_or_else(|| self.missing(name))
    }

    pub(super) fn number_or(&self, name: &str, default: u64) -> Result<Number, WmlError> {
        let given = self.value(name)?.map(|value| self.scope.number(value)).transpose()?;
        Ok(given.unwrap_or(Number::Fixed(default)))
    }

    pub(super) fn fixed_or(&self, name: &str, default: u64) -> Result<u64, WmlError> {
        let given = self.value(name)?.map(|value| self.scope.fixed(value)).transpose()?;
        Ok(given.unwrap_or(default))
    }

    /// A fixed number in a range.
    pub(super) fn count_or(
        &self,
        name: &str,
        default: u64,
        range: std::ops::RangeInclusive<u64>,
    ) -> Result<u64, WmlError> {
        let count = self.fixed_or(name, default)?;
        if range.contains(&count) {
            return Ok(count);
        }
        let (least, most) = (range.start(), range.end());
        let problem = format!("{name} is {count}, but must be {least} to {most}");
        Err(self.error(self.place(name), problem))
    }

    /// Whether something holds: false unless it is given; a number holds unless it is 0.
    pub(super) fn flag(&self, name: &str) -> Result<bool, WmlError> {
        let Some(attribute) = self.find(name) else { return Ok(false) };
        let Some(value) = &attribute.value else { return Ok(true) };
        match self.scope.item(value)? {
            Item::Flag(flag) => Ok(flag),
            Item::Number(number) => Ok(number != 0),
            other => {
                let problem = format!("expected true or false, found {}", other.described());
                Err(self.error(value.at, problem))
            }
        }
    }
}
