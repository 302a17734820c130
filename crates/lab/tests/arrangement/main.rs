//! Whole arrangements with real Envoy processes, in a lab of this test's own: every mode is brought up, gets requests and
//! must prove its path; what breaks the path must show.
//!
//! This program is also the service (`serve`) and the generator (`load`) of its arrangements: see `programs.rs`. It has no
//! harness, since a lab is entered by a program of one thread.

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

/// A case gets the lab, and an environment of its own in it.
type Case = fn(&Lab, &mut LocalLab);

/// The cases, each with a lab's environment to itself.
const CASES: &[(&str, Case)] = &[
    ("every_mode_proves_its_path", modes::every_mode_proves_its_path),
    ("without_mutual_tls_there_are_no_handshakes", modes::without_mutual_tls_there_are_no_handshakes),
    ("another_protocol_than_is_asked_shows", modes::another_protocol_than_is_asked_shows),
    ("a_client_past_its_proxy_is_refused_and_shows", modes::a_client_past_its_proxy_is_refused_and_shows),
    ("traffic_past_both_proxies_shows", modes::traffic_past_both_proxies_shows),
    ("a_proxy_that_dies_is_named_with_its_log", modes::a_proxy_that_dies_is_named_with_its_log),
    ("modes_that_cannot_run_say_why", modes::modes_that_cannot_run_say_why),
    ("secrets_are_the_proxys_alone_and_go_with_it", modes::secrets_are_the_proxys_alone_and_go_with_it),
    ("a_known_burn_is_read_by_both_sources", sampling::a_known_burn_is_read_by_both_sources),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.get(1).map(String::as_str) {
        Some("serve") => return programs::serve(&arguments),
        Some("load") => return programs::load(&arguments),
        Some("burn") => return programs::burn(&arguments),
        _ => {}
    }
    let cases = Cases::of(CASES);
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
