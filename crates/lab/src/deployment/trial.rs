//! A trial of a deployment: the start of its drivers, counters before and after it, and what they prove.

use super::driver::Drivers;
use super::{LabDeployment, Trial};
use crate::Result;
use crate::certificates::write_private;
use crate::component_name::lab_name;
use crate::container::{ContainerSpec, ContainerUser};
use crate::filters::proof::received;
use crate::private_dir::{PrivateDir, create_log_dir};
use crate::rollout::station::Destination;
use experiment::environment::EnvironmentError;
use experiment::environment::deploy::{Argument, DriverLoad, DriverStart, DriverVerb, TrialEvidence};
use mesh::names::file_name;
use mesh::proof::edge::{Edge as CountedEdge, Replica};
use mesh::proof::filters;
use mesh::trial::course::{Course, KeepsCourse as _};
use results::{ComponentVersion, FurtherDomain, PathProof};
use std::iter;
use std::path::Path;

impl LabDeployment<'_> {
    pub(super) fn begin(&mut self, log_dir: &Path) -> Result<()> {
        self.check_alive("begin a trial")?;
        create_log_dir(log_dir)?;
        self.drivers.kill_all();
        self.drivers = Drivers::default();
        self.trial =
            Trial { number: self.trial.number + 1, log_dir: log_dir.to_path_buf(), ..Trial::default() };
        // Before any counter is read: probes count as requests.
        if let Some(filters) = &self.filters {
            self.trial.filters_before_load = filters.before_load(&self.domains);
        }
        self.in_course(Course::begin)
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
        // While the components run, whose programs are read for names.
        let profiled = self.trial.profiler.take().map(|profiler| profiler.finish(&self.trial.log_dir));
        let mut evidence = self.in_course(|course, lab| {
            course
                .end(lab, &lab.gateways, sent, |edges, replicas, path| lab.prove_more(edges, replicas, path))
        });
        evidence.notes.extend(profiled);
        let failed = || self.components().filter(|(_, container)| container.failed().is_some());
        let log_tails = failed().map(|(name, container)| (name.to_owned(), container.last_lines())).collect();
        let hints = failed().map(|(_, container)| container.log_hint()).collect();
        TrialEvidence {
            log_tails,
            hints,
            push: self.push.clone(),
            // Last: it changes the gateway's configuration, and its probes count as requests.
            further_domain: self.put_further_domain_in_force(),
            versions: self.versions(),
            proxies: self.setup,
            ..evidence
        }
    }

    fn prove_more(&self, edges: &[CountedEdge<'_>], replicas: &[Replica], path: &mut PathProof) {
        if let Some(tracing) = &self.tracing {
            let is_over = || self.lab.lab.stop_requested() || self.failed().is_some();
            tracing.prove(edges, path, is_over);
        }
        path.reasons.extend(self.rules.changes(self.pods()));
        if let Some(filters) = &self.filters {
            let counted = filters.counted(&self.trial.filters_before_load, &self.domains, replicas);
            let (proofs, reasons) = filters::prove(&counted, received(&self.domains, replicas));
            path.filters = proofs;
            path.reasons.extend(reasons);
        }
    }

    /// Versions of the programs that this deployment runs.
    fn versions(&self) -> Vec<ComponentVersion> {
        let programs = self.lab.programs_for(&self.spec.components);
        programs.map(|programs| programs.versions(Some(&self.spec))).unwrap_or_default()
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
}

/// An argument in its command line form. A file argument is written to `directory`.
fn materialise(argument: &Argument, directory: &Path) -> Result<String> {
    match argument {
        Argument::Text(text) => Ok(text.clone()),
        Argument::File { prefix, name, content } => {
            let path = directory.join(file_name(name));
            write_private(&path, content, None)?;
            Ok(format!("{prefix}{}", path.display()))
        }
    }
}
