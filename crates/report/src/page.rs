//! The page: one HTML file with everything in it. Its content policy forbids every connection, so a
//! report cannot but work offline.

use crate::escape::escape;
use crate::facts::{facts, headlines};
use crate::plot::{Plot, slug};
use crate::plots::{Section, sections};
use crate::results::tables;
use crate::table::table;
use crate::theme::{FONT, Theme};
use crate::{Kind, Report};
use serde_json::{Value, json};
use std::fmt::Write;

const STYLE: &str = include_str!("../page/style.css");
const SCRIPT: &str = include_str!("../page/script.js");
/// In the order in which they need each other.
const LIBRARIES: [&str; 3] = [
    include_str!("../vendor/vega.min.js"),
    include_str!("../vendor/vega-lite.min.js"),
    include_str!("../vendor/vega-embed.min.js"),
];
const LICENCES: [(&str, &str); 3] = [
    ("vega", include_str!("../vendor/vega.LICENSE")),
    ("vega-lite", include_str!("../vendor/vega-lite.LICENSE")),
    ("vega-embed", include_str!("../vendor/vega-embed.LICENSE")),
];
/// Vega compiles expressions, and exports pictures as blobs.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; \
    style-src 'unsafe-inline'; img-src data: blob:";
/// Resolved stacks that can be unfolded, and warnings that need no unfolding.
const STACKS_MAX: usize = 8;
const WARNINGS_MAX: usize = 5;

/// The whole page.
pub(crate) fn page(report: &Report) -> String {
    let sections = sections(report);
    let summary = summary(report);
    let own = [("Summary", !summary.is_empty())].into_iter().filter(|(_, has)| *has);
    let titles = own.map(|(title, _)| title).chain(sections.iter().map(|section| section.title));
    let places = titles.chain([REPRODUCE]).map(|title| (slug(title), title.to_owned()));
    let mut out = contents(&places.collect::<Vec<_>>());
    out.push_str(&warning_box(report));
    out.push_str(&fact_list(report));
    if report.kind() == Kind::Run {
        out.push_str(&tiles(report));
    }
    if !summary.is_empty() {
        let _ = write!(out, "{}{summary}</section>", begin("summary", "Summary"));
    }
    for section in &sections {
        section_of_plots(&mut out, section);
    }
    out.push_str(&again(report));
    let plots: Vec<&Plot> = sections.iter().flat_map(|section| &section.plots).collect();
    shell(&report.title, &subtitle(report), &out, &plots)
}

/// The heading of the section that says how to make the page again.
const REPRODUCE: &str = "Reproduce";

/// The numbers of a run, and the figures of cases that are compared or repeated.
fn summary(report: &Report) -> String {
    let first = report.cases.list.first().filter(|_| report.kind() == Kind::Run);
    let mut out = first.map_or_else(String::new, |case| tables(case.first()));
    if report.kind() != Kind::Run || report.cases.seeds() > 1 {
        if let Some(case) = first {
            let _ = write!(out, "<p class=\"note\">Seed {} shown.</p>", case.first().seed);
        }
        out.push_str(&table(report));
    }
    out
}

/// Begins a section that links lead to under `id`.
pub(crate) fn begin(id: &str, title: &str) -> String {
    format!("<section id=\"{id}\"><h2>{}</h2>", escape(title))
}

/// Links: id, and what it says.
pub(crate) fn nav(class: &str, links: &[(String, String)]) -> String {
    let link =
        |(id, text): &(String, String)| format!("<a href=\"#{}\">{}</a>", escape(id), escape(text));
    format!("<nav{class}>{}</nav>", links.iter().map(link).collect::<String>())
}

/// Links that stay in sight, to the top of the page and to these places.
pub(crate) fn contents(links: &[(String, String)]) -> String {
    let top = ("top".to_owned(), "Top".to_owned());
    nav(" class=\"contents\"", &[&[top], links].concat())
}

/// A page around what stands in its middle, with these plots in it.
pub(crate) fn shell(title: &str, subtitle: &str, main: &str, plots: &[&Plot]) -> String {
    let mut out = String::with_capacity(2 << 20);
    head(&mut out, title, subtitle);
    let _ = write!(out, "<main>{main}</main>{}", licences());
    scripts(&mut out, plots);
    out.push_str("</body></html>\n");
    out
}

fn head(out: &mut String, title: &str, subtitle: &str) {
    let (title, subtitle) = (escape(title), escape(subtitle));
    let style = STYLE.replace("system-ui-stack", FONT);
    let _ = write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\">\
         <title>{title}</title><style>{style}</style></head><body id=\"top\">\
         <header><div><h1>{title}</h1><p>{subtitle}</p></div>\
         <button id=\"theme\" type=\"button\">Dark</button></header>"
    );
}

fn subtitle(report: &Report) -> String {
    let (cases, runs) = (report.cases.list.len(), report.cases.runs().count());
    match report.kind() {
        Kind::Run if runs == 1 => "Single run".to_owned(),
        Kind::Run => format!("Single configuration, {runs} seeds"),
        Kind::Comparison => format!("Comparison of {cases} configurations, {runs} runs"),
        Kind::Sweep => format!("Sweep of {cases} points, {runs} runs"),
    }
}

fn warning_box(report: &Report) -> String {
    boxed("warnings", "Warnings", &report.warnings())
}

/// What a reader has to see first, the first few of it unfolded; nothing if there is nothing.
pub(crate) fn boxed(class: &str, title: &str, warnings: &[String]) -> String {
    if warnings.is_empty() {
        return String::new();
    }
    let list = |of: &[String]| {
        let items = of.iter().map(|text| format!("<li>{}</li>", escape(text)));
        format!("<ul>{}</ul>", items.collect::<String>())
    };
    let (first, more) = warnings.split_at(warnings.len().min(WARNINGS_MAX));
    let more = match more.len() {
        0 => String::new(),
        n => format!("<details><summary>and {n} more</summary>{}</details>", list(more)),
    };
    let first = list(first);
    format!("<aside class=\"{class}\"><h2>{title}</h2>{first}{more}</aside>")
}

fn fact_list(report: &Report) -> String {
    facts_of(&facts(report))
}

/// Facts, each with its name.
pub(crate) fn facts_of<N: AsRef<str>>(facts: &[(N, String)]) -> String {
    let mut out = String::from("<dl class=\"facts\">");
    for (name, value) in facts {
        let name = escape(name.as_ref());
        let _ = write!(out, "<div><dt>{name}</dt><dd>{}</dd></div>", escape(value));
    }
    out.push_str("</dl>");
    out
}

fn tiles(report: &Report) -> String {
    let Some(case) = report.cases.list.first() else { return String::new() };
    let mut out = String::from("<section class=\"tiles\">");
    for (name, value, detail) in headlines(case.first()) {
        let _ = write!(
            out,
            "<div><span class=\"name\">{}</span><strong>{}</strong><span class=\"detail\">{}</span></div>",
            escape(&name),
            escape(&value),
            escape(&detail)
        );
    }
    out.push_str("</section>");
    out
}

fn section_of_plots(out: &mut String, section: &Section) {
    out.push_str(&begin(&slug(section.title), section.title));
    cards(out, &section.plots);
    out.push_str("</section>");
}

/// Plots beside each other.
pub(crate) fn cards(out: &mut String, plots: &[Plot]) {
    out.push_str("<div class=\"plots\">");
    for plot in plots {
        let _ = write!(out, "<figure id=\"{}\"><div class=\"plot\"></div>", plot.id);
        if !plot.caption.is_empty() {
            let _ = write!(out, "<figcaption>{}</figcaption>", escape(&plot.caption));
        }
        out.push_str("</figure>");
    }
    out.push_str("</div>");
}

/// How to make it again: the command, and the resolved stacks.
fn again(report: &Report) -> String {
    let mut out = begin(&slug(REPRODUCE), REPRODUCE);
    let cases = &report.cases.list;
    let own =
        cases.iter().take(STACKS_MAX).filter_map(|case| case.first().ours()["command"].as_str());
    own.chain(report.command.as_deref()).for_each(|command| out.push_str(&copyable(command)));
    for case in cases.iter().take(STACKS_MAX) {
        let Some(toml) = case.first().ours()["resolved_stack"].as_str() else { continue };
        let label = escape(&case.label);
        let _ = write!(
            out,
            "<details><summary>Resolved stack: {label}</summary>{}</details>",
            copyable(toml)
        );
    }
    if cases.len() > STACKS_MAX {
        let more = cases.len() - STACKS_MAX;
        let _ =
            write!(out, "<p class=\"note\">The rows have the stacks of {more} more points.</p>");
    }
    out.push_str("</section>");
    out
}

/// Text to be copied.
pub(crate) fn copyable(text: &str) -> String {
    let text = escape(text.trim_end());
    format!(
        "<div class=\"copy\"><button type=\"button\">Copy</button><pre><code>{text}</code></pre></div>"
    )
}

fn licences() -> String {
    let mut out = String::from(
        "<footer><details><summary>Drawn with Vega, Vega-Lite and Vega-Embed (BSD-3-Clause)</summary>",
    );
    for (name, licence) in LICENCES {
        let _ = write!(out, "<h3>{name}</h3><pre>{}</pre>", escape(licence));
    }
    out.push_str("</details></footer>");
    out
}

/// The libraries, what they draw, and the script that lets them.
fn scripts(out: &mut String, plots: &[&Plot]) {
    let drawn = plots.iter().map(|plot| json!({ "id": plot.id, "spec": plot.spec }));
    let themes = json!({ "light": Theme::Light.config(), "dark": Theme::Dark.config() });
    let _ = write!(
        out,
        "<script type=\"application/json\" id=\"plots\">{}</script>\
         <script type=\"application/json\" id=\"themes\">{}</script>",
        inert(&drawn.collect()),
        inert(&themes)
    );
    for library in LIBRARIES {
        out.push_str("<script>");
        for line in library.lines().filter(|line| !line.starts_with("//# sourceMappingURL")) {
            out.push_str(line);
            out.push('\n');
        }
        out.push_str("</script>");
    }
    let _ = write!(out, "<script>{SCRIPT}</script>");
}

/// JSON in which no tag can begin.
fn inert(value: &Value) -> String {
    value.to_string().replace('<', "\\u003c")
}
