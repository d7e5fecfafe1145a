//! A stack file as a tree whose every key and value knows its place, so that files can be laid over
//! each other and an error still names the line that it comes from.

use super::place::{Place, StackError};
use nandscape_fs::FsKind;
use nandscape_ftl::FtlKind;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::sync::Arc;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

/// Keys and what they hold.
pub type Table = BTreeMap<String, Node>;

/// A value with its origin.
#[derive(Clone, PartialEq, Debug)]
pub struct Node {
    /// Where the key stands.
    pub key_place: Place,
    /// Where the value stands.
    pub place: Place,
    /// The text of a value from the command line, where quotes are optional.
    pub raw: Option<Arc<str>>,
    /// The value.
    pub value: Value,
}

/// A TOML value.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// Text.
    String(String),
    /// A whole number.
    Integer(i128),
    /// A number with a fraction.
    Float(f64),
    /// True or false.
    Boolean(bool),
    /// A date or time, which no key takes.
    Datetime,
    /// A list.
    Array(Vec<Node>),
    /// Keys in the layer itself.
    Table(Table),
}

impl Value {
    /// The value as rows of a sweep show it.
    #[must_use]
    pub fn to_json(&self) -> Json {
        match self {
            Self::String(text) => text.as_str().into(),
            // What does not fit 64 bits, no key takes.
            Self::Integer(number) => i64::try_from(*number).unwrap_or(i64::MAX).into(),
            Self::Float(number) => (*number).into(),
            Self::Boolean(truth) => (*truth).into(),
            Self::Datetime => Json::Null,
            Self::Array(nodes) => nodes.iter().map(|node| node.value.to_json()).collect(),
            Self::Table(table) => {
                let entry = |(key, node): (&String, &Node)| (key.clone(), node.value.to_json());
                Json::Object(table.iter().map(entry).collect())
            }
        }
    }

    /// The value as an error message shows it.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::String(text) => format!("\"{text}\""),
            Self::Integer(number) => number.to_string(),
            Self::Float(number) => format!("{number:?}"),
            Self::Boolean(truth) => truth.to_string(),
            Self::Datetime => "a date".into(),
            Self::Array(_) => "an array".into(),
            Self::Table(_) => "a table".into(),
        }
    }
}

/// What a text is and where its parts lie.
struct Source<'a> {
    file: &'a Arc<str>,
    text: &'a str,
}

/// Parses the text of a TOML file.
///
/// # Errors
/// What is no TOML, and where.
pub fn parse(file: &Arc<str>, text: &str) -> Result<Table, StackError> {
    let source = Source { file, text };
    let table = DeTable::parse(text).map_err(|error| source.error(&error))?;
    Ok(source.table(table.get_ref()))
}

/// Steps of a path at most, more than any key has: tables lie in each other as deep as it has steps.
const STEPS_MAX: usize = 16;

/// Parses one `key.path=value` of the command line into a tree with that one leaf.
pub(super) fn parse_set(assignment: &str) -> Result<Table, StackError> {
    let Some((path, raw)) = assignment.split_once('=') else {
        let place = Place::Set(assignment.into());
        return Err(StackError::new(&place, "", "expected key.path=value"));
    };
    let (path, raw) = (path.trim(), raw.trim());
    let place = Place::Set(path.into());
    if path.split('.').any(|step| step.trim().is_empty()) {
        return Err(StackError::new(
            &place,
            "",
            "expected key.path=value with a name in every step",
        ));
    }
    if path.split('.').count() > STEPS_MAX {
        let message = format!("expected key.path=value with at most {STEPS_MAX} steps");
        return Err(StackError::new(&place, "", message));
    }
    Ok(nest(path, set_value(raw, &place)))
}

/// What each `key.path=value` of the command line changes, merged in their order, for `[set]` of a sweep.
///
/// # Errors
/// The first that is no assignment.
pub fn sweep_overrides(assignments: &[String]) -> Result<Table, StackError> {
    let mut set = Table::new();
    for assignment in assignments {
        merge(&mut set, parse_set(assignment)?);
    }
    let place = Place::Argument("--set");
    let node = Node { key_place: place.clone(), place, raw: None, value: Value::Table(set) };
    Ok(if assignments.is_empty() { Table::new() } else { nest("set", node) })
}

/// The tree whose one leaf, at the dotted `path`, is `leaf`.
pub(crate) fn nest(path: &str, leaf: Node) -> Table {
    let (above, key) = path.rsplit_once('.').unwrap_or(("", path));
    let place = leaf.key_place.clone();
    let table = Table::from([(key.trim().to_owned(), leaf)]);
    if above.is_empty() {
        return table;
    }
    let value = Value::Table(table);
    nest(above, Node { key_place: place.clone(), place, raw: None, value })
}

/// TOML where it is TOML, else the text itself as a string.
fn set_value(raw: &str, place: &Place) -> Node {
    let file: Arc<str> = "".into();
    let source = Source { file: &file, text: raw };
    let mut node = match DeValue::parse(raw) {
        Ok(value) => source.node(place, &value),
        Err(_) => source.leaf(Value::String(raw.to_owned())),
    };
    node.raw = Some(raw.into());
    node.settle(place);
    node
}

/// Sections that are about a device without a file system.
const BEFORE_FS: [&str; 2] = ["hints", "precondition"];

/// A section that begins again, without what is below, when a layer changes what it is.
struct Restart {
    section: &'static str,
    /// The key that says what it is.
    key: &'static str,
    /// Its value where it is not given. A layer that repeats the value below keeps the keys below; `None`: a
    /// layer that gives one never keeps them.
    default: Option<&'static str>,
}

const RESTARTS: [Restart; 3] = [
    Restart { section: "precondition", key: "recipe", default: None },
    Restart { section: "ftl", key: "kind", default: Some(FtlKind::Pblk.name()) },
    Restart { section: "fs", key: "kind", default: Some(FsKind::Ext4.name()) },
];

/// Whether `over`, laid on the section `base`, begins it again.
fn restarts(section: &str, base: &Table, over: &Table) -> bool {
    let Some(restart) = RESTARTS.iter().find(|restart| restart.section == section) else {
        return false;
    };
    let Some(given) = over.get(restart.key) else { return false };
    let Some(default) = restart.default else { return true };
    match base.get(restart.key) {
        Some(below) => below.value != given.value,
        None => given.value != Value::String(default.to_owned()),
    }
}

/// Lays `over` on `base`: tables merge, anything else replaces. A table laid over the name of a
/// `timing` or `cpu` refines that preset. A section whose key in `RESTARTS` changes loses what it held, as do
/// the sections that a file system replaces.
pub fn merge(base: &mut Table, over: Table) {
    if over.contains_key("fs") && !base.contains_key("fs") {
        BEFORE_FS.iter().for_each(|section| drop(base.remove(*section)));
    }
    for (key, node) in over {
        match base.get_mut(&key) {
            Some(under) => lay_over(&key, under, node),
            None => {
                base.insert(key, node);
            }
        }
    }
}

fn lay_over(key: &str, under: &mut Node, mut node: Node) {
    let Value::Table(over) = &mut node.value else {
        *under = node;
        return;
    };
    if matches!(key, "timing" | "cpu") && matches!(under.value, Value::String(_)) {
        let name = under.clone();
        under.value = Value::Table(Table::from([("preset".to_owned(), name)]));
    }
    match &mut under.value {
        Value::Table(base) => {
            if restarts(key, base, over) {
                base.clear();
            }
            merge(base, std::mem::take(over));
        }
        _ => *under = node,
    }
}

impl Node {
    /// Gives this node and all below it one place.
    fn settle(&mut self, place: &Place) {
        self.key_place = place.clone();
        self.place = place.clone();
        match &mut self.value {
            Value::Array(nodes) => nodes.iter_mut().for_each(|node| node.settle(place)),
            Value::Table(table) => table.values_mut().for_each(|node| node.settle(place)),
            _ => {}
        }
    }
}

impl Source<'_> {
    fn place(&self, offset: usize) -> Place {
        Place::of(self.file, self.text, offset)
    }

    fn error(&self, error: &toml::de::Error) -> StackError {
        let offset = error.span().map_or(0, |span| span.start);
        StackError::new(&self.place(offset), "", error.message().replace('\n', "; "))
    }

    fn table(&self, table: &DeTable<'_>) -> Table {
        let entry = |(key, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| {
            let name: &std::borrow::Cow<'_, str> = key.get_ref();
            (name.to_string(), self.node(&self.place(key.span().start), value))
        };
        table.iter().map(entry).collect()
    }

    fn array(&self, array: &DeArray<'_>) -> Vec<Node> {
        array.iter().map(|value| self.node(&self.place(value.span().start), value)).collect()
    }

    fn node(&self, key_place: &Place, value: &Spanned<DeValue<'_>>) -> Node {
        Node {
            key_place: key_place.clone(),
            place: self.place(value.span().start),
            raw: None,
            value: self.value(value.get_ref()),
        }
    }

    fn leaf(&self, value: Value) -> Node {
        Node { key_place: self.place(0), place: self.place(0), raw: None, value }
    }

    fn value(&self, value: &DeValue<'_>) -> Value {
        match value {
            DeValue::String(text) => Value::String(text.to_string()),
            DeValue::Integer(number) => {
                // Beyond 128 bits only its being too large matters.
                let parsed = i128::from_str_radix(number.as_str(), number.radix());
                Value::Integer(parsed.unwrap_or(i128::MAX))
            }
            DeValue::Float(number) => Value::Float(number.as_str().parse().unwrap_or(f64::NAN)),
            DeValue::Boolean(truth) => Value::Boolean(*truth),
            DeValue::Datetime(_) => Value::Datetime,
            DeValue::Array(array) => Value::Array(self.array(array)),
            DeValue::Table(table) => Value::Table(self.table(table)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Table {
        parse(&"a.toml".into(), text).unwrap()
    }

    /// `over` on `base`, without places.
    fn merged(base: &str, over: &str) -> String {
        let mut all = table(base);
        merge(&mut all, table(over));
        Value::Table(all).to_json().to_string()
    }

    /// A layer that makes a section something else begins it again; one that repeats what it is, or says what
    /// it is without need, keeps all keys below.
    #[test]
    fn sections_restart_when_their_kind_changes() {
        let pblk = "[ftl]\nop_percent = 20\n[ftl.gc]\nvictim = \"fifo\"\n";
        let named = &pblk.replace("[ftl]", "[ftl]\nkind = \"pblk\"");
        let gc = r#""gc":{"victim":"fifo"}"#;
        for below in [pblk, named] {
            let same = merged(below, "ftl.kind = \"pblk\"\nftl.ring = 512\n");
            let kept = format!(r#"{{"ftl":{{{gc},"kind":"pblk","op_percent":20,"ring":512}}}}"#);
            assert_eq!(same, kept, "{below}");
            let other = merged(below, "ftl.kind = \"zoned\"\nftl.zones = 7\n");
            assert_eq!(other, r#"{"ftl":{"kind":"zoned","zones":7}}"#, "{below}");
            let silent = merged(below, "ftl.op_percent = 30\n");
            assert!(silent.contains(gc) && silent.contains(r#""op_percent":30"#), "{silent}");
        }
        let back = merged("[ftl]\nkind = \"zoned\"\nzones = 7\n", "ftl.kind = \"pblk\"\n");
        assert_eq!(back, r#"{"ftl":{"kind":"pblk"}}"#);
        let set = parse_set("ftl.kind=zoned").unwrap();
        let mut all = table(named);
        merge(&mut all, set);
        assert_eq!(Value::Table(all).to_json().to_string(), r#"{"ftl":{"kind":"zoned"}}"#);
    }

    /// A recipe begins its section again even where it is the one below: a fill is a fill and no more.
    #[test]
    fn recipes_and_file_systems_restart_their_sections() {
        let recipe = |over: &str| merged("[precondition]\nrecipe = \"a\"\nfill = 0.5\n", over);
        let other = recipe("precondition.recipe = \"b\"\n");
        assert_eq!(other, r#"{"precondition":{"recipe":"b"}}"#);
        let same = recipe("precondition.recipe = \"a\"\n");
        assert_eq!(same, r#"{"precondition":{"recipe":"a"}}"#);
        let bare = merged("[precondition]\nfill = 0.5\n", "precondition.recipe = \"a\"\n");
        assert_eq!(bare, r#"{"precondition":{"recipe":"a"}}"#);
        let fs = |over: &str| merged("[fs]\njournal = 5\n", over);
        assert_eq!(fs("fs.kind = \"f2fs\"\n"), r#"{"fs":{"kind":"f2fs"}}"#);
        assert_eq!(fs("fs.kind = \"ext4\"\n"), r#"{"fs":{"journal":5,"kind":"ext4"}}"#);
    }

    /// A kind that is not given is the one that its reader takes then.
    #[test]
    fn defaults_are_those_of_the_readers() {
        let default = |section: &str| {
            let restart = RESTARTS.iter().find(|restart| restart.section == section);
            restart.and_then(|restart| restart.default)
        };
        assert_eq!(default("fs"), Some(nandscape_fs::FsKind::Ext4.name()));
        let stack = crate::stack::Stack::load("pblk", &[] as &[&str]).unwrap();
        assert_eq!(default("ftl"), Some(stack.ftl.kind().name()));
    }
}
