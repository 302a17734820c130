//! A trial of a deployment: counters before it and after it, and what they prove.

use super::LabDeployment;
use super::footprint::BeforeLoad;
use super::rules::Rules;
use super::station::Station;
use crate::Result;
use crate::private_dir::create_log_dir;
use crate::running::Proxy;
use crate::running::service::ServiceReading;
use experiment::environment::ErrorContext;
use experiment::environment::deploy::{DriverLoad, TrialEvidence};
use experiment::schema::PathProof;
use mesh::concurrent::side_by_side;
use mesh::proof::edge::{Edge as CountedEdge, EdgeProxy, Replica, Sent, have_settled, prove_edges};
use mesh::proof::{Accepts, CountedService};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// How long proxies may take, after the drivers' end, to read what had been sent to them.
const SETTLED_TIMEOUT: Duration = Duration::from_millis(500);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

type Counters = BTreeMap<String, u64>;

#[derive(Debug)]
pub(super) struct Trial {
    /// Its number in the deployment, from 1.
    pub number: usize,
    pub log_dir: PathBuf,
    /// Of each proxy of the deployment, in its order.
    proxies_before: Vec<Counters>,
    /// The same before the first trial, of connections that may be older than this one.
    pooled_before: Vec<Counters>,
    /// Of each pod with a service, by its name. A pod whose counters could not be read is not in here.
    pub services_before: BTreeMap<String, ServiceReading>,
    before_load: BeforeLoad,
}

impl Trial {
    pub fn in_directory(log_dir: &Path) -> Self {
        Self {
            number: 0,
            log_dir: log_dir.to_path_buf(),
            proxies_before: Vec::new(),
            pooled_before: Vec::new(),
            services_before: BTreeMap::new(),
            before_load: BeforeLoad::default(),
        }
    }
}

impl LabDeployment<'_> {
    pub(super) fn begin(&mut self, log_dir: &Path) -> Result<()> {
        self.check_alive("begin a trial")?;
        create_log_dir(log_dir)?;
        self.forget_drivers();
        let (number, pooled_before) = (self.trial.number + 1, std::mem::take(&mut self.trial.pooled_before));
        self.trial = Trial { number, pooled_before, ..Trial::in_directory(log_dir) };
        let proxies = side_by_side(&self.parts.proxies, |proxy: &Proxy| proxy.counters.counters());
        self.trial.proxies_before = proxies
            .into_iter()
            .collect::<Result<_, _>>()
            .context("read the proxies' counters before the trial")?;
        self.restore_pooled();
        self.read_services_before()?;
        let proxies: Vec<&Proxy> = self.proxies().collect();
        self.trial.before_load = BeforeLoad::read(&proxies, &self.watched());
        Ok(())
    }

    /// Lets connections that proxies keep open between trials count from before the first one.
    fn restore_pooled(&mut self) {
        let Trial { proxies_before, pooled_before, .. } = &mut self.trial;
        if pooled_before.is_empty() {
            pooled_before.clone_from(proxies_before);
        }
        for station in self.parts.edges.iter().flat_map(|edge| &edge.stations) {
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

    pub(super) fn end(&mut self, sent: &[DriverLoad]) -> TrialEvidence {
        self.drivers.kill_all();
        let before_load = std::mem::take(&mut self.trial.before_load);
        let services = self.services_at_rest();
        let calls = self.calls(&services);
        let counted = self.counted_edges(sent, &calls, &services);
        let replicas = self.counters_after(&counted);
        let edges = self.edges(&counted, &replicas);
        let mut path = prove_edges(&edges);
        if let Some(tracing) = &self.parts.tracing {
            let is_over = || self.lab.lab.stop_requested() || self.failed().is_some();
            tracing.prove(&edges, &mut path, is_over);
        }
        path.reasons.extend(self.rules.changes(&Rules::of(self.parts.pods.all())));
        let failed = || self.components().filter(|(_, container)| container.failed().is_some());
        let log_tails = failed().map(|(name, container)| (name.to_owned(), container.last_lines())).collect();
        let hints = failed().map(|(_, container)| container.log_hint()).collect();
        let unresponsive = replicas.iter();
        let unresponsive: BTreeMap<&str, &str> = unresponsive
            .filter_map(|replica| Some((replica.name.as_str(), replica.after.as_ref().err()?.as_str())))
            .collect();
        let proxies: Vec<&Proxy> = self.proxies().collect();
        let footprints = before_load.complete(&proxies, &self.watched(), &unresponsive, &self.trial.log_dir);
        self.check_accepted(&mut path);
        path.proven = path.reasons.is_empty();
        TrialEvidence {
            path,
            services: self.service_counts(&services),
            edges: self.edge_records(calls),
            footprints,
            log_tails,
            hints,
            push: self.parts.push.clone(),
        }
    }

    /// Waits up to [`SETTLED_TIMEOUT`] for counters of all requests: the last may still be in sockets when drivers end.
    fn counters_after(&self, counted: &[(Sent, Vec<CountedService>)]) -> Vec<Replica> {
        let deadline = Instant::now() + SETTLED_TIMEOUT;
        loop {
            let after = side_by_side(&self.parts.proxies, Proxy::counters_or_reason);
            let proxies = self.parts.proxies.iter().zip(after).enumerate();
            let replicas: Vec<Replica> = proxies
                .map(|(id, (proxy, after))| {
                    let before = self.trial.proxies_before.get(id).cloned().unwrap_or_default();
                    Replica { name: proxy.name.clone(), before, after }
                })
                .collect();
            if Instant::now() >= deadline || have_settled(&self.edges(counted, &replicas)) {
                return replicas;
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    fn edges<'a>(
        &'a self,
        counted: &'a [(Sent, Vec<CountedService>)],
        replicas: &'a [Replica],
    ) -> Vec<CountedEdge<'a>> {
        let edges = self.parts.edges.iter().zip(counted);
        edges
            .map(|(edge, (sent, services))| CountedEdge {
                from: &edge.from,
                to: &edge.to,
                sent: sent.clone(),
                service: services.iter().collect(),
                proxies: edge
                    .stations
                    .iter()
                    .map(|station| EdgeProxy {
                        name: &station.name,
                        side: station.side,
                        evidence: &station.evidence,
                        spans: station.proxies.first().and_then(|id| self.parts.proxies[*id].spans.as_ref()),
                        replicas: station.proxies.iter().map(|id| &replicas[*id]).collect(),
                    })
                    .collect(),
            })
            .collect()
    }

    fn station(&self, name: &str) -> Option<&Station> {
        self.parts.edges.iter().flat_map(|edge| &edge.stations).find(|station| station.name == name)
    }

    fn check_accepted(&self, path: &mut PathProof) {
        for proof in &mut path.proxies {
            let Some(station) = self.station(&proof.name) else { continue };
            let Some(claimed) = station.evidence.accepts else { continue };
            for proxy in station.proxies.iter().map(|id| &self.parts.proxies[*id]) {
                let takes = takes_plain_text(proxy, claimed, &mut path.reasons);
                proof.takes_plain_text = proof.takes_plain_text.or(takes);
            }
        }
    }
}

/// Whether a proxy says that it accepts plain text; absent where it cannot be asked.
fn takes_plain_text(proxy: &Proxy, claimed: Accepts, reasons: &mut Vec<String>) -> Option<bool> {
    // One that has failed or does not respond was found out by its counters.
    if proxy.container.failed().is_some() {
        return None;
    }
    let takes = proxy.counters.accepts_plaintext(claimed.port).ok()?;
    if takes != Some(claimed.plaintext) {
        let manner = if claimed.plaintext { "does not take plain text" } else { "takes plain text" };
        reasons.push(format!("{} {manner}, against what `proxy.mtls` says", proxy.name));
    }
    takes
}
