//! Values that a figure is set against, as labelled rules through its plots.

use crate::figure::Line;
use serde_json::{Value, json};

/// Height of a row and its gap.
pub(super) const ROW_HEIGHT: u32 = 42;
/// Half of a row, where the label of a rule between rows stands.
const HALF_ROW: u32 = ROW_HEIGHT / 2;

/// Rules from side to side, each with its label above it on the left; numbers lie upwards as `y` says.
pub(super) fn level(lines: &[(f64, &Line)], y: &Value) -> Vec<Value> {
    let layers = |(value, line): &(f64, &Line)| {
        let y = at(*value, y);
        let rule = json!({ "y": y, "x": { "value": 0 }, "x2": { "value": "width" } });
        let label = json!({ "y": y, "x": { "value": 4 } });
        let look = json!({ "baseline": "bottom", "align": "left", "dy": -3, "limit": { "expr": "width - 8" } });
        [layer("rule", json!({}), rule), layer("text", saying(line, look), label)]
    };
    lines.iter().flat_map(layers).collect()
}

/// Rules from top to bottom, each with its label in a row of its own below `rows` others; numbers lie
/// across as `x` says, around `middle`.
pub(super) fn upright(lines: &[(f64, &Line)], x: &Value, rows: usize, middle: f64) -> Vec<Value> {
    let layers = |(row, (value, line)): (usize, &(f64, &Line))| {
        let x = at(*value, x);
        let rule = json!({ "x": x, "y": { "value": 0 }, "y2": { "value": "height" } });
        let label = json!({ "x": x, "y": { "value": row as u32 * ROW_HEIGHT + HALF_ROW } });
        let (align, dx) = if *value > middle { ("right", -5) } else { ("left", 5) };
        let look = json!({ "baseline": "middle", "align": align, "dx": dx, "limit": { "expr": "width / 2" } });
        [layer("rule", json!({}), rule), layer("text", saying(line, look), label)]
    };
    (rows..).zip(lines).flat_map(layers).collect()
}

/// The place of `value` on an axis of the plot.
fn at(value: f64, axis: &Value) -> Value {
    let mut place = axis.clone();
    if let Value::Object(place) = &mut place {
        place.remove("field");
    }
    place["datum"] = value.into();
    place
}

fn saying(line: &Line, mut look: Value) -> Value {
    look["text"] = line.label.as_str().into();
    look
}

/// A mark drawn once, in none of the colours of the data.
fn layer(mark: &str, mut look: Value, mut encoding: Value) -> Value {
    look["type"] = mark.into();
    look["style"] = format!("reference-{mark}").into();
    encoding["color"] = Value::Null;
    json!({ "data": { "values": [{}] }, "mark": look, "encoding": encoding })
}
