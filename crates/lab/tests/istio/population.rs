//! The mesh of a fleet: written, taken over and removed, next to objects of others.

use crate::cases::LogFolder;
use crate::modes::spec;
use experiment::environment::error_chain;
use experiment::settings::fleet::FleetSettings;
use lab::Lab;
use lab::environment::LocalLab;
use mesh::kubernetes::client::ApiClient;
use mesh::kubernetes::object_ref::ObjectRef;
use mesh::kubernetes::workloads::namespace;
use population::changes::{Write, perform};
use population::{Placement, Population, Written, remove};
use results::Mode;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Instant;

const RUN: &str = "run-1";

fn population(run_id: &str) -> Population {
    let settings = FleetSettings {
        proxies: 10,
        kinds: "gateway=1,waypoint=1,sidecar".parse().expect("they are kinds"),
        services: 50,
        pods: 100,
        namespaces: 5,
        virtual_services: 20,
        destination_rules: 10,
        policies: 10,
        gateways: 12,
        scope: true,
        ..FleetSettings::default()
    };
    let placement = Placement { run_id: run_id.to_owned(), ..Placement::default() };
    Population::new(&settings, &placement).expect("it fits")
}

fn write(population: &Population, api: &ApiClient) -> Result<Written, String> {
    population.write(api, &|_, _| ()).map_err(|error| error_chain(&error))
}

fn exists(api: &ApiClient, kind: &str, namespace: Option<&str>, name: &str) -> bool {
    api.get(&ObjectRef::new("v1", kind, namespace, name)).expect("the API responds").is_some()
}

pub fn a_population_is_written_taken_over_and_removed(_lab: &Lab, local_lab: &LocalLab) {
    let logs = LogFolder::create();
    let brought_up = local_lab.bring_up(&spec(Mode::None), logs.path());
    drop(brought_up.unwrap_or_else(|error| panic!("{}", error_chain(&error))));
    let control_plane = local_lab.running_control_plane().expect("it lives on");
    let api = Arc::clone(control_plane.api());
    let population = population(RUN);

    // An object that belongs to someone else: nothing is written.
    api.apply(&[namespace("fleet-3", &[])]).expect("the API takes it");
    let refused = write(&population, &api).expect_err("the namespace is another's");
    assert!(refused.contains("Namespace fleet-3 exists already and does not belong to a fleet"), "{refused}");
    assert!(!exists(&api, "Namespace", None, "fleet-1"));
    api.delete(&[ObjectRef::new("v1", "Namespace", None, "fleet-3")], &|_| ()).expect("it goes");
    api.finalize_namespaces(&["fleet-3"]).expect("it goes");

    let began = Instant::now();
    let written = write(&population, &api).unwrap_or_else(|error| panic!("{error}"));
    println!("{} objects written in {:.1?}", written.created, began.elapsed());
    assert_eq!((written.created, written.objects["Service"]), (written.objects.values().sum(), 52));
    let again = write(&population, &api).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((again.created, again.updated, again.removed), (0, 0, 0));
    let other = write(&self::population("run-2"), &api).expect_err("the mesh is another run's");
    assert!(other.contains("exists already and belongs to run run-1"), "{other}");

    damage(&api);
    let mended = write(&population, &api).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((mended.created, mended.updated, mended.removed), (1, 1, 1));

    let mut kept = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    kept["metadata"] = json!({"name": "kept", "namespace": "fleet-2"});
    api.apply(&[kept]).expect("the API takes it");
    let began = Instant::now();
    let removed = remove(&api, RUN, &|_| ()).unwrap_or_else(|error| panic!("{}", error_chain(&error)));
    println!("{} objects removed in {:.1?}", removed.objects, began.elapsed());
    assert_eq!(removed.remaining, ["Namespace fleet-2, which holds ConfigMap kept"]);
    assert!(exists(&api, "ConfigMap", Some("fleet-2"), "kept"));
    assert!(
        !exists(&api, "Service", Some("fleet-2"), "service-2") && !exists(&api, "Namespace", None, "fleet-1")
    );
    api.delete(&[ObjectRef::new("v1", "ConfigMap", Some("fleet-2"), "kept")], &|_| ()).expect("it goes");
    let removed = remove(&api, RUN, &|_| ()).unwrap_or_else(|error| panic!("{}", error_chain(&error)));
    assert_eq!((removed.objects, removed.remaining), (1, Vec::new()));
}

/// What an interrupted run may leave: a missing pod, a changed route, and an object of a change.
fn damage(api: &ApiClient) {
    let route = json!({
        "apiVersion": "networking.istio.io/v1",
        "kind": "VirtualService",
        "metadata": {"name": "service-1", "namespace": "fleet-1"},
        "spec": {"http": [{"route": [{"destination": {"host": "elsewhere.example"}}]}]},
    });
    let mut account: Value = json!({"apiVersion": "v1", "kind": "ServiceAccount"});
    account["metadata"] =
        json!({"name": "left", "namespace": "fleet-1", "labels": {"meshmeter.io/fleet": RUN}});
    let pod = ObjectRef::new("v1", "Pod", Some("fleet-1"), "service-1-1");
    let writes = [Write::Merge(route), Write::Create(account), Write::Delete(pod)];
    let performed = perform(api, &writes).unwrap_or_else(|error| panic!("{}", error_chain(&error)));
    assert!(performed.first_sent < performed.acknowledged);
}
