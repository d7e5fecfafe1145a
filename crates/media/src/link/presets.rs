//! Links and controllers of published devices, with the place each number comes from.
//!
//! `nvmevirt-*`: snu-csl/nvmevirt, `ssd_config.h`, as of May 2026. MB/s are 10^6 bytes/s. A read is
//! small up to 4 KiB times the number of the device's FTL instances (`conv_ftl.c`, `zns_ftl.c`). MDTS is the same in
//! all: 4 KiB << 6 (`nvmev.h`, `NVMEV_MDTS`).

use super::LinkTiming;

const KIB: u64 = 1 << 10;
const MB: u64 = 1_000_000;
const MDTS_BYTES: u64 = 256 * KIB;

/// `SAMSUNG_970PRO`: 4 FTL instances.
pub(crate) const NVMEVIRT_970PRO: LinkTiming = LinkTiming {
    read_small_ns: 21_500,      // FW_4KB_READ_LATENCY
    read_large_ns: 30_490,      // FW_READ_LATENCY
    read_small_bytes: 16 * KIB, // 4 KiB x SSD_PARTITIONS
    bytes_per_s: 3_360 * MB,    // PCIE_BANDWIDTH
    buffer_base_ns: 4_000,      // FW_WBUF_LATENCY0
    buffer_sector_ns: 460,      // FW_WBUF_LATENCY1
    mdts_bytes: MDTS_BYTES,
    ..LinkTiming::none()
};

/// `WD_ZN540`: one FTL instance.
pub(crate) const NVMEVIRT_ZN540: LinkTiming = LinkTiming {
    read_small_ns: 20_000,     // FW_4KB_READ_LATENCY
    read_large_ns: 13_000,     // FW_READ_LATENCY
    read_small_bytes: 4 * KIB, // 4 KiB x SSD_PARTITIONS
    bytes_per_s: 3_050 * MB,   // PCIE_BANDWIDTH
    buffer_base_ns: 5_600,     // FW_WBUF_LATENCY0
    buffer_sector_ns: 600,     // FW_WBUF_LATENCY1
    mdts_bytes: MDTS_BYTES,
    ..LinkTiming::none()
};

/// `ZNS_PROTOTYPE`: one FTL instance, no latency of accepting a write.
pub(crate) const NVMEVIRT_ZNS_PROTOTYPE: LinkTiming = LinkTiming {
    read_small_ns: 32_150,     // FW_4KB_READ_LATENCY = 37,540 - 7,390 + 2,000
    read_large_ns: 32_150,     // FW_READ_LATENCY
    read_small_bytes: 4 * KIB, // 4 KiB x SSD_PARTITIONS
    bytes_per_s: 3_200 * MB,   // PCIE_BANDWIDTH
    mdts_bytes: MDTS_BYTES,
    ..LinkTiming::none()
};
