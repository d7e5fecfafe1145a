//! Keys of `[media]` and `[link]`.

use super::Default::{By, Is, Nothing, Required};
use super::Values::{Number, Preset, Range, Size, Words};
use super::{Group, When, key};

pub(super) static MEDIA: Group = Group {
    name: "media",
    prefix: "media",
    when: When::Always,
    keys: &[
        key(
            "groups",
            Range(1, 256),
            Required,
            "number of groups of parallel units; a group is a flash channel, whose bus its units \
             share",
        ),
        key(
            "units",
            Range(1, 256),
            Required,
            "number of parallel units per group; a unit is a die, which executes one read, \
             program or erase at a time",
        ),
        key(
            "chunks",
            Range(1, 65_536),
            Required,
            "number of chunks per parallel unit; a chunk is an erase block (of all planes of the \
             die), written in order and erased as a whole. By default also the number of lines of \
             the device",
        ),
        key("sectors", Number("multiple of `ws_opt`"), Required, "sectors of 4 KiB per chunk"),
        key(
            "ws_min",
            Range(1, 64),
            Required,
            "smallest write in sectors (minimum write size of the Open-Channel SSD 2.0 \
             specification)",
        ),
        key(
            "ws_opt",
            Number("1 to 64, multiple of `ws_min`"),
            Required,
            "optimal write size in sectors: what one program operation writes (one-shot page)",
        ),
        key(
            "mw_cunits",
            Number("less than `sectors`"),
            Required,
            "number of sectors below the write pointer of an open chunk that cannot be read from \
             media yet (cache minimum write size units); reads of them are served from the write \
             buffer",
        ),
        key("maxoc", Number("0: no limit"), Is("0"), "largest number of open chunks on the device"),
        key(
            "maxocpu",
            Number("0: no limit"),
            Is("0"),
            "largest number of open chunks per parallel unit",
        ),
        key(
            "timing",
            Preset(&[
                "nvmevirt-970pro",
                "nvmevirt-zn540",
                "nvmevirt-zns-prototype",
                "qemu-ocssd",
                "none",
            ]),
            Required,
            "how long NAND operations and transfers take: a preset, or a table that overrides \
             parameters of a preset, such as `{ preset = \"nvmevirt-970pro\", erase_ns = 3000000 \
             }`. The preset also selects [the link](#link)",
        ),
        key(
            "payload",
            Words(&["none", "tags", "bytes"]),
            Is("tags"),
            "what the virtual media store for each sector: nothing; a tag of 8 bytes that \
             identifies the content; or all bytes",
        ),
        key(
            "memory_cap",
            Size(""),
            Is("16GiB"),
            "largest amount of RAM that the virtual media may take; beyond it the run ends with \
             an error",
        ),
        key(
            "endurance_erases",
            Number(""),
            Nothing,
            "number of erases that a chunk survives; every further erase of it fails. The run ends \
             when too many chunks have failed and the device becomes read-only, with results until \
             then and exit code 1",
        ),
        key(
            "faults.program_rate",
            Number("0 to 1"),
            Is("0"),
            "probability that a program operation fails",
        ),
        key("faults.erase_rate", Number("0 to 1"), Is("0"), "probability that an erase fails"),
        key(
            "faults.unreadable_rate",
            Number("0 to 1"),
            Is("0"),
            "probability that one of the sectors of a data write is uncorrectable until its chunk \
             is erased",
        ),
        key(
            "faults.bad_chunk_rate",
            Number("0 to 1"),
            Is("0"),
            "share of chunks that are bad from the start (factory bad blocks); they are drawn \
             with the seed and reduce the capacity",
        ),
        key(
            "faults.from",
            Words(&["start", "measured"]),
            Is("start"),
            "when programs, erases and writes begin to fail: with the first command, or with the \
             measured phase",
        ),
        key(
            "faults.slow_unit",
            Number("less than `groups` x `units`"),
            Nothing,
            "a parallel unit, counted over all groups from 0, whose cell operations take \
             `faults.slow_percent` of their normal time; set both keys or neither",
        ),
        key(
            "faults.slow_percent",
            Range(1, 100_000),
            Nothing,
            "duration of the cell operations of `faults.slow_unit` in percent of their normal \
             time",
        ),
    ],
};

pub(super) static TIMING: Group = Group {
    name: "media.timing",
    prefix: "media.timing",
    when: When::Always,
    keys: &[
        key(
            "preset",
            Words(&[
                "nvmevirt-970pro",
                "nvmevirt-zn540",
                "nvmevirt-zns-prototype",
                "qemu-ocssd",
                "none",
            ]),
            Required,
            "the preset that the other keys of the table override",
        ),
        key(
            "read_sector_lsb_ns",
            Number(""),
            By("by preset"),
            "tR of a read of one sector, from even flash pages of a chunk (LSB pages)",
        ),
        key(
            "read_sector_msb_ns",
            Number(""),
            By("by preset"),
            "tR of a read of one sector, from odd flash pages of a chunk (MSB pages)",
        ),
        key(
            "read_page_lsb_ns",
            Number(""),
            By("by preset"),
            "tR of a read of more than one sector of a flash page, from even flash pages (LSB \
             pages)",
        ),
        key(
            "read_page_msb_ns",
            Number(""),
            By("by preset"),
            "tR of a read of more than one sector of a flash page, from odd flash pages (MSB \
             pages)",
        ),
        key(
            "program_ns",
            Number(""),
            By("by preset"),
            "tPROG: duration of programming a one-shot page",
        ),
        key(
            "erase_ns",
            Number(""),
            By("by preset"),
            "tBERS: duration of erasing a chunk. The `nvmevirt-*` presets keep NVMeVirt's erase \
             time of zero",
        ),
        key(
            "flash_page_bytes",
            Number("bytes"),
            By("by preset"),
            "size of a flash page of a unit: what one sense operation reads",
        ),
        key(
            "one_shot_bytes",
            Number("bytes"),
            By("by preset"),
            "size of a one-shot page of a unit: what one program operation writes",
        ),
        key(
            "channel_bytes_per_s",
            Number("0: transfers take no time"),
            By("by preset"),
            "bandwidth of the bus of a channel",
        ),
        key(
            "channel_sector_ns",
            Number(""),
            By("by preset"),
            "latency added to a channel transfer for each sector; it does not occupy the channel",
        ),
        key(
            "max_transfer_bytes",
            Number("bytes"),
            By("by preset"),
            "largest piece of a read's channel transfer; a piece continues over the link while \
             the next one crosses the channel",
        ),
        key(
            "placing",
            Words(&["backfill", "fifo"]),
            By("by preset"),
            "order of transfers on a channel: a transfer takes the earliest gap after it is \
             ready; or transfers are strictly in order of their commands",
        ),
        key(
            "planes",
            Range(1, 16),
            Is("1"),
            "number of planes that share a unit's flash page and one-shot page, in equal and \
             consecutive parts",
        ),
        key(
            "multi_plane",
            Words(&["both", "program", "read", "none"]),
            Is("both"),
            "operations that use all planes in parallel: one tPROG per one-shot page, one tR per \
             flash page. Other operations take one for each plane involved, one after the other",
        ),
        key(
            "read_priority",
            Words(&["none", "ahead", "suspend-erase", "suspend-program", "suspend"]),
            Is("none"),
            "what a read overtakes on its unit: nothing; programs and erases that have not \
             started; or also those in progress, of the named kind or both, which it suspends",
        ),
        key(
            "max_read_preemption_ns",
            Number(""),
            Is("10000000"),
            "largest delay that reads may cause to an operation that they overtake; reads wait \
             for an operation that has reached it",
        ),
        key("max_suspensions", Number(""), Is("4"), "how often an operation may be suspended"),
        key(
            "program_suspend_ns",
            Number(""),
            Is("100000"),
            "time from the suspension of a program until a read may start (MQSim's default)",
        ),
        key(
            "erase_suspend_ns",
            Number(""),
            Is("700000"),
            "time from the suspension of an erase until a read may start (MQSim's default)",
        ),
        key("resume_ns", Number(""), Is("0"), "time that resuming adds to a suspended operation"),
    ],
};

pub(super) static LINK: Group = Group {
    name: "link",
    prefix: "link",
    when: When::Always,
    keys: &[
        key(
            "kind",
            Words(&["pcie", "none"]),
            By("`none` if the preset has no link (`qemu-ocssd`, `none`), else `pcie`"),
            "the host interface: PCIe; or commands and transfers take no time, and the keys below \
             are refused",
        ),
        key(
            "bytes_per_s",
            Number("0: transfers take no time"),
            By("by preset"),
            "bandwidth of the link in bytes per second",
        ),
        key(
            "command_ns",
            Number(""),
            By("by preset"),
            "time from the submission of a write or reset until it reaches the controller",
        ),
        key(
            "read_small_ns",
            Number(""),
            By("by preset"),
            "time from the submission of a read of at most `read_small_bytes` until its unit may \
             start",
        ),
        key(
            "read_large_ns",
            Number(""),
            By("by preset"),
            "time from the submission of a larger read until its unit may start",
        ),
        key(
            "read_small_bytes",
            Number("bytes"),
            By("by preset"),
            "size of the largest read that counts as small",
        ),
        key(
            "buffer_base_ns",
            Number(""),
            By("by preset"),
            "controller time to accept a write; the data transfer follows",
        ),
        key(
            "buffer_sector_ns",
            Number(""),
            By("by preset"),
            "controller time to accept each sector of a write, in addition to `buffer_base_ns`",
        ),
        key(
            "mdts_bytes",
            Number("bytes; 0: no limit"),
            By("by preset"),
            "most bytes of a command that carries data (NVMe's MDTS): the host divides larger \
             requests to an SSD with its FTL inside. pblk takes requests of any size, and its \
             own commands have `ws_opt` sectors",
        ),
        key(
            "duplex",
            Words(&["shared", "full"]),
            Is("shared"),
            "both directions share the bandwidth, as in NVMeVirt; or each direction has all of \
             it, as on PCIe",
        ),
        key(
            "placing",
            Words(&["backfill", "fifo"]),
            Is("backfill"),
            "order of transfers on the link: a transfer takes the earliest gap after it is ready; \
             or transfers are strictly in order",
        ),
    ],
};
