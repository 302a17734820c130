//! `mesh: istio` with the real components, the real service and the real generator, in a lab
//! of this test's own, as root: each is brought up, gets requests and must prove its path; what leads traffic another
//! way, or a component that dies, must show.
//!
//! Cases share a control plane, as the trials of a run do. No harness: a lab is entered by a program of one thread.

#![allow(clippy::print_stdout)]

mod ambient;
#[path = "../../../lab/tests/arrangement/cases.rs"]
mod cases;
mod counted;
#[path = "../../../lab/tests/arrangement/death.rs"]
mod death;
mod egress;
mod entries;
mod estate;
mod exchange;
mod extensions;
mod extra;
mod fleet_changes;
mod graph;
mod ingress;
mod kept;
mod mesh_size;
mod observability;
#[path = "../../../lab/tests/arrangement/observation.rs"]
mod observation;
mod policies;
mod proxies;
mod raw_tcp;
mod scenarios;
mod telemetry;
mod together;
mod traffic;
mod trial;
mod wasm;
#[path = "../../../lab/tests/istio/with_ztunnel.rs"]
mod with_ztunnel;

use self::cases::{Cases, Demand};
use components::Overrides;
use lab::environment::{LocalLab, Programs};
use lab::{Entered, Lab};
use std::path::PathBuf;
use std::process::ExitCode;

type Case = fn(&LocalLab);

const EVERYWHERE: &[(&str, Case)] = &[
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
    (
        "istios_api_describes_domains_and_nothing_else_is_served",
        estate::istios_api_describes_domains_and_nothing_else_is_served,
    ),
    (
        "the_gateway_api_describes_domains_and_nothing_else_is_served",
        estate::the_gateway_api_describes_domains_and_nothing_else_is_served,
    ),
    (
        "static_files_describe_domains_and_nothing_else_is_served",
        estate::static_files_describe_domains_and_nothing_else_is_served,
    ),
    ("tls_is_what_the_scenario_says", estate::tls_is_what_the_scenario_says),
    ("the_direct_scenario_has_no_gateway", estate::the_direct_scenario_has_no_gateway),
    ("every_request_has_its_spans", observability::every_request_has_its_spans),
    ("a_share_of_requests_is_traced", observability::a_share_of_requests_is_traced),
    ("spans_that_do_not_arrive_are_missed", observability::spans_that_do_not_arrive_are_missed),
    ("rules_by_path_refuse_other_paths", policies::rules_by_path_refuse_other_paths),
    ("more_rules_than_fit_into_a_policy_are_asked", policies::more_rules_than_fit_into_a_policy_are_asked),
    ("rules_by_identity_refuse_other_callers", policies::rules_by_identity_refuse_other_callers),
    ("tokens_are_verified", policies::tokens_are_verified),
    ("a_trial_in_which_all_is_refused_says_so", policies::a_trial_in_which_all_is_refused_says_so),
    ("the_built_in_script_sets_its_header", extensions::the_built_in_script_sets_its_header),
    ("every_proxy_runs_a_script", extensions::every_proxy_runs_a_script),
    ("a_script_that_makes_no_sense_is_refused", extensions::a_script_that_makes_no_sense_is_refused),
    ("a_script_that_fails_on_requests_shows", extensions::a_script_that_fails_on_requests_shows),
    ("every_proxy_runs_a_module", extensions::every_proxy_runs_a_module),
    ("what_is_no_module_is_refused", extensions::what_is_no_module_is_refused),
    ("modules_that_no_proxy_can_run_are_refused", extensions::modules_that_no_proxy_can_run_are_refused),
    ("mutual_tls_is_what_the_switch_says", proxies::mutual_tls_is_what_the_switch_says),
    ("access_logs_have_a_line_for_each_request", proxies::access_logs_have_a_line_for_each_request),
    ("proxies_have_so_many_workers", proxies::proxies_have_so_many_workers),
    ("a_gateway_has_workers_of_its_own", proxies::a_gateway_has_workers_of_its_own),
    ("further_objects_take_effect", extra::further_objects_take_effect),
    ("what_the_api_refuses_is_named", extra::what_the_api_refuses_is_named),
    ("what_a_proxy_refuses_is_named", extra::what_a_proxy_refuses_is_named),
    ("faults_are_in_force_from_the_first_request", extra::faults_are_in_force_from_the_first_request),
    ("a_kind_is_brought_with_its_objects", extra::a_kind_is_brought_with_its_objects),
    ("what_refuses_all_objects_goes_with_its_trial", extra::what_refuses_all_objects_goes_with_its_trial),
    ("none_leads_raw_tcp_to_the_service", raw_tcp::none_leads_raw_tcp_to_the_service),
    ("sidecars_carry_raw_tcp", raw_tcp::sidecars_carry_raw_tcp),
    ("raw_tcp_past_the_server_proxy_shows", raw_tcp::raw_tcp_past_the_server_proxy_shows),
    (
        "raw_tcp_past_the_client_proxy_is_refused_or_shows",
        raw_tcp::raw_tcp_past_the_client_proxy_is_refused_or_shows,
    ),
    (
        "callers_of_raw_tcp_are_known_by_their_identity",
        raw_tcp::callers_of_raw_tcp_are_known_by_their_identity,
    ),
    ("ingress_leads_raw_tcp", raw_tcp::ingress_leads_raw_tcp),
    ("what_fails_is_tried_again", traffic::what_fails_is_tried_again),
    ("what_fails_is_not_tried_again_unasked", traffic::what_fails_is_not_tried_again_unasked),
    ("a_route_gives_up_on_time", traffic::a_route_gives_up_on_time),
    ("every_hop_speaks_the_protocol", traffic::every_hop_speaks_the_protocol),
    (
        "proxies_speak_http2_with_each_other_where_that_is_asked",
        traffic::proxies_speak_http2_with_each_other_where_that_is_asked,
    ),
    ("another_version_between_proxies_shows", traffic::another_version_between_proxies_shows),
    (
        "a_sidecar_holds_the_whole_mesh_unless_it_is_scoped",
        mesh_size::a_sidecar_holds_the_whole_mesh_unless_it_is_scoped,
    ),
    ("a_gateway_holds_the_whole_mesh", mesh_size::a_gateway_holds_the_whole_mesh),
    ("every_edge_of_a_graph_is_proven", graph::every_edge_of_a_graph_is_proven),
    (
        "one_service_past_its_sidecar_is_named_with_its_edge",
        graph::one_service_past_its_sidecar_is_named_with_its_edge,
    ),
    (
        "one_service_past_its_sidecar_to_a_database_is_named_with_its_edge",
        graph::one_service_past_its_sidecar_to_a_database_is_named_with_its_edge,
    ),
    (
        "topologies_that_cannot_work_are_refused_by_name",
        graph::topologies_that_cannot_work_are_refused_by_name,
    ),
    ("connections_of_services_outlive_a_trial", graph::connections_of_services_outlive_a_trial),
    ("calls_of_a_request_are_traced_together", graph::calls_of_a_request_are_traced_together),
    ("all_switches_go_together", together::all_switches_go_together),
    ("graphs_run_without_a_control_plane", entries::graphs_run_without_a_control_plane),
    ("each_ingress_leads_into_a_graph", entries::each_ingress_leads_into_a_graph),
    ("every_filter_acts_at_a_static_gateway", scenarios::every_filter_acts_at_a_static_gateway),
    ("every_filter_acts_at_the_ingress_gateway", scenarios::every_filter_acts_at_the_ingress_gateway),
    ("filters_read_http2", scenarios::filters_read_http2),
    (
        "every_change_arrives_at_every_kind_of_proxy",
        fleet_changes::every_change_arrives_at_every_kind_of_proxy,
    ),
    (
        "istiod_sends_what_the_proxy_and_the_switch_say",
        telemetry::istiod_sends_what_the_proxy_and_the_switch_say,
    ),
    ("telemetry_is_refused_without_its_filters", telemetry::telemetry_is_refused_without_its_filters),
];

const WITH_ZTUNNEL: &[(&str, Case)] = &[
    ("rules_by_path_in_a_waypoint", policies::rules_by_path_in_a_waypoint),
    ("rules_by_identity_in_a_waypoint", policies::rules_by_identity_in_a_waypoint),
    ("rules_by_identity_in_a_ztunnel", policies::rules_by_identity_in_a_ztunnel),
    ("tokens_are_verified_by_a_waypoint", policies::tokens_are_verified_by_a_waypoint),
    ("a_waypoint_runs_a_script", extensions::a_waypoint_runs_a_script),
    (
        "a_waypoint_refuses_a_script_that_makes_no_sense",
        extensions::a_waypoint_refuses_a_script_that_makes_no_sense,
    ),
    ("a_waypoint_runs_a_module", extensions::a_waypoint_runs_a_module),
    (
        "a_waypoint_refuses_a_module_that_it_cannot_run",
        extensions::a_waypoint_refuses_a_module_that_it_cannot_run,
    ),
    (
        "a_waypoints_access_log_has_a_line_for_each_request",
        proxies::a_waypoints_access_log_has_a_line_for_each_request,
    ),
    (
        "a_ztunnels_access_log_has_a_line_for_each_connection",
        proxies::a_ztunnels_access_log_has_a_line_for_each_connection,
    ),
    ("a_waypoint_has_so_many_workers", proxies::a_waypoint_has_so_many_workers),
    ("ztunnels_carry_whatever_is_spoken", ambient::ztunnels_carry_whatever_is_spoken),
    ("waypoints_take_whatever_is_spoken", ambient::waypoints_take_whatever_is_spoken),
    ("raw_tcp_past_the_clients_ztunnel_shows", ambient::raw_tcp_past_the_clients_ztunnel_shows),
    ("ztunnels_know_callers_of_raw_tcp", ambient::ztunnels_know_callers_of_raw_tcp),
    ("a_ztunnel_has_policies_that_are_brought", extra::a_ztunnel_has_policies_that_are_brought),
    ("a_waypoint_sends_spans", observability::a_waypoint_sends_spans),
    ("a_waypoint_tries_again", traffic::a_waypoint_tries_again),
    ("a_waypoint_gives_up_on_time", traffic::a_waypoint_gives_up_on_time),
    ("a_waypoint_speaks_the_protocol", traffic::a_waypoint_speaks_the_protocol),
    (
        "a_ztunnel_holds_the_whole_mesh_and_a_waypoint_does_not",
        mesh_size::a_ztunnel_holds_the_whole_mesh_and_a_waypoint_does_not,
    ),
    ("every_edge_of_a_graph_is_proven_in_ambient", graph::every_edge_of_a_graph_is_proven_in_ambient),
    (
        "one_service_past_its_ztunnel_is_named_with_its_edge",
        graph::one_service_past_its_ztunnel_is_named_with_its_edge,
    ),
    (
        "connections_of_services_through_ztunnels_outlive_a_trial",
        graph::connections_of_services_through_ztunnels_outlive_a_trial,
    ),
    ("all_switches_go_together_in_a_waypoint", together::all_switches_go_together_in_a_waypoint),
];

fn main() -> ExitCode {
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
    let meshmeter = PathBuf::from(env!("CARGO_BIN_EXE_meshmeter"));
    let programs = Programs { meshmeter, overrides: Overrides::default() };
    let mut place = LocalLab::new(lab.clone(), programs).expect("the lab is up");
    let shared_logs = lab.private_dir().join("control-plane-logs");
    place.keep_control_plane_logs_in(shared_logs.clone());
    cases.work(Some(&shared_logs), |case| case(&place))
}
