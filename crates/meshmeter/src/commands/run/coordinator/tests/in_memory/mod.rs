//! In-memory environment for tests of code that runs on an environment: no processes, no files, no real time.
//!
//! [`InMemory`] follows a script of [`ScriptedTrial`]s. Each deployment that does not come up consumes one,
//! and so does each trial that begins. The clock advances only while a caller waits for an event or sleeps.
//! Clones share all state, so that a test can inspect what a run did to the environment.

mod deployment;
mod script;
mod world;

pub use script::{
    ScriptedComponent, ScriptedDriver, ScriptedError, ScriptedFailure, ScriptedGateway, ScriptedTrial,
};
pub use world::Request;

use self::deployment::InMemoryDeployment;
use self::world::World;
use experiment::MeshKind;
use experiment::environment::deploy::{Deployment, Environment};
use experiment::environment::{Clock, ComponentsSettings, DeploymentSpec, EnvironmentError};
use results::{Host, Mode};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

/// Environment that follows a script.
#[derive(Clone, Debug)]
pub struct InMemory(Rc<RefCell<World>>);

impl InMemory {
    /// Creates an environment whose trials follow the script, then repeat `afterwards`.
    #[must_use]
    pub fn new(script: impl IntoIterator<Item = ScriptedTrial>, afterwards: ScriptedTrial) -> Self {
        Self(Rc::new(RefCell::new(World {
            script: script.into_iter().collect(),
            afterwards,
            now: Duration::ZERO,
            stop_requested: false,
            requests: Vec::new(),
            deployments: 0,
        })))
    }

    /// Requests received so far, in order.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.0.borrow().requests.clone()
    }

    /// Number of deployments that are up.
    #[must_use]
    pub fn deployments(&self) -> usize {
        self.0.borrow().deployments
    }

    /// True if the script has requested the end of the run.
    #[must_use]
    pub fn stop_requested(&self) -> bool {
        self.0.borrow().stop_requested
    }
}

impl Clock for InMemory {
    fn now(&self) -> Duration {
        self.0.borrow().now
    }

    fn sleep(&self, duration: Duration) {
        self.0.borrow_mut().now += duration;
    }
}

impl Environment for InMemory {
    fn host(&self) -> Host {
        Host::default()
    }

    fn check_mode(&self, _: MeshKind, _: Mode, _: &ComponentsSettings) -> Result<(), EnvironmentError> {
        Ok(())
    }

    fn deploy(
        &mut self,
        spec: &DeploymentSpec,
        label: &str,
    ) -> Result<Box<dyn Deployment + '_>, EnvironmentError> {
        let mut world = self.0.borrow_mut();
        world.requests.push(Request::Deploy(spec.mode, label.to_owned()));
        let next = world.script.front().unwrap_or(&world.afterwards);
        let (error, stops) = (next.deploy_error.clone(), next.stop_at == Some(Duration::ZERO));
        world.stop_requested |= stops;
        if let Some(error) = error {
            world.next_trial();
            return Err(error.raise());
        }
        world.deployments += 1;
        drop(world);
        Ok(Box::new(InMemoryDeployment::new(&self.0, spec)))
    }
}
