//! The programs and files that a mesh with Istio needs.

use super::proxy_build::proxy_build;
use crate::Result;
use crate::lab::Lab;
use components::{Component, Installed, IstioFiles, Overrides, find, how_to_get, istio_files};
use experiment::environment::{DeploymentSpec, EnvironmentError, ErrorContext};
use experiment::settings::istio::TelemetrySetting;
use mesh::istio::istiod::UPSTREAM_ENVOY;
use results::{ProxyBuild, ProxySetup};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// istiod takes some 100 ms to print its version, longer from a cold disk.
const VERSION_TIMEOUT: Duration = Duration::from_secs(20);

const ISTIOS_ENVOY: &str = "Istio's own proxy comes with `meshmeter lab install --istio VERSION` and serves with `--istio VERSION`; \
                            `--envoy PATH` or MESHMETER_ENVOY names a build of it that you have";

#[derive(Clone, Debug)]
pub struct IstioPrograms {
    pub etcd: Installed,
    pub api_server: Installed,
    pub istiod: Installed,
    pub pilot_agent: Installed,
    pub envoy: Installed,
    /// Origin of that Envoy's build. Sidecars, gateways and waypoints run the same Envoy.
    pub proxy_build: ProxyBuild,
    /// Definitions of the kinds that Istio and the Gateway API add to the API, and the template of Envoy's
    /// bootstrap file.
    pub files: IstioFiles,
}

#[derive(Clone, Debug)]
pub struct AmbientPrograms {
    pub ztunnel: Installed,
    pub ambient_iptables: Installed,
}

impl IstioPrograms {
    pub fn find(overrides: &Overrides) -> Result<Self> {
        let envoy = find(Component::Envoy, overrides)?;
        Ok(Self {
            etcd: find(Component::Etcd, overrides)?,
            api_server: find(Component::ApiServer, overrides)?,
            istiod: find(Component::Istiod, overrides)?,
            pilot_agent: find(Component::PilotAgent, overrides)?,
            proxy_build: proxy_build(&envoy)?,
            envoy,
            files: istio_files(overrides)?,
        })
    }

    /// istiod's settings for the proxies of a deployment. Without an Envoy, simulated proxies receive what
    /// Istio's own proxies would.
    pub fn proxies(&self, spec: &DeploymentSpec) -> Result<ProxySetup> {
        let telemetry = spec.istio.telemetry;
        let is_simulated = telemetry == TelemetrySetting::On && !spec.parts().has_envoy();
        let build = if is_simulated { ProxyBuild::Istio } else { self.proxy_build };
        telemetry.setup(build).ok_or_else(|| {
            let envoy = self.envoy.path.display();
            let reason = format!("{envoy} is upstream's build of Envoy, without Istio's telemetry filters");
            EnvironmentError::new("have Istio's telemetry (`istio.telemetry: on`)", reason)
                .with_hint(format!("{ISTIOS_ENVOY}; `auto` and `off` run with this one"))
        })
    }

    /// Rejects combinations that cannot run waypoints: istiod sends them filters that upstream's Envoy lacks,
    /// unless it is our build.
    pub fn check_waypoints(&self) -> Result<()> {
        if self.proxy_build == ProxyBuild::Istio || knows_upstream_envoy(&self.istiod)? {
            return Ok(());
        }
        let reason = format!(
            "istiod {} sends waypoints filters that only Istio's own proxy has, and {} is upstream's build of Envoy",
            self.istiod.version,
            self.envoy.path.display(),
        );
        let hint = format!("{ISTIOS_ENVOY}; the istiod of `meshmeter lab install` serves upstream's too");
        Err(EnvironmentError::new("run a waypoint", reason).with_hint(hint))
    }

    /// Checks for the pinned definitions of the Gateway API, which waypoints need.
    pub fn check_gateway_api(&self) -> Result<()> {
        if self.files.gateway_api_crds.is_some() {
            return Ok(());
        }
        let component = Component::IstioFiles;
        let reason = format!("it comes with {component}, which is not installed");
        Err(EnvironmentError::new("use the Gateway API's definitions", reason)
            .with_hint(how_to_get(component)))
    }

    pub fn control_plane_and_agent(&self) -> [&Installed; 4] {
        [&self.istiod, &self.pilot_agent, &self.api_server, &self.etcd]
    }
}

/// True if this istiod is the one that `meshmeter lab install` builds, which can send upstream's Envoys
/// filters that they have. It rejects values of the variable that are not booleans.
fn knows_upstream_envoy(istiod: &Installed) -> Result<bool> {
    let output = istiod
        .answer_within(&["version"], &[(UPSTREAM_ENVOY, "?")], VERSION_TIMEOUT)
        .context(format!("query {} for its support of upstream's Envoy", istiod.path.display()))?;
    let refused = String::from_utf8_lossy(&output.stderr).contains(UPSTREAM_ENVOY);
    Ok(!output.status.success() && refused)
}

/// First bytes of every WebAssembly module: magic number and format version (WebAssembly core specification,
/// 5.5.16).
const WASM_PREAMBLE: &[u8] = b"\0asm\x01\0\0\0";

/// Makes the WebAssembly module that an experiment names readable for its proxies.
pub(crate) fn expose_wasm_module(lab: &Lab, file: &Path) -> Result<PathBuf> {
    let operation = format!("read {}", file.display());
    if !fs::read(file).context(operation.clone())?.starts_with(WASM_PREAMBLE) {
        return Err(EnvironmentError::new(operation, "it is not a WebAssembly module")
            .with_hint("`istio.wasm` names a module in binary form, as compilers write it"));
    }
    lab.expose_file(file)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use components::Origin;
    use experiment::environment::error_chain;

    /// A release's istiod ignores the variable; ours exits because of its value.
    const RELEASED: &str = "echo 'version.BuildInfo{Version:\"1.30.1\"}'";
    const OURS: &str = "echo \"MESHMETER_UPSTREAM_ENVOY: true or false is expected, not $MESHMETER_UPSTREAM_ENVOY\" >&2; exit 2";

    pub fn program(folder: &Path, component: Component, script: &str) -> Installed {
        let path = test_support::program(folder, component.name(), script);
        Installed { component, path: path.into(), version: "1.30.1".to_owned(), origin: Origin::Option }
    }

    fn programs(folder: &Path, istiod: &str, proxy_build: ProxyBuild) -> IstioPrograms {
        let any = |component| program(folder, component, "exit 1");
        IstioPrograms {
            etcd: any(Component::Etcd),
            api_server: any(Component::ApiServer),
            istiod: program(folder, Component::Istiod, istiod),
            pilot_agent: any(Component::PilotAgent),
            envoy: any(Component::Envoy),
            proxy_build,
            files: IstioFiles {
                istio_crds: folder.into(),
                gateway_api_crds: Some(folder.into()),
                bootstrap_template: folder.into(),
                recorded: None,
            },
        }
    }

    #[test]
    fn waypoints_run_with_istios_envoy_or_our_istiod() {
        let folder = tempfile::tempdir().unwrap();
        let check = |istiod, build| programs(folder.path(), istiod, build).check_waypoints();
        check(RELEASED, ProxyBuild::Istio).unwrap();
        check(OURS, ProxyBuild::Upstream).unwrap();
        let error = check(RELEASED, ProxyBuild::Upstream).unwrap_err();
        let text = error_chain(&error);
        assert!(
            text.contains("istiod 1.30.1 sends waypoints filters that only Istio's own proxy has"),
            "{text}"
        );
        assert!(error.hint.unwrap().contains("--envoy PATH"));
    }

    #[test]
    fn telemetry_is_rejected_without_istios_filters() {
        use experiment::MeshKind;
        use results::Mode;
        let folder = tempfile::tempdir().unwrap();
        let upstream = programs(folder.path(), OURS, ProxyBuild::Upstream);
        let proxies = |mode| {
            let mut spec = DeploymentSpec::new(MeshKind::Istio, mode);
            std::sync::Arc::make_mut(&mut spec.istio).telemetry = TelemetrySetting::On;
            upstream.proxies(&spec)
        };
        assert!(error_chain(&proxies(Mode::Sidecar).unwrap_err()).contains("is upstream's build of Envoy"));
        let simulated = ProxySetup { build: ProxyBuild::Istio, telemetry: true };
        assert_eq!(proxies(Mode::ControlPlane).unwrap(), simulated);
        assert_eq!(proxies(Mode::Ambient).unwrap(), simulated);
    }
}
