//! Parts of the mesh that the trials of a run share: the background services, and the collector of spans.

use super::ControlPlane;
use crate::Result;
use crate::once::once;
use crate::pod::{Pod, PodSpec};
use crate::running::Supporting;
use experiment::MeshSettings;
use experiment::environment::{ErrorContext, ProgressSink};
use experiment::topology::Resources;
use mesh::admin::Admin;
use mesh::istio::background::METRICS_PATH;
use mesh::istio::objects::telemetry::{TRACE_COLLECTOR, TRACE_COLLECTOR_PORT};
use mesh::kubernetes::workloads::{Membership, ServicePort, Workload};
use mesh::names::SYSTEM_NAMESPACE;
use results::Role;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// The collector starts within milliseconds, longer on a busy machine.
const READY_TIMEOUT: Duration = Duration::from_secs(20);

impl ControlPlane {
    /// Provides, once, what an experiment's settings need in addition to the objects of its trials.
    pub(crate) fn provide(
        &self,
        meshmeter: &Path,
        settings: &MeshSettings,
        progress: &ProgressSink,
    ) -> Result<()> {
        let istiod = self.istiods.borrow().first().metrics.clone();
        let metrics = || istiod.get_long(METRICS_PATH).context("query the metrics of istiod");
        self.background.borrow_mut().change(self.api(), &metrics, settings.background_services, progress)?;
        if settings.tracing_fraction.is_some() {
            once(&self.collector, || self.start_collector(meshmeter))?;
        }
        Ok(())
    }

    pub(crate) fn trace_collector(&self) -> Option<Admin> {
        let (pod, _) = self.collector.get()?;
        Some(pod.admin(TRACE_COLLECTOR, TRACE_COLLECTOR_PORT))
    }

    fn start_collector(&self, meshmeter: &Path) -> Result<(Pod, Supporting)> {
        let mut pod = self.starter.lab.create_pod(&PodSpec::new(TRACE_COLLECTOR))?;
        let arguments = ["collect-spans".to_owned(), format!("--listen=0.0.0.0:{TRACE_COLLECTOR_PORT}")];
        let program = (TRACE_COLLECTOR, meshmeter);
        let container =
            self.starter.start(&mut pod, program, None, arguments, BTreeMap::new(), Resources::default())?;
        pod.wait_until_listening(&container, TRACE_COLLECTOR_PORT, READY_TIMEOUT)?;
        let workload =
            Workload::single(TRACE_COLLECTOR, SYSTEM_NAMESPACE, pod.address(), Membership::Outside);
        let ports = [ServicePort { name: "http-spans", port: TRACE_COLLECTOR_PORT }];
        let objects = [workload.objects(), workload.service_objects(&ports)].concat();
        self.api().apply(&objects)?;
        self.api().set_status(&workload.pod_statuses(), &|_| ())?;
        let probe = Some((TRACE_COLLECTOR_PORT, "/counters"));
        let part = Supporting::new(Role::ControlPlane, &pod, container, probe);
        Ok((pod, part))
    }
}
