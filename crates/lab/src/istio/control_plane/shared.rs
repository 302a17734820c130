//! Parts of the mesh that the trials of a run share: the background services, and the collector of spans.

use super::ControlPlane;
use crate::Result;
use crate::container::{Container, ContainerSpec};
use crate::lab::Lab;
use crate::pod::{Pod, PodSpec};
use experiment::MeshSettings;
use experiment::environment::{ErrorContext, ProgressSink};
use mesh::admin::Admin;
use mesh::istio::background::METRICS_PATH;
use mesh::istio::objects::telemetry::{TRACE_COLLECTOR, TRACE_COLLECTOR_PORT};
use mesh::kubernetes::workloads::{Membership, ServicePort, Workload};
use mesh::names::SYSTEM_NAMESPACE;
use std::path::Path;
use std::time::Duration;

/// The collector starts within milliseconds, longer on a busy machine.
const READY_TIMEOUT: Duration = Duration::from_secs(20);

impl ControlPlane {
    /// Provides, once, what an experiment's settings need in addition to the objects of its trials.
    pub(crate) fn provide(
        &self,
        lab: &Lab,
        meshmeter: &Path,
        settings: &MeshSettings,
        progress: &ProgressSink,
    ) -> Result<()> {
        let mut shared = self.shared.borrow_mut();
        let istiod = self.istiods.borrow().first().metrics.clone();
        let metrics = || istiod.get_long(METRICS_PATH).context("look at what istiod has taken up");
        shared.background.change(self.api(), &metrics, settings.surroundings, progress)?;
        if settings.tracing_fraction.is_some() && shared.collector.is_none() {
            shared.collector = Some(self.start_collector(lab, meshmeter)?);
        }
        Ok(())
    }

    pub(crate) fn trace_collector(&self) -> Option<Admin> {
        let shared = self.shared.borrow();
        let (pod, _) = shared.collector()?;
        Some(pod.admin(TRACE_COLLECTOR, TRACE_COLLECTOR_PORT))
    }

    fn start_collector(&self, lab: &Lab, meshmeter: &Path) -> Result<(Pod, Container)> {
        let mut pod = lab.create_pod(&PodSpec::new(TRACE_COLLECTOR))?;
        let log = self.log_dir.join(format!("{TRACE_COLLECTOR}.log"));
        let container = pod.start(&ContainerSpec {
            arguments: ["collect-spans".to_owned(), format!("--listen=0.0.0.0:{TRACE_COLLECTOR_PORT}")]
                .map(Into::into)
                .to_vec(),
            ..ContainerSpec::new(TRACE_COLLECTOR, meshmeter, log)
        })?;
        pod.wait_until_listening(&container, TRACE_COLLECTOR_PORT, READY_TIMEOUT)?;
        let workload =
            Workload::single(TRACE_COLLECTOR, SYSTEM_NAMESPACE, pod.address(), Membership::Outside);
        let ports = [ServicePort { name: "http-spans", port: TRACE_COLLECTOR_PORT }];
        let mut objects = workload.objects();
        objects.extend(workload.service_objects(&ports));
        self.api().apply(&objects)?;
        self.api().apply_status(&workload.pod_statuses())?;
        Ok((pod, container))
    }
}
