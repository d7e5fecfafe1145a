//! Paths with placeholders in angle brackets.

/// The directions of I/O.
const DIRECTIONS: [&str; 3] = ["read", "write", "trim"];

/// Whether `path` is what the pattern is when its placeholders are filled in.
pub(super) fn fits(pattern: &str, path: &str) -> bool {
    let Some((literal, holder, rest)) = split(pattern) else { return pattern == path };
    let Some(path) = path.strip_prefix(literal) else { return false };
    let mut ends = path.char_indices().map(|(at, char)| at + char.len_utf8());
    ends.any(|end| holds(holder, &path[..end]) && fits(rest, &path[end..]))
}

/// Paths of this pattern that a user may have meant: one for each direction.
pub(super) fn examples(pattern: &str) -> Vec<String> {
    let Some((literal, holder, rest)) = split(pattern) else { return vec![pattern.to_owned()] };
    let fillings: &[&str] = match holder {
        "direction" => &DIRECTIONS,
        "percent" => &["99"],
        "class" | "ms" => &["2"],
        "state" => &["EMPTY"],
        _ => &["0"],
    };
    let rests = examples(rest);
    let mut all = Vec::new();
    for filling in fillings {
        all.extend(rests.iter().map(|rest| format!("{literal}{filling}{rest}")));
    }
    all
}

/// What is before the first placeholder, its name, and what is after it.
fn split(pattern: &str) -> Option<(&str, &str, &str)> {
    let (literal, rest) = pattern.split_once('<')?;
    let (holder, rest) = rest.split_once('>')?;
    Some((literal, holder, rest))
}

/// Whether a placeholder may be filled with `text`.
fn holds(holder: &str, text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match holder {
        "direction" => DIRECTIONS.contains(&text),
        "percent" => text.split('.').count() <= 2 && text.split('.').all(digits),
        "class" => digits(text.strip_prefix(">=").unwrap_or(text)),
        "state" => text.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_'),
        _ => digits(text),
    }
}
