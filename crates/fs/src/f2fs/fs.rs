//! The contract, kept by a mounted F2FS.

use super::volume::Volume;
use std::rc::Rc;

/// A mounted F2FS. Cheap to clone; clones are the same mount.
pub struct F2fs(pub(super) Rc<Volume>);
