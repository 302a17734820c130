//! `mesh: istio` with the real components (`meshmeter lab install`), in a lab of this test's own, as root.
//! Each mode is brought up, receives requests and must prove its path; anything that breaks the path or a
//! component must show.
//!
//! Cases share a control plane, as the trials of a run do. This program is also the service (`serve`) and the
//! generator (`load`) of its deployments. It has no harness, since only a single-threaded program can enter a
//! lab.

#![allow(clippy::print_stdout)]

mod ambient;
#[path = "../arrangement/cases.rs"]
mod cases;
#[path = "../arrangement/death.rs"]
mod death;
mod deaths;
mod extra;
mod fleets;
mod holdings;
mod many_objects;
mod modes;
#[path = "../arrangement/observation.rs"]
mod observation;
mod population;
mod prepared;
#[allow(dead_code, reason = "shared with the test of arrangements, which burns CPU too")]
#[path = "../arrangement/programs.rs"]
mod programs;
mod remains;
mod specs;
#[path = "../arrangement/trial.rs"]
mod trial;
mod with_ztunnel;

use self::cases::{Cases, Demand};
use components::Overrides;
use lab::environment::{LocalLab, Programs};
use lab::{Entered, Lab};
use std::process::ExitCode;

/// A case receives the lab, and the environment that all cases share.
type Case = fn(&Lab, &LocalLab);

/// The longest case first, since it ends last.
const EVERYWHERE: &[(&str, Case)] = &[
    ("dead_control_plane_is_reported_and_replaced", deaths::dead_control_plane_is_reported_and_replaced),
    ("istiods_are_killed_added_and_removed", fleets::istiods_are_killed_added_and_removed),
    ("mode_none_uses_service_address", modes::mode_none_uses_service_address),
    ("sidecars_prove_mutual_tls", modes::sidecars_prove_mutual_tls),
    ("without_mutual_tls_there_are_no_handshakes", modes::without_mutual_tls_there_are_no_handshakes),
    ("traffic_bypassing_server_proxy_is_detected", modes::traffic_bypassing_server_proxy_is_detected),
    ("traffic_bypassing_client_proxy_is_refused", modes::traffic_bypassing_client_proxy_is_refused),
    ("sidecar_configuration_matches_mesh", holdings::sidecar_configuration_matches_mesh),
    ("trial_leaves_nothing_behind", remains::trial_leaves_nothing_behind),
    (
        "two_hundred_services_are_written_and_removed",
        many_objects::two_hundred_services_are_written_and_removed,
    ),
    (
        "a_population_is_written_taken_over_and_removed",
        population::a_population_is_written_taken_over_and_removed,
    ),
    ("keys_are_private", remains::keys_are_private),
    ("extra_objects_elsewhere_are_removed_with_trial", extra::extra_objects_elsewhere_are_removed_with_trial),
    ("extra_objects_cannot_replace_existing_ones", extra::extra_objects_cannot_replace_existing_ones),
    ("dead_proxy_is_reported_with_log", deaths::dead_proxy_is_reported_with_log),
    ("ambient_modes_without_ztunnel_report_it", ambient::ambient_modes_without_ztunnel_report_it),
];

const WITH_ZTUNNEL: &[(&str, Case)] = &[
    (
        "a_shared_ztunnel_proves_mutual_tls_on_both_sides",
        ambient::a_shared_ztunnel_proves_mutual_tls_on_both_sides,
    ),
    ("dedicated_ztunnels_prove_mutual_tls", ambient::dedicated_ztunnels_prove_mutual_tls),
    ("waypoint_reads_requests_between_ztunnels", ambient::waypoint_reads_requests_between_ztunnels),
    ("ztunnel_configuration_matches_mesh", holdings::ztunnel_configuration_matches_mesh),
    (
        "calls_across_the_border_pass_one_ztunnel_in_plaintext",
        ambient::calls_across_the_border_pass_one_ztunnel_in_plaintext,
    ),
    ("traffic_bypassing_client_ztunnel_is_detected", ambient::traffic_bypassing_client_ztunnel_is_detected),
    ("traffic_bypassing_both_ztunnels_is_detected", ambient::traffic_bypassing_both_sides_is_detected),
    ("ambient_trial_leaves_nothing_behind", ambient::ambient_trial_leaves_nothing_behind),
    ("dead_ztunnel_is_reported_with_log", ambient::dead_ztunnel_is_reported_with_log),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.get(1).map(String::as_str) {
        Some("serve") => return programs::serve(&arguments),
        Some("load") => return programs::load(&arguments),
        Some("fleet") => return fleets::fleet(&arguments),
        _ => {}
    }
    let mut cases = Cases::new(EVERYWHERE);
    cases.add(WITH_ZTUNNEL, with_ztunnel::missing().as_deref());
    if !Cases::<Case>::is_worker() {
        return cases.run(Demand::Cpu);
    }
    match lab::enter("test of mesh istio").expect("this test needs a lab: `meshmeter doctor`") {
        Entered::Outside(status) => status,
        Entered::Inside(lab) => work(&lab, &cases),
    }
}

fn work(lab: &Lab, cases: &Cases<Case>) -> ExitCode {
    let meshmeter = std::env::current_exe().expect("a running program has a path");
    let programs = Programs { meshmeter, overrides: Overrides::default() };
    let mut local_lab = LocalLab::new(lab.clone(), programs).expect("the lab is up");
    let shared_logs = lab.private_dir().join("control-plane-logs");
    local_lab.control_plane_logs.clone_from(&shared_logs);
    cases.work(Some(&shared_logs), |case| case(lab, &local_lab))
}
