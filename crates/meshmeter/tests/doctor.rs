//! `meshmeter doctor` on this machine, which must be able to run a lab, as all tests of the lab require.

use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

fn doctor(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_meshmeter"))
        .arg("doctor")
        .args(arguments)
        .output()
        .expect("meshmeter starts")
}

#[test]
fn main_job_can_run_here_and_every_part_was_tried() {
    let output = doctor(&["--json"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{text}");
    let diagnosis: serde_json::Value = serde_json::from_str(&text).expect("standard output is JSON alone");
    assert_eq!(diagnosis["schema"], "meshmeter.doctor/1");
    assert_eq!(diagnosis["main_job_runs"], true, "{text}");
    for part in [
        "kernel",
        "clock",
        "open files",
        "namespaces",
        "processes",
        "cgroups",
        "redirect",
        "disk",
        "envoy",
        "istio",
        "ztunnel",
    ] {
        let checks = diagnosis["checks"].as_array().unwrap();
        assert!(checks.iter().any(|check| check["name"] == part), "{part} was not looked at: {text}");
    }
    let checks = |mode: &str| {
        let modes = diagnosis["modes"].as_array().unwrap();
        let check = modes.iter().find(|check| check["mode"] == mode).unwrap();
        let meshes = check["meshes"].as_array().unwrap().clone();
        assert_eq!(check["runs"], meshes.iter().any(|check| check["runs"] == true), "{text}");
        meshes
    };
    let running = |mode: &str| {
        let meshes = checks(mode).into_iter().filter(|check| check["runs"] == true);
        meshes.map(|check| check["mesh"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        (running("none"), running("gateway")),
        (vec!["envoy".into(), "istio".into()], vec!["envoy".into()])
    );
    assert_eq!(
        (running("sidecar"), running("ingress")),
        (vec!["envoy".into(), "istio".into()], vec!["istio".into()])
    );
    // Nothing stands in for a mode: ztunnel is in no installed component, so a machine may lack it.
    let [ambient] = &checks("ambient")[..] else { panic!("only Istio has it: {text}") };
    let lacks = ambient["lacks"].as_str().unwrap_or_default();
    assert!(ambient["mesh"] == "istio" && (ambient["runs"] == true || lacks.contains("ztunnel")), "{text}");
    assert!(diagnosis["floor"]["timer_late_p50_us"].as_f64().unwrap() > 0.0, "{text}");
}

#[test]
fn missing_envoy_is_an_error_with_remedy() {
    let output = doctor(&["--envoy", "/nowhere/envoy"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.contains("/nowhere/envoy: there is no such file"), "{text}");
    assert!(text.contains("meshmeter lab install"), "{text}");
    assert!(text.contains("with `mesh: envoy`: "), "{text}");
    assert!(text.trim_end().ends_with("see what is missing above"), "{text}");
}

#[test]
fn full_disk_is_an_error_not_a_panic() {
    let output = Command::new(env!("CARGO_BIN_EXE_meshmeter"))
        .arg("doctor")
        .stdout(std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap())
        .output()
        .expect("meshmeter starts");
    assert_eq!(output.status.code(), Some(3));
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(error.trim_end(), "error: write to standard output: No space left on device (os error 28)");
}

#[test]
fn self_test_holds_every_figure_against_a_known_target() {
    assert_no_figure_is_wrong(&doctor(&["--self-test", "--json"]));
}

/// The generator is late then, and says so of the figures that it cannot have.
#[test]
fn self_test_beside_a_busy_thread_withholds_figures_and_has_none_wrong() {
    let ended = AtomicBool::new(false);
    let output = thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        let output = doctor(&["--self-test", "--json"]);
        ended.store(true, Ordering::Relaxed);
        output
    });
    assert_no_figure_is_wrong(&output);
}

fn assert_no_figure_is_wrong(output: &Output) {
    let text = String::from_utf8_lossy(&output.stdout);
    let table: serde_json::Value = serde_json::from_str(&text).expect("standard output is JSON alone");
    let figures = table["figures"].as_array().expect("a list");
    assert_eq!(figures.len(), 18, "{text}");
    for figure in figures {
        assert_ne!(figure["outcome"], "wrong", "{figure}");
        assert!(figure["truth"].as_f64().is_some_and(|truth| truth > 0.0), "{figure}");
    }
    assert_eq!(output.status.code(), Some(0), "{text}");
}
