//! Lines of the resolved stack, which says what every key came out as.

use super::place::StackError;
use super::reader::Section;

/// Closes a section and heads its resolved lines, if it has any.
pub(super) fn titled(title: &str, section: Section<'_>) -> Result<String, StackError> {
    let lines = section.close()?;
    Ok(if lines.is_empty() { lines } else { format!("[{title}]\n{lines}") })
}

/// Sections behind each other, without those that say nothing.
pub(super) fn join<const N: usize>(texts: [String; N]) -> String {
    texts.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}
