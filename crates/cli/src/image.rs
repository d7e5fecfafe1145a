//! `nandscape image`: raw images of devices, out of states and into them.

use crate::args::{ImageCommand, ImageExportArgs, ImageImportArgs, ImagesArgs};
use crate::command::COMMIT;
use crate::output::{Failure, classify, complain, print};
use crate::replace::{replace, with_path};
use crate::state::write;
use crate::summary::bytes;
use crate::writable::expect_writable;
use anyhow::{Context, anyhow};
use nandscape_lab::SECTOR_BYTES;
use nandscape_lab::run::{Copied, export_image, import_image};
use nandscape_lab::stack::Stack;
use nandscape_lab::sweep::program;
use std::fs::{File, Metadata};
use std::io::{BufReader, Write as _};
use std::path::Path;

/// Exports or imports.
pub(crate) fn image(args: &ImagesArgs) -> Result<(), Failure> {
    match &args.command {
        ImageCommand::Export(args) => export(args),
        ImageCommand::Import(args) => import(args),
    }
}

fn export(args: &ImageExportArgs) -> Result<(), Failure> {
    expect_writable([Some(args.image.as_path())], [args.state.as_path(), args.stack.file()])?;
    let stack = Stack::load(&args.stack.stack, &args.stack.set).map_err(Failure::input)?;
    let copied = replace(&args.image, |out| {
        let copied = export_image(&stack, &args.state, &program(COMMIT), out).map_err(classify)?;
        // A hole at the end is part of the image, too.
        let bytes = copied.sectors * SECTOR_BYTES;
        with_path(&args.image, out.flush().and_then(|()| out.get_ref().set_len(bytes)))?;
        Ok(copied)
    })?;
    copied.warnings.iter().for_each(|warning| complain(warning));
    print(&said(&args.image, "exported", "from", &copied))
}

fn import(args: &ImageImportArgs) -> Result<(), Failure> {
    expect_writable([Some(args.output.as_path())], [args.image.as_path(), args.stack.file()])?;
    let stack = Stack::load(&args.stack.stack, &args.stack.set).map_err(Failure::input)?;
    let file = open(&args.image)?;
    let length = file.metadata().ok().filter(Metadata::is_file).map(|data| data.len());
    let made = import_image(&stack, args.seed, &program(COMMIT), length, &mut BufReader::new(file));
    let named = |failure: Failure| match failure {
        Failure::Input(error) => Failure::Input(error.context(args.image.display().to_string())),
        other => other,
    };
    let (state, copied) = made.map_err(|error| named(classify(error)))?;
    write(&args.output, &state)?;
    print(&said(&args.output, "imported", "into", &copied))
}

/// Opens an image to be read.
pub(crate) fn open(image: &Path) -> Result<File, Failure> {
    let name = image.display();
    let file = File::open(image).with_context(|| format!("cannot open {name}"));
    let file = file.map_err(Failure::Input)?;
    if file.metadata().map_err(Failure::run)?.is_dir() {
        return Err(Failure::input(anyhow!("{name}: is a directory")));
    }
    Ok(file)
}

fn said(path: &Path, done: &str, way: &str, copied: &Copied) -> String {
    let size = |sectors: u64| bytes((sectors * SECTOR_BYTES) as f64);
    let (filled, sectors) = (size(copied.filled), size(copied.sectors));
    format!("{}: {done} {filled} of data {way} a device of {sectors}\n", path.display())
}
