//! A job that a seed draws: keys that fio and we both accept, in combination.
//!
//! Jobs are small, so that many run at a time: at most a few thousand I/Os on 4 MiB. Jobs with rates end by time and
//! are slow enough for any machine.

use nandscape_rt::Stream;

/// The file of a job.
const FILE_BYTES: u64 = 4 << 20;
const KIB: u64 = 1_024;

/// How far apart the logs of files are, as if they were on one device.
pub(super) const FILE_DISTANCE: u64 = 1 << 30;

/// What fio runs a job on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Side {
    /// A file of 4 MiB.
    File,
    /// Several files, which it makes.
    Files,
    /// The null engine, whose device ends behind the job's range. It takes trims.
    Null,
}

/// A job.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) seed: u64,
    keys: Vec<(&'static str, String)>,
    side: Side,
    timed: bool,
    device_bytes: u64,
}

impl Case {
    /// The job of this seed.
    pub(super) fn draw(seed: u64) -> Self {
        let mut draw = Drawing { random: Stream::new(seed, "job"), keys: Vec::new() };
        let timed = draw.one_in(5);
        let side = match draw.random.below(12) {
            0..3 => Side::Null,
            3 if !timed => Side::Files,
            _ => Side::File,
        };
        let device_bytes = if timed { draw.paced_job(side) } else { draw.counted_job(side) };
        Self { seed, keys: draw.keys, side, timed, device_bytes }
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.keys.iter().map(|(key, value)| (*key, value.as_str()))
    }

    /// The value of a key.
    pub(super) fn value(&self, key: &str) -> Option<&str> {
        self.keys().find(|(name, _)| *name == key).map(|(_, value)| value)
    }

    /// The job file.
    pub(super) fn text(&self) -> String {
        let lines = self.keys().map(|(key, value)| format!("{key}={value}\n"));
        std::iter::once("[j]\n".to_owned()).chain(lines).collect()
    }

    pub(super) const fn side(&self) -> Side {
        self.side
    }

    /// Whether time ends it, so that a busy machine may be in its way.
    pub(super) const fn is_timed(&self) -> bool {
        self.timed
    }

    pub(super) const fn device_bytes(&self) -> u64 {
        self.device_bytes
    }
}

/// A job while it is drawn.
struct Drawing {
    random: Stream,
    keys: Vec<(&'static str, String)>,
}

impl Drawing {
    fn one_in(&mut self, n: u64) -> bool {
        self.random.below(n) == 0
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.random.below(of.len() as u64) as usize]
    }

    fn set(&mut self, key: &'static str, value: impl ToString) {
        self.keys.push((key, value.to_string()));
    }

    /// Sets a key in one of so many jobs.
    fn maybe(&mut self, n: u64, key: &'static str, values: &[&str]) -> bool {
        let given = self.one_in(n);
        if given {
            let value = self.pick(values);
            self.set(key, value);
        }
        given
    }

    /// A job that ends by what it transfers; bytes of its device.
    fn counted_job(&mut self, side: Side) -> u64 {
        let mixes: &[&str] = match side {
            Side::File | Side::Files => &["read", "write", "rw"],
            Side::Null => &["read", "write", "rw", "trim", "trimwrite"],
        };
        let mix = self.pick(mixes);
        let random = !self.one_in(3);
        let zones = side == Side::File && self.one_in(7);
        self.pattern(mix, random, zones || side == Side::Files);
        self.engine(side);
        let largest = self.sizes(mix, random);
        let device_bytes = match side {
            Side::Files => self.files(),
            _ => self.range(side, zones, largest),
        };
        if zones {
            self.zones(largest);
        }
        self.maybe(2, "loops", &["1", "2", "2", "3"]);
        self.maybe(10, "number_ios", &["7", "40", "150"]);
        if self.one_in(12) {
            self.set("time_based", 1);
            self.set("runtime", "10ms");
        }
        if mix == "rw" {
            self.maybe(2, "rwmixread", &["10", "30", "50", "70", "75", "90", "99"]);
        }
        if random {
            self.order(zones || side == Side::Files);
        }
        if mix != "read" && mix != "trim" {
            self.maybe(6, "fsync", &["1", "3", "8"]);
            self.maybe(10, "fdatasync", &["1", "2", "5"]);
            self.maybe(6, "end_fsync", &["1"]);
        }
        self.maybe(3, "randrepeat", &["0", "0", "1"]);
        self.maybe(20, "randseed", &["3", "77"]);
        self.maybe(20, "allrandrepeat", &["0", "1"]);
        self.neutral();
        self.leave_out_what_is_refused();
        device_bytes
    }

    /// `rw`, with a modifier in some.
    fn pattern(&mut self, mix: &str, random: bool, zones: bool) {
        let name = match (mix, random) {
            (mix, false) => mix.to_owned(),
            (mix, true) => format!("rand{mix}"),
        };
        if zones || mix == "trimwrite" || !self.one_in(8) {
            return self.set("rw", name);
        }
        let modifiers: &[&str] = match (random, mix) {
            (true, _) => &["2", "4", "8"],
            (false, "trim") => &["4k", "12k", "-8k", "-64k"],
            (false, _) => &["4k", "12k", "512", "-8k", "-64k"],
        };
        let modifier = self.pick(modifiers);
        self.set("rw", format!("{name}:{modifier}"));
        if random {
            self.maybe(2, "rw_sequencer", &["sequential", "identical"]);
        }
    }

    fn engine(&mut self, side: Side) {
        match side {
            Side::Null => self.set("ioengine", "null"),
            Side::File | Side::Files => {
                let engine = self.pick(&["psync", "psync", "sync", "libaio", "posixaio"]);
                self.set("ioengine", engine);
            }
        }
        // With more than one request in flight, the null engine logs some twice.
        if side != Side::Null {
            self.maybe(3, "iodepth", &["1", "2", "8"]);
        }
    }

    /// Block sizes; the largest.
    fn sizes(&mut self, mix: &str, random: bool) -> u64 {
        let by_direction = mix == "rw" && self.one_in(3);
        let sizes = [4, 4, 8, 12, 16, 32].map(|kib| kib * KIB);
        match self.random.below(10) {
            0 | 1 => self.range_of_sizes(by_direction),
            2 | 3 => self.split_sizes(by_direction),
            4 if mix == "rw" => {
                let [first, second] = [self.pick(&sizes), self.pick(&sizes)];
                self.set("bs", format!("{first},{second}"));
                if self.one_in(3) {
                    self.set("bs_is_seq_rand", 1);
                }
            }
            5 if mix == "read" => {
                let bytes = self.pick(&[512, 1_536, 5 * KIB]);
                self.set("bs", bytes);
            }
            6 if by_direction => {
                let value = self.pick(&["8k,16k", "16k,", ",8k", "4k,12k,32k"]);
                self.set("bs", value);
            }
            _ => {
                let bytes = self.pick(&sizes);
                self.set("bs", bytes);
            }
        }
        if random {
            self.maybe(10, "blockalign", &["4k", "8k", "16k"]);
        }
        32 * KIB
    }

    fn range_of_sizes(&mut self, by_direction: bool) {
        let ranges = ["4k-16k", "4k-12k", "8k-20k", "4k-4k", "8k-32k"];
        let [first, second] = [self.pick(&ranges), self.pick(&ranges)];
        let both = if by_direction { format!("{first},{second}") } else { first.to_owned() };
        self.set("bsrange", both);
    }

    fn split_sizes(&mut self, by_direction: bool) {
        let splits =
            ["4k/50:16k/50", "4k/10:8k/90", "8k/30:12k/:32k/", "4k/70:8k/20:32k/10", "16k/100"];
        let [first, second] = [self.pick(&splits), self.pick(&splits)];
        let both = if by_direction { format!("{first},{second}") } else { first.to_owned() };
        self.set("bssplit", both);
    }

    /// Where it is, and how much of it; bytes of its device.
    fn range(&mut self, side: Side, zones: bool, largest: u64) -> u64 {
        let offset = match self.random.below(6) {
            0 => self.pick(&[4, 64, 100, 512]) * KIB,
            _ => 0,
        };
        if offset > 0 {
            self.set("offset", offset);
        } else if side == Side::File && self.one_in(8) {
            let percent = self.pick(&["1%", "7%", "25%"]);
            self.set("offset", percent);
            self.maybe(2, "offset_align", &["4k", "64k"]);
        }
        self.maybe(12, "offset_increment", &["64k", "1m"]);
        let kib = self.pick(&[64, 100, 128, 256, 256, 500, 512, 1_000, 1_024]);
        let bytes = (kib * KIB).max(largest);
        match side {
            Side::Null => {
                self.set("size", bytes);
                self.io_size(bytes);
                offset + bytes
            }
            Side::File | Side::Files => {
                match self.random.below(8) {
                    0 => {
                        let percent = self.pick(&["3%", "10%", "25%"]);
                        self.set("size", percent);
                    }
                    1 if !zones => self.io_size(FILE_BYTES / 4),
                    _ => {
                        self.set("size", bytes);
                        self.io_size(bytes);
                    }
                }
                FILE_BYTES
            }
        }
    }

    /// Several files; bytes of the device that they would all be on.
    fn files(&mut self) -> u64 {
        let files = self.pick(&[2, 3, 5]);
        self.set("nrfiles", files);
        if self.one_in(2) {
            let bytes = self.pick(&[64, 96, 192]) * KIB;
            self.set("filesize", bytes);
            if self.one_in(2) {
                let percent = self.pick(&[50, 100]);
                self.set("size", bytes * files * percent / 100);
            }
        } else {
            // Shares that all blocks divide: of others fio leaves some out.
            let kib = self.pick(&[96, 192, 288]);
            self.set("size", kib * files * KIB);
        }
        let services = ["roundrobin", "roundrobin:4", "sequential", "random", "random:8"];
        self.maybe(2, "file_service_type", &services);
        files * FILE_DISTANCE
    }

    fn io_size(&mut self, size: u64) {
        if self.one_in(6) {
            let percent = self.pick(&[25, 50, 130, 150, 200, 275]);
            let key = self.pick(&["io_size", "io_limit"]);
            self.set(key, size * percent / 100 / 512 * 512);
        }
    }

    /// `zonemode=strided`.
    fn zones(&mut self, largest: u64) {
        self.set("zonemode", "strided");
        let zone = self.pick(&[64, 96, 128]) * KIB;
        self.set("zonesize", zone.max(largest));
        if self.one_in(3) {
            let range = self.pick(&[64, 128]) * KIB;
            self.set("zonerange", range);
        }
        self.maybe(2, "zoneskip", &["4k", "64k", "300k", "1m"]);
    }

    /// What makes an order random.
    fn order(&mut self, zones: bool) {
        match self.random.below(8) {
            0 => self.set("norandommap", 1),
            1 if !zones => {
                let distributions = [
                    "random",
                    "zipf:1.2",
                    "zipf:0.8",
                    "pareto:0.3",
                    "normal:20",
                    "zoned:60/10:30/20:10/70",
                    "zoned:50/25:50/75",
                    "zoned_abs:70/16k:30/32k",
                ];
                let distribution = self.pick(&distributions);
                self.set("random_distribution", distribution);
            }
            2 if !zones => {
                let percent = self.pick(&["0", "20", "50", "90", "10,80"]);
                self.set("percentage_random", percent);
            }
            3 => {
                let generator = self.pick(&["tausworthe", "tausworthe64", "lfsr"]);
                self.set("random_generator", generator);
            }
            _ => {}
        }
    }

    /// What we refuse, with its place.
    fn leave_out_what_is_refused(&mut self) {
        let runs = |(key, value): &(&str, String)| match *key {
            "percentage_random" => true,
            "rw" => value.starts_with("rand") && value.contains(':'),
            _ => false,
        };
        if self.keys.iter().any(runs) {
            self.keys.retain(|(key, _)| *key != "bs_is_seq_rand");
        }
    }

    /// Keys that change nothing of what is compared.
    fn neutral(&mut self) {
        self.maybe(12, "thinktime", &["1", "2us"]);
        self.maybe(12, "softrandommap", &["1"]);
        self.maybe(12, "invalidate", &["0"]);
        self.maybe(12, "group_reporting", &["1"]);
        self.maybe(12, "refill_buffers", &["1"]);
        self.maybe(12, "write_hint", &["short"]);
        self.maybe(12, "max_latency", &["10s"]);
    }

    /// A job that ends by time, with rates; bytes of its device.
    fn paced_job(&mut self, side: Side) -> u64 {
        let mix = self.pick(&["read", "write", "rw", "rw", "rw"]);
        let random = self.one_in(2);
        self.set("rw", if random { format!("rand{mix}") } else { mix.to_owned() });
        self.engine(side);
        self.set("size", "1m");
        self.set("time_based", 1);
        self.set("runtime", "400ms");
        self.set("norandommap", 1);
        if mix == "rw" {
            self.maybe(2, "rwmixread", &["10", "30", "50", "70", "90"]);
        }
        let iops =
            ["250", "500", "1000", "400,100", "100,400", "900,300", ",200", "300,", "750,750"];
        let bytes = ["2m", "4m,1m", "1m,4m", ",1m", "2m,", "3m,3m"];
        if self.one_in(2) {
            let rate = self.pick(&iops);
            self.set("rate_iops", rate);
            let bs = self.pick(&["4k", "8k,16k", "16k"]);
            self.set("bs", bs);
        } else {
            let rate = self.pick(&bytes);
            self.set("rate", rate);
            match self.random.below(3) {
                0 => self.set("bssplit", "4k/50:16k/50"),
                1 => self.set("bs", "4k,8k"),
                _ => self.set("bs", "4k"),
            }
        }
        let unlimited = self.keys.iter().any(|(key, value)| {
            key.starts_with("rate") && (value.starts_with(',') || value.ends_with(','))
        });
        if !unlimited {
            self.maybe(5, "rate_process", &["linear", "poisson"]);
        }
        if side == Side::File { FILE_BYTES } else { 1 << 20 }
    }
}
