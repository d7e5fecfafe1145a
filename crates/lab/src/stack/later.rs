//! Keys of the stack file that the grammar knows and this version does not serve yet, so that they
//! are answered as such and not as spelling mistakes.

/// Key path, and what it belongs to.
const KEYS: &[(&str, &str)] = &[("fs", "file systems")];

/// What the key at `path` belongs to, if it is one of them.
pub(super) fn about(path: &str) -> Option<&'static str> {
    KEYS.iter().find(|(key, _)| *key == path).map(|(_, what)| *what)
}
