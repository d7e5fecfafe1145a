//! Commands that make a campaign, or one of its violations, again.

use crate::args::{BaseChoice, CrashArgs, Which};
use crate::command::{quoted, set_words};
use nandscape_crash::Reduction;
use nandscape_crash::composition::Composition;

/// The command of a campaign.
pub(super) fn campaign(args: &CrashArgs) -> String {
    let mut words = choices(args, None);
    words.extend(args.matrix.map(|which| match which {
        Which::All => "--matrix all".to_owned(),
        Which::Pairs => "--matrix pairs".to_owned(),
    }));
    words.push(format!("--first {}", args.first));
    words.extend(args.seeds.map(|seeds| format!("--seeds {seeds}")));
    words.extend(args.cuts.map(|cuts| format!("--cuts {cuts}")));
    words.extend(args.max_violations.map(|most| format!("--max-violations {most}")));
    words.extend(args.only.as_ref().map(|only| format!("--only {}", quoted(&only.to_string()))));
    words.join(" ")
}

/// The command that runs one seed of a campaign or a part of it, of a matrix with the composition that the seed ran.
pub(super) fn seed(
    args: &CrashArgs,
    composition: Option<&Composition>,
    seed: u64,
    only: Option<&Reduction>,
) -> String {
    let mut words = choices(args, composition);
    words.push(format!("--first {seed} --seeds 1"));
    words.extend(only.map(|only| format!("--only {}", quoted(&only.to_string()))));
    words.join(" ")
}

/// All that a seed's run follows from beside its number.
fn choices(args: &CrashArgs, composition: Option<&Composition>) -> Vec<String> {
    let mut words = vec!["nandscape crash".to_owned()];
    words.extend(args.stack.as_ref().map(|stack| format!("--stack {}", quoted(stack))));
    words.extend(args.ftl.as_ref().map(|kind| format!("--ftl {kind}")));
    words.extend(set_words(&args.set));
    let on_fs = &args.on_fs;
    words.extend(on_fs.fs.map(|kind| format!("--fs {}", kind.0.name())));
    words.extend(on_fs.full.then(|| "--full".to_owned()));
    let base = Some(args.base()).filter(|base| *base != BaseChoice::Flash);
    words.extend(base.map(|base| format!("--base {}", base.name())));
    let file = on_fs.calls.as_ref().map(|file| quoted(&file.to_string_lossy()));
    words.extend(file.map(|file| format!("--calls {file}")));
    words.extend(on_fs.enumerate.map(|length| format!("--enumerate {length}")));
    words.extend(on_fs.choices().map(|(key, value)| format!("--set fs.{key}={value}")));
    words.extend(on_fs.oracle_every.map(|every| format!("--oracle-every {every}")));
    words.extend(on_fs.damage_every.map(|every| format!("--damage-every {every}")));
    words.extend(args.faults.map(|one_in| format!("--faults {one_in}")));
    words.extend(args.unreadable.map(|one_in| format!("--unreadable {one_in}")));
    words.extend(args.edge_cases.then(|| "--edge-cases".to_owned()));
    words.extend(args.background_cuts.then(|| "--background-cuts".to_owned()));
    words.extend(args.omit.as_ref().map(|rule| format!("--omit {rule}")));
    let given = || args.composition.as_ref().map(|given| given.words.clone());
    let composition = composition.map(ToString::to_string).or_else(given);
    words.extend(composition.map(|name| format!("--composition {}", quoted(&name))));
    words
}
