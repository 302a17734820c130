//! Checks a command with the program's own parser; runs, comparisons and labs are planned, too.

use crate::cli::{Cli, Command as Parsed, CompareArgs, LabArgs, LabCommand, RunArgs, UpArgs};
use crate::commands::Shown;
use crate::markdown;
use clap::Parser as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::collections::HashSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use tempfile::TempDir;

/// Programs of users that texts name. A plan needs them to exist.
const OWN_PROGRAMS: [&str; 4] = ["/opt/a/envoy", "/opt/b/envoy", "/opt/envoy-1.35", "/opt/envoy-1.36"];

/// Experiment files of users that texts name and no document shows.
const OWN_EXPERIMENTS: [&str; 5] =
    ["experiment.yaml", "my-experiment.yaml", "my-question.yaml", "before.yaml", "after.yaml"];

/// Runs planned so far, and a folder with the files that they name.
pub struct Checker {
    folder: TempDir,
    planned: HashSet<Vec<String>>,
    commands: usize,
}

impl Checker {
    pub fn new() -> Self {
        let checker = Self { folder: tempfile::tempdir().unwrap(), planned: HashSet::new(), commands: 0 };
        for program in OWN_PROGRAMS {
            let path = checker.folder.path().join(program.trim_start_matches('/'));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "#!/bin/sh\n").unwrap();
            fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        }
        for experiment in OWN_EXPERIMENTS {
            let text = include_str!("../../../../studies/sidecar-cost.yaml");
            fs::write(checker.folder.path().join(experiment), text).unwrap();
        }
        checker
    }

    /// Numbers of commands and of different runs that were checked.
    pub fn counts(&self) -> (usize, usize) {
        (self.commands, self.planned.len())
    }

    /// Puts the experiments and topologies of a document where its commands find them: under their names.
    pub fn put_files(&self, document: &str) {
        markdown::named_files(document, self.folder.path());
    }

    /// Fault of a command.
    pub fn check(&mut self, shown: &Shown) -> Option<String> {
        self.commands += 1;
        let arguments = substituted(words(&without_templates(&shown.arguments)));
        let problem = match Cli::try_parse_from(
            ["meshmeter"].into_iter().chain(arguments.iter().map(String::as_str)),
        ) {
            Ok(Cli { command }) => match command {
                Parsed::Run(run) => self.plan(&run).err(),
                Parsed::Compare(compare) if !shown.is_mention => {
                    self.plan_comparison(&compare, arguments).err()
                }
                Parsed::Lab(LabArgs { command: LabCommand::Up(up) }) => self.plan_lab(&up).err(),
                _ => None,
            },
            Err(error) if !error.use_stderr() || shown.is_mention && is_incomplete(&error) => None,
            Err(error) => Some(error.to_string()),
        };
        problem.map(|problem| {
            let reason = problem.lines().next().unwrap_or_default();
            format!("`meshmeter {}`: {reason}", shown.arguments)
        })
    }

    /// Plans a run in the lab, wherever it is to run: a plan for a cluster needs one, and the experiment is the same.
    fn plan(&mut self, run: &RunArgs) -> Result<(), String> {
        // A run that is continued has its plan already.
        let Some(name) = &run.experiment else { return Ok(()) };
        self.plan_with(plan_arguments(name, run))
    }

    /// Plans a comparison that is to be measured.
    fn plan_comparison(&mut self, compare: &CompareArgs, mut arguments: Vec<String>) -> Result<(), String> {
        if compare.base.is_empty() {
            return Ok(());
        }
        arguments.extend((!compare.dry_run).then(|| "--dry-run".to_owned()));
        self.plan_with(arguments)
    }

    /// Plans what a lab is brought up for.
    fn plan_lab(&mut self, up: &UpArgs) -> Result<(), String> {
        if !up.mesh.makes(up.mode) {
            return Err(format!("`--mesh {}` has no mode {}", up.mesh, up.mode));
        }
        let file = format!("lab-up-{}-{}.yaml", up.mesh, up.mode);
        fs::write(self.folder.path().join(&file), up.experiment()).unwrap();
        self.plan_with(lab_arguments(up, &file))
    }

    fn plan_with(&mut self, arguments: Vec<String>) -> Result<(), String> {
        if self.planned.contains(&arguments) {
            return Ok(());
        }
        let own_programs = format!("{}/opt/", self.folder.path().display());
        let planning = Command::new(env!("CARGO_BIN_EXE_meshmeter"))
            .args(arguments.iter().map(|argument| argument.replace("/opt/", &own_programs)))
            .current_dir(self.folder.path())
            .output()
            .expect("meshmeter starts");
        let error = String::from_utf8_lossy(&planning.stderr);
        if !planning.status.success() {
            return Err(error.into_owned());
        }
        self.planned.insert(arguments);
        Ok(())
    }
}

/// Arguments that plan the trial of a lab, which `lab up` reads as an experiment.
fn lab_arguments(up: &UpArgs, experiment: &str) -> Vec<String> {
    let mut arguments = vec!["run".to_owned(), experiment.to_owned(), "--dry-run".to_owned()];
    arguments.extend(up.set.iter().flat_map(|value| ["--set".to_owned(), value.clone()]));
    arguments.extend(up.istio.iter().flat_map(|version| ["--istio".to_owned(), version.to_string()]));
    arguments
}

fn plan_arguments(experiment: &str, run: &RunArgs) -> Vec<String> {
    let mut arguments = vec!["run".to_owned(), experiment.to_owned(), "--dry-run".to_owned()];
    let options = [
        ("--repeats", &run.repeats),
        ("--retakes", &run.trials.retakes),
        ("--duration", &run.trials.duration),
        ("--pacing", &run.trials.pacing),
        ("--scale", &run.trials.scale),
    ];
    let given = options.into_iter().filter_map(|(option, value)| Some((option, value.as_ref()?)));
    for (option, value) in given.chain(run.trials.set.iter().map(|value| ("--set", value))) {
        arguments.extend([option.to_owned(), value.clone()]);
    }
    arguments.extend(run.istio.iter().flat_map(|version| ["--istio".to_owned(), version.to_string()]));
    arguments
}

/// True if all that is wrong is that arguments or values are missing.
fn is_incomplete(error: &clap::Error) -> bool {
    let lacks_value = || matches!(error.get(ContextKind::InvalidValue), Some(ContextValue::String(value)) if value.is_empty());
    match error.kind() {
        ErrorKind::MissingRequiredArgument
        | ErrorKind::MissingSubcommand
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => true,
        ErrorKind::InvalidValue => lacks_value(),
        _ => false,
    }
}

/// Words of a command line as a shell splits them, with quoted text as part of a word.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut quote) = (vec![String::new()], None);
    for character in line.chars() {
        match (character, quote) {
            ('\'' | '"', None) => quote = Some(character),
            (_, Some(open)) if character == open => quote = None,
            (' ', None) => words.push(String::new()),
            _ => words.last_mut().expect("there is one").push(character),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// The words with values for placeholders: `VERSION`, `[RUN]`, `$rate`, `{run}` of a format string, `{{ $run }}` of a template.
fn substituted(words: Vec<String>) -> Vec<String> {
    let mut substituted: Vec<String> = Vec::new();
    for word in words.into_iter().filter(|word| !["…", "..."].contains(&word.as_str())) {
        let previous = substituted.last().map_or("", String::as_str);
        let is_variable = word.starts_with('$');
        let is_placeholder = is_variable || word.contains('{') && without_placeholders(&word) != word;
        let word = without_placeholders(optional(&word));
        let value = match (previous, word.as_str()) {
            ("--istio", _) if is_placeholder => "1.30.4",
            ("install", _) if is_placeholder => "envoy",
            ("--rate", _) if is_placeholder => "1000",
            ("run", _) if is_variable => "sidecar-cost",
            _ if is_variable => "1",
            (_, "VERSION") => "1.30.4",
            ("run", "STUDY" | "NAME" | "FILE" | "<file>") => "sidecar-cost",
            (_, "URL") => "http://127.0.0.1:8080/",
            (_, "N") => "3",
            (_, "SHELL") => "bash",
            (_, "RUN-ID") => "3f9k2a",
            _ if word.contains("://x1") => "http://127.0.0.1:8080/",
            _ => &word,
        };
        let value = value.to_owned();
        substituted.push(value);
    }
    substituted
}

/// A word without the brackets of an argument that may be left out: `[RUN]`.
fn optional(word: &str) -> &str {
    word.strip_prefix('[').and_then(|word| word.strip_suffix(']')).unwrap_or(word)
}

/// A command with `x1` for what a template puts in: `{{ $run }}`.
fn without_templates(command: &str) -> String {
    let Some((before, rest)) = command.split_once("{{ ") else { return command.to_owned() };
    let after = rest.split_once(" }}").map_or("", |(_, after)| after);
    format!("{before}x1{}", without_templates(after))
}

/// A word with `x1` for each name in braces. Braces with anything else, such as `{1..100}`, stay.
fn without_placeholders(word: &str) -> String {
    let Some((before, rest)) = word.split_once('{') else { return word.to_owned() };
    let Some((name, after)) = rest.split_once('}') else { return word.to_owned() };
    let is_name = name.chars().all(|character| character.is_ascii_alphabetic() || "_.".contains(character));
    let value = if is_name { "x1".to_owned() } else { format!("{{{name}}}") };
    format!("{before}{value}{}", without_placeholders(after))
}
