//! A deployment that serves one trial with one driver, as [`Arrangement`] has it.

use super::LabDeployment;
use super::driver::Drivers;
use crate::container::{ContainerSpec, ContainerUser, ErrorOutput};
use experiment::environment::deploy::{Deployment as _, DriverLoad, Footprint, HealthProbe};
use experiment::environment::{Arrangement, EnvironmentError, Observation, SentLoad, Snapshot, WindowUsage};
use experiment::schema::ComponentUsage;
use std::collections::BTreeMap;
use std::process::ChildStderr;
use std::time::Duration;

/// The generator's name as a component.
pub const GENERATOR: &str = "generator";

/// How long the generator may take to end when it is told to at once.
const GENERATOR_GRACE: Duration = Duration::from_secs(1);

/// The window of the trial so far.
#[derive(Debug, Default)]
pub(super) struct Window {
    open: Option<Snapshot>,
    usage: Option<WindowUsage>,
}

impl LabDeployment<'_> {
    fn generator(&self) -> Result<String, EnvironmentError> {
        let driver = self.spec.topology.drivers.first();
        driver
            .map(|driver| driver.name.clone())
            .ok_or_else(|| EnvironmentError::new("find the generator", "the topology has no drivers"))
    }
}

impl Arrangement for LabDeployment<'_> {
    fn url(&self) -> String {
        self.url()
    }

    fn client_arguments(&self) -> Vec<String> {
        self.client_arguments()
    }

    fn start_generator(&mut self, arguments: &[String]) -> Result<ChildStderr, EnvironmentError> {
        let log_dir = self.trial.log_dir().to_path_buf();
        self.begin(&log_dir)?;
        let (name, driver) = (self.generator()?, &self.spec.topology.drivers[0]);
        let pod = &mut self.parts.pods.workloads[driver.at].pods[0].pod;
        let container = pod.start(&ContainerSpec {
            name: name.clone(),
            program: self.lab.meshmeter().to_path_buf(),
            arguments: arguments.iter().map(Into::into).collect(),
            environment: BTreeMap::new(),
            cpu_limit_cores: self.spec.client_cpu_limit_cores,
            user: ContainerUser::Lab,
            working_directory: None,
            output_log: log_dir.join(format!("{name}.log")),
            error_output: ErrorOutput::Piped,
        })?;
        let events = container.take_error_output();
        self.drivers = Drivers::of(name, pod.name(), container);
        events.ok_or_else(|| EnvironmentError::new("start the generator", "its standard error is no pipe"))
    }

    fn interrupt_generator(&mut self) {
        if let Ok(name) = self.generator() {
            self.drivers.interrupt(&name);
        }
    }

    fn window_opened(&mut self) -> Result<(), EnvironmentError> {
        self.prepared.open = Some(self.snapshot()?);
        Ok(())
    }

    fn window_closed(&mut self) -> Result<(), EnvironmentError> {
        let operation = "read the components as the window closes";
        let open = self.prepared.open.take();
        let open = open.ok_or_else(|| EnvironmentError::new(operation, "the window was never opened"))?;
        self.prepared.usage = Some(self.snapshot()?.usage_since(&open));
        Ok(())
    }

    fn failed_component(&mut self) -> Option<(String, String)> {
        self.failed()
    }

    fn failed_or_silent_component(&mut self) -> Option<(String, String)> {
        self.failure(HealthProbe::Responses).map(|failure| (failure.component, failure.how))
    }

    fn wait_generator(&mut self, at_most: Duration) -> Result<Option<i32>, EnvironmentError> {
        let operation = "wait for the generator";
        let generator = self.drivers.containers().next().map(|(.., container)| container);
        let generator = generator.ok_or_else(|| EnvironmentError::new(operation, "it was never started"))?;
        if let Some(status) = generator.wait(at_most) {
            return Ok(status.code());
        }
        generator.stop(GENERATOR_GRACE)?;
        let waited = format!("it had not ended after {:.1} s and was stopped", at_most.as_secs_f64());
        Err(EnvironmentError::new(operation, waited))
    }

    fn finish(mut self: Box<Self>, sent: &SentLoad) -> Observation {
        let drivers = self.spec.topology.drivers.iter();
        let sent: Vec<DriverLoad> =
            drivers.map(|driver| DriverLoad { driver: driver.name.clone(), sent: *sent }).collect();
        let evidence = self.end(&sent);
        let (mut components, machine) = match self.prepared.usage.take() {
            Some(usage) => (usage.components, usage.machine),
            None => (Vec::new(), None),
        };
        for usage in &mut components {
            if let Some(footprint) = evidence.footprints.get(&usage.name) {
                add(footprint, usage);
            }
        }
        Observation {
            components,
            path: evidence.path,
            machine,
            log_tails: evidence.log_tails,
            hints: evidence.hints,
            push: evidence.push,
        }
    }
}

fn add(footprint: &Footprint, usage: &mut ComponentUsage) {
    usage.memory_before_load_bytes = footprint.memory_before_load_bytes;
    usage.memory_after_load_bytes = footprint.memory_after_load_bytes;
    usage.memory_anonymous_before_load_bytes = footprint.memory_anonymous_before_load_bytes;
    usage.memory_anonymous_after_load_bytes = footprint.memory_anonymous_after_load_bytes;
    usage.holdings = footprint.holdings.clone();
}
