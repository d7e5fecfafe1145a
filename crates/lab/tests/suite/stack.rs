//! The stack file: what it means, and that everything wrong with one is answered with its place.

use crate::common::complete;
use crate::common::fs_keys;

use complete::{MEDIA, NONE, error};
use fs_keys::ext4;
use nandscape_fs::FsKind;
use nandscape_fs::ext4::Commit;
use nandscape_ftl::FtlConfig;
use nandscape_ftl::pblk::config::{
    BaseRouting, CacheSize, CapacityRules, Config, CoreChoice, FileRouting, FlushScope, GcStream,
    HotnessConfig, Limiter, LineSet, MapConfig, MapKind, MapPolicy, Routing, Victim,
};
use nandscape_ftl::pblk::costs::CpuCosts;
use nandscape_lab::stack::{DEFAULT, Fsync, MediaFaults, SHIPPED, Stack};
use nandscape_media::{DeviceTiming, Duplex, LinkScheduling, LinkTiming, NandTiming, PayloadMode};

fn load(set: &[&str]) -> Stack {
    Stack::load(DEFAULT, set).unwrap()
}

/// The choices of its pblk.
fn pblk(stack: &Stack) -> &Config {
    match &stack.ftl {
        FtlConfig::Pblk(config) => config,
        other => panic!("not a pblk: {other:?}"),
    }
}

fn set_error(assignment: &str) -> String {
    Stack::load(DEFAULT, &[assignment]).unwrap_err().to_string()
}

/// A shipped stack is a promise: it loads, bears its own name, and says in one line what it is.
#[test]
fn shipped_stacks_resolve() {
    for (name, text) in SHIPPED {
        let stack = Stack::load(name, &NONE).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(stack.name, *name);
        assert!(text.starts_with("# "), "{name} begins with what it is");
    }
}

/// The resolved text is the whole stack: read again, it is the same stack and the same text.
#[test]
fn resolved_text_resolves_to_itself() {
    let overrides = [
        "host.cores=8",
        "host.memory=4GiB",
        "media.timing.program_ns=200000",
        "media.timing.placing=fifo",
        "link.duplex=full",
        "link.buffer_base_ns=0",
        "media.faults.program_rate=0.001",
        "media.faults.unreadable_rate=0.0001",
        "media.faults.bad_chunk_rate=0.01",
        "media.faults.slow_unit=7",
        "media.faults.slow_percent=150",
    ];
    for name in SHIPPED.iter().map(|(name, _)| name) {
        let plain = Stack::load(name, &NONE).unwrap();
        let about_fs = match plain.fs.as_ref().map(|fs| fs.config.kind()) {
            Some(FsKind::Ext4) => "fs.commit_interval=250ms",
            Some(FsKind::F2fs) => "fs.checkpoint_interval=250ms",
            None => "hints.journal_range=[\"0\", \"64MiB\"]",
        };
        let of_pblk = ["ftl.gc.victim=d-choices-7", "ftl.limiter=reserve-3", "ftl.ring=512"];
        let of_kind: &[&str] = match plain.ftl {
            FtlConfig::Pblk(_) => &of_pblk,
            FtlConfig::Coupled(_) => &["ftl.upcall=poll-100us", "ftl.rho=2.5"],
            _ => &of_pblk[..1],
        };
        let stack = Stack::load(name, &[&overrides[..], of_kind, &[about_fs]].concat()).unwrap();
        let again = Stack::parse("resolved", &stack.toml, &NONE).unwrap();
        assert_eq!((&again.toml, &again.fs, again.hash()), (&stack.toml, &stack.fs, stack.hash()));
        assert_eq!((again.media, again.link), (stack.media, stack.link));
        assert_eq!((again.ftl, again.hints), (stack.ftl, stack.hints));
    }
}

/// The defaults that the resolved stack leaves out, which its document names: to give one changes
/// nothing else.
#[test]
fn defaults_left_out_of_the_resolved_text_are_documented() {
    let document = include_str!("../../../../docs/formats/stack.md");
    let (_, named) = document.split_once("- These, which are at their defaults then: ").unwrap();
    let named = named.lines().next().unwrap();
    let defaults = [
        ("host.cores", "4"),
        ("ftl.fsync_threshold", "1"),
        ("ftl.cpu", "none"),
        ("ftl.map_update", "locked"),
        ("fs.features", "[]"),
        ("fs.format", "true"),
    ];
    assert_eq!(named, defaults.map(|(key, _)| format!("`{key}`")).join(", ") + ".");
    let plain = Stack::load("ext4-pblk", &NONE).unwrap();
    for (key, value) in defaults {
        let given = Stack::load("ext4-pblk", &[format!("{key}={value}")]).unwrap();
        assert_eq!((&given.ftl, &given.fs), (&plain.ftl, &plain.fs), "{key}");
        let more: Vec<_> = given.toml.lines().filter(|l| !plain.toml.contains(*l)).collect();
        let name = key.split('.').next_back().unwrap();
        assert!(more.len() == 1 && more[0].starts_with(name), "{key}: {more:?}");
    }
}

/// The stack file that DESIGN shows, without what later versions bring, means what it says.
#[test]
fn values_reach_the_crates_below() {
    let text = format!(
        "name = \"mine\"\n{MEDIA}payload = \"bytes\"\n[ftl]\nlimiter = \"reserve-2\"\n[ftl.gc]\nvictim = \"d-choices\"\nd = 4\n[hints]\njournal_range = [\"0\", \"64MiB\"]\n"
    );
    let stack = Stack::parse("my.toml", &text, &NONE).unwrap();
    assert_eq!(stack.name, "mine");
    assert_eq!(stack.media.geometry.total_sectors(), 2 * 4 * 60 * 4096);
    assert_eq!(stack.media.payload, PayloadMode::Bytes);
    assert_eq!(stack.timing(), DeviceTiming::none());
    assert_eq!(pblk(&stack).limiter, Limiter::Reserve(2));
    assert_eq!(pblk(&stack).victim, Victim::DChoices(4));
    assert_eq!(pblk(&stack).capacity_rules, CapacityRules::V4_16);
    assert_eq!(stack.hints.journal_range, Some(0..(64 << 20) / 4096));
    assert_eq!(stack.media.faults, MediaFaults::default());
}

/// A table for `timing` changes single parameters, whether the preset is named in it or below it.
#[test]
fn timing_is_a_preset_or_a_preset_with_changes() {
    let table = MEDIA.replace("\"none\"", "{ preset = \"nvmevirt-970pro\", erase_ns = 3_000_000 }");
    let one = Stack::parse("my.toml", &table, &NONE).unwrap();
    let two = load(&["media.timing.erase_ns=3000000"]).media.timing;
    let preset = DeviceTiming::preset("nvmevirt-970pro").unwrap();
    let nand = NandTiming { erase_ns: 3_000_000, ..preset.nand };
    assert_eq!(one.timing(), DeviceTiming { nand, ..preset });
    assert_eq!(two, one.media.timing);
    assert_eq!(two.name, "nvmevirt-970pro, erase_ns = 3000000");
    assert_eq!(load(&["media.timing=none"]).timing(), DeviceTiming::none());
}

/// A preset selects NAND and link; `[link]` changes the link key by key, or takes it away.
#[test]
fn link_is_the_preset_s_with_changes() {
    let preset = DeviceTiming::preset("nvmevirt-970pro").unwrap().link;
    assert_eq!(load(&[]).link, preset);
    let changed = LinkTiming {
        bytes_per_s: 1_000_000_000,
        read_large_ns: 1,
        duplex: Duplex::Full,
        placing: LinkScheduling::Fifo,
        ..preset
    };
    let set = [
        "link.bytes_per_s=1000000000",
        "link.read_large_ns=1",
        "link.duplex=full",
        "link.placing=fifo",
    ];
    assert_eq!(load(&set).link, changed);
    assert_eq!(load(&set).media.timing, load(&[]).media.timing);
    assert_eq!(load(&["link.kind=none"]).link, LinkTiming::none());
    assert_eq!(load(&["media.timing=qemu-ocssd"]).link, LinkTiming::none());
    let slow = load(&["media.timing=qemu-ocssd", "link.kind=pcie", "link.command_ns=5"]);
    assert_eq!(slow.link, LinkTiming { command_ns: 5, ..LinkTiming::none() });
    let refused = Stack::load(DEFAULT, &["link.kind=none", "link.command_ns=5"]).unwrap_err();
    assert_eq!(refused.to_string(), "--set link.command_ns: goes with link.kind = \"pcie\"");
}

/// Each number of a link has its own key, and a resolved stack that is read again has the same link.
#[test]
fn every_number_of_a_link_has_its_key() {
    let link = LinkTiming {
        command_ns: 1,
        read_small_ns: 2,
        read_large_ns: 3,
        read_small_bytes: 4,
        bytes_per_s: 5,
        duplex: Duplex::Full,
        buffer_base_ns: 6,
        buffer_sector_ns: 7,
        placing: LinkScheduling::Fifo,
        mdts_bytes: 8,
    };
    let set = [
        "link.command_ns=1",
        "link.read_small_ns=2",
        "link.read_large_ns=3",
        "link.read_small_bytes=4",
        "link.bytes_per_s=5",
        "link.buffer_base_ns=6",
        "link.buffer_sector_ns=7",
        "link.duplex=full",
        "link.placing=fifo",
        "link.mdts_bytes=8",
    ];
    let stack = load(&set);
    assert_eq!(stack.link, link);
    let again = Stack::parse("again.toml", &stack.toml, &NONE).unwrap();
    assert_eq!((again.link, again.hash()), (link, stack.hash()));
    let none = load(&["link.kind=none"]).toml;
    assert_eq!(Stack::parse("again.toml", &none, &NONE).unwrap().link, LinkTiming::none());
}

/// Quotes are optional on the command line, and a word that looks like a number is still a word.
#[test]
fn set_reaches_every_key() {
    let stack = load(&["ftl.gc.victim=greedy", "ftl.capacity_rules=4.13", "media.chunks=64"]);
    assert_eq!(pblk(&stack).victim, Victim::Greedy);
    assert_eq!(pblk(&stack).capacity_rules, CapacityRules::V4_13);
    assert_eq!(stack.media.geometry.chunks, 64);
    assert_eq!(load(&["name=\"a b\""]).name, "a b");
    assert_eq!(load(&["precondition.fill=1", "precondition.fill=0"]).precondition.fill, 0.0);
}

/// Each kind of mistake, with its line, its column, its key and what was expected.
#[test]
fn mistakes_are_answered_with_their_place() {
    let cases = [
        ("[ftl]\nvictm = 3\n", "my.toml:12:1: ftl.victm: unknown key"),
        ("[flt]\n", "my.toml:11:2: flt: unknown key; did you mean \"ftl\"?"),
        (
            "[ftl]\nop_percnt = 3\n",
            "my.toml:12:1: ftl.op_percnt: unknown key; did you mean \"op_percent\"? (known here: ",
        ),
        (
            "[ftl]\nop_percent = \"x\"\n",
            "my.toml:12:14: ftl.op_percent: expected a whole number up to 4,294,967,295, found \"x\"",
        ),
        (
            "[ftl]\nop_percent = -1\n",
            "my.toml:12:14: ftl.op_percent: expected a whole number up to 4,294,967,295, found -1",
        ),
        ("[ftl]\nop_percent = 81\n", "my.toml:12:14: ftl.op_percent: must be 3 to 80"),
        (
            "[ftl]\ngc.victim = \"gredy\"\n",
            "my.toml:12:13: ftl.gc.victim: expected pblk-lists | greedy | cost-benefit | fifo | random | d-choices, found \"gredy\"; did you mean \"greedy\"?",
        ),
        ("[ftl.gc]\nvictim = \"greedy\"\nd = 3\n", "my.toml:12:10: ftl.gc.victim: `d` goes with"),
        (
            "[ftl]\nlimiter = \"reserve-0\"\n",
            "my.toml:12:11: ftl.limiter: expected kernel | reserve-N",
        ),
        ("[ftl]\ngc = 3\n", "my.toml:12:6: ftl.gc: expected a table, found 3"),
        ("[precondition]\nfill = 150\n", "my.toml:12:8: precondition.fill: must be 0 to 100"),
        (
            "[hints]\njournal_range = [\"0\"]\n",
            "my.toml:12:17: hints.journal_range: expected two sizes",
        ),
        (
            "[hints]\njournal_range = [\"0\", \"5k\"]\n",
            "my.toml:12:17: hints.journal_range: must be whole sectors",
        ),
        ("[host]\nmemory = \"4 parsecs\"\n", "my.toml:12:10: host.memory: expected a size"),
        ("timing = \"none\"\n", "my.toml:11:"),
        ("[ftl\n", "my.toml:11:"),
        ("payload = 1979-05-27\n", "my.toml:11:11: media.payload: expected a string, found a date"),
        (
            "[media.faults]\nprogram_rate = 2\n",
            "my.toml:12:16: media.faults.program_rate: must be 0 to 1",
        ),
        (
            "[media.faults]\nunreadable_rate = -0.1\n",
            "my.toml:12:19: media.faults.unreadable_rate: must be 0 to 1",
        ),
        (
            "[media.faults]\nbad_chunk_rate = 1.1\n",
            "my.toml:12:18: media.faults.bad_chunk_rate: must be 0 to 1",
        ),
        (
            "[media.faults]\nslow_unit = 8\nslow_percent = 200\n",
            "my.toml:12:13: media.faults.slow_unit: must be less than groups x units",
        ),
        (
            "[media.faults]\nslow_unit = 1\nslow_percent = 0\n",
            "my.toml:13:16: media.faults.slow_percent: must be 1 to 100,000",
        ),
        (
            "[media.faults]\nslow_percent = 200\n",
            "my.toml:12:16: media.faults.slow_percent: goes with slow_unit",
        ),
    ];
    for (lines, expected) in cases {
        let found = error(&format!("{MEDIA}\n{lines}"));
        assert!(found.starts_with(expected), "found    {found}\nexpected {expected}");
    }
}

/// The map's keys mean what they say; those of another kind or policy are refused, not ignored.
#[test]
fn a_cached_map_is_described_key_by_key() {
    let map = |lines: &str| {
        let text = format!("{MEDIA}\n[ftl.map]\nkind = \"cached\"\n{lines}");
        pblk(&Stack::parse("my.toml", &text, &NONE).unwrap()).map
    };
    let MapKind::Cached(default) = map("") else { panic!("not cached") };
    let policy = MapPolicy::Hotness(HotnessConfig::journal());
    assert_eq!(
        default,
        MapConfig { cache: CacheSize::Percent(32), policy, ..MapConfig::default() }
    );
    let lines = "block = \"4KiB\"\ncache = \"6MiB\"\npolicy = \"dftl\"\nprotected_percent = 50\nloads = 1\nevict_batch = 100\n";
    let policy = MapPolicy::Dftl { protected_percent: 50 };
    let cache = CacheSize::Bytes(6 << 20);
    let expected = MapConfig { block_bytes: 4_096, cache, policy, loads_max: 1, ..default };
    let expected = MapConfig { evict_batch: 100, ..expected };
    assert_eq!(map(lines), MapKind::Cached(expected));
    let hotness = "policy = \"hotness\"\n[ftl.map.hotness]\njournal = 7\nidle_ns = 0\n";
    let points = HotnessConfig { journal: 7, idle_per_point: None, ..HotnessConfig::history() };
    let MapKind::Cached(config) = map(hotness) else { panic!("not cached") };
    assert_eq!(config.policy, MapPolicy::Hotness(points));
    let cases = [
        ("[ftl.map]\ncache = \"1MiB\"\n", "goes with kind = \"cached\" only"),
        ("[ftl.map]\nkind = \"cached\"\nblock = \"8KiB\"\n", "must be 4KiB, 16KiB or 64KiB"),
        ("[ftl.map]\nkind = \"cached\"\ncache = \"0%\"\n", "expected a size or a share"),
        ("[ftl.map]\nkind = \"cached\"\nprotected_percent = 5\n", "goes with policy = \"dftl\""),
        (
            "[ftl.map]\nkind = \"cached\"\npolicy = \"lru\"\n[ftl.map.hotness]\nread = 1\n",
            "goes with policy = \"hotness\"",
        ),
    ];
    for (lines, expected) in cases {
        let found = error(&format!("{MEDIA}\n{lines}"));
        assert!(found.contains(expected), "found    {found}\nexpected {expected}");
    }
}

/// Routing is a word or a list of words that do not exclude each other; each choice of buffers means
/// what its words say.
#[test]
fn buffers_are_chosen_by_words() {
    let lines = "[host]\ncores = 3\n[ftl]\nrouting = [\"per-core\", \"journal\", \"per-file\"]\n\
                 core_choice = \"most-free\"\nfsync_rings = 5\nfsync_threshold = 0\n\
                 special_buffer = 1024\nflush_scope = \"file-ring\"\nline_set = \"units-2\"\n\
                 [ftl.gc]\nstream = \"by-origin\"\n[hints]\nfsync = \"file\"\n";
    let stack = Stack::parse("my.toml", &format!("{MEDIA}\n{lines}"), &NONE).unwrap();
    let expected = Routing {
        base: BaseRouting::PerCore(CoreChoice::MostFree),
        journal: true,
        files: FileRouting::PerFile,
    };
    assert_eq!(pblk(&stack).routing, expected);
    assert_eq!((pblk(&stack).write_buffers, pblk(&stack).fsync_rings), (3, Some(5)));
    assert_eq!((pblk(&stack).fsync_threshold, pblk(&stack).special_ring_sectors), (0, Some(1024)));
    assert_eq!(pblk(&stack).flush_scope, FlushScope::FileRing);
    assert_eq!(pblk(&stack).line_set, LineSet::Units(2));
    assert_eq!(pblk(&stack).gc_stream, GcStream::ByOrigin);
    assert_eq!(stack.hints.fsync, Fsync::File);
    let again = Stack::parse("resolved", &stack.toml, &NONE).unwrap();
    assert_eq!((again.ftl, again.toml), (stack.ftl, stack.toml));
}

/// Cores of the host, write buffers and ijournal areas are three numbers; the last two are as many as cores
/// only where they are not set. A stack without the keys resolves to a text without them.
#[test]
fn cores_buffers_and_areas_are_set_apart() {
    let counts = |set: &[&str]| {
        let base = ["host.cores=6", "ftl.routing=per-core", "fs.kind=ext4", "fs.commit=ijournal"];
        let stack = Stack::load("pblk", &[&base[..], set].concat()).unwrap();
        let Commit::Ijournal { slots, .. } = ext4(&stack).mount.commit else { panic!("no areas") };
        let written = ["write_buffers", "ijournal_areas"].map(|key| stack.toml.contains(key));
        let again = Stack::parse("resolved", &stack.toml, &NONE).unwrap();
        assert_eq!((&again.ftl, &again.fs), (&stack.ftl, &stack.fs));
        (stack.host.cores, pblk(&stack).write_buffers, slots, written)
    };
    assert_eq!(counts(&[]), (Some(6), 6, 6, [false, false]));
    let apart = ["host.cores=64", "ftl.write_buffers=3", "fs.ijournal_areas=2"];
    assert_eq!(counts(&apart), (Some(64), 3, 2, [true, true]));
    for key in ["ftl.write_buffers", "fs.ijournal_areas"] {
        let set = [format!("{key}=0")];
        let refused = Stack::load("ext4-pblk", &set).unwrap_err().to_string();
        assert!(refused.ends_with(&format!("{key}: must be at least 1")), "{refused}");
    }
}

/// Words that exclude each other, and keys that go with others only, are refused where they stand.
#[test]
fn buffers_that_exclude_each_other_are_refused() {
    let cases = [
        ("routing = [\"single\", \"per-core\"]\n", "my.toml:12:11: ftl.routing: at most one of"),
        ("routing = [\"journal\", \"journal\"]\n", "my.toml:12:11: ftl.routing: at most one of"),
        ("routing = [\"per-file\", \"fsync-aware\"]\n", "my.toml:12:11: ftl.routing: at most"),
        ("routing = [7]\n", "my.toml:12:11: ftl.routing: expected words, found 7"),
        ("routing = \"jurnal\"\n", "my.toml:12:11: ftl.routing: expected single | per-core"),
        ("core_choice = \"core\"\n", "my.toml:12:15: ftl.core_choice: goes with routing"),
        ("line_set = \"units-0\"\n", "my.toml:12:12: ftl.line_set: expected device | channel"),
        ("flush_scope = \"rings\"\n", "my.toml:12:15: ftl.flush_scope: expected all | file-ring"),
    ];
    for (lines, expected) in cases {
        let found = error(&format!("{MEDIA}\n[ftl]\n{lines}"));
        assert!(found.starts_with(expected), "found    {found}\nexpected {expected}");
    }
}

/// Mistakes about a file system, and what does not go with one, are answered where they stand.
#[test]
fn file_systems_that_cannot_be_are_refused() {
    let cases = [
        (
            "[fs]\nkind = \"ext3\"\n",
            "my.toml:12:8: fs.kind: expected ext4 | f2fs, found \"ext3\"; did you",
        ),
        ("[fs]\ndta = \"journal\"\n", "my.toml:12:1: fs.dta: unknown key; did you mean \"data\"?"),
        ("[fs]\ndata = \"none\"\n", "my.toml:12:8: fs.data: expected ordered | journal | write"),
        (
            "[fs]\nijournal_area = \"1MiB\"\n",
            "my.toml:12:17: fs.ijournal_area: goes with commit = \"ijournal\"",
        ),
        ("[fs]\ncommit_interval = 5\n", "my.toml:12:19: fs.commit_interval: expected a time such"),
        ("[fs]\ncommit_interval = \"0s\"\n", "my.toml:12:19: fs.commit_interval: must be greater"),
        ("[fs]\nfeatures = \"x\"\n", "my.toml:12:12: fs.features: expected a list of features"),
        ("[fs]\nfeatures = [\"^csum\"]\n", "my.toml:12:12: fs.features: no feature of ext4 is"),
        ("[fs]\njournal = \"5k\"\n", "my.toml:12:11: fs.journal: must be whole blocks of 4 KiB"),
        ("[fs]\ndirty_percent = 5\n", "my.toml:12:17: fs.dirty_percent: must be more than dirty"),
        (
            "[fs]\n[hints]\njournal_range = [\"0\", \"1MiB\"]\n",
            "my.toml:13:17: hints.journal_range: a",
        ),
        ("[fs]\n[hints]\nfsync = \"file\"\n", "my.toml:13:9: hints.fsync: a file system says"),
        ("[fs]\ndiscard = 1\n", "my.toml:12:11: fs.discard: expected true or false"),
        ("[fs]\nkind = \"f2fs\"\nactive_logs = 3\n", "my.toml:13:15: fs.active_logs: must be 2, 4"),
        ("[fs]\nkind = \"f2fs\"\ncommit = \"jbd2\"\n", "my.toml:13:1: fs.commit: unknown key"),
        ("[fs]\nkind = \"f2fs\"\noverprovision = 100\n", "my.toml:13:17: fs.overprovision: must"),
        ("[fs]\nkind = \"f2fs\"\nsections_per_zone = 0\n", "my.toml:13:21: fs.sections_per_zone: "),
        (
            "[fs]\nkind = \"f2fs\"\nfeatures = [\"quota\"]\n",
            "my.toml:13:12: fs.features: quota is not supported",
        ),
        (
            "[fs]\nkind = \"f2fs\"\nformat = false\nlabel = \"x\"\n",
            "my.toml:14:9: fs.label: goes with format = true",
        ),
        ("[fs]\n[host]\ncopy_ns = 2_000_000_000\n", "my.toml:13:11: host.copy_ns: must be at most"),
        ("[fs]\ncall_ns = 1\n", "my.toml:12:1: fs.call_ns: is host.syscall_ns now"),
        ("[fs]\ncopy_ns = 1\n", "my.toml:12:1: fs.copy_ns: is host.copy_ns now"),
        ("[host]\nmemory = \"1023KiB\"\n", "my.toml:12:10: host.memory: must be at least 1MiB"),
        ("payload = \"none\"\n[fs]\n", "my.toml:12:2: fs.kind: needs media.payload = \"tags\" or"),
    ];
    for (lines, expected) in cases {
        let found = error(&format!("{MEDIA}\n{lines}"));
        assert!(found.starts_with(expected), "found    {found}\nexpected {expected}");
    }
}

/// A file system laid over a stack takes the place of what that stack says in its stead; the device is
/// fresh unless a stack asks for more than the stack below does.
#[test]
fn a_file_system_replaces_hints_and_preconditioning() {
    let stack = Stack::load("js-pblk", &["fs.kind=ext4"]).unwrap();
    assert!(stack.fs.is_some() && stack.precondition.is_none());
    assert_eq!(stack.hints.journal_range, None);
    assert_eq!(stack.host.memory_bytes, Some(4 << 30));
    let again = Stack::load("ext4-js-pblk", &["fs.data=writeback"]).unwrap();
    assert_eq!(again.fs.unwrap().config.choices()[0], ("data", "writeback"));
    let aged = Stack::load("ext4-pblk", &["precondition.fill=1"]).unwrap();
    assert!(aged.fs.is_some() && !aged.precondition.is_none());
}

/// CPU costs are a preset, or a table over one; the resolved stack has each of them.
#[test]
fn cpu_costs_are_a_preset_with_overrides() {
    let cpu = |lines: &str, set: &[&str]| {
        let stack = Stack::parse("my.toml", &format!("{MEDIA}\n{lines}"), set).unwrap();
        let again = Stack::parse("resolved", &stack.toml, &NONE).unwrap();
        assert_eq!((again.ftl, again.toml), (stack.ftl.clone(), stack.toml.clone()));
        pblk(&stack).cpu
    };
    let qemu = CpuCosts::preset("qemu").unwrap();
    assert!(cpu("", &[]).is_free());
    assert_eq!(cpu("[ftl]\ncpu = \"qemu\"\nmap_update = \"atomic\"\n", &[]), qemu);
    assert_eq!(cpu("", &["ftl.cpu=qemu"]), qemu);
    let refined = CpuCosts { writer_unit_ns: 7, ..qemu };
    assert_eq!(cpu("[ftl]\ncpu = \"qemu\"\n", &["ftl.cpu.writer_unit_ns=7"]), refined);
    let alone = CpuCosts { gc_sector_ns: 5, ..CpuCosts::default() };
    assert_eq!(cpu("[ftl.cpu]\ngc_sector_ns = 5\n", &[]), alone);
    let cases = [
        ("[ftl]\ncpu = \"qumu\"\n", "ftl.cpu: expected none | null-block | qemu"),
        ("[ftl.cpu]\nwriter_ns = 5\n", "ftl.cpu.writer_ns: unknown key"),
        ("[ftl.cpu]\nsubmit_ns = 10000000001\n", "ftl.cpu.submit_ns: must be at most"),
        ("[ftl]\nmap_update = \"free\"\n", "ftl.map_update: expected locked | atomic"),
    ];
    for (lines, expected) in cases {
        let found = error(&format!("{MEDIA}\n{lines}"));
        assert!(found.contains(expected), "found    {found}\nexpected {expected}");
    }
}

/// What must be given is missed by name; a shape that no device has is refused where it stands.
#[test]
fn geometry_is_required_and_checked() {
    let missing = MEDIA.replace("units = 4\n", "");
    assert!(error(&missing).starts_with("my.toml:1:2: media.units: is missing; expected a whole"));
    let odd = MEDIA.replace("sectors = 4096", "sectors = 4097");
    let expected = "my.toml:5:11: media.sectors: must be 1 to 16,777,216 and a multiple of ws_opt";
    assert_eq!(error(&odd), expected);
    let preset = MEDIA.replace("\"none\"", "\"nvmevirt-970pr\"");
    assert!(error(&preset).starts_with("my.toml:9:10: media.timing: expected nvmevirt-970pro | "));
    assert!(error(&preset).ends_with("did you mean \"nvmevirt-970pro\"?"), "{}", error(&preset));
}

/// An override is its own place.
#[test]
fn set_errors_name_the_override() {
    let cases = [
        ("ftl.gc.victim=gredy", "--set ftl.gc.victim: expected pblk-lists | "),
        ("ftl.gc.vctim=fifo", "--set ftl.gc.vctim: unknown key; did you mean \"victim\"?"),
        ("media=3", "--set media: expected a table, found 3"),
        ("nonsense", "--set nonsense: expected key.path=value"),
        ("a..b=1", "--set a..b: expected key.path=value with a name in every step"),
        ("=1", "--set : expected key.path=value with a name in every step"),
        (
            "a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a=1",
            "--set a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a: expected key.path=value with at",
        ),
        ("media.chunks=many", "--set media.chunks: expected a whole number"),
        ("media.timing.planes=17", "--set media.timing.planes: must be "),
        (
            "media.timing.erase_ns=10000000001",
            "--set media.timing.erase_ns: must be at most 10,000,000,000",
        ),
        ("link.command_ns=10000000001", "--set link.command_ns: must be at most 10,000,000,000"),
        ("media.timing.tprog=1", "--set media.timing.tprog: unknown key"),
        (
            "media.timing.pcie_bytes_per_s=1",
            "--set media.timing.pcie_bytes_per_s: is link.bytes_per_s now",
        ),
        (
            "media.timing.late_ns=1",
            "--set media.timing.late_ns: is media.timing.max_read_preemption_ns now",
        ),
        ("link.byte_per_s=1", "--set link.byte_per_s: unknown key; did you mean \"bytes_per_s\"?"),
        ("link.duplex=half", "--set link.duplex: expected shared | full, found \"half\""),
    ];
    for (assignment, expected) in cases {
        let found = set_error(assignment);
        assert!(found.starts_with(expected), "found    {found}\nexpected {expected}");
    }
}

/// Devices whose sizes are beyond all numbers are refused like those that are merely too large.
#[test]
fn sizes_that_overflow_are_refused() {
    let zones = ["media.chunks=65536", "ftl.random.size=0", "ftl.zone.size=8388608TiB"];
    let cases: [(&str, &[&str], &str); 4] = [
        ("pblk", &["media.sectors=16777216"], "media.chunks: must keep the device within 16 TiB"),
        ("ssd", &["media.sectors=16777216"], "media.chunks: must keep the device within 16 TiB"),
        ("pblk", &["ftl.limiter=reserve-4294967295"], "not enough lines: need 4294967755"),
        ("zns", &zones, "ftl.zone.size: "),
    ];
    for (name, set, expected) in cases {
        let found = Stack::load(name, set).and_then(|stack| stack.check_device());
        let found = found.expect_err(name).to_string();
        assert!(found.contains(expected), "{found}");
    }
}

/// A stack with too little overprovisioning is refused with the least that fits.
#[test]
fn the_least_overprovisioning_is_named() {
    for name in ["ssd", "iplfs-ssd"] {
        let refused = |percent: f64| {
            let set = [format!("ftl.op_percent={percent}"), "media.chunks=40".into()];
            let stack = Stack::load(name, &set.each_ref().map(String::as_str)).expect("keys");
            stack.check_device().err().map(|error| error.to_string())
        };
        let why = refused(1.0).expect("too little");
        let (_, least) = why.rsplit_once("; the least that fits is ").expect("it is named");
        let least: f64 = least.parse().expect("a percentage");
        assert_eq!(refused(least), None, "{name}");
        assert_eq!(refused(least - 0.01).as_ref().map(|why| why.contains("fits is")), Some(true));
    }
}

/// No text from outside brings the reader down.
#[test]
fn nonsense_never_panics() {
    let mut rng = nandscape_rt::Stream::new(1, "nonsense");
    let alphabet = b"[]{}=.,\"'#\n 0a_\\-\xc3\xa9";
    for _ in 0..2_000 {
        let bytes: Vec<u8> = (0..rng.below(40))
            .map(|_| alphabet[rng.below(alphabet.len() as u64) as usize])
            .collect();
        let text = String::from_utf8_lossy(&bytes);
        assert!(Stack::parse("noise", &text, &NONE).is_err(), "no stack without [media]");
        let set = Stack::parse("set", MEDIA, &[&*text]);
        assert!(set.is_err() || text.trim_start().starts_with("name"), "{text}");
    }
}
