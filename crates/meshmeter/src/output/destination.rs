//! Destination of an output: a file, or standard output, which at most one output may use.

use super::written;
use crate::cli::ResultFileArgs;
use crate::failure::Failure;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// File name for standard output.
const STDOUT: &str = "-";

/// An output option, and its destination.
pub type Output = (&'static str, Destination);

/// Destination of one output.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Destination {
    /// Standard output.
    Stdout,
    /// A file, replaced if it exists.
    File(PathBuf),
}

impl Destination {
    /// Interprets the value of an option.
    pub fn from_path(path: &Path) -> Self {
        if path == Path::new(STDOUT) { Self::Stdout } else { Self::File(path.to_owned()) }
    }

    /// Name for messages.
    pub fn name(&self) -> String {
        match self {
            Self::Stdout => "standard output".to_owned(),
            Self::File(path) => path.display().to_string(),
        }
    }

    /// Opens the destination for writing in pieces.
    pub fn open(&self) -> io::Result<Box<dyn Write + Send>> {
        match self {
            Self::Stdout => Ok(Box::new(io::stdout())),
            Self::File(path) => Ok(Box::new(report::folder::open(path)?)),
        }
    }

    /// Writes everything at once: a file has either the new or the old contents.
    pub fn write(&self, contents: &[u8]) -> Result<(), Failure> {
        match self {
            Self::Stdout => {
                let mut stdout = io::stdout();
                written(stdout.write_all(contents).and_then(|()| stdout.flush()))
            }
            Self::File(path) => {
                report::folder::write_whole(path, contents).map_err(|error| Failure::environment(&error))
            }
        }
    }
}

/// A reader that closes the pipe early is not a failure of the measurement.
pub fn ignore_broken_pipe(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Each requested output, with its option.
pub fn named(args: &ResultFileArgs) -> Vec<Output> {
    let options = [
        ("--json", &args.json),
        ("--csv", &args.csv),
        ("--hdr", &args.hdr),
        ("--percentiles", &args.percentiles),
        ("--fortio", &args.fortio),
    ];
    of_options(options)
}

/// True if standard output is only used for text for people.
pub fn stdout_is_free(outputs: &[Output]) -> bool {
    outputs.iter().all(|(_, destination)| *destination != Destination::Stdout)
}

/// Each of a command's output options with its value.
pub fn of_options<'a>(files: impl IntoIterator<Item = (&'static str, &'a Option<PathBuf>)>) -> Vec<Output> {
    let files = files.into_iter().filter_map(|(option, path)| Some((option, path.as_deref()?)));
    files.map(|(option, path)| (option, Destination::from_path(path))).collect()
}

/// Reports outputs that cannot be written, before the measurement.
pub fn check(outputs: &[Output]) -> Result<(), Failure> {
    outputs.iter().try_for_each(|(option, destination)| check_path(option, destination))
}

/// An output option of a command line, and its destination.
pub type NamedOutput = (String, Destination);

/// Files that the command line has as outputs, with their options. Inputs that other files name are compared with them as they are
/// opened.
static OVERWRITTEN: OnceLock<Vec<(String, (u64, u64))>> = OnceLock::new();

/// Advice on two uses of one file.
const HINT: &str = "name a file of its own for each";

/// Reports outputs that collide: of standard output and of each file there is one.
pub fn check_distinct(outputs: &[NamedOutput]) -> Result<(), Failure> {
    for (index, (option, destination)) in outputs.iter().enumerate() {
        if let Some((other, _)) = outputs[..index].iter().find(|(_, other)| are_one(other, destination)) {
            let both = format!("{other} and {option} cannot both write to {}", destination.name());
            return Err(Failure::usage(both).with_hint(HINT));
        }
    }
    Ok(())
}

/// Reports an output of the command line that would overwrite an input.
pub fn check_inputs(
    outputs: &[NamedOutput],
    mut inputs: impl Iterator<Item = PathBuf>,
) -> Result<(), Failure> {
    let existing = |(option, destination): &NamedOutput| match destination {
        Destination::Stdout => None,
        Destination::File(path) => Some((option.clone(), identity(path)?)),
    };
    let existing = OVERWRITTEN.get_or_init(|| outputs.iter().filter_map(existing).collect());
    if existing.is_empty() {
        return Ok(());
    }
    inputs.try_for_each(|input| {
        let Some(option) = overwriting(&input) else { return Ok(()) };
        let both = format!("{option} would overwrite the input {}", input.display());
        Err(Failure::usage(both).with_hint(HINT))
    })
}

/// The output option that would overwrite a file, which may be one that another file names.
pub fn overwriting(input: &Path) -> Option<&'static str> {
    let existing = OVERWRITTEN.get().filter(|existing| !existing.is_empty())?;
    let file = identity(input)?;
    existing.iter().find(|(_, output)| *output == file).map(|(option, _)| option.as_str())
}

/// Device and number of a regular file, by whatever name. Pipes and devices can be read and written.
fn identity(path: &Path) -> Option<(u64, u64)> {
    let metadata = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    Some((metadata.dev(), metadata.ino()))
}

/// Reports a file that cannot be written.
fn check_path(option: &str, destination: &Destination) -> Result<(), Failure> {
    let Destination::File(path) = destination else { return Ok(()) };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    match folder {
        Some(folder) if !folder.is_dir() => {
            Err(Failure::usage(format!("{option}: there is no folder `{}`", folder.display())))
        }
        _ if path.is_dir() => {
            Err(Failure::usage(format!("{option}: `{}` is a folder, not a file", path.display())))
        }
        _ => Ok(()),
    }
}

/// True if one would overwrite the other. Devices such as /dev/null accept several outputs.
fn are_one(one: &Destination, other: &Destination) -> bool {
    match (one, other) {
        (Destination::File(one), Destination::File(other)) => {
            let is_file = |path: &Path| fs::metadata(path).map_or(true, |metadata| metadata.is_file());
            let place = |path: &Path| {
                fs::canonicalize(path).or_else(|_| std::path::absolute(path)).unwrap_or(path.to_owned())
            };
            place(one) == place(other) && is_file(one)
        }
        (one, other) => one == other,
    }
}
