//! One request of a load, and who asks.

use nandscape_block::zone::{ZoneAction, ZoneId};
use nandscape_block::{Bio, Flags, FlushScope, Lba, Op, Owner, Payload};

/// Who asks, and what a barrier of theirs covers.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Sender {
    /// Whose data it is, when known.
    pub owner: Option<Owner>,
    /// What a flush, or PREFLUSH, covers.
    pub scope: FlushScope,
}

impl Sender {
    /// No stream.
    pub const ANONYMOUS: Self = Self { owner: None, scope: FlushScope::All };

    /// The one file that a barrier covers; `None` covers everything.
    #[must_use]
    pub fn file(&self) -> Option<(u64, u32)> {
        let scoped = self.owner.filter(|_| self.scope == FlushScope::Owner);
        scoped.map(|owner| (owner.file, owner.generation))
    }
}

/// One request at an address, before the model gives it its content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Request {
    /// Read so many sectors.
    Read(Lba, u32),
    /// Write so many sectors, with these flags.
    Write(Lba, u32, Flags, Sender),
    /// Append so many sectors to a zone. No other request writes to that zone in the meantime, so
    /// that they go to this address.
    Append(ZoneId, Lba, u32, Flags, Sender),
    /// Discard so many sectors.
    Discard(Lba, u32),
    /// Reset a zone, which has so many sectors from here on.
    Reset(ZoneId, Lba, u32),
    /// Report so many zones from the one at this address on.
    Report(Lba, u32),
    /// Flush what the sender asks for.
    Flush(Sender),
    /// Fetch at most so many moves.
    FetchUpcall(u32),
    /// A fetched batch is in the host's metadata.
    CompleteUpcall(u64),
    /// The same of a batch that was completed before: the device refuses it.
    CompleteUpcallAgain(u64),
}

impl Request {
    /// Whether its completion promises that something is durable.
    #[must_use]
    pub fn is_barrier(&self) -> bool {
        match self {
            Self::Flush(_) => true,
            Self::Write(_, _, flags, _) | Self::Append(_, _, _, flags, _) => {
                flags.has(Flags::FUA) || flags.has(Flags::PREFLUSH)
            }
            _ => false,
        }
    }

    /// What it is called.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Read(..) => "read",
            Self::Write(..) => "write",
            Self::Append(..) => "zone append",
            Self::Discard(..) => "discard",
            Self::Reset(..) => "zone reset",
            Self::Report(..) => "zone report",
            Self::Flush(_) => "flush",
            Self::FetchUpcall(_) => "upcall fetch",
            Self::CompleteUpcall(_) => "upcall completion",
            Self::CompleteUpcallAgain(_) => "repeated upcall completion",
        }
    }

    /// Its sectors, flags and sender, or what else it is about, with a space before it.
    pub(crate) fn details(&self) -> String {
        match *self {
            Self::Read(lba, sectors)
            | Self::Discard(lba, sectors)
            | Self::Reset(_, lba, sectors) => range(lba, sectors),
            Self::Write(lba, sectors, flags, sender)
            | Self::Append(_, lba, sectors, flags, sender) => {
                range(lba, sectors) + &noted(flags, sender)
            }
            Self::Report(lba, zones) => format!(" of {zones} zones from {lba}"),
            Self::Flush(sender) => sender.file().map_or_else(String::new, |(file, generation)| {
                format!(" of file {file} alone, generation {generation}")
            }),
            Self::FetchUpcall(most) => format!(" of at most {most} moves"),
            Self::CompleteUpcall(id) | Self::CompleteUpcallAgain(id) => format!(" of batch {id}"),
        }
    }

    /// Its bio, with this content.
    #[must_use]
    pub fn bio(&self, payload: Payload) -> Bio {
        let write = |lba, sectors, flags, sender| {
            sent_by(sender, Bio::write(lba, sectors, payload).with(flags))
        };
        match *self {
            Self::Read(lba, sectors) => Bio::read(lba, sectors),
            Self::Write(lba, sectors, flags, sender) => write(lba, sectors, flags, sender),
            Self::Append(zone, lba, sectors, flags, sender) => {
                Bio { op: Op::ZoneAppend(zone), ..write(lba, sectors, flags, sender) }
            }
            Self::Discard(lba, sectors) => Bio::discard(lba, sectors),
            Self::Reset(zone, lba, _) => Bio::new(Op::Zone(zone, ZoneAction::Reset), lba, 0),
            Self::Report(lba, zones) => Bio::new(Op::ZoneReport, lba, zones),
            Self::Flush(sender) => sent_by(sender, Bio::flush()),
            Self::FetchUpcall(most) => Bio::new(Op::FetchUpcall, Lba(0), most),
            Self::CompleteUpcall(id) | Self::CompleteUpcallAgain(id) => {
                Bio::new(Op::CompleteUpcall(id), Lba(0), 0)
            }
        }
    }
}

fn sent_by(sender: Sender, bio: Bio) -> Bio {
    Bio { owner: sender.owner, scope: sender.scope, ..bio }
}

/// Sectors, the last one included.
fn range(lba: Lba, sectors: u32) -> String {
    match sectors {
        0 | 1 => format!(" {lba}"),
        _ => format!(" {lba}..{}", lba.0 + u64::from(sectors) - 1),
    }
}

/// Flags by name, and who asks.
fn noted(flags: Flags, sender: Sender) -> String {
    let preflush = match sender.file() {
        Some((file, _)) => format!("preflush of file {file}"),
        None => "preflush".to_owned(),
    };
    let known = [
        (Flags::FUA, "fua"),
        (Flags::PREFLUSH, &preflush),
        (Flags::JOURNAL, "journal"),
        (Flags::META, "metadata"),
        (Flags::SYNC, "sync"),
    ];
    let set = known.into_iter().filter(|(flag, _)| flags.has(*flag));
    let mut notes: Vec<String> = set.map(|(_, name)| name.to_owned()).collect();
    if let Some(Owner { file, generation, .. }) = sender.owner {
        notes.push(format!("file {file}"));
        notes.extend((generation > 0).then(|| format!("generation {generation}")));
    }
    if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) }
}
