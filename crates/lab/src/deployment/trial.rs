//! A trial of a deployment: the start of its drivers, counters before and after it, and what they prove.

use super::driver::Drivers;
use super::footprint::Held;
use super::station::{Destination, ProxyId};
use super::{LabDeployment, Trial};
use crate::Result;
use crate::certificates::write_private;
use crate::component_name::{file_name, lab_name};
use crate::container::{ContainerSpec, ContainerUser};
use crate::filters::proof::received;
use crate::private_dir::{PrivateDir, create_log_dir};
use crate::running::Proxy;
use experiment::environment::deploy::{Argument, DriverLoad, DriverStart, DriverVerb, TrialEvidence};
use experiment::environment::{EnvironmentError, ErrorContext, error_chain};
use experiment::topology::WorkloadId;
use mesh::concurrent::side_by_side;
use mesh::inbound::{Claim, note_accepted};
use mesh::proof::edge::{Edge as CountedEdge, EdgeProxy, Replica, Sent, have_settled, prove_edges};
use mesh::proof::{Accepts, CountedService, filters};
use results::{ComponentVersion, FurtherDomain, PathProof};
use std::collections::BTreeMap;
use std::iter;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// Time that proxies may take, after the drivers have ended, to read what was sent to them.
const SETTLED_TIMEOUT: Duration = Duration::from_millis(500);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

impl LabDeployment<'_> {
    pub(super) fn begin(&mut self, log_dir: &Path) -> Result<()> {
        self.check_alive("begin a trial")?;
        create_log_dir(log_dir)?;
        self.drivers.kill_all();
        self.drivers = Drivers::default();
        let (number, pooled_before) = (self.trial.number + 1, std::mem::take(&mut self.trial.pooled_before));
        self.trial = Trial { number, pooled_before, log_dir: log_dir.to_path_buf(), ..Trial::default() };
        // Before any counter is read: probes count as requests.
        if let Some(filters) = &self.filters {
            self.trial.filters_before_load = filters.before_load(&self.domains);
        }
        let proxies = side_by_side(&self.proxies, |proxy: &Proxy| proxy.counters.counters());
        self.trial.proxies_before = proxies
            .into_iter()
            .collect::<Result<_, _>>()
            .context("read the proxies' counters before the trial")?;
        self.restore_pooled();
        self.read_services_before()?;
        let proxies: Vec<&Proxy> = self.proxies().collect();
        self.trial.before_load = Held::read(&proxies, &self.watched(), &BTreeMap::new());
        Ok(())
    }

    /// Uses the counters from before the first trial for connections that proxies keep open between trials.
    fn restore_pooled(&mut self) {
        let Trial { proxies_before, pooled_before, .. } = &mut self.trial;
        if pooled_before.is_empty() {
            pooled_before.clone_from(proxies_before);
        }
        for station in self.edges.iter().flat_map(|edge| &edge.stations) {
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

    /// Starts a driver with this URL and these arguments, instead of those that follow from the topology.
    pub fn start_at(&mut self, driver: &DriverStart, url: String, arguments: Vec<String>) -> Result<()> {
        self.start_driver(driver, Some(&Destination { url, arguments }))
    }

    pub(super) fn start_driver(
        &mut self,
        driver: &DriverStart,
        destination: Option<&Destination>,
    ) -> Result<()> {
        let DriverStart { driver: placement, generator: name, verb, .. } = driver;
        let placements = &self.spec.topology.drivers;
        let index = placements.iter().position(|one| one.name == *placement);
        let unknown =
            || EnvironmentError::new(format!("start driver {placement}"), "the topology has no such driver");
        let index = index.ok_or_else(unknown)?;
        let at = placements[index].at;
        let missing = || {
            let reason = format!("there is no pod {} for it", driver.pod + 1);
            EnvironmentError::new(format!("start {name}"), reason)
        };
        let pod = &self.pods.workloads[at].pods.get(driver.pod).ok_or_else(missing)?.pod;
        let (mut arguments, own_arguments) = match verb {
            DriverVerb::Load { held, .. } => {
                let Destination { url, arguments } = destination.unwrap_or(&self.destinations[index]);
                let start = held.then(|| "--start-at=-".to_owned());
                let first = iter::once("load".to_owned()).chain(verb.urls(url));
                (first.collect(), arguments.iter().cloned().chain(start).collect())
            }
            DriverVerb::Fleet => (vec!["fleet".to_owned()], self.fleet_arguments(name, pod)?),
        };
        let directory = format!("{name}-files-{}", self.trial.number);
        let directory = PrivateDir::create(&self.lab.lab, &directory, ContainerUser::Lab)?;
        for argument in &driver.arguments {
            arguments.push(materialise(argument, directory.path())?);
        }
        let pods = &mut self.pods.workloads[at].pods;
        let result_file = format!("{}.json", arguments[0]);
        let result = self.trial.log_dir.join(match (placements.len(), pods.len()) {
            (1, 1) => result_file,
            _ => format!("{}.{result_file}", file_name(name)),
        });
        arguments.extend(["--progress=json".to_owned(), format!("--json={}", result.display())]);
        arguments.extend(own_arguments);
        let pod = &mut pods[driver.pod].pod;
        let log = self.trial.log_dir.join(format!("{}.log", file_name(name)));
        let has_input = verb.is_held() || *verb == DriverVerb::Fleet;
        let container = pod.start(&ContainerSpec {
            arguments: arguments.into_iter().map(Into::into).collect(),
            limits: self.spec.topology.workloads[at].resources,
            pipe_error_output: true,
            pipe_input: has_input,
            ..ContainerSpec::new(lab_name(name), &self.lab.programs.meshmeter, log)
        })?;
        self.drivers.follow((name, pod.name()), verb, container, directory, result)
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
        if let Some(tracing) = &self.tracing {
            let is_over = || self.lab.lab.stop_requested() || self.failed().is_some();
            tracing.prove(&edges, &mut path, is_over);
        }
        path.reasons.extend(self.rules.changes(self.pods()));
        self.prove_filters(&replicas, &mut path);
        let failed = || self.components().filter(|(_, container)| container.failed().is_some());
        let log_tails = failed().map(|(name, container)| (name.to_owned(), container.last_lines())).collect();
        let hints = failed().map(|(_, container)| container.log_hint()).collect();
        let unread = |replica: &Replica| Some((replica.name.clone(), replica.after.as_ref().err()?.clone()));
        let unresponsive: BTreeMap<String, String> = replicas.iter().filter_map(unread).collect();
        let proxies: Vec<&Proxy> = self.proxies().collect();
        let footprints = before_load.complete(&proxies, &self.watched(), &unresponsive, &self.trial.log_dir);
        self.check_accepted(&mut path);
        path.proven = path.reasons.is_empty();
        path.mode = Some(self.spec.mode);
        // Last: it changes the gateway's configuration, and its probes count as requests.
        let further_domain = self.put_further_domain_in_force();
        TrialEvidence {
            path,
            services: self.service_counts(&services),
            gateways: self.gateway_counts(&replicas),
            edges: self.edge_records(calls),
            footprints,
            log_tails,
            hints,
            notes: Vec::new(),
            push: self.push.clone(),
            further_domain,
            versions: self.versions(),
            proxies: self.setup,
        }
    }

    /// Versions of the programs that this deployment runs.
    fn versions(&self) -> Vec<ComponentVersion> {
        let programs = self.lab.programs_for(&self.spec.components);
        programs.map(|programs| programs.versions(Some(&self.spec))).unwrap_or_default()
    }

    /// Reads the proxies' counters once they show all requests. It waits up to [`SETTLED_TIMEOUT`]: the last
    /// requests may still be in socket buffers when drivers end.
    fn counters_after(&self, counted: &[(Sent, Vec<CountedService>)]) -> Vec<Replica> {
        let deadline = Instant::now() + SETTLED_TIMEOUT;
        loop {
            let after = side_by_side(&self.proxies, Proxy::counters_or_reason);
            let proxies = self.proxies.iter().zip(after).enumerate();
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
        let edges = self.edges.iter().zip(counted);
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
                        spans: station.proxies.first().and_then(|id| self.proxies[*id].spans.as_ref()),
                        replicas: station.proxies.iter().map(|id| &replicas[*id]).collect(),
                    })
                    .collect(),
            })
            .collect()
    }

    /// Adds one further domain if the gateway serves domains and still works.
    fn put_further_domain_in_force(&mut self) -> Option<FurtherDomain> {
        let is_over = self.lab.lab.stop_requested() || self.failed().is_some();
        let (domains, further, namespaces) =
            (self.domains.first()?, self.further_domain.as_ref()?, self.namespaces.as_mut()?);
        let lab = &self.lab.lab;
        (!is_over)
            .then(|| domains.measure_further(further, &mut namespaces.objects, || lab.check_not_stopped()))
    }

    fn prove_filters(&mut self, replicas: &[Replica], path: &mut PathProof) {
        let (Some(filters), gateways) = (&self.filters, &self.domains) else { return };
        let before = std::mem::take(&mut self.trial.filters_before_load);
        let counted = filters.counted(before, gateways, replicas);
        let (proofs, reasons) = filters::prove(&counted, received(gateways, replicas));
        path.filters = proofs;
        path.reasons.extend(reasons);
    }

    /// Compares what proxies accept for the services behind them with what the experiment sets.
    fn check_accepted(&self, path: &mut PathProof) {
        // A proxy is in the station of each call to its services.
        let mut claimed: BTreeMap<ProxyId, (&str, BTreeMap<WorkloadId, Accepts>)> = BTreeMap::new();
        for edge in &self.edges {
            for station in &edge.stations {
                let Some(accepts) = station.evidence.accepts else { continue };
                for id in &station.proxies {
                    let (_, services) = claimed.entry(*id).or_insert((&station.name, BTreeMap::new()));
                    services.insert(edge.call.to, accepts);
                }
            }
        }
        // A proxy that has failed was reported when its counters were read.
        claimed.retain(|id, _| self.proxies[*id].container.failed().is_none());
        let claimed = claimed.into_iter().map(|(id, claimed)| (&self.proxies[id], claimed));
        let read = side_by_side(claimed, |(proxy, claimed)| {
            let inbound = proxy.counters.inbound().map_err(|error| error_chain(&error));
            (proxy.name.as_str(), claimed, inbound)
        });
        for (proxy, (station, services), inbound) in read {
            let Some(inbound) = inbound.transpose() else { continue };
            let claims: Vec<Claim<'_>> =
                services.iter().map(|(id, accepts)| self.claim(*id, *accepts)).collect();
            note_accepted(path, (proxy, station), &claims, inbound);
        }
    }

    fn claim(&self, id: WorkloadId, accepts: Accepts) -> Claim<'_> {
        let identities = self.pods.workloads[id].pods.iter().filter_map(|running| running.identity.as_ref());
        Claim {
            service: &self.spec.topology.workloads[id].name,
            accepts,
            pods: identities.map(|own| (own.namespace.as_str(), own.pod.as_str())).collect(),
        }
    }
}

/// An argument in its command line form. A file argument is written to `directory`.
fn materialise(argument: &Argument, directory: &Path) -> Result<String> {
    match argument {
        Argument::Text(text) => Ok(text.clone()),
        Argument::File { name, content } => {
            let path = directory.join(file_name(name));
            write_private(&path, content, None)?;
            Ok(path.to_string_lossy().into_owned())
        }
    }
}
