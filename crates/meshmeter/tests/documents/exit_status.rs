//! The table of exit statuses: it has a row for each command, and what commands end with is what it says.

use crate::cli::Cli;
use crate::tree::Tree;
use clap::CommandFactory as _;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Text of a status that a command never ends with.
const NEVER: &str = "–";

/// Commands with what their statuses 1 and 3 mean.
fn rows(document: &str) -> BTreeMap<String, [String; 2]> {
    let mut rows = BTreeMap::new();
    for line in document.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [commands, one, three] = cells.as_slice() else { panic!("three cells: {line}") };
        for command in commands.split(", ") {
            let command = command.trim_matches('`').to_owned();
            rows.insert(command, [(*one).to_owned(), (*three).to_owned()]);
        }
    }
    rows
}

#[test]
fn every_command_has_a_row() {
    let rows = rows(&Tree::repository().read("docs/exit-status.md"));
    let program = Cli::command();
    let shown = program.get_subcommands().filter(|command| !command.is_hide_set());
    let mut names: Vec<&str> = shown.map(clap::Command::get_name).collect();
    names.sort_unstable();
    assert_eq!(rows.keys().collect::<Vec<_>>(), names);
}

/// Directory of a run whose machine cannot be read.
fn damaged(run: &Path, folder: &Path) {
    fs::create_dir(folder).unwrap();
    fs::copy(run.join("experiment.yaml"), folder.join("experiment.yaml")).unwrap();
    fs::copy(run.join("trials.jsonl"), folder.join("trials.jsonl")).unwrap();
    fs::write(folder.join("host.json"), "{").unwrap();
}

#[test]
fn commands_end_with_the_status_of_their_row() {
    let rows = rows(&Tree::repository().read("docs/exit-status.md"));
    let scratch = tempfile::tempdir().unwrap();
    let run = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/size_run");
    damaged(&run, &scratch.path().join("damaged"));
    fs::create_dir(scratch.path().join("empty")).unwrap();
    fs::write(scratch.path().join("h.jsonl"), "").unwrap();
    fs::write(scratch.path().join("bad.yaml"), "services: 7\n").unwrap();
    let run = run.to_str().expect("a plain name");
    let cases: &[(&str, i32)] = &[
        ("run sidecar-cost --dry-run", 0),
        ("run absent.yaml", 2),
        ("run sidecar-cost --repeats none", 2),
        ("report empty", 2),
        ("report damaged", 3),
        ("compare RUN empty", 2),
        ("compare RUN damaged", 3),
        ("compare absent.json RUN", 2),
        ("history add h.jsonl empty", 2),
        ("history add h.jsonl damaged", 3),
        ("history show absent.jsonl", 2),
        ("history show h.jsonl", 0),
        ("size --target 10rps --from empty", 2),
        ("size --target 10rps --from damaged", 3),
        ("size --target 10rps --mode ambient --from RUN", 1),
        ("size --target 10rps --objective first-event-p99=1s --from RUN", 1),
        ("size --target much --from RUN", 2),
        ("price RUN", 0),
        ("price RUN --mode ambient", 1),
        ("price empty", 2),
        ("price absent", 2),
        ("price damaged", 3),
        ("price RUN --topology absent.yaml --rate 1rps", 2),
        ("price RUN --prices absent.yaml", 2),
        ("price RUN --markdown /dev/full", 3),
        ("topology check bad.yaml", 2),
        ("topology check absent.yaml", 2),
        ("topology check pair", 0),
        ("learn --traces absent.json", 2),
        ("learn --kiali bad.yaml", 2),
        ("load absent.yaml", 2),
        ("load merge absent.json", 2),
        ("load --rate much http://127.0.0.1:1/", 2),
        ("serve --port much", 2),
        ("view absent", 2),
        ("fleet --proxies none", 2),
        ("lab exec absent -- true", 2),
        ("cluster attach --bogus", 2),
        ("doctor --repeats 2", 2),
        ("completion bash", 0),
        ("schema experiment", 0),
        ("schema nothing", 2),
        ("man --bogus", 2),
    ];
    let mut wrong = Vec::new();
    for (arguments, expected) in cases {
        let arguments: Vec<&str> =
            arguments.split(' ').map(|argument| if argument == "RUN" { run } else { argument }).collect();
        let command = Command::new(env!("CARGO_BIN_EXE_meshmeter"))
            .args(&arguments)
            .current_dir(scratch.path())
            .output()
            .expect("meshmeter starts");
        if command.status.code() != Some(*expected) {
            let said = String::from_utf8_lossy(&command.stderr).into_owned();
            wrong.push(format!("{arguments:?} ended with {}, not {expected}: {said}", command.status));
        }
        let [one, three] = &rows[arguments[0]];
        // Outputs that cannot be written are common to all.
        let is_told = match expected {
            1 => one != NEVER,
            3 => three != NEVER || arguments.contains(&"/dev/full"),
            _ => true,
        };
        assert!(is_told, "{arguments:?}: the row of {} says nothing of status {expected}", arguments[0]);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
