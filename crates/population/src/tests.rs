use super::*;
use experiment::environment::error_chain;
use std::collections::HashSet;

fn settings(change: impl FnOnce(&mut FleetSettings)) -> FleetSettings {
    let mut settings = FleetSettings {
        proxies: 30,
        services: 40,
        pods: 90,
        namespaces: 7,
        virtual_services: 10,
        destination_rules: 5,
        policies: 50,
        gateways: 12,
        ..FleetSettings::default()
    };
    change(&mut settings);
    settings
}

fn placement() -> Placement {
    Placement { run_id: "run-1".to_owned(), ..Placement::default() }
}

fn population(change: impl FnOnce(&mut FleetSettings)) -> Population {
    Population::new(&settings(change), &placement()).unwrap()
}

fn count(objects: &[Value], kind: &str) -> usize {
    objects.iter().filter(|object| object["kind"] == kind).count()
}

#[test]
fn numbers_of_objects_match_settings() {
    let population = population(|settings| settings.scope = true);
    let objects = population.objects();
    for (kind, expected) in [
        ("Service", 41),
        ("Pod", 90),
        ("EndpointSlice", 40),
        ("ServiceAccount", 41),
        ("DestinationRule", 5),
        ("VirtualService", 10 + 12),
        ("Gateway", 12),
        ("Secret", 2),
        ("AuthorizationPolicy", 50),
        ("PeerAuthentication", 7),
        ("Sidecar", 7),
    ] {
        assert_eq!(count(&objects, kind), expected, "{kind}");
    }
    assert_eq!(population.namespaces().len(), 8);
    assert_eq!(population.statuses().len(), 90);
    let headless = objects.iter().filter(|object| object["spec"]["clusterIP"] == "None").count();
    assert_eq!(headless, 2);
}

#[test]
fn gateways_have_a_route_of_their_own_for_each_virtual_service() {
    let of_kinds = |kinds: &str| {
        let population = population(|settings| {
            settings.kinds = kinds.parse().unwrap();
            settings.virtual_services = 30;
        });
        let objects = population.objects();
        let routes: Vec<Value> =
            objects.into_iter().filter(|object| object["kind"] == "VirtualService").collect();
        assert!(population.settings().objects() >= routes.len());
        let (at_gateways, in_mesh): (Vec<_>, Vec<_>) =
            routes.into_iter().partition(|route| route["spec"]["gateways"].is_array());
        let hosts: HashSet<String> =
            at_gateways.iter().map(|route| route["spec"]["hosts"][0].to_string()).collect();
        assert_eq!(hosts.len(), at_gateways.len(), "{at_gateways:?}");
        (at_gateways.len(), in_mesh.len())
    };
    // Each of the 12 domains has a route as well.
    assert_eq!(of_kinds("gateway"), (30 + 12, 0));
    assert_eq!(of_kinds("gateway=2,sidecar"), (30 + 12, 30));
    assert_eq!(of_kinds("sidecar"), (12, 30));
}

#[test]
fn objects_are_distinct_and_have_run_label() {
    let population = population(|settings| {
        settings.kinds = "waypoint=10,gateway=2,ztunnel=3,sidecar".parse().unwrap();
    });
    let mut seen = HashSet::new();
    for object in population.namespaces().iter().chain(&population.objects()) {
        assert_eq!(object["metadata"]["labels"][FLEET_LABEL], "run-1", "{object}");
        let metadata = &object["metadata"];
        let key = format!(
            "{}{}{}{}",
            object["apiVersion"], object["kind"], metadata["namespace"], metadata["name"]
        );
        assert!(seen.insert(key), "{object}");
    }
    let addresses: HashSet<String> =
        population.statuses().iter().map(|status| status["status"]["podIP"].to_string()).collect();
    assert_eq!(addresses.len(), 90 + 10 + 2);
    assert!(addresses.iter().all(|address| address.starts_with("\"198.1")));
}

#[test]
fn proxies_are_spread_over_namespaces_and_are_pods() {
    let population = population(|settings| {
        settings.kinds = "waypoint=8,gateway=2,ztunnel=3,sidecar".parse().unwrap();
    });
    let kinds = |kind| population.proxies().iter().filter(move |proxy| proxy.kind == kind);
    let namespaces = |kind| kinds(kind).map(|proxy| proxy.namespace.as_str()).collect::<HashSet<_>>().len();
    assert_eq!((kinds(ProxyKind::Sidecar).count(), namespaces(ProxyKind::Sidecar)), (17, 7));
    assert_eq!((kinds(ProxyKind::Waypoint).count(), namespaces(ProxyKind::Waypoint)), (8, 7));
    assert_eq!((kinds(ProxyKind::Gateway).count(), kinds(ProxyKind::Ztunnel).count()), (2, 3));
    let pods: HashSet<String> = population
        .statuses()
        .iter()
        .map(|pod| format!("{}/{}", pod["metadata"]["namespace"], pod["status"]["podIP"]))
        .collect();
    for proxy in population.proxies().iter().filter(|proxy| proxy.kind != ProxyKind::Ztunnel) {
        assert!(pods.contains(&format!("\"{}\"/\"{}\"", proxy.namespace, proxy.address)), "{proxy:?}");
        assert_eq!(proxy.labels["app"], proxy.service_account);
        assert_eq!(proxy.labels[FLEET_LABEL], "run-1");
    }
    let addresses: HashSet<_> = population.proxies().iter().map(|proxy| proxy.address).collect();
    assert_eq!(addresses.len(), 30);
}

#[test]
fn settings_that_do_not_fit_are_rejected_with_hint() {
    let refused = |change: fn(&mut FleetSettings)| {
        let error = Population::new(&settings(change), &placement()).unwrap_err();
        assert!(error.hint.is_some());
        error.source.unwrap().to_string()
    };
    assert_eq!(refused(|settings| settings.proxies = 91), "91 sidecars are more than its 90 pods");
    assert_eq!(refused(|settings| settings.services = 0), "it has no services");
    assert_eq!(
        refused(|settings| settings.virtual_services = 41),
        "41 VirtualServices are more than its 40 services"
    );
    assert!(refused(|settings| settings.pods = 100_001).contains("100000 addresses"));
}

#[test]
fn cluster_gets_no_pods_and_no_selectors_by_default() {
    let cluster = Placement { has_controllers: true, ..placement() };
    let objects = Population::new(&settings(|_| ()), &cluster).unwrap().objects();
    assert_eq!(count(&objects, "Pod"), 0);
    let of = |kind| objects.iter().filter(move |object| object["kind"] == kind);
    assert!(of("Service").all(|service| service["spec"]["selector"].is_null()));
    assert!(of("EndpointSlice").all(|slice| !slice.to_string().contains("targetRef")));
    let simulated = Placement { simulate_pods: true, ..cluster };
    let objects = Population::new(&settings(|_| ()), &simulated).unwrap().objects();
    let pods: Vec<&Value> = objects.iter().filter(|object| object["kind"] == "Pod").collect();
    assert_eq!(pods.len(), 90);
    assert!(
        pods.iter()
            .all(|pod| pod["spec"]["nodeName"].is_null() && pod["spec"]["schedulerName"] == "meshmeter")
    );
}

#[test]
fn topology_determines_services_namespaces_and_pods() {
    let workload = |name: &str, namespace: &str, pods| HeldWorkload {
        name: name.to_owned(),
        namespace: namespace.to_owned(),
        pods,
    };
    let held = |workloads| HeldTopology { name: "shop".to_owned(), workloads };
    let of = |workloads, sidecars| {
        let settings = FleetSettings { proxies: sidecars, ..FleetSettings::default() };
        Population::new(&settings.with_topology(held(workloads)), &placement())
    };
    let population = of(vec![workload("web", "front", 3), workload("cart", "", 2)], 4).unwrap();
    assert_eq!(population.namespace_names(), ["fleet-default", "fleet-front"]);
    let objects = population.objects();
    assert_eq!((count(&objects, "Service"), count(&objects, "Pod")), (2, 5));
    let proxies: Vec<String> =
        population.proxies().iter().map(|proxy| format!("{}.{}", proxy.name, proxy.namespace)).collect();
    assert_eq!(
        proxies,
        ["web-1.fleet-front", "cart-1.fleet-default", "web-2.fleet-front", "cart-2.fleet-default"]
    );
    let refused = |workload| error_chain(&of(vec![workload], 1).unwrap_err());
    assert!(refused(workload("waypoint", "", 1)).contains("a fleet has a service `waypoint` of its own"));
    assert!(refused(workload("web", "proxies", 1)).contains("cannot have a namespace `fleet-proxies`"));
}
