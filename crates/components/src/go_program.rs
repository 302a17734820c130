//! Programs that are built from Go modules.
//!
//! The modules are those of `components/`, which are embedded. Their go.mod and go.sum pin all sources of a
//! program by version and digest; the module proxy (or what GOPROXY names) delivers them. They are written to
//! a private directory and built there with the user's own Go, whose caches speed up a second build.

use super::catalog::{ISTIO_VERSION, KUBERNETES_VERSION};
use super::manifest::sha256_of_texts;
use super::supervised_command::Look;
use super::{Component, go_toolchain, supervised_command, version};
use crate::Result;
use experiment::environment::ErrorContext as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// kube-apiserver takes some four minutes on two idle cores.
const BUILD_TIMEOUT: Duration = Duration::from_secs(3600);

const BUILD_HINT: &str =
    "a first build needs the Go module proxy (network, GOPROXY), some 5 GB in Go's caches and 3 GB of memory";

/// `v` and the version in the catalog.
const FERRETDB_VERSION_TEXT: &str = "v1.24.0\n";

/// The commit in [`ISTIO_VERSION`].
const ISTIO_REVISION: &str = "eed52ebb66ad";

pub(super) struct Module {
    pub go_mod: &'static str,
    go_sum: &'static str,
    /// Paths and contents.
    sources: &'static [(&'static str, &'static str)],
    /// Paths and contents of files that a release of a required module has but the module lacks. They need a
    /// vendor directory: Go does not replace files in its module cache.
    vendored: &'static [(&'static str, &'static str)],
}

static KUBERNETES: Module = Module {
    go_mod: include_str!("../../../components/kubernetes/go.mod"),
    go_sum: include_str!("../../../components/kubernetes/go.sum"),
    sources: &[],
    vendored: &[],
};

/// FerretDB's main package does not start without a version.
static FERRETDB: Module = Module {
    go_mod: include_str!("../../../components/ferretdb/go.mod"),
    go_sum: include_str!("../../../components/ferretdb/go.sum"),
    sources: &[],
    vendored: &[("github.com/FerretDB/FerretDB/build/version/version.txt", FERRETDB_VERSION_TEXT)],
};

static GATEWAY_SERVICES: Module = Module {
    go_mod: include_str!("../../../components/gateway-services/go.mod"),
    go_sum: include_str!("../../../components/gateway-services/go.sum"),
    sources: &[
        (
            "filter-services/authorization.go",
            include_str!("../../../components/gateway-services/filter-services/authorization.go"),
        ),
        (
            "filter-services/counters.go",
            include_str!("../../../components/gateway-services/filter-services/counters.go"),
        ),
        (
            "filter-services/firewall.go",
            include_str!("../../../components/gateway-services/filter-services/firewall.go"),
        ),
        (
            "filter-services/main.go",
            include_str!("../../../components/gateway-services/filter-services/main.go"),
        ),
        ("ratelimit/main.go", include_str!("../../../components/gateway-services/ratelimit/main.go")),
    ],
    vendored: &[],
};

/// Also contains the module that [`super::istio_files`] come from.
pub(super) static ISTIO: Module = Module {
    go_mod: include_str!("../../../components/istio/go.mod"),
    go_sum: include_str!("../../../components/istio/go.sum"),
    sources: &[
        ("ambient-iptables/main.go", include_str!("../../../components/istio/ambient-iptables/main.go")),
        ("istiod/main.go", include_str!("../../../components/istio/istiod/main.go")),
    ],
    vendored: &[],
};

impl Module {
    pub(super) fn write(&self, parent: &Path) -> Result<PathBuf> {
        let folder = parent.join("module");
        let files = [("go.mod", self.go_mod), ("go.sum", self.go_sum)];
        let write = || {
            fs::create_dir_all(go_toolchain::temporary_folder(&folder))?;
            for (path, text) in files.iter().chain(self.sources) {
                let path = folder.join(path);
                fs::create_dir_all(path.parent().unwrap_or(&folder))?;
                fs::write(path, text)?;
            }
            io::Result::Ok(())
        };
        write().context(format!("write the Go module {}", folder.display()))?;
        Ok(folder)
    }

    fn vendor(&self, go: &str, module: &Path, operation: &str, look: &mut Look<'_>) -> Result<()> {
        let mut command = go_toolchain::command(go, module);
        command.args(["mod", "vendor"]);
        supervised_command::run_well(&mut command, operation, BUILD_HINT, BUILD_TIMEOUT, look)?;
        for (path, text) in self.vendored {
            let path = module.join("vendor").join(path);
            fs::write(&path, text).context(format!("write {}", path.display()))?;
        }
        Ok(())
    }
}

pub(super) struct Program {
    component: Component,
    module: &'static Module,
    package: &'static str,
    /// Build tags.
    tags: &'static str,
    /// Variables that the linker sets, so that the program reports its version.
    variables: Vec<String>,
}

impl Program {
    /// `None` for components that are not built from Go.
    pub(super) fn for_component(component: Component) -> Option<Self> {
        let (module, package, variables) = match component {
            Component::Etcd => (&KUBERNETES, "go.etcd.io/etcd/server/v3", Vec::new()),
            Component::ApiServer => {
                (&KUBERNETES, "k8s.io/kubernetes/cmd/kube-apiserver", kubernetes_variables())
            }
            Component::Istiod => (&ISTIO, "./istiod", istio_variables()),
            Component::AmbientIptables => (&ISTIO, "./ambient-iptables", istio_variables()),
            Component::PilotAgent => (&ISTIO, "istio.io/istio/pilot/cmd/pilot-agent", istio_variables()),
            Component::FerretDb => (&FERRETDB, "github.com/FerretDB/FerretDB/cmd/ferretdb", Vec::new()),
            Component::FilterServices => (&GATEWAY_SERVICES, "./filter-services", Vec::new()),
            Component::RateLimit => (&GATEWAY_SERVICES, "./ratelimit", Vec::new()),
            Component::Envoy
            | Component::IstioFiles
            | Component::Ztunnel
            | Component::Mongod
            | Component::RedisServer => return None,
        };
        let tags = match component {
            // The lab's database stores its data in SQLite.
            Component::FerretDb => "ferretdb_no_postgresql",
            // Request bodies stay in memory.
            Component::FilterServices => "no_fs_access",
            _ => "",
        };
        Some(Self { component, module, package, tags, variables })
    }

    pub(super) fn recipe(&self) -> String {
        let mut texts = vec![self.module.go_mod, self.module.go_sum];
        // Sources of other programs of the module do not matter to this one.
        let folder = self.package.trim_start_matches("./");
        texts.extend(
            self.module.sources.iter().filter(|(path, _)| path.starts_with(folder)).map(|(_, text)| *text),
        );
        let flags = self.linker_flags();
        texts.extend([self.package, &flags]);
        texts.extend(self.module.vendored.iter().map(|(_, text)| *text));
        if !self.tags.is_empty() {
            texts.push(self.tags);
        }
        sha256_of_texts(&texts)
    }

    /// Builds the program into `package`, with `scratch` for the module. Returns the version of Go.
    pub(super) fn build(
        &self,
        go: &str,
        scratch: &Path,
        package: &Path,
        look: &mut Look<'_>,
    ) -> Result<String> {
        let module = self.module.write(scratch)?;
        let made_by = go_toolchain::version(go, &module, self.module.go_mod, look)?;
        let program = package.join(self.component.file());
        let operation = format!("build {} with {made_by}", self.component);
        let mut command = go_toolchain::command(go, &module);
        command.args(["build", "-trimpath", "-buildvcs=false", "-ldflags", &self.linker_flags()]);
        if !self.tags.is_empty() {
            command.args(["-tags", self.tags]);
        }
        if !self.module.vendored.is_empty() {
            self.module.vendor(go, &module, &operation, look)?;
            command.arg("-mod=vendor");
        }
        command.arg("-o").arg(&program).arg(self.package);
        supervised_command::run_well(&mut command, &operation, BUILD_HINT, BUILD_TIMEOUT, look)?;
        version::check_pinned(self.component, &program)
            .context(format!("run the {} that was built", self.component))?;
        Ok(made_by)
    }

    fn linker_flags(&self) -> String {
        let variables = self.variables.iter().map(|variable| format!(" -X {variable}"));
        // Without symbols and debug information: half the size, and panics keep their line numbers.
        variables.fold("-s -w".to_owned(), |flags, variable| flags + &variable)
    }
}

fn kubernetes_variables() -> Vec<String> {
    let (major, rest) = KUBERNETES_VERSION.split_once('.').unwrap_or((KUBERNETES_VERSION, ""));
    let minor = rest.split('.').next().unwrap_or_default();
    let variable = |name: &str, value: &str| format!("k8s.io/component-base/version.{name}={value}");
    vec![
        variable("gitVersion", &format!("v{KUBERNETES_VERSION}")),
        variable("gitMajor", major),
        variable("gitMinor", minor),
        variable("gitTreeState", "clean"),
    ]
}

fn istio_variables() -> Vec<String> {
    let variable = |name: &str, value: &str| format!("istio.io/istio/pkg/version.{name}={value}");
    vec![
        variable("buildVersion", ISTIO_VERSION),
        variable("buildGitRevision", ISTIO_REVISION),
        variable("buildStatus", "Clean"),
        variable("buildTag", ISTIO_VERSION),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requires(module: &Module, path: &str, version: &str) -> bool {
        module.go_mod.lines().any(|line| {
            let line = line.trim().trim_start_matches("require ").trim_end_matches("// indirect");
            line.trim() == format!("{path} {version}")
        })
    }

    #[test]
    fn module_pins_match_catalog() {
        let version = |component: Component| format!("v{}", component.pinned_version().unwrap());
        assert!(requires(&KUBERNETES, "go.etcd.io/etcd/server/v3", &version(Component::Etcd)));
        assert!(requires(&KUBERNETES, "k8s.io/kubernetes", &version(Component::ApiServer)));
        let istio =
            ISTIO.go_mod.lines().find(|line| line.trim_start().starts_with("istio.io/istio v")).unwrap();
        assert!(istio.trim_end().ends_with(ISTIO_REVISION), "{istio}");
        assert!(ISTIO_VERSION.ends_with(ISTIO_REVISION));
        assert!(requires(&FERRETDB, "github.com/FerretDB/FerretDB", &version(Component::FerretDb)));
        assert_eq!(FERRETDB_VERSION_TEXT.trim(), version(Component::FerretDb));
        let filters = version(Component::FilterServices);
        let (coraza, rules) = filters.split_once("-crs-").unwrap();
        assert!(requires(&GATEWAY_SERVICES, "github.com/corazawaf/coraza/v3", coraza));
        assert!(requires(
            &GATEWAY_SERVICES,
            "github.com/corazawaf/coraza-coreruleset/v4",
            &format!("v{rules}")
        ));
        assert!(requires(
            &GATEWAY_SERVICES,
            "github.com/envoyproxy/ratelimit",
            &version(Component::RateLimit)
        ));
    }

    #[test]
    fn every_module_declares_go_version() {
        for module in [&KUBERNETES, &ISTIO, &FERRETDB, &GATEWAY_SERVICES] {
            assert!(module.go_mod.lines().any(|line| line.starts_with("go 1.")));
        }
    }

    #[test]
    fn recipes_are_distinct() {
        let built = Component::ALL.into_iter().filter_map(Program::for_component);
        let recipes: std::collections::BTreeSet<String> = built.map(|program| program.recipe()).collect();
        assert_eq!(recipes.len(), 8);
    }
}
