//! `nandscape completions` and `nandscape man`: what the command line knows of itself, for shells and
//! for `man`.

use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::output::{Failure, print_bytes};
use crate::replace::{make_folder, replace, with_path};
use clap::{Arg, Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};
use std::io::{self, Write as _};
use std::iter;
use std::path::Path;

/// Prints the completion script of a shell.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "nandscape", &mut script);
    print_bytes(&script)
}

/// Prints the manual page, or writes one for each command.
pub(crate) fn man(args: &ManArgs) -> Result<(), Failure> {
    let mut cli = Cli::command().disable_help_subcommand(true);
    cli.build();
    let Some(folder) = &args.output else {
        return print_bytes(&page(cli).map_err(Failure::run)?);
    };
    make_folder(folder)?;
    write_pages(cli, folder)
}

/// The pages of a command and of all its commands.
fn write_pages(command: Command, folder: &Path) -> Result<(), Failure> {
    for each in command.get_subcommands() {
        write_pages(each.clone(), folder)?;
    }
    let file = folder.join(Man::new(command.clone()).get_filename());
    let page = page(command).map_err(Failure::run)?;
    replace(&file, |out| with_path(&file, out.write_all(&page)))
}

/// The page of a command that is built, which refers to those of the commands above and below it.
fn page(command: Command) -> io::Result<Vec<u8>> {
    let name = command.get_display_name().unwrap_or("nandscape").to_owned();
    let above = name.rsplit_once('-').map(|(above, _)| above.to_owned());
    let below = command.get_subcommands().filter_map(|each| each.get_display_name());
    let others: Vec<String> = above
        .into_iter()
        .chain(below.map(str::to_owned))
        .map(|name| format!("{name}(1)"))
        .collect();
    let synopsis = synopsis(&command);
    let mut page = Vec::new();
    Man::new(command.override_usage(synopsis)).render(&mut page)?;
    let mut also = Roff::new();
    also.control("SH", ["SEE ALSO"]).text([roman(others.join(", "))]);
    also.to_writer(&mut page)?;
    Ok(page)
}

/// A command with its arguments and the names of their values.
fn synopsis(command: &Command) -> String {
    let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
    let (places, options): (Vec<&Arg>, Vec<&Arg>) = shown.partition(|arg| arg.is_positional());
    let named =
        |arg: &&Arg| if arg.is_required_set() { arg.to_string() } else { format!("[{arg}]") };
    let name = command.get_bin_name().unwrap_or("nandscape").to_owned();
    let commands = command.has_subcommands().then(|| "<COMMAND>".to_owned());
    let places = places.iter().map(ToString::to_string);
    let words = iter::once(name).chain(options.iter().map(named)).chain(places).chain(commands);
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The synopsis has the names of values, and the page refers to its neighbours.
    #[test]
    fn pages_name_arguments_and_other_pages() {
        let mut cli = Cli::command().disable_help_subcommand(true);
        cli.build();
        let state = cli.find_subcommand("state").unwrap().clone();
        let text = String::from_utf8(page(state.clone()).unwrap()).unwrap();
        assert!(text.replace('\\', "").contains("nandscape(1), nandscape-state-save(1)"), "{text}");
        let save = synopsis(state.find_subcommand("save").unwrap());
        assert!(save.starts_with("nandscape state save [--stack <NAME|FILE>]"), "{save}");
        assert!(save.contains(" --output <FILE>") && !save.contains("[--output"), "{save}");
    }

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
