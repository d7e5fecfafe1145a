//! How means with their intervals are drawn: their rows of data, what is said of them, and their marks.

use crate::COMPARED_MAX;
use crate::student::Mean;
use serde_json::{Value, json};

/// Dashes that let a line be seen under another.
const DASHES: [[u32; 2]; 4] = [[1, 0], [7, 3], [2, 2], [10, 2]];

/// A mean with the ends of its interval, beside what it belongs to.
pub(crate) fn row(mean: &Mean, mut row: Value) -> Value {
    let [low, high] = mean.ends;
    row["mean"] = mean.mean.into();
    row["low"] = low.into();
    row["high"] = high.into();
    row
}

/// The axis of means for another field of their rows.
pub(super) fn span(field: &str, axis: &Value) -> Value {
    let mut axis = axis.clone();
    axis["field"] = field.into();
    axis
}

/// What a mark of a mean says when it is pointed at: what it belongs to, the mean, and the ends of its interval.
pub(crate) fn tooltip(axis: &str, names: &[(&str, &str)]) -> Value {
    let named = names.iter().map(|(field, title)| json!({ "field": field, "title": title }));
    let number = |field: &str, title: &str| json!({ "field": field, "type": "quantitative", "format": ".4~r", "title": title });
    let numbers = [number("mean", axis), number("low", "from"), number("high", "to")];
    named.chain(numbers).collect()
}

/// Confidence as a band behind a line where numbers lie across, else as a bar through a point.
pub(crate) fn marks(numeric: bool, y: &Value, colour: &Value, tooltip: &Value) -> Vec<Value> {
    let ends = json!({ "y": span("low", y), "y2": { "field": "high" } });
    let mut dash = colour.clone();
    dash["scale"]["range"] = json!(DASHES.iter().cycle().take(COMPARED_MAX).collect::<Vec<_>>());
    let point =
        json!({ "mark": "point", "encoding": { "y": y, "shape": colour, "tooltip": tooltip } });
    match numeric {
        true => vec![
            json!({ "mark": { "type": "area", "opacity": 0.2 }, "encoding": ends }),
            json!({ "mark": "line", "encoding": { "y": y, "strokeDash": dash } }),
            point,
        ],
        false => vec![json!({ "mark": "rule", "encoding": ends }), point],
    }
}
