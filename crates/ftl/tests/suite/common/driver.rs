//! An FTL and the time that its host has reached, driven one bio at a time or by hand.

use nandscape_block::{
    Bio, BlockError, Completion, Done, Flags, Lba, Payload, Reply, Submit, Tag, Token,
};
use nandscape_ftl::Ftl;
use nandscape_rt::Nanos;

/// An FTL, the time that its host has reached, and what mounts it again after a power cut.
pub(crate) struct Driver<F, S> {
    pub(crate) ftl: F,
    pub(crate) now: Nanos,
    pub(crate) setup: S,
}

impl<F: Ftl, S> Driver<F, S> {
    /// Drives `ftl` from the time that it has reached.
    pub(crate) fn of(ftl: F, setup: S) -> Self {
        Self { now: ftl.now(), ftl, setup }
    }

    /// Sectors that the host can address.
    pub(crate) fn sectors(&self) -> u64 {
        self.ftl.size().logical_sectors
    }

    /// Submits a bio now; the outcome if it is known.
    pub(crate) fn submit(&mut self, bio: Bio, token: u64) -> Option<Done> {
        match self.ftl.submit(self.now, bio, Token(token)) {
            Submit::Done(done) => Some(done),
            Submit::Pending => None,
        }
    }

    /// Goes on to the device's next event; what completed.
    pub(crate) fn step(&mut self) -> Vec<Completion> {
        let mut done = Vec::new();
        self.now = self.now.max(self.ftl.next_event().expect("something is in flight"));
        self.ftl.advance(self.now, &mut done);
        done
    }

    /// Goes on until nothing is in flight; no request completes.
    pub(crate) fn settle(&mut self) {
        while self.ftl.next_event().is_some() {
            assert!(self.step().is_empty(), "no request is in flight");
        }
    }

    /// Serves one bio; the device is left at its completion.
    pub(crate) fn run(&mut self, bio: Bio) -> Done {
        let mut outcome = self.submit(bio, 1);
        while outcome.is_none() {
            outcome = self.step().pop().map(|completion| completion.done);
        }
        let outcome = outcome.expect("just looked");
        self.now = self.now.max(outcome.at);
        let mut rest = Vec::new();
        self.ftl.advance(self.now, &mut rest);
        assert!(rest.is_empty(), "completed twice: {rest:?}");
        outcome
    }

    /// Writes one sector.
    pub(crate) fn write(&mut self, lba: u64, tag: u64, flags: Flags) {
        self.write_sectors(lba, 1, tag, flags);
    }

    /// Writes `sectors` sectors with one bio; sector `i` gets the tag `tag + i`.
    pub(crate) fn write_sectors(&mut self, lba: u64, sectors: u32, tag: u64, flags: Flags) {
        let bio = Bio::write(Lba(lba), sectors, Payload::Run(Tag::new(tag))).with(flags);
        assert_eq!(self.run(bio).result, Ok(Reply::None));
    }

    pub(crate) fn flush(&mut self) -> Done {
        let done = self.run(Bio::flush());
        assert_eq!(done.result, Ok(Reply::None));
        done
    }

    pub(crate) fn read(&mut self, lba: u64) -> Result<Reply, BlockError> {
        self.run(Bio::read(Lba(lba), 1)).result
    }
}

/// What a read of one sector with this tag replies.
pub(crate) fn holds(tag: u64) -> Result<Reply, BlockError> {
    Ok(Reply::Data(Payload::Run(Tag::new(tag))))
}
