//! Which keys of a stack make up its device: shape, timing, link, faults, overprovisioning and what is written to it
//! before measuring. FTLs are comparable on one device only, so a stack can be put on that of another.

use super::document::{Node, Table, Value, parse};
use super::place::{Place, StackError};
use super::{Stack, source};
use std::sync::Arc;

/// Sections that are the device's.
const SECTIONS: [&str; 3] = ["media", "link", "precondition"];
/// Keys of these that are not: they change no result.
const LEFT_OUT: &str = "media.memory_cap";
/// The key of the FTL that is.
const OP: (&str, &str) = ("ftl", "op_percent");

impl Stack {
    /// The stack called `name` on the device of `device`, with overrides.
    ///
    /// # Errors
    /// The first thing wrong with either, and where.
    pub fn load_on<S: AsRef<str>>(
        name: &str,
        device: &Self,
        overrides: &[S],
    ) -> Result<Self, StackError> {
        let (mut table, place) = source::load(name)?;
        let file: Arc<str> = format!("{}, resolved", device.name).into();
        let mut of_device = parse(&file, &device.toml)?;
        for section in SECTIONS {
            table.remove(section);
            table.extend(of_device.remove_entry(section));
        }
        put_op(&mut table, of_device);
        Self::resolve((table, place), overrides)
    }

    /// What its device is: keys and values.
    pub fn device_keys(&self) -> impl Iterator<Item = (String, &str)> {
        let (section, op) = OP;
        self.resolved_keys().filter(move |(key, _)| {
            let of = key.split('.').next().unwrap_or_default();
            let is_op = key.strip_prefix(section) == Some(&format!(".{op}"));
            (SECTIONS.contains(&of) && key != LEFT_OUT) || is_op
        })
    }

    /// Its device in a few words.
    #[must_use]
    pub fn device_label(&self) -> String {
        let geometry = &self.media.geometry;
        let gib =
            (geometry.total_sectors() * nandscape_block::SECTOR_BYTES) as f64 / f64::from(1 << 30);
        let op = self.op_percent().map_or_else(String::new, |value| format!(", OP {value} %"));
        let before = self.preconditioning_label();
        format!("{gib:.1} GiB, {}x{} units{op}, {before}", geometry.groups, geometry.units)
    }

    /// Its overprovisioning in percent of all sectors, as the stack's file has it.
    #[must_use]
    pub fn op_percent(&self) -> Option<&str> {
        self.device_keys().find(|(key, _)| key.ends_with(OP.1)).map(|(_, value)| value)
    }

    /// What is written before a run, in a word.
    #[must_use]
    pub fn preconditioning_label(&self) -> &'static str {
        let plan = &self.precondition;
        match (plan.is_none(), plan.overwrites()) {
            (true, _) => "fresh",
            (false, false) => "filled",
            (false, true) => "overwritten",
        }
    }
}

/// The overprovisioning of the device in place of the stack's own.
fn put_op(table: &mut Table, mut of_device: Table) {
    let (section, key) = OP;
    let entry = match of_device.remove(section).map(|node| node.value) {
        Some(Value::Table(mut ftl)) => ftl.remove_entry(key),
        _ => None,
    };
    let place = Place::Argument("--device");
    let ftl = table.entry(section.to_owned()).or_insert_with(|| Node {
        key_place: place.clone(),
        place,
        raw: None,
        value: Value::Table(Table::new()),
    });
    if let Value::Table(ftl) = &mut ftl.value {
        ftl.remove(key);
        ftl.extend(entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(name: &str) -> Stack {
        Stack::load(name, &[] as &[&str]).unwrap()
    }

    /// Every FTL on one device: its own choices, and every key of the device the same.
    #[test]
    fn stacks_share_a_device() {
        let device = load("pblk-5.11");
        let keys = |stack: &Stack| {
            stack.device_keys().map(|(key, value)| (key, value.to_owned())).collect::<Vec<_>>()
        };
        for name in ["pblk", "pblk-4.13", "rflush"] {
            let own = load(name);
            let on = Stack::load_on(name, &device, &["ftl.gc.victim=fifo"]).unwrap();
            assert_ne!(keys(&own), keys(&device), "{name}");
            assert_eq!(keys(&on), keys(&device), "{name}");
            assert_eq!(on.name, own.name);
            assert!(on.toml.contains("victim = \"fifo\""), "{name}");
        }
        let rules = |name: &str| {
            Stack::load_on(name, &device, &[] as &[&str])
                .unwrap()
                .resolved_keys()
                .find(|(key, _)| key == "ftl.capacity_rules")
                .map(|(_, value)| value.to_owned())
        };
        assert_eq!(rules("pblk-4.13").as_deref(), Some("\"4.13\""));
    }

    /// Its words say how large a device is and what was done to it.
    #[test]
    fn devices_have_words() {
        let fresh = Stack::load("pblk-4.13", &["media.chunks=256"]).unwrap().device_label();
        assert_eq!(fresh, "64.0 GiB, 4x4 units, OP 20 %, fresh");
    }
}
