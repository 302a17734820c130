//! Reach of settings: the modes that a key of the experiment file can touch.
//!
//! A setting of a component touches the modes that run this component. Cells that a factor cannot touch are measured
//! once, and not per value of the factor ([`crate::plan`]); no effect of the factor is estimated there. The scenario of the
//! direct path has no gateway: its cells are touched like those of mode `none`.

use crate::dataplane::{DataPlane, Entry, Exit, ModeParts};
use crate::definition::Experiment;
use crate::mesh_kind::MeshKind;
use crate::settings::ingress::Scenario;
use results::{Factors, Mode};

/// Factor that takes the gateway out of the path by one of its values.
const SCENARIO: &str = "ingress.scenario";

impl MeshKind {
    /// True if the setting with this dotted key can change what a mode does under this mesh. The load, the services
    /// and the topology touch every mode.
    #[must_use]
    pub fn touches(self, mode: Mode, key: &str) -> bool {
        self.touches_parts(mode, self.parts(mode), key)
    }

    fn touches_parts(self, mode: Mode, parts: ModeParts, key: &str) -> bool {
        let (section, name) = key.split_once('.').unwrap_or((key, ""));
        match section {
            "gateway" | "ingress" => parts.entry != Entry::Direct,
            // The proxies of a fleet are simulated; its witnesses are sidecars.
            _ if mode == Mode::ControlPlane => {
                !matches!(key, "components.ztunnel" | "istio.ztunnel" | "istio.workload-keys")
                    && !key.starts_with("istio.ingress")
            }
            "proxy" => parts.has_proxies() && (name != "mtls" || parts.has_peers()),
            "components" => match name {
                "ztunnel" => parts.has_ztunnel(),
                "envoy" | "pilot-agent" => parts.has_envoy(),
                _ => parts.has_proxies(),
            },
            "istio" => parts.has_proxies() && is_of_istio(name, parts),
            _ => true,
        }
    }
}

/// True if a key of the section `istio` applies to the parts of a mode that has proxies.
fn is_of_istio(name: &str, parts: ModeParts) -> bool {
    let section = name.split('.').next().unwrap_or_default();
    match (section, name) {
        ("ingress", _) => parts.entry == Entry::Ingress,
        // In modes with requests, the control plane is shared by a whole run.
        ("istiod", _) => false,
        (_, "ztunnel") => parts.has_ztunnel(),
        (_, "sidecar-scope") => parts.has_sidecars(),
        (_, "telemetry" | "workload-keys" | "dns-capture") => parts.has_envoy(),
        (_, "authorization.identities") => parts.exit == Exit::None,
        (_, "tracing" | "lua" | "retries" | "timeout" | "http2-upgrade")
        | (_, "authorization.paths" | "authorization.jwt") => parts.reads_requests(),
        _ => true,
    }
}

impl ModeParts {
    /// True if any proxy of the mesh runs.
    fn has_proxies(self) -> bool {
        self.has_peers() || self.entry != Entry::Direct
    }

    fn has_ztunnel(self) -> bool {
        self.data_plane.proxies().node.is_some()
    }

    /// True if a proxy has another one to speak with: a gateway without a mesh behind it has none.
    fn has_peers(self) -> bool {
        !matches!(self.data_plane, DataPlane::None | DataPlane::Cilium)
    }
}

impl Experiment {
    /// True if the factor with this key can touch a mode.
    #[must_use]
    pub fn touches(&self, mode: Mode, key: &str) -> bool {
        self.mesh.touches(mode, key)
    }

    /// True if the factor with this key can touch the cells of a mode with these values of other factors.
    #[must_use]
    pub fn touches_cells(&self, mode: Mode, factors: &Factors, key: &str) -> bool {
        let scenario = if key == SCENARIO { Scenario::default() } else { self.scenario(factors) };
        self.mesh.touches_parts(mode, self.mesh.parts_in(mode, scenario), key)
    }

    /// Scenario of the gateway with these values of factors.
    fn scenario(&self, factors: &Factors) -> Scenario {
        let given = factors.get(SCENARIO).map(ToString::to_string);
        let named = given.and_then(|name| Scenario::ALL.into_iter().find(|one| one.name() == name));
        named.unwrap_or(self.ingress.scenario)
    }

    /// True if the factor with this key can touch any mode of the experiment.
    pub(crate) fn touches_any_mode(&self, key: &str) -> bool {
        self.modes.iter().any(|mode| self.touches(*mode, key))
    }

    /// Those of the factors that can touch a mode, with their values: the part of a combination that its cells of this mode
    /// are known by.
    #[must_use]
    pub fn touching(&self, mode: Mode, factors: &Factors) -> Factors {
        let touching = factors.iter().filter(|(key, _)| self.touches_cells(mode, factors, key));
        touching.map(|(key, value)| (key.clone(), value.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touched(mesh: MeshKind, key: &str) -> Vec<&'static str> {
        mesh.modes().filter(|mode| mesh.touches(*mode, key)).map(Mode::name).collect()
    }

    #[test]
    fn settings_of_proxies_touch_modes_with_these_proxies() {
        use MeshKind::{Cilium, Envoy, Linkerd};
        assert_eq!(touched(Envoy, "proxy.workers"), ["gateway", "sidecar"]);
        assert_eq!(touched(Envoy, "proxy.mtls"), ["sidecar"], "a gateway alone has no peer");
        assert_eq!(touched(Envoy, "gateway.cpu"), ["gateway"]);
        assert_eq!(touched(Envoy, "components.envoy"), ["gateway", "sidecar"]);
        assert_eq!(touched(Linkerd, "proxy.cpu"), ["sidecar"]);
        assert_eq!(touched(Cilium, "proxy.workers"), [""; 0]);
        for key in ["load.payload", "server.delay", "client.cpu", "topology.hops"] {
            assert_eq!(touched(Envoy, key), ["none", "gateway", "sidecar"], "{key}");
        }
    }

    #[test]
    fn settings_of_istio_touch_modes_that_apply_them() {
        let touched = |key: &str| touched(MeshKind::Istio, key);
        let ambient = ["ambient", "ambient-waypoint"];
        assert_eq!(touched("istio.ztunnel"), ambient);
        assert_eq!(touched("components.ztunnel"), ambient);
        assert_eq!(touched("istio.ingress.tls"), ["ingress"]);
        assert_eq!(touched("ingress.domains"), ["ingress"]);
        assert_eq!(touched("istio.istiod.replicas"), ["control-plane"]);
        assert_eq!(touched("istio.lua"), ["sidecar", "ambient-waypoint", "ingress", "control-plane"]);
        let is_left = |key: &str, mode| !touched(key).contains(&mode);
        assert!(
            ["proxy.mtls", "components.istio", "istio.background-services.services", "istio.telemetry"]
                .into_iter()
                .all(|key| is_left(key, "none"))
        );
        assert!(is_left("components.envoy", "ambient") && is_left("istio.telemetry", "ambient"));
        assert!(is_left("istio.workload-keys", "control-plane"));
        assert!(!is_left("istio.background-services.services", "ambient"));
    }

    #[test]
    fn direct_path_is_touched_like_no_mesh() {
        let text = "{name: t, mesh: istio, modes: [ingress], load: {rate: 100, payload: [1KiB, 4KiB]}, \
                    ingress: {scenario: [no-filters, direct], domains: [1, 20]}, gateway: {cpu: [500m, 1]}, \
                    proxy: {access-log: [off, json]}}";
        let experiment = Experiment::parse(text, "t").unwrap();
        let touching = |scenario: &str| {
            let all = experiment.each_combination().map(|(factors, _)| factors);
            let mut own = all.filter(|factors| factors[SCENARIO].to_string() == scenario);
            let touching = experiment.touching(Mode::Ingress, &own.next().unwrap());
            touching.into_keys().collect::<Vec<_>>()
        };
        assert_eq!(touching("direct"), ["ingress.scenario", "load.payload"]);
        assert_eq!(touching("no-filters").len(), 5);
    }
}
