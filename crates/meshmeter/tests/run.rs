//! `meshmeter run` with real Envoy in a real lab.

mod command;

use command::{meshmeter, run, said, start, stderr, stdout};
use components::{Component, Overrides};
use results::{Figure, Host, Metric, Mode, Pacing, Retake, Role, Summary, TrialOutcome, TrialRecord};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::num::NonZero;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, available_parallelism, spawn};

/// For runs whose noise floor does not matter here.
const SHORT_NOISE_FLOOR: [&str; 2] = ["--noise-floor", "100ms"];

fn trials(folder: &Path) -> Vec<TrialRecord> {
    let text = fs::read_to_string(folder.join("trials.jsonl")).expect("trials are recorded");
    text.lines().map(|line| serde_json::from_str(line).expect("a trial a line")).collect()
}

fn summary(folder: &Path) -> Summary {
    serde_json::from_slice(&fs::read(folder.join("summary.json")).expect("a summary")).expect("its schema")
}

#[test]
fn missing_envoy_is_not_fetched_if_offline() {
    let scratch = tempfile::tempdir().unwrap();
    let output = meshmeter()
        .args(["run", "sidecar-cost", "--offline", "--out", "run"])
        .current_dir(scratch.path())
        .env("MESHMETER_COMPONENTS", scratch.path().join("components"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    for part in ["use Envoy: not installed", "--offline", "hint: `meshmeter lab install envoy`"] {
        assert!(stderr(&output).contains(part), "{part}: {}", stderr(&output));
    }
    assert!(!scratch.path().join("run").exists(), "nothing is begun");
}

#[test]
fn every_mode_is_measured_on_a_proven_path_and_can_be_reported_again() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("run");
    let out = folder.to_str().unwrap();
    let output = run(&[
        "run",
        "sidecar-cost",
        "--repeats",
        "1",
        "--duration",
        "1s",
        "--retakes",
        "0",
        "--set",
        "load.rate=[300]",
        "--seed",
        "1",
        "--out",
        out,
    ]);
    // A busy machine may leave no trial valid; nothing else may go wrong.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}{}", stdout(&output), stderr(&output));
    let trials = trials(&folder);
    assert_eq!(trials.len(), 3);
    for trial in &trials {
        assert_eq!(trial.outcome, TrialOutcome::Finished, "{:?}", trial.verdict);
        assert!(trial.path.proven, "{}: {:?}", trial.mode, trial.path);
        let result = trial.result.as_ref().expect("a result");
        assert_eq!(result.requests.scheduled, 300);
        let proxies: Vec<&str> = trial.path.proxies.iter().map(|proxy| proxy.name.as_str()).collect();
        let expected: &[&str] = match trial.mode {
            Mode::None => &[],
            Mode::Gateway => &["gateway"],
            _ => &["client-proxy", "server-proxy"],
        };
        assert_eq!(proxies, expected);
        if trial.mode == Mode::Sidecar {
            assert!(trial.path.proxies.iter().all(|proxy| proxy.tls_handshakes > 0), "{:?}", trial.path);
        }
        let role = |role| trial.components.iter().filter(|component| component.role == role).count();
        assert_eq!((role(Role::Proxy), role(Role::App), role(Role::Generator)), (expected.len(), 1, 1));
        for component in trial.components.iter().filter(|component| component.role == Role::Proxy) {
            assert!(component.cpu_cores() > 0.001, "{component:?}");
            assert!(component.memory_resident_bytes > 20_000_000, "{component:?}");
        }
        assert!(trial.machine.is_some());
        check_rates(trial);
    }
    let host: Host = serde_json::from_slice(&fs::read(folder.join("host.json")).unwrap()).unwrap();
    let chosen = host.pacing.expect("the run chose a pacing").pacing;
    assert_ne!(chosen, Pacing::Auto);
    let asked = |trial: &TrialRecord| trial.result.as_ref()?.generator.pacing.map(|pacing| pacing.asked);
    assert!(trials.iter().all(|trial| asked(trial) == Some(chosen)), "{chosen:?} in no two trials another");
    assert!(host.noise_floor.is_some_and(|floor| floor.pauses.is_some()));
    assert_eq!(summary(&folder).trials_recorded, 3);
    let html = fs::read_to_string(folder.join("report.html")).unwrap();
    assert!(html.contains("sidecar") && html.contains("</html>"));

    // The report is rebuilt from the trials alone, even if the last line was cut short.
    fs::remove_file(folder.join("summary.json")).unwrap();
    fs::remove_file(folder.join("report.html")).unwrap();
    let mut torn = fs::OpenOptions::new().append(true).open(folder.join("trials.jsonl")).unwrap();
    torn.write_all(b"{\"schema\":\"meshmeter.trial/1\",\"ind").unwrap();
    let again = run(&["report", out]);
    assert_eq!(again.status.code(), output.status.code(), "as the run itself: {}", stderr(&again));
    assert_eq!(summary(&folder).trials_recorded, 3);

    // An earlier run is not overwritten by accident.
    let second = run(&["run", "sidecar-cost", "--out", out]);
    assert_eq!(second.status.code(), Some(2), "{}", stderr(&second));
}

/// `base`, `burning`, `larger` and `same`, as scripts/known-differences.sh writes them.
fn known_proxies(directory: &Path) {
    let envoy = components::find(Component::Envoy, &Overrides::default()).expect("Envoy is installed");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/known-differences.sh");
    let made = Command::new(script)
        .arg("make-proxies")
        .arg(directory)
        .env("MESHMETER_ENVOY", envoy.path)
        .status()
        .expect("bash is installed");
    assert!(made.success());
}

#[test]
fn builds_of_a_proxy_are_compared_and_each_trial_runs_its_own() {
    let scratch = tempfile::tempdir().unwrap();
    known_proxies(scratch.path());
    let folder = scratch.path().join("run");
    let values = ["base", "larger", "same"].map(|name| scratch.path().join(name).display().to_string());
    let components = format!("components.envoy=[{}]", values.join(", "));
    let output = run(&[
        "run",
        "sidecar-cost",
        "--repeats",
        "2",
        "--duration",
        "1s",
        "--retakes",
        "0",
        "--set",
        "modes=[sidecar]",
        "--set",
        "load={rate: 300, warmup: 100ms}",
        "--set",
        &components,
        "--out",
        folder.to_str().unwrap(),
    ]);
    // A busy machine may leave no trial valid; nothing else may go wrong.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}{}", stdout(&output), stderr(&output));
    let trials = trials(&folder);
    assert_eq!(trials.len(), 6);
    let configuration = |trial: &TrialRecord| -> u64 {
        let proxies = trial.components.iter().filter(|component| component.role == Role::Proxy);
        let held = proxies.map(|proxy| proxy.holdings.as_ref()?.configuration.map(|held| held.size_bytes));
        held.sum::<Option<u64>>().expect("each proxy tells its configuration")
    };
    for trial in &trials {
        assert_eq!(trial.outcome, TrialOutcome::Finished, "{:?}", trial.verdict);
        assert!(trial.path.proven, "{:?}", trial.path);
        let path = trial.factors["components.envoy"].to_string();
        let [envoy] = trial.versions.as_slice() else { panic!("{:?}", trial.versions) };
        assert_eq!((envoy.path.as_deref(), envoy.name.as_str()), (Some(path.as_str()), "envoy"));
        assert!(envoy.sha256.is_some());
        let is_larger = path.ends_with("larger");
        assert_eq!(configuration(trial) > 50_000, is_larger, "{path}: {}", configuration(trial));
    }
    let host: Host = serde_json::from_slice(&fs::read(folder.join("host.json")).unwrap()).unwrap();
    assert_eq!(host.versions.iter().filter(|version| version.name == "envoy").count(), 3);
    let summary = summary(&folder);
    assert!(summary.cells.iter().all(|cell| cell.versions.len() == 1), "each cell says what it ran");
    let same: Vec<bool> =
        summary.factor_differences.iter().map(|difference| difference.same_programs).collect();
    let to_same =
        summary.factor_differences.iter().map(|difference| difference.to.to_string().ends_with("same"));
    assert_eq!(same, to_same.collect::<Vec<_>>(), "a copy is the same program");
}

/// Copies an Envoy to where a proxy's own user reaches it. The page cache holds its pages as they were written.
fn copy_envoy(to: &Path) {
    let envoy = components::find(Component::Envoy, &Overrides::default()).expect("Envoy is installed");
    fs::copy(envoy.path, to).unwrap();
    fs::set_permissions(to.parent().unwrap(), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn copy_of_a_build_differs_in_nothing_that_is_compared() {
    let scratch = tempfile::tempdir().unwrap();
    let [read, written] = ["read", "written"].map(|name| scratch.path().join(name));
    copy_envoy(&read);
    copy_envoy(&written);
    // The pages of one are dropped, so that its first process reads them from disk: another process maps others of them.
    let file = fs::File::open(&read).unwrap();
    file.sync_all().unwrap();
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    let folder = scratch.path().join("run");
    let components = format!("components.envoy=[{}, {}]", read.display(), written.display());
    let output = run(&[
        "run",
        "sidecar-cost",
        "--repeats",
        "2",
        "--duration",
        "1s",
        "--retakes",
        "0",
        "--set",
        "modes=[none, sidecar]",
        "--set",
        "load={rate: 300, warmup: 100ms}",
        "--set",
        &components,
        "--out",
        folder.to_str().unwrap(),
    ]);
    // A busy machine may leave no trial valid; nothing else may go wrong.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}{}", stdout(&output), stderr(&output));
    let trials = trials(&folder);
    assert_eq!(trials.len(), 6, "no Envoy runs in mode none, which is measured once");
    let anonymous_bytes = |build: &Path| -> Vec<u64> {
        let of_build = trials
            .iter()
            .filter(|trial| trial.mode == Mode::Sidecar)
            .filter(|trial| trial.factors["components.envoy"].to_string() == *build.to_string_lossy());
        let proxies = of_build.flat_map(|trial| &trial.components).filter(|usage| usage.role == Role::Proxy);
        proxies.map(|proxy| proxy.memory_anonymous_bytes.expect("anonymous memory is read")).collect()
    };
    let (read, written) = (anonymous_bytes(&read), anonymous_bytes(&written));
    assert_eq!((read.len(), written.len()), (4, 4), "two proxies in each of two trials");
    let sums = [read.iter().sum::<u64>() as f64, written.iter().sum::<u64>() as f64];
    assert!((sums[0] / sums[1] - 1.0).abs() < 0.05, "{read:?} {written:?}");
    let summary = summary(&folder);
    assert!(summary.factor_differences.iter().all(|difference| difference.mode == Mode::Sidecar));
    // A busy machine may leave too little for a comparison of memory; of pages of the file there never is one.
    let compared: Vec<Metric> = summary.factor_differences.iter().map(|one| one.figure).collect();
    let with_pages = [Metric::MemoryBytes, Metric::MemoryResidentBytes];
    assert!(!with_pages.iter().any(|metric| compared.contains(metric)), "{compared:?}");
}

/// Every observer counted every request; the gateway's own figures are those of the window.
fn check_rates(trial: &TrialRecord) {
    let rates = trial.rates.expect("the generator has a result");
    let observers = [Some(rates.generator), rates.gateway, rates.destination].into_iter().flatten();
    for rate in observers {
        assert!((rate / rates.generator - 1.0).abs() <= 0.01, "{rates:?} in mode {}", trial.mode);
    }
    assert!(rates.destination.is_some() && rates.gateway.is_some() == (trial.mode == Mode::Gateway));
    let disagrees = |reason: &String| reason.starts_with("rates-disagree");
    assert!(!trial.verdict.reasons.iter().any(disagrees), "{:?}", trial.verdict);
    if trial.mode != Mode::Gateway {
        assert!(trial.gateways.is_empty());
        return;
    }
    let [gateway] = &trial.gateways[..] else { panic!("{:?}", trial.gateways) };
    assert_eq!((gateway.name.as_str(), gateway.targets.as_slice()), ("gateway", &["server".to_owned()][..]));
    assert!(gateway.window_s > 0.0 && gateway.requests > 0 && gateway.bytes_sent > gateway.bytes_received);
    assert_eq!(gateway.responses.keys().map(String::as_str).collect::<Vec<_>>(), ["2xx"]);
    let counts = gateway.whole_trial.as_ref().expect("it responded after the load");
    assert!(counts.requests >= gateway.requests && counts.not_forwarded() == 0, "{gateway:?}");
    for duration in [gateway.duration_downstream_us, gateway.duration_upstream_us] {
        let duration = duration.expect("histograms are flushed when they are read");
        // Requests in flight at a reading are in the counters but not yet in the histograms.
        assert!(duration.count.abs_diff(gateway.requests) <= 20, "{gateway:?}");
        assert!(duration.p50 <= duration.p99 && duration.resolution_us >= 1000.0, "{duration:?}");
    }
    let server = &trial.services[0];
    assert!(server.requests_per_s.is_some_and(|rate| rate > 0.0), "{server:?}");
}

#[test]
fn generators_replace_connections_after_their_requests() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("run");
    let mut command = meshmeter();
    command.args(["run", "sidecar-cost", "--repeats", "1", "--duration", "1s", "--retakes", "0"]);
    command.args(["--set", "modes=[none]", "--set", "load.rate=[300]"]);
    command.args(["--set", "load.requests-per-connection=[1, 100]"]).args(SHORT_NOISE_FLOOR);
    let output = command.arg("--out").arg(&folder).output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}{}", stdout(&output), stderr(&output));
    let trials = trials(&folder);
    assert_eq!(trials.len(), 2);
    for trial in trials {
        let result = trial.result.expect("a result");
        let (opened, sent) = (result.connect_time_us.count, result.requests.sent + result.warmup.sent);
        let expected = match trial.load.requests_per_connection {
            Some(1) => sent..sent + 10,
            _ => sent / 100..sent / 100 + 10,
        };
        assert!(expected.contains(&opened), "{opened} connections for {sent} requests: {:?}", trial.load);
    }
}

#[test]
fn responses_are_errors_by_the_statuses_that_the_experiment_expects() {
    let scratch = tempfile::tempdir().unwrap();
    let errors = |expected: &str| {
        let folder = scratch.path().join(expected);
        let mut command = meshmeter();
        command.args(["run", "sidecar-cost", "--repeats", "1", "--duration", "1s", "--retakes", "0"]);
        command.args([
            "--set",
            "modes=[none]",
            "--set",
            "load.rate=[300]",
            "--set",
            "server.error-rate=100%",
        ]);
        command.arg("--set").arg(format!("load.expect-status={expected}")).args(SHORT_NOISE_FLOOR);
        let output = command.arg("--out").arg(&folder).output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 1)), "{}{}", stdout(&output), stderr(&output));
        let trial = trials(&folder).remove(0);
        let result = trial.result.expect("a result");
        assert!(result.requests.completed > 0 && result.requests.status["500"] == result.requests.completed);
        let are_unexpected = result.requests.unexpected_status == Some(result.requests.status);
        let are_a_reason = trial.verdict.reasons.iter().any(|reason| reason.starts_with("errors: "));
        (summary(&folder).cells[0].errors, are_unexpected, are_a_reason)
    };
    assert_eq!(errors("5xx"), (0.0, false, false));
    assert_eq!(errors("2xx"), (1.0, true, true));
}

#[test]
fn an_interrupt_keeps_the_trials_so_far() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("run");
    let mut child = start(
        meshmeter()
            .args([
                "run",
                "sidecar-cost",
                "--duration",
                "1s",
                "--retakes",
                "0",
                "--set",
                "load.rate=[100]",
                "--set",
                "modes=[none]",
                "--out",
            ])
            .arg(&folder)
            .args(SHORT_NOISE_FLOOR),
    );
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.trim_start().starts_with("2/5")), "the second trial ends");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{output:?}");
    let trials = trials(&folder);
    assert!((2..5).contains(&trials.len()), "{} trials", trials.len());
    assert_eq!(summary(&folder).trials_planned, 5);
    assert!(folder.join("report.html").exists());
}

#[test]
fn killed_run_is_continued_and_no_other_run_writes_into_its_directory() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("run");
    let out = folder.to_str().unwrap();
    let few = ["run", "sidecar-cost", "--duration", "1s", "--retakes", "0", "--set", "load.rate=[100]"];
    let one_mode = ["--set", "modes=[none]", "--repeats", "6"];
    let mut child = start(
        meshmeter().args(few).args(one_mode).args(SHORT_NOISE_FLOOR).args(["--seed", "7", "--out", out]),
    );
    assert!(said(&mut child).any(|line| line.trim_start().starts_with("2/6")), "the second trial ends");
    let locked = fs::File::open(&folder).unwrap();
    assert!(matches!(locked.try_lock(), Err(fs::TryLockError::WouldBlock)), "the run holds its directory");
    kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
    child.wait().unwrap();
    // The processes of its lab end with it, and with them the lock.
    locked.lock().unwrap();
    for others in [["--out", out, "--overwrite"].as_slice(), &["--resume", out]] {
        let what: &[&str] = if others[0] == "--resume" { &["run"] } else { &few };
        let output = meshmeter().args(what).args(others).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains("a run is being measured into"), "{}", stderr(&output));
    }
    drop(locked);
    let before = trials(&folder);
    assert!((2..6).contains(&before.len()), "{} trials", before.len());
    assert!(!folder.join("report.html").exists());

    // On a terminal that is gone.
    let full = || fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = meshmeter().args(["run", "--resume", out]).stdout(full()).stderr(full()).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "what could not be printed");
    let all = trials(&folder);
    assert_eq!(all[..before.len()], before, "what was there stays");
    assert_eq!(all.iter().map(|trial| trial.repeat).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
    assert!(all.iter().all(|trial| trial.outcome == TrialOutcome::Finished));
    let host: Host = serde_json::from_slice(&fs::read(folder.join("host.json")).unwrap()).unwrap();
    let resumed: Vec<usize> = host.resumed.iter().map(|resumed| resumed.after_trials).collect();
    assert_eq!(resumed, [before.len()]);
    let report = fs::read_to_string(folder.join("report.html")).unwrap();
    assert!(report.contains("and was continued at"), "the report says so");

    // Nothing is missing any more, and with other programs nothing may be added.
    let again = run(&["run", "--resume", out]);
    assert!(matches!(again.status.code(), Some(0 | 1)), "{}", stderr(&again));
    assert_eq!(trials(&folder).len(), 6);
    let host =
        fs::read_to_string(folder.join("host.json")).unwrap().replace("\"kernel\": \"", "\"kernel\": \"9.");
    fs::write(folder.join("host.json"), host).unwrap();
    let other = run(&["run", "--resume", out]);
    assert_eq!(other.status.code(), Some(2), "{}", stderr(&other));
    assert!(stderr(&other).contains("its trials would differ: kernel: 9."), "{}", stderr(&other));
}

/// Two trials of mode `none`.
fn start_two_trials(folder: &Path) -> Child {
    start_two_trials_with(1, folder)
}

/// Like [`start_two_trials`], with this number of generators.
fn start_two_trials_with(generators: usize, folder: &Path) -> Child {
    meshmeter()
        .args(["run", "sidecar-cost", "--duration", "4s", "--repeats", "2", "--retakes", "0"])
        .args(SHORT_NOISE_FLOOR)
        .args(["--set", "load.rate=[100]", "--set", &format!("load.generators={generators}")])
        .args(["--set", "modes=[none]", "--set", "load.timeout=1s", "--out"])
        .arg(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Waits for the process in this run's lab that runs subcommand `verb`.
fn process_of(run: &mut Child, verb: &str) -> Pid {
    let text = |pid: i32, file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let parent = |pid: i32| -> Option<i32> {
        let status = text(pid, "status");
        status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
    };
    let outer = Pid::from_child(run).as_raw_nonzero().get();
    let is_it = |pid: &i32| {
        text(*pid, "cmdline").split('\0').nth(1) == Some(verb) && parent(*pid).and_then(parent) == Some(outer)
    };
    loop {
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        if let Some(pid) = pids.into_iter().find(is_it).and_then(Pid::from_raw) {
            return pid;
        }
        assert!(run.try_wait().unwrap().is_none(), "the run ended before its first `{verb}`");
        std::thread::yield_now();
    }
}

#[test]
fn a_server_that_dies_fails_its_trial_alone_and_its_log_is_named() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("run");
    let mut child = start_two_trials(&folder);
    // The generator is running, so the trial has started.
    process_of(&mut child, "load");
    kill_process(process_of(&mut child, "serve"), Signal::KILL).unwrap();
    child.wait().unwrap();
    let trials = trials(&folder);
    assert_eq!(trials[0].outcome, TrialOutcome::Failed, "{:?}", trials[0].verdict);
    assert!(trials[0].verdict.reasons[0].starts_with("failed: "), "{:?}", trials[0].verdict);
    assert!(trials[0].log_tails.contains_key("server"), "{:?}", trials[0].log_tails);
    assert_eq!(trials[1].outcome, TrialOutcome::Finished, "{:?}", trials[1].verdict);
}

#[test]
fn generators_share_a_load_and_one_that_dies_spoils_its_trial_alone() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("run");
    let mut child = start_two_trials_with(3, &folder);
    kill_process(process_of(&mut child, "load"), Signal::KILL).unwrap();
    child.wait().unwrap();
    let trials = trials(&folder);
    let [lost, whole] = &trials[..] else { panic!("{} trials", trials.len()) };
    assert_eq!(lost.outcome, TrialOutcome::Failed, "{:?}", lost.verdict);
    let reason = &lost.verdict.reasons[0];
    assert!(reason.starts_with("generator-lost: generator-") && reason.contains("signal"), "{reason}");
    assert!(!lost.verdict.valid && Figure::ALL.into_iter().all(|figure| !lost.verdict.is_usable(figure)));

    assert_eq!(whole.outcome, TrialOutcome::Finished, "{:?}", whole.verdict);
    let result = whole.result.as_ref().expect("a result");
    assert_eq!((result.requests.scheduled, result.rate.offered, result.connections), (400, Some(100.0), 4));
    assert_eq!(result.response_time_us.count, result.requests.completed);
    let parts = &result.merged.as_ref().expect("it is a sum").parts;
    assert_eq!(parts.iter().map(|part| part.requests).sum::<u64>(), result.requests.sent);
    assert!(parts.iter().all(|part| part.start_offset_us.is_some() && part.result.is_none()), "{parts:?}");
    let generators = whole.components.iter().filter(|component| component.role == Role::Generator);
    let names: Vec<&str> = generators.map(|component| component.name.as_str()).collect();
    assert_eq!(names, ["generator-1", "generator-2", "generator-3"]);
    assert_eq!(whole.services[0].requests, Some(result.requests.sent + result.warmup.sent));
}

#[test]
fn interrupt_does_not_wait_forever_for_stopped_generator() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("run");
    let mut child = start_two_trials(&folder);
    kill_process(process_of(&mut child, "load"), Signal::STOP).unwrap();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    let trials = trials(&folder);
    assert_eq!(trials.len(), 1);
    assert_eq!(trials[0].outcome, TrialOutcome::Interrupted, "{:?}", trials[0].verdict);
    assert!(trials[0].verdict.reasons[0].starts_with("interrupted: "), "{:?}", trials[0].verdict);
}

/// Threads of this process that keep CPUs busy until dropped: more than a trial tolerates from other
/// processes.
struct Noise {
    ended: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Noise {
    fn begin() -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let spin = |ended: Arc<AtomicBool>| {
            while !ended.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        };
        let cpus = available_parallelism().map_or(1, NonZero::get);
        let threads = (0..cpus.div_ceil(4)).map(|_| {
            let ended = Arc::clone(&ended);
            spawn(move || spin(ended))
        });
        let threads = threads.collect();
        Self { ended, threads }
    }
}

impl Drop for Noise {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().expect("a thread that spins does not panic");
        }
    }
}

#[test]
fn disturbed_trial_is_rerun_after_its_repeat_and_every_take_is_kept() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("run");
    let out = folder.to_str().unwrap();
    let noise = Noise::begin();
    let mut child = start(
        meshmeter()
            // A trial that is saturated too is not rerun: a window of 8 s absorbs a stall of the whole machine of
            // 0.8 s, and a generator that sleeps gets a CPU sooner than one that spins.
            .args(["run", "sidecar-cost", "--repeats", "1", "--retakes", "1", "--duration", "8s"])
            // A single trial: if the machine disturbed several, which one is rerun first would depend on the
            // machine.
            .args(["--set", "load.rate=[100]", "--set", "load.pacing=economical"])
            .args(SHORT_NOISE_FLOOR)
            .args(["--set", "modes=[none]", "--out", out]),
    );
    let mut lines = said(&mut child);
    assert!(lines.any(|line| line.contains(" with 1 rerun)")), "it says what it is about to do");
    assert!(lines.any(|line| line.trim_start().starts_with("1/1")), "the first trial ends");
    drop(noise);
    let rest: Vec<String> = lines.collect();
    let output = child.wait_with_output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{output:?}");
    let trials = trials(&folder);
    assert!(
        rest.iter().any(|line| line.trim_start().starts_with("2/2") && line.contains("rerun of trial 1")),
        "{rest:?}, {:?}",
        trials[0].verdict
    );

    assert_eq!(trials.iter().map(|trial| trial.index).collect::<Vec<_>>(), [0, 1]);
    let (disturbed, again) = (&trials[0], &trials[1]);
    // The generator may have been late too.
    let others = |reason: &String| reason.starts_with("other-processes: ");
    assert!(disturbed.verdict.reasons.iter().any(others), "{:?}", disturbed.verdict);
    assert_eq!(disturbed.retake, None);
    let reasons = disturbed.verdict.reasons.clone();
    assert_eq!(again.retake, Some(Retake { take: 2, of: 0, because: reasons }));
    assert_eq!((again.mode, again.repeat, &again.load), (disturbed.mode, disturbed.repeat, &disturbed.load));
    assert!(folder.join("logs/trial-001/load.json").exists());

    // Whether the other takes are valid depends on the machine; that they count once does not.
    let summary = summary(&folder);
    assert_eq!((summary.trials_planned, summary.trials_recorded, summary.places_recorded()), (1, 2, 1));
    assert_eq!(
        summary.retakes.map(|retakes| (retakes.of_each, retakes.most, retakes.taken)),
        Some((1, 1, 1))
    );
    let cell = summary.cells.iter().find(|cell| cell.mode == again.mode).unwrap();
    assert_eq!((cell.trials, cell.places(), cell.retakes), (2, 1, 1));
    assert_eq!(cell.valid, usize::from(again.verdict.valid));
    assert!(stdout(&output).contains(&format!("{}/1+1", cell.valid)), "{}", stdout(&output));
    fs::remove_file(folder.join("summary.json")).unwrap();
    let csv = scratch.path().join("latencies.csv");
    let report = run(&["report", out, "--latency-csv", csv.to_str().unwrap()]);
    assert_eq!(report.status.code(), output.status.code(), "as the run itself: {}", stderr(&report));
    assert_eq!(self::summary(&folder), summary);
    let csv = fs::read_to_string(csv).unwrap();
    let line = csv.lines().find(|line| line.starts_with(again.mode.name())).unwrap_or_default();
    let column = csv.lines().next().unwrap().split(',').position(|name| name == "retaken_trials").unwrap();
    assert_eq!(line.split(',').nth(column), Some("1"), "{csv}");
}

#[test]
fn folder_of_a_run_is_checked_when_the_run_is_only_planned() {
    let scratch = tempfile::tempdir().unwrap();
    let path = |name: &str| scratch.path().join(name).display().to_string();
    fs::create_dir(path("of-a-run")).unwrap();
    fs::write(path("of-a-run/trials.jsonl"), "").unwrap();
    fs::create_dir(path("foreign")).unwrap();
    fs::write(path("foreign/notes.txt"), "kept").unwrap();
    fs::write(path("file"), "kept").unwrap();
    let run_plan = ["run", "sidecar-cost"];
    let comparison_plan =
        ["compare", "sidecar-cost", "--base", "proxy.workers=1", "--head", "proxy.workers=2"];
    for plan in [run_plan.as_slice(), &comparison_plan] {
        let outcome = |name: &str, overwrite: &[&str]| {
            let out = path(name);
            run(&[plan, &["--dry-run", "--out", &out], overwrite].concat())
        };
        for (name, overwrite, refused) in [
            ("of-a-run", [].as_slice(), "of-a-run"),
            ("foreign", &["--overwrite"], "notes.txt"),
            ("file", &[], "file"),
        ] {
            let output = outcome(name, overwrite);
            assert_ne!(output.status.code(), Some(0), "{name}");
            assert!(stdout(&output).is_empty(), "{name}: {}", stdout(&output));
            assert!(stderr(&output).contains(refused), "{name}: {}", stderr(&output));
        }
        for (name, overwrite) in [("of-a-run", ["--overwrite"].as_slice()), ("new", &[])] {
            let output = outcome(name, overwrite);
            assert_eq!(output.status.code(), Some(0), "{name}: {}", stderr(&output));
        }
    }
    assert!(fs::exists(path("of-a-run/trials.jsonl")).unwrap(), "a plan removes nothing");
    assert!(!fs::exists(path("new")).unwrap(), "a plan creates nothing");
}

#[test]
fn plan_is_printed_without_a_lab() {
    let output = run(&["run", "sidecar-cost", "--repeats", "2", "--seed", "7", "--dry-run"]);
    assert_eq!(output.status.code(), Some(0));
    insta::assert_snapshot!(stdout(&output));
}

#[test]
fn accepted_noise_is_no_reason_for_a_rerun() {
    let plans_reruns = |options: &[&str]| {
        let output = run(&[&["run", "sidecar-cost", "--dry-run"], options].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stdout(&output).contains("disturbed trials are rerun after their repeat")
    };
    assert!(plans_reruns(&[]) && !plans_reruns(&["--accept-noise"]));
    assert!(plans_reruns(&["--accept-noise", "--retakes", "1"]), "the user asks for both");
}

#[test]
fn errors_in_experiment_are_shown_at_their_position() {
    let scratch = tempfile::tempdir().unwrap();
    let wrong = [
        (
            "unknown-key",
            "name: x\nmesh: envoy\nmodes: [none]\nload:\n  rate: 100\n  conections: 4\n  duration: 5s\n",
        ),
        (
            "wrong-unit",
            "name: x\nmesh: envoy\nmodes: [none]\nload:\n  rate: 100\n  connections: 4\n  duration: 5\n",
        ),
        (
            "contradiction",
            "name: x\nmesh: envoy\nmodes: [none]\nload:\n  rate: 100\n  clients: 4\n  duration: 5s\n",
        ),
        (
            "foreign-mode",
            "name: x\nmesh: envoy\nmodes: [none, ambient]\nload:\n  rate: 100\n  connections: 4\n  duration: 5s\n",
        ),
        ("no-yaml", "name: [x\nmesh"),
    ];
    for (name, text) in wrong {
        let file = scratch.path().join("experiment.yaml");
        fs::write(&file, text).unwrap();
        let output = meshmeter().args(["run", "experiment.yaml"]).current_dir(&scratch).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{name}: {}", stderr(&output));
        insta::assert_snapshot!(name, stderr(&output));
    }
    fs::write(scratch.path().join("my-question.yaml"), "").unwrap();
    for (name, hint) in [
        ("does-not-exist", "sidecar-cost, "),
        ("another.yaml", "sidecar-cost, "),
        ("mesh-mode", "hint: did you mean `mesh-modes`?"),
        ("sidecar_cost", "hint: did you mean `sidecar-cost`?"),
        ("mesh-mode.yaml", "hint: did you mean `mesh-modes`?"),
        ("studies/mesh-mode.yaml", "hint: did you mean `mesh-modes`?"),
        ("my-questoin.yaml", "hint: did you mean `my-question.yaml`?"),
        ("./my-questoin.yaml", "hint: did you mean `./my-question.yaml`?"),
    ] {
        let output = meshmeter().args(["run", name]).current_dir(&scratch).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(hint), "{}", stderr(&output));
    }
}
