//! Extended attributes against a list in memory, and against bytes that are none.

use super::*;
use crate::f2fs::format::BLOCK_BYTES;
use proptest::collection::vec;
use proptest::prelude::*;

/// What is written to inode and node, and read again.
fn reread(area: &XattrArea) -> XattrArea {
    let mut node = [0; BLOCK_BYTES];
    area.write_node(&mut node);
    let needed = area.needs_node().unwrap();
    XattrArea::new(area.inline_part(), needed.then_some(&node))
}

fn listed(area: &XattrArea) -> Vec<(u8, Vec<u8>, Vec<u8>)> {
    area.iter()
        .map(|entry| entry.unwrap())
        .map(|e| (e.index, e.name.to_vec(), e.value.to_vec()))
        .collect()
}

proptest! {
    /// Attributes are what a list says in which a changed one moves to the end, and survive being stored;
    /// room runs out exactly where the kernel's arithmetic says.
    #[test]
    fn attributes_are_kept(
        inline in prop_oneof![Just(0_usize), Just(200), Just(100)],
        steps in vec((0..8_u8, 0..300_usize, 0..1200_usize, any::<bool>()), 1..40),
    ) {
        let mut area = XattrArea::new(&vec![0; inline], None);
        let mut model: Vec<(u8, Vec<u8>, Vec<u8>)> = Vec::new();
        for (number, name_bytes, value_bytes, add) in steps {
            let name = vec![b'a' + number; name_bytes % 256];
            let value = vec![number; value_bytes];
            let at = model.iter().position(|(_, known, _)| *known == name);
            let found = area.get(1, &name).unwrap().map(|entry| entry.value.to_vec());
            prop_assert_eq!(found, at.map(|at| model[at].2.clone()));
            let size = |name: &[u8], value: &[u8]| (4 + name.len() + value.len()).next_multiple_of(4);
            let others = model.iter().enumerate().filter(|(index, _)| Some(*index) != at);
            let used: usize = others.map(|(_, (_, name, value))| size(name, value)).sum();
            let fits = 24 + used + size(&name, &value) <= inline + 4072;
            let result = if add { area.set(1, &name, &value) } else { Ok(area.remove(1, &name).unwrap()) };
            let same = at.is_some_and(|at| model[at].2 == value);
            match (add, result) {
                (true, Ok(changed)) => {
                    prop_assert_eq!(changed, !same);
                    prop_assert!(fits || same);
                    if changed {
                        at.map(|at| model.remove(at));
                        model.push((1, name, value));
                    }
                }
                (true, Err(error)) => {
                    prop_assert_eq!(error, XattrError::NoRoom);
                    prop_assert!(!fits && !same);
                }
                (false, result) => {
                    prop_assert_eq!(result, Ok(at.is_some()));
                    at.map(|at| model.remove(at));
                }
            }
            prop_assert_eq!(&listed(&area), &model);
            let used: usize = model.iter().map(|(_, name, value)| size(name, value)).sum();
            // With the word of 0 after them.
            prop_assert_eq!(area.needs_node(), Ok(24 + used + 4 > inline));
            area = reread(&area);
            prop_assert_eq!(&listed(&area), &model);
        }
    }

    /// Whatever the bytes, every call ends in a value or an error, and an error changes nothing.
    #[test]
    fn no_bytes_panic(
        inline in vec(prop_oneof![any::<u8>(), 0..4_u8], 0..300),
        node in vec(prop_oneof![any::<u8>(), 0..4_u8], BLOCK_BYTES),
        has_node in any::<bool>(),
    ) {
        let node: NodeBytes = std::array::from_fn(|at| node[at]);
        let mut area = XattrArea::new(&inline, has_node.then_some(&node));
        let before = area.clone();
        let count = area.iter().count();
        prop_assert!(count <= (inline.len() + BLOCK_BYTES) / 4);
        match area.set(1, b"name", b"value") {
            Ok(_) => prop_assert_eq!(area.get(1, b"name").unwrap().unwrap().value, b"value"),
            Err(_) => prop_assert!(area == before),
        }
        let before = area.clone();
        prop_assert!(area.remove(1, b"name").is_ok() || area == before);
        let _ = (area.needs_node(), area.get(2, b""));
    }
}

/// Whole names lead to their prefix and back; what has none is refused.
#[test]
fn names_have_prefixes() {
    for (whole, index, name) in [
        (&b"user.x"[..], 1, &b"x"[..]),
        (b"system.posix_acl_access", 2, b""),
        (b"trusted.a.b", 4, b"a.b"),
        (b"security.selinux", 6, b"selinux"),
        (b"system.advise", 7, b""),
    ] {
        assert_eq!(split_xattr_name(whole), Some((index, name)));
        assert_eq!(whole_xattr_name(index, name), whole);
    }
    for wrong in [&b"user."[..], b"usernone", b"system.posix_acl_access2", b"other.x", b""] {
        assert_eq!(split_xattr_name(wrong), None, "{}", wrong.escape_ascii());
    }
    assert_eq!(whole_xattr_name(9, b"c"), b"9:c");
}

/// An attribute that runs past what is stored is found, and nothing can be set then.
#[test]
fn unsound_lists_are_reported() {
    let mut inline = [0; 200];
    let mut area = XattrArea::new(&inline, None);
    assert_eq!(area.set(1, &[b'n'; 256], b""), Err(XattrError::NameTooLong));
    assert_eq!(area.set(1, b"name", &[7; 40]), Ok(true));
    inline.copy_from_slice(area.inline_part());
    assert_eq!(inline[..8], [0x11, 0x20, 0xf5, 0xf2, 1, 0, 0, 0]);
    assert_eq!(inline[24..32], [1, 4, 40, 0, b'n', b'a', b'm', b'e']);
    inline[26] = 200;
    let mut area = XattrArea::new(&inline, None);
    let unsound = Unsound { byte: 24, what: "extended attribute runs past the end" };
    assert_eq!(area.iter().collect::<Vec<_>>(), [Err(unsound)]);
    assert_eq!(area.set(1, b"other", b""), Err(XattrError::Unsound(unsound)));
    assert_eq!(area.get(1, b"name"), Err(unsound));
    assert!(XattrArea::new(&inline, Some(&[0; BLOCK_BYTES])).get(1, b"name").is_ok());
}
