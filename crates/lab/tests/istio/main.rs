//! `mesh: istio` with the real components (`meshmeter lab install`), in a lab of this test's own, as root: each mode is
//! brought up, gets requests and must prove its path; what breaks the path, or a component, must show.
//!
//! Cases share a control plane, as the trials of a run do. This program is also the service (`serve`) and the
//! generator (`load`) of its arrangements. It has no harness, since a lab is entered by a program of one thread.

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
#[path = "../arrangement/trial.rs"]
mod trial;
mod with_ztunnel;

use self::cases::{Cases, Demand};
use components::Overrides;
use lab::environment::{LocalLab, Programs};
use lab::{Entered, Lab};
use std::process::ExitCode;

/// A case gets the lab, and the environment that all cases share.
type Case = fn(&Lab, &LocalLab);

/// The longest first: it ends last.
const EVERYWHERE: &[(&str, Case)] = &[
    ("a_dead_control_plane_is_named_and_replaced", deaths::a_dead_control_plane_is_named_and_replaced),
    ("istiods_are_killed_added_and_removed", fleets::istiods_are_killed_added_and_removed),
    ("none_goes_by_the_address_of_the_service", modes::none_goes_by_the_address_of_the_service),
    ("sidecars_prove_mutual_tls", modes::sidecars_prove_mutual_tls),
    ("without_mutual_tls_there_are_no_handshakes", modes::without_mutual_tls_there_are_no_handshakes),
    ("traffic_past_the_server_proxy_shows", modes::traffic_past_the_server_proxy_shows),
    ("traffic_past_the_client_proxy_is_refused", modes::traffic_past_the_client_proxy_is_refused),
    ("sidecars_hold_what_the_mesh_has", holdings::sidecars_hold_what_the_mesh_has),
    ("nothing_of_a_trial_is_left", remains::nothing_of_a_trial_is_left),
    (
        "two_hundred_services_are_written_and_removed",
        many_objects::two_hundred_services_are_written_and_removed,
    ),
    (
        "a_population_is_written_taken_over_and_removed",
        population::a_population_is_written_taken_over_and_removed,
    ),
    ("keys_are_closed_to_others", remains::keys_are_closed_to_others),
    ("what_extra_makes_elsewhere_goes_with_its_trial", extra::what_extra_makes_elsewhere_goes_with_its_trial),
    ("extra_cannot_take_the_place_of_what_is_there", extra::extra_cannot_take_the_place_of_what_is_there),
    ("a_dead_proxy_is_named_with_its_log", deaths::a_dead_proxy_is_named_with_its_log),
    ("without_ztunnel_the_ambient_modes_say_so", ambient::without_ztunnel_the_ambient_modes_say_so),
];

const WITH_ZTUNNEL: &[(&str, Case)] = &[
    (
        "a_shared_ztunnel_proves_mutual_tls_on_both_sides",
        ambient::a_shared_ztunnel_proves_mutual_tls_on_both_sides,
    ),
    ("a_ztunnel_in_each_pod_proves_mutual_tls", ambient::a_ztunnel_in_each_pod_proves_mutual_tls),
    ("a_waypoint_reads_requests_between_ztunnels", ambient::a_waypoint_reads_requests_between_ztunnels),
    ("a_ztunnel_holds_what_the_mesh_has", holdings::a_ztunnel_holds_what_the_mesh_has),
    ("traffic_past_the_clients_ztunnel_shows", ambient::traffic_past_the_clients_ztunnel_shows),
    ("traffic_past_both_sides_of_ambient_shows", ambient::traffic_past_both_sides_shows),
    ("nothing_of_an_ambient_trial_is_left", ambient::nothing_of_an_ambient_trial_is_left),
    ("a_dead_ztunnel_is_named_with_its_log", ambient::a_dead_ztunnel_is_named_with_its_log),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.get(1).map(String::as_str) {
        Some("serve") => return programs::serve(&arguments),
        Some("load") => return programs::load(&arguments),
        Some("fleet") => return fleets::fleet(&arguments),
        _ => {}
    }
    let mut cases = Cases::of(EVERYWHERE);
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
    let mut place = LocalLab::new(lab.clone(), programs).expect("the lab is up");
    let shared_logs = lab.private_dir().join("control-plane-logs");
    place.keep_control_plane_logs_in(shared_logs.clone());
    cases.work(Some(&shared_logs), |case| case(lab, &place))
}
