//! `meshmeter compare` with real Envoy in a real lab: files, counts and exit status. Verdicts depend on the machine, and are
//! tested with simulated data and in memory.

mod command;

use command::{meshmeter, run, said, start, stderr, stdout};
use results::{
    Comparison, ComparisonEnd, ComparisonSelfTest, ComparisonVerdict, InjectedEffect, TrialRecord,
};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

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

    let page = fs::read_to_string(folder.join("comparison.html")).unwrap();
    let headline = stdout(&run(&["report", &out])).lines().next().unwrap().replacen("sidecar-cost: ", "", 1);
    assert!(page.contains(&format!("<h1 id=\"headline\">{headline}</h1>")), "{headline}: {page}");
    fs::remove_file(folder.join("comparison.html")).unwrap();
    let again = run(&["report", &out, "--strict"]);
    assert_eq!(again.status.code(), output.status.code(), "{}", stderr(&again));
    assert!(stdout(&again).starts_with("sidecar-cost: "), "{}", stdout(&again));
    assert_eq!(fs::read_to_string(folder.join("comparison.html")).unwrap(), page, "made again");
    let resumed = run(&["compare", "--resume", &out, "--strict"]);
    assert_eq!(stdout(&resumed), stdout(&again), "it has ended: {}", stderr(&resumed));
    assert_eq!(resumed.status.code(), output.status.code());
    assert_eq!(self::trials(folder).len(), trials.len(), "no look is left");
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
fn files_are_compared_in_all_that_differs() {
    let scratch = tempfile::tempdir().unwrap();
    let file = |name: &str, workers: &str| {
        let text = format!(
            "{{name: both, modes: [gateway], load: {{rate: 200, connections: 2, warmup: 100ms, duration: 500ms}}, \
             retakes: 0, proxy: {{workers: {workers}, mtls: false}}}}"
        );
        fs::write(scratch.path().join(name), text).unwrap();
    };
    file("before.yaml", "1");
    file("after.yaml", "2");
    let arguments = ["--base", "before.yaml", "--head", "after.yaml", "--noise-floor=100ms"];
    let output = meshmeter()
        .arg("compare")
        .args(arguments)
        .args(["--repeats", "4", "--out", "run", "--json"])
        .current_dir(scratch.path())
        .output()
        .unwrap();
    let found: Comparison = serde_json::from_str(&stdout(&output)).unwrap_or_else(|error| {
        panic!("{error}: {:?} {}", output.status, stderr(&output));
    });
    assert_eq!(
        [&found.base, &found.head].map(|arm| arm.settings.as_slice()),
        [["before.yaml".to_owned()], ["after.yaml".to_owned()]]
    );
    assert_eq!(found.looks, 4, "{found:?}");
    let folder = scratch.path().join("run");
    let trials = trials(&folder);
    assert_eq!(trials.len(), 12);
    assert!(trials.iter().all(|trial| trial.path.proven), "{trials:?}");
    assert!(fs::read_to_string(folder.join("experiment.yaml")).unwrap().contains("workers: 1"));
    assert!(fs::read_to_string(folder.join("head.yaml")).unwrap().contains("workers: 2"));
}

#[test]
fn killed_comparison_is_reported_and_goes_on_to_its_planned_looks() {
    let scratch = tempfile::tempdir().unwrap();
    let out = scratch.path().join("run").to_str().unwrap().to_owned();
    let folder = Path::new(&out);
    let mut command = meshmeter();
    command.args(["compare", "--base", "proxy.workers=1", "--head", "proxy.workers=2"]).args(TINY);
    command.args(["--repeats", "4", "--retakes", "0", "--out", &out]);
    let mut child = start(&mut command);
    let mut lines = said(&mut child);
    assert!(lines.any(|line| line.trim_start().starts_with("1/12")), "the first trial ends");
    kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
    child.wait().unwrap();
    // The lab ends with its parent, and its lock with it.
    lines.for_each(drop);
    let before = trials(folder).len();
    assert!((1..12).contains(&before), "killed before its end: {before}");
    let report = run(&["report", &out]);
    assert_eq!(report.status.code(), Some(1), "{}", stderr(&report));
    let text = stdout(&report);
    assert!(
        text.contains("the comparison has not ended") && text.contains(&format!(", {before} trials")),
        "{text}"
    );
    assert!(folder.join("comparison.html").exists());

    let refused = run(&["compare", "--resume", &out, "--budget", "1h"]);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    let rest = run(&["compare", "--resume", &out, "--json"]);
    let found: Comparison = serde_json::from_str(&stdout(&rest))
        .unwrap_or_else(|error| panic!("{error}: {:?} {}", rest.status, stderr(&rest)));
    assert_eq!((found.looks, found.looks_planned), (4, 4));
    assert_eq!(found.course.elapsed_s.len(), 4);
    let trials = trials(folder);
    let whole = trials.iter().filter(|trial| trial.retake.is_none()).count();
    assert_eq!(whole, 12, "each planned trial is there once");
    let host = fs::read_to_string(folder.join("host.json")).unwrap();
    assert!(host.contains("\"resumed\""), "{host}");
}

#[test]
fn self_test_counts_comparisons_and_keeps_them_when_it_is_interrupted() {
    let scratch = tempfile::tempdir().unwrap();
    let out = scratch.path().join("self-test");
    let mut command = meshmeter();
    command.args(["compare", "--self-test", "--repeats", "4", "--retakes", "0", "--duration", "300ms"]);
    command.arg("--noise-floor=100ms");
    let mut child = start(command.args(["--json", "--out"]).arg(&out));
    let mut lines = said(&mut child);
    let mut next = || lines.find(|line| line.starts_with("comparison ")).expect("a comparison begins");
    assert_eq!(next(), "comparison 1 of the machine with itself: no change");
    assert!(next().starts_with("comparison 2 of the machine with itself: "));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    lines.for_each(drop);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let found: ComparisonSelfTest = serde_json::from_slice(&output.stdout).unwrap();
    let kept: ComparisonSelfTest =
        serde_json::from_slice(&fs::read(out.join("self-test.json")).unwrap()).unwrap();
    assert_eq!(found, kept);
    assert!(found.interrupted);
    assert_eq!(found.series[0].injected, InjectedEffect::Nothing);
    assert!(found.series[0].comparisons > 0, "{found:?}");
    // The one that was interrupted does not count, unless this test was too late and it had ended.
    let ended_with = |effect: InjectedEffect| {
        let folders = fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().path());
        let is_of = |folder: &PathBuf| folder.to_str().unwrap().ends_with(&format!("-{}", effect.name()));
        let own = folders.filter(|folder| is_of(folder) && folder.join("comparison.json").exists());
        own.filter(|folder| comparison(folder).ended.is_by_itself()).count() as u64
    };
    for series in &found.series {
        assert_eq!(series.comparisons, ended_with(series.injected), "{series:?}");
        let verdicts = [series.worse, series.better, series.equivalent, series.inconclusive, series.failed];
        assert_eq!(verdicts.iter().sum::<u64>(), series.comparisons, "{series:?}");
        let judged = series.comparisons - series.failed;
        assert_eq!(series.share.map_or(0, |share| share.of), judged, "{series:?}");
    }
    let report = run(&["report", out.join("001-nothing").to_str().unwrap()]);
    assert!(stdout(&report).starts_with("self-test: "), "{}", stderr(&report));
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
    let said = refused(&["--self-test", study]);
    assert!(said.contains("cannot be used with"), "{said}");
    let said = refused(&["--self-test", "--budget", "5s"]);
    assert!(said.contains("--budget 5s has room for"), "{said}");
    let said = refused(&["--resume", "nowhere"]);
    assert!(said.contains("nowhere is not the folder of a comparison"), "{said}");
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
    assert!(!text.contains("p99"), "too few requests in all arms: {text}");
    let rates = ["--base", "load.rate=[500]", "--head", "load.rate=[200]"];
    let output =
        run(&[&["compare", "sidecar-cost", "--dry-run", "--set", "modes=[sidecar]"], &rates[..]].concat());
    let said = "p99 of sidecar at 500 requests/s will be inconclusive: an arm has too few requests";
    assert!(stdout(&output).contains(said), "{}{}", stdout(&output), stderr(&output));
}

#[test]
fn profiles_need_perf_and_say_what_it_says() {
    let programs = tempfile::tempdir().unwrap();
    let profiled = |arguments: &[&str]| {
        let output =
            meshmeter().args(arguments).arg("--profile").env("PATH", programs.path()).output().unwrap();
        (output.status.code(), stderr(&output))
    };
    let compare = ["compare", "--base", "proxy.workers=1", "--head", "proxy.workers=2", "sidecar-cost"];
    for arguments in [&["run", "sidecar-cost"][..], &compare] {
        let (status, said) = profiled(arguments);
        assert_eq!(status, Some(3), "{said}");
        assert!(said.contains("perf is not installed") && said.contains("linux-perf"), "{said}");
    }
    test_support::program(programs.path(), "perf", "echo 'Error: no access' >&2; exit 255");
    let (status, said) = profiled(&compare);
    assert_eq!(status, Some(3), "{said}");
    assert!(said.contains("perf failed: Error: no access"), "{said}");
    let (status, said) = profiled(&["run", "mesh-modes", "--on", "cluster"]);
    assert_eq!(status, Some(2), "{said}");
    assert!(said.contains("--profile"), "{said}");
}
