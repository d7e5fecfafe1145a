//! Silence: nobody does anything any more, although somebody waits. Daemons of a file system have timers
//! for ever, so the clock never runs out of events, and that a call hangs is known by nothing else.

use super::device::LabDevice;
use nandscape_rt::Nanos;
use nandscape_workload::wml::engine::Session;

/// When nothing has happened for so long while somebody waits, nothing will. What takes longest is the
/// write-back of a page, after half a minute.
pub(super) const HANG_LIMIT: Nanos = Nanos::from_secs(3_600);

/// A run whose time is over, and in the last tenth of which nobody has done anything.
pub(super) struct HangDetector {
    session: Session,
    now: Nanos,
    /// Flowops that were done, and when one was done last.
    heard: (u64, Nanos),
}

impl HangDetector {
    /// Ends the threads of a run, unless it is such a one.
    pub(super) fn new(
        session: Session,
        now: Nanos,
        (began, heard): (Nanos, (u64, Nanos)),
    ) -> Option<Self> {
        let (silent, all) = (now.saturating_sub(heard.1), now.saturating_sub(began));
        if session.is_over() || silent.0 <= all.0 / 10 {
            session.stop();
            return None;
        }
        Some(Self { session, now, heard })
    }

    /// Why it stood still, if it did: it goes on, when all is counted, until a thread does something or
    /// none will.
    pub(super) fn hang_reason<D: LabDevice>(self, device: &mut D) -> Option<String> {
        let mut at = self.now;
        let is_silent = |at: Nanos| at.saturating_sub(self.now) <= HANG_LIMIT;
        while self.session.done() == self.heard.0 && !self.session.is_over() && is_silent(at) {
            at = at.saturating_add(Nanos::from_secs(1));
            device.advance(at, &mut Vec::new());
        }
        let why = (!is_silent(at)).then(|| hang_message(self.heard.1, device));
        self.session.stop();
        why
    }
}

pub(super) fn hang_message<D: LabDevice>(heard: Nanos, device: &D) -> String {
    let waiting = device.waiting().unwrap_or_default();
    format!("no thread has done anything since {heard}, and none would within an hour: {waiting}")
}
