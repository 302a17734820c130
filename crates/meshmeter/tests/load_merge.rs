//! `meshmeter load merge` of the results of two concurrent generators.

mod command;

use command::{Serving, meshmeter, run, stderr, stdout};
use results::LoadResult;
use std::fs;
use std::path::Path;
use std::process::{Child, Output, Stdio};

fn generator(folder: &Path, name: &str, rate: &str, url: &str) -> Child {
    meshmeter()
        .current_dir(folder)
        .args(["load", "--progress", "off", "--duration", "1s", "--connections", "2", "--series-histograms"])
        .args(["--rate", rate, "--json", name, url])
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

fn merge(folder: &Path, arguments: &[&str]) -> Output {
    meshmeter().current_dir(folder).args(["load", "merge"]).args(arguments).output().unwrap()
}

fn result(folder: &Path, name: &str) -> LoadResult {
    serde_json::from_slice(&fs::read(folder.join(name)).unwrap()).unwrap()
}

#[test]
fn two_generators_add_up_to_what_the_server_saw() {
    let server = Serving::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut generators = [("a.json", "100"), ("b.json", "200")]
        .map(|(name, rate)| generator(folder, name, rate, &server.url()));
    generators.iter_mut().for_each(|generator| assert!(generator.wait().unwrap().code().is_some()));
    let outputs = ["--json", "c.json", "--csv", "c.csv", "--hdr", "c.hlog", "--fortio", "c.fortio"];
    let output = merge(folder, &[&["a.json", "b.json"], &outputs[..]].concat());
    assert!(
        matches!(output.status.code(), Some(0 | 1)),
        "a busy machine may start them apart: {}",
        stderr(&output)
    );
    assert!(stdout(&output).contains("2 generators"), "{}", stdout(&output));
    let merged = result(folder, "c.json");
    assert_eq!(merged.requests.completed, server.requests());
    assert_eq!((merged.rate.offered, merged.connections), (Some(300.0), 4));
    assert_eq!(merged.requests.completed + merged.requests.unsent, 300, "{:?}", merged.requests);
    assert_eq!(merged.response_time_us.count, merged.requests.completed);
    assert_eq!(merged.verdict.valid, output.status.success());
    let [a, b] = ["a.json", "b.json"].map(|name| result(folder, name));
    // `None` if a busy machine left requests unsent.
    let greatest = a.response_time_us.max.zip(b.response_time_us.max).map(|(a, b)| a.max(b));
    assert_eq!(merged.response_time_us.max, greatest);
    assert!(fs::read_to_string(folder.join("c.csv")).unwrap().starts_with("t_s,"));
    assert!(fs::read_to_string(folder.join("c.hlog")).unwrap().contains("StartTime"));
    assert!(fs::read_to_string(folder.join("c.fortio")).unwrap().contains("\"RequestedQPS\": \"300\""));
    // A merged result contains its parts.
    let again = merge(folder, &["c.json", "a.json"]);
    assert_eq!(again.status.code(), Some(2));
    assert!(stderr(&again).contains("would count twice"), "{}", stderr(&again));
}

#[test]
fn files_that_are_not_results_are_named_with_position() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let good = include_str!("load-result.json");
    fs::write(folder.join("good.json"), good).unwrap();
    fs::write(folder.join("cut.json"), &good[..good.len() / 2]).unwrap();
    fs::write(folder.join("later.json"), good.replace("meshmeter.load/1", "meshmeter.load/2")).unwrap();
    fs::write(folder.join("other.json"), "{\"a\": 1}").unwrap();
    for (file, expected) in [
        ("cut.json", " at line "),
        ("other.json", "missing field `schema` at line 1 column 8"),
        ("later.json", "`meshmeter.load/2`"),
        ("absent.json", "No such file"),
        (".", "Is a directory"),
    ] {
        let output = merge(folder, &["good.json", file]);
        assert_eq!(output.status.code(), Some(2), "{file}: {}", stderr(&output));
        assert!(
            stderr(&output).contains(expected) && stderr(&output).contains(file),
            "{file}: {}",
            stderr(&output)
        );
    }
    let alone = merge(folder, &["good.json"]);
    assert_eq!(alone.status.code(), Some(2), "{}", stderr(&alone));
}

#[test]
fn results_of_different_times_merge_to_invalid_result_without_seconds() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let good = include_str!("load-result.json");
    fs::write(folder.join("a.json"), good).unwrap();
    let mut later: LoadResult = serde_json::from_str(good).unwrap();
    later.started_at = "2031-01-01T00:00:00Z".to_owned();
    fs::write(folder.join("b.json"), serde_json::to_vec(&later).unwrap()).unwrap();
    let output = merge(folder, &["a.json", "b.json"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stdout(&output).contains("overlap: at no time"), "{}", stdout(&output));
    let output = merge(folder, &["a.json", "b.json", "--hdr", "c.hlog"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--series-histograms"), "{}", stderr(&output));
}

#[test]
fn merge_is_a_subcommand_next_to_urls() {
    assert!(stdout(&run(&["load", "--help"])).contains("merge"));
    let completion = stdout(&run(&["completion", "bash"]));
    for option in ["--hdr", "--percentiles", "--csv", "--fortio", "merge"] {
        assert!(completion.contains(option), "{option}");
    }
    let output = run(&["load", "merge", "--rate", "5", "a.json"]);
    assert_eq!(output.status.code(), Some(2));
}
