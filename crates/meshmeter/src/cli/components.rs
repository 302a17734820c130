//! Options that select components: programs of the user, and releases of Istio.

use clap::{Args, ValueHint};
use components::{Component, DEFAULT_HUB, HUB_VARIABLE, Hub, Overrides};
use experiment::environment::EnvironmentError;
use std::ffi::OsString;
use std::path::PathBuf;

/// Registries with Istio's releases.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Releases of Istio")]
pub struct HubArgs {
    /// Registry with the images of Istio's releases, such as registry.example:5000/istio; uses the
    /// credentials of `docker login` [env: MESHMETER_REGISTRY] [default: docker.io/istio]
    #[arg(long, value_name = "HUB")]
    registry: Option<String>,

    /// Registry with the charts of the releases [default: ghcr.io/istio/release/charts; HUB/charts if
    /// --registry names another hub]
    #[arg(long, value_name = "PREFIX")]
    registry_charts: Option<String>,

    /// Also trust the CAs in FILE (PEM) for these registries
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    registry_cacert: Option<PathBuf>,
}

impl HubArgs {
    pub fn hub(&self) -> Result<Hub, EnvironmentError> {
        let variable = std::env::var(HUB_VARIABLE).ok().filter(|value| !value.is_empty());
        let prefix = self.registry.as_deref().or(variable.as_deref()).unwrap_or(DEFAULT_HUB);
        Hub::new(prefix, self.registry_cacert.clone())
    }

    pub fn charts(&self, hub: &Hub) -> Result<Hub, EnvironmentError> {
        self.registry_charts.as_deref().map_or_else(|| Ok(hub.charts()), |prefix| self.other_hub(prefix))
    }

    /// Another registry, with the same CAs.
    pub fn other_hub(&self, prefix: &str) -> Result<Hub, EnvironmentError> {
        Hub::new(prefix, self.registry_cacert.clone())
    }

    /// The options as command-line arguments.
    pub fn arguments(&self) -> Vec<OsString> {
        let registry = self.registry.iter().flat_map(|hub| ["--registry".into(), hub.into()]);
        let roots = self.registry_cacert.iter().flat_map(|file| ["--registry-cacert".into(), file.into()]);
        let charts = self.registry_charts.iter().flat_map(|hub| ["--registry-charts".into(), hub.into()]);
        registry.chain(charts).chain(roots).collect()
    }
}

/// Source of releases that are not installed.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Releases of Istio")]
pub struct ReleaseArgs {
    /// Do not fetch releases or Envoy: fail if one is not installed
    #[arg(long)]
    pub offline: bool,

    #[command(flatten)]
    pub hub: HubArgs,
}

/// Programs to run instead of the installed ones; the run records their versions.
#[derive(Debug, Args)]
#[command(next_help_heading = "Components of your own")]
pub struct OverrideArgs {
    /// Use this Envoy, upstream's or Istio's own build [env: MESHMETER_ENVOY]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::ExecutablePath)]
    envoy: Option<PathBuf>,

    /// Use this istiod (pilot-discovery) [env: MESHMETER_ISTIOD]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::ExecutablePath)]
    istiod: Option<PathBuf>,

    /// Use this pilot-agent [env: MESHMETER_PILOT_AGENT]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::ExecutablePath)]
    pilot_agent: Option<PathBuf>,

    /// Use this ztunnel [env: MESHMETER_ZTUNNEL; then that of the release that --istio names, then PATH]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::ExecutablePath)]
    ztunnel: Option<PathBuf>,

    /// Use this FerretDB as the database [env: MESHMETER_FERRETDB]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::ExecutablePath)]
    ferretdb: Option<PathBuf>,

    /// Use this MongoDB as the database, instead of FerretDB [env: MESHMETER_MONGOD]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::ExecutablePath)]
    mongod: Option<PathBuf>,

    /// Use these services behind a gateway's filters: external authorization and WAF [env:
    /// MESHMETER_FILTER_SERVICES]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::ExecutablePath)]
    filter_services: Option<PathBuf>,

    /// Use this rate limit service [env: MESHMETER_RATELIMIT]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::ExecutablePath)]
    ratelimit: Option<PathBuf>,

    /// Let the rate limit service use this Redis, instead of its own store [env: MESHMETER_REDIS_SERVER]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::ExecutablePath)]
    redis_server: Option<PathBuf>,
}

impl OverrideArgs {
    pub fn is_given(&self) -> bool {
        Overrides::from(self) != Overrides::default()
    }
}

impl From<&OverrideArgs> for Overrides {
    fn from(args: &OverrideArgs) -> Self {
        let options = [
            (Component::Envoy, &args.envoy),
            (Component::Istiod, &args.istiod),
            (Component::PilotAgent, &args.pilot_agent),
            (Component::Ztunnel, &args.ztunnel),
            (Component::FerretDb, &args.ferretdb),
            (Component::Mongod, &args.mongod),
            (Component::FilterServices, &args.filter_services),
            (Component::RateLimit, &args.ratelimit),
            (Component::RedisServer, &args.redis_server),
        ];
        options.into_iter().filter_map(|(component, path)| Some((component, path.clone()?))).collect()
    }
}
