//! Which keys of a stack make up its device: shape, timing, link, faults, and what is written to it before measuring; and how
//! much it holds. FTLs are comparable on one device only, so a stack can be put on that of another.
//!
//! `ftl.op_percent` is of the whole device on some kinds of FTL and of a part of it on others, so between kinds it is not the key
//! that is kept but what the device holds: the FTL gets the overprovisioning with which it holds as much.

use super::document::{Node, Table, Value, parse};
use super::place::{Place, StackError};
use super::{Stack, source};
use nandscape_block::SECTOR_BYTES;
use nandscape_ftl::{DeviceSize, Side};
use nandscape_rt::words::bytes;
use std::sync::Arc;

/// Sections that are the device's.
const SECTIONS: [&str; 3] = ["media", "link", "precondition"];
/// Keys of these that are not: they change no result.
const LEFT_OUT: &str = "media.memory_cap";
/// Rules for a host on an open-channel SSD, which the firmware of an SSD does not have.
const HOST_RULES: [&str; 3] = ["mw_cunits", "maxoc", "maxocpu"];
/// How far two devices may be apart in what they hold and yet be put in each other's place, in parts of it.
const CAPACITY_TOLERANCE: f64 = 0.01;
/// What the file is called, behind the name of its stack, that a device's keys come from.
pub(super) const RESOLVED: &str = ", resolved";
/// What messages call the argument.
const ARGUMENT: Place = Place::Argument("--device");

impl Stack {
    /// The stack called `name` on the device of `device`, with overrides. It holds as much as that: where both FTLs are of a
    /// kind, overprovisioning is that of the device; else it is what leaves as much, unless an override sets it.
    ///
    /// # Errors
    /// The first thing wrong with either, and where; or that the stack cannot hold as much.
    pub fn load_on<S: AsRef<str>>(
        name: &str,
        device: &Self,
        overrides: &[S],
    ) -> Result<Self, StackError> {
        let (mut table, place) = source::load(name)?;
        let file: Arc<str> = format!("{}{RESOLVED}", device.name).into();
        let mut of_device = parse(&file, &device.toml)?;
        for section in SECTIONS {
            table.remove(section);
            table.extend(of_device.remove_entry(section));
        }
        let resolve = |table: &Table| Self::resolve((table.clone(), place.clone()), overrides);
        let own = resolve(&table)?;
        if own.ftl.side() == Side::Device {
            HOST_RULES.iter().for_each(|key| put(&mut table, "media", key, Some(number(0.0))));
        }
        if own.ftl.kind() == device.ftl.kind() {
            put(&mut table, "ftl", "op_percent", op_percent(of_device));
            return resolve(&table);
        }
        if matches!(own.places.get("ftl.op_percent"), Some(Place::Set(_))) {
            return resolve(&table);
        }
        device.check_device()?;
        let wanted = device.device_size().unwrap_or_default().live_sectors;
        if let Some(percent) = own.ftl.op_percent_for(&resolve(&table)?.media.geometry, wanted) {
            put(&mut table, "ftl", "op_percent", Some(number(percent)));
        }
        let stack = resolve(&table)?;
        stack.check_device()?;
        stack.check_holds(wanted, device)?;
        Ok(stack)
    }

    /// Whether it holds about `wanted` sectors, as `device` does.
    fn check_holds(&self, wanted: u64, device: &Self) -> Result<(), StackError> {
        let holds = self.device_size().unwrap_or_default().live_sectors;
        if holds.abs_diff(wanted) as f64 <= CAPACITY_TOLERANCE * wanted as f64 {
            return Ok(());
        }
        let why = format!(
            "{} would hold {} on the device of {}, which holds {}; ftl.op_percent of this kind of FTL ({}) cannot make that \
             equal: put the others on the device of {} (--device {}), or set ftl.op_percent yourself (--set)",
            self.name,
            shown(holds),
            device.name,
            shown(wanted),
            self.ftl.kind(),
            self.name,
            self.name
        );
        Err(StackError::new(&ARGUMENT, "", why))
    }

    /// What its device holds and consists of, if all chunks are good; `None` of a stack that cannot be.
    #[must_use]
    pub fn device_size(&self) -> Option<DeviceSize> {
        self.check_device().ok()?;
        self.ftl.check(&self.media.geometry).ok()
    }

    /// What its device is, beside how much it holds: keys and values, without a value where the FTL leaves none of the key.
    pub fn device_keys(&self) -> impl Iterator<Item = (String, Option<&str>)> {
        let firmware = self.ftl.side() == Side::Device;
        let of_device = |key: &str| {
            let section = key.split('.').next().unwrap_or_default();
            SECTIONS.contains(&section) && key != LEFT_OUT
        };
        let keys = self.resolved_keys().filter(move |(key, _)| of_device(key));
        keys.map(move |(key, value)| {
            let rule = key.strip_prefix("media.").is_some_and(|rest| HOST_RULES.contains(&rest));
            (key, Some(value).filter(|_| !(rule && firmware)))
        })
    }

    /// Its device in a few words.
    #[must_use]
    pub fn device_label(&self) -> String {
        let geometry = &self.media.geometry;
        let usable = self.device_size().map_or_else(String::new, |size| {
            let percent = size.op_percent_of_usable();
            format!(", {} usable (OP {percent:.1} %)", shown(size.live_sectors))
        });
        format!(
            "{}, {}x{} units{usable}, {}",
            shown(geometry.total_sectors()),
            geometry.groups,
            geometry.units,
            self.preconditioning_label()
        )
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

/// Sectors in a unit that fits.
fn shown(sectors: u64) -> String {
    bytes((sectors * SECTOR_BYTES) as f64)
}

/// The overprovisioning of a resolved device, if it has one.
fn op_percent(mut of_device: Table) -> Option<Value> {
    match of_device.remove("ftl").map(|node| node.value) {
        Some(Value::Table(mut ftl)) => ftl.remove("op_percent").map(|node| node.value),
        _ => None,
    }
}

/// A number, whole if it is.
fn number(number: f64) -> Value {
    if number.fract() == 0.0 { Value::Integer(number as i128) } else { Value::Float(number) }
}

/// Sets a key of a section, or leaves it out.
fn put(table: &mut Table, section: &str, key: &str, value: Option<Value>) {
    let node = |value| Node { key_place: ARGUMENT, place: ARGUMENT, raw: None, value };
    let section =
        table.entry(section.to_owned()).or_insert_with(|| node(Value::Table(Table::new())));
    if let Value::Table(keys) = &mut section.value {
        keys.remove(key);
        keys.extend(value.map(|value| (key.to_owned(), node(value))));
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
            let keys = stack.device_keys();
            keys.map(|(key, value)| (key, value.map(str::to_owned))).collect::<Vec<_>>()
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
        assert_eq!(fresh, "64.00 GiB, 4x4 units, 51.03 GiB usable (OP 25.4 %), fresh");
        let zoned = load("f2fs-zns").device_label();
        assert_eq!(zoned, "8.25 GiB, 8x4 units, 7.38 GiB usable (OP 11.9 %), fresh");
        let virtual_addresses = load("d2fs-ssd").device_label();
        assert!(
            virtual_addresses.contains(" 6.81 GiB usable"),
            "what it holds: {virtual_addresses}"
        );
    }

    /// A stack of another kind holds what the device holds, whatever its key of overprovisioning is of.
    #[test]
    fn other_kinds_hold_as_much() {
        let on = |name: &str, device: &str| Stack::load_on(name, &load(device), &[] as &[&str]);
        let held = |stack: &Stack| stack.device_size().unwrap().live_sectors as f64;
        for (name, device) in [
            ("f2fs-lfs-ssd", "f2fs-zns"),
            ("pblk", "ssd"),
            ("ssd", "pblk-4.13"),
            ("iplfs-ssd", "ssd"),
            ("ssd", "d2fs-ssd"),
        ] {
            let stack = on(name, device).unwrap_or_else(|error| panic!("{error}"));
            let part = held(&stack) / held(&load(device));
            assert!((part - 1.0).abs() < 0.01, "{name} on {device}: {part}");
        }
        for (name, device) in [("d2fs-ssd", "ssd"), ("zf2fs-970pro", "f2fs-970pro")] {
            let refused = on(name, device).unwrap_err().to_string();
            assert!(refused.starts_with(&format!("--device: {name} would hold ")), "{refused}");
        }
        let set = Stack::load_on("ssd", &load("f2fs-zns"), &["ftl.op_percent=30"]).unwrap();
        assert!(set.toml.contains("op_percent = 30"), "an override counts");
    }

    /// Rules for hosts on open-channel SSDs do not hold below the FTL of an SSD, and are no difference between devices.
    #[test]
    fn rules_for_hosts_are_not_the_device() {
        let ssd = Stack::load_on("ext4-ssd", &load("pblk-4.13"), &[] as &[&str]).unwrap();
        assert_eq!(ssd.media.geometry.mw_cunits, 0);
        assert_eq!(ssd.check_device(), Ok(()));
        let rule = |stack: &Stack| {
            let mut keys = stack.device_keys().filter(|(key, _)| key == "media.mw_cunits");
            keys.next().and_then(|(_, value)| value.map(str::to_owned))
        };
        assert_eq!((rule(&ssd), rule(&load("pblk")).is_some()), (None, true));
        let refused = Stack::load("ssd", &["media.mw_cunits=24"]).unwrap().check_device();
        let refused = refused.unwrap_err().to_string();
        assert!(refused.ends_with("(--set media.mw_cunits=0)"), "{refused}");
    }
}
