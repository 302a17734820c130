//! `meshmeter size` on the directories of real runs. docs/size.md shows its output.

mod command;
#[path = "../../statistics/tests/size/generated_run.rs"]
mod generated_run;
#[path = "../../statistics/tests/size/generated_trial.rs"]
mod generated_trial;

#[path = "../../statistics/tests/size/generated.rs"]
mod generated;
#[path = "../../statistics/tests/size/generated_fleet.rs"]
mod generated_fleet;

#[path = "size/outputs.rs"]
mod outputs;

use command::{meshmeter, run, stderr, stdout};
use generated::{ClosedLoop, OpenLoop};
use generated_fleet::FleetSweep;
use report::folder::{Existing, RunFolder};
use results::{
    CONTROL_PLANE_SIZE_SCHEMA, Cell, ControlPlaneNoteKind, ControlPlaneSize, Estimate, Role, SIZE_SCHEMA,
    SizeNoteKind, SizeOption, SizeResult, Summary,
};
use statistics::size::MeasuredRun;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .expect("the crate lies in the repository")
}

/// The directory of a real run of `sidecar-cost`.
fn real_run() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/size_run").to_str().expect("a plain name").to_owned()
}

fn size(arguments: &[&str]) -> Output {
    run(&[&["size"], arguments].concat())
}

fn json(output: &Output) -> SizeResult {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", stderr(output)))
}

/// A copy of the real run with a replaced text in host.json.
fn changed(scratch: &Path, name: &str, from: &str, to: &str) -> String {
    let directory = scratch.join(name);
    fs::create_dir(&directory).unwrap();
    for file in ["experiment.yaml", "host.json", "trials.jsonl"] {
        let text = fs::read_to_string(Path::new(&real_run()).join(file)).unwrap();
        let text = if file == "host.json" { text.replace(from, to) } else { text };
        fs::write(directory.join(file), text).unwrap();
    }
    directory.to_str().expect("a plain name").to_owned()
}

/// `MESHMETER_WRITE_DOCUMENTS=1` rewrites the page.
#[test]
fn page_shows_output_of_the_command() {
    let page = repository().join("docs/size.md");
    let text = fs::read_to_string(&page).unwrap();
    let mut printed = None;
    // Every other part is a code block.
    let parts = text.split("```").enumerate().map(|(index, part)| {
        if index % 2 == 0 {
            return part.to_owned();
        }
        if let Some(line) = part.strip_prefix("sh\nmeshmeter size ") {
            let output =
                meshmeter().arg("size").args(line.split_whitespace()).current_dir(repository()).output();
            let output = output.expect("the binary runs");
            assert!(output.status.success(), "{}", stderr(&output));
            printed = Some(stdout(&output));
        }
        match printed.take_if(|_| part.starts_with("text\n")) {
            Some(output) => format!("text\n{output}"),
            None => part.to_owned(),
        }
    });
    let written = parts.collect::<Vec<_>>().join("```");
    if std::env::var_os("MESHMETER_WRITE_DOCUMENTS").is_some() {
        fs::write(&page, &written).unwrap();
    }
    assert_eq!(text, written, "MESHMETER_WRITE_DOCUMENTS=1 writes docs/size.md anew");
}

#[test]
fn json_has_every_input_and_the_formula() {
    let run = real_run();
    let asked =
        ["--target", "345M/day", "--headroom", "25%", "--cpu-hour", "0.04", "--gb-hour", "0.005", "--json"];
    let output = size(&[&asked[..], &["--from", &run]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let result = json(&output);
    assert_eq!(result.schema, SIZE_SCHEMA);
    assert!((result.requests_per_day - 345e6).abs() < 1.0);
    assert_eq!((result.asked.headroom, result.formula.len() > 3), (0.25, true));
    assert_eq!(
        result.asked.prices.as_ref().map(|prices| (prices.cpu_hour, prices.gb_hour)),
        Some((0.04, 0.005))
    );
    let components: Vec<&str> = result.answers.iter().map(|answer| answer.component.as_str()).collect();
    assert_eq!(components, ["gateway", "client-proxy", "server-proxy"]);
    for option in result.answers.iter().flat_map(|answer| &answer.options) {
        assert_eq!(option.replicas.estimate, 6, "345M/day are 3993/s, and 750/s are used of each");
        assert!(option.monthly_cost.is_some_and(|cost| cost.estimate > 0.0));
        assert!(option.notes.iter().all(|note| !note.text.is_empty()));
    }
}

#[test]
fn answer_is_the_first_line_of_text_markdown_and_page() {
    let scratch = tempfile::tempdir().unwrap();
    let path = |name: &str| scratch.path().join(name).to_str().expect("a plain name").to_owned();
    let (page, markdown) = (path("size.html"), path("size.md"));
    let gateway = repository().join("crates/meshmeter/tests/size_gateway_run");
    let from = ["--from", gateway.to_str().expect("a plain name")];
    let asked = ["--target", "50000rps", "--objective", "p99=20ms", "--headroom", "30%"];
    let output = size(&[&asked[..], &from, &["--output", &page, "--markdown", &markdown]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output).replace('\u{a0}', " ");
    let answer = text.lines().next().expect("an answer").to_owned();
    assert!(answer.starts_with("Least CPU: 11 replicas of gateway.cpu 1"), "{text}");
    for (other, before) in [(markdown, "**"), (page, "<h1 id=\"headline\">")] {
        let other = fs::read_to_string(other).unwrap().replace('\u{a0}', " ").replace('\\', "");
        assert!(other.contains(&format!("{before}{answer}")), "{answer}: {other}");
    }
}

#[test]
fn refusal_of_disturbed_trials_names_the_option_that_accepts_them() {
    let scratch = tempfile::tempdir().unwrap();
    let noisy =
        ClosedLoop { spoiled: Some("other-processes: others took 1.20 cores"), ..ClosedLoop::default() };
    let run = written(scratch.path(), "noisy", &noisy.run(1));
    let asked = ["--target", "50000rps", "--from", &run];
    let output = size(&asked);
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    assert!(stderr(&output).contains("`--accept-noise` also uses trials"), "{}", stderr(&output));
    let output = size(&[&asked[..], &["--accept-noise"]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).starts_with("Noise accepted: figures include trials"), "{}", stdout(&output));
}

#[test]
fn unsupported_questions_are_exit_status_1_with_reason() {
    let scratch = tempfile::tempdir().unwrap();
    let run = real_run();
    let expect = |arguments: &[&str], kind: SizeNoteKind, text: &str| {
        let output = size(arguments);
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        assert!(stderr(&output).contains(text), "{}", stderr(&output));
        let result = json(&size(&[arguments, &["--json"]].concat()));
        assert!(result.answers.is_empty());
        assert_eq!(result.refusals[0].kind, kind);
    };
    let other = changed(scratch.path(), "other", "6.18.44", "6.19.1");
    expect(
        &["--target", "5k", "--from", &run, "--from", &other],
        SizeNoteKind::MixedMachines,
        "different machines",
    );
    expect(
        &["--target", "5k", "--objective", "p99=20us", "--from", &run],
        SizeNoteKind::ObjectiveNeverMet,
        "missed at every measured load",
    );
    expect(
        &["--target", "5k", "--payload", "4KiB", "--from", &run],
        SizeNoteKind::NotMeasured,
        "measured: 1024 bytes",
    );
    expect(
        &["--target", "5k", "--mode", "ambient", "--from", &run],
        SizeNoteKind::NotMeasured,
        "modes with proxies: gateway, sidecar",
    );
    let empty = changed(scratch.path(), "empty", "", "");
    fs::write(Path::new(&empty).join("trials.jsonl"), "").unwrap();
    expect(&["--target", "5k", "--from", &empty], SizeNoteKind::NoValidTrial, "No trial");
}

#[test]
fn usage_error_is_exit_status_2() {
    let scratch = tempfile::tempdir().unwrap();
    let run = real_run();
    let prices = |text: &str| {
        let file = scratch.path().join("prices.yaml");
        fs::write(&file, text).unwrap();
        file.to_str().expect("a plain name").to_owned()
    };
    let good = prices("cpu-hour: 0.04\ngb-hour: 0.005\nper-replica-hour: 0.01\ncurrency: EUR\n");
    let output = size(&["--target", "5k", "--prices", &good, "--from", &run]);
    assert!(
        output.status.success() && stdout(&output).contains("EUR"),
        "{}{}",
        stdout(&output),
        stderr(&output)
    );
    let wrong = prices("cpu-hour: 0.04\ngb-hours: 0.005\n");
    for (arguments, said) in [
        (vec!["--target", "5k", "--from", "nowhere"], "nowhere"),
        (vec!["--target", "fast", "--from", &run], "not a rate"),
        (vec!["--target", "5k", "--headroom", "100%", "--from", &run], "at most 95%"),
        (vec!["--target", "5k", "--objective", "rate=5", "--from", &run], "--target asks for"),
        (vec!["--target", "5k", "--cpu-hour", "0.04", "--from", &run], "--gb-hour"),
        (vec!["--target", "5k", "--currency", "EUR", "--from", &run], "--cpu-hour"),
        (vec!["--target", "5k", "--markdown", "-", "--json", "--from", &run], "--markdown"),
        (vec!["--target", "5k", "--prices", &wrong, "--from", &run], "gb-hour"),
        (vec!["--target", "5k", "--mode", "none", "--from", &run], "possible values"),
        (vec!["--target", "5k"], "--from"),
    ] {
        let output = size(&arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(said), "{arguments:?}: {}", stderr(&output));
    }
}

/// CPU time that the service of [`ingress_capacity`] computes per request, one request at a time: what bounds its rate, however much
/// of a CPU the machine leaves it.
const CPU_PER_REQUEST_S: f64 = 0.02;

/// Runs `ingress-capacity` with a service whose capacity is below that of the gateway. Returns its directory.
fn ingress_capacity(scratch: &Path, name: &str, load: &[&str]) -> String {
    let directory = scratch.join(name).to_str().expect("a plain name").to_owned();
    let cpu_time = format!("server.cpu-time={}ms", CPU_PER_REQUEST_S * 1e3);
    let settings = ["ingress.domains=4", "ingress.paths=2", "load.warmup=1s", &cpu_time];
    let set = settings.iter().chain(load).flat_map(|setting| ["--set", setting]);
    let output = meshmeter()
        .args(["run", "ingress-capacity", "--repeats", "2", "--duration", "10s", "--out", &directory])
        .args(set)
        .output()
        .expect("the binary runs");
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    directory
}

/// Of the rates that a service with a CPU of its own answers: the first without a backlog, the others beyond its capacity.
const PERCENT_OF_CAPACITY: [f64; 6] = [60.0, 101.0, 104.0, 108.0, 115.0, 150.0];

fn summary_of(directory: &str) -> Summary {
    let summary = fs::read(Path::new(directory).join("summary.json")).expect("a summary");
    serde_json::from_slice(&summary).expect("its schema")
}

/// CPUs that the service of a cell used.
fn cores_of_service(cell: &Cell) -> f64 {
    let services: Vec<_> = cell.components.iter().filter(|component| component.role == Role::App).collect();
    let [service] = services[..] else { panic!("one service, not {services:?}") };
    service.cpu_cores.estimate
}

/// CPU time per request of a service that answers all that it is offered: what it computes, and reading and writing of the
/// request, half a percent of it.
fn known_cpu_per_request_s(summary: &Summary) -> f64 {
    let rate = PERCENT_OF_CAPACITY[0] / 100.0 / CPU_PER_REQUEST_S;
    let without_backlog = |cell: &&Cell| cell.load.rate.is_some_and(|offered| (offered - rate).abs() < 1e-6);
    let cell = summary.cells.iter().find(without_backlog).expect("a cell without a backlog");
    let cpu_s = cores_of_service(cell) / rate;
    assert!((1.0..1.02).contains(&(cpu_s / CPU_PER_REQUEST_S)), "{cpu_s} s per request");
    cpu_s
}

fn is_within_one_percent(stated: f64, truth: f64) -> bool {
    (stated / truth - 1.0).abs() <= 0.01
}

/// Compares the throughput of a run's cells, and the capacities that `size` states, with what the service was capable of, by the
/// CPU that it got.
fn assert_known_capacity(directory: &str, sizes: usize, cpu_per_request_s: f64) {
    let known_capacity = |cell: &Cell| cores_of_service(cell) / cpu_per_request_s;
    let summary = summary_of(directory);
    for cell in &summary.cells {
        let (completed, truth) = (cell.rate_completed.expect("a throughput").estimate, known_capacity(cell));
        assert!(
            is_within_one_percent(completed, truth),
            "{completed}/s of {truth}/s: {:?} {:?}",
            cell.factors,
            cell.load
        );
    }
    let result = json(&size(&["--target", "5k", "--from", directory, "--json"]));
    assert_eq!(result.answers.len(), 1, "{:?}", result.refusals);
    let options = &result.answers[0].options;
    assert_eq!(options.len(), sizes, "{options:?}");
    let is_saturated = |cell: &&Cell| cell.load.rate.is_none_or(|rate| rate > 1.0 / CPU_PER_REQUEST_S);
    let saturated: Vec<&Cell> = summary.cells.iter().filter(is_saturated).collect();
    for option in options {
        let capacities = saturated.iter().filter(|cell| cell.factors == option.size);
        let capacities: Vec<f64> = capacities.map(|cell| known_capacity(cell)).collect();
        let truth = capacities.iter().sum::<f64>() / capacities.len() as f64;
        assert!(
            is_within_one_percent(option.capacity.rps.estimate, truth),
            "{:?} of {truth}/s",
            option.capacity
        );
    }
    if let Some(scaling) = &summary.scaling {
        let truth = saturated.iter().map(|cell| known_capacity(cell)).sum::<f64>() / saturated.len() as f64;
        assert_eq!(scaling.main.residuals.len(), sizes);
        for residual in &scaling.main.residuals {
            assert!(is_within_one_percent(residual.fitted, truth), "{residual:?} of {truth}/s");
        }
    }
}

#[test]
fn capacity_behind_a_gateway_is_within_one_percent_of_the_known_one() {
    let scratch = tempfile::tempdir().unwrap();
    let rates = PERCENT_OF_CAPACITY.map(|percent| percent / 100.0 / CPU_PER_REQUEST_S);
    let rates = format!("load.rate={rates:?}");
    let open = ["load.clients=null", &rates, "load.connections=32", "gateway.cpu=1"];
    let open = ingress_capacity(scratch.path(), "open", &open);
    let cpu_per_request_s = known_cpu_per_request_s(&summary_of(&open));
    assert_known_capacity(&open, 1, cpu_per_request_s);
    let closed = ["load.clients=32", "gateway.cpu=[500m, 750m, 1]"];
    let closed = ingress_capacity(scratch.path(), "closed", &closed);
    assert!(summary_of(&closed).scaling.is_some(), "a law of three sizes");
    assert_known_capacity(&closed, 3, cpu_per_request_s);
}

/// Writes a run directory like that of `meshmeter run`.
fn written(scratch: &Path, name: &str, run: &MeasuredRun) -> String {
    let directory = scratch.join(name);
    let mut folder = RunFolder::create(&directory, Existing::Keep).unwrap();
    folder.write_experiment(&run.experiment.to_yaml()).unwrap();
    folder.write_host(&run.host).unwrap();
    run.trials.iter().for_each(|trial| folder.append_trial(trial).unwrap());
    directory.to_str().expect("a plain name").to_owned()
}

#[test]
fn answers_from_generated_runs_are_within_their_intervals() {
    const TARGET: f64 = 1e6;
    const SEEDS: u64 = 10;
    let scratch = tempfile::tempdir().unwrap();
    let (closed, open) = (ClosedLoop::default(), OpenLoop::default());
    let holds = |option: &SizeOption, capacity: f64| {
        let (low, high) = (option.replicas.low.unwrap(), option.replicas.high.unwrap());
        (low..=high).contains(&((TARGET / capacity).ceil() as u64))
    };
    let mut hits = Vec::new();
    for seed in 0..SEEDS {
        let directory = written(scratch.path(), &format!("closed-{seed}"), &closed.run(seed));
        let result = json(&size(&["--target", "1Mrps", "--from", &directory, "--json"]));
        let options = &result.answers[0].options;
        hits.extend(
            options.iter().map(|option| holds(option, closed.throughput(option.cpu_limit_cores.unwrap()))),
        );
        let directory = written(scratch.path(), &format!("open-{seed}"), &open.run(seed));
        let objective = "p99=20ms";
        let asked = ["--target", "1Mrps", "--objective", objective, "--from", &directory, "--json"];
        let result = json(&size(&asked));
        hits.push(holds(&result.answers[0].options[0], open.capacity(objective)));
    }
    // Of 50 intervals at 95 %, at least 42 contain the true value in all but one of a thousand suites.
    let held = hits.iter().filter(|hit| **hit).count();
    assert!(held >= 42, "{held} of {}", hits.len());
}

#[test]
fn a_report_of_a_swept_cpu_limit_has_its_scaling_law() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = written(scratch.path(), "run", &ClosedLoop::default().run(3));
    let output = run(&["report", &directory]);
    assert!(output.status.success(), "{}", stderr(&output));
    let summary = fs::read(Path::new(&directory).join("summary.json")).unwrap();
    let summary: Summary = serde_json::from_slice(&summary).unwrap();
    let law = summary.scaling.expect("a law").main;
    let lambda = law.parameters.lambda;
    assert_eq!((law.factor.as_str(), law.residuals.len()), ("gateway.cpu", 4));
    assert!((lambda.low.unwrap()..=lambda.high.unwrap()).contains(&4000.0), "{lambda:?}");
    assert!(
        fs::read_to_string(Path::new(&directory).join("report.html")).unwrap().contains("id=\"scaling\"")
    );
}

const MESH: [&str; 8] =
    ["--control-plane", "--services", "300", "--pods", "1000", "--proxies", "400", "--churn=240/min"];

#[test]
fn a_control_plane_is_sized_from_a_directory_of_fleets() {
    const SEEDS: u64 = 5;
    let scratch = tempfile::tempdir().unwrap();
    let bytes = generated_fleet::configuration_bytes(300.0, 1000.0);
    let truths = [
        generated_fleet::cores_of_mesh(300.0, 1000.0, 400.0, 4.0, 0.0),
        generated_fleet::memory_bytes(400.0 * bytes, 300.0),
        generated_fleet::connecting_cpu_s(400.0 * bytes, 400.0),
    ];
    let holds = |estimate: Estimate, truth: f64| {
        (estimate.low.expect("an interval")..=estimate.high.expect("an interval")).contains(&truth)
    };
    let mut hits = Vec::new();
    for seed in 0..SEEDS {
        let directory = written(scratch.path(), &format!("run-{seed}"), &FleetSweep::default().run(seed));
        let asked = ["--istiod-cpu", "1", "--headroom", "20%", "--from", &directory, "--json"];
        let output = size(&[&MESH[..], &asked].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        let result: ControlPlaneSize = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(result.schema, CONTROL_PLANE_SIZE_SCHEMA);
        assert_eq!((result.asked.changes_per_s, result.formula.len() > 3), (4.0, true));
        let answer = &result.answers[0];
        let istiods = answer.istiods.as_ref().expect("a size is asked");
        assert!(
            istiods.low <= Some(istiods.estimate) && istiods.high >= Some(istiods.estimate),
            "{istiods:?}"
        );
        let figures = [answer.cpu_cores, answer.memory_bytes, answer.connecting_cpu_s];
        hits.extend(
            figures.into_iter().zip(truths).map(|(figure, truth)| holds(figure.expect("a figure"), truth)),
        );
    }
    // Of 15 intervals at 95 %, at least 11 contain the true value in all but one of a thousand suites.
    let held = hits.iter().filter(|hit| **hit).count();
    assert!(held >= 11, "{held} of {}", hits.len());

    let directory = written(scratch.path(), "text", &FleetSweep::default().run(7));
    let greater = ["--control-plane", "--services", "3000", "--pods", "12000", "--churn", "5/min"];
    let output = size(
        &[
            &greater[..],
            &["--istiod-cpu=2", "--istiod-memory=8GiB", "--cpu-hour=0.04", "--gb-hour=0.005"],
            &["--change=service-entry=6/h", "--from", &directory],
        ]
        .concat(),
    );
    let text = stdout(&output).replace('\u{a0}', " ");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(output.status.success(), "{}", stderr(&output));
    for expected in [
        "3000 services, 12 000 pods, 12 000 proxies, 5 changes per minute, 6 changes service-entry per hour.",
        "A change churn sends",
        "pushes to each of 12 000 proxies.",
        "Cost of istiods of this size:",
        "Fleet of sidecar",
        "One istiod for all, CPU:",
        "With 2.00 cores of CPU",
        "Extrapolated: 3000 services (measured: 100 to 400)",
        "Published: Istio 1.24",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

#[test]
fn unsupported_control_plane_questions_are_exit_status_1_with_reason() {
    let scratch = tempfile::tempdir().unwrap();
    let quiet = || FleetSweep { between: 0.0, repeat: 0.0, repeats: 2, ..FleetSweep::default() };
    let good = written(scratch.path(), "good", &quiet().run(1));
    let mut other = quiet().run(1);
    other.host.kernel = "6.19".to_owned();
    let other = written(scratch.path(), "other", &other);
    let spoiled = FleetSweep { spoiled: Some("other-processes: others took 3 cores"), ..quiet() };
    let spoiled = written(scratch.path(), "spoiled", &spoiled.run(1));
    let loads = real_run();
    let small = ["--istiod-memory", "64MiB", "--from", &good];
    for (arguments, kind, text) in [
        (&["--from", &good, "--from", &other][..], ControlPlaneNoteKind::MixedMachines, "different machines"),
        (&["--from", &spoiled], ControlPlaneNoteKind::NoValidTrial, "No trial of a fleet"),
        (&["--from", &loads], ControlPlaneNoteKind::NotMeasured, "The runs have no fleet"),
        (&["--kind", "ztunnel", "--from", &good], ControlPlaneNoteKind::NotMeasured, "measured: sidecar"),
        (&small, ControlPlaneNoteKind::IstiodTooSmall, "too small"),
    ] {
        let output = size(&[&MESH[..], arguments].concat());
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        assert!(stderr(&output).contains(text), "{}", stderr(&output));
        let output = size(&[&MESH[..], arguments, &["--json"]].concat());
        let result: ControlPlaneSize = serde_json::from_slice(&output.stdout).unwrap();
        assert!(result.answers.is_empty());
        assert_eq!(result.refusals[0].kind, kind);
    }
    for (arguments, said) in [
        (&["--control-plane", "--services", "10", "--from", &good][..], "--pods"),
        (&["--control-plane", "--services", "0", "--pods", "10", "--from", &good], "--services"),
        (&["--target", "5k", "--services", "10", "--from", &good], "--control-plane"),
        (&["--control-plane", "--target", "5k", "--services=1", "--pods=1", "--from", &good], "--target"),
        (&["--control-plane", "--services=1", "--pods=1", "--churn", "fast/min", "--from", &good], "5/min"),
        (&["--control-plane", "--services=1", "--pods=1", "--istiod-cpu", "0", "--from", &good], "500m"),
        (
            &["--control-plane", "--services=1", "--pods=1", "--change=connect-storm=1/s", "--from", &good],
            "service-entry",
        ),
        (&["--control-plane", "--services=1", "--pods=1", "--change=service-entry", "--from", &good], "10/h"),
        (&["--control-plane", "--services=1", "--pods=1", "--cpu-hour=1", "--from", &good], "--gb-hour"),
        (&["--from", &good], "--target"),
    ] {
        let output = size(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(said), "{arguments:?}: {}", stderr(&output));
    }
}

#[test]
fn a_report_of_swept_fleets_has_the_cost_model_of_its_control_plane() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = written(scratch.path(), "run", &FleetSweep::default().run(3));
    let output = run(&["report", &directory]);
    assert!(output.status.success(), "{}", stderr(&output));
    let summary = fs::read(Path::new(&directory).join("summary.json")).unwrap();
    let summary: Summary = serde_json::from_slice(&summary).unwrap();
    let costs = summary.control_plane_model.expect("a model").main;
    // Churn and service entries have separate windows.
    assert_eq!((costs.kinds.as_str(), costs.changing.residuals.len()), ("sidecar", 48));
    let page = fs::read_to_string(Path::new(&directory).join("report.html")).unwrap();
    assert!(page.contains("id=\"control-plane-model\""));
}
