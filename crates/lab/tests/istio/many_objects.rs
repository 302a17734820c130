//! The objects of a mesh of hundreds of pods are written and removed in seconds.

use crate::cases::LogFolder;
use crate::modes::spec;
use experiment::Protocol;
use experiment::environment::error_chain;
use lab::Lab;
use lab::environment::LocalLab;
use mesh::kubernetes::object_ref::ObjectRef;
use mesh::kubernetes::object_set::ObjectSet;
use mesh::kubernetes::workloads::{Membership, ServicePort, Workload};
use results::Mode;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};

const NAMESPACES: usize = 50;
const SERVICES: usize = 200;

/// More than ten times what it takes on an idle machine with four cores.
const WRITTEN_TIMEOUT: Duration = Duration::from_secs(60);

pub fn two_hundred_services_are_written_and_removed(_lab: &Lab, local_lab: &LocalLab) {
    let logs = LogFolder::create();
    let brought_up = local_lab.bring_up(&spec(Mode::None), logs.path());
    let deployment = brought_up.unwrap_or_else(|error| panic!("{}", error_chain(&error)));
    let control_plane = local_lab.running_control_plane().expect("the pods are in its API");
    drop(deployment);
    let api = Arc::clone(control_plane.api());
    let namespaces: Vec<String> = (0..NAMESPACES).map(|number| format!("team-{number}")).collect();
    let workloads: Vec<Workload> = (0..SERVICES).map(|number| workload(number, &namespaces)).collect();

    let mut objects = ObjectSet::new(Arc::clone(&api));
    let began = Instant::now();
    let names: Vec<&str> = namespaces.iter().map(String::as_str).collect();
    objects.create_namespaces(&names, &[]).expect("the API takes them");
    let references: Vec<&Workload> = workloads.iter().collect();
    objects.create_pods(&references, &|_| ()).expect("the API takes them");
    let ports = [ServicePort::for_protocol(Protocol::Http1, 8080)];
    let services: Vec<_> = workloads.iter().flat_map(|workload| workload.service_objects(&ports)).collect();
    objects.create(&services, &|_| ()).expect("the API takes them");
    let took = began.elapsed();
    let service = ObjectRef::new("v1", "Service", Some("team-7"), "service-7");
    let service = api.get(&service).expect("the API responds").expect("it is written");
    assert!(service["spec"]["clusterIP"].is_string(), "{service}");
    let began = Instant::now();
    objects.remove().expect("the API removes them");
    println!("{SERVICES} services written in {took:.1?}, removed in {:.1?}", began.elapsed());
    assert!(took < WRITTEN_TIMEOUT, "{took:?}");
    for (kind, namespace, name) in [
        ("Namespace", None, "team-7"),
        ("Pod", Some("team-7"), "service-7"),
        ("Service", Some("team-7"), "service-7"),
    ] {
        let reference = ObjectRef::new("v1", kind, namespace, name);
        assert_eq!(api.get(&reference).expect("the API responds"), None, "{reference}");
    }
}

fn workload(number: usize, namespaces: &[String]) -> Workload {
    let address = Ipv4Addr::new(10, 77, 200, u8::try_from(number).expect("there are fewer"));
    let namespace = &namespaces[number % namespaces.len()];
    Workload::single(&format!("service-{number}"), namespace, address, Membership::Sidecar)
}
