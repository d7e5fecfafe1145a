//! The operations that flowops do, by Filebench's names, and which attributes mean something to each.

/// An operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "Filebench's names; docs/formats/wml.md says what each does")]
pub enum Op {
    Read,
    Write,
    Block,
    Wakeup,
    Semblock,
    Sempost,
    Hog,
    Delay,
    Eventlimit,
    Bwlimit,
    Iopslimit,
    Opslimit,
    Finishoncount,
    Finishonbytes,
    Openfile,
    Createfile,
    Closefile,
    Makedir,
    Removedir,
    Listdir,
    Fsync,
    Fsyncset,
    Statfile,
    Readwholefile,
    Writewholefile,
    Appendfile,
    Appendfilerand,
    Deletefile,
    Print,
    Aiowrite,
    Aiowait,
}

/// Which totals an operation counts in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// I/O, which the summary counts.
    Io,
    /// Asynchronous I/O, likewise.
    Aio,
    /// Waiting for another thread.
    Sync,
    /// Anything else.
    Other,
}

/// Which way an operation moves data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// From files.
    Read,
    /// To files.
    Write,
}

/// Every operation by name.
pub const OPS: [(&str, Op); 31] = [
    ("read", Op::Read),
    ("write", Op::Write),
    ("block", Op::Block),
    ("wakeup", Op::Wakeup),
    ("semblock", Op::Semblock),
    ("sempost", Op::Sempost),
    ("hog", Op::Hog),
    ("delay", Op::Delay),
    ("eventlimit", Op::Eventlimit),
    ("bwlimit", Op::Bwlimit),
    ("iopslimit", Op::Iopslimit),
    ("opslimit", Op::Opslimit),
    ("finishoncount", Op::Finishoncount),
    ("finishonbytes", Op::Finishonbytes),
    ("openfile", Op::Openfile),
    ("createfile", Op::Createfile),
    ("closefile", Op::Closefile),
    ("makedir", Op::Makedir),
    ("removedir", Op::Removedir),
    ("listdir", Op::Listdir),
    ("fsync", Op::Fsync),
    ("fsyncset", Op::Fsyncset),
    ("statfile", Op::Statfile),
    ("readwholefile", Op::Readwholefile),
    ("writewholefile", Op::Writewholefile),
    ("appendfile", Op::Appendfile),
    ("appendfilerand", Op::Appendfilerand),
    ("deletefile", Op::Deletefile),
    ("print", Op::Print),
    ("aiowrite", Op::Aiowrite),
    ("aiowait", Op::Aiowait),
];

/// Every attribute that a flowop may have.
pub(super) const ATTRIBUTES: [&str; 19] = [
    "name",
    "iters",
    "filesetname",
    "filename",
    "fd",
    "srcfd",
    "iosize",
    "workingset",
    "random",
    "zipf",
    "dsync",
    "directio",
    "noreadahead",
    "opennext",
    "indexed",
    "value",
    "target",
    "blocking",
    "highwater",
];

impl Op {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        OPS.iter().find(|(_, op)| *op == self).map_or("", |(name, _)| name)
    }

    /// The operation of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        OPS.iter().find(|(known, _)| *known == name).map(|(_, op)| *op)
    }

    /// Which totals it counts in.
    #[must_use]
    pub const fn class(self) -> Class {
        use Op::{
            Aiowait, Aiowrite, Block, Bwlimit, Delay, Eventlimit, Finishonbytes, Finishoncount,
            Hog, Iopslimit, Opslimit, Print, Semblock, Sempost, Wakeup,
        };
        match self {
            Aiowrite | Aiowait => Class::Aio,
            Block | Wakeup | Semblock | Sempost => Class::Sync,
            Hog | Delay | Eventlimit | Bwlimit | Iopslimit | Opslimit | Finishoncount
            | Finishonbytes | Print => Class::Other,
            _ => Class::Io,
        }
    }

    /// Which way it moves data, if it does.
    #[must_use]
    pub const fn way(self) -> Option<Way> {
        match self {
            Self::Read | Self::Readwholefile => Some(Way::Read),
            Self::Write
            | Self::Writewholefile
            | Self::Appendfile
            | Self::Appendfilerand
            | Self::Aiowrite => Some(Way::Write),
            _ => None,
        }
    }

    /// Whether it works on a file that it opens itself if it is not open.
    pub(super) const fn opens(self) -> bool {
        self.way().is_some() || matches!(self, Self::Openfile)
    }

    /// Whether it cannot do without a fileset.
    pub(super) const fn needs_fileset(self) -> bool {
        matches!(
            self,
            Self::Openfile
                | Self::Createfile
                | Self::Makedir
                | Self::Removedir
                | Self::Listdir
                | Self::Fsyncset
        )
    }

    /// Whether it counts reads and writes alone.
    pub(super) const fn watches_data(self) -> bool {
        matches!(self, Self::Bwlimit | Self::Iopslimit | Self::Finishonbytes)
    }

    /// Whether an attribute means something to it.
    pub(super) fn takes(self, attribute: &str) -> bool {
        let limits = [Self::Bwlimit, Self::Iopslimit, Self::Opslimit];
        let finishes = [Self::Finishoncount, Self::Finishonbytes];
        let picks = self.opens()
            || self.needs_fileset()
            || matches!(self, Self::Deletefile | Self::Statfile);
        let has_fd = self.opens()
            || [Self::Createfile, Self::Closefile, Self::Deletefile, Self::Statfile, Self::Fsync]
                .contains(&self);
        match attribute {
            "name" | "iters" => true,
            "filename" | "filesetname" => picks,
            "indexed" => picks && !matches!(self, Self::Listdir | Self::Fsyncset),
            "fd" | "opennext" => has_fd,
            "srcfd" => self == Self::Writewholefile,
            "dsync" | "directio" | "noreadahead" => self.opens() || self == Self::Createfile,
            "iosize" => self.way().is_some(),
            "workingset" => self.way().is_some(),
            "random" | "zipf" => matches!(self, Self::Read | Self::Write | Self::Aiowrite),
            "value" => {
                finishes.contains(&self)
                    || matches!(
                        self,
                        Self::Hog | Self::Delay | Self::Semblock | Self::Sempost | Self::Print
                    )
            }
            "target" => {
                limits.contains(&self)
                    || finishes.contains(&self)
                    || matches!(self, Self::Wakeup | Self::Sempost)
            }
            "blocking" => self == Self::Sempost,
            "highwater" => self == Self::Semblock,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names lead to operations and back, and every attribute means something to one of them.
    #[test]
    fn names_are_complete() {
        for (name, op) in OPS {
            assert_eq!(Op::named(name), Some(op));
            assert_eq!(op.name(), name);
        }
        for attribute in ATTRIBUTES {
            assert!(OPS.iter().any(|(_, op)| op.takes(attribute)), "{attribute}");
        }
    }
}
