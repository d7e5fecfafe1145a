//! NAND timing of published devices, with the place each number comes from.
//!
//! `nvmevirt-*`: snu-csl/nvmevirt, `ssd_config.h`, as of May 2026. MB/s are 10^6 bytes/s. Erase time
//! is 0 in all its models and is kept so: a stack that studies erases overrides `erase_ns` (3 to 5
//! ms on real parts).

use super::NandTiming;

const KIB: u64 = 1 << 10;
const MB: u64 = 1_000_000;

/// `SAMSUNG_970PRO`: MLC, 8 channels x 2 units, 4 FTL instances.
pub(crate) const NVMEVIRT_970PRO: NandTiming = NandTiming {
    read_sector_lsb_ns: 35_760 - 6_000, // NAND_4KB_READ_LATENCY_LSB
    read_sector_msb_ns: 35_760 + 6_000, // NAND_4KB_READ_LATENCY_MSB
    read_page_lsb_ns: 36_013 - 6_000,   // NAND_READ_LATENCY_LSB
    read_page_msb_ns: 36_013 + 6_000,   // NAND_READ_LATENCY_MSB
    program_ns: 185_000,                // NAND_PROG_LATENCY
    erase_ns: 0,                        // NAND_ERASE_LATENCY, as published
    flash_page_bytes: 32 * KIB,         // FLASH_PAGE_SIZE
    one_shot_bytes: 32 * KIB,           // ONESHOT_PAGE_SIZE
    channel_bytes_per_s: 800 * MB,      // NAND_CHANNEL_BANDWIDTH
    max_transfer_bytes: 16 * KIB,       // MAX_CH_XFER_SIZE
    ..NandTiming::none()
};

/// `WD_ZN540`: TLC, 8 channels x 4 units, one FTL instance.
pub(crate) const NVMEVIRT_ZN540: NandTiming = NandTiming {
    read_sector_lsb_ns: 50_000, // NAND_4KB_READ_LATENCY_LSB = _MSB
    read_sector_msb_ns: 50_000,
    read_page_lsb_ns: 58_000, // NAND_READ_LATENCY_LSB = _MSB
    read_page_msb_ns: 58_000,
    program_ns: 561_000,           // NAND_PROG_LATENCY
    erase_ns: 0,                   // NAND_ERASE_LATENCY, as published
    flash_page_bytes: 32 * KIB,    // FLASH_PAGE_SIZE
    one_shot_bytes: 96 * KIB,      // ONESHOT_PAGE_SIZE
    channel_bytes_per_s: 450 * MB, // NAND_CHANNEL_BANDWIDTH
    max_transfer_bytes: 32 * KIB,  // MAX_CH_XFER_SIZE
    ..NandTiming::none()
};

/// `ZNS_PROTOTYPE`: TLC, 8 channels x 16 units, one FTL instance.
pub(crate) const NVMEVIRT_ZNS_PROTOTYPE: NandTiming = NandTiming {
    read_sector_lsb_ns: 25_485, // NAND_4KB_READ_LATENCY_LSB = _MSB
    read_sector_msb_ns: 25_485,
    read_page_lsb_ns: 40_950, // NAND_READ_LATENCY_LSB = _MSB
    read_page_msb_ns: 40_950,
    program_ns: 1_913_640,         // NAND_PROG_LATENCY
    erase_ns: 0,                   // NAND_ERASE_LATENCY, as published
    flash_page_bytes: 64 * KIB,    // FLASH_PAGE_SIZE
    one_shot_bytes: 128 * KIB,     // ONESHOT_PAGE_SIZE; 192 KiB on the real part
    channel_bytes_per_s: 800 * MB, // NAND_CHANNEL_BANDWIDTH
    channel_sector_ns: 413,        // FW_CH_XFER_LATENCY: per 4 KiB, ssd_init_ch()
    max_transfer_bytes: 64 * KIB,  // MAX_CH_XFER_SIZE
    ..NandTiming::none()
};

/// What the Open-Channel 2.0 device of qemu-nvme reports of itself: typical values; its maxima are
/// tR 100 us and tPROG 3.5 ms. qemu itself delays nothing, and reports neither page sizes nor
/// bandwidths: pages are its default ws_opt of 8 sectors, transfers take no time.
pub(crate) const QEMU_OCSSD: NandTiming = NandTiming {
    read_sector_lsb_ns: 70_000, // trdt
    read_sector_msb_ns: 70_000,
    read_page_lsb_ns: 70_000,
    read_page_msb_ns: 70_000,
    program_ns: 1_900_000, // tprt
    erase_ns: 3_000_000,   // tbet
    flash_page_bytes: 32 * KIB,
    one_shot_bytes: 32 * KIB,
    ..NandTiming::none()
};
