//! `meshmeter compare` with real Envoy in a real lab: files, counts and exit status. Verdicts depend on the machine, and are
//! tested with simulated data and in memory.

mod command;

use command::{meshmeter, run, said, start, stderr, stdout};
use results::{Comparison, ComparisonEnd, ComparisonVerdict, TrialRecord};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const TINY: [&str; 8] = [
    "sidecar-cost",
    "--set",
    "modes=[none, sidecar]",
    "--set",
    "load.rate=[200]",
    "--duration",
    "500ms",
    "--noise-floor=100ms",
];

fn comparison(folder: &Path) -> Comparison {
    serde_json::from_slice(&fs::read(folder.join("comparison.json")).expect("a result")).expect("its schema")
}

fn trials(folder: &Path) -> Vec<TrialRecord> {
    let text = fs::read_to_string(folder.join("trials.jsonl")).expect("trials are recorded");
    text.lines().map(|line| serde_json::from_str(line).expect("a trial a line")).collect()
}

#[test]
fn arms_are_measured_alike_and_every_output_has_the_result() {
    let scratch = tempfile::tempdir().unwrap();
    let path = |name: &str| scratch.path().join(name).to_str().unwrap().to_owned();
    let (out, junit, markdown) = (path("run"), path("compare.xml"), path("compare.md"));
    let mut arguments = vec!["compare", "--base", "proxy.workers=1", "--head", "proxy.workers=2"];
    arguments.extend(TINY);
    arguments.extend(["--repeats", "4", "--retakes", "0", "--strict", "--json"]);
    arguments.extend(["--out", &out, "--junit", &junit, "--markdown", &markdown]);
    let output = run(&arguments);
    // Each verdict has its status.
    let folder = Path::new(&out);
    let found = comparison(folder);
    let expected: &[i32] = match found.verdict {
        ComparisonVerdict::Failed => &[1],
        ComparisonVerdict::Worse => &[4],
        ComparisonVerdict::Inconclusive => &[5],
        ComparisonVerdict::Better | ComparisonVerdict::Equivalent => &[0],
    };
    assert!(expected.contains(&output.status.code().unwrap()), "{found:?}{}", stderr(&output));
    assert_eq!(serde_json::from_str::<Comparison>(&stdout(&output)).unwrap(), found);
    assert_eq!(found.looks, 4, "no verdict before");
    let trials = trials(folder);
    let mut arms: BTreeMap<String, usize> = BTreeMap::new();
    for trial in &trials {
        *arms.entry(trial.factors["arm"].to_string()).or_default() += 1;
        assert_eq!(trial.mode.name(), "sidecar", "nothing can differ without a mesh");
        assert!(trial.path.proven, "{:?}", trial.path);
    }
    let counts = ["base", "control", "head"].map(|arm| (arm.to_owned(), 4));
    assert_eq!(arms, BTreeMap::from(counts));
    assert_eq!([&found.base, &found.head, &found.control].map(|arm| arm.trials), [4; 3]);
    assert!(fs::read_to_string(folder.join("head.yaml")).unwrap().contains("workers: 2"));
    assert!(fs::read_to_string(folder.join("experiment.yaml")).unwrap().contains("workers: 1"));
    assert!(fs::read_to_string(&junit).unwrap().contains("classname=\"sidecar-cost.sidecar\""));
    assert!(fs::read_to_string(&markdown).unwrap().starts_with("## sidecar-cost: "));

    let again = run(&["report", &out]);
    assert_eq!(
        again.status.code() == Some(0),
        found.verdict != ComparisonVerdict::Failed && found.verdict != ComparisonVerdict::Worse
    );
    assert!(stdout(&again).starts_with("sidecar-cost: "), "{}", stdout(&again));
}

#[test]
fn interrupt_keeps_the_trials_and_is_no_success() {
    let scratch = tempfile::tempdir().unwrap();
    let out = scratch.path().join("run");
    let mut command = meshmeter();
    command.args(["compare", "--base", "proxy.workers=1", "--head", "proxy.workers=1"]).args(TINY);
    let mut child = start(command.args(["--repeats", "50"]).arg("--out").arg(&out));
    let mut lines = said(&mut child);
    assert!(lines.any(|line| line.starts_with("look 1 of at most 50")), "the first repeat ends");
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let rest: Vec<String> = lines.collect();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{rest:?}");
    let found = comparison(&out);
    assert_eq!((found.ended, found.verdict), (ComparisonEnd::Interrupted, ComparisonVerdict::Failed));
    assert!(trials(&out).len() >= 3);
}

#[test]
fn wrong_use_is_refused_before_anything_runs() {
    let scratch = tempfile::tempdir().unwrap();
    let refused = |arguments: &[&str]| {
        let output = meshmeter().arg("compare").args(arguments).current_dir(scratch.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        stderr(&output)
    };
    let study = "sidecar-cost";
    let said = refused(&["--base", "proxy.workers=1", "--head", "proxy.workers=2", study, "--budget", "1s"]);
    assert!(said.contains("--budget 1s has room for 0, and a verdict needs 4"), "{said}");
    let said = refused(&["--base", "proxy.wrkers=1", "--head", "proxy.workers=2", study]);
    assert!(said.contains("--base") && said.contains("workers"), "{said}");
    let said = refused(&["--base", "one.yaml", "--head", "proxy.workers=2", study]);
    assert!(said.contains("expected KEY=VALUE beside a study"), "{said}");
    let said = refused(&["--base", "proxy.workers=1", "--head", "proxy.workers=2"]);
    assert!(said.contains("settings need a study"), "{said}");
    let only = ["--set", "modes=[none]"];
    let said = refused(&["--base", "proxy.workers=1", "--head", "proxy.workers=2", study, only[0], only[1]]);
    assert!(said.contains("proxy.workers cannot change mode none"), "{said}");
    let said = refused(&["--base", "modes=[none]", "--head", "modes=[sidecar]", study]);
    assert!(said.contains("the same modes"), "{said}");
    let said = refused(&["--base", "load.pacing=economical", "--head", "load.pacing=precise", study]);
    assert!(
        said.contains("`load.pacing` is the same for both arms") && said.contains("--pacing sets it"),
        "{said}"
    );
    let arms = ["--base", "proxy.workers=1", "--head", "proxy.workers=2", study];
    let said = refused(&[&arms[..], &["--set", "repeats=2"]].concat());
    assert!(said.contains("--repeats sets it"), "{said}");
    assert!(fs::read_dir(scratch.path()).unwrap().next().is_none(), "nothing is written");
}

#[test]
fn dry_run_lists_trials_and_margins() {
    let mut arguments =
        vec!["compare", "--base", "proxy.workers=1", "--head", "proxy.workers=2", "--dry-run"];
    arguments.extend(TINY);
    arguments.extend(["--repeats", "4", "--margin", "2%"]);
    let output = run(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("12 trials in 4 repeats"), "{text}");
    assert!(
        text.contains("margin of response_time_p50_us of sidecar at 200 requests/s: 2.0 % (--margin)"),
        "{text}"
    );
    assert!(text.contains("mode none is not compared"), "{text}");
}
