//! The API of the cluster that a kubeconfig names.

use crate::{Result, in_pod};
use experiment::environment::{EnvironmentError, ErrorContext as _};
use mesh::kubernetes::client::ApiClient;
use mesh::kubernetes::kubeconfig;
use serde_json::{Value, json};
use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The user's choice of a cluster.
#[derive(Clone, Debug, Default)]
pub struct Connection {
    /// If absent: `KUBECONFIG`, else `~/.kube/config`, else the account of the pod in which this process
    /// runs.
    pub kubeconfig: Option<PathBuf>,
    /// If absent: the kubeconfig's current context.
    pub context: Option<String>,
}

/// A cluster whose API server responds.
#[derive(Clone, Debug)]
pub struct Connected {
    pub api: Arc<ApiClient>,
    /// Version of Kubernetes.
    pub version: String,
    /// Name of the context.
    pub context: String,
}

impl Connection {
    pub fn open(&self) -> Result<Connected> {
        let mut config = match kubeconfig::read(self.kubeconfig.as_deref().map(Path::new)) {
            Err(error) if self.kubeconfig.is_none() && env::var_os("KUBECONFIG").is_none() => {
                in_pod::kubeconfig().ok_or(error)?
            }
            read => read?,
        };
        if let Some(context) = &self.context {
            use_context(&mut config, context)?;
        }
        // A run's objects are removed even after it was stopped, so requests are never cancelled.
        let api = Arc::new(ApiClient::new(&config, || Ok(()))?);
        let context = config["current-context"].as_str().unwrap_or_default().to_owned();
        let version =
            api.version().context(format!("reach {} (context {context})", kubeconfig::server(&config)))?;
        Ok(Connected { api, version, context })
    }
}

/// Selects another context of a kubeconfig as the current one.
fn use_context(kubeconfig: &mut Value, context: &str) -> Result<()> {
    let names: Vec<&str> = kubeconfig["contexts"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|context| context["name"].as_str())
        .collect();
    if !names.contains(&context) {
        let hint =
            if names.is_empty() { "it has none".to_owned() } else { format!("it has {}", names.join(", ")) };
        let reason = "the kubeconfig has no such context";
        return Err(EnvironmentError::new(format!("use context {context}"), reason).with_hint(hint));
    }
    kubeconfig["current-context"] = json!(context);
    Ok(())
}
