//! `meshmeter run` of experiments with `mesh: istio`: the built command and the real components, as root.
//! Components are killed and stopped, runs are interrupted and killed, and traffic bypasses the proxies; each
//! time the records, the output and the leftovers must be right.
//!
//! Without harness: each case runs the command, with its own control plane, and mostly waits.
//! `cargo test -p meshmeter --test run_istio NAME` runs the cases whose names contain NAME.

#![allow(clippy::print_stdout)]

mod bringing_up;
#[path = "../../../lab/tests/arrangement/cases.rs"]
mod cases;
mod deaths;
mod fleets;
mod process;
mod refusals;
mod residue;
mod run;
mod tampering;
#[path = "../../../lab/tests/istio/with_ztunnel.rs"]
mod with_ztunnel;

use self::cases::{Cases, Demand};
use std::process::ExitCode;

/// Longest first, since they end last.
const EVERYWHERE: &[(&str, fn())] = &[
    ("components_that_die_or_stop_are_named", deaths::components_that_die_or_stop_are_named),
    ("components_that_hang_are_named", deaths::components_that_hang_are_named),
    (
        "five_runs_in_a_row_leave_nothing_and_a_late_signal_changes_nothing",
        residue::five_runs_in_a_row_leave_nothing_and_a_late_signal_changes_nothing,
    ),
    ("gateway_that_dies_or_stops_is_named", deaths::gateway_that_dies_or_stops_is_named),
    ("component_that_hangs_in_a_long_trial_ends_it", deaths::component_that_hangs_in_a_long_trial_ends_it),
    ("component_that_dies_in_a_graph_is_named", deaths::component_that_dies_in_a_graph_is_named),
    (
        "a_control_plane_that_dies_while_a_mode_is_brought_up_is_named",
        bringing_up::a_control_plane_that_dies_while_a_mode_is_brought_up_is_named,
    ),
    (
        "a_control_plane_that_dies_between_two_trials_is_replaced",
        bringing_up::a_control_plane_that_dies_between_two_trials_is_replaced,
    ),
    (
        "leftovers_of_kill_9_are_taken_down_and_a_running_lab_is_not",
        residue::leftovers_of_kill_9_are_taken_down_and_a_running_lab_is_not,
    ),
    ("one_signal_ends_a_run_with_results_so_far", residue::one_signal_ends_a_run_with_results_so_far),
    ("a_second_signal_ends_a_run_and_leaves_nothing", residue::a_second_signal_ends_a_run_and_leaves_nothing),
    ("rules_removed_in_the_window_are_detected", tampering::rules_removed_in_the_window_are_detected),
    ("proxy_that_responds_by_itself_is_not_proof", tampering::proxy_that_responds_by_itself_is_not_proof),
    ("fleet_is_measured_against_its_own_istiod", fleets::fleet_is_measured_against_its_own_istiod),
    ("a_wrong_program_is_named", refusals::a_wrong_program_is_named),
    ("a_program_that_is_too_old_is_named", refusals::a_program_that_is_too_old_is_named),
    ("a_database_that_does_not_come_up_is_named", refusals::a_database_that_does_not_come_up_is_named),
    ("a_program_that_hangs_is_named", refusals::a_program_that_hangs_is_named),
    ("missing_prerequisites_are_named", refusals::missing_prerequisites_are_named),
    ("a_full_disk_is_named", refusals::a_full_disk_is_named),
    ("missing_rights_are_named", refusals::missing_rights_are_named),
];

const WITH_ZTUNNEL: &[(&str, fn())] = &[
    ("ztunnel_that_dies_or_stops_is_named", deaths::ztunnel_that_dies_or_stops_is_named),
    (
        "ambient_rules_removed_in_the_window_are_detected",
        tampering::ambient_rules_removed_in_the_window_are_detected,
    ),
];

fn main() -> ExitCode {
    let mut cases = Cases::new(EVERYWHERE);
    cases.add(WITH_ZTUNNEL, with_ztunnel::missing().as_deref());
    if Cases::<fn()>::is_worker() { cases.work(None, |case| case()) } else { cases.run(Demand::Time) }
}
