//! The lab as a place to run trials: `experiment`'s `Environment` on one machine.
//!
//! Read [`LocalLab`] first, then [`crate::deployment`], which is what it deploys. Under `mesh: envoy` every
//! proxy has a static file. Under `mesh: istio` a control plane configures the proxies; it starts with its
//! first deployment ([`crate::istio`]).

pub use crate::local_lab::{LocalLab, Programs};

use crate::Result;
use crate::deployment::{LabDeployment, deploy};
use crate::observe::host::{Sources, describe};
use crate::{dataplane, entry, exit, redirect};
use components::{Installed, find_database};
use experiment::MeshKind;
use experiment::dataplane::{DataPlane, ModeParts};
use experiment::environment::deploy::{Deployment, Environment};
use experiment::environment::{ComponentsSettings, DeploymentSpec, EnvironmentError, Scenario};
use experiment::topology::Runs;
use mesh::filters::Filter;
use results::{ComponentVersion, Host, Mode};
use std::path::Path;

impl LocalLab {
    /// [`Environment::deploy`] with a concrete type and log directory. On an error it takes down everything
    /// it started.
    pub fn bring_up(&self, spec: &DeploymentSpec, log_dir: &Path) -> Result<LabDeployment<'_>> {
        Environment::check_mode(self, spec.mesh, spec.mode, &spec.components)?;
        deploy(self, spec, log_dir).map_err(|error| match spec.mesh {
            MeshKind::Istio => self.prefer_root_cause(error),
            _ => error,
        })
    }

    /// Prefers a dead or hanging control plane as the cause: it explains more than a webhook that does not
    /// respond or a proxy that is not ready.
    fn prefer_root_cause(&self, error: EnvironmentError) -> EnvironmentError {
        let control_plane = self.running_control_plane().filter(|_| !self.lab.stop_requested());
        match control_plane.map(|control_plane| control_plane.check_responsive()) {
            Some(Err(cause)) => EnvironmentError::new(error.operation, cause),
            _ => error,
        }
    }
}

impl Environment for LocalLab {
    fn host(&self) -> Host {
        let mut host = describe(&Sources::read());
        host.cgroups =
            self.lab.cgroup_version().map_or_else(|| "none".to_owned(), |version| version.to_string());
        host.privileges = self.lab.privileges().name().to_owned();
        host.redirect_by = self.lab.proxy_identity().name().to_owned();
        // Known once a mode has been requested. Without Envoy, mode `none` still runs; the other modes report
        // that it is missing.
        let mut chosen = self.chosen_programs();
        if chosen.is_empty() {
            chosen.extend(self.programs_for(&ComponentsSettings::default()));
        }
        for programs in &chosen {
            for version in programs.versions(None) {
                if !host.versions.contains(&version) {
                    host.versions.push(version);
                }
            }
        }
        host.versions.extend(self.istiods_beside.iter().map(Installed::recorded));
        if let Some(filters) = self.filters.get() {
            host.versions.extend(filters.all().map(Installed::recorded));
        }
        host
    }

    fn versions_for(&self, spec: &DeploymentSpec) -> Vec<ComponentVersion> {
        let has_database =
            spec.topology.workloads.iter().any(|workload| matches!(workload.runs, Runs::Database));
        // If the database is missing, the deployments that need it fail and say so.
        let database = has_database.then(|| find_database(&self.programs.overrides).ok()).flatten();
        database.iter().map(Installed::recorded).collect()
    }

    fn check_mode(&self, mesh: MeshKind, mode: Mode, components: &ComponentsSettings) -> Result<()> {
        let programs = self.programs_for(components)?;
        let refused = |reason: &str, hint: &str| {
            Err(EnvironmentError::new(format!("run mode {mode}"), reason).with_hint(hint))
        };
        let ModeParts { data_plane, entry, exit } = mesh.parts(mode);
        match mesh {
            MeshKind::Linkerd | MeshKind::Cilium => {
                Err(dataplane::on_clusters_only(format!("run mode {mode}")))
            }
            MeshKind::Envoy if mode.is_ambient() => refused(
                "it needs ztunnel and a control plane, and this lab runs Envoy with static files only",
                RUNNABLE,
            ),
            MeshKind::Envoy if !mesh.makes(mode) => {
                refused("it needs a control plane, and this lab runs Envoy with static files only", RUNNABLE)
            }
            MeshKind::Istio if mode == Mode::Gateway => refused(
                "a single proxy without a mesh is not Istio's",
                "`mesh: envoy` runs it; Istio's own is `ingress`",
            ),
            MeshKind::Istio if data_plane == DataPlane::None => {
                // Redirect rules lead Service addresses to their pods.
                programs.istio()?;
                redirect::programs().map(drop)
            }
            _ => {
                dataplane::check(data_plane, self, &programs, mode)?;
                entry::check(entry, &programs)?;
                exit::check(exit, mode)
            }
        }
    }

    fn check_scenario(&self, scenario: Scenario) -> Result<()> {
        let has_services = Filter::for_scenario(scenario).iter().any(|filter| filter.service().is_some());
        if has_services { self.filter_programs().map(drop) } else { Ok(()) }
    }

    fn check_settings(&self, spec: &DeploymentSpec) -> Result<()> {
        match spec.mesh {
            MeshKind::Istio => self.programs_for(&spec.components)?.istio()?.proxies(spec).map(drop),
            _ => Ok(()),
        }
    }

    fn deploy(&mut self, spec: &DeploymentSpec, label: &str) -> Result<Box<dyn Deployment + '_>> {
        Ok(Box::new(self.bring_up(spec, &self.logs.join(label))?))
    }
}

const RUNNABLE: &str = "`mesh: envoy` runs the modes none, gateway and sidecar";
