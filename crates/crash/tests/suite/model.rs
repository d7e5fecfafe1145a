//! The reference model, rule by rule ("The crash model" in DESIGN.md): each test is a short sequence of events
//! and what the sector may and may not show at its end.

use nandscape_block::{Flags, FlushScope, Owner, Payload, SectorData, Tag};
use nandscape_crash::model::{Issue, Model, Object};
use nandscape_crash::request::Sender;

const OBJECT: Object = Object(3);
const ZEROES: SectorData = SectorData::Tag(Tag::ZERO);

struct Case(Model);

/// A write and its content.
#[derive(Clone)]
struct Written(Issue, SectorData);

impl Case {
    fn new() -> Self {
        Self(Model::new(None))
    }

    fn submit(&mut self, object: Object, flags: Flags) -> Written {
        let (issue, payload) = self.0.write(object, 1, flags, Sender::ANONYMOUS);
        Written(issue, payload.sector(0))
    }

    fn ack(&mut self, written: &Written) {
        self.0.complete(&written.0, true);
    }

    fn write(&mut self) -> Written {
        self.write_with(OBJECT, Flags::NONE)
    }

    fn write_with(&mut self, object: Object, flags: Flags) -> Written {
        let written = self.submit(object, flags);
        self.ack(&written);
        written
    }

    fn discard(&mut self) {
        let issue = self.0.discard(OBJECT, 1);
        self.0.complete(&issue, true);
    }

    fn flush(&mut self) {
        let issue = self.0.flush(Sender::ANONYMOUS);
        self.0.complete(&issue, true);
    }

    fn cut(&mut self) {
        self.0.power_cut();
    }

    /// Whether the sector may show `data` after a cut; then it has.
    fn recovers(&mut self, data: &SectorData) -> bool {
        self.0.check_recovered(&[(OBJECT, data.clone())]).is_ok()
    }

    /// Whether a cut now may leave `data`.
    fn may_leave(&self, data: &SectorData) -> bool {
        let mut cut = Self(self.0.clone());
        cut.cut();
        cut.recovers(data)
    }

    fn reads(&mut self, issue: &Issue, data: &SectorData) -> bool {
        self.0.check_read(issue, &Payload::collect(vec![data.clone()])).is_ok()
    }
}

#[test]
fn without_a_flush_any_version_may_be_left() {
    let mut case = Case::new();
    let (a, b) = (case.write(), case.write());
    for data in [&ZEROES, &a.1, &b.1] {
        assert!(case.may_leave(data));
    }
}

#[test]
fn a_flush_covers_what_was_acknowledged_before_it_was_submitted() {
    let mut case = Case::new();
    let (a, b) = (case.write(), case.write());
    case.flush();
    let c = case.write();
    assert!(!case.may_leave(&ZEROES) && !case.may_leave(&a.1));
    assert!(case.may_leave(&b.1) && case.may_leave(&c.1));
}

#[test]
fn a_flush_does_not_cover_what_is_acknowledged_while_it_runs() {
    let mut case = Case::new();
    let a = case.submit(OBJECT, Flags::NONE);
    let flush = case.0.flush(Sender::ANONYMOUS);
    case.ack(&a);
    case.0.complete(&flush, true);
    assert!(case.may_leave(&ZEROES) && case.may_leave(&a.1));
}

fn owned(file: u64, generation: u32) -> Sender {
    let owner = Owner { file, generation, thread: 0, core: 0 };
    Sender { owner: Some(owner), scope: FlushScope::Owner }
}

/// A flush of one file's leaves what others wrote uncovered, the same file's earlier generation and
/// writes without a writer among it.
#[test]
fn a_flush_of_a_file_covers_its_own_writes_only() {
    for (sender, covered) in [
        (owned(1, 2), true),
        (Sender { scope: FlushScope::All, ..owned(1, 2) }, true),
        (owned(1, 1), false),
        (owned(2, 2), false),
        (Sender::ANONYMOUS, false),
    ] {
        let mut case = Case::new();
        let (issue, _) = case.0.write(OBJECT, 1, Flags::NONE, sender);
        case.0.complete(&issue, true);
        let flush = case.0.flush(owned(1, 2));
        case.0.complete(&flush, true);
        assert_eq!(case.may_leave(&ZEROES), !covered, "{sender:?}");
    }
}

/// Without an owner there is no narrower scope, and whatever is asked for, discards are covered.
#[test]
fn an_ownerless_flush_covers_everything_and_any_flush_covers_discards() {
    let mut case = Case::new();
    let a = case.write();
    let flush = case.0.flush(Sender { owner: None, scope: FlushScope::Owner });
    case.0.complete(&flush, true);
    assert!(!case.may_leave(&ZEROES));
    case.discard();
    assert!(case.may_leave(&a.1));
    let flush = case.0.flush(owned(7, 0));
    case.0.complete(&flush, true);
    assert!(!case.may_leave(&a.1));
}

/// A surviving PREFLUSH write tells of its scope only.
#[test]
fn a_surviving_preflush_of_a_file_covers_that_file() {
    let mut case = Case::new();
    let (mine, mine_data) = case.0.write(OBJECT, 1, Flags::NONE, owned(1, 0));
    let (other, _) = case.0.write(Object(5), 1, Flags::NONE, owned(2, 0));
    case.0.complete(&mine, true);
    case.0.complete(&other, true);
    let (_, commit) = case.0.write(Object(4), 1, Flags::PREFLUSH, owned(1, 0));
    case.cut();
    let survivor = (Object(4), commit.sector(0));
    let mut lost = Case(case.0.clone());
    assert!(lost.0.check_recovered(&[(OBJECT, ZEROES), survivor.clone()]).is_err());
    let left = [(OBJECT, mine_data.sector(0)), (Object(5), ZEROES), survivor];
    assert!(case.0.check_recovered(&left).is_ok());
}

#[test]
fn a_flush_that_never_completed_or_failed_covers_nothing() {
    let mut case = Case::new();
    case.write();
    let failed = case.0.flush(Sender::ANONYMOUS);
    case.0.complete(&failed, false);
    let _unfinished = case.0.flush(Sender::ANONYMOUS);
    assert!(case.may_leave(&ZEROES));
}

#[test]
fn fua_covers_itself_and_nothing_else() {
    let mut case = Case::new();
    let other = case.write_with(Object(4), Flags::NONE);
    let a = case.write_with(OBJECT, Flags::FUA);
    assert!(!case.may_leave(&ZEROES) && case.may_leave(&a.1));
    case.cut();
    assert!(case.0.check_recovered(&[(Object(4), ZEROES)]).is_ok());
    assert!(case.0.check_recovered(&[(Object(4), other.1)]).is_err(), "settled on zeroes");
}

#[test]
fn a_completed_preflush_covers_what_came_before_but_not_its_payload() {
    let mut case = Case::new();
    let a = case.write();
    let commit = case.write_with(Object(4), Flags::PREFLUSH);
    assert!(!case.may_leave(&ZEROES) && case.may_leave(&a.1));
    case.cut();
    assert!(case.0.check_recovered(&[(Object(4), ZEROES)]).is_ok());
    assert!(case.0.check_recovered(&[(Object(4), commit.1)]).is_err());
}

/// The payload of a commit is on media, though its completion was not seen: what it covers is, too.
#[test]
fn a_preflush_payload_that_survives_covers_what_came_before() {
    let mut case = Case::new();
    let a = case.write();
    let commit = case.submit(Object(4), Flags::PREFLUSH);
    case.cut();
    let mut without = Case(case.0.clone());
    assert!(without.0.check_recovered(&[(Object(4), ZEROES), (OBJECT, ZEROES)]).is_ok());
    let mut lost = Case(case.0.clone());
    let mismatch = lost.0.check_recovered(&[(OBJECT, ZEROES), (Object(4), commit.1.clone())]);
    assert_eq!(mismatch.expect_err("the commit overtook its data").object, OBJECT);
    assert!(case.0.check_recovered(&[(OBJECT, a.1), (Object(4), commit.1)]).is_ok());
}

#[test]
fn a_flushed_discard_is_not_undone() {
    let mut case = Case::new();
    let a = case.write();
    case.flush();
    case.discard();
    assert!(case.may_leave(&a.1), "not flushed yet");
    case.flush();
    assert!(!case.may_leave(&a.1) && case.may_leave(&ZEROES));
    let b = case.write();
    assert!(case.may_leave(&b.1));
}

#[test]
fn a_version_that_a_recovery_did_not_show_never_comes_back() {
    let mut case = Case::new();
    let a = case.write();
    case.flush();
    let b = case.write();
    case.cut();
    assert!(case.recovers(&a.1));
    assert!(!case.may_leave(&b.1), "void");
    let c = case.write();
    assert!(case.may_leave(&a.1) && case.may_leave(&c.1) && !case.may_leave(&b.1));
}

#[test]
fn what_a_recovery_showed_is_durable() {
    let mut case = Case::new();
    let unacknowledged = case.submit(OBJECT, Flags::NONE);
    case.cut();
    assert!(case.recovers(&unacknowledged.1));
    assert!(!case.may_leave(&ZEROES));
}

/// A flush after a recovery cannot save what the cut before has already lost.
#[test]
fn a_later_flush_does_not_cover_what_an_earlier_cut_may_have_lost() {
    let mut case = Case::new();
    let a = case.write();
    case.cut();
    case.flush();
    assert!(case.may_leave(&ZEROES) && case.may_leave(&a.1));
}

#[test]
fn a_read_returns_the_newest_acknowledged_version_or_one_in_flight() {
    let mut case = Case::new();
    let (a, b) = (case.write(), case.write());
    let c = case.submit(OBJECT, Flags::NONE);
    let read = case.0.read(OBJECT, 1);
    assert!(!case.reads(&read, &a.1) && !case.reads(&read, &ZEROES));
    assert!(case.reads(&read, &b.1) && case.reads(&read, &c.1));
    case.ack(&c);
    assert!(case.reads(&read, &b.1), "the read was issued before the acknowledgement");
    let later = case.0.read(OBJECT, 1);
    assert!(!case.reads(&later, &b.1) && case.reads(&later, &c.1));
}

/// Requests that overlap in flight have no order, so a flush after both covers either.
#[test]
fn overlapping_writes_may_end_in_any_order() {
    let mut case = Case::new();
    let (a, b) = (case.submit(OBJECT, Flags::NONE), case.submit(OBJECT, Flags::NONE));
    case.ack(&b);
    case.ack(&a);
    case.flush();
    assert!(case.may_leave(&a.1) && case.may_leave(&b.1) && !case.may_leave(&ZEROES));
}

#[test]
fn a_failed_write_may_have_happened_or_not() {
    let mut case = Case::new();
    let a = case.write();
    let b = case.submit(OBJECT, Flags::NONE);
    case.0.complete(&b.0, false);
    case.flush();
    assert!(case.may_leave(&a.1) && case.may_leave(&b.1));
    let c = case.write();
    case.flush();
    assert!(!case.may_leave(&b.1) && case.may_leave(&c.1));
}

#[test]
fn a_torn_sector_matches_no_write() {
    let mut case = Case::new();
    let a = case.write();
    let mixture = a.1.patched(0, &[0; 2048]).expect("fits");
    assert!(!case.may_leave(&mixture));
    let same_as_bytes = a.1.patched(0, &[]).expect("fits");
    assert!(case.may_leave(&same_as_bytes));
}

/// A read may fail at its own sectors where a copy of what it may show was lost; a newer version heals.
#[test]
fn a_read_fails_only_where_what_it_may_show_was_lost() {
    let mut case = Case::new();
    let a = case.write();
    case.flush();
    let read = case.0.read(OBJECT, 1);
    let lost = [a.1];
    assert!(case.0.may_fail(&read, OBJECT, &lost));
    assert!(!case.0.may_fail(&read, OBJECT, &[]), "nothing was lost");
    assert!(!case.0.may_fail(&read, Object(4), &lost), "not what was read");
    let b = case.submit(OBJECT, Flags::NONE);
    let read = case.0.read(OBJECT, 1);
    assert!(case.0.may_fail(&read, OBJECT, &lost), "the newer one is in flight");
    case.ack(&b);
    let read = case.0.read(OBJECT, 1);
    assert!(!case.0.may_fail(&read, OBJECT, &lost), "healed");
    assert!(case.0.may_fail(&read, OBJECT, &[b.1]));
}

/// Where a power cut forgets a lost copy anything earlier may show, and nothing else; what is written then
/// counts as ever.
#[test]
fn a_forgotten_copy_gives_way_to_what_was_before_it() {
    let mut case = Case::new();
    let (a, elsewhere) = (case.write(), case.write_with(Object(4), Flags::NONE));
    let b = case.write();
    case.flush();
    let mut kept = Case(case.0.clone());
    kept.cut();
    assert!(
        !kept.recovers(&a.1) && !kept.recovers(&ZEROES),
        "a copy with an address fails or shows"
    );
    case.cut();
    case.0.forget([(OBJECT, b.1.clone())]);
    for data in [&ZEROES, &a.1, &b.1] {
        assert!(Case(case.0.clone()).recovers(data));
    }
    assert!(!case.recovers(&elsewhere.1), "data of another OBJECT");
    let c = case.write();
    case.flush();
    assert!(case.may_leave(&c.1));
    assert!(!case.may_leave(&a.1) && !case.may_leave(&b.1) && !case.may_leave(&ZEROES));
}

/// What overlapped a copy that is forgotten may have been before it, although a recovery had shown the copy;
/// what was issued after its end was not.
#[test]
fn a_forgotten_copy_gives_way_to_what_overlapped_it() {
    let mut case = Case::new();
    let a = case.submit(OBJECT, Flags::NONE);
    let b = case.submit(OBJECT, Flags::NONE);
    case.ack(&b);
    case.ack(&a);
    case.flush();
    let c = case.submit(OBJECT, Flags::NONE);
    case.cut();
    assert!(case.recovers(&a.1), "the later of two that overlapped");
    case.cut();
    case.0.forget([(OBJECT, a.1.clone())]);
    for data in [&ZEROES, &a.1, &b.1] {
        assert!(Case(case.0.clone()).recovers(data));
    }
    assert!(!case.recovers(&c.1), "void");
}
