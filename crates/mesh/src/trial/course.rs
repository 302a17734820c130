//! A trial from its first counters to its evidence.

use super::footprint::Held;
use super::gateways::{Gateway, gateway_counts};
use super::place::{Edge, Place, ProxyId, RunningProxy};
use super::readings::{CallsOnEdge, Counted, Services, edge_records};
use crate::Result;
use crate::concurrent::side_by_side;
use crate::inbound::{Claim, note_accepted};
use crate::proof::edge::{Edge as CountedEdge, EdgeProxy, Replica, have_settled, prove_edges};
use crate::proof::{Accepts, Counters};
use experiment::environment::deploy::{DriverLoad, TrialEvidence};
use experiment::environment::{EnvironmentError, error_chain};
use experiment::topology::WorkloadId;
use results::PathProof;
use std::collections::BTreeMap;
use std::mem;
use std::thread;
use std::time::Instant;

/// Counters of a deployment's trials.
#[derive(Debug, Default)]
pub struct Course {
    /// Counters of each proxy, in the order of the place.
    proxies_before: Vec<Counters>,
    /// Counters before the first trial, for connections that may be older than this trial.
    pooled_before: Vec<Counters>,
    services: Services,
    before_load: Held,
}

/// A place that keeps the course of its trials.
pub trait KeepsCourse: Place + Sized {
    fn course(&mut self) -> &mut Course;

    /// Takes a step of the current trial's course.
    fn in_course<T>(&mut self, step: impl FnOnce(&mut Course, &Self) -> T) -> T {
        let mut course = mem::take(self.course());
        let result = step(&mut course, self);
        *self.course() = course;
        result
    }
}

impl Course {
    /// Begins a trial: reads the counters before its load.
    pub fn begin(&mut self, place: &impl Place) -> Result<()> {
        *self = Self { pooled_before: mem::take(&mut self.pooled_before), ..Self::default() };
        self.proxies_before = read_before(place)?;
        self.restore_pooled(place.edges());
        self.services = Services::read_before(place)?;
        self.before_load = Held::read(place, &BTreeMap::new());
        Ok(())
    }

    /// Uses the counters from before the first trial for connections that proxies keep open between trials.
    fn restore_pooled(&mut self, edges: &[Edge]) {
        let Self { proxies_before, pooled_before, .. } = self;
        if pooled_before.is_empty() {
            pooled_before.clone_from(proxies_before);
        }
        for station in edges.iter().flat_map(|edge| &edge.stations) {
            for id in &station.proxies {
                for name in station.evidence.pooled_connections() {
                    if let Some(count) = pooled_before[*id].get(name) {
                        proxies_before[*id].insert(name.to_owned(), *count);
                    } else {
                        proxies_before[*id].remove(name);
                    }
                }
            }
        }
    }

    /// Reads the nodes of a graph as the window opens. Further calls in the same trial do nothing.
    pub fn open_window(&mut self, place: &impl Place) {
        self.services.read_opening(place);
    }

    /// Ends a trial after its drivers: reads the counters again and proves the paths. `prove_more` adds what this
    /// place alone can prove, from the edges and the counters of each proxy.
    pub fn end(
        &mut self,
        place: &impl Place,
        gateways: &[Gateway],
        sent: &[DriverLoad],
        prove_more: impl FnOnce(&[CountedEdge<'_>], &[Replica], &mut PathProof),
    ) -> TrialEvidence {
        self.services.read_at_rest(place);
        let proxies = place.proxies();
        let (calls, counted, replicas) = self.read_settled(place, &proxies, sent);
        let edges = counted_edges(place.edges(), &proxies, &counted, &replicas);
        let mut path = prove_edges(&edges);
        prove_more(&edges, &replicas, &mut path);
        let unread = |replica: &Replica| Some((replica.name.clone(), replica.after.as_ref().err()?.clone()));
        let unresponsive: BTreeMap<String, String> = replicas.iter().filter_map(unread).collect();
        let footprints = mem::take(&mut self.before_load).complete(place, &unresponsive);
        check_accepted(place, &proxies, &replicas, &mut path);
        path.proven = path.reasons.is_empty();
        path.mode = Some(place.spec().mode);
        TrialEvidence {
            path,
            services: self.services.counts(place.spec()),
            gateways: gateway_counts(gateways, &replicas),
            edges: edge_records(place.edges(), calls),
            footprints,
            ..TrialEvidence::default()
        }
    }

    /// Reads the proxies' counters once they show all requests. It waits for a limited time: the last requests may
    /// still be in socket buffers when drivers end. Services that prove paths are read again as well.
    fn read_settled(
        &mut self,
        place: &impl Place,
        proxies: &[&dyn RunningProxy],
        sent: &[DriverLoad],
    ) -> (Vec<CallsOnEdge>, Vec<Counted>, Vec<Replica>) {
        let pace = place.pace();
        let counts = |services: &Services| {
            let calls = services.calls(place);
            let counted = services.counted(place, sent, &calls);
            (calls, counted)
        };
        let (mut calls, mut counted) = counts(&self.services);
        let deadline = Instant::now() + pace.settled_timeout;
        loop {
            let after = side_by_side(proxies, |proxy| proxy.read_counters());
            let replicas = proxies.iter().zip(after).enumerate().map(|(id, (proxy, after))| Replica {
                name: proxy.name().to_owned(),
                before: self.proxies_before.get(id).cloned().unwrap_or_default(),
                after,
            });
            let replicas: Vec<Replica> = replicas.collect();
            let edges = counted_edges(place.edges(), proxies, &counted, &replicas);
            if Instant::now() >= deadline || have_settled(&edges) {
                return (calls, counted, replicas);
            }
            thread::sleep(pace.settled_interval);
            if place.proves_all_services() {
                self.services.read_again(place);
                (calls, counted) = counts(&self.services);
            }
        }
    }
}

fn read_before(place: &impl Place) -> Result<Vec<Counters>> {
    let read = side_by_side(place.proxies(), |proxy| {
        proxy.read_counters().map_err(|reason| {
            let operation = format!("read the counters of {} before the trial", proxy.name());
            EnvironmentError::new(operation, reason)
        })
    });
    read.into_iter().collect()
}

fn counted_edges<'a>(
    edges: &'a [Edge],
    proxies: &[&'a dyn RunningProxy],
    counted: &'a [Counted],
    replicas: &'a [Replica],
) -> Vec<CountedEdge<'a>> {
    let edges = edges.iter().zip(counted).map(|(edge, (sent, services))| {
        let stations = edge.stations.iter().map(|station| EdgeProxy {
            name: &station.name,
            side: station.side,
            evidence: &station.evidence,
            spans: station.proxies.first().and_then(|id| proxies[*id].spans()),
            replicas: station.proxies.iter().map(|id| &replicas[*id]).collect(),
        });
        CountedEdge {
            from: &edge.from,
            to: &edge.to,
            sent: sent.clone(),
            service: services.iter().collect(),
            proxies: stations.collect(),
        }
    });
    edges.collect()
}

/// Compares what proxies accept for the services behind them with what the experiment sets.
fn check_accepted(
    place: &impl Place,
    proxies: &[&dyn RunningProxy],
    replicas: &[Replica],
    path: &mut PathProof,
) {
    // A proxy is in the station of each call to its services.
    let mut claimed: BTreeMap<ProxyId, (&str, BTreeMap<WorkloadId, Accepts>)> = BTreeMap::new();
    for edge in place.edges() {
        for station in &edge.stations {
            let Some(accepts) = station.evidence.accepts else { continue };
            for id in &station.proxies {
                let (_, services) = claimed.entry(*id).or_insert((&station.name, BTreeMap::new()));
                services.insert(edge.call.to, accepts);
            }
        }
    }
    // A proxy that has failed or does not respond was reported when its counters were read.
    claimed.retain(|id, _| replicas[*id].after.is_ok());
    let read = side_by_side(claimed, |(id, claimed)| {
        (id, claimed, proxies[id].source().inbound().map_err(|error| error_chain(&error)))
    });
    for (id, (station, services), inbound) in read {
        let Some(inbound) = inbound.transpose() else { continue };
        let claims = services.into_iter().map(|(service, accepts)| Claim {
            service: &place.spec().topology.workloads[service].name,
            accepts,
            pods: place.pods_behind(id, service),
        });
        note_accepted(path, (proxies[id].name(), station), &claims.collect::<Vec<_>>(), inbound);
    }
}
