//! Fleets: how they reach the control plane, and the changes that they request.

use super::LabDeployment;
use crate::Result;
use crate::istio::ControlPlane;
use crate::istio::control_plane::{ETCD_METRICS_PORT, happening};
use crate::pod::Pod;
use experiment::environment::{EnvironmentError, error_chain};
use mesh::names::STATISTICS_PORT;
use results::{FleetAnswer, FleetAsk, Happening};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::rc::Rc;

/// Extra addresses of a fleet's pod: each is a link that can go down separately.
const SOURCE_ADDRESSES: usize = 4;

impl LabDeployment<'_> {
    /// Arguments of `meshmeter fleet` that locate the control plane.
    pub(super) fn fleet_arguments(&self, fleet: &str, pod: &Pod) -> Result<Vec<String>> {
        let control_plane = self.control_plane().ok_or_else(|| {
            EnvironmentError::new(format!("start {fleet}"), "this deployment has no control plane")
        })?;
        let istiods = control_plane.discoveries().into_iter().map(|istiod| format!("--istiod={istiod}"));
        let spread = if self.lab.istiods_beside.is_empty() { "shared" } else { "each" };
        let mut arguments: Vec<String> = istiods.collect();
        arguments.extend([
            format!("--spread={spread}"),
            format!("--kubeconfig={}", control_plane.kubeconfig().display()),
            format!("--etcd-metrics=http://{}:{ETCD_METRICS_PORT}/metrics", control_plane.pod().address()),
            "--environment-answers".to_owned(),
        ]);
        let members = self.spec.topology.workloads.iter().zip(&self.pods.workloads);
        let members = members.filter(|(workload, _)| workload.in_mesh);
        for running in members.flat_map(|(_, running)| &running.pods) {
            arguments.push(format!("--witness={}:{STATISTICS_PORT}", running.pod.address()));
        }
        for _ in 0..SOURCE_ADDRESSES {
            arguments.push(format!("--source-address={}", pod.add_address()?));
        }
        Ok(arguments)
    }

    /// Carries out a fleet's request and answers it.
    pub(super) fn carry_out(&mut self, fleet: &str, ask: &FleetAsk) {
        let done = match ask {
            FleetAsk::IstiodRestart => self.change_istiods(ControlPlane::restart_istiods),
            FleetAsk::IstiodAdded => self.change_istiods(ControlPlane::add_istiod),
            FleetAsk::IstiodRemoved => self.change_istiods(ControlPlane::remove_istiod),
            FleetAsk::LinkDown { addresses } => self.change_links(fleet, addresses, true),
            FleetAsk::LinkUp { addresses } => self.change_links(fleet, addresses, false),
        };
        let istiods = self.control_plane().map(|control_plane| control_plane.discoveries());
        let istiods = istiods.unwrap_or_default().iter().map(ToString::to_string).collect();
        let (happened, failure) = match done {
            Ok(happened) => (happened, None),
            Err(error) => (Vec::new(), Some(error_chain(&error))),
        };
        self.drivers.answer(fleet, &FleetAnswer { happened, istiods, failure });
    }

    fn change_istiods(
        &mut self,
        change: impl FnOnce(&ControlPlane) -> Result<Vec<Happening>>,
    ) -> Result<Vec<Happening>> {
        let control_plane = self.control_plane();
        let control_plane = control_plane
            .ok_or_else(|| EnvironmentError::new("change the istiods", "there is no control plane"))?;
        let changed = change(&control_plane);
        // Also after a failure: processes may have changed.
        self.supporting = control_plane.supporting();
        changed
    }

    /// Starts or stops dropping packets to and from these addresses of the fleet's pod.
    fn change_links(&mut self, fleet: &str, addresses: &[Ipv4Addr], is_down: bool) -> Result<Vec<Happening>> {
        for address in addresses {
            if is_down {
                self.trial.links_down.insert(*address);
            } else {
                self.trial.links_down.remove(address);
            }
        }
        let pod = self.drivers.containers().find(|(name, ..)| *name == fleet).map(|(_, pod, _)| pod);
        let pod = self.pods().into_iter().find(|other| pod == Some(other.name()));
        let pod = pod.ok_or_else(|| {
            EnvironmentError::new(format!("change the links of {fleet}"), "its pod is gone")
        })?;
        pod.load_rules(link_rules(&self.trial.links_down))?;
        let kind = if is_down { "link-down" } else { "link-up" };
        Ok(addresses.iter().map(|address| happening(kind, &address.to_string())).collect())
    }

    fn control_plane(&self) -> Option<Rc<ControlPlane>> {
        self.namespaces.as_ref()?;
        self.lab.running_control_plane()
    }
}

/// Rules that drop packets of these addresses. Loading them replaces those loaded before.
fn link_rules(down: &BTreeSet<Ipv4Addr>) -> String {
    let rules = down
        .iter()
        .map(|address| format!("-A INPUT -d {address}/32 -j DROP\n-A OUTPUT -s {address}/32 -j DROP\n"));
    format!("*filter\n{}COMMIT\n", rules.collect::<String>())
}
