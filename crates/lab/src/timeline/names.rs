//! What commands and requests are called on a timeline, and what distinguishes them: name, category
//! and colour (of Chrome's trace viewer; Perfetto colours by name).

use nandscape_block::{Flags, Op};
use nandscape_media::{Action, Cause, Command, Kind, Status};

/// How an event looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Look {
    pub(super) name: &'static str,
    pub(super) category: &'static str,
    pub(super) colour: &'static str,
}

const fn look(name: &'static str, category: &'static str, colour: &'static str) -> Look {
    Look { name, category, colour }
}

/// A command on its unit.
pub(super) const fn command(command: &Command) -> Look {
    match command.action {
        Action::Program(Kind::Pad) => look("padding", "padding", "grey"),
        Action::Program(Kind::Smeta | Kind::Emeta) => look("program metadata", "metadata", "olive"),
        Action::Program(Kind::Map) => look("program map", "map", "yellow"),
        Action::Program(Kind::Data | Kind::None) => program(command.cause),
        Action::Read => read(command.cause),
        Action::Erase => look("erase", "erase", "terrible"),
    }
}

const fn program(cause: Cause) -> Look {
    match (cause.user > 0, cause.gc > 0, cause.pad > 0) {
        (true, true, false) => look("program, partly GC", "user,gc", "rail_animation"),
        (true, true, true) => look("program, partly GC, padded", "user,gc,padding", "rail_idle"),
        (true, false, true) => look("program, padded", "user,padding", "yellow"),
        (false, true, false) => look("GC program", "gc", "bad"),
        (false, true, true) => look("GC program, padded", "gc,padding", "bad"),
        (false, false, true) => look("padding", "padding", "grey"),
        (_, false, false) => look("program", "user", "good"),
    }
}

const fn read(cause: Cause) -> Look {
    match (cause.user > 0, cause.gc > 0) {
        (true, _) => look("read", "user", "rail_response"),
        (false, true) => look("GC read", "gc", "thread_state_iowait"),
        (false, false) => look("read metadata", "metadata", "olive"),
    }
}

/// What a program writes.
pub(super) const fn kind(action: Action) -> &'static str {
    match action {
        Action::Program(Kind::Data) => "data",
        Action::Program(Kind::Smeta) => "smeta",
        Action::Program(Kind::Emeta) => "emeta",
        Action::Program(Kind::Pad) => "pad",
        Action::Program(Kind::Map) => "map",
        Action::Program(Kind::None) => "none",
        Action::Read => "read",
        Action::Erase => "erase",
    }
}

/// How a command ended.
pub(super) const fn status(status: Status) -> &'static str {
    match status {
        Status::Ok => "ok",
        Status::ProgramFailed => "program failed",
        Status::EraseFailed => "erase failed",
        Status::Uncorrectable => "uncorrectable",
    }
}

/// A request of the workload.
pub(super) const fn request(op: Op) -> Look {
    match op {
        Op::Read => look("read", "request", "rail_response"),
        Op::Write => look("write", "request", "good"),
        Op::Flush => look("flush", "request,flush", "terrible"),
        Op::Discard => look("trim", "request", "grey"),
        _ => look("other", "request", "grey"),
    }
}

/// A request's flags, those that matter.
pub(super) fn flags(flags: Flags) -> String {
    let known = [
        (Flags::JOURNAL, "journal"),
        (Flags::META, "meta"),
        (Flags::SYNC, "sync"),
        (Flags::FUA, "fua"),
        (Flags::PREFLUSH, "preflush"),
    ];
    let set = known.into_iter().filter(|(flag, _)| flags.has(*flag));
    set.map(|(_, name)| name).collect::<Vec<_>>().join(" ")
}
