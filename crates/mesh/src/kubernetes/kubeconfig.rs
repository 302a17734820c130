//! Reading and writing of kubeconfigs.

use crate::Result;
use experiment::environment::{EnvironmentError, ErrorContext};
use kube::config::{Kubeconfig, KubeconfigError};
use serde_json::{Value, json};
use std::path::Path;

const HINT: &str = "name one with --kubeconfig FILE, or in KUBECONFIG";

/// Reads a kubeconfig: the given file, otherwise those in `KUBECONFIG`, otherwise `~/.kube/config`.
pub fn read(path: Option<&Path>) -> Result<Value> {
    let (operation, kubeconfig) = match path {
        Some(path) => (format!("read the kubeconfig {}", path.display()), Kubeconfig::read_from(path)),
        None => ("read the default kubeconfig".to_owned(), Kubeconfig::read()),
    };
    let kubeconfig = kubeconfig.map_err(|error| {
        // The library's message repeats the path, or lacks it if there is no home directory.
        let cause = match error {
            KubeconfigError::ReadConfig(cause, path) if operation.contains("default") => {
                format!("{}: {cause}", path.display())
            }
            KubeconfigError::ReadConfig(cause, _) => cause.to_string(),
            error => error.to_string(),
        };
        EnvironmentError::new(operation.clone(), cause).with_hint(HINT)
    })?;
    if kubeconfig.clusters.is_empty() {
        return Err(EnvironmentError::new(operation, "it names no cluster").with_hint(HINT));
    }
    serde_json::to_value(kubeconfig).context(operation)
}

/// URL of the API server in the current context.
pub fn server(kubeconfig: &Value) -> &str {
    of_cluster(kubeconfig, "server").unwrap_or("the API server")
}

/// URL of its proxy; absent if the kubeconfig names none.
pub(super) fn proxy(kubeconfig: &Value) -> Option<&str> {
    of_cluster(kubeconfig, "proxy-url").filter(|url| !url.is_empty())
}

/// Value of a key of the current context's cluster.
fn of_cluster<'a>(kubeconfig: &'a Value, key: &str) -> Option<&'a str> {
    let named = |list: &str, name: &Value| {
        kubeconfig[list].as_array().into_iter().flatten().find(|one| one["name"] == *name)
    };
    let context = named("contexts", &kubeconfig["current-context"])?;
    named("clusters", &context["context"]["cluster"])?["cluster"][key].as_str()
}

/// A kubeconfig with one cluster, one user and one context, all of the same name so that it can be merged
/// with others (`KUBECONFIG=a:b`). `authority_data` is the API server's certificate authority in base64.
pub fn kubeconfig(
    name: &str,
    server: &str,
    namespace: Option<&str>,
    authority_data: &str,
    user: &Value,
) -> Value {
    let mut context = json!({"cluster": name, "user": name});
    if let Some(namespace) = namespace {
        context["namespace"] = json!(namespace);
    }
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {
            "server": server,
            "certificate-authority-data": authority_data,
        }}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": context}],
        "current-context": name,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::environment::error_chain;

    #[test]
    fn read_names_the_file_and_what_is_wrong_with_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config");
        let failure = || error_chain(&read(Some(&path)).unwrap_err());
        let operation = format!("read the kubeconfig {}: ", path.display());
        assert_eq!(failure(), format!("{operation}No such file or directory (os error 2)"));
        std::fs::write(&path, "clusters: [").unwrap();
        assert!(failure().starts_with(&operation));
        std::fs::write(&path, "apiVersion: v1\nkind: Config\n").unwrap();
        assert_eq!(failure(), format!("{operation}it names no cluster"));
    }

    #[test]
    fn read_returns_what_was_written() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config");
        let user = json!({"token": "secret"});
        let written = kubeconfig("lab", "https://127.0.0.1:6443", None, "YQ==", &user);
        std::fs::write(&path, written.to_string()).unwrap();
        let read = read(Some(&path)).unwrap();
        assert_eq!(read["clusters"][0]["cluster"]["server"], "https://127.0.0.1:6443");
        assert_eq!(read["users"][0]["user"]["token"], "secret");
    }
}
