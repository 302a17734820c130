//! Whole deployments with real Envoy processes, in a lab of this test's own. Every mode is brought up,
//! receives requests and must prove its path; anything that breaks the path must show.
//!
//! This program is also the service (`serve`) and the generator (`load`) of its deployments: see
//! `programs.rs`. It has no harness, since only a single-threaded program can enter a lab.

#![allow(clippy::print_stdout)]

mod cases;
mod death;
mod modes;
mod observation;
mod programs;
mod sampling;
mod trial;

use self::cases::{Cases, Demand};
use components::Overrides;
use lab::environment::{LocalLab, Programs};
use lab::{Entered, Lab};
use std::process::ExitCode;

/// A case receives the lab, and an environment of its own in it.
type Case = fn(&Lab, &mut LocalLab);

/// The cases, each with a lab environment of its own.
const CASES: &[(&str, Case)] = &[
    ("every_mode_proves_its_path", modes::every_mode_proves_its_path),
    ("without_mutual_tls_there_are_no_handshakes", modes::without_mutual_tls_there_are_no_handshakes),
    ("wrong_protocol_is_detected", modes::wrong_protocol_is_detected),
    ("client_bypassing_proxy_is_refused", modes::client_bypassing_proxy_is_refused),
    ("traffic_bypassing_both_proxies_is_detected", modes::traffic_bypassing_both_proxies_is_detected),
    ("dead_static_envoy_is_reported_with_log", modes::dead_static_envoy_is_reported_with_log),
    (
        "stopped_and_dead_components_of_many_are_found_by_polling",
        modes::stopped_and_dead_components_of_many_are_found_by_polling,
    ),
    ("unavailable_modes_report_reason", modes::unavailable_modes_report_reason),
    ("secrets_are_private_and_removed_with_proxy", modes::secrets_are_private_and_removed_with_proxy),
    ("known_cpu_burn_is_read_by_both_sources", sampling::known_cpu_burn_is_read_by_both_sources),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.get(1).map(String::as_str) {
        Some("serve") => return programs::serve(&arguments),
        Some("load") => return programs::load(&arguments),
        Some("burn") => return programs::burn(&arguments),
        _ => {}
    }
    let cases = Cases::new(CASES);
    if !Cases::<Case>::is_worker() {
        return cases.run(Demand::Cpu);
    }
    match lab::enter("test of arrangements").expect("this test needs a lab: `meshmeter doctor`") {
        Entered::Outside(status) => status,
        Entered::Inside(lab) => work(&lab, &cases),
    }
}

fn work(lab: &Lab, cases: &Cases<Case>) -> ExitCode {
    cases.work(None, |case| {
        let meshmeter = std::env::current_exe().expect("a running program has a path");
        let programs = Programs { meshmeter, overrides: Overrides::default() };
        case(lab, &mut LocalLab::new(lab.clone(), programs).expect("the lab is up"));
    })
}
