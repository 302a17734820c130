//! The lab as a place where trials run: `experiment`'s `Environment` on one machine.
//! Read [`LocalLab`] first, then [`crate::deployment`]: what it deploys. Under `mesh: envoy` every proxy has a static file;
//! under `mesh: istio` a control plane configures them, which lives from its first deployment on ([`crate::istio`]).

use crate::Result;
use crate::certificates::RunAuthority;
use crate::components::{Component, Installed, Overrides, find};
use crate::context::DeploymentContext;
use crate::deployment::{LabDeployment, deploy};
use crate::istio::{AmbientPrograms, ControlPlane, IstioPrograms};
use crate::lab::Lab;
use crate::observe::HostProc;
use crate::observe::host::{Sources, describe};
use crate::{dataplane, entry, exit, redirect};
use experiment::dataplane::{DataPlane, ModeParts};
use experiment::environment::deploy::{Deployment, Environment};
use experiment::environment::{DeploymentSpec, EnvironmentError, ErrorContext, ProgressSink};
use experiment::schema::Host;
use experiment::{MeshKind, Mode};
use std::cell::{Cell, OnceCell, RefCell};
use std::path::{Path, PathBuf};
use std::rc::Rc;

#[derive(Clone, Debug)]
pub struct Programs {
    /// The `meshmeter` binary, which is the service (`serve`) and the generator (`load`).
    pub meshmeter: PathBuf,
    /// Components that the user named instead of installed ones.
    pub overrides: Overrides,
}

#[derive(Debug)]
pub struct LocalLab {
    pub(crate) lab: Lab,
    programs: Programs,
    authority: RunAuthority,
    pub(crate) host_proc: HostProc,
    /// Found once: asking Envoy for its version takes longer than a pod.
    envoy: OnceCell<Installed>,
    /// What `mesh: istio` runs, found once too.
    istio: OnceCell<IstioPrograms>,
    ambient: OnceCell<AmbientPrograms>,
    /// Deployments so far; keeps their private directories and namespaces apart.
    deployments: Cell<usize>,
    /// The control plane of `mesh: istio`, from its first trial on.
    control_plane: RefCell<Option<Rc<ControlPlane>>>,
    control_planes: Cell<usize>,
    /// Where their logs go: they outlive the trial that started them.
    control_plane_logs: PathBuf,
    logs: PathBuf,
    pub(crate) progress: ProgressSink,
}

impl LocalLab {
    pub fn new(lab: Lab, programs: Programs) -> Result<Self> {
        let host_proc = HostProc::new(lab.outer_proc())?;
        let control_plane_logs = lab.private_dir().join("control-plane-logs");
        let logs = lab.private_dir().join("logs");
        let authority = RunAuthority::create().context("make the run's certificate authority")?;
        Ok(Self {
            lab,
            programs,
            authority,
            host_proc,
            envoy: OnceCell::new(),
            istio: OnceCell::new(),
            ambient: OnceCell::new(),
            deployments: Cell::new(0),
            control_plane: RefCell::new(None),
            control_planes: Cell::new(0),
            control_plane_logs,
            logs,
            progress: ProgressSink::default(),
        })
    }

    /// By default logs go with the lab. For use before the first trial; the directory need not exist yet.
    pub fn keep_control_plane_logs_in(&mut self, folder: PathBuf) {
        self.control_plane_logs = folder;
    }

    /// Each deployment and trial has its label's directory in there. For use before the first deployment.
    pub fn keep_logs_in(&mut self, directory: PathBuf) {
        self.logs = directory;
    }

    pub(crate) fn log_dir(&self, label: &str) -> PathBuf {
        self.logs.join(label)
    }

    pub fn report_progress_to(&mut self, progress: ProgressSink) {
        self.progress = progress;
    }

    /// [`Environment::deploy`] with a concrete type and log directory. On an error everything started is taken down again.
    pub fn bring_up(&self, spec: &DeploymentSpec, log_dir: &Path) -> Result<LabDeployment<'_>> {
        Environment::check_mode(self, spec.mesh, spec.mode)?;
        deploy(self, spec, log_dir).map_err(|error| match spec.mesh {
            MeshKind::Envoy => error,
            MeshKind::Istio => self.cause_of(error),
        })
    }

    pub(crate) fn deployment_context<'a>(
        &'a self,
        spec: &'a DeploymentSpec,
        log_dir: &'a Path,
    ) -> DeploymentContext<'a> {
        let number = self.deployments.get() + 1;
        self.deployments.set(number);
        DeploymentContext {
            lab: &self.lab,
            meshmeter: &self.programs.meshmeter,
            authority: &self.authority,
            spec,
            log_dir,
            number,
        }
    }

    /// A dead or hanging control plane explains more than a webhook that does not respond or a proxy that is not ready.
    fn cause_of(&self, error: EnvironmentError) -> EnvironmentError {
        match self.running_control_plane() {
            Some(control_plane) if !self.lab.stop_requested() => control_plane.cause_of(error),
            _ => error,
        }
    }

    /// The control plane of `mesh: istio`, where one is up.
    pub fn running_control_plane(&self) -> Option<Rc<ControlPlane>> {
        self.control_plane.borrow().clone()
    }

    pub(crate) fn envoy(&self) -> Result<&Installed> {
        if let Some(envoy) = self.envoy.get() {
            return Ok(envoy);
        }
        let envoy = find(Component::Envoy, &self.programs.overrides)?;
        Ok(self.envoy.get_or_init(|| envoy))
    }

    pub(crate) fn meshmeter(&self) -> &Path {
        &self.programs.meshmeter
    }

    pub(crate) fn istio_programs(&self) -> Result<&IstioPrograms> {
        if let Some(programs) = self.istio.get() {
            return Ok(programs);
        }
        let programs = IstioPrograms::find(self.envoy()?, &self.programs.overrides)?;
        Ok(self.istio.get_or_init(|| programs))
    }

    pub(crate) fn ambient_programs(&self) -> Result<&AmbientPrograms> {
        if let Some(programs) = self.ambient.get() {
            return Ok(programs);
        }
        let programs = AmbientPrograms::find(&self.programs.overrides)?;
        Ok(self.ambient.get_or_init(|| programs))
    }

    /// The control plane, started where there is none yet or where the last one has died, stands still or hangs.
    pub(crate) fn control_plane(&self) -> Result<Rc<ControlPlane>> {
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

    fn check_mode(&self, mesh: MeshKind, mode: Mode) -> Result<()> {
        let refused = |reason: &str, hint: &str| {
            Err(EnvironmentError::new(format!("run mode {mode}"), reason).with_hint(hint))
        };
        let ModeParts { data_plane, entry, exit } = mode.parts(mesh);
        match mesh {
            MeshKind::Envoy if mode.is_ambient() => refused(
                "it needs ztunnel and a control plane, and this lab runs Envoy with static files only",
                RUNNABLE,
            ),
            MeshKind::Envoy if !mesh.modes().contains(&mode) => {
                refused("it needs a control plane, and this lab runs Envoy with static files only", RUNNABLE)
            }
            MeshKind::Istio if mode == Mode::Gateway => refused(
                "a single proxy without a mesh is not Istio's",
                "`mesh: envoy` runs it; Istio's own is `ingress`",
            ),
            MeshKind::Istio if data_plane == DataPlane::None => {
                // Addresses of Services lead to their pods by rules.
                self.istio_programs()?;
                redirect::programs().map(drop)
            }
            _ => {
                dataplane::check(data_plane, self, mode)?;
                entry::check(entry, self)?;
                exit::check(exit, mode)
            }
        }
    }

    fn deploy(&mut self, spec: &DeploymentSpec, label: &str) -> Result<Box<dyn Deployment + '_>> {
        Ok(Box::new(self.bring_up(spec, &self.log_dir(label))?))
    }
}

const RUNNABLE: &str = "`mesh: envoy` runs the modes none, gateway and sidecar";
