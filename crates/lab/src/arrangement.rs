//! The lab as a place where trials run: `experiment`'s `Environment` on one machine.
//!
//! Read [`LocalLab`] first; [`pair`] is the arrangement of one trial (client and server, and the proxies between them),
//! `bring_up.rs` starts it and `proxy.rs` starts one Envoy in a pod.
//!
//! What this leaves out: a control plane. Every proxy has a static file ([`crate::envoy::bootstrap`]), so the modes are
//! those that static files can make: `none`, `gateway` and `sidecar`.

mod bring_up;
pub mod pair;
mod proxy;

use self::pair::PairArrangement;
use crate::certificates::RunAuthority;
use crate::components::{Component, Installed, Overrides, find};
use crate::host::{Sources, describe, version};
use crate::lab::Lab;
use crate::observe::Vantage;
use crate::redirect;
use experiment::environment::{Arrangement, ArrangementSpec, Environment, EnvironmentError};
use experiment::schema::Host;
use experiment::{MeshKind, Mode};
use std::cell::{Cell, OnceCell};
use std::path::{Path, PathBuf};

/// What a lab runs.
#[derive(Clone, Debug)]
pub struct Programs {
    /// The `meshmeter` binary, which is the service (`serve`) and the generator (`load`).
    pub meshmeter: PathBuf,
    /// The components that the user named in the place of installed ones.
    pub overrides: Overrides,
}

/// One machine as the place of a run.
#[derive(Debug)]
pub struct LocalLab {
    lab: Lab,
    programs: Programs,
    authority: RunAuthority,
    vantage: Vantage,
    /// Found once: asking Envoy for its version takes longer than a pod.
    envoy: OnceCell<Installed>,
    /// Arrangements prepared so far; keeps their private folders apart.
    prepared: Cell<usize>,
}

impl LocalLab {
    /// A place of runs within a lab, with a certificate authority of its own.
    ///
    /// # Errors
    /// Where the machine's processes cannot be seen, or no certificate can be made.
    pub fn new(lab: Lab, programs: Programs) -> Result<Self, EnvironmentError> {
        let vantage = Vantage::new(lab.outer_proc())?;
        let authority = RunAuthority::create()
            .map_err(|error| EnvironmentError::new("make the run's certificate authority", error))?;
        let (envoy, prepared) = (OnceCell::new(), Cell::new(0));
        Ok(Self { lab, programs, authority, vantage, envoy, prepared })
    }

    /// Starts everything that a trial needs and waits until it is ready to serve: [`Environment::prepare`] with its type
    /// known.
    ///
    /// # Errors
    /// As there.
    pub fn bring_up(
        &self,
        spec: &ArrangementSpec,
        log_dir: &Path,
    ) -> Result<PairArrangement<'_>, EnvironmentError> {
        self.can_run(spec.mesh, spec.mode)?;
        let started = bring_up::bring_up(self, spec, log_dir)?;
        Ok(PairArrangement::new(self, spec, log_dir, started))
    }

    fn envoy(&self) -> Result<&Installed, EnvironmentError> {
        if let Some(envoy) = self.envoy.get() {
            return Ok(envoy);
        }
        let envoy = find(Component::Envoy, &self.programs.overrides)?;
        Ok(self.envoy.get_or_init(|| envoy))
    }

    /// The number of the arrangement that is being prepared.
    fn next_arrangement(&self) -> usize {
        self.prepared.replace(self.prepared.get() + 1)
    }
}

impl Environment for LocalLab {
    fn host(&self) -> Host {
        let mut host = describe(&Sources::read());
        host.cgroups =
            self.lab.cgroup_version().map_or_else(|| "none".to_owned(), |version| version.to_string());
        host.privileges = self.lab.privileges().name().to_owned();
        host.redirect_by = self.lab.proxy_identity().name().to_owned();
        // Without Envoy mode `none` still runs; the other modes say that it is missing.
        if let Ok(envoy) = self.envoy() {
            host.versions.push(version("envoy", &envoy.version));
        }
        host
    }

    fn can_run(&self, mesh: MeshKind, mode: Mode) -> Result<(), EnvironmentError> {
        let operation = format!("run mode {mode}");
        if mesh == MeshKind::Istio {
            return Err(EnvironmentError::new(
                operation,
                "mesh istio needs a control plane, and this lab runs Envoy with static files only",
            )
            .with_hint(RUNNABLE));
        }
        match mode {
            Mode::None => Ok(()),
            Mode::Gateway => self.envoy().map(drop),
            Mode::Sidecar => self.envoy().and_then(|_| redirect::programs()).map(drop),
            Mode::Ambient | Mode::AmbientWaypoint => Err(EnvironmentError::new(
                operation,
                "it needs ztunnel and a control plane, and this lab runs Envoy with static files only",
            )
            .with_hint(RUNNABLE)),
            Mode::Ingress
            | Mode::EgressBypass
            | Mode::EgressSidecar
            | Mode::EgressGateway
            | Mode::EgressGatewayMtls
            | Mode::EgressSni => Err(EnvironmentError::new(
                operation,
                "it needs a control plane, and this lab runs Envoy with static files only",
            )
            .with_hint(RUNNABLE)),
        }
    }

    fn prepare(
        &mut self,
        spec: &ArrangementSpec,
        log_dir: &Path,
    ) -> Result<Box<dyn Arrangement + '_>, EnvironmentError> {
        Ok(Box::new(self.bring_up(spec, log_dir)?))
    }
}

/// What to do where a mode cannot run: nothing stands in for it.
const RUNNABLE: &str = "`mesh: envoy` runs the modes none, gateway and sidecar";
