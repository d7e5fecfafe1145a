//! The long campaigns: what CI has no time for.

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

/// Every campaign. A stack that ships has one of its own, and so has a file system on it.
pub(super) const ROWS: [Row; 16] = [
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
    cuts("ext4-ssd-2000", "--fs ext4 --stack ssd --oracle-every 20", 2_000),
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
];

impl Row {
    pub(super) fn named(name: &str) -> Option<Self> {
        ROWS.into_iter().find(|row| row.name == name)
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
            Amount::Cuts(_) => 200,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names are unique, and lead to their rows.
    #[test]
    fn names_lead_to_rows() {
        for row in ROWS {
            assert_eq!(Row::named(row.name), Some(row));
        }
        assert_eq!(Row::named("no-such-row"), None);
    }

    #[test]
    fn arguments_say_how_much() {
        let row = Row::named("pblk-faults-10000").expect("it is there");
        let expected = "crash --faults 1000 --first 7 --seeds 20";
        assert_eq!(row.arguments(7, 20).join(" "), expected);
        let row = Row::named("ext4-ijournal-2000").expect("it is there");
        assert!(
            row.arguments(1, 200).join(" ").ends_with("--oracle-every 20 --first 1 --cuts 200")
        );
    }
}
