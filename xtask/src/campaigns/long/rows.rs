//! The long campaigns: what the gate has no time for.

/// How much a campaign runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Amount {
    /// So many seeds.
    Seeds(u64),
    /// So many power cuts: campaigns on a file system are counted in these.
    Cuts(u64),
}

/// A campaign by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Row {
    pub(super) name: &'static str,
    /// Arguments of `nandscape crash`, beside first seed and amount.
    pub(super) args: &'static str,
    pub(super) first: u64,
    pub(super) amount: Amount,
}

const fn seeds(name: &'static str, args: &'static str, first: u64, seeds: u64) -> Row {
    Row { name, args, first, amount: Amount::Seeds(seeds) }
}

const fn cuts(name: &'static str, args: &'static str, cuts: u64) -> Row {
    Row { name, args, first: 1, amount: Amount::Cuts(cuts) }
}

/// Groups of rows, whose names begin with that of the group: compositions, which go beyond a paper, and a million cuts
/// of FTLs and file systems.
pub(super) const GROUPS: [&str; 2] = ["compositions", "million"];

/// Every campaign. A stack that ships has one of its own, and so has a file system on it.
pub(super) const ROWS: [Row; 69] = [
    seeds("pblk-10000", "", 1, 10_000),
    seeds("pblk-faults-10000", "--faults 1000", 1, 10_000),
    seeds("pblk-unreadable-10000", "--unreadable 100", 100_000, 10_000),
    seeds("pblk-edge-cases-10000", "--edge-cases", 1, 10_000),
    seeds("js-pblk-10000", "--stack js-pblk", 1, 10_000),
    seeds("ssd-10000", "--stack ssd --faults 0", 1, 10_000),
    seeds(
        "ssd-power-safe-10000",
        "--stack ssd --set ftl.buffer.power_safe=true --faults 0",
        1,
        10_000,
    ),
    seeds("ssd-faults-10000", "--stack ssd", 100_000, 10_000),
    seeds(
        "ssd-power-safe-faults-10000",
        "--stack ssd --set ftl.buffer.power_safe=true",
        100_000,
        10_000,
    ),
    seeds("ssd-edge-cases-10000", "--stack ssd --edge-cases", 1, 10_000),
    seeds("zns-10000", "--stack zns", 1, 10_000),
    seeds("zns-power-safe-10000", "--stack zns --set ftl.buffer.power_safe=true", 1, 10_000),
    seeds("zns-edge-cases-10000", "--stack zns --edge-cases", 1, 10_000),
    seeds("zns-prototype-10000", "--stack zns-prototype", 1, 10_000),
    seeds("iplfs-ssd-10000", "--stack iplfs-ssd", 1, 10_000),
    seeds(
        "iplfs-ssd-power-safe-10000",
        "--stack iplfs-ssd --set ftl.buffer.power_safe=true",
        1,
        10_000,
    ),
    seeds("iplfs-ssd-edge-cases-10000", "--stack iplfs-ssd --edge-cases", 1, 10_000),
    seeds("d2fs-ssd-10000", "--stack d2fs-ssd", 1, 10_000),
    seeds(
        "d2fs-ssd-power-safe-10000",
        "--stack d2fs-ssd --set ftl.buffer.power_safe=true",
        1,
        10_000,
    ),
    seeds("d2fs-ssd-edge-cases-10000", "--stack d2fs-ssd --edge-cases", 1, 10_000),
    cuts("ext4-ssd-2000", "--fs ext4 --stack ssd --oracle-every 20", 2_000),
    cuts("f2fs-ssd-5000", "--fs f2fs --oracle-every 20", 5_000),
    cuts(
        "f2fs-ssd-power-safe-5000",
        "--fs f2fs --stack f2fs-lfs-ssd --set ftl.buffer.power_safe=true --oracle-every 20",
        5_000,
    ),
    cuts("f2fs-adversary-5000", "--fs f2fs --base adversary --oracle-every 20", 5_000),
    cuts("f2fs-adaptive-5000", "--fs f2fs --set fs.allocation=adaptive --oracle-every 20", 5_000),
    cuts(
        "f2fs-adaptive-adversary-5000",
        "--fs f2fs --base adversary --set fs.allocation=adaptive --oracle-every 20",
        5_000,
    ),
    cuts("f2fs-gcj-5000", "--fs f2fs --set fs.reclaim=gc-journal --oracle-every 20", 5_000),
    cuts(
        "f2fs-gcj-adversary-5000",
        "--fs f2fs --base adversary --set fs.reclaim=gc-journal --oracle-every 20",
        5_000,
    ),
    cuts(
        "f2fs-gcj-paper-5000",
        "--fs f2fs --set fs.reclaim=gc-journal --set fs.gc_journal=paper --oracle-every 20",
        5_000,
    ),
    cuts(
        "f2fs-gcj-paper-adversary-5000",
        "--fs f2fs --base adversary --set fs.reclaim=gc-journal --set fs.gc_journal=paper --oracle-every 20",
        5_000,
    ),
    cuts("f2fs-full-5000", "--fs f2fs --full --oracle-every 20", 5_000),
    cuts("f2fs-full-adversary-5000", "--fs f2fs --full --base adversary", 5_000),
    cuts(
        "f2fs-full-adaptive-5000",
        "--fs f2fs --full --base adversary --set fs.allocation=adaptive",
        5_000,
    ),
    cuts("ext4-full-5000", "--fs ext4 --full --oracle-every 20", 5_000),
    cuts("ext4-full-adversary-20000", "--fs ext4 --full --base adversary", 20_000),
    cuts(
        "ext4-full-journal-20000",
        "--fs ext4 --full --base adversary --set fs.data=journal",
        20_000,
    ),
    cuts(
        "ext4-full-ijournal-20000",
        "--fs ext4 --full --base adversary --set fs.commit=ijournal",
        20_000,
    ),
    cuts("f2fs-iplfs-5000", "--fs f2fs --stack iplfs-ssd", 5_000),
    cuts("f2fs-d2fs-5000", "--fs f2fs --stack d2fs-ssd", 5_000),
    cuts(
        "f2fs-gcj-adaptive-5000",
        "--fs f2fs --set fs.allocation=adaptive --set fs.reclaim=gc-journal --oracle-every 20",
        5_000,
    ),
    cuts(
        "f2fs-gcj-adaptive-adversary-5000",
        "--fs f2fs --base adversary --set fs.allocation=adaptive --set fs.reclaim=gc-journal --oracle-every 20",
        5_000,
    ),
    cuts("ext4-pblk-2000", "--fs ext4 --stack pblk --oracle-every 20", 2_000),
    cuts(
        "ext4-journal-pblk-2000",
        "--fs ext4 --stack pblk --set fs.data=journal --oracle-every 20",
        2_000,
    ),
    cuts(
        "ext4-writeback-pblk-2000",
        "--fs ext4 --stack pblk --set fs.data=writeback --oracle-every 20",
        2_000,
    ),
    cuts("ext4-js-pblk-2000", "--fs ext4 --stack js-pblk --oracle-every 20", 2_000),
    cuts("ext4-ijournal-2000", "--fs ext4 --set fs.commit=ijournal --oracle-every 20", 2_000),
    seeds("compositions-own-gc", "--stack papers/js-pblk/stacks/own-gc.toml", 1, 1_000),
    seeds("compositions-js-by-origin", "--stack papers/js-pblk/stacks/js-by-origin.toml", 1, 1_000),
    seeds("compositions-js-own-gc", "--stack papers/js-pblk/stacks/js-own-gc.toml", 1, 1_000),
    seeds("compositions-js-reserve", "--stack papers/js-pblk/stacks/js-reserve.toml", 1, 1_000),
    seeds(
        "compositions-js-own-gc-reserve",
        "--stack papers/js-pblk/stacks/js-own-gc-reserve.toml",
        1,
        1_000,
    ),
    cuts(
        "compositions-ext4-js-own-gc-reserve",
        "--fs ext4 --stack js-pblk --set ftl.gc.stream=own --set ftl.limiter=reserve-1 \
         --set fs.data=journal --oracle-every 20",
        1_000,
    ),
    seeds(
        "compositions-one-normal-ring",
        "--stack papers/fa-ftl/stacks/one-normal-ring.toml",
        1,
        1_000,
    ),
    cuts(
        "compositions-ext4-one-normal-ring",
        "--fs ext4 --stack papers/fa-ftl/stacks/one-normal-ring.toml --oracle-every 20",
        1_000,
    ),
    seeds(
        "compositions-selective",
        "--stack papers/selective-mapping/stacks/hotness-journal.toml",
        1,
        1_000,
    ),
    seeds("compositions-blind", "--stack papers/selective-mapping/stacks/blind.toml", 1, 10_000),
    seeds(
        "compositions-blind-faults",
        "--stack papers/selective-mapping/stacks/blind.toml --faults 1000",
        1,
        10_000,
    ),
    seeds("compositions-all-techniques", "--stack papers/js-pblk/stacks/combined.toml", 1, 1_000),
    cuts("million-adversary-ordered", "--fs ext4 --base adversary", 150_000),
    cuts("million-adversary-journal", "--fs ext4 --base adversary --set fs.data=journal", 150_000),
    cuts(
        "million-adversary-writeback",
        "--fs ext4 --base adversary --set fs.data=writeback",
        150_000,
    ),
    cuts(
        "million-adversary-ijournal",
        "--fs ext4 --base adversary --set fs.commit=ijournal",
        150_000,
    ),
    cuts("million-drawn-ordered", "--fs ext4 --oracle-every 100", 15_000),
    cuts("million-drawn-journal", "--fs ext4 --set fs.data=journal --oracle-every 100", 15_000),
    cuts("million-drawn-writeback", "--fs ext4 --set fs.data=writeback", 15_000),
    cuts("million-drawn-ijournal", "--fs ext4 --set fs.commit=ijournal", 15_000),
    seeds("million-pblk", "", 1_000_000, 40_000),
    seeds("million-pblk-faults", "--faults 1000", 2_000_000, 15_000),
    seeds("million-ssd", "--stack ssd", 1_000_000, 10_000),
];

impl Row {
    /// The rows of a name: one campaign, or all of a group.
    pub(super) fn all_named(name: &str) -> Vec<Self> {
        let is_group = GROUPS.contains(&name);
        let is_asked =
            |row: &Self| if is_group { row.name.starts_with(name) } else { row.name == name };
        ROWS.into_iter().filter(is_asked).collect()
    }

    /// The arguments that run this much from a seed on.
    pub(super) fn arguments(&self, first: u64, amount: u64) -> Vec<String> {
        let how_many = match self.amount {
            Amount::Seeds(_) => "--seeds",
            Amount::Cuts(_) => "--cuts",
        };
        let given = self.args.split(' ').filter(|word| !word.is_empty()).map(str::to_owned);
        let counted = ["--first", &first.to_string(), how_many, &amount.to_string()];
        ["crash".to_owned()].into_iter().chain(given).chain(counted.map(str::to_owned)).collect()
    }

    pub(super) fn whole(&self) -> u64 {
        match self.amount {
            Amount::Seeds(all) | Amount::Cuts(all) => all,
        }
    }

    /// Seeds or cuts of a batch: minutes of work at most.
    pub(super) fn batch(&self) -> u64 {
        match self.amount {
            Amount::Seeds(_) => 500,
            Amount::Cuts(all) => (all / 50).max(200),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(name: &str) -> Row {
        Row::all_named(name)[0]
    }

    /// Names are unique, and lead to their rows.
    #[test]
    fn names_lead_to_rows() {
        for row in ROWS {
            assert_eq!(Row::all_named(row.name), [row]);
        }
        assert_eq!(Row::all_named("no-such-row"), []);
    }

    /// One name runs every composition, each with at least 1,000 power cuts: a seed without a file system has
    /// five on average. Their stacks are files of the repository.
    #[test]
    fn compositions_are_run_together() {
        let rows = Row::all_named("compositions");
        assert_eq!(rows.len(), 12);
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for row in rows {
            assert!(row.whole() >= 1_000, "{row:?}");
            let files = row.args.split(' ').filter(|word| word.ends_with(".toml"));
            files.for_each(|file| assert!(root.join(file).is_file(), "{file}"));
        }
    }

    #[test]
    fn arguments_say_how_much() {
        let row = only("pblk-faults-10000");
        let expected = "crash --faults 1000 --first 7 --seeds 20";
        assert_eq!(row.arguments(7, 20).join(" "), expected);
        let row = only("ext4-ijournal-2000");
        assert!(
            row.arguments(1, 200).join(" ").ends_with("--oracle-every 20 --first 1 --cuts 200")
        );
    }
}
