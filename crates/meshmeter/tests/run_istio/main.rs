//! `meshmeter run` of experiments with `mesh: istio`, as users meet it: the built command, the real components, as root.
//! Components are killed and held still, runs are interrupted and killed, traffic is led past the proxies; each time what
//! is recorded, what is said and what is left must be right.
//!
//! No harness: each case runs the command, with a control plane of its own, and most of its time it waits.
//! `cargo test -p meshmeter --test run_istio NAME` runs those whose name holds NAME.

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

/// The longest first: they end last.
const EVERYWHERE: &[(&str, fn())] = &[
    ("whatever_dies_or_stands_still_is_named", deaths::whatever_dies_or_stands_still_is_named),
    ("whatever_hangs_is_named", deaths::whatever_hangs_is_named),
    ("five_runs_in_a_row_leave_nothing", residue::five_runs_in_a_row_leave_nothing),
    ("a_gateway_that_dies_or_stands_still_is_named", deaths::a_gateway_that_dies_or_stands_still_is_named),
    ("what_hangs_in_a_long_trial_ends_it", deaths::what_hangs_in_a_long_trial_ends_it),
    ("what_dies_in_a_graph_is_named", deaths::what_dies_in_a_graph_is_named),
    (
        "a_control_plane_that_dies_while_a_mode_is_brought_up_is_named",
        bringing_up::a_control_plane_that_dies_while_a_mode_is_brought_up_is_named,
    ),
    (
        "a_control_plane_that_dies_between_two_trials_is_replaced",
        bringing_up::a_control_plane_that_dies_between_two_trials_is_replaced,
    ),
    (
        "what_kill_9_leaves_is_taken_down_and_a_lab_that_lives_is_not",
        residue::what_kill_9_leaves_is_taken_down_and_a_lab_that_lives_is_not,
    ),
    ("one_signal_ends_a_run_with_what_it_has", residue::one_signal_ends_a_run_with_what_it_has),
    ("a_second_signal_ends_a_run_and_leaves_nothing", residue::a_second_signal_ends_a_run_and_leaves_nothing),
    ("a_signal_while_it_reports_changes_nothing", residue::a_signal_while_it_reports_changes_nothing),
    ("rules_that_are_removed_in_the_window_show", tampering::rules_that_are_removed_in_the_window_show),
    ("a_proxy_that_answers_by_itself_is_no_proof", tampering::a_proxy_that_answers_by_itself_is_no_proof),
    (
        "a_fleet_is_measured_against_an_istiod_of_its_own",
        fleets::a_fleet_is_measured_against_an_istiod_of_its_own,
    ),
    ("a_wrong_program_is_named", refusals::a_wrong_program_is_named),
    ("a_program_that_is_too_old_is_named", refusals::a_program_that_is_too_old_is_named),
    ("a_database_that_does_not_come_up_is_named", refusals::a_database_that_does_not_come_up_is_named),
    ("a_program_that_hangs_is_named", refusals::a_program_that_hangs_is_named),
    ("what_is_missing_is_named", refusals::what_is_missing_is_named),
    ("a_full_disk_is_named", refusals::a_full_disk_is_named),
    ("rights_that_are_missing_are_named", refusals::rights_that_are_missing_are_named),
];

const WITH_ZTUNNEL: &[(&str, fn())] = &[
    ("a_ztunnel_that_dies_or_stands_still_is_named", deaths::a_ztunnel_that_dies_or_stands_still_is_named),
    (
        "rules_of_ambient_that_are_removed_in_the_window_show",
        tampering::rules_of_ambient_that_are_removed_in_the_window_show,
    ),
];

fn main() -> ExitCode {
    let mut cases = Cases::of(EVERYWHERE);
    cases.add(WITH_ZTUNNEL, with_ztunnel::missing().as_deref());
    if Cases::<fn()>::is_worker() { cases.work(None, |case| case()) } else { cases.run(Demand::Time) }
}
