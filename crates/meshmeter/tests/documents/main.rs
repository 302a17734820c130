//! Checks what the documents show: commands with their options, experiment files, make targets, links, environment variables,
//! the order of the crates.
//!
//! Commands are also checked where sources, studies and scripts advise them.

mod book;
mod check_commands;
mod checks;
mod circles;
mod commands;
mod crates;
mod environment;
mod exit_status;
mod fuzzing;
mod links;
mod markdown;
mod pipelines;
mod rust_source;
mod shell;
mod tree;
mod tutorial;

// The program's own parser; its fields are for the commands.
#[allow(dead_code, unused_imports)]
#[path = "../../src/cli/mod.rs"]
mod cli;
// For its `--version`.
#[allow(dead_code)]
#[path = "../../src/build.rs"]
mod build;

use crate::tree::Tree;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

#[test]
fn every_documented_experiment_topology_and_traffic_parses() {
    let tree = Tree::repository();
    let mut files = 0;
    for (path, text) in tree.documents() {
        let folder = tempfile::tempdir().unwrap();
        // An experiment may name a topology of its document.
        let names = markdown::named_files(&text, folder.path());
        for name in &names {
            let file = fs::read_to_string(folder.path().join(name)).unwrap();
            if file.contains("\nrequests:\n") {
                let fault = experiment::traffic::read(&file, name, &SampleData).err();
                let fault = fault.map(|error| error.render(false));
                assert_eq!(fault, None, "{}", tree.shown(&path));
                continue;
            }
            let is_topology = file.contains("\nservices:\n");
            let arguments =
                if is_topology { ["topology", "check", name] } else { ["run", name, "--dry-run"] };
            let output = Command::new(env!("CARGO_BIN_EXE_meshmeter"))
                .args(arguments)
                .current_dir(folder.path())
                .output()
                .expect("meshmeter starts");
            let error = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{}: {error}", tree.shown(&path));
        }
        files += names.len();
    }
    assert!(files >= 6, "documents show experiments and topologies: {files}");
}

/// Data of the traffic files in documents.
struct SampleData;

impl experiment::Files for SampleData {
    fn text(&self, path: &str) -> Result<String, String> {
        Ok(if path.ends_with(".csv") { "name\nada\n" } else { "{\"id\": 1}\n" }.to_owned())
    }

    fn locate(&self, path: &str) -> Result<PathBuf, String> {
        Ok(path.into())
    }
}

/// Maximum length of a line of prose; tables, code and images may be longer.
const MAX_COLUMNS: usize = 130;

#[test]
fn prose_keeps_to_its_width() {
    let tree = Tree::repository();
    // The book's table of contents has a chapter a line.
    let mut wide = Vec::new();
    for (path, text) in tree.documents().into_iter().filter(|(path, _)| !path.ends_with("SUMMARY.md")) {
        for line in markdown::prose(&text).lines() {
            let is_prose = !line.trim_start().starts_with('|') && !line.starts_with("![");
            let columns = line.chars().count();
            if is_prose && columns > MAX_COLUMNS {
                wide.push(format!("{}: {columns} columns: {line}", tree.shown(&path)));
            }
        }
    }
    assert!(wide.is_empty(), "{wide:#?}");
}

/// A user who doubts a figure should be able to read the whole document.
#[test]
fn the_method_stays_short() {
    let method = Tree::repository().read("docs/method.md");
    assert!(method.len() <= 20_000, "{} bytes: move what was tried to docs/decisions", method.len());
}

#[test]
fn every_make_target_named_exists() {
    let makefile = Tree::repository().read("Makefile");
    let mut targets = 0;
    for (path, text) in Tree::repository().documents() {
        for named in text.split(['`', '\n']).filter_map(|piece| piece.strip_prefix("make ")) {
            let target = named.split_whitespace().next().unwrap_or_default();
            let there = makefile.lines().any(|line| line.starts_with(&format!("{target}:")));
            assert!(there, "{}: make {target}", path.display());
            targets += 1;
        }
    }
    assert!(targets >= 2, "make demo and make test are named");
}
