//! Changes of a fleet's mesh: each arrives from a real istiod at simulated proxies of every kind, recognized
//! by its mark.

use crate::cases::LogFolder;
use crate::trial::spec;
use experiment::environment::error_chain;
use experiment::settings::fleet::{ChangeKind, FleetSettings};
use fleet::xds::ProxySpec;
use fleet::{ChangeMarks, Credentials, Fleet, FleetSpec, Security, Selection, Target};
use lab::environment::LocalLab;
use mesh::kubernetes::client::ApiClient;
use mesh::names::{DISCOVERY_NAME, DISCOVERY_PORT, TOKEN_AUDIENCE};
use population::changes::{Change, Changes};
use population::{Placement, Population, Proxy, remove};
use results::Mode;
use std::sync::Arc;
use std::time::{Duration, Instant};

const RUN: &str = "changes";
/// A hundred times the usual duration.
const ARRIVED_TIMEOUT: Duration = Duration::from_secs(60);

fn settings(kinds: &str, scope: bool) -> FleetSettings {
    FleetSettings {
        proxies: 12,
        kinds: kinds.parse().expect("they are kinds"),
        services: 20,
        pods: 60,
        namespaces: 3,
        virtual_services: 10,
        destination_rules: 5,
        gateways: 2,
        policies: 3,
        scope,
        ..FleetSettings::default()
    }
}

fn proxy(proxy: &Proxy) -> ProxySpec {
    ProxySpec {
        kind: proxy.kind,
        name: proxy.name.clone(),
        namespace: proxy.namespace.clone(),
        address: proxy.address,
        service_account: proxy.service_account.clone(),
        labels: proxy.labels.clone(),
        node: proxy.node.clone(),
        cluster_id: "Kubernetes".to_owned(),
        istio_version: "1.31.0".to_owned(),
        dns_capture: false,
        on_demand: false,
        demands: Vec::new(),
    }
}

/// A fleet with all proxies of a population, authenticated by tokens.
pub fn connect(lab: &LocalLab, api: &ApiClient, population: &Population) -> Fleet {
    let control_plane = lab.running_control_plane().expect("it is up");
    let accounts: Vec<(&str, &str)> = population
        .proxies()
        .iter()
        .map(|proxy| (proxy.namespace.as_str(), proxy.service_account.as_str()))
        .collect();
    let tokens =
        api.tokens(&accounts, TOKEN_AUDIENCE).unwrap_or_else(|error| panic!("{}", error_chain(&error)));
    let credentials = tokens.into_iter().map(|token| Credentials { token: Some(Arc::from(token)) });
    let target = Target {
        address: format!("{}:{DISCOVERY_PORT}", control_plane.pod().address()),
        server_name: DISCOVERY_NAME.to_owned(),
        security: Security::Token,
        roots: control_plane.root_certificate().as_bytes().into(),
    };
    let proxies = population.proxies().iter().map(proxy).zip(credentials).collect();
    let fleet = Fleet::start(FleetSpec::new(target, proxies)).expect("it starts");
    let complete = fleet.wait_complete(Instant::now() + ARRIVED_TIMEOUT);
    assert!(complete.is_complete(), "{complete:?}, {:?}", fleet.finish());
    fleet
}

/// Makes a change and describes what did not arrive.
fn missing(
    fleet: &Fleet,
    api: &ApiClient,
    population: &Population,
    change: &Change,
    what: &str,
) -> Vec<String> {
    let proxies = population.proxies();
    let expected: Vec<_> = change
        .expected
        .iter()
        .map(|expected| {
            let is_one = |proxy: &Proxy| {
                proxy.kind == expected.kind
                    && expected.namespace.as_ref().is_none_or(|namespace| *namespace == proxy.namespace)
            };
            let indices = (0..proxies.len()).filter(|index| is_one(&proxies[*index])).collect();
            let marks = expected.marks.clone();
            let id = fleet.expect(ChangeMarks {
                kind: change.kind.name().to_owned(),
                marks,
                expected: Selection::Proxies(indices),
                objects: change.writes.len(),
            });
            (id, expected)
        })
        .collect();
    let performed = change.perform(api).unwrap_or_else(|error| panic!("{what}: {}", error_chain(&error)));
    expected.iter().for_each(|(id, _)| fleet.written(*id, performed.first_sent, performed.acknowledged));
    let deadline = Instant::now() + ARRIVED_TIMEOUT;
    let missed = expected.iter().filter_map(|(id, expected)| {
        let waited = fleet.wait(*id, deadline);
        println!("{what}: {} of {} {}", waited.reached, waited.expected, expected.kind.name());
        let is_good = waited.expected > 0 && waited.is_complete();
        (!is_good).then(|| format!("{what}: {waited:?} {expected:?}"))
    });
    missed.collect()
}

/// Writes a mesh, and removes it once `act` is done.
fn with_population(lab: &LocalLab, settings: &FleetSettings, act: impl FnOnce(&ApiClient, &Population)) {
    let logs = LogFolder::create();
    let brought_up = lab.bring_up(&spec(Mode::None), logs.path());
    drop(brought_up.unwrap_or_else(|error| panic!("{}", error_chain(&error))));
    let api = Arc::clone(lab.running_control_plane().expect("it lives on").api());
    let placement = Placement { run_id: RUN.to_owned(), ..Placement::default() };
    let population = Population::new(settings, &placement).expect("it fits");
    population.write(&api, &|_, _| ()).unwrap_or_else(|error| panic!("{}", error_chain(&error)));
    act(&api, &population);
    let removed = remove(&api, RUN, &|_| ()).unwrap_or_else(|error| panic!("{}", error_chain(&error)));
    assert_eq!(removed.remaining, Vec::<String>::new());
}

pub fn every_change_arrives_at_every_kind_of_proxy(lab: &LocalLab) {
    with_population(lab, &settings("gateway=2,waypoint=3,ztunnel=2,sidecar", false), |api, population| {
        let fleet = connect(lab, api, population);
        let mut changes = Changes::new(population, 1);
        let mut missed = Vec::new();
        for kind in ChangeKind::ALL.into_iter().filter(|kind| kind.is_of_mesh()) {
            let change = changes.next(kind).unwrap_or_else(|error| panic!("{}", error_chain(&error)));
            missed.extend(missing(&fleet, api, population, &change, kind.name()));
            if let Some(undo) = changes.undo(&change) {
                missed.extend(missing(&fleet, api, population, &undo, &format!("undo of {}", kind.name())));
            }
        }
        let result = fleet.finish();
        assert_eq!((missed, result.rejections), (Vec::new(), 0));
    });
}

/// The routes of its domains, and one per VirtualService.
pub fn gateways_receive_a_route_per_virtual_service(lab: &LocalLab) {
    let settings = settings("gateway", false);
    with_population(lab, &settings, |api, population| {
        let result = connect(lab, api, population).finish();
        let routes = (settings.gateways + settings.virtual_services) * settings.proxies;
        assert_eq!(result.pushes["rds"].routes, routes as u64, "{:?}", result.pushes);
    });
}
