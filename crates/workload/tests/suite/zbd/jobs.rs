//! Jobs as these tests vary them: as text for a job file, and as rules for the model.

use super::model::{Model, Rules};

/// The zones that jobs run on, in sectors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) zone: u64,
    pub(crate) capacity: u64,
    /// Zones without write pointers, in front of the others.
    pub(crate) random: u64,
    pub(crate) zones: u64,
    pub(crate) max_open: u32,
}

impl Shape {
    pub(crate) const fn all(&self) -> u64 {
        self.random + self.zones
    }

    pub(crate) fn model(&self) -> Model {
        Model::new(self.zone, self.capacity, self.random, self.zones, self.max_open as usize)
    }

    /// Keys of all jobs; `thinks` says where the device has no zones.
    pub(crate) fn global(&self, thinks: bool) -> String {
        let mut keys = "direct=1\nzonemode=zbd\n".to_owned();
        if thinks {
            keys +=
                &format!("zonesize={}\nzonecapacity={}\n", self.zone * 4096, self.capacity * 4096);
        }
        if self.max_open > 0 {
            keys += &format!("max_open_zones={}\n", self.max_open);
        }
        keys
    }
}

/// A job with one request in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    pub(crate) rw: &'static str,
    /// In sectors; trims are whole zones.
    pub(crate) block: u64,
    /// I/Os at most.
    pub(crate) ios: u64,
    pub(crate) reads_beyond: bool,
    pub(crate) threshold: f64,
    pub(crate) frequency: f64,
    /// First zone, and zones.
    pub(crate) range: (u64, u64),
}

impl Job {
    pub(crate) fn is_random(&self) -> bool {
        self.rw.starts_with("rand")
    }

    /// Sectors of an I/O.
    pub(crate) fn block(&self, shape: &Shape) -> u64 {
        if self.rw.ends_with("trim") { shape.zone } else { self.block }
    }

    /// Keys that say what is drawn.
    pub(crate) fn drawn(&self, shape: &Shape) -> String {
        let Self { rw, ios, range: (first, zones), .. } = self;
        let block = self.block(shape) * 4096;
        let (offset, size) = (first * shape.zone * 4096, zones * shape.zone * 4096);
        let mut keys = format!(
            "[job{rw}]\nstonewall\nrw={rw}\nbs={block}\noffset={offset}\nsize={size}\nnumber_ios={ios}\n"
        );
        if self.is_random() {
            keys += "norandommap\n";
        }
        if *rw == "randwrite" {
            // Other jobs may find nothing to do, and would begin again with this.
            keys += &format!("io_size={}\n", ios * block);
        }
        keys
    }

    /// Keys that say what zones make of it.
    pub(crate) fn zoned(&self) -> String {
        let mut keys = String::new();
        if self.reads_beyond {
            keys += "read_beyond_wp=1\n";
        }
        if self.frequency > 0.0 {
            keys += &format!(
                "zone_reset_threshold={}\nzone_reset_frequency={}\n",
                self.threshold, self.frequency
            );
        }
        keys
    }

    pub(crate) fn rules(&self, shape: &Shape) -> Rules {
        let (first, zones) = self.range;
        Rules {
            block: self.block(shape),
            random: self.is_random(),
            mixed: self.rw.ends_with("rw"),
            reads_beyond: self.reads_beyond,
            threshold: self.threshold,
            every: if self.frequency > 0.0 { (1.0 / self.frequency) as u64 } else { 0 },
            range: (first, first + zones),
        }
    }
}
