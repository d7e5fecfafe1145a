//! Filesets and files, from their attributes.

use super::values::{Given, Item, Scope};
use crate::wml::error::WmlError;
use crate::wml::model::{Fileset, Number};
use crate::wml::random::{Law, Random};
use crate::wml::syntax::Attributes;
use std::sync::Arc;

/// Attributes of a file. `paralloc` and `trusttree`, which spare time that is not counted, mean nothing
/// here; `cached` is of Filebench 1.4.
const FILE: [&str; 10] = [
    "name",
    "path",
    "size",
    "prealloc",
    "paralloc",
    "reuse",
    "trusttree",
    "readonly",
    "writeonly",
    "cached",
];
/// What a fileset has beside those; `filesizegamma` is of 1.4.
const FILESET: [&str; 6] =
    ["entries", "leafdirs", "dirwidth", "dirdepthrv", "dirgamma", "filesizegamma"];
/// Bytes of a file when nothing is said.
const SIZE_DEFAULT: u64 = 1024;
/// Thousandths of the gamma parameter of directories when nothing is said.
const DIRGAMMA_DEFAULT: u64 = 1500;
/// Directory width of a single file, which has no other beside it.
const FILE_DIRWIDTH: u64 = 10;
/// Longest name of a directory.
const NAME_MAX: usize = nandscape_fs::contract::NAME_MAX;

/// `define fileset`
pub(super) fn fileset(scope: Scope<'_>, attributes: &Attributes) -> Result<Fileset, WmlError> {
    let known = [&FILE[..], &FILESET[..]].concat();
    let given = Given::new(scope, "a fileset", attributes, &known, false)?;
    let dirdepth = given.value("dirdepthrv")?.map(|value| match scope.number(value)? {
        Number::Drawn(random) if random.mean().is_some() => Ok(random),
        _ => Err(given.error(value.at, "dirdepthrv must be a randvar")),
    });
    let mut fileset = common(&given)?;
    fileset.entries = given.number_or("entries", 0)?;
    fileset.leafdirs = given.number_or("leafdirs", 0)?;
    fileset.dirwidth = scope.number(given.required("dirwidth")?)?;
    fileset.dirdepth = dirdepth.transpose()?;
    fileset.dirgamma = given.fixed_or("dirgamma", DIRGAMMA_DEFAULT)? as f64 / 1000.0;
    if let Some(value) = given.value("filesizegamma")? {
        fileset.size = spread(&given, fileset.size, scope.fixed(value)? as f64 / 1000.0)?;
    }
    if matches!(fileset.dirwidth, Number::Fixed(0 | 1)) {
        return Err(given.error(given.place("dirwidth"), "dirwidth must be at least 2"));
    }
    let is_none = |number: &Number| matches!(number, Number::Fixed(0));
    if is_none(&fileset.entries) && is_none(&fileset.leafdirs) {
        return Err(given.error(given.at(), "a fileset needs entries=… or leafdirs=…"));
    }
    Ok(fileset)
}

/// `define file`: a fileset of one.
pub(super) fn file(scope: Scope<'_>, attributes: &Attributes) -> Result<Fileset, WmlError> {
    common(&Given::new(scope, "a file", attributes, &FILE, false)?)
}

/// What files and filesets have alike.
fn common(given: &Given<'_>) -> Result<Fileset, WmlError> {
    let name = given.required_text("name")?;
    if name.is_empty() || name.len() > NAME_MAX || name.contains('/') || name.starts_with('.') {
        let problem = format!("\"{name}\" cannot be the name of a directory");
        return Err(given.error(given.place("name"), problem));
    }
    Ok(Fileset {
        place: given.scope.source.place(given.at()),
        name,
        path: path(given)?,
        entries: Number::Fixed(1),
        leafdirs: Number::Fixed(0),
        size: given.number_or("size", SIZE_DEFAULT)?,
        dirwidth: Number::Fixed(FILE_DIRWIDTH),
        dirdepth: None,
        dirgamma: 0.0,
        prealloc_percent: percent(given)?,
        reuse: given.flag("reuse")?,
        readonly: given.flag("readonly")?,
        writeonly: given.flag("writeonly")?,
        cached: given.flag("cached")?,
    })
}

/// Directories from the root on.
fn path(given: &Given<'_>) -> Result<Vec<String>, WmlError> {
    let path = given.required_text("path")?;
    let steps = path.split('/').filter(|step| !step.is_empty() && *step != ".");
    let steps: Vec<String> = steps.map(str::to_owned).collect();
    if steps.iter().any(|step| step == ".." || step.len() > NAME_MAX) {
        let problem = format!("\"{path}\" names no directory below the root");
        return Err(given.error(given.place("path"), problem));
    }
    Ok(steps)
}

/// How many in a hundred files are there at the beginning: all of them if it is just said.
fn percent(given: &Given<'_>) -> Result<u64, WmlError> {
    let Some(attribute) = given.find("prealloc") else { return Ok(0) };
    let Some(value) = &attribute.value else { return Ok(100) };
    match given.scope.item(value)? {
        Item::Flag(all) => Ok(if all { 100 } else { 0 }),
        _ => given.count_or("prealloc", 0, 0..=100),
    }
}

/// Sizes as Filebench 1.4 had them: gamma around a mean.
fn spread(given: &Given<'_>, size: Number, gamma: f64) -> Result<Number, WmlError> {
    let Number::Fixed(mean) = size else { return Ok(size) };
    if gamma == 0.0 || mean == 0 {
        return Ok(size);
    }
    let law = Law::unit_gamma(gamma);
    let law = law.map_err(|why| given.error(given.place("filesizegamma"), why.to_string()))?;
    let stretch = Some((0.0, mean as f64));
    let random = Random { law, stretch, round: 0.0, limits: (0.0, f64::MAX) };
    Ok(Number::Drawn(Arc::new(random)))
}
