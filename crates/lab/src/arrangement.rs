//! The lab as a place where trials run: `experiment`'s `Environment` on one machine.
//!
//! Read [`LocalLab`] first; [`pair`] is the arrangement of one trial (client and server, and the proxies between them), and
//! `started.rs` what it consists of, whoever configured its proxies. Under `mesh: envoy` every proxy has a static file
//! ([`crate::envoy::bootstrap`]): `static_envoys.rs` brings those modes up and `proxy.rs` starts one Envoy in a pod. Under
//! `mesh: istio` a control plane configures them: see [`crate::istio`].

mod holdings;
mod kept_configuration;
pub mod pair;
mod proxy;
mod rules;
pub(crate) mod service;
pub(crate) mod started;
mod static_envoys;
pub(crate) mod tracing;

use self::pair::PairArrangement;
use crate::certificates::RunAuthority;
use crate::components::{Component, Installed, Overrides, find};
use crate::istio::{AmbientPrograms, ControlPlane, IstioPrograms, modes};
use crate::lab::Lab;
use crate::observe::HostProc;
use crate::observe::host::{Sources, describe};
use crate::redirect;
use experiment::environment::{Arrangement, DeploymentSpec, Environment, EnvironmentError, ProgressSink};
use experiment::schema::Host;
use experiment::{MeshKind, Mode};
use std::cell::{Cell, OnceCell, RefCell};
use std::path::{Path, PathBuf};
use std::rc::Rc;

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
    host_proc: HostProc,
    /// Found once: asking Envoy for its version takes longer than a pod.
    envoy: OnceCell<Installed>,
    /// What `mesh: istio` runs, found once too.
    istio: OnceCell<IstioPrograms>,
    ambient: OnceCell<AmbientPrograms>,
    /// Arrangements prepared so far; keeps their private folders apart.
    prepared: Cell<usize>,
    /// The control plane of `mesh: istio`, from its first trial on.
    control_plane: RefCell<Option<Rc<ControlPlane>>>,
    /// Control planes started so far.
    control_planes: Cell<usize>,
    /// Where their logs go: they outlive the trial that started them.
    control_plane_logs: PathBuf,
    /// Receives progress of what takes long.
    progress: ProgressSink,
}

impl LocalLab {
    /// A place of runs within a lab, with a certificate authority of its own.
    ///
    /// # Errors
    /// Where the machine's processes cannot be seen, or no certificate can be made.
    pub fn new(lab: Lab, programs: Programs) -> Result<Self, EnvironmentError> {
        let host_proc = HostProc::new(lab.outer_proc())?;
        let control_plane_logs = lab.private_dir().join("control-plane-logs");
        let authority = RunAuthority::create()
            .map_err(|error| EnvironmentError::new("make the run's certificate authority", error))?;
        Ok(Self {
            lab,
            programs,
            authority,
            host_proc,
            envoy: OnceCell::new(),
            istio: OnceCell::new(),
            ambient: OnceCell::new(),
            prepared: Cell::new(0),
            control_plane: RefCell::new(None),
            control_planes: Cell::new(0),
            control_plane_logs,
            progress: ProgressSink::default(),
        })
    }

    /// Lets the logs of control planes be written to this folder, which need not exist yet, instead of one that goes with
    /// the lab. For before the first trial.
    pub fn keep_control_plane_logs_in(&mut self, folder: PathBuf) {
        self.control_plane_logs = folder;
    }

    /// Reports progress while a deployment comes up. For before the first trial.
    pub fn report_progress_to(&mut self, progress: ProgressSink) {
        self.progress = progress;
    }

    /// Receives progress.
    pub(crate) fn progress(&self) -> &ProgressSink {
        &self.progress
    }

    /// Starts everything that a trial needs and waits until it is ready to serve: [`Environment::prepare`] with its type
    /// known.
    ///
    /// # Errors
    /// As there.
    pub fn bring_up(
        &self,
        spec: &DeploymentSpec,
        log_dir: &Path,
    ) -> Result<PairArrangement<'_>, EnvironmentError> {
        self.can_run(spec.mesh, spec.mode)?;
        let started = match spec.mesh {
            MeshKind::Envoy => static_envoys::bring_up(self, spec, log_dir)?,
            MeshKind::Istio => modes::bring_up(self, spec, log_dir).map_err(|error| self.cause_of(error))?,
        };
        Ok(PairArrangement::new(self, spec, log_dir, started))
    }

    /// The error of a mode that could not be brought up: that the control plane has died or hangs says more than that a
    /// webhook does not answer, or that a proxy is not ready.
    fn cause_of(&self, error: EnvironmentError) -> EnvironmentError {
        match self.running_control_plane() {
            Some(control_plane) if !self.lab.stop_requested() => control_plane.cause_of(error),
            _ => error,
        }
    }

    /// The control plane of `mesh: istio`, where one is up.
    #[must_use]
    pub fn running_control_plane(&self) -> Option<Rc<ControlPlane>> {
        self.control_plane.borrow().clone()
    }

    fn envoy(&self) -> Result<&Installed, EnvironmentError> {
        if let Some(envoy) = self.envoy.get() {
            return Ok(envoy);
        }
        let envoy = find(Component::Envoy, &self.programs.overrides)?;
        Ok(self.envoy.get_or_init(|| envoy))
    }

    /// The run's certificate authority.
    pub(crate) fn authority(&self) -> &RunAuthority {
        &self.authority
    }

    /// The lab that it is in.
    pub(crate) fn lab(&self) -> &Lab {
        &self.lab
    }

    /// The program that is the service and the generator.
    pub(crate) fn meshmeter(&self) -> &Path {
        &self.programs.meshmeter
    }

    /// What `mesh: istio` runs.
    pub(crate) fn istio_programs(&self) -> Result<&IstioPrograms, EnvironmentError> {
        if let Some(programs) = self.istio.get() {
            return Ok(programs);
        }
        let programs = IstioPrograms::find(self.envoy()?, &self.programs.overrides)?;
        Ok(self.istio.get_or_init(|| programs))
    }

    /// What the ambient modes run besides.
    pub(crate) fn ambient_programs(&self) -> Result<&AmbientPrograms, EnvironmentError> {
        if let Some(programs) = self.ambient.get() {
            return Ok(programs);
        }
        let programs = AmbientPrograms::find(&self.programs.overrides)?;
        Ok(self.ambient.get_or_init(|| programs))
    }

    /// The control plane, started where there is none yet or where the last one has died, stands still or hangs.
    pub(crate) fn control_plane(&self) -> Result<Rc<ControlPlane>, EnvironmentError> {
        let mut control_plane = self.control_plane.borrow_mut();
        if let Some(running) = control_plane.as_ref() {
            let answers = running.check_answers();
            self.lab.check_not_stopped()?;
            if answers.is_ok() {
                return Ok(Rc::clone(running));
            }
        }
        // A failed one goes first: its pod's name is needed again.
        control_plane.take();
        let number = self.control_planes.replace(self.control_planes.get() + 1);
        let programs = self.istio_programs()?;
        let started = Rc::new(ControlPlane::start(&self.lab, programs, number, &self.control_plane_logs)?);
        Ok(Rc::clone(control_plane.insert(started)))
    }

    /// The number of the arrangement that is being prepared, from 1.
    pub(crate) fn next_arrangement(&self) -> usize {
        let number = self.prepared.get() + 1;
        self.prepared.set(number);
        number
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
            host.versions.push(envoy.recorded());
        }
        // Known once a mode of that mesh was asked for.
        if let Some(istio) = self.istio.get() {
            host.versions.extend(istio.control_plane_and_agent().map(Installed::recorded));
        }
        if let Some(ambient) = self.ambient.get() {
            host.versions.push(ambient.ztunnel.recorded());
        }
        host
    }

    fn can_run(&self, mesh: MeshKind, mode: Mode) -> Result<(), EnvironmentError> {
        let operation = format!("run mode {mode}");
        if mesh == MeshKind::Istio {
            return modes::can_run(self, mode);
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
        spec: &DeploymentSpec,
        log_dir: &Path,
    ) -> Result<Box<dyn Arrangement + '_>, EnvironmentError> {
        Ok(Box::new(self.bring_up(spec, log_dir)?))
    }
}

/// What to do where a mode cannot run: nothing stands in for it.
const RUNNABLE: &str = "`mesh: envoy` runs the modes none, gateway and sidecar";
