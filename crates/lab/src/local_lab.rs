//! A lab as what runs share: programs already found, certificate authority, control plane, directories of logs.

use crate::Result;
use crate::certificates::RunAuthority;
use crate::context::DeploymentContext;
use crate::filters::FilterPrograms;
use crate::istio::control_plane::ControlPlanePlan;
use crate::istio::{ControlPlane, IstioPrograms};
use crate::lab::Lab;
use crate::observe::HostProc;
use crate::programs::{ChosenPrograms, once};
use components::{Component, Installed, Overrides, find};
use experiment::environment::{ComponentsSettings, DeploymentSpec, ErrorContext, ProgressSink};
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
    /// Of each choice of components that was asked for.
    chosen_programs: RefCell<Vec<Rc<ChosenPrograms>>>,
    /// What scenarios with filters run.
    pub(crate) filters: OnceCell<FilterPrograms>,
    /// Other istiods that stand beside the installed or named one, to be compared with it.
    pub(crate) istiods_beside: Vec<Installed>,
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

    /// By default logs go with the lab. For use before the first trial; the directory need not exist yet.
    pub fn keep_control_plane_logs_in(&mut self, folder: PathBuf) {
        self.control_plane_logs = folder;
    }

    /// Each deployment and trial has its label's directory in there. For use before the first deployment.
    pub fn keep_logs_in(&mut self, directory: PathBuf) {
        self.logs = directory;
    }

    /// Lets another istiod stand beside that of each control plane that is studied. For use before the first deployment.
    pub fn compare_with_istiod(&mut self, program: PathBuf) -> Result<()> {
        let named = Overrides::from_iter([(Component::Istiod, program)]);
        self.istiods_beside.push(find(Component::Istiod, &named)?);
        Ok(())
    }

    pub(crate) fn log_dir(&self, label: &str) -> PathBuf {
        self.logs.join(label)
    }

    pub fn report_progress_to(&mut self, progress: ProgressSink) {
        self.progress = progress;
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

    /// The control plane of `mesh: istio`, where one is up.
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

    /// All choices so far.
    pub(crate) fn chosen_programs(&self) -> Vec<Rc<ChosenPrograms>> {
        self.chosen_programs.borrow().clone()
    }

    pub(crate) fn overrides(&self) -> &Overrides {
        &self.programs.overrides
    }

    pub(crate) fn meshmeter(&self) -> &Path {
        &self.programs.meshmeter
    }

    pub(crate) fn filter_programs(&self) -> Result<&FilterPrograms> {
        once(&self.filters, || FilterPrograms::find(&self.programs.overrides))
    }

    /// The control plane of a deployment, started if there is none yet, the last one was for another plan or other programs
    /// or has failed, or it is studied itself.
    pub(crate) fn control_plane(
        &self,
        spec: &DeploymentSpec,
        programs: &IstioPrograms,
    ) -> Result<Rc<ControlPlane>> {
        let plan = ControlPlanePlan::new(spec, programs)?;
        let mut control_plane = self.control_plane.borrow_mut();
        let reusable = |running: &&Rc<ControlPlane>| !plan.is_studied && *running.plan() == plan;
        if let Some(running) = control_plane.as_ref().filter(reusable) {
            let answers = running.check_answers();
            self.lab.check_not_stopped()?;
            if answers.is_ok() {
                return Ok(Rc::clone(running));
            }
        }
        // The last one goes first: its pod's name is needed again.
        control_plane.take();
        let number = self.control_planes.replace(self.control_planes.get() + 1);
        let (beside, logs) = (&self.istiods_beside, &self.control_plane_logs);
        let started = ControlPlane::start(&self.lab, programs, beside, plan, number, logs)?;
        let started = Rc::new(started);
        Ok(Rc::clone(control_plane.insert(started)))
    }
}
