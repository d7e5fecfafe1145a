//! What holds for every structure: no bytes make a parser panic, what was read is written back
//! as it was, a changed bit is noticed, and docs/formats/ext4.md is right.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

const PLACE: Place = Place::Block(7);

/// A superblock of ordinary sizes.
fn superblock() -> Superblock {
    let mut sb = Superblock::read(&[]);
    sb.magic = SUPERBLOCK_MAGIC;
    sb.rev_level = 1;
    sb.log_block_size = 2;
    sb.log_cluster_size = 2;
    sb.inode_size = 256;
    sb.desc_size = 64;
    sb.checksum_type = 1;
    sb.blocks_count = 100_000;
    sb.blocks_per_group = 32_768;
    sb.clusters_per_group = 32_768;
    sb.inodes_per_group = 8_192;
    sb.inodes_count = 4 * 8_192;
    sb.first_ino = 11;
    sb.log_groups_per_flex = 4;
    sb.uuid = *b"0123456789abcdef";
    sb.set_features(SUPPORTED);
    sb.features().check(true).expect("supported");
    sb
}

/// Bytes as an attacker would choose them: noise, around a few that pass the first checks.
fn hostile(
    bytes: usize,
    heads: &'static [(usize, &'static [u8])],
) -> impl Strategy<Value = Vec<u8>> {
    let noise = prop_oneof![vec(any::<u8>(), bytes), vec(prop_oneof![Just(0), 0..16_u8], bytes)];
    (noise, any::<bool>()).prop_map(move |(mut bytes, headed)| {
        for (at, head) in heads.iter().filter(|_| headed) {
            bytes[*at..*at + head.len()].copy_from_slice(head);
        }
        bytes
    })
}

proptest! {
    /// Whatever the bytes, superblocks end in a value or in an error, and what is taken computes.
    #[test]
    fn no_superblock_panics(bytes in hostile(1024, &[(0x38, &[0x53, 0xef]), (0x4c, &[1, 0, 0, 0])])) {
        if let Ok(sb) = Superblock::parse(&bytes, 0) {
            let last = sb.groups() - 1;
            let _ = (sb.has_superblock(last), sb.desc_place(last), sb.group_blocks(last));
            let _ = (sb.inode_place(sb.inodes_count), sb.features().check(true));
        }
    }

    /// Whatever the bytes, everything else ends in a value or in an error.
    #[test]
    fn no_structure_panics(
        block in hostile(4096, &[
            (0, &[0x0a, 0xf3, 200, 0, 84, 1, 0, 0]),
            (4, &[12, 0]), (16, &[0xf4, 0x0f]), (0x18, &[0, 0, 0, 0, 1, 8, 0, 0]),
        ]),
        attributes in hostile(4096, &[(0, &[0, 0, 2, 0xea, 1, 0, 0, 0, 1, 0, 0, 0])]),
        seed in any::<u32>(),
    ) {
        let (sb, seed) = (superblock(), Some(CsumSeed(seed)));
        let _ = GroupDescriptor::parse(&block[..64], 3, &sb);
        let _ = Inode::parse(&block[..256], 12, &sb);
        let _ = ExtentNode::parse(&block, PLACE);
        let _ = ExtentNode::parse(&block[..60], PLACE);
        let _ = check_extent_block(&block, seed, PLACE);
        for has_tail in [false, true] {
            let _ = dir_entries(&block, has_tail, PLACE).count();
            if let Ok(root) = IndexNode::parse_root(&block, has_tail, PLACE) {
                let _ = root.check(&block, seed, PLACE);
            }
            let _ = IndexNode::parse_node(&block, has_tail, PLACE);
            let mut changed = block.clone();
            let _ = insert_name(&mut changed, b"name", 12, 1, has_tail);
            let sound = check_records(&changed, has_tail, PLACE).is_ok();
            prop_assert!(sound || dir_entries(&changed, has_tail, PLACE).any(|entry| entry.is_err()));
            if let (true, Ok(found)) = (sound, search_name(&changed, b"name", has_tail)) {
                remove_at(&mut changed, found);
            }
        }
        let _ = check_dir_block(&block, seed, PLACE);
        let _ = parse_xattr_block(&attributes, PLACE);
        let _ = parse_inode_xattrs(&attributes[..256], 0, PLACE);
    }

    /// Records read from any bytes and written over them change nothing but the checksum.
    #[test]
    fn records_change_no_foreign_byte(bytes in vec(any::<u8>(), 1024), extra in 0..32_u16) {
        let mut again = bytes.clone();
        Superblock::read(&bytes).write(&mut again);
        prop_assert_eq!(&again, &bytes);
        for len in [32, 64, 128] {
            let mut again = bytes[..len].to_vec();
            GroupDescriptor::read(&bytes[..len]).write(&mut again);
            prop_assert_eq!(&again, &bytes[..len]);
        }
        let mut inode = bytes[..256].to_vec();
        inode[128..130].copy_from_slice(&(extra * 4).to_le_bytes());
        let mut again = inode.clone();
        let sb = Superblock { feature_ro_compat: 0, ..superblock() };
        let parsed = Inode::parse(&inode, 12, &sb).unwrap();
        parsed.encode(&mut again, parsed.seed(12, &sb));
        prop_assert_eq!(again, inode);
    }

    /// A changed bit anywhere in a structure with a checksum is noticed, but for the one that says that
    /// there are checksums.
    #[test]
    fn checksums_notice_a_changed_byte(at in 0..4096_usize, bit in 0..8_u8) {
        let sb = superblock();
        let flip = |bytes: &mut [u8]| {
            let at = at % bytes.len();
            bytes[at] ^= 1 << bit;
            at
        };
        let mut bytes = vec![0; 1024];
        sb.encode(&mut bytes);
        Superblock::parse(&bytes, 0).unwrap();
        flip(&mut bytes);
        let unsays = !Superblock::read(&bytes).features().has(Feature::METADATA_CSUM);
        prop_assert!(unsays || Superblock::parse(&bytes, 0).is_err());

        let mut bytes = vec![0; 64];
        GroupDescriptor { free_blocks_count: 7, ..Default::default() }.encode(&mut bytes, 5, &sb);
        GroupDescriptor::parse(&bytes, 5, &sb).unwrap();
        prop_assert!(GroupDescriptor::parse(&bytes, 4, &sb).is_err());
        flip(&mut bytes);
        prop_assert!(GroupDescriptor::parse(&bytes, 5, &sb).is_err());

        let mut bytes = vec![0; 256];
        let inode = Inode { mode: 0o100_644, extra_isize: 32, ..Inode::default() };
        inode.encode(&mut bytes, inode.seed(12, &sb));
        Inode::parse(&bytes, 12, &sb).unwrap();
        prop_assert!(Inode::parse(&bytes, 13, &sb).is_err());
        flip(&mut bytes);
        prop_assert!(Inode::parse(&bytes, 12, &sb).is_err());

        let seed = Some(CsumSeed(9));
        let mut bytes = vec![0; 4096];
        init_first_dir_block(&mut bytes, 12, 2, true);
        seal_dir_block(&mut bytes, seed);
        check_dir_block(&bytes, seed, PLACE).unwrap();
        flip(&mut bytes);
        prop_assert!(check_dir_block(&bytes, seed, PLACE).is_err());
    }

    /// Nodes of extents are read as they were written, within the room that there is.
    #[test]
    fn extent_nodes_survive(
        gaps in vec((0..1_000_u32, 1..=32_767_u16, 1..1_u64 << 48, any::<bool>()), 0..340),
        depth in 0..=DEPTH_MAX,
    ) {
        let mut logical = 0;
        let extents: Vec<_> = gaps.iter().map(|&(gap, blocks, start, unwritten)| {
            let extent = Extent { logical: logical + gap, blocks, start, unwritten };
            logical = extent.logical_end() as u32;
            extent
        }).collect();
        let entries = match depth {
            0 => ExtentEntries::Leaf(extents),
            depth => {
                let entries: Vec<_> = extents.iter().map(|e| ExtentIndex { logical: e.logical, node: e.start }).collect();
                prop_assume!(!entries.is_empty());
                ExtentEntries::Index { depth, entries }
            }
        };
        let node = ExtentNode::block_of(entries);
        let mut bytes = vec![0xaa; 4096];
        node.encode(&mut bytes);
        seal_extent_block(&mut bytes, Some(CsumSeed(1)));
        check_extent_block(&bytes, Some(CsumSeed(1)), PLACE).unwrap();
        prop_assert_eq!(ExtentNode::parse(&bytes, PLACE).unwrap(), node);
    }

    /// A directory block holds exactly the names that were put in and not taken out.
    #[test]
    fn directory_blocks_are_sets_of_names(
        steps in vec((0..60_u32, 1..60_usize, any::<bool>()), 0..300),
        has_tail in any::<bool>(),
    ) {
        let mut bytes = vec![0; 4096];
        init_dir_block(&mut bytes, has_tail);
        let mut names = std::collections::BTreeMap::new();
        for (number, len, add) in steps {
            let name = format!("{number:0len$}").into_bytes();
            prop_assert!(check_records(&bytes, has_tail, PLACE).is_ok());
            let there = search_name(&bytes, &name, has_tail);
            prop_assert_eq!(there.ok().map(|name| name.inode), names.get(&name).copied());
            let roomy = |entry: Result<DirEntry<'_>, _>| {
                let entry = entry.unwrap();
                let used = if entry.inode == 0 { 0 } else { record_bytes(entry.name.len()) };
                entry.record_bytes >= used + record_bytes(name.len())
            };
            let room = dir_entries(&bytes, has_tail, PLACE).any(roomy);
            prop_assert_eq!(there.map_err(|room| room.is_some()).err().unwrap_or(room), room);
            if !add {
                there.into_iter().for_each(|there| remove_at(&mut bytes, there));
                names.remove(&name);
            } else if insert_name(&mut bytes, &name, number + 1, 1, has_tail) {
                prop_assert!(there.is_err());
                names.insert(name, number + 1);
            }
        }
        let read: Result<Vec<_>, _> = dir_entries(&bytes, has_tail, PLACE).collect();
        let read = read.unwrap();
        let used = read.iter().filter(|e| e.inode != 0).map(|e| (e.name.to_vec(), e.inode));
        prop_assert_eq!(used.collect::<std::collections::BTreeMap<_, _>>(), names);
        let end = read.iter().map(|e| e.record_bytes).sum::<usize>();
        prop_assert_eq!(end, if has_tail { 4084 } else { 4096 });
    }

    /// An index is read as it was written, and finds the block whose range a hash lies in.
    #[test]
    fn index_nodes_survive(mut hashes in vec(any::<u32>(), 0..500), root in any::<bool>(), wanted in any::<u32>()) {
        hashes.sort_unstable();
        let entries = std::iter::once(0).chain(hashes).zip(1..).map(|(hash, block)| IndexEntry { hash, block });
        let root = root.then_some(IndexRoot { hash_version: 1, levels: 1 });
        let limit = index_limit(root.is_some(), true);
        let node = IndexNode { root, limit, entries: entries.take(limit.into()).collect() };
        let mut bytes = vec![0; 4096];
        node.encode(&mut bytes);
        node.seal(&mut bytes, Some(CsumSeed(3)));
        let read = match root {
            Some(_) => IndexNode::parse_root(&bytes, true, PLACE),
            None => IndexNode::parse_node(&bytes, true, PLACE),
        };
        let read = read.unwrap();
        read.check(&bytes, Some(CsumSeed(3)), PLACE).unwrap();
        let found = read.find(wanted);
        prop_assert!(read.entries[found].hash <= wanted);
        prop_assert!(read.entries.get(found + 1).is_none_or(|next| wanted < next.hash));
        prop_assert_eq!(read, node);
    }

    /// Attributes are read as they were written, wherever they lie; what does not fit changes nothing.
    #[test]
    fn attributes_survive(list in vec(("[a-z]{1,20}", vec(any::<u8>(), 0..200)), 0..30)) {
        let xattrs: Vec<_> = list.iter().enumerate()
            .map(|(n, (name, value))| Xattr::new(format!("user.{name}{n}").as_bytes(), value).unwrap())
            .collect();
        let mut block = [0xaa; 4096];
        if encode_xattr_block(&mut block, 3, &xattrs) {
            let (refcount, mut read) = parse_xattr_block(&block, PLACE).unwrap();
            read.sort_by(|a, b| a.name.cmp(&b.name));
            let mut sorted = xattrs.clone();
            sorted.sort_by(|a, b| a.name.cmp(&b.name));
            prop_assert_eq!((refcount, read), (3, sorted));
        }
        let mut inode = [0xaa; 256];
        if encode_inode_xattrs(&mut inode, 32, &xattrs) {
            prop_assert_eq!(parse_inode_xattrs(&inode, 32, PLACE).unwrap(), xattrs);
            prop_assert_eq!(&inode[..160], &[0xaa; 160][..]);
        } else {
            prop_assert_eq!(inode, [0xaa; 256]);
        }
    }
}

/// Hashes as debugfs prints them (`dx_hash -h VERSION -s 01020304-0506-0708-090a-0b0c0d0e0f10`, and
/// without a seed).
#[test]
fn hashes_are_those_of_debugfs() {
    let seed = [0x0403_0201, 0x0807_0605, 0x0c0b_0a09, 0x100f_0e0d];
    let long = "averyveryveryverylongnamethatspansmorethanonechunk.txt";
    let golden = [
        (0, "a", seed, 0xe74b_53e2, 0),
        (1, "a", seed, 0x8d08_ec4c, 0x2fbc_cd78),
        (1, "a", [0; 4], 0xd5fa_7d7a, 0xacb4_8187),
        (2, "a", seed, 0xf535_28f0, 0xea54_fb01),
        (2, "a", [0; 4], 0x6d0e_a4c0, 0xc189_22df),
        (0, "lost+found", seed, 0x5e2a_ba24, 0),
        (1, "lost+found", seed, 0x694c_8bb4, 0x74b3_9433),
        (2, "lost+found", [0; 4], 0x2dbf_9e80, 0xbfeb_ee4f),
        (0, long, seed, 0x0778_de9e, 0),
        (1, long, seed, 0xc4d2_087a, 0x73c9_5f04),
        (2, long, seed, 0xbd83_f85a, 0x4eca_abe2),
        (0, "é", seed, 0x1108_3c86, 0),
        (1, "é", seed, 0x06b7_908e, 0xd14a_1159),
        (2, "é", [0; 4], 0x591e_9bd6, 0xf780_721f),
    ];
    for (version, name, seed, hash, minor) in golden {
        let signed = HashVersion::of(version, false).unwrap();
        assert_eq!(
            signed.hash(name.as_bytes(), &seed),
            NameHash { hash, minor },
            "{version} {name}"
        );
    }
}

/// Groups with a superblock are those that the format names.
#[test]
fn superblocks_lie_in_powers_of_3_5_and_7() {
    let sb = superblock();
    let with: Vec<u32> = (0..400).filter(|group| sb.has_superblock(*group)).collect();
    assert_eq!(with, [0, 1, 3, 5, 7, 9, 25, 27, 49, 81, 125, 243, 343]);
}

/// Every feature has one name, and a name leads back to it.
#[test]
fn features_have_names() {
    let all = Features { compat: !0, incompat: !0, ro_compat: !0 };
    let names = all.names();
    assert_eq!(names.len(), 96);
    assert!(names.contains(&"FEATURE_I31".to_owned()) && names.contains(&"64bit".to_owned()));
    let named = names.iter().filter_map(|name| Features::named(name));
    assert!(named.clone().all(|feature| names.contains(&feature.name())));
    assert_eq!(named.count(), names.iter().filter(|name| !name.starts_with("FEATURE_")).count());
}

const DOCUMENT: &str = include_str!("../../../../../docs/formats/ext4.md");

/// The rows of the first table below a heading.
fn table(heading: &str) -> Vec<[&'static str; 3]> {
    let (_, section) = DOCUMENT.split_once(heading).expect("the document has this heading");
    let rows = section.lines().skip_while(|line| !line.starts_with("|---"));
    rows.skip(1)
        .take_while(|line| line.starts_with('|'))
        .map(|row| {
            let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
            cells[..].try_into().expect("three cells")
        })
        .collect()
}

/// A reader of a record finds by the document every field that the code reads, and where it is.
#[test]
fn records_are_as_documented() {
    let records = [
        ("## Superblock", Superblock::FIELDS),
        ("## Group descriptor", GroupDescriptor::FIELDS),
        ("## Inode", Inode::FIELDS),
        ("### Header of a node", ExtentHeader::FIELDS),
        ("### Header of a block", XattrHeader::FIELDS),
    ];
    for (heading, fields) in records {
        let rows = table(heading);
        assert_eq!(rows.len(), fields.len(), "{heading}");
        for (row, field) in rows.iter().zip(fields) {
            let range = |at: usize, bytes: usize| format!("{at:#x}..{:#x}", at + bytes);
            let upper = field.upper.map(|(at, bytes)| format!(", {}", range(at, bytes)));
            let place = range(field.at, field.bytes) + &upper.unwrap_or_default();
            assert_eq!(row[..2], [place, format!("`{}`", field.name)], "{heading}");
        }
    }
}

/// The document lists exactly the features that we support.
#[test]
fn supported_features_are_as_documented() {
    let rows = table("## Features");
    let listed: Vec<_> = rows.iter().map(|row| row[0].trim_matches('`')).collect();
    let mut supported = SUPPORTED.names();
    supported.sort();
    let mut sorted = listed.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, supported);
    for [name, needed, _] in rows {
        let feature = Features::named(name.trim_matches('`')).unwrap();
        assert_eq!(REQUIRED.has(feature), needed == "yes", "{name}");
    }
}

/// A record that is too short, too long, of an odd length, or too short for its name is found, and so is
/// one in use without a name; where it stands is reported.
#[test]
fn unsound_records_are_reported() {
    let mut sound = vec![0; 4096];
    init_dir_block(&mut sound, true);
    assert!(insert_name(&mut sound, b"first", 12, 1, true));
    assert!(insert_name(&mut sound, b"second", 13, 1, true));
    assert!(check_records(&sound, true, PLACE).is_ok());
    for (at, wrong) in [(4, 8), (4, 18), (4, 4_088), (6, 9), (6, 0), (16 + 4, 4_072), (16 + 6, 0)] {
        let mut bytes = sound.clone();
        let field = if at % 4 == 0 { 2 } else { 1 };
        bytes[at..at + field].copy_from_slice(&u16::to_le_bytes(wrong)[..field]);
        let error = check_records(&bytes, true, PLACE).expect_err("unsound");
        assert_eq!(error, FormatError::corrupt(PLACE, at, error_of(at)), "{wrong} at {at}");
        assert!(search_name(&bytes, b"third", true).is_err());
    }
}

/// What is said of a record whose length, or whose name, is wrong.
const fn error_of(at: usize) -> &'static str {
    if at % 16 == 4 { "record's length is out of range" } else { "name does not fit its record" }
}
