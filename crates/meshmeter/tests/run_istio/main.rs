//! `meshmeter run` of experiments with `mesh: istio`, as users meet it: the built command, the real components, as root.
//! Components are killed and held still, runs are interrupted and killed, traffic is led past the proxies; each time what
//! is recorded, what is said and what is left must be right.
//!
//! No harness: the cases run one after the other, since each has a control plane of its own and a machine has few CPUs.
//! `cargo test -p meshmeter --test run_istio NAME` runs those whose name holds NAME.

#![allow(clippy::print_stdout)]

mod deaths;
mod process;
mod refusals;
mod residue;
mod run;
mod tampering;

use lab::components::{Component, Overrides, find};
use std::panic::catch_unwind;
use std::process::ExitCode;
use std::time::Instant;

const CASES: &[(&str, fn())] = &[
    ("whatever_dies_or_stands_still_is_named", deaths::whatever_dies_or_stands_still_is_named),
    ("a_gateway_that_dies_or_stands_still_is_named", deaths::a_gateway_that_dies_or_stands_still_is_named),
    ("five_runs_in_a_row_leave_nothing", residue::five_runs_in_a_row_leave_nothing),
    (
        "what_kill_9_leaves_is_taken_down_and_a_lab_that_lives_is_not",
        residue::what_kill_9_leaves_is_taken_down_and_a_lab_that_lives_is_not,
    ),
    ("one_signal_ends_a_run_with_what_it_has", residue::one_signal_ends_a_run_with_what_it_has),
    ("a_second_signal_ends_a_run_and_leaves_nothing", residue::a_second_signal_ends_a_run_and_leaves_nothing),
    ("a_signal_while_it_reports_changes_nothing", residue::a_signal_while_it_reports_changes_nothing),
    ("rules_that_are_removed_in_the_window_show", tampering::rules_that_are_removed_in_the_window_show),
    ("a_proxy_that_answers_by_itself_is_no_proof", tampering::a_proxy_that_answers_by_itself_is_no_proof),
    ("a_wrong_program_is_named", refusals::a_wrong_program_is_named),
    ("a_program_that_hangs_or_is_too_old_is_named", refusals::a_program_that_hangs_or_is_too_old_is_named),
    ("what_is_missing_is_named", refusals::what_is_missing_is_named),
    ("a_full_disk_is_named", refusals::a_full_disk_is_named),
    ("rights_that_are_missing_are_named", refusals::rights_that_are_missing_are_named),
];

/// Those that need a ztunnel, which no registry has: without one they are listed as not run.
const ZTUNNEL_CASES: &[(&str, fn())] = &[
    ("a_ztunnel_that_dies_or_stands_still_is_named", deaths::a_ztunnel_that_dies_or_stands_still_is_named),
    (
        "rules_of_ambient_that_are_removed_in_the_window_show",
        tampering::rules_of_ambient_that_are_removed_in_the_window_show,
    ),
];

fn main() -> ExitCode {
    let only = std::env::args().nth(1).filter(|name| !name.starts_with('-'));
    let is_wanted = |(name, _): &&(&str, fn())| only.as_ref().is_none_or(|only| name.contains(only.as_str()));
    let mut failed = Vec::new();
    let without_ztunnel = find(Component::Ztunnel, &Overrides::default()).err();
    let runnable = if without_ztunnel.is_some() { &[] } else { ZTUNNEL_CASES };
    for (name, case) in CASES.iter().chain(runnable).filter(is_wanted) {
        let begun = Instant::now();
        let passed = catch_unwind(case).is_ok();
        let took = begun.elapsed().as_secs_f64();
        println!("test {name} ... {} ({took:.1} s)", if passed { "ok" } else { "FAILED" });
        if !passed {
            failed.push(*name);
        }
    }
    if let Some(why) = without_ztunnel {
        for (name, _) in ZTUNNEL_CASES.iter().filter(is_wanted) {
            println!("test {name} ... NOT RUN: {why}");
        }
    }
    println!("{} failed {failed:?}", failed.len());
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
