//! `mesh: istio` with the real components, service and generator, as root in a lab of this test. Every
//! deployment is brought up, gets requests and must prove its path. Traffic that takes another path, and
//! components that die, must be detected.
//!
//! Cases share a control plane, as the trials of a run do. Without harness: only a single-threaded program
//! can enter a lab.

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
#[path = "../../../lab/tests/istio/specs.rs"]
mod specs;
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
    ("bypassed_sidecar_carries_nothing", egress::bypassed_sidecar_carries_nothing),
    ("every_egress_path_is_proven", egress::every_egress_path_is_proven),
    ("every_protocol_passes_egress", egress::every_protocol_passes_egress),
    ("gateway_without_its_rule_is_not_on_the_path", egress::gateway_without_its_rule_is_not_on_the_path),
    ("sni_outside_the_table_is_not_routed", egress::sni_outside_the_table_is_not_routed),
    (
        "egress_component_that_dies_is_named_with_its_log",
        egress::egress_component_that_dies_is_named_with_its_log,
    ),
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
    ("tls_matches_the_scenario", estate::tls_matches_the_scenario),
    ("the_direct_scenario_has_no_gateway", estate::the_direct_scenario_has_no_gateway),
    ("every_request_has_its_spans", observability::every_request_has_its_spans),
    ("a_share_of_requests_is_traced", observability::a_share_of_requests_is_traced),
    ("lost_spans_are_detected", observability::lost_spans_are_detected),
    ("rules_by_path_refuse_other_paths", policies::rules_by_path_refuse_other_paths),
    ("rules_beyond_one_policy_are_checked", policies::rules_beyond_one_policy_are_checked),
    ("rules_by_identity_refuse_other_callers", policies::rules_by_identity_refuse_other_callers),
    ("tokens_are_verified", policies::tokens_are_verified),
    ("trial_with_all_requests_rejected_is_invalid", policies::trial_with_all_requests_rejected_is_invalid),
    ("the_built_in_script_sets_its_header", extensions::the_built_in_script_sets_its_header),
    ("every_proxy_runs_a_script", extensions::every_proxy_runs_a_script),
    ("invalid_script_is_rejected", extensions::invalid_script_is_rejected),
    ("script_that_fails_on_requests_is_detected", extensions::script_that_fails_on_requests_is_detected),
    ("every_proxy_runs_a_module", extensions::every_proxy_runs_a_module),
    ("file_that_is_not_a_module_is_rejected", extensions::file_that_is_not_a_module_is_rejected),
    (
        "modules_that_proxies_cannot_run_are_rejected",
        extensions::modules_that_proxies_cannot_run_are_rejected,
    ),
    ("mutual_tls_matches_the_setting", proxies::mutual_tls_matches_the_setting),
    ("workload_keys_match_the_setting", proxies::workload_keys_match_the_setting),
    (
        "access_logs_have_a_line_per_request_and_workers_match_the_setting",
        proxies::access_logs_have_a_line_per_request_and_workers_match_the_setting,
    ),
    ("gateway_has_its_own_number_of_workers", proxies::gateway_has_its_own_number_of_workers),
    ("further_objects_take_effect", extra::further_objects_take_effect),
    ("object_rejected_by_api_is_named", extra::object_rejected_by_api_is_named),
    ("object_rejected_by_proxy_is_named", extra::object_rejected_by_proxy_is_named),
    ("faults_apply_from_the_first_request", extra::faults_apply_from_the_first_request),
    ("custom_kind_is_created_with_its_objects", extra::custom_kind_is_created_with_its_objects),
    (
        "webhook_that_rejects_all_objects_is_removed_with_its_trial",
        extra::webhook_that_rejects_all_objects_is_removed_with_its_trial,
    ),
    ("mode_none_routes_raw_tcp_to_the_service", raw_tcp::mode_none_routes_raw_tcp_to_the_service),
    ("sidecars_carry_raw_tcp", raw_tcp::sidecars_carry_raw_tcp),
    (
        "connection_per_request_is_a_handshake_per_request",
        raw_tcp::connection_per_request_is_a_handshake_per_request,
    ),
    ("raw_tcp_bypassing_server_proxy_is_detected", raw_tcp::raw_tcp_bypassing_server_proxy_is_detected),
    (
        "raw_tcp_bypassing_client_proxy_is_rejected_or_detected",
        raw_tcp::raw_tcp_bypassing_client_proxy_is_rejected_or_detected,
    ),
    (
        "callers_of_raw_tcp_are_identified_by_certificate",
        raw_tcp::callers_of_raw_tcp_are_identified_by_certificate,
    ),
    ("ingress_routes_raw_tcp", raw_tcp::ingress_routes_raw_tcp),
    ("failed_requests_are_retried", traffic::failed_requests_are_retried),
    ("failed_requests_are_not_retried_by_default", traffic::failed_requests_are_not_retried_by_default),
    ("route_times_out", traffic::route_times_out),
    ("every_hop_speaks_the_protocol", traffic::every_hop_speaks_the_protocol),
    (
        "proxies_use_http2_between_each_other_if_configured",
        traffic::proxies_use_http2_between_each_other_if_configured,
    ),
    (
        "other_http_version_between_proxies_is_detected",
        traffic::other_http_version_between_proxies_is_detected,
    ),
    ("other_services_get_other_endpoints", mesh_size::other_services_get_other_endpoints),
    (
        "a_sidecar_holds_the_whole_mesh_unless_it_is_scoped",
        mesh_size::a_sidecar_holds_the_whole_mesh_unless_it_is_scoped,
    ),
    ("a_gateway_holds_the_whole_mesh", mesh_size::a_gateway_holds_the_whole_mesh),
    ("every_edge_of_a_graph_is_proven", graph::every_edge_of_a_graph_is_proven),
    (
        "service_bypassing_its_sidecar_is_named_with_its_edge",
        graph::service_bypassing_its_sidecar_is_named_with_its_edge,
    ),
    (
        "service_bypassing_its_sidecar_to_database_is_named_with_its_edge",
        graph::service_bypassing_its_sidecar_to_database_is_named_with_its_edge,
    ),
    ("unsupported_topologies_are_rejected_by_name", graph::unsupported_topologies_are_rejected_by_name),
    ("connections_of_services_outlive_a_trial", graph::connections_of_services_outlive_a_trial),
    ("calls_of_a_request_are_traced_together", graph::calls_of_a_request_are_traced_together),
    ("all_settings_work_together", together::all_settings_work_together),
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
        "gateways_receive_a_route_per_virtual_service",
        fleet_changes::gateways_receive_a_route_per_virtual_service,
    ),
    ("istiod_sends_filters_by_proxy_and_setting", telemetry::istiod_sends_filters_by_proxy_and_setting),
    ("telemetry_without_its_filters_is_rejected", telemetry::telemetry_without_its_filters_is_rejected),
];

const WITH_ZTUNNEL: &[(&str, Case)] = &[
    ("rules_by_path_in_a_waypoint", policies::rules_by_path_in_a_waypoint),
    ("rules_by_identity_in_a_waypoint", policies::rules_by_identity_in_a_waypoint),
    ("rules_by_identity_in_a_ztunnel", policies::rules_by_identity_in_a_ztunnel),
    ("tokens_are_verified_by_a_waypoint", policies::tokens_are_verified_by_a_waypoint),
    ("a_waypoint_runs_a_script", extensions::a_waypoint_runs_a_script),
    ("waypoint_rejects_invalid_script", extensions::waypoint_rejects_invalid_script),
    ("a_waypoint_runs_a_module", extensions::a_waypoint_runs_a_module),
    ("waypoint_rejects_module_that_it_cannot_run", extensions::waypoint_rejects_module_that_it_cannot_run),
    (
        "access_logs_and_workers_of_waypoints_match_the_setting",
        proxies::access_logs_and_workers_of_waypoints_match_the_setting,
    ),
    ("ztunnel_access_log_has_a_line_per_connection", proxies::ztunnel_access_log_has_a_line_per_connection),
    ("ztunnels_carry_every_protocol", ambient::ztunnels_carry_every_protocol),
    ("waypoints_accept_every_protocol", ambient::waypoints_accept_every_protocol),
    ("raw_tcp_bypassing_client_ztunnel_is_detected", ambient::raw_tcp_bypassing_client_ztunnel_is_detected),
    ("ztunnels_know_callers_of_raw_tcp", ambient::ztunnels_know_callers_of_raw_tcp),
    ("ztunnel_has_policies_of_the_experiment", extra::ztunnel_has_policies_of_the_experiment),
    ("a_waypoint_sends_spans", observability::a_waypoint_sends_spans),
    ("waypoint_retries_failed_requests", traffic::waypoint_retries_failed_requests),
    ("waypoint_route_times_out", traffic::waypoint_route_times_out),
    ("a_waypoint_speaks_the_protocol", traffic::a_waypoint_speaks_the_protocol),
    (
        "a_ztunnel_holds_the_whole_mesh_and_a_waypoint_does_not",
        mesh_size::a_ztunnel_holds_the_whole_mesh_and_a_waypoint_does_not,
    ),
    ("every_edge_of_a_graph_is_proven_in_ambient", graph::every_edge_of_a_graph_is_proven_in_ambient),
    (
        "service_bypassing_its_ztunnel_is_named_with_its_edge",
        graph::service_bypassing_its_ztunnel_is_named_with_its_edge,
    ),
    (
        "connections_of_services_through_ztunnels_outlive_a_trial",
        graph::connections_of_services_through_ztunnels_outlive_a_trial,
    ),
    ("all_settings_work_together_in_a_waypoint", together::all_settings_work_together_in_a_waypoint),
];

fn main() -> ExitCode {
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
    let meshmeter = PathBuf::from(env!("CARGO_BIN_EXE_meshmeter"));
    let programs = Programs { meshmeter, overrides: Overrides::default() };
    let mut local_lab = LocalLab::new(lab.clone(), programs).expect("the lab is up");
    let shared_logs = lab.private_dir().join("control-plane-logs");
    local_lab.control_plane_logs.clone_from(&shared_logs);
    cases.work(Some(&shared_logs), |case| case(&local_lab))
}
