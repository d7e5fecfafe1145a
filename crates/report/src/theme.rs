//! How plots look: the Vega-Lite configuration for light and for dark paper.
//!
//! Colours keep a contrast of at least 3:1 to their background and differ in lightness as well as in
//! hue, after Okabe and Ito, "Color Universal Design" (2008). Which colour means what: `plot.rs`, `MEANINGS`.

use serde_json::{Value, json};

/// A theme.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Theme {
    Light,
    Dark,
}

/// Colours of a theme.
struct Colours {
    paper: &'static str,
    ink: &'static str,
    soft: &'static str,
    line: &'static str,
    series: [&'static str; 9],
    /// From few to many, on the paper.
    heat: [&'static str; 4],
}

const LIGHT: Colours = Colours {
    paper: "#ffffff",
    ink: "#1c2430",
    soft: "#4b5768",
    line: "#e3e7ec",
    series: [
        "#0067a8", "#d2540b", "#008560", "#a63d86", "#a87400", "#3591c4", "#6a4fb3", "#5d6878",
        "#7a2e12",
    ],
    heat: ["#cfe0ee", "#6aa6d3", "#0067a8", "#06263f"],
};

const DARK: Colours = Colours {
    paper: "#171c23",
    ink: "#e8ecf1",
    soft: "#aab4c0",
    line: "#2c343f",
    series: [
        "#56a9e8", "#f08d49", "#34c79b", "#e08cc3", "#e5b84a", "#9ad0f0", "#b29ae6", "#a5b0bd",
        "#c4694c",
    ],
    heat: ["#22384c", "#2f6796", "#56a9e8", "#e3f2fd"],
};

/// System fonts, as the page has them.
pub(crate) const FONT: &str = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', \
    'Noto Sans', 'Liberation Sans', 'DejaVu Sans', Arial, sans-serif";

impl Theme {
    const fn colours(self) -> &'static Colours {
        match self {
            Self::Light => &LIGHT,
            Self::Dark => &DARK,
        }
    }

    /// The configuration of a plot.
    pub(crate) fn config(self) -> Value {
        let Colours { paper, ink, soft, line, series, heat } = self.colours();
        json!({
            "background": paper,
            "font": FONT,
            "padding": 6,
            "title": {
                "anchor": "start", "frame": "bounds", "color": ink, "fontSize": 14,
                "fontWeight": 600, "offset": 12, "limit": 0,
            },
            "axis": {
                "labelColor": soft, "titleColor": soft, "gridColor": line, "domainColor": soft,
                "tickColor": soft, "labelFontSize": 11, "titleFontSize": 11.5,
                "titleFontWeight": 500, "titlePadding": 8, "labelPadding": 4, "labelOverlap": true,
                "labelSeparation": 6, "labelLimit": 170, "tickSize": 4,
            },
            "axisX": { "grid": false },
            "axisY": { "domain": false, "ticks": false },
            "legend": {
                "orient": "top", "direction": "horizontal", "labelColor": soft, "titleColor": soft,
                "labelFontSize": 11.5, "labelLimit": 320, "symbolStrokeWidth": 2, "symbolOpacity": 1, "offset": 8,
                "columnPadding": 16,
            },
            "header": { "labelColor": soft, "titleColor": soft },
            "view": { "stroke": null },
            "range": { "category": series, "heatmap": heat },
            "line": { "strokeWidth": 1.7, "strokeJoin": "round", "strokeCap": "round" },
            "point": { "filled": true, "size": 45 },
            "bar": { "cornerRadiusEnd": 1.5 },
            "rule": { "strokeWidth": 1.5 },
            "style": {
                "reference-rule": { "color": soft, "strokeDash": [4, 3] },
                "interval": { "color": ink, "strokeWidth": 1, "opacity": 0.75 },
                "published": { "fill": ink, "fillOpacity": 0, "stroke": ink, "strokeWidth": 2.5, "opacity": 1 },
                "reference-text": { "color": soft, "fontSize": 11 },
                "name": { "color": soft, "fontSize": 11.5 },
                "number": { "color": ink, "fontSize": 11.5, "fontWeight": 550 },
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance, as WCAG 2.1 defines it.
    fn luminance(colour: &str) -> f64 {
        let channel = |at: usize| {
            let value = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
            if value <= 0.03928 { value / 12.92 } else { libm::pow((value + 0.055) / 1.055, 2.4) }
        };
        0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
    }

    fn contrast(one: &str, other: &str) -> f64 {
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    /// WCAG 2.1: graphics have a contrast of 3:1 at least, text of 4.5:1.
    #[test]
    fn everything_can_be_seen() {
        for colours in [&LIGHT, &DARK] {
            for series in colours.series {
                assert!(contrast(series, colours.paper) >= 3.0, "{series}");
            }
            for text in [colours.ink, colours.soft] {
                assert!(contrast(text, colours.paper) >= 4.5, "{text}");
            }
        }
    }
}
