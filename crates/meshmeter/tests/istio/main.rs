//! `mesh: istio` with the real components, the real service and the real generator, in a lab
//! of this test's own, as root: each is brought up, gets requests and must prove its path; what leads traffic another
//! way, or a component that dies, must show.
//!
//! All cases share one control plane, as the trials of a run do. No harness: a lab is entered by a program of one thread.

#![allow(clippy::print_stdout)]

#[path = "../../../lab/tests/arrangement/cases.rs"]
mod cases;
#[path = "../../../lab/tests/arrangement/death.rs"]
mod death;
mod egress;
mod ingress;
mod kept;
mod observability;
mod trial;

use self::cases::Cases;
use lab::arrangement::{LocalLab, Programs};
use lab::components::Overrides;
use lab::{Entered, Lab};
use std::path::PathBuf;
use std::process::ExitCode;

type Case = fn(&LocalLab);

const CASES: &[(&str, Case)] = &[
    ("past_the_sidecar_it_carries_nothing", egress::past_the_sidecar_it_carries_nothing),
    ("every_way_out_proves_its_path", egress::every_way_out_proves_its_path),
    ("whatever_is_spoken_goes_out", egress::whatever_is_spoken_goes_out),
    (
        "without_its_rule_the_gateway_is_not_on_the_path",
        egress::without_its_rule_the_gateway_is_not_on_the_path,
    ),
    ("a_name_outside_the_table_leads_nowhere", egress::a_name_outside_the_table_leads_nowhere),
    ("what_dies_is_named_with_its_log", egress::what_dies_is_named_with_its_log),
    ("ingress_proves_tls_on_both_sides", ingress::ingress_proves_tls_on_both_sides),
    ("ingress_without_tls_has_no_handshakes", ingress::ingress_without_tls_has_no_handshakes),
    ("ingress_refuses_clients_without_certificate", ingress::ingress_refuses_clients_without_certificate),
    ("every_request_has_its_spans", observability::every_request_has_its_spans),
    ("a_share_of_requests_is_traced", observability::a_share_of_requests_is_traced),
    ("spans_that_do_not_arrive_are_missed", observability::spans_that_do_not_arrive_are_missed),
];

fn main() -> ExitCode {
    match lab::enter("test of mesh istio").expect("this test needs a lab: `meshmeter doctor`") {
        Entered::Outside(status) => status,
        Entered::Inside(lab) => run(&lab),
    }
}

fn run(lab: &Lab) -> ExitCode {
    let meshmeter = PathBuf::from(env!("CARGO_BIN_EXE_meshmeter"));
    let programs = Programs { meshmeter, overrides: Overrides::default() };
    let place = LocalLab::new(lab.clone(), programs).expect("the lab is up");
    let mut cases = Cases::wanted();
    for (name, case) in CASES {
        cases.run(name, || case(&place));
    }
    cases.end()
}
