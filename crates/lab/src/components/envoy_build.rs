//! Whose build an Envoy is: upstream's, or Istio's own with Istio's extensions.
//!
//! It is asked rather than guessed at: Envoy validates a configuration with a filter that only Istio's build has, which
//! opens no port and takes a tenth of a second. Programs that start Envoy in turn are seen through.

use super::{Installed, answer_within};
use experiment::environment::EnvironmentError;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(20);

/// Istio's filter that finds out who the peer is, on which its telemetry rests.
const ISTIO_FILTER: &str = "io.istio.http.peer_metadata.Config";

/// What Envoy says of a type that it was not built with.
const UNKNOWN: &str = "Didn't find a registered implementation";

/// Whether this Envoy has Istio's extensions (metadata exchange, `istio_stats`), as Istio's own proxy build does.
///
/// # Errors
/// Where Envoy does not run, or says something that answers neither way.
pub fn has_istio_extensions(envoy: &Installed) -> Result<bool, EnvironmentError> {
    has_http_filter(&envoy.path, ISTIO_FILTER)
}

fn has_http_filter(envoy: &Path, type_name: &str) -> Result<bool, EnvironmentError> {
    let operation = || format!("ask {} whether it has {type_name}", envoy.display());
    let mut command = Command::new(envoy);
    command.args(["--mode", "validate", "--log-level", "warning", "--config-yaml"]);
    command.arg(configuration(type_name).to_string());
    let output =
        answer_within(&mut command, LIMIT).map_err(|error| EnvironmentError::new(operation(), error))?;
    if output.status.success() {
        return Ok(true);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains(UNKNOWN) && said.contains(type_name) {
        return Ok(false);
    }
    let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    Err(EnvironmentError::new(operation(), format!("it ended with {}: {last}", output.status)))
}

/// A listener whose only filter of interest is of that type, empty.
fn configuration(type_name: &str) -> Value {
    let typed = |name: &str| format!("type.googleapis.com/{name}");
    let filter = json!({
        "name": "asked",
        "typed_config": {"@type": typed("xds.type.v3.TypedStruct"), "type_url": typed(type_name), "value": {}}
    });
    let router = json!({
        "name": "router",
        "typed_config": {"@type": typed("envoy.extensions.filters.http.router.v3.Router")}
    });
    let manager = json!({
        "@type": typed("envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"),
        "stat_prefix": "asked",
        "route_config": {"virtual_hosts": []},
        "http_filters": [filter, router]
    });
    json!({"static_resources": {"listeners": [{
        "name": "asked",
        "address": {"socket_address": {"address": "127.0.0.1", "port_value": 0}},
        "filter_chains": [{"filters": [{"name": "http", "typed_config": manager}]}]
    }]}})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::components::testing::program;
    use crate::components::{Component, Overrides, find};

    #[test]
    fn the_installed_envoy_is_upstreams() {
        let envoy = find(Component::Envoy, &Overrides::default());
        let envoy = envoy.expect("this test needs Envoy: `meshmeter lab install envoy`");
        assert!(!has_istio_extensions(&envoy).unwrap());
        let known = has_http_filter(&envoy.path, "envoy.extensions.filters.http.grpc_web.v3.GrpcWeb");
        assert!(known.unwrap(), "the question is one that an Envoy with the filter answers with yes");
    }

    #[test]
    fn an_answer_to_something_else_is_no_answer() {
        let folder = tempfile::tempdir().unwrap();
        let path = program(folder.path(), "envoy", "echo 'option not known' >&2; exit 1");
        let error = has_http_filter(Path::new(&path), ISTIO_FILTER).unwrap_err();
        assert!(error.source.unwrap().to_string().ends_with("option not known"));
    }
}
