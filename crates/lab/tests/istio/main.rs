//! `mesh: istio` with the real components (`meshmeter lab install`), in a lab of this test's own, as root: each mode is
//! brought up, gets requests and must prove its path; what breaks the path, or a component, must show.
//!
//! All cases share one control plane, as the trials of a run do. This program is also the service (`serve`) and the
//! generator (`load`) of its arrangements. It has no harness, since a lab is entered by a program of one thread.

#![allow(clippy::print_stdout)]

mod deaths;
mod modes;
#[allow(dead_code, reason = "shared with the test of arrangements, which burns CPU too")]
#[path = "../arrangement/programs.rs"]
mod programs;
mod remains;
#[path = "../arrangement/trial.rs"]
mod trial;

use lab::arrangement::{LocalLab, Programs};
use lab::components::Overrides;
use lab::{Entered, Lab};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Instant;

/// A case gets the lab, and the environment that all cases share.
type Case = fn(&Lab, &LocalLab);

const CASES: &[(&str, Case)] = &[
    ("none_goes_by_the_address_of_the_service", modes::none_goes_by_the_address_of_the_service),
    ("sidecars_prove_mutual_tls", modes::sidecars_prove_mutual_tls),
    ("without_mutual_tls_there_are_no_handshakes", modes::without_mutual_tls_there_are_no_handshakes),
    ("traffic_past_the_server_proxy_shows", modes::traffic_past_the_server_proxy_shows),
    ("traffic_past_the_client_proxy_is_refused", modes::traffic_past_the_client_proxy_is_refused),
    ("nothing_of_a_trial_is_left", remains::nothing_of_a_trial_is_left),
    ("keys_are_closed_to_others", remains::keys_are_closed_to_others),
    ("a_dead_proxy_is_named_with_its_log", deaths::a_dead_proxy_is_named_with_its_log),
    ("a_dead_control_plane_is_named_and_replaced", deaths::a_dead_control_plane_is_named_and_replaced),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.get(1).map(String::as_str) {
        Some("serve") => return programs::serve(&arguments),
        Some("load") => return programs::load(&arguments),
        _ => {}
    }
    match lab::enter("test of mesh istio").expect("this test needs a lab: `meshmeter doctor`") {
        Entered::Outside(status) => status,
        Entered::Inside(lab) => {
            run(&lab, arguments.get(1).map(String::as_str).filter(|name| !name.starts_with('-')))
        }
    }
}

/// Runs the cases whose name holds `only`.
fn run(lab: &Lab, only: Option<&str>) -> ExitCode {
    let meshmeter = std::env::current_exe().expect("a running program has a path");
    let programs = Programs { meshmeter, overrides: Overrides::default() };
    let place = LocalLab::new(lab.clone(), programs).expect("the lab is up");
    let mut failed = Vec::new();
    for (name, case) in CASES.iter().filter(|(name, _)| only.is_none_or(|only| name.contains(only))) {
        let begun = Instant::now();
        let passed = catch_unwind(AssertUnwindSafe(|| case(lab, &place))).is_ok();
        let took = begun.elapsed().as_secs_f64();
        println!("test {name} ... {} ({took:.1} s)", if passed { "ok" } else { "FAILED" });
        if !passed {
            failed.push(*name);
        }
    }
    println!("{} failed {failed:?}", failed.len());
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
