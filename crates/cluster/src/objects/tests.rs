use super::*;
use crate::plug::{self, Stands};
use experiment::MeshKind;
use experiment::environment::MutualTls;
use experiment::settings::istio::WorkloadKeys;
use results::Mode;
use std::sync::Arc;

fn settings() -> ClusterSettings {
    let generator_nodes = Some(("load".to_owned(), "true".to_owned()));
    ClusterSettings { generator_nodes, ..ClusterSettings::new("registry.example.com/meshmeter:1", "run-1") }
}

fn written(mode: Mode) -> Vec<Value> {
    let settings = settings();
    let plug = plug::for_mode(MeshKind::Istio, mode, &settings).unwrap();
    objects(&DeploymentSpec::new(MeshKind::Istio, mode), &settings, &*plug).unwrap()
}

fn of_kind<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
    objects.iter().filter(|object| object["kind"] == kind).collect()
}

#[test]
fn objects_have_run_label_and_run_namespace() {
    for mode in [Mode::None, Mode::Sidecar, Mode::Ingress, Mode::Ambient, Mode::AmbientWaypoint] {
        for object in written(mode) {
            assert_eq!(object["metadata"]["labels"][RUN_LABEL], "run-1", "{object}");
            let is_namespace = object["kind"] == "Namespace";
            let place = if is_namespace { "name" } else { "namespace" };
            assert_eq!(object["metadata"][place], "meshmeter", "{object}");
        }
    }
}

#[test]
fn objects_in_namespace_of_runner_job_are_owned_by_it() {
    let owner = crate::settings::Owner {
        namespace: "meshmeter".to_owned(),
        job: "perf-1".to_owned(),
        uid: "u".to_owned(),
    };
    let owned = |owner| {
        let settings = ClusterSettings { owner: Some(owner), ..settings() };
        let plug = plug::for_mode(MeshKind::Istio, Mode::Ingress, &settings).unwrap();
        objects(&DeploymentSpec::new(MeshKind::Istio, Mode::Ingress), &settings, &*plug).unwrap()
    };
    let job = json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "perf-1", "uid": "u"}]);
    for object in owned(owner.clone()) {
        let expected = if object["kind"] == "Namespace" { &Value::Null } else { &job };
        assert_eq!(&object["metadata"]["ownerReferences"], expected, "{object}");
    }
    let elsewhere = owned(crate::settings::Owner { namespace: "perf".to_owned(), ..owner });
    assert!(elsewhere.iter().all(|object| object["metadata"]["ownerReferences"].is_null()));
}

#[test]
fn generators_and_measured_pods_are_on_separate_nodes() {
    let settings = ClusterSettings { image_pull_secret: Some("registry".to_owned()), ..settings() };
    let plug = plug::for_mode(MeshKind::Istio, Mode::Ingress, &settings).unwrap();
    let all = objects(&DeploymentSpec::new(MeshKind::Istio, Mode::Ingress), &settings, &*plug).unwrap();
    let expression = "/spec/template/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution\
                      /nodeSelectorTerms/0/matchExpressions/0";
    let deployments = of_kind(&all, "Deployment");
    assert_eq!(deployments.len(), 2, "a service and a gateway");
    for deployment in deployments {
        let expected = json!({"key": "load", "operator": "NotIn", "values": ["true"]});
        assert_eq!(deployment.pointer(expression), Some(&expected), "{deployment}");
    }
    let generator = &of_kind(&all, "Job")[0]["spec"]["template"]["spec"];
    assert_eq!(generator["tolerations"], json!([{"key": "load", "operator": "Equal", "value": "true"}]));
    assert_eq!(generator["imagePullSecrets"], json!([{"name": "registry"}]));
    assert_eq!(generator["affinity"], Value::Null);
}

#[test]
fn objects_select_only_pods_of_run() {
    let settings = settings();
    let mut all = written(Mode::Ingress);
    let mut spec = DeploymentSpec::new(MeshKind::Istio, Mode::Sidecar);
    let istio = Arc::make_mut(&mut spec.istio);
    istio.sidecar_scope = true;
    istio.authorization.identities = 2;
    istio.lua = Some(experiment::mesh_settings::LuaScript::BuiltIn);
    let plug = plug::for_mode(MeshKind::Istio, Mode::Sidecar, &settings).unwrap();
    all.extend(objects(&spec, &settings, &*plug).unwrap());
    for (kind, labels) in [
        ("Service", "/spec/selector"),
        ("Deployment", "/spec/selector/matchLabels"),
        ("PeerAuthentication", "/spec/selector/matchLabels"),
        ("AuthorizationPolicy", "/spec/selector/matchLabels"),
        ("TrafficExtension", "/spec/selector/matchLabels"),
        ("Sidecar", "/spec/workloadSelector/labels"),
    ] {
        let of_kind = of_kind(&all, kind);
        assert!(!of_kind.is_empty(), "{kind}");
        for object in of_kind {
            assert_eq!(object.pointer(labels).unwrap()[RUN_LABEL], "run-1", "{object}");
            assert_ne!(object["metadata"]["name"], "default", "{object}");
        }
    }
}

#[test]
fn modes_use_documented_mesh_labels() {
    let labels = |mode: Mode| {
        let objects = written(mode);
        let namespace = of_kind(&objects, "Namespace")[0]["metadata"]["labels"].clone();
        let pods = of_kind(&objects, "Deployment")[0]["spec"]["template"]["metadata"]["labels"].clone();
        (namespace, pods)
    };
    let (namespace, pods) = labels(Mode::None);
    assert_eq!(namespace["istio-injection"], Value::Null);
    assert_eq!(
        (&pods["sidecar.istio.io/inject"], &pods["istio.io/dataplane-mode"]),
        (&json!("false"), &json!("none"))
    );
    let (namespace, pods) = labels(Mode::Sidecar);
    assert_eq!(
        (&namespace["istio-injection"], &pods["sidecar.istio.io/inject"]),
        (&json!("enabled"), &json!("true"))
    );
    let (namespace, pods) = labels(Mode::Ambient);
    assert_eq!(
        (&namespace["istio.io/dataplane-mode"], &pods["istio.io/dataplane-mode"]),
        (&json!("ambient"), &json!("ambient"))
    );
    assert_eq!(namespace["istio.io/use-waypoint"], Value::Null);
    let (namespace, _) = labels(Mode::AmbientWaypoint);
    assert_eq!(namespace["istio.io/use-waypoint"], "waypoint");
    assert_eq!(of_kind(&written(Mode::AmbientWaypoint), "Gateway").len(), 1);
}

#[test]
fn ambient_labels_are_on_services_and_pods_in_existing_namespace() {
    let settings = ClusterSettings { existing_namespaces: true, ..settings() };
    for (mode, waypoint) in [(Mode::Ambient, Value::Null), (Mode::AmbientWaypoint, json!("waypoint"))] {
        let plug = plug::for_mode(MeshKind::Istio, mode, &settings).unwrap();
        let all = objects(&DeploymentSpec::new(MeshKind::Istio, mode), &settings, &*plug).unwrap();
        let service = &of_kind(&all, "Service")[0]["metadata"]["labels"];
        assert_eq!((&service["istio.io/use-waypoint"], &service[RUN_LABEL]), (&waypoint, &json!("run-1")));
        for pods in of_kind(&all, "Deployment").into_iter().chain(of_kind(&all, "Job")) {
            let labels = &pods["spec"]["template"]["metadata"]["labels"];
            assert_eq!(labels["sidecar.istio.io/inject"], "false", "the namespace may have injection");
            assert_eq!(labels["istio.io/dataplane-mode"], "ambient");
        }
    }
}

/// A namespace with a waypoint would have one for every Service in it.
#[test]
fn service_outside_the_mesh_has_no_waypoint_and_is_called_across_the_border() {
    let settings = settings();
    for (mode, waypoint) in [(Mode::Ambient, Value::Null), (Mode::AmbientWaypoint, json!("none"))] {
        let plug = plug::for_mode(MeshKind::Istio, mode, &settings).unwrap();
        let mut spec = DeploymentSpec::new(MeshKind::Istio, mode);
        let call = spec.topology.calls[0];
        let ends = |spec: &DeploymentSpec| {
            let evidence = plug.evidence(&PlugContext { spec, settings: &settings }, call);
            evidence.into_iter().map(|(stands, evidence)| (stands, evidence.tls_expected)).collect::<Vec<_>>()
        };
        Arc::make_mut(&mut spec.topology).workloads[call.to].in_mesh = false;
        let all = objects(&spec, &settings, &*plug).unwrap();
        assert_eq!(of_kind(&all, "Service")[0]["metadata"]["labels"]["istio.io/use-waypoint"], waypoint);
        assert_eq!(ends(&spec), [(Stands::OnNodesOf(call.from, "client"), false)], "{mode}");

        let workloads = &mut Arc::make_mut(&mut spec.topology).workloads;
        (workloads[call.to].in_mesh, workloads[call.from].in_mesh) = (true, false);
        let refused = objects(&spec, &settings, &*plug).unwrap_err();
        assert_eq!(refused.operation, "let client, which is outside the mesh, call server");
        spec.proxy.mtls = MutualTls::Permissive;
        assert!(objects(&spec, &settings, &*plug).is_ok());
        assert_eq!(ends(&spec), [(Stands::OnNodesOf(call.to, "server"), false)], "{mode}");
    }
}

#[test]
fn load_is_indexed_job_whose_pods_are_never_restarted() {
    let objects = written(Mode::Sidecar);
    let job = of_kind(&objects, "Job")[0];
    let spec = &job["spec"];
    assert_eq!((&spec["completionMode"], &spec["backoffLimit"]), (&json!("Indexed"), &json!(0)));
    let pod = &spec["template"]["spec"];
    assert_eq!((&pod["restartPolicy"], &pod["nodeSelector"]["load"]), (&json!("Never"), &json!("true")));
    let arguments = pod["containers"][0]["args"].to_string();
    assert!(arguments.contains("--end-proxy=http://127.0.0.1:15020/quitquitquit"), "{arguments}");
    let security = &pod["containers"][0]["securityContext"];
    assert_eq!(
        (&security["readOnlyRootFilesystem"], &security["allowPrivilegeEscalation"]),
        (&json!(true), &json!(false))
    );
}

#[test]
fn sidecars_keep_counters_that_prove_path() {
    let objects = written(Mode::Sidecar);
    let annotations = &of_kind(&objects, "Job")[0]["spec"]["template"]["metadata"]["annotations"];
    let config = annotations["proxy.istio.io/config"].as_str().unwrap();
    assert!(config.contains("cluster.outbound|8080||server.meshmeter.svc.cluster.local"), "{config}");
    assert_eq!(of_kind(&objects, "PeerAuthentication").len(), 1);
}

#[test]
fn waypoints_keep_counters_that_prove_path_and_have_run_label() {
    let objects = written(Mode::AmbientWaypoint);
    let infrastructure = &of_kind(&objects, "Gateway")[0]["spec"]["infrastructure"];
    assert_eq!(infrastructure["labels"][RUN_LABEL], "run-1");
    let config = infrastructure["annotations"]["proxy.istio.io/config"].as_str().unwrap();
    let config: Value = serde_json::from_str(config).unwrap();
    let expected = [
        "cluster.connect_originate",
        "cluster.inbound-vip|8080|",
        "http.inbound_0.0.0.0_8080",
        "listener.0.0.0.0_15008",
    ];
    assert_eq!(config["proxyStatsMatcher"]["inclusionPrefixes"], json!(expected));
}

#[test]
fn proxies_make_keys_of_the_kind_that_the_experiment_asks_for() {
    let settings = settings();
    let configs = |mode, workload_keys| -> Vec<Value> {
        let plug = plug::for_mode(MeshKind::Istio, mode, &settings).unwrap();
        let mut spec = DeploymentSpec::new(MeshKind::Istio, mode);
        Arc::make_mut(&mut spec.istio).workload_keys = workload_keys;
        let objects = objects(&spec, &settings, &*plug).unwrap();
        let places = objects
            .iter()
            .flat_map(|object| [&object["spec"]["template"]["metadata"], &object["spec"]["infrastructure"]]);
        let configs = places.filter_map(|place| place["annotations"]["proxy.istio.io/config"].as_str());
        configs.map(|config| serde_json::from_str(config).unwrap()).collect()
    };
    for (mode, proxies) in [(Mode::Sidecar, 2), (Mode::Ingress, 2), (Mode::AmbientWaypoint, 1)] {
        let ecdsa = configs(mode, WorkloadKeys::Ecdsa);
        assert_eq!(ecdsa.len(), proxies, "{mode}");
        for config in ecdsa {
            assert_eq!(config["proxyMetadata"], json!({"ECC_SIGNATURE_ALGORITHM": "ECDSA"}), "{mode}");
        }
        for config in configs(mode, WorkloadKeys::Rsa) {
            assert_eq!(config.get("proxyMetadata"), None, "{mode}");
        }
    }
}

#[test]
fn settings_of_mesh_proxies_are_rejected() {
    let settings = settings();
    let plug = plug::for_mode(MeshKind::Istio, Mode::Ambient, &settings).unwrap();
    let refused = |change: &dyn Fn(&mut DeploymentSpec)| {
        let mut spec = DeploymentSpec::new(MeshKind::Istio, Mode::Ambient);
        change(&mut spec);
        objects(&spec, &settings, &*plug).unwrap_err().operation
    };
    assert_eq!(refused(&|spec| spec.proxy.cpu_limit_cores = Some(1.0)), "set `proxy.cpu`");
    let from_outside = |spec: &mut DeploymentSpec| {
        let topology = Arc::make_mut(&mut spec.topology);
        let driver = topology.drivers[0].at;
        topology.workloads[driver].in_mesh = false;
    };
    assert_eq!(refused(&from_outside), "let client, which is outside the mesh, call server");
}

#[test]
fn linkerd_is_annotated() {
    let settings = settings();
    let plug = plug::for_mode(MeshKind::Linkerd, Mode::Sidecar, &settings).unwrap();
    let objects = objects(&DeploymentSpec::new(MeshKind::Linkerd, Mode::Sidecar), &settings, &*plug).unwrap();
    let annotations = &of_kind(&objects, "Deployment")[0]["spec"]["template"]["metadata"]["annotations"];
    assert_eq!(annotations["linkerd.io/inject"], "enabled");
    assert_eq!(annotations["config.linkerd.io/default-inbound-policy"], "all-authenticated");
    assert!(of_kind(&objects, "PeerAuthentication").is_empty());
}

#[test]
fn cilium_pods_have_no_mesh_and_its_own_pods_are_cost() {
    let plug = plug::for_mode(MeshKind::Cilium, Mode::None, &settings()).unwrap();
    let spec = DeploymentSpec::new(MeshKind::Cilium, Mode::None);
    assert_eq!(objects(&spec, &settings(), &*plug).unwrap(), written(Mode::None));
    let shared = plug.shared();
    let names: Vec<(&str, bool)> = shared.iter().map(|shared| (shared.name, shared.is_per_node)).collect();
    assert_eq!(names, [("cilium-agent", true), ("cilium-envoy", true), ("cilium-operator", false)]);
}

#[test]
fn drivers_request_target_by_service_name() {
    let topology = DeploymentSpec::new(MeshKind::Istio, Mode::None).topology;
    let driver = &topology.drivers[0];
    let url = url(&topology, driver.target, &driver.endpoint, &settings());
    assert_eq!(url, "http://server.meshmeter:8080/");
}

#[test]
fn mesh_runs_its_own_modes_alone() {
    for (mesh, own) in
        [(MeshKind::Linkerd, &[Mode::None, Mode::Sidecar][..]), (MeshKind::Cilium, &[Mode::None])]
    {
        for mode in Mode::ALL {
            let is_run = plug::for_mode(mesh, mode, &settings()).is_ok();
            assert_eq!(is_run, own.contains(&mode), "{mesh} {mode}");
        }
    }
}

#[test]
fn modes_unavailable_on_clusters_are_rejected_by_name() {
    for (mesh, mode) in [
        (MeshKind::Envoy, Mode::Sidecar),
        (MeshKind::Envoy, Mode::Gateway),
        (MeshKind::Istio, Mode::EgressGateway),
        (MeshKind::Istio, Mode::ControlPlane),
    ] {
        let error = plug::for_mode(mesh, mode, &settings()).unwrap_err();
        assert_eq!(error.operation, format!("run mode {mode}"));
        assert!(error.hint.is_some());
    }
}
