//! Groups of bars from zero, each with its number, the interval around it, and what was published of it.

use super::means::tooltip;
use crate::plot::{Scale, ScaleKind, colour};
use crate::point::each_once;
use serde_json::{Value, json};

/// Width that the number above a bar takes; where bars are nearer, only the tooltip has it.
const NUMBER_WIDTH: usize = 46;
/// Height of an axis of bars as a multiple of the highest, so that its number has room.
const HEADROOM: f64 = 1.125;

/// Values that lie across, in the order in which they come.
fn across(rows: &[Value]) -> Value {
    json!(each_once(rows.iter().map(|row| &row["x"])))
}

/// The axis of numbers, and the same for another field.
pub(crate) fn upright(axis: &str, kind: ScaleKind, rows: &[Value]) -> impl Fn(&str) -> Value {
    let y = Scale::new(axis, kind).encoding("mean", rows);
    move |field| {
        let mut y = y.clone();
        y["field"] = field.into();
        y
    }
}

/// Names that lie across, level.
pub(crate) fn named(rows: &[Value]) -> Value {
    json!({ "field": "x", "type": "nominal", "sort": across(rows), "title": null,
            "axis": { "labelAngle": 0, "labelLimit": 120 } })
}

/// What published values look like; none without any.
pub(crate) fn strokes(
    published: Vec<Value>,
    mark: Value,
    mut encoding: Value,
    axis: &str,
) -> Option<Value> {
    encoding["color"] = Value::Null;
    encoding["tooltip"] = json!([
        { "field": "label", "title": "stated" },
        { "field": "published", "type": "quantitative", "format": ".4~r", "title": axis },
    ]);
    let drawn = !published.is_empty();
    drawn.then(|| json!({ "data": { "values": published }, "mark": mark, "encoding": encoding }))
}

/// The lowest and the highest that is drawn of bars.
pub(crate) fn range(rows: &[Value], published: &[Value]) -> [f64; 2] {
    let of = |row: &Value| ["low", "high", "published"].map(|field| row[field].as_f64());
    let all = rows.iter().chain(published).flat_map(of).flatten();
    all.fold([0.0, 0.0], |[low, high]: [f64; 2], value| [low.min(value), high.max(value)])
}

/// Bars from zero on an axis that has this range, each with its interval, and strokes across them where something was
/// published.
pub(crate) fn bars(
    axis: &str,
    rows: &[Value],
    names: &[String],
    published: Vec<Value>,
    [low, high]: [f64; 2],
) -> Value {
    let place = upright(axis, ScaleKind::FromZero, rows);
    let y = |field: &str| {
        let mut y = place(field);
        y["scale"]["domain"] = json!([low.min(0.0), HEADROOM * high.max(f64::MIN_POSITIVE)]);
        y
    };
    let tooltip = tooltip(axis, &[("series", "series"), ("x", "x")]);
    let mut length = y("mean");
    length["axis"]["grid"] = true.into();
    let ends = json!({ "y": y("low"), "y2": { "field": "high" }, "color": Value::Null });
    let stroke = json!({ "y": y("published"), "y2": { "field": "published" } });
    let mark = json!({ "type": "bar", "style": "published" });
    let shown = format!(
        "width > {} ? format(datum.mean, datum.mean < 1e4 ? '.3~r' : '.3~s') : ''",
        NUMBER_WIDTH * rows.len()
    );
    let number = json!({ "type": "text", "style": "number", "text": { "expr": shown }, "dy": -4, "baseline": "bottom" });
    let number_at = json!({ "y": y("high"), "color": Value::Null });
    let mut layers = vec![
        json!({ "mark": "bar", "encoding": { "y": length, "tooltip": tooltip } }),
        json!({ "mark": { "type": "rule", "style": "interval" }, "encoding": ends }),
        json!({ "mark": number, "encoding": number_at }),
    ];
    layers.extend(strokes(published, mark, stroke, axis));
    let offset = json!({ "field": "series", "type": "nominal", "sort": names, "scale": { "domain": names } });
    json!({
        "encoding": { "x": named(rows), "xOffset": offset, "color": colour("series", names) },
        "layer": layers,
    })
}
