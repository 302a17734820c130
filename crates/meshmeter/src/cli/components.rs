//! Options that name components of the user's own.

use clap::{Args, ValueHint};
use lab::components::{Component, Overrides};
use std::path::PathBuf;

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

    /// Use this ztunnel, which cannot be installed from here [env: MESHMETER_ZTUNNEL, then PATH]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::ExecutablePath)]
    ztunnel: Option<PathBuf>,

    /// Use this FerretDB as the database [env: MESHMETER_FERRETDB]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::ExecutablePath)]
    ferretdb: Option<PathBuf>,

    /// Use this MongoDB as the database, in FerretDB's place [env: MESHMETER_MONGOD]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::ExecutablePath)]
    mongod: Option<PathBuf>,

    /// Use these services behind a gateway's filters: external authorisation and WAF [env: MESHMETER_FILTER_SERVICES]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::ExecutablePath)]
    filter_services: Option<PathBuf>,

    /// Use this rate limit service [env: MESHMETER_RATELIMIT]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::ExecutablePath)]
    ratelimit: Option<PathBuf>,

    /// Let the rate limit service count in this Redis, in its own store's place [env: MESHMETER_REDIS_SERVER]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::ExecutablePath)]
    redis_server: Option<PathBuf>,
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
