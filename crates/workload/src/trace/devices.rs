//! The devices of a trace: their names, whose requests are wanted, and where each begins in an address
//! space that they share.

use super::record::Record;
use std::collections::BTreeMap;

/// Devices that one trace may name.
const DEVICES_MAX: usize = 1 << 16;
/// Longest name in bytes: that of a path in Linux.
const NAME_BYTES_MAX: usize = 4096;
/// Names in an error.
const LISTED_MAX: usize = 20;
/// Devices that are placed one after another begin at multiples of so many bytes.
const PLACE_BYTES: u64 = 1 << 20;

/// Where each device of a trace is in one address space: one after another, in order of their names.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Layout {
    places: Vec<Place>,
}

/// Where a device is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// The device's name.
    pub device: Box<str>,
    /// Its first byte.
    pub start_bytes: u64,
    /// Its size in bytes: up to its largest address, in whole MiB.
    pub size_bytes: u64,
}

impl Layout {
    /// The devices, in order.
    #[must_use]
    pub fn places(&self) -> &[Place] {
        &self.places
    }
}

/// A device of a trace.
#[derive(Clone, Debug)]
struct Device {
    name: Box<str>,
    is_wanted: bool,
    /// Where it begins in the shared address space.
    start_bytes: u64,
    /// Where it ends there; before devices are placed, the byte after its largest address so far.
    end_bytes: u64,
}

/// The devices that were named so far.
#[derive(Clone, Default, Debug)]
pub(super) struct Devices {
    /// The devices whose requests are wanted; those of all where none is named.
    wanted: Vec<Box<str>>,
    /// Whether names are a host and a disk, of which the disk alone will do to name it.
    by_disk: bool,
    /// Whether each device has its place.
    pub(super) are_placed: bool,
    numbers: BTreeMap<Box<str>, u32>,
    all: Vec<Device>,
    /// The device of the last request.
    last: usize,
}

impl Devices {
    pub(super) fn new(by_disk: bool) -> Self {
        Self { by_disk, ..Self::default() }
    }

    /// Requests of this device are wanted too.
    pub(super) fn want(&mut self, device: &str) {
        self.wanted.push(device.into());
    }

    /// Devices are placed as the layout has them.
    pub(super) fn place(&mut self, layout: &Layout) {
        self.are_placed = true;
        for Place { device, start_bytes, size_bytes } in &layout.places {
            self.add(device, *start_bytes, start_bytes + size_bytes);
        }
    }

    /// Whether only requests of named devices are wanted.
    pub(super) fn are_named(&self) -> bool {
        !self.wanted.is_empty()
    }

    /// Wanted devices that requests so far were for.
    pub(super) fn count(&self) -> u64 {
        self.all.iter().filter(|device| device.is_wanted).count() as u64
    }

    /// The name of a device by its number.
    pub(super) fn name(&self, number: u32) -> &str {
        self.all.get(number as usize).map_or("", |device| &device.name)
    }

    /// The record with its device and its place; `None` if requests of that device are not wanted.
    pub(super) fn take(&mut self, name: &str, record: Record) -> Result<Option<Record>, String> {
        if self.all.get(self.last).is_none_or(|last| *last.name != *name) {
            self.last = self.find(name)?;
        }
        let device = &mut self.all[self.last];
        if !device.is_wanted {
            return Ok(None);
        }
        let end_bytes = record.offset_bytes + record.length_bytes;
        if !self.are_placed {
            device.end_bytes = device.end_bytes.max(end_bytes);
        } else if end_bytes > device.end_bytes - device.start_bytes {
            return Err(format!("device {name} has a larger address than when it was placed"));
        }
        let offset_bytes = record.offset_bytes + device.start_bytes;
        Ok(Some(Record { offset_bytes, device: self.last as u32, ..record }))
    }

    /// The device of this name, which may be new.
    fn find(&mut self, name: &str) -> Result<usize, String> {
        match self.numbers.get(name) {
            Some(number) => Ok(*number as usize),
            None if self.all.len() == DEVICES_MAX => {
                Err(format!("more than {DEVICES_MAX} devices"))
            }
            None if name.len() > NAME_BYTES_MAX => {
                Err(format!("a device name of more than {NAME_BYTES_MAX} bytes"))
            }
            None => Ok(self.add(name, 0, 0)),
        }
    }

    fn add(&mut self, name: &str, start_bytes: u64, end_bytes: u64) -> usize {
        let number = self.all.len();
        self.numbers.insert(name.into(), number as u32);
        let is_wanted = self.is_wanted(name);
        self.all.push(Device { name: name.into(), is_wanted, start_bytes, end_bytes });
        number
    }

    fn is_wanted(&self, name: &str) -> bool {
        let disk = name.rsplit(',').next().filter(|_| self.by_disk);
        let mut wanted = self.wanted.iter();
        self.wanted.is_empty() || wanted.any(|wanted| **wanted == *name || Some(&**wanted) == disk)
    }

    /// The devices, one after another.
    pub(super) fn layout(&self) -> Result<Layout, String> {
        let mut start_bytes = 0_u64;
        let mut places = Vec::new();
        for device in self.in_order().filter(|device| device.is_wanted) {
            let size_bytes = device.end_bytes.checked_next_multiple_of(PLACE_BYTES);
            let next = size_bytes.and_then(|size| start_bytes.checked_add(size));
            let (Some(size_bytes), Some(next)) = (size_bytes, next) else {
                return Err("the devices together have more than 64 bits of bytes".to_owned());
            };
            places.push(Place { device: device.name.clone(), start_bytes, size_bytes });
            start_bytes = next;
        }
        Ok(Layout { places })
    }

    /// The first names, for an error.
    pub(super) fn list(&self) -> String {
        let names: Vec<&str> =
            self.in_order().take(LISTED_MAX).map(|device| &*device.name).collect();
        let more = match self.all.len().saturating_sub(LISTED_MAX) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        names.join("; ") + &more
    }

    /// In order of their names, numbers as numbers.
    fn in_order(&self) -> impl Iterator<Item = &Device> {
        let mut all: Vec<&Device> = self.all.iter().collect();
        all.sort_by_cached_key(|device| natural(&device.name));
        all.into_iter()
    }
}

/// What names are sorted by: 2 before 10, numbers before words.
fn natural(name: &str) -> Vec<(bool, u64, String)> {
    let part = |part: &str| match part.parse() {
        Ok(number) => (false, number, String::new()),
        Err(_) => (true, 0, part.to_owned()),
    };
    name.split(',').map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::direction::Direction;
    use nandscape_rt::Nanos;

    fn write(offset: u64, length: u64) -> Record {
        Record::io(Nanos::ZERO, Direction::Write, offset, length).unwrap()
    }

    /// Places follow each other in order of names and hold every address; none overlap.
    #[test]
    fn devices_do_not_overlap() {
        let mut devices = Devices::default();
        for (name, end) in [("10", 1), ("2", (1 << 20) + 1), ("a", 1 << 20)] {
            devices.take(name, write(end - 1, 1)).unwrap().unwrap();
        }
        let layout = devices.layout().unwrap();
        let places = layout.places().iter();
        let places: Vec<_> =
            places.map(|at| (&*at.device, at.start_bytes >> 20, at.size_bytes >> 20)).collect();
        assert_eq!(places, [("2", 0, 2), ("10", 2, 1), ("a", 3, 1)]);
        let mut placed = Devices::default();
        placed.place(&layout);
        let at = |record: Result<Option<Record>, String>| record.map(|r| r.unwrap().offset_bytes);
        assert_eq!(at(placed.take("10", write(5, 1))), Ok((2 << 20) + 5));
        assert_eq!(at(placed.take("2", write(5, 1))), Ok(5));
        assert!(placed.take("10", write(1 << 20, 1)).is_err(), "the file has changed");
        assert!(placed.take("new", write(0, 1)).is_err(), "the file has changed");
    }

    /// Addresses that do not fit into 64 bits together are an error.
    #[test]
    fn sums_are_checked() {
        let mut devices = Devices::default();
        devices.take("a", write(1 << 63, 1)).unwrap();
        assert!(devices.layout().is_ok());
        devices.take("b", write(1 << 63, 1)).unwrap();
        assert!(devices.layout().is_err());
        let mut devices = Devices::default();
        devices.take("a", write(u64::MAX - 1, 1)).unwrap();
        assert!(devices.layout().is_err());
    }
}
