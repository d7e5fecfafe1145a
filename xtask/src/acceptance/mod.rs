//! Acceptance: the boundaries that the architecture promises, recorded figures, speed, and short crash campaigns, in
//! one command.

mod boundaries;
mod campaigns;

use crate::perf;
use crate::repository::Repository;
use crate::tidy::Tree;

/// Runs every check, prints what each found, and returns whether all passed. `quick` leaves out what takes
/// minutes and has commands of its own: the corpus and the count of instructions.
///
/// # Errors
/// Something cannot be read or started.
pub(crate) fn run(repository: &Repository, quick: bool) -> Result<bool, String> {
    let tree = Tree::load(repository.root()).map_err(|error| error.to_string())?;
    let mut passed = boundaries::print(&tree);
    for campaign in campaigns::CAMPAIGNS {
        let command = format!("run --release --quiet --locked -- crash {campaign}");
        passed &= succeeds(repository, &command)?;
    }
    if quick {
        return Ok(passed);
    }
    for of in ["lab", "crash"] {
        passed &=
            succeeds(repository, &format!("test --quiet --package nandscape-{of} --test corpus"))?;
    }
    println!("cargo xtask perf");
    Ok(perf::run(repository, &perf::Options::default())? && passed)
}

/// Whether cargo succeeds with these arguments.
fn succeeds(repository: &Repository, args: &str) -> Result<bool, String> {
    println!("cargo {args}");
    let passed = repository.cargo(&args.split(' ').collect::<Vec<_>>())?;
    println!("{}: cargo {args}", if passed { "ok" } else { "failed" });
    Ok(passed)
}
