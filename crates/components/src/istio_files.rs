//! Files that the lab takes from Go modules: definitions of objects, and pilot-agent's bootstrap template.

use super::go_program::ISTIO;
use super::go_toolchain;
use super::manifest::sha256_of_texts;
use super::supervised_command::{self, Look};
use crate::Result;
use experiment::environment::{EnvironmentError, ErrorContext as _};
use results::ComponentVersion;
use serde::Deserialize;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Absolute paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IstioFiles {
    /// CustomResourceDefinitions of Istio's own objects.
    pub istio_crds: PathBuf,
    /// CustomResourceDefinitions of the Gateway API's experimental channel, with which Istio is tested.
    /// Always the pinned ones; absent if a release is in use and they are not installed.
    pub gateway_api_crds: Option<PathBuf>,
    pub bootstrap_template: PathBuf,
    /// Origin of Istio's definitions if a release is in use.
    pub recorded: Option<ComponentVersion>,
}

pub(super) const ISTIO_CRDS: &str = "istio-crds.yaml";
pub(super) const GATEWAY_API_CRDS: &str = "gateway-api-crds.yaml";
pub(super) const BOOTSTRAP_TEMPLATE: &str = "envoy_bootstrap.json";

/// Both modules are some 30 MB together.
const DOWNLOAD_TIMEOUT: Duration = Duration::from_secs(900);
const ISTIO_MODULE: &str = "istio.io/istio";
const GATEWAY_API_MODULE: &str = "sigs.k8s.io/gateway-api";
const ISTIO_CRDS_SOURCE: &str = "manifests/charts/base/files/crd-all.gen.yaml";
const BOOTSTRAP_TEMPLATE_SOURCE: &str = "tools/packaging/common/envoy_bootstrap.json";

/// The channel with which Istio is tested; istiod needs it for UDP routes.
const GATEWAY_API_CRDS_SOURCE: &str = "config/crd/experimental";

/// Prefix of files with definitions. The others are a policy about upgrades and a list.
const CRD_PREFIX: &str = "gateway.networking.";
const POLICY: &str = "gateway.networking.k8s.io_vap_safeupgrades.yaml";
pub(super) const FILES: [&str; 3] = [ISTIO_CRDS, GATEWAY_API_CRDS, BOOTSTRAP_TEMPLATE];

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ListedModule {
    path: String,
    dir: Option<PathBuf>,
}

pub(super) fn recipe() -> String {
    sha256_of_texts(&[
        ISTIO.go_mod,
        ISTIO_CRDS_SOURCE,
        BOOTSTRAP_TEMPLATE_SOURCE,
        GATEWAY_API_CRDS_SOURCE,
        POLICY,
    ])
}

/// Has Go download the modules (verified against go.sum) and copies the files into `package`.
pub(super) fn copy(go: &str, scratch: &Path, package: &Path, look: &mut Look<'_>) -> Result<String> {
    let module = ISTIO.write(scratch)?;
    let made_by = go_toolchain::version(go, &module, ISTIO.go_mod, look)?;
    let mut command = go_toolchain::command(go, &module);
    command.args(["mod", "download", "-json", ISTIO_MODULE, GATEWAY_API_MODULE]);
    let operation = "download the Go modules that hold Istio's files";
    let hint = "it needs the Go module proxy (network, GOPROXY)";
    let ended = supervised_command::run_well(&mut command, operation, hint, DOWNLOAD_TIMEOUT, look)?;
    let modules = listed(&ended.output.join("\n")).context(operation)?;
    let folder_of = |path: &str| {
        let module = modules.iter().find(|module| module.path == path);
        module.and_then(|module| module.dir.as_deref()).ok_or_else(|| {
            EnvironmentError::new(operation, format!("Go does not say where it has put {path}"))
        })
    };
    let (istio, gateway_api) = (folder_of(ISTIO_MODULE)?, folder_of(GATEWAY_API_MODULE)?);
    copy_files(istio, gateway_api, package).context("copy Istio's files from Go's module cache")?;
    Ok(made_by)
}

fn listed(text: &str) -> serde_json::Result<Vec<ListedModule>> {
    serde_json::Deserializer::from_str(text).into_iter().collect()
}

fn copy_files(istio: &Path, gateway_api: &Path, package: &Path) -> io::Result<()> {
    let read = |path: PathBuf| {
        fs::read_to_string(&path)
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
    };
    // Written as new files, since files in the module cache are read-only and a copy would be too.
    fs::write(package.join(ISTIO_CRDS), read(istio.join(ISTIO_CRDS_SOURCE))?)?;
    fs::write(package.join(BOOTSTRAP_TEMPLATE), read(istio.join(BOOTSTRAP_TEMPLATE_SOURCE))?)?;
    let folder = gateway_api.join(GATEWAY_API_CRDS_SOURCE);
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    paths.retain(|path| path.file_name().is_some_and(is_crd));
    paths.sort();
    let mut documents = String::new();
    for path in paths {
        documents += "---\n";
        documents += &read(path)?;
    }
    fs::write(package.join(GATEWAY_API_CRDS), documents)
}

fn is_crd(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name.starts_with(CRD_PREFIX) && name != POLICY
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_support::program;

    fn module_cache(folder: &Path) {
        for (path, text) in [
            ("i/manifests/charts/base/files/crd-all.gen.yaml", "istio: crds\n"),
            ("i/tools/packaging/common/envoy_bootstrap.json", "{}\n"),
            ("g/config/crd/experimental/gateway.networking.x-k8s.io_xmeshes.yaml", "c: 2\n"),
            ("g/config/crd/experimental/gateway.networking.k8s.io_gateways.yaml", "c: 1\n"),
            ("g/config/crd/experimental/gateway.networking.k8s.io_vap_safeupgrades.yaml", "policy: x\n"),
            ("g/config/crd/experimental/kustomization.yaml", "list: x\n"),
        ] {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    #[test]
    fn files_are_copied_from_go_module_cache() {
        let (tools, package) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        module_cache(tools.path());
        let go = program(
            tools.path(),
            "go",
            &format!(
                r#"[ "$1" = version ] && exec echo go version go1.26.8 linux/amd64
echo 'go: downloading istio.io/istio v0' >&2
printf '{{\n"Path": "istio.io/istio",\n"Dir": "{0}/i"\n}}\n{{\n"Path": "sigs.k8s.io/gateway-api",\n"Dir": "{0}/g"\n}}\n'"#,
                tools.path().display()
            ),
        );
        assert_eq!(copy(&go, tools.path(), package.path(), &mut |_, _| true).unwrap(), "go1.26.8");
        let text = |name: &str| fs::read_to_string(package.path().join(name)).unwrap();
        assert_eq!(FILES.map(text), ["istio: crds\n", "---\nc: 1\n---\nc: 2\n", "{}\n"]);
    }

    #[test]
    fn unavailable_module_is_quoted() {
        let tools = tempfile::tempdir().unwrap();
        let go = program(
            tools.path(),
            "go",
            "[ $1 = version ] && exec echo go version go1.26.8 x\necho 'dial tcp: no route to host' >&2; exit 1",
        );
        let error = copy(&go, tools.path(), tools.path(), &mut |_, _| true).unwrap_err();
        assert!(error.source.unwrap().to_string().contains("no route to host"));
        assert!(error.hint.unwrap().contains("GOPROXY"));
    }
}
