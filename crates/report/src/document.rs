//! A page that is put together by the caller: sections of words, tables and plots, in
//! the order in which they are added, in the same dress as every report.

use crate::escape::escape;
use crate::page::{begin, boxed, cards, contents, copyable, facts_of, nav, shell};
use crate::plot::{Plot, slug};
use std::fmt::Write;

/// What a word stands for; colour and word show it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Tone {
    /// Nothing in particular.
    #[default]
    Plain,
    /// As it should be.
    Good,
    /// Not quite.
    Fair,
    /// Not as it should be.
    Bad,
    /// Unknown.
    Unknown,
}

impl Tone {
    const fn class(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Good => "good",
            Self::Fair => "fair",
            Self::Bad => "bad",
            Self::Unknown => "unknown",
        }
    }
}

/// A cell of a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cell {
    /// What the row is about.
    Head(String),
    /// A number.
    Number(String),
    /// The same, as a link to a place of the page: its id, and what it says.
    Link(String, String),
    /// Words, which may take several lines.
    Words(String),
    /// A word with a meaning.
    Badge(Tone, String),
}

/// A row of a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    /// One for each column.
    pub cells: Vec<Cell>,
    /// Words about the whole row, which stand below it from its first column to its last.
    pub below: Option<String>,
}

impl From<Vec<Cell>> for Row {
    fn from(cells: Vec<Cell>) -> Self {
        Self { cells, below: None }
    }
}

/// The current chapter of a page.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Chapter {
    id: String,
    /// Where the links to its sections belong.
    links_at: usize,
    /// Its sections: id and title.
    sections: Vec<(String, String)>,
}

/// A page under construction.
#[derive(Clone, PartialEq, Debug)]
pub struct Document {
    title: String,
    subtitle: String,
    main: String,
    in_section: bool,
    chapter: Option<Chapter>,
    plots: Vec<Plot>,
}

impl Document {
    /// An empty page.
    #[must_use]
    pub fn new(title: &str, subtitle: &str) -> Self {
        let (title, subtitle) = (title.to_owned(), subtitle.to_owned());
        Self {
            title,
            subtitle,
            main: String::new(),
            in_section: false,
            chapter: None,
            plots: Vec::new(),
        }
    }

    /// Begins a chapter, which links lead to under `id`.
    pub fn chapter(&mut self, id: &str, title: &str) {
        self.end_chapter();
        let _ =
            write!(self.main, "<h1 class=\"chapter\" id=\"{}\">{}</h1>", escape(id), escape(title));
        let (id, links_at) = (id.to_owned(), self.main.len());
        self.chapter = Some(Chapter { id, links_at, sections: Vec::new() });
    }

    /// Ends the chapter: what follows belongs to none. The links to its sections stand below its title.
    pub fn end_chapter(&mut self) {
        self.end_section();
        if let Some(Chapter { links_at, sections, .. }) = self.chapter.take() {
            self.main.insert_str(links_at, &nav("", &sections));
        }
    }

    /// Begins a section.
    pub fn section(&mut self, title: &str) {
        self.end_section();
        let section = match &mut self.chapter {
            None => begin(&slug(title), title),
            Some(chapter) => {
                let id = slug(&format!("{} {title}", chapter.id));
                chapter.sections.push((id.clone(), title.to_owned()));
                begin(&id, title)
            }
        };
        self.main.push_str(&section);
        self.in_section = true;
    }

    /// Begins a part of a section.
    pub fn heading(&mut self, title: &str) {
        let _ = write!(self.main, "<h3>{}</h3>", escape(title));
    }

    /// A paragraph.
    pub fn text(&mut self, text: &str) {
        let _ = write!(self.main, "<p>{}</p>", escape(text));
    }

    /// A paragraph for those who read everything.
    pub fn note(&mut self, text: &str) {
        let _ = write!(self.main, "<p class=\"note\">{}</p>", escape(text));
    }

    /// Links to chapters, which stay in sight: id, and what it says.
    pub fn links(&mut self, links: &[(String, String)]) {
        self.main.push_str(&contents(links));
    }

    /// A place that links lead to.
    pub fn anchor(&mut self, id: &str) {
        let _ = write!(self.main, "<span id=\"{}\"></span>", escape(id));
    }

    /// Facts, each with its name.
    pub fn facts(&mut self, facts: &[(String, String)]) {
        self.main.push_str(&facts_of(facts));
    }

    /// What went wrong, which a reader has to see first; nothing if nothing did.
    pub fn failures(&mut self, title: &str, failures: &[String]) {
        self.main.push_str(&boxed("warnings bad", title, failures));
    }

    /// A table.
    pub fn table<R: Into<Row>>(&mut self, headers: &[&str], rows: impl IntoIterator<Item = R>) {
        let rows: Vec<Row> = rows.into_iter().map(Into::into).collect();
        self.main.push_str("<div class=\"scroll\"><table><thead><tr>");
        let first = rows.first().map_or(&[][..], |row| &row.cells);
        for (at, header) in headers.iter().enumerate() {
            let words =
                matches!(first.get(at), Some(Cell::Words(_) | Cell::Head(_) | Cell::Link(..)));
            let class = if words { " class=\"words\"" } else { "" };
            let _ = write!(self.main, "<th scope=\"col\"{class}>{}</th>", escape(header));
        }
        self.main.push_str("</tr></thead><tbody>");
        rows.iter().for_each(|row| self.row(row));
        self.main.push_str("</tbody></table></div>");
    }

    fn row(&mut self, row: &Row) {
        self.main.push_str("<tr>");
        row.cells.iter().for_each(|cell| self.cell(cell));
        self.main.push_str("</tr>");
        if let Some(below) = &row.below {
            let (columns, below) = (row.cells.len(), escape(below));
            let cell = format!("<td class=\"words\" colspan=\"{columns}\">{below}</td>");
            let _ = write!(self.main, "<tr class=\"below\">{cell}</tr>");
        }
    }

    fn cell(&mut self, cell: &Cell) {
        let _ = match cell {
            Cell::Head(text) => write!(self.main, "<th scope=\"row\">{}</th>", escape(text)),
            Cell::Link(id, text) => {
                let (id, text) = (escape(id), escape(text));
                write!(self.main, "<th scope=\"row\"><a href=\"#{id}\">{text}</a></th>")
            }
            Cell::Number(text) => write!(self.main, "<td>{}</td>", escape(text)),
            Cell::Words(text) => write!(self.main, "<td class=\"words\">{}</td>", escape(text)),
            Cell::Badge(tone, text) => {
                let class = tone.class();
                write!(self.main, "<td><span class=\"badge {class}\">{}</span></td>", escape(text))
            }
        };
    }

    /// Plots beside each other; nothing without any.
    pub fn plots(&mut self, plots: Vec<Plot>) {
        if !plots.is_empty() {
            cards(&mut self.main, &plots);
            self.plots.extend(plots);
        }
    }

    /// Text to be copied.
    pub fn code(&mut self, text: &str) {
        self.main.push_str(&copyable(text));
    }

    /// Text to be unfolded.
    pub fn folded(&mut self, summary: &str, text: &str) {
        let (summary, text) = (escape(summary), copyable(text));
        let _ = write!(self.main, "<details><summary>{summary}</summary>{text}</details>");
    }

    fn end_section(&mut self) {
        if std::mem::take(&mut self.in_section) {
            self.main.push_str("</section>");
        }
    }

    /// The page.
    #[must_use]
    pub fn html(mut self) -> String {
        self.end_chapter();
        shell(&self.title, &self.subtitle, &self.main, &self.plots.iter().collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever a text holds, it is text; and sections close.
    #[test]
    fn texts_are_no_tags() {
        let mut page = Document::new("a < b", "c & d");
        page.section("<one>");
        page.table(&["h"], [vec![Cell::Head("<i>".into()), Cell::Badge(Tone::Bad, "no".into())]]);
        let cells = vec![Cell::Number("1".into())];
        page.table(&["h"], [Row { cells, below: Some("<b>".into()) }]);
        page.section("two");
        page.anchor("place");
        page.chapter("one", "One");
        page.section("three");
        page.table(&["h"], [vec![Cell::Link("place".into(), "there".into())]]);
        page.text("<script>");
        let html = page.html();
        assert!(html.contains("<title>a &lt; b</title>") && html.contains("<p>c &amp; d</p>"));
        assert!(html.contains("&lt;i&gt;") && html.contains("<span class=\"badge bad\">no</span>"));
        assert!(html.contains("<p>&lt;script&gt;</p>"));
        let row = "</tr><tr class=\"below\"><td class=\"words\" colspan=\"1\">&lt;b&gt;</td></tr>";
        assert!(html.contains(row));
        assert!(html.contains("<nav><a href=\"#one-three\">three</a></nav>"));
        assert!(
            html.contains("<span id=\"place\">") && html.contains("<a href=\"#place\">there</a>")
        );
        assert_eq!(html.matches("<section ").count(), html.matches("</section>").count());
    }
}
