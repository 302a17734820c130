//! Paths of a command line: an output must be neither an input nor another output.
//!
//! The definitions of all options are walked, so that commands have no check of their own: an option with a path is an input
//! unless [`OUTPUTS`] names it.

use crate::cli::provenance_path;
use crate::failure::Failure;
use crate::output::Destination;
use crate::output::destination::{NamedOutput, check_distinct, check_inputs};
use clap::{Arg, ArgMatches, Command, ValueHint};
use report::folder::{
    COMPARISON_REPORT_FILE, LOGS_FOLDER, REPORT_FILE, RUN_FILES, SELF_TEST_FILE, SUMMARY_FILE,
};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Options of all commands that write a file, or the files of a run into a directory.
const OUTPUTS: [&str; 15] = [
    "added_to",
    "csv",
    "drivers_csv",
    "edges_csv",
    "fortio",
    "hdr",
    "json",
    "junit",
    "latency_csv",
    "markdown",
    "out",
    "output",
    "percentiles",
    "services_csv",
    "tls_ca_out",
];
/// Option without a value that prints JSON on standard output.
const PRINTS_JSON: &str = "json";
/// The command that writes the provenance beside its output.
const LEARN: &str = "learn";
/// The command that writes into the directory that it reads, unless an option names its outputs.
const REPORT: &str = "report";
/// Files of a directory that this command writes, and never reads.
const OF_REPORT: [&str; 3] = [REPORT_FILE, SUMMARY_FILE, COMPARISON_REPORT_FILE];

/// Reports outputs of a parsed command line that collide with an input or with each other. Nothing is written yet.
pub fn check(command: &Command, matches: &ArgMatches) -> Result<(), Failure> {
    let (mut command, mut matches) = (command, matches);
    while let Some((name, own)) = matches.subcommand() {
        (command, matches) = (command.find_subcommand(name).expect("it was parsed"), own);
    }
    let is_report = command.get_name() == REPORT;
    // Those into directories are the command's own to refuse: --overwrite may be given.
    let (mut outputs, mut into_folders): (Vec<NamedOutput>, Vec<NamedOutput>) = (Vec::new(), Vec::new());
    let mut inputs: Vec<&Path> = Vec::new();
    for arg in command.get_arguments() {
        let id = arg.get_id().as_str();
        let files_of = |files: &[PathBuf]| -> Vec<NamedOutput> {
            files.iter().map(|file| (name(arg), Destination::from_path(file))).collect()
        };
        if !arg.get_action().takes_values() {
            if id == PRINTS_JSON && matches.get_flag(id) {
                outputs.insert(0, (name(arg), Destination::Stdout));
            }
            continue;
        }
        for path in matches.get_raw(id).into_iter().flatten().filter_map(|value| path(arg, value)) {
            let is_folder = arg.get_value_hint() == ValueHint::DirPath;
            if OUTPUTS.contains(&id) && is_folder {
                into_folders.extend(files_of(&RUN_FILES.map(|name| path.join(name))));
            } else if OUTPUTS.contains(&id) && command.get_name() == LEARN {
                outputs.extend(files_of(&[path.to_owned(), provenance_path(path)]));
            } else if OUTPUTS.contains(&id) {
                outputs.extend(files_of(&[path.to_owned()]));
            } else {
                inputs.push(path);
                if is_report && id == "folder" && ["output", "beside"].iter().all(|id| !has(matches, id)) {
                    let files = OF_REPORT.map(|name| Destination::File(path.join(name)));
                    into_folders.extend(files.map(|file| ("the command itself".to_owned(), file)));
                }
            }
        }
    }
    check_inputs(&outputs, inputs.into_iter().flat_map(|path| read(path, is_report)))?;
    outputs.extend(into_folders);
    check_distinct(&outputs)
}

fn has(matches: &ArgMatches, id: &str) -> bool {
    matches.get_raw(id).is_some()
}

/// An option as typed, or the name of an argument.
fn name(arg: &Arg) -> String {
    let value_name = || arg.get_value_names().and_then(<[_]>::first).map_or("FILE", |name| name.as_str());
    arg.get_long().map_or_else(|| value_name().to_owned(), |long| format!("--{long}"))
}

/// True if a file is named after `@`, beside values of another kind.
fn is_marked(arg: &Arg) -> bool {
    arg.get_value_names().into_iter().flatten().any(|name| name.contains("@FILE"))
}

/// True if a value is or can be a path. Options of the type [`PathBuf`] have a hint by themselves.
fn is_path(arg: &Arg) -> bool {
    use ValueHint::{AnyPath, DirPath, ExecutablePath, FilePath};
    matches!(arg.get_value_hint(), AnyPath | DirPath | ExecutablePath | FilePath)
}

/// The path that a value is or has.
fn path<'a>(arg: &Arg, value: &'a OsStr) -> Option<&'a Path> {
    if is_marked(arg) {
        return value.as_bytes().strip_prefix(b"@").map(|path| Path::new(OsStr::from_bytes(path)));
    }
    is_path(arg).then(|| Path::new(value))
}

/// A file that a command reads, or the files of a run's directory.
fn read(path: &Path, is_report: bool) -> Vec<PathBuf> {
    let names = RUN_FILES.into_iter().chain([SELF_TEST_FILE]);
    let names = names.filter(|name| !(is_report && OF_REPORT.contains(name)));
    let mut files: Vec<PathBuf> = names.map(|name| path.join(name)).collect();
    files.push(path.to_owned());
    let mut folders = vec![path.join(LOGS_FOLDER)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_folder { &mut folders } else { &mut files }.push(entry.path());
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::CommandFactory as _;

    /// All arguments with a value, each with its command.
    fn arguments(command: &Command, of: &str) -> Vec<(String, Arg)> {
        let place = format!("{of} {}", command.get_name());
        let own = command.get_arguments().filter(|arg| arg.get_action().takes_values());
        let own = own.map(|arg| (place.clone(), arg.clone()));
        own.chain(command.get_subcommands().flat_map(|command| arguments(command, &place))).collect()
    }

    #[test]
    fn every_option_with_a_file_is_an_output_or_an_input() {
        let mut command = Cli::command();
        command.build();
        // Names of what is elsewhere: in a cluster, or in a list of runs.
        let elsewhere = ["attach", "clean", "run_identifier", "remove"];
        for (command, arg) in arguments(&command, "") {
            let id = arg.get_id().as_str();
            let words = arg.get_value_names().into_iter().flatten().flat_map(|name| name.split(['|', '-']));
            let names_a_file = words
                .into_iter()
                .any(|word| ["FILE", "@FILE", "DIR", "PATH", "RUN", "RESULT", "OTHER"].contains(&word));
            let is_elsewhere = elsewhere.iter().any(|name| command.ends_with(name) || id == *name);
            let is_known = is_marked(&arg) || is_path(&arg);
            assert!(
                is_known || !names_a_file || is_elsewhere,
                "{command} {id} needs a hint that it is a path"
            );
            let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
            let writes = ["Write", "Directory for the", "Copy", "History; made"];
            let is_written = is_known && writes.iter().any(|verb| help.starts_with(verb));
            assert_eq!(is_written, is_known && OUTPUTS.contains(&id), "{command} {id}: {help}");
        }
    }
}
