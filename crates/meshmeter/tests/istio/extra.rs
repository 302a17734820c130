//! Additional objects of an experiment.

use crate::cases::LogFolder;
use crate::exchange::{Target, ask};
use crate::extensions::check_refused_by;
use crate::trial::{REQUESTS, bring_up, has_all, refused, run, settings, spec, switched, told, trial};
use experiment::MeshSettings;
use experiment::environment::{DeploymentSpec, EnvironmentError};
use lab::environment::LocalLab;
use results::Mode;
use serde_json::{Value, json};

fn with(mode: Mode, objects: &[Value]) -> DeploymentSpec {
    switched(mode, MeshSettings { extra: Some(has_all(objects)), ..settings() })
}

/// An EnvoyFilter with one patch.
fn envoy_filter(patch: &Value) -> Value {
    json!({
        "apiVersion": "networking.istio.io/v1alpha3",
        "kind": "EnvoyFilter",
        "metadata": {"name": "of-the-test"},
        "spec": {"configPatches": [patch]},
    })
}

/// Inserts a filter with this configuration before the router of every listener in this context.
fn filter_before_router(context: &str, configuration: &Value) -> Value {
    let router = json!({"name": "envoy.filters.http.router"});
    let manager = json!({"name": "envoy.filters.network.http_connection_manager", "subFilter": router});
    envoy_filter(&json!({
        "applyTo": "HTTP_FILTER",
        "match": {"context": context, "listener": {"filterChain": {"filter": manager}}},
        "patch": {
            "operation": "INSERT_BEFORE",
            "value": {"name": "of-the-test", "typed_config": configuration},
        },
    }))
}

fn lua(script: &str) -> Value {
    json!({
        "@type": "type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua",
        "default_source_code": {"inline_string": script},
    })
}

const SETS_A_HEADER: &str =
    "function envoy_on_response(handle)\n  handle:headers():add(\"x-extra\", \"there\")\nend\n";

pub fn further_objects_take_effect(lab: &LocalLab) {
    let one_request_a_connection = json!({
        "apiVersion": "networking.istio.io/v1",
        "kind": "DestinationRule",
        "metadata": {"name": "of-the-test"},
        "spec": {
            "host": "server",
            "trafficPolicy": {"connectionPool": {"http": {"maxRequestsPerConnection": 1}}},
        },
    });
    for (mode, context, proxy) in
        [(Mode::Sidecar, "SIDECAR_INBOUND", "client-proxy"), (Mode::Ingress, "GATEWAY", "ingress-gateway")]
    {
        let filter = filter_before_router(context, &lua(SETS_A_HEADER));
        let spec = with(mode, &[filter, one_request_a_connection.clone()]);
        let logs = LogFolder::create();
        let deployment = bring_up(lab, &spec, logs.path());
        let target = Target::of_client(lab, &deployment);
        let answer = target.get(deployment.client_pod(), "/", &[]).expect("an answer");
        assert_eq!((answer.status, answer.all("x-extra")), (200, vec!["there"]), "{mode}");
        let trial = run(deployment, logs.path(), &[]);
        trial.check_path(mode.name());
        let counters = &trial.proxy(proxy).counters;
        let connections: Vec<_> = counters
            .iter()
            .filter(|(name, _)| name.starts_with("cluster.outbound|8080|"))
            .filter(|(name, _)| name.ends_with(".upstream_cx_total"))
            .collect();
        assert!(connections.iter().any(|(_, rise)| **rise == REQUESTS), "{mode}: {connections:?}");
    }
}

/// The lab's API rejects what a cluster with Istio rejects: by the schema of the kind, or through istiod.
pub fn object_rejected_by_api_is_named(lab: &LocalLab) {
    let object = |api_version: &str, kind: &str, spec: Value| json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "wrong"}, "spec": spec});
    let fastest = json!({"host": "server", "trafficPolicy": {"loadBalancer": {"simple": "FASTEST"}}});
    let no_route = json!({"hosts": ["server"], "http": [{"timeout": "1s"}]});
    let no_filter = json!({"configPatches": [{"applyTo": "HTTP_FILTER", "patch": {"operation": "ADD"}}]});
    let unknown_type = {
        let nothing = json!({"@type": "type.googleapis.com/there.is.no.such.Type"});
        filter_before_router("ANY", &nothing)["spec"].clone()
    };
    for (object, words) in [
        (object("networking.istio.io/v1", "DestinationRule", fastest), "Unsupported value: \"FASTEST\""),
        (
            object("networking.istio.io/v1", "DestinationRule", json!({"hosts": "server"})),
            ".spec.hosts: field not declared in schema",
        ),
        (object("networking.istio.io/v1", "VirtualService", no_route), "HTTP route"),
        (object("networking.istio.io/v1alpha3", "EnvoyFilter", no_filter), "missing patch value"),
        (object("networking.istio.io/v1alpha3", "EnvoyFilter", unknown_type), "there.is.no.such.Type"),
        (
            object("networking.istio.io/v1", "Destination", json!({})),
            "has no kind Destination in networking.istio.io/v1",
        ),
        (
            object("networking.istio.io/v7", "DestinationRule", json!({})),
            "has no kind DestinationRule in networking.istio.io/v7",
        ),
        (object("nobodys.example/v1", "Thing", json!({})), "has no kind Thing in nobodys.example/v1"),
    ] {
        let kind = object["kind"].as_str().expect("a kind").to_owned();
        let why = refused(lab, &with(Mode::Sidecar, &[object]));
        let named = why.starts_with(&format!("apply {kind} mesh-")) && why.contains("/wrong: ");
        assert!(named && why.contains(words), "{words} is not in: {why}");
    }
}

pub fn object_rejected_by_proxy_is_named(lab: &LocalLab) {
    let broken = lua("function = end\n");
    let sidecars: &[&str] = &["client-proxy", "server-proxy"];
    for (mode, context, proxies) in
        [(Mode::Sidecar, "SIDECAR_INBOUND", sidecars), (Mode::Ingress, "GATEWAY", &["ingress-gateway"])]
    {
        let why = refused(lab, &with(mode, &[filter_before_router(context, &broken)]));
        check_refused_by(&why, proxies, "Listener");
        for part in ["script load error", "of `istio.extra`", "EnvoyFilter of-the-test"] {
            assert!(why.contains(part), "{mode}: {part} is not in: {why}");
        }
    }
    let cluster = envoy_filter(&json!({
        "applyTo": "CLUSTER",
        "match": {"context": "SIDECAR_OUTBOUND"},
        "patch": {"operation": "ADD", "value": {"name": "no-type", "connect_timeout": "-1s"}},
    }));
    let why = refused(lab, &with(Mode::Sidecar, &[cluster]));
    check_refused_by(&why, sidecars, "Cluster");
    assert!(why.contains("EnvoyFilter of-the-test"), "{why}");
    // Nothing is left of it for the next case.
    let logs = LogFolder::create();
    let deployment = bring_up(
        lab,
        &with(
            Mode::Sidecar,
            &[envoy_filter(&json!({
                "applyTo": "CLUSTER",
                "patch": {"operation": "ADD", "value": {"name": "of-the-test", "type": "STATIC", "connect_timeout": "1s"}},
            }))],
        ),
        logs.path(),
    );
    assert!(ask(deployment.client_pod(), "/clusters").contains("of-the-test::"));
    run(deployment, logs.path(), &[]).check_path("sidecar");
}

/// Faults apply from the first request on: no request meets the mesh without them.
pub fn faults_apply_from_the_first_request(lab: &LocalLab) {
    let faults = json!({
        "apiVersion": "networking.istio.io/v1",
        "kind": "VirtualService",
        "metadata": {"name": "of-the-test"},
        "spec": {
            "hosts": ["server"],
            "http": [{
                "fault": {"abort": {"percentage": {"value": 100.0}, "httpStatus": 418}},
                "route": [{"destination": {"host": "server"}}],
            }],
        },
    });
    let trial = trial(lab, &with(Mode::Sidecar, &[faults]), |_| ());
    assert_eq!(trial.responses("418"), REQUESTS, "{:?}", trial.observation.evidence.path);
}

/// A custom kind with an object, cluster-scoped and with a plural that no rule derives.
pub fn custom_kind_is_created_with_its_objects(lab: &LocalLab) {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let kind = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "geese.farm.example"},
        "spec": {
            "group": "farm.example",
            "scope": "Cluster",
            "names": {"kind": "Goose", "plural": "geese", "singular": "goose"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
        },
    });
    let goose = json!({"apiVersion": "farm.example/v1", "kind": "Goose", "metadata": {"name": "grey"}});
    // Both are removed with their trial, so that the next trial can create them again.
    for _ in 0..2 {
        let spec = with(Mode::Sidecar, &[goose.clone(), kind.clone()]);
        trial(lab, &spec, |_| ()).check_path("sidecar");
    }
}

/// A webhook without a server rejects all objects after it, including those of the trial. The error names the
/// webhook, and the next trial is not affected.
pub fn webhook_that_rejects_all_objects_is_removed_with_its_trial(lab: &LocalLab) {
    let webhook = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "of-the-test"},
        "webhooks": [{
            "name": "refuses.everything.example",
            "clientConfig": {"url": "https://127.0.0.1:9/refuse"},
            "rules": [{
                "operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"],
            }],
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }],
    });
    let policy = |kind: &str, spec: Value| {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": "of-the-test"},
            "spec": spec,
        })
    };
    let everything = json!({
        "operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"],
    });
    let refusing = policy(
        "ValidatingAdmissionPolicy",
        json!({
            "matchConstraints": {"resourceRules": [everything]},
            "validations": [{"expression": "false", "message": "the test refuses everything"}],
        }),
    );
    let binding = policy(
        "ValidatingAdmissionPolicyBinding",
        json!({"policyName": "of-the-test", "validationActions": ["Deny"]}),
    );
    for (objects, words, is_heard_at_once) in [
        (vec![webhook], "refuses.everything.example", true),
        // The API looks for policies once per second, so a trial may come up before it knows this one.
        (vec![refusing, binding], "the test refuses everything", false),
    ] {
        let logs = LogFolder::create();
        match lab.bring_up(&with(Mode::Sidecar, &objects), logs.path()).map(drop) {
            Ok(()) => assert!(!is_heard_at_once, "{words}: it was brought up"),
            Err(error) => check_named(&error, words),
        }
        trial(lab, &spec(Mode::Sidecar), |_| ()).check_path("sidecar");
    }
}

fn check_named(error: &EnvironmentError, words: &str) {
    let why = told(error);
    for part in [words, "(of `istio.extra`, Validating", "of-the-test"] {
        assert!(why.contains(part), "{part} is not in: {why}");
    }
}

/// A ztunnel has a policy of the experiment before anything is sent.
pub fn ztunnel_has_policies_of_the_experiment(lab: &LocalLab) {
    let policy = json!({
        "apiVersion": "security.istio.io/v1",
        "kind": "AuthorizationPolicy",
        "metadata": {"name": "of-the-test"},
        "spec": {"action": "DENY", "rules": [{"from": [{"source": {"namespaces": ["elsewhere"]}}]}]},
    });
    for mode in [Mode::Ambient, Mode::AmbientWaypoint] {
        let logs = tempfile::tempdir().expect("a temporary folder");
        let deployment = bring_up(lab, &with(mode, std::slice::from_ref(&policy)), logs.path());
        let (_, _, ztunnel) = deployment
            .admin_interfaces()
            .find(|(name, _, _)| *name == "ztunnel")
            .expect("the client and the server share one");
        let dump = ztunnel.ask("/config_dump").expect("ztunnel answers");
        assert!(String::from_utf8_lossy(&dump).contains("of-the-test"), "{mode}");
        run(deployment, logs.path(), &[]).check_path(mode.name());
    }
}
