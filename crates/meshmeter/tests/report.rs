//! `meshmeter report`.

mod command;
#[path = "../../report/tests/fixture/mod.rs"]
mod fixture;

use command::{meshmeter, run, stderr, stdout};
use report::folder::{Existing, RunFolder};
use results::Summary;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Creates a run directory like that of `meshmeter run`, without report and summary.
fn run_folder(path: &Path) {
    folder_of(path, &fixture::run(fixture::usual_trials()));
}

fn folder_of(path: &Path, run: &report::RunData) {
    let mut folder = RunFolder::create(path, Existing::Keep).unwrap();
    folder.write_experiment(&run.experiment_yaml).unwrap();
    folder.write_host(&run.host).unwrap();
    for trial in &run.trials {
        folder.append_trial(trial).unwrap();
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("the test's folders have plain names")
}

#[test]
fn report_is_rebuilt_from_the_trials() {
    let root = tempfile::tempdir().unwrap();
    run_folder(root.path());
    let output = run(&["report", text(root.path())]);
    assert!(output.status.success(), "{}", stderr(&output));
    let summary: Summary =
        serde_json::from_slice(&fs::read(root.path().join("summary.json")).unwrap()).unwrap();
    assert_eq!((summary.trials_recorded, summary.trials_planned, summary.seed), (30, 30, 42));
    assert!(stdout(&output).starts_with(&summary.findings[0].text), "{}", stdout(&output));
    assert!(!stdout(&output).contains('\u{1b}'), "no colour in a pipe");
    let html = fs::read_to_string(root.path().join("report.html")).unwrap();
    assert!(html.contains("id=\"headline\""));
    assert!(stderr(&output).contains("report.html"));
}

#[test]
fn json_is_the_summary_alone() {
    let root = tempfile::tempdir().unwrap();
    run_folder(root.path());
    let output = run(&["report", text(root.path()), "--json"]);
    let summary: Summary = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary.cells.len(), 6);
}

#[test]
fn output_to_other_file_leaves_directory_unchanged() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("run");
    run_folder(&folder);
    let file = root.path().join("mine.html");
    let output = run(&["report", text(&folder), "--output", text(&file)]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(fs::read_to_string(&file).unwrap().starts_with("<!doctype html>"));
    assert!(!folder.join("report.html").exists() && !folder.join("summary.json").exists());
}

#[test]
fn components_are_exported_as_csv() {
    let root = tempfile::tempdir().unwrap();
    run_folder(root.path());
    let file = root.path().join("components.csv");
    let output = run(&["report", text(root.path()), "--csv", text(&file)]);
    assert!(output.status.success(), "{}", stderr(&output));
    let table = fs::read_to_string(&file).unwrap();
    let column = |name| table.lines().next().unwrap().split(',').position(|column| column == name).unwrap();
    let (component, clusters) = (column("component"), column("clusters"));
    let proxy = table
        .lines()
        .map(|line| line.split(',').collect::<Vec<_>>())
        .find(|fields| fields[0] == "sidecar" && fields[component] == "client-proxy")
        .unwrap();
    assert_eq!(proxy[clusters], "1204");
}

#[test]
fn drivers_and_services_are_exported_as_csv() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("run");
    folder_of(&folder, &fixture::run(fixture::tenant_trials(5)));
    let (drivers, services) = (root.path().join("drivers.csv"), root.path().join("services.csv"));
    let output =
        run(&["report", text(&folder), "--drivers-csv", text(&drivers), "--services-csv", text(&services)]);
    // One of five drivers misses the objective, and so does the run.
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let lines = |file| fs::read_to_string(file).unwrap().lines().count();
    assert_eq!((lines(&drivers), lines(&services)), (1 + 2 * 5, 1 + 2 * 10));
    let text = fs::read_to_string(&drivers).unwrap();
    assert!(text.contains(",tenant-5/generator,tenant-5,tenant-5/a,3,valid,missed,"), "{text}");
}

#[test]
fn ci_systems_get_junit_and_markdown() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("run");
    folder_of(&folder, &fixture::run(fixture::tenant_trials(5)));
    let (junit, markdown) = (root.path().join("junit.xml"), root.path().join("summary.md"));
    let output = run(&["report", text(&folder), "--junit", text(&junit), "--markdown", text(&markdown)]);
    // One of five drivers misses the objective, and so does the run.
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let junit = fs::read_to_string(&junit).unwrap();
    assert!(junit.contains(r#"type="missed"/>"#) && !junit.contains("failures=\"0\""), "{junit}");
    let page = fs::read_to_string(&markdown).unwrap();
    assert!(page.starts_with("## ") && page.contains("**Objective: not met**"), "{page}");
}

#[test]
fn calls_between_services_are_exported_as_csv() {
    let root = tempfile::tempdir().unwrap();
    let (folder, file) = (root.path().join("run"), root.path().join("edges.csv"));
    folder_of(&folder, &fixture::run(fixture::tiered::tiered_trials(2)));
    let output = run(&["report", text(&folder), "--edges-csv", text(&file)]);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", stderr(&output));
    let table = fs::read_to_string(&file).unwrap();
    let mut lines = table.lines();
    let heading = lines.next().unwrap();
    assert!(heading.contains(",from,to,proven,errors,requests_per_s,"), "{heading}");
    let summary: Summary = serde_json::from_slice(&fs::read(folder.join("summary.json")).unwrap()).unwrap();
    let edges: usize = summary.cells.iter().map(|cell| cell.edges.len()).sum();
    assert_eq!((lines.count(), edges % 4), (edges, 0), "four calls per namespace and cell");
    assert!(edges > 0 && table.contains(",tiered-2/a,tiered-2/b1,true,"), "{table}");
}

#[test]
fn a_run_that_was_killed_has_a_report() {
    let root = tempfile::tempdir().unwrap();
    run_folder(root.path());
    let trials = root.path().join("trials.jsonl");
    let bytes = fs::read(&trials).unwrap();
    fs::write(&trials, &bytes[..bytes.len() / 2]).unwrap();
    let output = run(&["report", text(root.path())]);
    assert_eq!(output.status.code(), Some(1), "a part of a run meets no objective: {}", stderr(&output));
    assert!(stderr(&output).contains("the run was cut short: "), "{}", stderr(&output));
    let html = fs::read_to_string(root.path().join("report.html")).unwrap();
    assert!(html.contains("The run was cut short") && html.contains("was cut short; that trial is lost"));
}

#[test]
fn strictness_is_for_comparisons() {
    let scratch = tempfile::tempdir().unwrap();
    run_folder(scratch.path());
    let output = run(&["report", text(scratch.path()), "--strict"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("is a run, not a comparison"), "{}", stderr(&output));
}

#[test]
fn report_on_non_run_directory_is_usage_error_with_hint() {
    let root = tempfile::tempdir().unwrap();
    for path in [root.path().to_owned(), root.path().join("absent")] {
        let output = run(&["report", text(&path)]);
        assert_eq!(output.status.code(), Some(2));
        let said = stderr(&output);
        assert!(said.contains("is not a run folder") && said.contains("hint"), "{said}");
        assert_eq!(said.lines().count(), 2, "{said}");
    }
}

#[test]
fn an_experiment_that_cannot_be_read_is_named() {
    let root = tempfile::tempdir().unwrap();
    run_folder(root.path());
    fs::write(root.path().join("experiment.yaml"), "name: x\nrate: 5\n").unwrap();
    let output = run(&["report", text(root.path())]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("experiment.yaml"), "{}", stderr(&output));
}

/// A file size limit simulates a full disk: writing fails in the middle of the file.
#[test]
fn pipe_instead_of_trials_is_named_without_blocking() {
    let scratch = tempfile::tempdir().unwrap();
    run_folder(scratch.path());
    let trials = scratch.path().join("trials.jsonl");
    std::fs::remove_file(&trials).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, &trials, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
    let output = run(&["report", text(scratch.path())]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("not a regular file"), "{}", stderr(&output));
}

#[test]
fn a_full_disk_keeps_the_old_report() {
    let root = tempfile::tempdir().unwrap();
    run_folder(root.path());
    assert!(meshmeter().arg("report").arg(root.path()).output().unwrap().status.success());
    // The summary fits, the page does not.
    let summary_bytes = fs::metadata(root.path().join("summary.json")).unwrap().len();
    let limit = format!("trap '' XFSZ; ulimit -f {}; exec \"$0\" report \"$1\"", summary_bytes / 1024 + 1);
    fs::write(root.path().join("report.html"), "old").unwrap();
    let output = Command::new("bash")
        .args(["-c", &limit])
        .arg(meshmeter().get_program())
        .arg(root.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let said = stderr(&output);
    assert!(said.contains("report.html") && said.contains("too large"), "{said}");
    assert_eq!(fs::read_to_string(root.path().join("report.html")).unwrap(), "old");
    let parts = fs::read_dir(root.path()).unwrap().filter(|entry| {
        entry.as_ref().is_ok_and(|entry| entry.file_name().to_string_lossy().contains(".part"))
    });
    assert_eq!(parts.count(), 0, "nothing half written is left behind");
}

#[test]
fn noise_is_accepted_by_the_report_that_is_told_to() {
    let root = tempfile::tempdir().unwrap();
    folder_of(root.path(), &fixture::run(fixture::retaken_trials()));
    let report = |options: &[&str]| {
        let output = run(&[&["report", text(root.path())], options].concat());
        // The fixture has fewer repeats than its experiment.
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        let summary = fs::read(root.path().join("summary.json")).unwrap();
        (stdout(&output), serde_json::from_slice::<Summary>(&summary).unwrap())
    };
    let disturbed = |summary: &Summary| summary.cells.iter().filter(|cell| cell.disturbed.is_some()).count();
    let (shown, summary) = report(&[]);
    assert!(shown.contains("Disturbed figures"), "{shown}");
    assert_eq!((summary.noise_accepted.as_ref(), disturbed(&summary)), (None, 1));
    let (shown, summary) = report(&["--accept-noise"]);
    let said = "Noise accepted: 1 of 11 trials was disturbed by other programs; figures include them.\n";
    assert!(shown.starts_with(said), "{shown}");
    let noise = summary.noise_accepted.as_ref().expect("it is in the summary");
    assert_eq!((noise.trials, noise.of, disturbed(&summary)), (1, 11, 0));
    assert_eq!(report(&[]).1.noise_accepted, None, "the word is for one report");
}

#[test]
fn noise_is_not_accepted_in_comparisons() {
    let root = tempfile::tempdir().unwrap();
    run_folder(root.path());
    let folder = text(root.path());
    let gate =
        ["compare", "--base", "proxy.workers=1", "--head", "proxy.workers=2", "sidecar-cost", "--dry-run"];
    for arguments in [&["report", folder, "--beside", folder][..], &gate] {
        let refused = run(&[arguments, &["--accept-noise"]].concat());
        assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
        assert!(stderr(&refused).contains("--accept-noise"), "{}", stderr(&refused));
    }
}
