//! Where the content of a device comes from that was not preconditioned: an image, or a run. A line in the
//! text of its state says so, and which one it was.

use super::Header;

/// What wrote a device, if not preconditioning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// An image.
    Image,
    /// A run.
    Run,
}

impl Origin {
    /// In a word: the key of its line, and what results call it.
    pub(crate) const fn key(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Run => "run",
        }
    }

    /// The line of a state's text for the image or run with this hash.
    pub(crate) fn line(self, hash: u128) -> String {
        format!("{} = {hash:032x}\n", self.key())
    }

    /// Whether a device of this origin is no other for a difference in `key`: what preconditioning would
    /// have written, and which image or run it was.
    pub(crate) fn explains(self, key: &str) -> bool {
        key == self.key() || key.starts_with("precondition.")
    }
}

impl Header {
    /// Where the content of the device comes from; `None`: it was preconditioned.
    #[must_use]
    pub fn origin(&self) -> Option<Origin> {
        let keys = self.text.lines().filter_map(|line| Some(line.split_once(" = ")?.0));
        let origin = |key| [Origin::Image, Origin::Run].into_iter().find(|o| o.key() == key);
        keys.filter_map(origin).next()
    }
}
