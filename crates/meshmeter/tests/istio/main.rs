//! `mesh: istio` with the real components, the real service and the real generator, in a lab
//! of this test's own, as root: each is brought up, gets requests and must prove its path; what leads traffic another
//! way, or a component that dies, must show.
//!
//! All cases share one control plane, as the trials of a run do. No harness: a lab is entered by a program of one thread.

#![allow(clippy::print_stdout)]

mod egress;
mod ingress;
mod trial;

use lab::arrangement::{LocalLab, Programs};
use lab::components::Overrides;
use lab::{Entered, Lab};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

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
];

fn main() -> ExitCode {
    let only = std::env::args().nth(1).filter(|name| !name.starts_with('-'));
    match lab::enter("test of mesh istio").expect("this test needs a lab: `meshmeter doctor`") {
        Entered::Outside(status) => status,
        Entered::Inside(lab) => run(&lab, only.as_deref()),
    }
}

/// Runs the cases whose name holds `only`.
fn run(lab: &Lab, only: Option<&str>) -> ExitCode {
    let meshmeter = PathBuf::from(env!("CARGO_BIN_EXE_meshmeter"));
    let programs = Programs { meshmeter, overrides: Overrides::default() };
    let place = LocalLab::new(lab.clone(), programs).expect("the lab is up");
    let mut failed = Vec::new();
    for (name, case) in CASES.iter().filter(|(name, _)| only.is_none_or(|only| name.contains(only))) {
        let begun = Instant::now();
        let passed = catch_unwind(AssertUnwindSafe(|| case(&place))).is_ok();
        let took = begun.elapsed().as_secs_f64();
        println!("test {name} ... {} ({took:.1} s)", if passed { "ok" } else { "FAILED" });
        if !passed {
            failed.push(*name);
        }
    }
    println!("{} failed {failed:?}", failed.len());
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
