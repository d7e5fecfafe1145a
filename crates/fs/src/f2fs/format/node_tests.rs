//! The sections of docs/formats on nodes and on append-only address spaces name every field that the code reads, at its
//! place.

use super::*;
use crate::wire::Field;

const DOCUMENT: &str = include_str!("../../../../../docs/formats/f2fs.md");

/// The first two cells of each row of the first table below a heading.
fn table(heading: &str) -> Vec<[&'static str; 2]> {
    let (_, section) =
        DOCUMENT.split_once(&format!("\n{heading}\n")).expect("the document has this heading");
    let rows = section.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
    rows.take_while(|line| line.starts_with('|'))
        .map(|row| {
            let mut cells = row.trim_matches('|').split('|').map(str::trim);
            std::array::from_fn(|_| cells.next().expect("a cell"))
        })
        .collect()
}

/// Records have exactly the fields that the document lists.
#[test]
fn records_are_as_documented() {
    let records: [(&str, &[Field]); 8] = [
        ("### Node footer", NodeFooter::FIELDS),
        ("### Inode", Inode::FIELDS),
        ("### Extra attributes", ExtraAttrs::FIELDS),
        ("### Directory entry", RawDentry::FIELDS),
        ("### Extended attributes", XattrHeader::FIELDS),
        ("### Attribute", RawXattr::FIELDS),
        ("### Slot record", SlotRecord::FIELDS),
        ("### Discard header", DiscardHeader::FIELDS),
    ];
    for (heading, fields) in records {
        let places = fields.iter().map(|field| {
            let range = format!("{:#x}..{:#x}", field.at, field.at + field.bytes);
            [range, format!("`{}`", field.name)]
        });
        assert_eq!(table(heading), places.collect::<Vec<_>>(), "{heading}");
    }
}
