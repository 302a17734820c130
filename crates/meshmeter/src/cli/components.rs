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
        ];
        options.into_iter().filter_map(|(component, path)| Some((component, path.clone()?))).collect()
    }
}
