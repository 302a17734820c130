//! The section `fleet` of an experiment: simulated proxies, the mesh that they are configured with, and its
//! changes.
//!
//! The types of this module are also used for the options of `meshmeter fleet`.

mod changes;
mod held;
mod keys;
mod proxies;
mod rules;

pub use changes::{ChangeKind, RepeatedChange};
pub use held::{HeldTopology, HeldWorkload};
pub use keys::{MAX_OBJECTS, MAX_THREADS, MAX_WITNESSES};
pub use proxies::{FleetSecurity, ProxyKind, ProxyKinds, XdsVariant};
pub use rules::{FleetContradiction, SettingNames};

use results::units::Churn;
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of proxies in a fleet.
pub const MAX_PROXIES: usize = 50_000;
/// Maximum number of namespaces in its mesh.
pub const MAX_NAMESPACES: usize = 10_000;
/// Maximum length of the measurement, equal to that of a load.
pub const MAX_DURATION: Duration = Duration::from_secs(3600);

/// The section `fleet`.
#[derive(Clone, Debug, PartialEq)]
pub struct FleetSettings {
    /// Simulated proxies.
    pub proxies: usize,
    /// Kinds of proxies.
    pub kinds: ProxyKinds,
    /// xDS variant.
    pub xds: XdsVariant,
    /// Authentication of proxies to the control plane.
    pub security: FleetSecurity,
    /// Topology that defines services, pods and namespaces; absent: given as numbers.
    pub topology: Option<Arc<HeldTopology>>,
    /// Number of services in the mesh.
    pub services: usize,
    /// Number of pods in the mesh, spread over the services.
    pub pods: usize,
    /// Number of namespaces, which share services and pods evenly.
    pub namespaces: usize,
    /// Number of VirtualServices, each for a different service. Gateways have as many of their own.
    pub virtual_services: usize,
    /// Number of DestinationRules, each for a different service.
    pub destination_rules: usize,
    /// Number of gateways.
    pub gateways: usize,
    /// Number of authorization policies.
    pub policies: usize,
    /// True if sidecars are scoped to their own namespace.
    pub scope: bool,
    /// True if ztunnels only subscribe to addresses that they need.
    pub on_demand: bool,
    /// Number of real sidecars next to the fleet, whose times are compared with the fleet's.
    pub witnesses: usize,
    /// Continuous replacement of pods.
    pub churn: Churn,
    /// Changes to make and time, in this order.
    pub changes: Vec<RepeatedChange>,
    /// Minimum time from one change to the next.
    pub between: Duration,
    /// Minimum measurement of the configured fleet, including churn and changes.
    pub duration: Duration,
    /// Maximum time for a change to reach the last proxy, and for the first configurations.
    pub settle: Duration,
    /// Connections opened per second; absent: as fast as they are accepted.
    pub connect_rate: Option<f64>,
    /// Threads of the fleet; absent: chosen automatically.
    pub threads: Option<usize>,
}

impl Default for FleetSettings {
    fn default() -> Self {
        let change = |kind, count| RepeatedChange { kind, count };
        Self {
            proxies: 100,
            kinds: ProxyKinds::default(),
            xds: XdsVariant::default(),
            security: FleetSecurity::default(),
            topology: None,
            services: 100,
            pods: 200,
            namespaces: 10,
            virtual_services: 0,
            destination_rules: 0,
            gateways: 0,
            policies: 0,
            scope: false,
            on_demand: false,
            witnesses: 0,
            churn: Churn::None,
            changes: vec![
                change(ChangeKind::EndpointAdded, 5),
                change(ChangeKind::ServiceAdded, 2),
                change(ChangeKind::ServiceEntry, 2),
            ],
            between: Duration::from_secs(1),
            duration: Duration::ZERO,
            settle: Duration::from_secs(60),
            connect_rate: None,
            threads: None,
        }
    }
}

impl FleetSettings {
    /// Takes services, pods and namespaces from a topology.
    #[must_use]
    pub fn with_topology(self, topology: HeldTopology) -> Self {
        Self {
            services: topology.workloads.len(),
            pods: topology.pods(),
            namespaces: topology.namespaces(),
            topology: Some(Arc::new(topology)),
            ..self
        }
    }

    /// Numbers that the size of a fleet is made of, with their keys.
    pub(crate) fn sizes(&mut self) -> [(&'static str, &mut usize); 7] {
        [
            ("proxies", &mut self.proxies),
            ("services", &mut self.services),
            ("pods", &mut self.pods),
            ("virtual-services", &mut self.virtual_services),
            ("destination-rules", &mut self.destination_rules),
            ("gateways", &mut self.gateways),
            ("policies", &mut self.policies),
        ]
    }

    /// Number of proxies of this kind.
    #[must_use]
    pub fn count_of(&self, kind: ProxyKind) -> usize {
        let counts = self.kinds.of(self.proxies).unwrap_or_default();
        counts.into_iter().find_map(|(one, number)| (one == kind).then_some(number)).unwrap_or(0)
    }

    /// Total number of changes.
    #[must_use]
    pub fn number_of_changes(&self) -> usize {
        self.changes.iter().map(|change| change.count).sum()
    }

    /// Approximate time from the first complete configuration to the end: changes, or churn if that takes
    /// longer.
    #[must_use]
    pub fn window(&self) -> Duration {
        let changes = u32::try_from(self.number_of_changes()).unwrap_or(u32::MAX);
        self.duration.max(self.between.saturating_mul(changes))
    }

    /// True if istiod pushes a change to some proxy of the fleet. On-demand ztunnels only receive policies.
    #[must_use]
    pub fn is_told_of(&self, change: ChangeKind) -> bool {
        let told = |proxy: &ProxyKind| {
            let asks = *proxy == ProxyKind::Ztunnel && self.on_demand;
            let is_pushed = !asks || !change.is_of_mesh() || change == ChangeKind::RootPolicy;
            self.count_of(*proxy) > 0 && change.reaches(*proxy) && is_pushed
        };
        ProxyKind::ALL.iter().any(told)
    }

    /// Number of VirtualServices that apply within the mesh: none if all proxies are gateways, which receive only
    /// their own.
    #[must_use]
    pub fn virtual_services_in_mesh(&self) -> usize {
        if self.count_of(ProxyKind::Gateway) == self.proxies { 0 } else { self.virtual_services }
    }

    /// Number of VirtualServices of services at the gateways, in addition to that of each domain.
    #[must_use]
    pub fn virtual_services_of_gateways(&self) -> usize {
        if self.count_of(ProxyKind::Gateway) == 0 { 0 } else { self.virtual_services }
    }

    /// Number of objects in the mesh: services with their EndpointSlices, pods, and Istio objects.
    #[must_use]
    pub fn objects(&self) -> usize {
        let scopes = if self.scope { self.namespaces } else { 0 };
        2 * self.services
            + self.pods
            + 2 * self.namespaces
            + self.virtual_services_in_mesh()
            + self.virtual_services_of_gateways()
            + self.destination_rules
            + self.gateways
            + self.policies
            + scopes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_read_back_and_kind_without_number_takes_rest() {
        let kinds: ProxyKinds = "ztunnel=100, sidecar".parse().unwrap();
        assert_eq!(kinds.to_string(), "ztunnel=100,sidecar");
        assert_eq!(kinds.of(150).unwrap(), [(ProxyKind::Ztunnel, 100), (ProxyKind::Sidecar, 50)]);
        assert_eq!(kinds.of(99).unwrap_err(), "`ztunnel=100,sidecar` are 100 proxies of 99");
        let numbers: ProxyKinds = "gateway=2,waypoint=3".parse().unwrap();
        assert!(numbers.of(5).is_ok());
        assert_eq!(numbers.of(6).unwrap_err(), "`gateway=2,waypoint=3` are 5 proxies of 6");
        for refused in ["envoy", "sidecar,gateway", "sidecar=0", "sidecar=1,sidecar=2", "", "sidecar=x"] {
            assert!(refused.parse::<ProxyKinds>().is_err(), "{refused}");
        }
    }

    #[test]
    fn changes_read_back_with_their_numbers() {
        for text in ["endpoint-added", "service-entry=3"] {
            assert_eq!(text.parse::<RepeatedChange>().unwrap().to_string(), text);
        }
        let slip = "endpoint-aded".parse::<RepeatedChange>().unwrap_err();
        assert_eq!(slip.expected, "did you mean endpoint-added?");
        assert!("service-entry=0".parse::<RepeatedChange>().is_err());
        assert_eq!(FleetSettings::default().number_of_changes(), 9);
    }
}
