//! `nandscape completions` and `nandscape man`: what the command line knows of itself, for shells and
//! for `man`.

use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::output::{Failure, print_bytes};
use anyhow::Context;
use clap::CommandFactory;
use clap_mangen::Man;

/// Prints the completion script of a shell.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "nandscape", &mut script);
    print_bytes(&script)
}

/// Prints the manual page, or writes one for each command.
pub(crate) fn man(args: &ManArgs) -> Result<(), Failure> {
    let Some(folder) = &args.output else {
        let mut page = Vec::new();
        Man::new(Cli::command()).render(&mut page).map_err(Failure::run)?;
        return print_bytes(&page);
    };
    std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), folder))
        .with_context(|| format!("cannot write manual pages to {}", folder.display()))
        .map_err(Failure::Run)
}
