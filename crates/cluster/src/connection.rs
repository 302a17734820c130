//! The API of the cluster that a kubeconfig leads to.

use crate::{Result, in_pod};
use experiment::environment::ErrorContext as _;
use mesh::kubernetes::client::ApiClient;
use mesh::kubernetes::kubeconfig;
use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Which cluster, as the user names it.
#[derive(Clone, Debug, Default)]
pub struct Connection {
    /// Absent: `KUBECONFIG`, else `~/.kube/config`, else the account of the pod in which this process runs.
    pub kubeconfig: Option<PathBuf>,
    /// Absent: the kubeconfig's current one.
    pub context: Option<String>,
}

/// A cluster whose API server responds.
#[derive(Clone, Debug)]
pub struct Connected {
    pub api: Arc<ApiClient>,
    /// Version of Kubernetes.
    pub version: String,
    /// The context's name.
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
            kubeconfig::use_context(&mut config, context)?;
        }
        // What a run has written is removed after it was stopped too: requests never fail by themselves.
        let api = Arc::new(ApiClient::new(&config, || Ok(()))?);
        let context = config["current-context"].as_str().unwrap_or_default().to_owned();
        let version =
            api.version().context(format!("reach {} (context {context})", kubeconfig::server(&config)))?;
        Ok(Connected { api, version, context })
    }
}
