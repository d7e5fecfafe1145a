//! `cargo xtask picture PAGE PLOT FILE`: a plot of a report as an SVG file, for docs/results.
//!
//! PAGE is a page that nandscape made, and PLOT the `id` of a plot on it, such as `d2fs-figure-13`. Debian's Chromium
//! draws the page; the file is the plot as it stands there in the light theme.

use std::path::Path;
use std::process::Command;

/// Writes a plot of a page to a file.
///
/// # Errors
/// Why the page could not be drawn, and what of it was not found.
pub(crate) fn save(page: &str, plot: &str, file: &str) -> Result<(), String> {
    let path = Path::new(page).canonicalize().map_err(|error| format!("{page}: {error}"))?;
    let svg = find(&drawn(&path)?, plot).map_err(|error| format!("{page}: {error}"))?;
    std::fs::write(file, svg).map_err(|error| format!("{file}: {error}"))
}

/// The document of a page after its scripts have run.
fn drawn(page: &Path) -> Result<String, String> {
    let mut chromium = Command::new("chromium");
    chromium.args(["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=600000"]);
    chromium
        .args(["--blink-settings=preferredColorScheme=1", "--host-resolver-rules=MAP * ~NOTFOUND"]);
    chromium.arg("--dump-dom").arg(format!("file://{}", page.display()));
    let output = chromium
        .output()
        .map_err(|error| format!("chromium, of Debian's package chromium: {error}"))?;
    String::from_utf8(output.stdout).map_err(|error| format!("what chromium printed: {error}"))
}

/// The plot of this `id` in a document, as a file of its own.
fn find(document: &str, plot: &str) -> Result<String, String> {
    let figure = format!("<figure id=\"{plot}\">");
    let (_, rest) = document
        .split_once(&figure)
        .ok_or_else(|| format!("no plot {plot}; there are {}", names(document)))?;
    let rest = rest.split("</figure>").next().unwrap_or(rest);
    let begin = rest.find("<svg").ok_or_else(|| format!("plot {plot} was not drawn"))?;
    let end = rest[begin..].find("</svg>").ok_or_else(|| format!("plot {plot} has no end"))?;
    // HTML has a name for this character, XML has none.
    Ok(rest[begin..][..end].replace("&nbsp;", "\u{a0}") + "</svg>\n")
}

/// The plots of a document.
fn names(document: &str) -> String {
    let ids = document.split("<figure id=\"").skip(1).filter_map(|rest| rest.split('"').next());
    ids.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = "<figure id=\"a\"><div><svg>one&nbsp;s</svg></div><svg>icon</svg></figure>\
        <figure id=\"b\"></figure>";

    #[test]
    fn a_plot_becomes_a_file() {
        assert_eq!(find(DOCUMENT, "a"), Ok("<svg>one\u{a0}s</svg>\n".to_owned()));
    }

    #[test]
    fn what_is_not_there_is_named() {
        assert_eq!(find(DOCUMENT, "c"), Err("no plot c; there are a, b".to_owned()));
        assert_eq!(find(DOCUMENT, "b"), Err("plot b was not drawn".to_owned()));
    }
}
