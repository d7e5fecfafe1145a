//! The crash campaigns of acceptance.

/// Arguments of `nandscape crash`. Without a stack seeds draw theirs; of each kind of FTL that ships, one stack
/// has a campaign, and one with a file system. A stack of another kind adds its rows.
pub(super) const CAMPAIGNS: [&str; 7] = [
    "--seeds 400",
    "--fs ext4 --stack pblk --cuts 200",
    "--stack ssd --seeds 400",
    "--fs ext4 --stack ssd --cuts 200",
    "--stack zns --seeds 400",
    "--stack iplfs-ssd --seeds 400",
    "--stack d2fs-ssd --seeds 400",
];
