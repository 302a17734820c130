//! Checks what the documents show: commands with their options, experiment files, make targets, linked files.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .expect("the crate lies in the repository")
}

/// Paths and texts of all documents.
fn documents() -> Vec<(PathBuf, String)> {
    let root = repository();
    let in_folder = |folder: PathBuf| {
        fs::read_dir(folder).expect("the folder is there").map(|entry| entry.unwrap().path())
    };
    let paths = in_folder(root.clone())
        .chain(in_folder(root.join("docs")))
        .chain(in_folder(root.join("docs/decisions")));
    let documents: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .map(|path| (path.clone(), fs::read_to_string(path).unwrap()))
        .collect();
    assert!(documents.len() >= 5, "README, CONTRIBUTING and docs/ are found: {documents:?}");
    documents
}

/// Fenced blocks of a language.
fn blocks<'a>(text: &'a str, language: &str) -> Vec<&'a str> {
    text.split("```")
        .skip(1)
        .step_by(2)
        .filter_map(|block| block.strip_prefix(language)?.strip_prefix('\n'))
        .collect()
}

fn meshmeter(arguments: &[impl AsRef<OsStr>]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_meshmeter")).args(arguments).output().expect("meshmeter starts")
}

/// Words of a command line as a shell splits them, with text in single quotes as part of a word.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut is_quoted) = (vec![String::new()], false);
    for character in line.chars() {
        match character {
            '\'' => is_quoted = !is_quoted,
            ' ' if !is_quoted => words.push(String::new()),
            _ => words.last_mut().expect("there is one").push(character),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// True if this is a run of a preset study in the lab, which can be planned without a lab.
fn can_be_planned(arguments: &[String]) -> bool {
    let is_elsewhere = |argument: &String| ["--on", "--istio", "--dry-run"].contains(&argument.as_str());
    let study = |name: &String| repository().join(format!("studies/{name}.yaml")).exists();
    arguments[0] == "run" && arguments.get(1).is_some_and(study) && !arguments.iter().any(is_elsewhere)
}

#[test]
fn every_documented_command_parses() {
    let (mut commands, mut plans) = (0, 0);
    for (path, text) in documents() {
        for line in blocks(&text, "sh").into_iter().flat_map(str::lines) {
            let command = line.split(" #").next().unwrap_or_default().trim();
            let command = command.strip_prefix("sudo ").unwrap_or(command);
            let Some(arguments) =
                command.strip_prefix("target/release/").unwrap_or(command).strip_prefix("meshmeter ")
            else {
                continue;
            };
            let mut arguments = words(arguments);
            // With --help, options and values are parsed as usual, but nothing is run. A plan checks settings, too.
            let is_plan = can_be_planned(&arguments);
            arguments.push(if is_plan { "--dry-run" } else { "--help" }.to_owned());
            let output = meshmeter(&arguments);
            let error = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{}: `{command}`: {error}", path.display());
            commands += 1;
            plans += usize::from(is_plan);
        }
    }
    assert!(commands >= 4, "the README shows commands; {commands} were found");
    assert!(plans >= 4, "documents show runs of studies; {plans} were found");
}

#[test]
fn every_documented_experiment_and_topology_parses() {
    let folder = tempfile::tempdir().unwrap();
    let mut experiments = 0;
    for (path, text) in documents() {
        for block in blocks(&text, "yaml") {
            let file = folder.path().join(format!("{experiments}.yaml"));
            fs::write(&file, block).unwrap();
            let file = file.to_str().unwrap();
            let is_topology = block.lines().any(|line| line == "services:");
            let output = meshmeter(&if is_topology {
                ["topology", "check", file]
            } else {
                ["run", file, "--dry-run"]
            });
            let error = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{}: {error}", path.display());
            experiments += 1;
        }
    }
    assert!(experiments >= 1, "the README shows an experiment");
}

/// Maximum length of a line of prose; tables, code and images may be longer.
const MAX_COLUMNS: usize = 130;

#[test]
fn prose_keeps_to_its_width() {
    let checked = [
        "README.md",
        "method.md",
        "result-files.md",
        "load.md",
        "size.md",
        "export.md",
        "terminology.md",
        "studies.md",
        "questions.md",
        "topology.md",
    ];
    let is_checked =
        |path: &Path| path.file_name().is_some_and(|name| checked.iter().any(|file| name == *file));
    for (path, text) in documents().into_iter().filter(|(path, _)| is_checked(path)) {
        // Every other part is outside of code blocks.
        for line in text.split("```").step_by(2).flat_map(str::lines) {
            let is_prose = !line.trim_start().starts_with('|') && !line.starts_with("![");
            let columns = line.chars().count();
            assert!(!is_prose || columns <= MAX_COLUMNS, "{}: {columns} columns: {line}", path.display());
        }
    }
}

/// A user who doubts a figure should be able to read the whole document.
#[test]
fn the_method_stays_short() {
    let method = fs::read_to_string(repository().join("docs/method.md")).unwrap();
    assert!(method.len() <= 20_000, "{} bytes: move what was tried to docs/decisions", method.len());
}

#[test]
fn every_make_target_named_exists() {
    let makefile = fs::read_to_string(repository().join("Makefile")).unwrap();
    let mut targets = 0;
    for (path, text) in documents() {
        for named in text.split(['`', '\n']).filter_map(|piece| piece.strip_prefix("make ")) {
            let target = named.split_whitespace().next().unwrap_or_default();
            let there = makefile.lines().any(|line| line.starts_with(&format!("{target}:")));
            assert!(there, "{}: make {target}", path.display());
            targets += 1;
        }
    }
    assert!(targets >= 2, "make demo and make test are named");
}

#[test]
fn every_linked_file_exists() {
    for (path, text) in documents() {
        for link in text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next()) {
            if link.is_empty() || link.contains("://") {
                continue;
            }
            let file = path.parent().unwrap().join(link);
            assert!(file.exists(), "{} links to {link}", path.display());
        }
    }
}
