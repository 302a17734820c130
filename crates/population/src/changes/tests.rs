use super::*;
use crate::{FLEET_LABEL, Placement, Population};
use experiment::settings::fleet::{FleetSettings, ProxyKind};
use experiment::xds::{Presence, ResourceType};
use results::units::Churn;
use serde_json::Value;
use std::time::Duration;

fn of_mesh() -> impl Iterator<Item = ChangeKind> + Clone {
    ChangeKind::ALL.into_iter().filter(|kind| kind.is_of_mesh())
}

fn population(kinds: &str, change: impl FnOnce(&mut FleetSettings)) -> Population {
    let mut settings = FleetSettings {
        proxies: 12,
        kinds: kinds.parse().unwrap(),
        services: 20,
        pods: 60,
        namespaces: 4,
        virtual_services: 10,
        gateways: 3,
        ..FleetSettings::default()
    };
    change(&mut settings);
    let placement = Placement { run_id: "run-1".to_owned(), ..Placement::default() };
    Population::new(&settings, &placement).unwrap()
}

fn of(change: &Change, kind: ProxyKind) -> Vec<&Expected> {
    change.expected.iter().filter(|expected| expected.kind == kind).collect()
}

fn written(write: &Write) -> Option<&Value> {
    match write {
        Write::Create(object) | Write::Merge(object) => Some(object),
        Write::Status(_) | Write::Delete(_) => None,
    }
}

#[test]
fn changes_are_deterministic_for_seed_and_never_repeat() {
    let population = population("sidecar", |_| ());
    let all = |seed| {
        let mut changes = Changes::new(&population, seed);
        let kinds = of_mesh().cycle().take(90);
        kinds.map(|kind| changes.next(kind).unwrap().writes).collect::<Vec<_>>()
    };
    assert_eq!(all(7), all(7));
    assert_ne!(all(7), all(8));
    let mut seen = all(7);
    seen.dedup();
    assert_eq!(seen.len(), 90);
}

#[test]
fn every_written_object_has_run_label() {
    let population = population("gateway=1,sidecar", |_| ());
    let mut changes = Changes::new(&population, 1);
    for kind in of_mesh() {
        let change = changes.next(kind).unwrap();
        for object in change.writes.iter().filter_map(written) {
            assert_eq!(object["metadata"]["labels"][FLEET_LABEL], "run-1", "{object}");
        }
    }
}

#[test]
fn undo_restores_mesh() {
    let population = population("sidecar", |_| ());
    let mut changes = Changes::new(&population, 1);
    for kind in [ChangeKind::EndpointAdded, ChangeKind::EndpointRemoved] {
        let change = changes.next(kind).unwrap();
        // Another change in between, perhaps of the same endpoints.
        changes.next(ChangeKind::PodRestarted).unwrap();
        let undo = changes.undo(&change).unwrap();
        let [Expected { marks, .. }] = &undo.expected[..] else { panic!("{undo:?}") };
        assert_eq!(marks[0].presence, change.expected[0].marks[0].presence.opposite());
        assert_eq!(marks[0].needle, change.expected[0].marks[0].needle);
        assert!(!undo.changes_size());
    }
    let pods: usize = changes.services().iter().map(|service| service.replicas().len()).sum();
    assert_eq!(pods, 60);
    let added = changes.next(ChangeKind::ServiceAdded).unwrap();
    let undo = changes.undo(&added).unwrap();
    assert!(undo.writes.iter().all(|write| matches!(write, Write::Delete(_))) && undo.writes.len() == 2);
    assert_eq!(undo.expected[0].marks[0].presence, Presence::Gone);
    let changed = changes.next(ChangeKind::VirtualService).unwrap();
    assert!(changes.undo(&changed).is_none());
    // There are none to change.
    let created = changes.next(ChangeKind::DestinationRule).unwrap();
    assert!(matches!(&created.writes[..], [Write::Create(_)]) && created.changes_size());
}

#[test]
fn restarts_avoid_pods_of_proxies() {
    let mut changes = Changes::new(&population("sidecar", |_| ()), 1);
    for _ in 0..200 {
        let change = changes.next(ChangeKind::PodRestarted).unwrap();
        let [replaced] = &change.replaced[..] else { panic!("{change:?}") };
        assert!(!replaced.gone.pod.ends_with("-1"), "{replaced:?}");
        assert_ne!(replaced.gone.address, replaced.new.address);
        assert_eq!(change.writes.len(), 4);
    }
    let mut changes = Changes::new(&population("sidecar", |settings| settings.proxies = 60), 1);
    assert!(changes.next(ChangeKind::PodRestarted).is_ok());
    assert_eq!(changes.next(ChangeKind::RollingRestart).unwrap().replaced.len(), 3);
}

#[test]
fn marks_match_resources_sent_by_istiod() {
    let population = population("gateway=1,waypoint=4,ztunnel=2,sidecar", |_| ());
    let mut changes = Changes::new(&population, 1);
    let added = changes.next(ChangeKind::EndpointAdded).unwrap();
    let [sidecar] = of(&added, ProxyKind::Sidecar)[..] else { panic!("{added:?}") };
    let mark = &sidecar.marks[0];
    assert!(mark.resource.as_ref().unwrap().starts_with("outbound|8080||service-"));
    assert_eq!(
        (mark.resource_type, &mark.needle[..2]),
        (ResourceType::Endpoints, &[0x12, mark.needle.len() as u8 - 2][..])
    );
    assert!(mark.needle[2..].starts_with(b"198.18.0."));
    let [ztunnel] = of(&added, ProxyKind::Ztunnel)[..] else { panic!("{added:?}") };
    assert!(ztunnel.marks[0].resource.as_ref().unwrap().contains("//Pod/fleet-"));
    let route = changes.next(ChangeKind::VirtualService).unwrap();
    assert!(of(&route, ProxyKind::Ztunnel).is_empty());
    let name = |kind| of(&route, kind)[0].marks[0].resource.clone().unwrap();
    assert_eq!(name(ProxyKind::Sidecar), "8080");
    assert!(name(ProxyKind::Gateway).starts_with("https.8443.https.ingress-"));
    assert_eq!(of(&route, ProxyKind::Gateway)[0].marks[0].needle, b"mark-000002");
}

#[test]
fn root_policy_has_second_object_for_waypoints() {
    let policies = |kinds| {
        let change = Changes::new(&population(kinds, |_| ()), 1).next(ChangeKind::RootPolicy).unwrap();
        change.writes.iter().filter_map(written).cloned().collect::<Vec<Value>>()
    };
    assert!(matches!(&policies("sidecar")[..], [policy] if policy["spec"]["targetRefs"].is_null()));
    let both = policies("waypoint=4,sidecar");
    assert_eq!(both[1]["spec"]["targetRefs"][0]["kind"], "GatewayClass");
    assert_eq!(both[0]["spec"]["rules"], both[1]["spec"]["rules"]);
}

#[test]
fn scope_limits_changes_to_namespaces_with_proxies() {
    let population = population("sidecar", |settings| {
        settings.scope = true;
        settings.proxies = 2;
    });
    let mut changes = Changes::new(&population, 1);
    for kind in of_mesh().cycle().take(45) {
        let change = changes.next(kind).unwrap();
        let [Expected { namespace, .. }] = &change.expected[..] else { panic!("{change:?}") };
        if kind == ChangeKind::RootPolicy {
            assert_eq!(*namespace, None);
        } else {
            assert!(["fleet-1", "fleet-2"].contains(&namespace.as_deref().unwrap()), "{change:?}");
        }
    }
}

#[test]
fn changes_of_other_drivers_are_refused() {
    let mut changes = Changes::new(&population("sidecar", |_| ()), 1);
    assert!(changes.next(ChangeKind::ConnectStorm).is_err());
    let mut empty = Changes::new(&population("gateway=12", |settings| settings.pods = 0), 1);
    assert!(empty.next(ChangeKind::EndpointRemoved).unwrap_err().hint.is_some());
}

#[test]
fn churn_has_mean_rate_and_is_deterministic_for_seed() {
    let churn = Churn::FractionPerMinute(0.25);
    let moments =
        |seed| ChurnSchedule::new(churn, 2400, seed).unwrap().take(10_000).collect::<Vec<Duration>>();
    let first = moments(1);
    assert_eq!(first, moments(1));
    assert_ne!(first, moments(2));
    assert!(first.is_sorted());
    // 10 000 pods at 10/s; the standard deviation is 10 s.
    let took = first.last().unwrap().as_secs_f64();
    assert!((950.0..1050.0).contains(&took), "{took}");
    assert!(ChurnSchedule::new(Churn::None, 100, 1).is_none());
}
