//! `meshmeter doctor --calibrate` and `meshmeter run --calibrate` in a real lab, with as few and as short
//! trials as possible.

mod command;

use command::{meshmeter, said, start, stderr, stdout};
use results::{CalibratedFigure, Calibration, Host, Pacing, Summary};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command};

/// Trials per repeat of one mode: a pair against itself, a reference and four known effects.
const TRIALS_PER_REPEAT: usize = 7;

/// Starts a command that stores calibrations in this directory.
fn start_with_cache(command: &mut Command, cache: &Path) -> Child {
    start(command.env("XDG_CACHE_HOME", cache))
}

/// Sends Ctrl-C once this many trials of the calibration have ended. Returns the exit status and the output.
fn interrupt_after(mut child: Child, trials: usize) -> (Option<i32>, String) {
    let mut lines = said(&mut child);
    let awaited = format!("{trials}/");
    assert!(lines.any(|line| line.trim_start().starts_with(&awaited)), "trial {trials} ends");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let rest: Vec<String> = lines.collect();
    let mut printed = String::new();
    child.stdout.take().expect("piped").read_to_string(&mut printed).unwrap();
    let status = child.wait().unwrap().code();
    assert!(matches!(status, Some(0 | 1)), "{status:?}: {printed}{rest:?}");
    (status, printed)
}

#[test]
fn interrupt_keeps_calibration_so_far() {
    let cache = tempfile::tempdir().unwrap();
    let arguments =
        ["doctor", "--calibrate", "--modes", "none", "--repeats", "90", "--duration", "100ms", "--json"];
    let child = start_with_cache(meshmeter().args(arguments), cache.path());
    let (status, printed) = interrupt_after(child, TRIALS_PER_REPEAT);
    let calibration: Calibration = serde_json::from_str(&printed).expect("a calibration");
    let [mode] = &calibration.modes[..] else { panic!("one mode of {calibration:?}") };
    assert_eq!((calibration.repeats_planned, status), (90, Some(i32::from(mode.repeats == 0))));
    assert!(mode.repeats < 90, "{} repeats", mode.repeats);
}

#[test]
fn an_interrupt_while_a_run_calibrates_ends_the_run_with_its_report() {
    let (cache, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let folder = scratch.path().join("run");
    let arguments = ["run", "sidecar-cost", "--calibrate", "--set", "modes=[none]", "--out"];
    let child = start_with_cache(meshmeter().args(arguments).arg(&folder), cache.path());
    interrupt_after(child, 1);
    let host: Host = serde_json::from_slice(&fs::read(folder.join("host.json")).unwrap()).unwrap();
    let calibration = host.calibration.expect("what was measured until then");
    assert!(calibration.modes.iter().all(|mode| mode.repeats < 3), "{calibration:?}");
    let summary: Summary = serde_json::from_slice(&fs::read(folder.join("summary.json")).unwrap()).unwrap();
    assert_eq!(summary.trials_recorded, 0);
    assert!(folder.join("report.html").exists());
    assert!(!cache.path().join("meshmeter/calibrations").exists(), "too few repeats to keep");
}

#[test]
fn calibration_is_kept_and_later_runs_report_unresolved_differences() {
    let (cache, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let calibrate = ["doctor", "--calibrate", "--modes", "none", "--repeats", "3", "--duration", "100ms"];
    let output = start_with_cache(meshmeter().args(calibrate), cache.path()).wait_with_output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}{}", stdout(&output), stderr(&output));
    let kept = fs::read_dir(cache.path().join("meshmeter/calibrations")).expect("three repeats are kept");
    let kept: Vec<_> = kept.flatten().collect();
    assert_eq!(kept.len(), 1);
    let kept: Calibration = serde_json::from_slice(&fs::read(kept[0].path()).unwrap()).unwrap();

    let experiment = scratch.path().join("fine.yaml");
    let mut file = fs::File::create(&experiment).unwrap();
    file.write_all(b"name: fine\nmodes: [none]\nload: {rate: 100, warmup: 100ms, duration: 200ms}\nrepeats: 1\nresolve: {p50: 1us}\n")
        .unwrap();
    let folder = scratch.path().join("run");
    let run =
        start_with_cache(meshmeter().arg("run").arg(&experiment).arg("--out").arg(&folder), cache.path());
    let output = run.wait_with_output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}{}", stdout(&output), stderr(&output));
    let host: Host = serde_json::from_slice(&fs::read(folder.join("host.json")).unwrap()).unwrap();
    assert_eq!(host.calibration.as_ref(), Some(&kept));
    let html = fs::read_to_string(folder.join("report.html")).unwrap();
    assert!(html.contains(&kept.made_at), "the report says when the machine was calibrated");
    // Absent if the machine spoiled every median.
    let resolves = kept.modes[0].spreads.iter().any(|spread| spread.figure == CalibratedFigure::P50Us);
    let warned = stderr(&output).contains("the run requires differences of");
    assert_eq!(warned, resolves, "{}", stderr(&output));
}

#[test]
fn calibration_finds_known_effects() {
    let cache = tempfile::tempdir().unwrap();
    let arguments =
        ["doctor", "--calibrate", "--modes", "none", "--repeats", "2", "--duration", "100ms", "--json"];
    let output =
        meshmeter().env("XDG_CACHE_HOME", cache.path()).args(arguments).output().expect("the binary runs");
    // A busy machine may leave no figure usable; nothing else may go wrong.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}{}", stdout(&output), stderr(&output));
    let calibration: Calibration = serde_json::from_str(&stdout(&output)).expect("a calibration");
    assert_eq!((calibration.repeats_planned, calibration.modes.len()), (2, 1));
    assert_ne!(calibration.pacing, Pacing::Auto, "one way of waiting for all trials");
    let mode = &calibration.modes[0];
    let known: Vec<f64> = mode
        .known
        .iter()
        .filter(|known| known.figure == CalibratedFigure::P50Us)
        .map(|known| known.truth)
        .collect();
    assert_eq!(known, [20.0, 50.0, 100.0, 200.0]);
    // On a busy machine figures are spoiled or their intervals wide; no interval may lie below the CPU time
    // that the service computed for.
    let cpu = mode.known.iter().rfind(|known| known.figure == CalibratedFigure::CpuCores).unwrap();
    if let Some(found) = cpu.estimate {
        assert!(found.high.is_none_or(|high| high > 0.02), "{found:?} of {}", cpu.truth);
    }
    assert!(!cache.path().join("meshmeter/calibrations").exists(), "two repeats are too few to keep");
}
