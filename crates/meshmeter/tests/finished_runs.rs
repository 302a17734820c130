//! `meshmeter compare` of finished runs and `meshmeter history`: files, texts and exit status. Verdicts are tested by simulation.

mod command;
#[path = "../../report/tests/fixture/mod.rs"]
mod fixture;

use command::{meshmeter, run, said, start, stderr, stdout};
use report::folder::{Existing, RunFolder};
use results::{
    Comparison, ComparisonEnd, ComparisonVerdict, Figures, HistoryCourse, HistoryRun, InconclusiveReason,
    LoadResult, Metric, Mode, Verdict,
};
use rustix::fs::{CWD, FileType, mknodat};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// A run's directory.
    fn run(&self, name: &str, change: impl Fn(&mut report::RunData)) -> String {
        let mut data = fixture::run(fixture::trials(&[Mode::None, Mode::Sidecar], &[500.0], 5));
        change(&mut data);
        let mut folder = RunFolder::create(&self.path(name), Existing::Keep).unwrap();
        folder.write_experiment(&data.experiment_yaml).unwrap();
        folder.write_host(&data.host).unwrap();
        data.trials.iter().for_each(|trial| folder.append_trial(trial).unwrap());
        self.text(name)
    }

    fn file(&self, name: &str, text: &str) -> String {
        fs::write(self.path(name), text).unwrap();
        self.text(name)
    }

    /// A history of runs like this one, each with its figures times a factor.
    fn history(&self, run_folder: &str, factors: &[f64]) -> String {
        let file = self.text("history.jsonl");
        let _ = fs::remove_file(&file);
        let output = run(&["history", "add", &file, run_folder]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let added: HistoryRun = HistoryRun::from_json(fs::read_to_string(&file).unwrap()).unwrap();
        let line = |(number, factor): (usize, &f64)| {
            let mut run = added.clone();
            run.run = format!("runs/{number}");
            run.seed = Some(number as u64);
            run.started_at = Some(format!("2026-10-{:02}T10:00:00Z", number + 1));
            run.figures
                .iter_mut()
                .for_each(|figure| figure.estimate = figure.estimate.map(|value| value * factor));
            serde_json::to_string(&run).unwrap() + "\n"
        };
        fs::write(&file, factors.iter().enumerate().map(line).collect::<String>()).unwrap();
        file
    }
}

fn comparison(arguments: &[&str]) -> (Option<i32>, Comparison) {
    let output = run(&[&["compare", "--json"], arguments].concat());
    let read = serde_json::from_slice(&output.stdout);
    (output.status.code(), read.unwrap_or_else(|error| panic!("{error}: {}", stderr(&output))))
}

/// Runs that differ by about 1 %.
const QUIET: [f64; 10] = [1.0, 1.01, 0.995, 1.004, 0.991, 1.009, 1.002, 0.998, 1.003, 0.996];

#[test]
fn two_runs_are_compared_without_a_verdict_of_their_own() {
    let place = Place::new();
    let (base, head) = (place.run("base", |_| ()), place.run("head", |_| ()));
    let (status, found) = comparison(&[&base, &head]);
    assert_eq!((status, found.verdict), (Some(0), ComparisonVerdict::Inconclusive), "{found:?}");
    assert_eq!(found.ended, ComparisonEnd::Recorded);
    assert!(
        found.figures.iter().all(|figure| figure.reason == Some(InconclusiveReason::RunVariationUnknown))
    );
    assert!(found.figures.iter().all(|figure| figure.ratio.is_some_and(|ratio| ratio.low.is_some())));
    assert_eq!(comparison(&["--strict", &base, &head]).0, Some(5));
    let out = place.text("out");
    let (junit, markdown) = (place.text("compare.xml"), place.text("compare.md"));
    let output = run(&["compare", &base, &head, "--out", &out, "--junit", &junit, "--markdown", &markdown]);
    let text = stdout(&output);
    let headline = "sidecar-cost: Inconclusive: run to run variation unknown: add runs to a history";
    assert!(text.starts_with(headline), "{text}");
    assert!(fs::read_to_string(&junit).unwrap().contains("sidecar at 500 requests/s: response_time_p50_us"));
    assert!(fs::read_to_string(&markdown).unwrap().contains("run to run variation unknown"));
    assert!(stdout(&run(&["report", &out])).starts_with(headline));
    assert_eq!(
        run(&["compare", &base, &head, "--out", &out]).status.code(),
        Some(2),
        "it holds a comparison"
    );
    assert_eq!(run(&["compare", &base, &head, "--out", &out, "--overwrite"]).status.code(), Some(0));
    let over_a_run = run(&["compare", &base, &head, "--out", &head, "--overwrite"]);
    assert_eq!(over_a_run.status.code(), Some(2), "a run is never replaced");
}

#[test]
fn other_environments_are_said_first_and_compared_on_request() {
    let place = Place::new();
    let base = place.run("base", |_| ());
    let head = place.run("head", |data| {
        data.host.kernel = "6.99".to_owned();
        data.host.clock_source = Some("hpet".to_owned());
    });
    let (status, found) = comparison(&[&base, &head]);
    assert_eq!((status, found.verdict, found.figures.len()), (Some(1), ComparisonVerdict::Failed, 0));
    assert_eq!(found.environment_changes, ["kernel: 6.18.5 → 6.99", "clock source: unknown → hpet"]);
    let text = stdout(&run(&["compare", &base, &head]));
    assert!(text.lines().nth(1).unwrap().contains("unknown environment: kernel"), "{text}");
    let (status, found) = comparison(&["--across-environments", &base, &head]);
    assert_eq!((status, found.environment_changes.len()), (Some(0), 2));
    assert!(!found.figures.is_empty());
}

#[test]
fn interrupted_and_damaged_runs_are_no_success() {
    let place = Place::new();
    let base = place.run("base", |_| ());
    let cut = place.run("cut", |data| data.trials.truncate(6));
    let (status, found) = comparison(&[&base, &cut]);
    assert_eq!((status, found.verdict), (Some(1), ComparisonVerdict::Failed));
    assert!(found.failures[0].contains("cut short: 6 of 10 trials"), "{:?}", found.failures);
    let added = run(&["history", "add", &place.text("h.jsonl"), &cut]);
    assert_eq!(added.status.code(), Some(1));
    assert!(stderr(&added).contains("not added"), "{}", stderr(&added));
    let absent = run(&["compare", &base, &place.text("absent")]);
    assert_eq!(absent.status.code(), Some(2), "{}", stderr(&absent));
    let one = run(&["compare", "sidecar-cost"]);
    assert_eq!(one.status.code(), Some(2));
    assert!(stderr(&one).contains("--base and --head measure"), "{}", stderr(&one));
    let measured = run(&["compare", &base, &cut, "--repeats", "5"]);
    assert!(
        stderr(&measured).contains("--repeats: finished runs are not measured again"),
        "{}",
        stderr(&measured)
    );
}

#[test]
fn loads_and_results_of_others_are_compared_with_what_they_cannot_say() {
    let place = Place::new();
    // Its own verdict is that the generator was late.
    let late = place.file("late.json", include_str!("load-result.json"));
    assert_eq!(comparison(&[&late, &late]).0, Some(1), "unusable figures are no success");
    let mut load = LoadResult::from_json(include_str!("load-result.json")).unwrap();
    load.verdict = Verdict::usable();
    let base = place.file("base.json", &serde_json::to_string(&load).unwrap());
    load.response_time_us.p50 = Some(55.5);
    let head = place.file("head.json", &serde_json::to_string(&load).unwrap());
    let (status, found) = comparison(&[&base, &head]);
    assert_eq!((status, found.verdict), (Some(0), ComparisonVerdict::Inconclusive), "{found:?}");
    let median = found.figures.iter().find(|figure| figure.key == Metric::ResponseTimeP50Us).unwrap();
    assert_eq!(median.head.unwrap().estimate, 55.5);
    assert!(median.ratio.unwrap().low.is_some(), "its histogram has an interval");
    let limits = found.finished.unwrap().limits;
    assert!(limits.iter().any(|limit| limit.contains("does not record its machine")), "{limits:?}");

    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/foreign_result");
    let sample = |name: &str| corpus.join(name).to_str().unwrap().to_owned();
    for name in [
        "fortio",
        "k6-summary-export",
        "k6-lines",
        "wrk",
        "wrk2",
        "oha",
        "vegeta-report",
        "vegeta-lines",
        "nighthawk",
        "hdr-log",
    ] {
        let (status, found) = comparison(&[&sample(name), &sample(name)]);
        assert_eq!((status, found.verdict), (Some(0), ComparisonVerdict::Inconclusive), "{name}: {found:?}");
        assert!(!found.finished.unwrap().limits.is_empty(), "{name}");
    }
    let (status, found) = comparison(&[&sample("fortio"), &base]);
    assert_eq!(status, Some(1), "another instrument");
    assert_eq!(found.environment_changes[0], "measured by: fortio → load");
    let (status, found) = comparison(&["--across-environments", &sample("fortio"), &base]);
    assert_eq!(status, Some(0), "{found:?}");
    assert!(
        found.figures.iter().all(|figure| figure.key.key().starts_with("service_time")),
        "like with like"
    );
    let damaged = run(&["compare", &sample("fortio"), &sample("fortio-cut-short")]);
    assert_eq!(damaged.status.code(), Some(2));
    assert!(stderr(&damaged).contains("it is not JSON"), "{}", stderr(&damaged));
}

#[test]
fn loads_of_other_windows_and_other_contents_are_told_apart() {
    let place = Place::new();
    let mut load = LoadResult::from_json(include_str!("load-result.json")).unwrap();
    load.verdict = Verdict::usable();
    let base = place.file("base.json", &serde_json::to_string(&load).unwrap());
    load.response_time_us.p50 = Some(55.5);
    let changed = place.file("changed.json", &serde_json::to_string(&load).unwrap());
    load.duration_s = 60.0;
    load.warmup.sent = 100;
    let longer = place.file("longer.json", &serde_json::to_string(&load).unwrap());
    let (status, found) = comparison(&[&base, &longer]);
    assert_eq!(status, Some(1));
    let settings = "settings: `window: 1 s`, `warm-up: none` → `window: 60 s`, `warm-up: yes`";
    assert_eq!(found.environment_changes, [settings]);
    // Both have the start of one load.
    let file = place.text("history.jsonl");
    for (result, said) in [(&base, "added: "), (&base, "already in the history: "), (&changed, "added: ")] {
        let output = run(&["history", "add", &file, result]);
        assert!(stderr(&output).contains(said), "{result}: {}", stderr(&output));
    }
}

#[test]
fn results_are_read_from_pipes() {
    let place = Place::new();
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/foreign_result/fortio");
    let sample = sample.to_str().unwrap();
    let script = r#"exec "$0" compare <(cat "$1") <(cat "$1")"#;
    let output = Command::new("bash").args(["-c", script, env!("CARGO_BIN_EXE_meshmeter"), sample]).output();
    let output = output.unwrap();
    assert!(output.status.success() && stderr(&output).is_empty(), "{}", stderr(&output));
    // A pipe with a name waits for a writer, and says so.
    let fifo = place.text("fifo");
    mknodat(CWD, &fifo, FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
    let mut child = start(meshmeter().args(["compare", sample, &fifo]));
    let waiting = said(&mut child).next();
    assert_eq!(waiting, Some(format!("waiting for what is written to the pipe {fifo}")));
    fs::write(&fifo, fs::read(sample).unwrap()).unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn wrong_paths_and_options_without_effect_are_usage_errors() {
    let place = Place::new();
    let (base, absent) = (place.run("base", |_| ()), place.text("absent.jsonl"));
    let in_absent = place.text("absent/history.jsonl");
    for arguments in [
        ["compare", "--history", &absent, &base],
        ["compare", "--history", &base, &base],
        ["history", "show", &absent, "--json"],
        ["history", "add", &in_absent, &base],
    ] {
        let output = run(&arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
    }
    for option in [
        "--budget=1m",
        "--ztunnel=/z",
        "--envoy=/e",
        "--offline",
        "--registry=a",
        "--registry-cacert=b",
        "--seed=1",
    ] {
        let output = run(&["compare", &base, &base, option]);
        let name = option.split('=').next().unwrap();
        let expected = format!("{name}: finished runs are not measured again");
        assert!(
            stderr(&output).contains(&expected) && output.status.code() == Some(2),
            "{}",
            stderr(&output)
        );
    }
    // Neither can replace a run.
    for arguments in
        [["compare", &base, &base, "--out", &base], ["compare", "--self-test", "--repeats=4", "--out", &base]]
    {
        let output = run(&arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(!stderr(&output).contains("--overwrite"), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains("name another folder with --out"), "{}", stderr(&output));
    }
}

#[test]
fn history_judges_the_newest_run_or_the_given_ones() {
    let place = Place::new();
    let base = place.run("base", |_| ());
    let mut factors = QUIET.to_vec();
    let file = place.history(&base, &factors);
    let (status, found) = comparison(&["--history", &file]);
    assert_eq!(status, Some(0), "{found:?}");
    let used = found.finished.unwrap().history.unwrap();
    assert_eq!((used.runs, used.used), (9, 9), "the newest one is judged");
    factors.push(1.5);
    let file = place.history(&base, &factors);
    let (status, found) = comparison(&["--history", &file]);
    assert_eq!((status, found.verdict), (Some(4), ComparisonVerdict::Worse), "{found:?}");
    assert!(found.figures[0].between_runs.as_ref().unwrap().superiority == Some(1.0));
    let text = stdout(&run(&["compare", "--history", &file]));
    assert!(text.contains("1 + 10"), "judged runs + runs: {text}");
    // The given run is like the first ten.
    let (status, found) = comparison(&["--history", &place.history(&base, &QUIET), &base]);
    assert_eq!(
        (status, found.with_verdict(results::FigureVerdict::Worse).count()),
        (Some(0), 0),
        "{found:?}"
    );
}

#[test]
fn history_is_shown_pruned_and_mended_with_its_damaged_lines_named() {
    let place = Place::new();
    let base = place.run("base", |_| ());
    let factors: Vec<f64> = QUIET.into_iter().chain(QUIET.map(|factor| 1.2 * factor)).collect();
    let file = place.history(&base, &factors);
    let output = run(&["history", "show", &file, "--figure", "p50"]);
    let text = stdout(&output);
    assert!(
        text.contains("20 runs in 1 environment") && text.contains("change at run 11 (runs/10"),
        "{text}"
    );
    let output = run(&["history", "show", &file, "--json"]);
    let course: HistoryCourse = serde_json::from_slice(&output.stdout).unwrap();
    assert!(
        course.groups[0].series.iter().all(|series| series.changes.iter().map(|change| change.at).eq([10]))
    );
    assert_eq!(run(&["history", "show", &file, "--figure", "nothing"]).status.code(), Some(2));

    let added = run(&["history", "add", &file, &base, "--label", "abc123"]);
    assert_eq!(added.status.code(), Some(0), "{}", stderr(&added));
    assert!(stderr(&added).contains("added: "), "{}", stderr(&added));
    let again = run(&["history", "add", &file, &base]);
    assert!(stderr(&again).contains("already in the history"), "{}", stderr(&again));

    let whole = fs::read(&file).unwrap();
    fs::write(&file, &whole[..whole.len() - 20]).unwrap();
    let cut = run(&["history", "show", &file]);
    assert!(stderr(&cut).contains("line 21 cannot be read"), "{}", stderr(&cut));
    assert!(stdout(&cut).contains("20 runs in 1 environment; line 21 cannot be read"), "{}", stdout(&cut));
    let newest = run(&["compare", "--history", &file]);
    assert_eq!(newest.status.code(), Some(3), "the newest run is not known: {}", stderr(&newest));
    assert!(stderr(&newest).contains("21, cannot be read"), "{}", stderr(&newest));
    let pruned = run(&["history", "prune", &file, "--keep", "5"]);
    assert_eq!(pruned.status.code(), Some(2), "it would delete the line");

    fs::write(&file, &whole).unwrap();
    let lines = || fs::read_to_string(&file).unwrap().lines().count();
    let pruned = run(&["history", "prune", &file, "--before", "2026-10-11"]);
    assert_eq!((pruned.status.code(), lines()), (Some(0), 11), "{}", stderr(&pruned));
    assert_eq!((run(&["history", "prune", &file, "--keep", "4"]).status.code(), lines()), (Some(0), 4));
    let absent = place.text("absent.jsonl");
    assert_eq!(run(&["history", "prune", &absent, "--keep", "4"]).status.code(), Some(2));
    assert!(!Path::new(&absent).exists(), "nothing is made");
}

#[test]
fn writers_of_one_history_wait_for_each_other() {
    let place = Place::new();
    let runs: Vec<String> = (0..4)
        .map(|number| {
            place.run(&format!("run-{number}"), |data| {
                data.trials
                    .iter_mut()
                    .for_each(|trial| trial.started_at = format!("2026-11-20T10:00:0{number}Z"));
            })
        })
        .collect();
    let file = place.text("history.jsonl");
    let children: Vec<_> =
        runs.iter().map(|run| meshmeter().args(["history", "add", &file, run]).spawn().unwrap()).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let text = fs::read_to_string(&file).unwrap();
    assert_eq!(text.lines().filter(|line| HistoryRun::from_json(line).is_ok()).count(), 4, "{text}");
}

#[test]
fn noise_that_the_report_of_a_run_accepts_is_in_the_history_and_not_in_the_gate() {
    let place = Place::new();
    let noisy = place.run("noisy", |data| {
        for trial in &mut data.trials {
            trial.verdict.spoil("other-processes: rustc took 1.00 cores", Figures::all());
        }
    });
    let file = place.text("h.jsonl");
    let add = || {
        let output = run(&["history", "add", &file, &noisy]);
        (output.status.code(), stderr(&output))
    };
    let (status, said) = add();
    assert!(status == Some(1) && said.contains("no trial has a usable figure"), "{said}");
    let report = run(&["report", &noisy, "--accept-noise"]);
    assert_eq!(report.status.code(), Some(0), "{}", stderr(&report));
    let (status, said) = add();
    assert!(said.contains("noise of the machine is accepted: it disturbed 10 of 10 trials"), "{said}");
    assert_eq!(status, Some(0), "{said}");
    assert_eq!(run(&["compare", &noisy, &noisy]).status.code(), Some(1), "an exit status cannot say it");
    let judged = stdout(&run(&["compare", "--history", &file, "--json"]));
    assert!(judged.contains("noise of the machine is accepted"), "{judged}");
    run(&["report", &noisy]);
    fs::remove_file(&file).unwrap();
    assert_eq!(add().0, Some(1), "the last report does not accept it");
}

#[test]
fn figures_of_0_are_recorded_and_shown() {
    let place = Place::new();
    let idle = place.run("idle", |data| {
        let components = data.trials.iter_mut().flat_map(|trial| &mut trial.components);
        components.for_each(|usage| (usage.cpu_user_s, usage.cpu_system_s) = (0.0, 0.0));
    });
    let file = place.text("h.jsonl");
    assert_eq!(run(&["history", "add", &file, &idle]).status.code(), Some(0));
    let shown = stdout(&run(&["history", "show", &file, "--figure", "cpu"]));
    assert!(shown.contains("CPU of proxies per request of sidecar"), "{shown}");
    assert!(shown.contains("run 1: 0"), "{shown}");
}
