//! Colours and width: only for people who look at a terminal. What goes through a pipe or to a file
//! has neither escape codes nor a width to fit.

use anstyle::{AnsiColor, Style};
use clap::ValueEnum;
use std::io::IsTerminal;

/// When output is coloured.
#[derive(Clone, Copy, PartialEq, Eq, Default, ValueEnum, Debug)]
pub(crate) enum ColorChoice {
    /// When standard output is a terminal, and NO_COLOR is not set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// Columns where the width of the terminal is unknown.
const WIDTH: usize = 80;
/// Lines longer than this are hard to follow, however wide the terminal.
const WIDTH_MAX: usize = 120;

/// What to write with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint {
    colored: bool,
    /// Of the terminal, if there is one.
    width: Option<usize>,
}

/// What a word is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tone {
    /// What people came for.
    Figure,
    /// A heading.
    Heading,
    /// To be read last, if at all.
    Faint,
    /// Something to be careful about.
    Warning,
    /// Something that went wrong.
    Failure,
    /// User data, in bars.
    User,
    /// Copies of garbage collection.
    Gc,
    /// Padding.
    Pad,
    /// Metadata of lines, and trim records.
    Meta,
    /// Mapping blocks.
    Map,
}

impl Tone {
    fn style(self) -> Style {
        let color = |color: AnsiColor| Style::new().fg_color(Some(color.into()));
        match self {
            Self::Figure | Self::Heading => Style::new().bold(),
            Self::Faint => Style::new().dimmed(),
            Self::Warning => color(AnsiColor::Yellow),
            Self::Failure => color(AnsiColor::Red).bold(),
            Self::User => color(AnsiColor::Green),
            Self::Gc => color(AnsiColor::Red),
            Self::Pad => color(AnsiColor::Yellow),
            Self::Meta => color(AnsiColor::Blue),
            Self::Map => color(AnsiColor::Magenta),
        }
    }
}

impl Paint {
    /// For standard output, or for a file.
    pub(crate) fn new(choice: ColorChoice, to_file: bool) -> Self {
        let terminal = !to_file && std::io::stdout().is_terminal();
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let colored = match choice {
            ColorChoice::Auto => terminal && wanted,
            ColorChoice::Always => true,
            ColorChoice::Never => false,
        };
        let size = terminal_size::terminal_size().filter(|_| terminal);
        Self { colored, width: size.map(|(width, _)| usize::from(width.0).min(WIDTH_MAX)) }
    }

    /// Without colours.
    #[cfg(test)]
    pub(crate) const fn plain() -> Self {
        Self { colored: false, width: None }
    }

    /// Columns that a bar may fill.
    pub(crate) fn width(self) -> usize {
        self.width.unwrap_or(WIDTH)
    }

    /// `text` behind `first`. At a terminal, in lines that fit it, indented as far as `first` is long;
    /// elsewhere in one line, to be searched.
    pub(crate) fn wrapped(self, first: &str, text: &str) -> String {
        wrapped(first, text, self.width.unwrap_or(usize::MAX))
    }

    /// `text` in this tone.
    pub(crate) fn paint(self, tone: Tone, text: &str) -> String {
        match self.colored {
            true => {
                let style = tone.style();
                format!("{style}{text}{style:#}")
            }
            false => text.to_owned(),
        }
    }

    /// A bar of `width` columns, divided in the proportion of the parts: each in the first letter of
    /// its name, so that it reads without colours too. Parts too small for a column of their own get one if there is
    /// any left over from larger ones.
    pub(crate) fn bar(self, width: usize, parts: &[(Tone, &str, u64)]) -> String {
        let all: u64 = parts.iter().map(|(_, _, part)| *part).sum();
        if all == 0 {
            return String::new();
        }
        let mut columns: Vec<usize> = parts
            .iter()
            .map(|(_, _, part)| {
                let exact = *part as f64 * width as f64 / all as f64;
                if *part > 0 { (exact.round() as usize).max(1) } else { 0 }
            })
            .collect();
        let filled: usize = columns.iter().sum();
        if let Some(largest) = columns.iter_mut().max() {
            *largest = (*largest + width).saturating_sub(filled);
        }
        let part = |((tone, name, _), columns): (&(Tone, &str, u64), usize)| {
            let letter: String = name.chars().take(1).collect();
            self.paint(*tone, &letter.repeat(columns))
        };
        let shown = parts.iter().zip(columns).filter(|(_, columns)| *columns > 0);
        shown.map(part).collect()
    }
}

/// `text` in lines of at most `width` columns, broken between words; the first line begins behind
/// `first`, the others are indented as far.
fn wrapped(first: &str, text: &str, width: usize) -> String {
    let indent = columns_of(first);
    let mut lines = vec![first.to_owned()];
    let mut columns = indent;
    for word in text.split(' ') {
        let length = columns_of(word);
        if columns + 1 + length > width && columns > indent {
            lines.push(" ".repeat(indent));
            columns = indent;
        }
        let gap = if columns > indent { " " } else { "" };
        if let Some(line) = lines.last_mut() {
            line.push_str(gap);
            line.push_str(word);
        }
        columns += gap.len() + length;
    }
    lines.join("\n")
}

/// Columns that `text` takes: escape codes, from ESC to `m`, take none.
fn columns_of(text: &str) -> usize {
    let mut in_code = false;
    let shown = text.chars().filter(|c| {
        let shown = !in_code && *c != '\u{1b}';
        in_code = (in_code || *c == '\u{1b}') && *c != 'm';
        shown
    });
    shown.count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bar has its width, its proportions, and shows what is small.
    #[test]
    fn bars_are_proportional() {
        let bar = |parts: [u64; 3]| {
            let tones = [(Tone::User, "user"), (Tone::Gc, "gc"), (Tone::Pad, "pad")];
            let parts = tones.into_iter().zip(parts).map(|((tone, name), n)| (tone, name, n));
            Paint::plain().bar(10, &parts.collect::<Vec<_>>())
        };
        assert_eq!(bar([50, 50, 0]), "uuuuuggggg");
        assert_eq!(bar([1_000_000, 0, 1]), "uuuuuuuuup");
        assert_eq!(bar([0, 0, 0]), "");
    }

    /// Text is broken between words, and a word that is too long stays whole.
    #[test]
    fn text_is_wrapped() {
        assert_eq!(wrapped("  a: ", "one two three", 12), "  a: one two\n     three");
        assert_eq!(wrapped("", "incomprehensible", 4), "incomprehensible");
        assert_eq!(wrapped("", "\u{1b}[1mone\u{1b}[0m two", 7), "\u{1b}[1mone\u{1b}[0m two");
    }

    /// Colours come and go with the choice.
    #[test]
    fn colors_are_a_choice() {
        let painted = Paint { colored: true, width: None }.paint(Tone::Gc, "x");
        assert!(painted.starts_with('\u{1b}') && painted.ends_with("\u{1b}[0m"), "{painted:?}");
        assert_eq!(Paint::plain().paint(Tone::Gc, "x"), "x");
    }
}
