//! A run beside a lab that is up.

use crate::command::stderr;
use crate::held::Registry;
use std::process::Output;

/// A run that is as short as possible.
fn run(registry: &Registry) -> Output {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut command = registry.command();
    command.args([
        "run",
        "sidecar-cost",
        "--set",
        "modes=[none]",
        "--set",
        "load.rate=[100]",
        "--set",
        "load.warmup=100ms",
    ]);
    command.args(["--repeats=1", "--retakes=0", "--duration=200ms", "--noise-floor=100ms", "--out"]);
    command.arg(folder.path().join("run")).output().expect("the binary runs")
}

#[test]
fn run_beside_another_lab_is_warned_in_one_line() {
    let registry = Registry::new();
    let alone = run(&registry);
    assert!(!stderr(&alone).contains("is up here"), "{}", stderr(&alone));
    let held = registry.up(&["--mode", "none"]);
    let beside = run(&registry);
    let text = stderr(&beside);
    let warnings: Vec<&str> = text.lines().filter(|line| line.contains("is up here since")).collect();
    let [warning] = warnings[..] else { panic!("one line, not two by the process inside: {text}") };
    assert!(warning.starts_with("warning: a lab is up here since 20"), "{warning}");
    assert!(warning.contains(&format!("--mode none`, lab {})", held.id())), "{warning}");
    held.interrupt();
}
