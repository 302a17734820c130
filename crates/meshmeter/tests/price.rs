//! `meshmeter price` on the directory of a real run, and with a learned topology.

mod command;

use command::{meshmeter, run, stderr, stdout};
use results::{BasisKind, Figures, Mode, PRICE_SCHEMA, PriceResult, SizeNoteKind, TrialRecord};
use std::fs;
use std::path::Path;
use std::process::Output;

/// A real run of a pair without a mesh, with a gateway and with two sidecars, at two rates.
fn real_run() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/size_run").to_str().expect("a plain name").to_owned()
}

fn price(arguments: &[&str]) -> Output {
    run(&[&["price"], arguments].concat())
}

fn json(output: &Output) -> PriceResult {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", stderr(output)))
}

#[test]
fn real_run_is_priced_beyond_its_rates() {
    let asked = ["--topology", "pair", "--rate", "2000rps", "--cpu-hour=0.04", "--gb-hour=0.005"];
    let output = price(&[&[&real_run()[..]], &asked[..], &["--json"]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let result = json(&output);
    assert_eq!((result.schema.as_str(), result.topology.as_str()), (PRICE_SCHEMA, "pair"));
    assert_eq!(result.refusals.iter().map(|note| note.kind).collect::<Vec<_>>(), [SizeNoteKind::NotPriced]);
    let modes: Vec<(Mode, u64)> = result.modes.iter().map(|mode| (mode.mode, mode.proxies)).collect();
    assert_eq!(modes, [(Mode::None, 0), (Mode::Sidecar, 2)]);
    let sidecars = &result.modes[1];
    let cpu = sidecars.cpu_cores_used.unwrap();
    let at_1000 = json(&price(&[&real_run(), "--json"])).modes[1].cpu_cores_used.unwrap();
    assert!(at_1000.estimate > 0.05 && cpu.estimate > 1.5 * at_1000.estimate, "{cpu:?} {at_1000:?}");
    assert!(cpu.low < Some(cpu.estimate) && Some(cpu.estimate) < cpu.high, "{cpu:?}");
    let (cost, bytes) =
        (sidecars.cost_per_month.unwrap().estimate, sidecars.memory_bytes_used.unwrap().estimate);
    let expected = (cpu.estimate * 0.04 + bytes / 1e9 * 0.005) * 730.0;
    assert!((cost / expected - 1.0).abs() < 0.05, "{cost} {expected}");
    assert!(sidecars.entries[0].added_us.p50.unwrap().estimate > 0.0, "{:?}", sidecars.entries);
    // The file has the field without a value.
    assert!(stdout(&output).contains("\"model_error\": null"), "{}", stdout(&output));
    let is_extrapolated = |what: &str| what.starts_with("extrapolated requests");
    assert!(
        result.rests_on.iter().any(|basis| basis.kind == BasisKind::Assumed && is_extrapolated(&basis.what))
    );
}

#[test]
fn text_markdown_and_page_begin_with_the_same_sentence() {
    let scratch = tempfile::tempdir().unwrap();
    let path = |name: &str| scratch.path().join(name).to_str().expect("a plain name").to_owned();
    let (page, markdown) = (path("price.html"), path("price.md"));
    let output = price(&[&real_run(), "--output", &page, "--markdown", &markdown]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output).replace('\u{a0}', " ");
    let sentence = text.lines().next().expect("a sentence").to_owned();
    assert!(
        sentence.starts_with("Sidecars would take 0.") && sentence.contains(" cores (")
            || sentence.contains(" cores and ")
    );
    for (other, before) in [(markdown, "**"), (page, "<h1 id=\"headline\">")] {
        let other = fs::read_to_string(other).unwrap().replace('\u{a0}', " ").replace('\\', "");
        assert!(other.contains(&format!("{before}{sentence}")), "{sentence}: {other}");
    }
    for part in [
        "Proxies by mode",
        "Added latency by entry point",
        "The prices rest on",
        "Not answered. Mode gateway",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("by namespace"), "the topology has one: {text}");
}

#[test]
fn changes_are_priced_beside_the_prices() {
    let asked = ["--set", "sidecar.cpu-request=50m", "--set", "sidecar.memory-request=64Mi"];
    let output = price(&[&[&real_run()[..]], &asked[..], &["--json"]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let result = json(&output);
    let changes = result.what_if.as_ref().unwrap();
    let [change] = &changes.modes[..] else { panic!("{changes:?}") };
    assert_eq!((change.mode, change.proxies), (Mode::Sidecar, 0));
    assert!((change.cpu_cores_reserved + 0.1).abs() < 1e-9, "two sidecars with 50m less: {change:?}");
    assert!((change.memory_bytes_reserved + 2.0 * 64.0 * 1_048_576.0).abs() < 1.0, "{change:?}");
    assert_eq!(change.cpu_cores_used.unwrap().estimate, 0.0);
    let text = stdout(&price(&[&[&real_run()[..]], &asked[..]].concat()));
    assert!(text.contains("What if: sidecar.cpu-request 0.05, sidecar.memory-request 64MiB"), "{text}");
    let refused = price(&[&real_run(), "--set", "proxy.workers=4"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("proxy.workers 4"), "{}", stderr(&refused));
}

#[test]
fn unsupported_questions_are_exit_status_1_with_reason() {
    for (arguments, kind, text) in [
        (&["--mode", "ambient"][..], SizeNoteKind::NotMeasured, "measured modes: none, gateway, sidecar"),
        (&["--mode", "gateway"], SizeNoteKind::NotPriced, "`meshmeter size` answers for them"),
        (&["--topology", "tiered", "--rate", "9"], SizeNoteKind::NotMeasured, "is in one of them only"),
    ] {
        let output = price(&[&[&real_run()[..]], arguments].concat());
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(text) && stdout(&output).trim().is_empty(), "{}", stderr(&output));
        let result = json(&price(&[&[&real_run()[..], "--json"], arguments].concat()));
        assert!(result.modes.is_empty() && result.refusals[0].kind == kind, "{:?}", result.refusals);
    }
}

#[test]
fn damaged_foreign_and_empty_folders_are_clear_errors() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = |name: &str, files: &[(&str, &str)]| {
        let folder = scratch.path().join(name);
        fs::create_dir(&folder).unwrap();
        files.iter().for_each(|(file, text)| fs::write(folder.join(file), text).unwrap());
        folder.to_str().expect("a plain name").to_owned()
    };
    let of_run = |file: &str| fs::read_to_string(Path::new(&real_run()).join(file)).unwrap();
    let (experiment, host) = (of_run("experiment.yaml"), of_run("host.json"));
    let whole = |trials: &str| {
        [("experiment.yaml", &experiment[..]), ("host.json", &host), ("trials.jsonl", trials)]
            .map(|(name, text)| (name, text.to_owned()))
    };
    let written = |name: &str, trials: &str| {
        let files = whole(trials);
        folder(name, &files.each_ref().map(|(file, text)| (*file, text.as_str())))
    };
    for (runs, status, text) in [
        (vec!["nowhere".to_owned()], 2, "nowhere"),
        (vec![folder("nothing", &[])], 2, "nothing"),
        (vec![folder("foreign", &[("notes.txt", "x")])], 2, "foreign"),
        (vec![folder("experiment", &[("experiment.yaml", "modes: [none")])], 2, "experiment"),
        (vec![written("trial", "{\"schema\": 7}\n{\"schema\": 8}\n")], 1, "no trial was recorded"),
        (vec![written("empty", "")], 1, "no trial was recorded"),
        (vec![real_run(), written("beside", "")], 0, ""),
    ] {
        let arguments: Vec<&str> = runs.iter().map(String::as_str).collect();
        let output = price(&arguments);
        assert_eq!(output.status.code(), Some(status), "{runs:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(text), "{runs:?}: {}", stderr(&output));
    }
    for (arguments, text) in [
        (&["--rate", "5"][..], "--topology"),
        (&["--topology", "pair"], "`--rate 100rps` gives each driver a rate"),
        (&["--topology", "-"], "standard input cannot be read here"),
        (&["--nodes", "0"], "--nodes"),
        (&["--set", "istio.sidecar-scope"], "expected KEY=VALUE"),
        (&["--set", "waypoints=all"], "expected `namespace`, `service` or a list"),
        (&["--set", "sidecar.cpu-request=much"], "number of CPU cores"),
        (&["--cpu-hour", "1"], "--gb-hour"),
        (&["--markdown", "-", "--json"], "--markdown"),
    ] {
        let output = price(&[&[&real_run()[..]], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(text), "{arguments:?}: {}", stderr(&output));
    }
}

#[test]
fn noise_that_the_report_of_a_run_accepts_is_priced_and_said() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("noisy");
    fs::create_dir(&folder).unwrap();
    for file in ["experiment.yaml", "host.json"] {
        fs::copy(Path::new(&real_run()).join(file), folder.join(file)).unwrap();
    }
    let trials = fs::read_to_string(Path::new(&real_run()).join("trials.jsonl")).unwrap();
    let noisy = |line: &str| {
        let mut trial: TrialRecord = serde_json::from_str(line).unwrap();
        trial.verdict.spoil("other-processes: rustc took 1.00 cores", Figures::all());
        serde_json::to_string(&trial).unwrap() + "\n"
    };
    fs::write(folder.join("trials.jsonl"), trials.lines().map(noisy).collect::<String>()).unwrap();
    let folder = folder.to_str().expect("a plain name");
    let refused = price(&[folder]);
    assert_eq!(refused.status.code(), Some(1), "{}", stderr(&refused));
    assert!(run(&["report", folder, "--accept-noise"]).status.code().is_some());
    let output = price(&[folder, "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let notes = json(&output).notes;
    assert_eq!(notes.iter().map(|note| note.kind).collect::<Vec<_>>(), [SizeNoteKind::NoiseAccepted]);
    assert!(
        notes[0]
            .text
            .starts_with("Noise accepted: figures include trials that noise of the machine disturbed, "),
        "{notes:?}"
    );
    let text = stdout(&price(&[folder]));
    assert!(text.contains("Noise accepted"), "{text}");
    let size = run(&["size", "--target", "10rps", "--from", folder]);
    assert!(stdout(&size).contains("Noise accepted"), "{}{}", stdout(&size), stderr(&size));
}

/// Answers of a Prometheus: 2000 requests/s to a server, reported by both sidecars, and what these used.
const ANSWERS: &str = r#"{"status":"success","data":{"result":[
  {"metric":{"meshmeter":"istio_requests_total 3600s","reporter":"source","source_workload":"client","source_workload_namespace":"shop",
    "destination_workload":"server","destination_workload_namespace":"shop","request_protocol":"http","response_code":"200"},
   "value":[1800003600,"7200000"]},
  {"metric":{"meshmeter":"istio_requests_total 3600s","reporter":"destination","source_workload":"client","source_workload_namespace":"shop",
    "destination_workload":"server","destination_workload_namespace":"shop","request_protocol":"http","response_code":"200"},
   "value":[1800003600,"7200000"]},
  {"metric":{"meshmeter":"container_cpu_usage_seconds_total 3600s"},"value":[1800003600,"3600"]},
  {"metric":{"meshmeter":"container_memory_working_set_bytes 3600s"},"value":[1800003600,"80000000"]},
  {"metric":{"meshmeter":"container_memory_working_set_bytes 3600s"},"value":[1800003600,"NaN"]}]}}"#;

#[test]
fn learned_topology_gives_rates_and_todays_usage() {
    let scratch = tempfile::tempdir().unwrap();
    fs::write(scratch.path().join("answers.json"), ANSWERS).unwrap();
    let learn = |scale: &str| {
        let arguments = ["learn", "--prometheus", "answers.json", "--scale", scale, "--out", "shop.yaml"];
        let output = meshmeter().args(arguments).current_dir(scratch.path()).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
    };
    let priced = || {
        let arguments = ["price", &real_run(), "--topology", "shop.yaml", "--json"];
        meshmeter().args(arguments).current_dir(scratch.path()).output().unwrap()
    };
    learn("0.5");
    let output = priced();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("was learned at scale 0.5"), "{}", stderr(&output));

    learn("1");
    let provenance = fs::read_to_string(scratch.path().join("shop.provenance.json")).unwrap();
    let provenance: serde_json::Value = serde_json::from_str(&provenance).unwrap();
    assert_eq!(provenance["sidecars"]["cpu_cores"]["value"], 1.0);
    // The run is of a pair without namespaces: the same services in one that has them are others.
    let result = json(&priced());
    assert_eq!(result.refusals[0].kind, SizeNoteKind::NotMeasured, "{:?}", result.refusals);
    assert!(result.refusals[0].text.contains("server"), "{:?}", result.refusals);

    let topology = scratch.path().join("shop.yaml");
    let text = fs::read_to_string(&topology).unwrap();
    fs::write(&topology, text.replace("  namespace: shop\n", "").replace("shop/", "")).unwrap();
    let result = json(&priced());
    let error = result.model_error.as_ref().unwrap_or_else(|| panic!("{:?}", result.refusals));
    let (cpu, used) = (error.cpu_cores.unwrap(), result.modes[1].cpu_cores_used.unwrap());
    assert_eq!((cpu.measured, cpu.predicted, result.modes[1].proxies), (1.0, used, 2));
    assert!((cpu.error - (used.estimate - 1.0)).abs() < 1e-9);
    assert!((error.memory_bytes.unwrap().measured - 8e7).abs() < 1.0);
    assert!((result.requests_per_s - 2000.0).abs() < 1e-6);
    assert!(result.rests_on.iter().any(|basis| basis.kind == BasisKind::Learned));
}
