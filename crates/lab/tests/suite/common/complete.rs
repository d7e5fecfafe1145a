//! A complete stack without `extends`, to which tests of keys add lines.

use nandscape_lab::stack::Stack;

/// Nothing is set on a command line.
pub(crate) const NONE: [&str; 0] = [];

pub(crate) const MEDIA: &str = "[media]
groups = 2
units = 4
chunks = 60
sectors = 4096
ws_min = 4
ws_opt = 8
mw_cunits = 24
timing = \"none\"
";

/// Why a stack is refused.
pub(crate) fn error(text: &str) -> String {
    Stack::parse("my.toml", text, &NONE).unwrap_err().to_string()
}
