//! The part of a lab that trials of a run share: programs found so far, certificate authority, control plane,
//! log directories.

use crate::Result;
use crate::certificates::RunAuthority;
use crate::context::DeploymentContext;
use crate::istio::control_plane::ControlPlanePlan;
use crate::istio::{ControlPlane, IstioPrograms};
use crate::lab::Lab;
use crate::observe::HostProc;
use crate::once::once;
use crate::programs::{ChosenPrograms, FilterPrograms};
use components::{Installed, Overrides};
use experiment::environment::{ComponentsSettings, DeploymentSpec, ErrorContext, ProgressSink};
use std::cell::{Cell, OnceCell, RefCell};
use std::path::{Path, PathBuf};
use std::rc::Rc;

#[derive(Clone, Debug)]
pub struct Programs {
    /// The `meshmeter` binary. It is both the service (`serve`) and the generator (`load`).
    pub meshmeter: PathBuf,
    /// Programs that the user named in place of installed ones.
    pub overrides: Overrides,
}

#[derive(Debug)]
pub struct LocalLab {
    pub(crate) lab: Lab,
    pub(crate) programs: Programs,
    authority: RunAuthority,
    pub(crate) host_proc: HostProc,
    /// One entry per requested choice of components.
    chosen_programs: RefCell<Vec<Rc<ChosenPrograms>>>,
    /// Programs behind the filters of a scenario.
    pub(crate) filters: OnceCell<FilterPrograms>,
    /// Further istiods to compare with the installed or named one; they run beside it. They must be set before
    /// the first deployment.
    pub istiods_beside: Vec<Installed>,
    /// Number of deployments so far. It keeps their private directories and namespaces apart.
    deployments: Cell<usize>,
    /// The control plane of `mesh: istio`; `None` before its first trial.
    control_plane: RefCell<Option<Rc<ControlPlane>>>,
    control_planes: Cell<usize>,
    /// Directory of the control planes' logs, which outlive the trial that started them. By default it is
    /// removed with the lab. Another one must be set before the first deployment; it need not exist yet.
    pub control_plane_logs: PathBuf,
    /// Directory of all other logs. Each deployment and trial gets a subdirectory named by its label. By
    /// default it is removed with the lab. Another one must be set before the first deployment.
    pub logs: PathBuf,
    pub progress: ProgressSink,
}

impl LocalLab {
    pub fn new(lab: Lab, programs: Programs) -> Result<Self> {
        let host_proc = HostProc::new(lab.host_proc_path())?;
        let control_plane_logs = lab.private_dir().join("control-plane-logs");
        let logs = lab.private_dir().join("logs");
        let authority = RunAuthority::create().context("make the run's certificate authority")?;
        Ok(Self {
            lab,
            programs,
            authority,
            host_proc,
            chosen_programs: RefCell::default(),
            filters: OnceCell::new(),
            istiods_beside: Vec::new(),
            deployments: Cell::new(0),
            control_plane: RefCell::new(None),
            control_planes: Cell::new(0),
            control_plane_logs,
            logs,
            progress: ProgressSink::default(),
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
            overrides: &self.programs.overrides,
            spec,
            log_dir,
            number,
        }
    }

    /// The control plane of `mesh: istio`, if one is up.
    pub fn running_control_plane(&self) -> Option<Rc<ControlPlane>> {
        self.control_plane.borrow().clone()
    }

    /// Programs of deployments with these components.
    pub(crate) fn programs_for(&self, components: &ComponentsSettings) -> Result<Rc<ChosenPrograms>> {
        let mut all = self.chosen_programs.borrow_mut();
        if let Some(chosen) = all.iter().find(|chosen| chosen.are_for(components)) {
            return Ok(Rc::clone(chosen));
        }
        let chosen = Rc::new(ChosenPrograms::new(components, &self.programs.overrides)?);
        all.push(Rc::clone(&chosen));
        Ok(chosen)
    }

    /// All choices of components so far.
    pub(crate) fn chosen_programs(&self) -> Vec<Rc<ChosenPrograms>> {
        self.chosen_programs.borrow().clone()
    }

    pub(crate) fn filter_programs(&self) -> Result<&FilterPrograms> {
        once(&self.filters, || FilterPrograms::find(&self.programs.overrides))
    }

    /// The control plane for a deployment. It is started if there is none yet, if the last one was for
    /// another plan or other programs or has failed, or if the control plane itself is measured.
    pub(crate) fn control_plane(
        &self,
        spec: &DeploymentSpec,
        programs: &IstioPrograms,
    ) -> Result<Rc<ControlPlane>> {
        let plan = ControlPlanePlan::new(spec, programs)?;
        let mut control_plane = self.control_plane.borrow_mut();
        let reusable = |running: &&Rc<ControlPlane>| !plan.is_studied && *running.plan() == plan;
        if let Some(running) = control_plane.as_ref().filter(reusable) {
            let answers = running.check_responsive();
            self.lab.check_not_stopped()?;
            if answers.is_ok() {
                return Ok(Rc::clone(running));
            }
        }
        // Stop the last one first: the new one needs its pod's name.
        control_plane.take();
        let number = self.control_planes.replace(self.control_planes.get() + 1);
        let (beside, logs) = (&self.istiods_beside, &self.control_plane_logs);
        let started = ControlPlane::start(&self.lab, programs, beside, plan, number, logs)?;
        let started = Rc::new(started);
        Ok(Rc::clone(control_plane.insert(started)))
    }
}
