//! `nandscape completions` and `nandscape man`: what the command line knows of itself, for shells and
//! for `man`.

use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::output::{Failure, print_bytes};
use crate::replace::{make_folder, replace, with_path};
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use std::path::Path;

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
    make_folder(folder)?;
    let mut cli = Cli::command().disable_help_subcommand(true);
    cli.build();
    write_pages(cli, folder)
}

/// The pages of a command and of all its commands.
fn write_pages(command: Command, folder: &Path) -> Result<(), Failure> {
    for each in command.get_subcommands() {
        write_pages(each.clone(), folder)?;
    }
    let page = Man::new(command);
    let file = folder.join(page.get_filename());
    replace(&file, |out| with_path(&file, page.render(out)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The long help of every command, and of every command of a command, has examples of itself.
    #[test]
    fn help_teaches_by_example() {
        let mut cli = Cli::command();
        cli.build();
        let mut without = Vec::new();
        look_for_examples(&mut cli, "nandscape", &mut without);
        assert_eq!(without, [] as [String; 0]);
    }

    fn look_for_examples(command: &mut Command, path: &str, without: &mut Vec<String>) {
        let help = command.render_long_help().to_string();
        let examples = help.split_once("Examples:").map_or("", |(_, examples)| examples);
        if !examples.contains(path) {
            without.push(path.to_owned());
        }
        // Its own `help` is clap's.
        for each in command.get_subcommands_mut().filter(|each| each.get_name() != "help") {
            let path = format!("{path} {}", each.get_name());
            look_for_examples(each, &path, without);
        }
    }
}
