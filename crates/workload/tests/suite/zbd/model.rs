//! The rules of fio's manual and of fio 3.33 (zbd.c), for one request in flight: what zones make of a list of
//! draws. It knows no locks and no depth, and looks at all zones for everything.

/// A zone: sectors below its write pointer; none: it has no pointer.
type Zone = Option<u64>;

/// What a job asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) block: u64,
    pub(crate) random: bool,
    pub(crate) mixed: bool,
    pub(crate) reads_beyond: bool,
    pub(crate) threshold: f64,
    /// Writes for a reset, 0: none.
    pub(crate) every: u64,
    /// First zone and the one behind the last.
    pub(crate) range: (u64, u64),
}

/// What happens to the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    /// First sector.
    Read(u64),
    Write(u64),
    /// A trim where there is no write pointer.
    Trim(u64),
    /// A zone with data.
    Reset(u64),
}

/// The zones.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) zone: u64,
    pub(crate) capacity: u64,
    pub(crate) max_open: usize,
    pub(crate) zones: Vec<Zone>,
    open: Vec<u64>,
    /// The last pass ended after some I/O, at a write that found no zone to open: a job with `io_size` begins again
    /// then, with draws that the model does not have.
    pub(crate) begins_again: bool,
}

/// What a pass over the range does.
struct Pass {
    rules: Rules,
    events: Vec<Event>,
    /// Where reads, writes and trims go on.
    next: [u64; 3],
    /// Sectors with data, and those of zones with pointers.
    data: (u64, u64),
    countdown: u64,
}

impl Model {
    pub(crate) fn new(zone: u64, capacity: u64, random: u64, zones: u64, max_open: usize) -> Self {
        let pointers = (0..random + zones).map(|index| (index >= random).then_some(0));
        let (zones, open) = (pointers.collect(), Vec::new());
        Self { zone, capacity, max_open, zones, open, begins_again: false }
    }

    fn written(&self, zone: u64) -> u64 {
        self.zones[zone as usize].unwrap_or(self.zone)
    }

    /// What becomes of these draws: a letter for the direction, and the first sector.
    pub(crate) fn pass(&mut self, rules: Rules, draws: &[(char, u64)]) -> Vec<Event> {
        let range = rules.range.0..rules.range.1;
        let pointed: u64 = range.clone().filter_map(|zone| self.zones[zone as usize]).sum();
        let all: u64 = range.clone().map(|zone| self.written(zone)).sum();
        let first = range.start * self.zone;
        let mut pass = Pass {
            rules,
            events: Vec::new(),
            next: [first; 3],
            data: (all, pointed),
            countdown: rules.every,
        };
        for (letter, lba) in draws {
            let reads_nothing = rules.mixed && pass.data.0 == 0 && !rules.reads_beyond;
            let letter = if reads_nothing { 'w' } else { *letter };
            let slot = "rwt".find(letter).unwrap();
            let at = if rules.random { *lba } else { self.in_order(&pass, letter, slot) };
            if at >= range.end * self.zone {
                break;
            }
            let went = match letter {
                'r' => self.read(&mut pass, at),
                'w' => self.write(&mut pass, at),
                _ => self.trim(&mut pass, at),
            };
            let Some(went) = went else {
                self.begins_again = letter == 'w' && !pass.events.is_empty();
                break;
            };
            pass.next[slot] = went;
        }
        pass.events
    }

    /// A sequence of writes leaves out what zones cannot hold.
    fn in_order(&self, pass: &Pass, letter: char, slot: usize) -> u64 {
        let at = pass.next[slot];
        let zone = at / self.zone;
        let pointed = self.zones.get(zone as usize).is_some_and(Option::is_some);
        if letter == 'w' && pointed && at >= zone * self.zone + self.capacity {
            return (zone + 1) * self.zone;
        }
        at
    }

    /// The nearest zones first, or those behind.
    fn others(&self, rules: Rules, zone: u64) -> Vec<u64> {
        let mut others: Vec<u64> =
            (rules.range.0..rules.range.1).filter(|other| *other != zone).collect();
        match rules.random {
            true => others.sort_by_key(|other| (other.abs_diff(zone), *other < zone)),
            false => others.retain(|other| *other > zone),
        }
        others
    }

    fn read(&mut self, pass: &mut Pass, at: u64) -> Option<u64> {
        let Rules { block, random, .. } = pass.rules;
        let drawn = at / self.zone;
        if self.zones[drawn as usize].is_none() || pass.rules.reads_beyond {
            pass.events.push(Event::Read(at));
            return Some(at + block);
        }
        let (start, written) = (drawn * self.zone, self.written(drawn));
        let beyond = !random && at + block > start + written;
        let zone = if written < block || beyond {
            self.others(pass.rules, drawn).into_iter().find(|zone| self.written(*zone) >= block)?
        } else {
            drawn
        };
        let written = self.written(zone);
        let within = match (random, zone == drawn) {
            _ if written <= block => 0,
            (true, _) => (at - start) % (written - block) / block * block,
            (false, true) => at - start,
            (false, false) => 0,
        };
        let lba = zone * self.zone + within;
        pass.events.push(Event::Read(lba));
        Some(lba + block)
    }

    /// Whether a write may go to this zone; it is open then.
    fn opens(&mut self, zone: u64) -> bool {
        if self.max_open == 0 || self.open.contains(&zone) {
            return true;
        }
        let room = self.open.len() < self.max_open;
        if room {
            self.open.push(zone);
        }
        room
    }

    /// The zone that a write goes to instead.
    fn instead(&mut self, rules: Rules, at: u64) -> Option<u64> {
        let (first, end) = rules.range;
        let place = (at - first * self.zone) * self.open.len() as u64 / ((end - first) * self.zone);
        self.open.rotate_left(place as usize);
        let found = self.open.iter().copied().find(|zone| (first..end).contains(zone));
        self.open.rotate_right(place as usize);
        let found = found?;
        if self.written(found) + rules.block <= self.capacity {
            return Some(found);
        }
        let around = (found + 1..end).chain(first..=found);
        let mut closed: Vec<u64> =
            around.filter(|zone| self.zones[*zone as usize].is_some()).collect();
        closed.retain(|zone| !self.open.contains(zone));
        if let Some(zone) = closed.into_iter().find(|zone| self.opens(*zone)) {
            return Some(zone);
        }
        let fits = |zone: &u64| self.written(*zone) + rules.block <= self.capacity;
        self.open.iter().copied().filter(|zone| (first..end).contains(zone)).find(fits)
    }

    fn write(&mut self, pass: &mut Pass, at: u64) -> Option<u64> {
        let Rules { block, threshold, every, range, .. } = pass.rules;
        let drawn = at / self.zone;
        if self.zones[drawn as usize].is_none() {
            pass.events.push(Event::Write(at));
            return Some(at + block);
        }
        let zone = if self.opens(drawn) { drawn } else { self.instead(pass.rules, at)? };
        let all = (range.1 - range.0) * self.zone;
        let mut resets = self.written(zone) + block > self.capacity;
        if every > 0 && pass.data.1 as f64 >= all as f64 * threshold {
            pass.countdown -= 1;
            if pass.countdown == 0 {
                (resets, pass.countdown) = (true, every);
            }
        }
        if resets {
            self.reset(pass, zone);
        }
        let written = self.written(zone);
        self.zones[zone as usize] = Some(written + block);
        if written + block >= self.capacity {
            self.open.retain(|open| *open != zone);
        }
        pass.data = (pass.data.0 + block, pass.data.1 + block);
        let lba = zone * self.zone + written;
        pass.events.push(Event::Write(lba));
        Some(lba + block)
    }

    fn reset(&mut self, pass: &mut Pass, zone: u64) {
        let written = self.written(zone);
        if written > 0 {
            pass.events.push(Event::Reset(zone));
            self.zones[zone as usize] = Some(0);
            pass.data = (pass.data.0.saturating_sub(written), pass.data.1.saturating_sub(written));
        }
    }

    fn trim(&mut self, pass: &mut Pass, at: u64) -> Option<u64> {
        let drawn = at / self.zone;
        if self.zones[drawn as usize].is_none() {
            pass.events.push(Event::Trim(at));
            return Some(at + self.zone);
        }
        let zone = if pass.rules.random && self.written(drawn) == 0 {
            let data = |zone: &u64| self.zones[*zone as usize].is_some_and(|written| written > 0);
            self.others(pass.rules, drawn).into_iter().find(data)?
        } else {
            drawn
        };
        self.reset(pass, zone);
        Some((zone + 1) * self.zone)
    }
}
